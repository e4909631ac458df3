"""The slots of composed policies by name, with one line each and where they come from."""

from typing import NamedTuple

from .slots import Allocation, Backfill, Order, Power


class Entry(NamedTuple):
    """One line of ``decision policies``."""

    name: str
    summary: str
    paper: str = ""


_SC17 = "Carastan-Santos and de Camargo, SC 2017"
_CLUSTER09 = "Tang et al., Cluster 2009"
_TPDS01 = "Mu'alem and Feitelson, TPDS 2001"

ORDERS: dict[str, tuple[Order, Entry]] = {
    entry.name: (order, entry)
    for order, entry in (
        (Order.FCFS, Entry("fcfs", "first come, first served, in strict order")),
        (Order.LCFS, Entry("lcfs", "last come, first served")),
        (Order.SJF, Entry("sjf", "shortest walltime first")),
        (Order.LJF, Entry("ljf", "longest walltime first")),
        (Order.SAF, Entry("saf", "smallest area first, walltime x hosts", "Srinivasan et al., JSSPP 2002")),
        (Order.LAF, Entry("laf", "largest area first, walltime x hosts")),
        (Order.SQF, Entry("sqf", "fewest hosts first")),
        (Order.LQF, Entry("lqf", "most hosts first")),
        (Order.WFP3, Entry("wfp3", "highest (wait / walltime)^3 x hosts first", _CLUSTER09)),
        (Order.UNICEP, Entry("unicep", "highest wait / (log2(hosts) x walltime) first", _CLUSTER09)),
        (Order.F1, Entry("f1", "lowest log10(walltime) x hosts + 870 log10(submission) first", _SC17)),
        (Order.F2, Entry("f2", "lowest sqrt(walltime) x hosts + 25600 log10(submission) first", _SC17)),
        (Order.F3, Entry("f3", "lowest walltime x hosts + 6860000 log10(submission) first", _SC17)),
        (Order.F4, Entry("f4", "lowest walltime x sqrt(hosts) + 530000 log10(submission) first", _SC17)),
        (
            Order.MULTIFACTOR,
            Entry("multifactor", "highest weighted age and size first", "Slurm"),
        ),
        (Order.RANDOM, Entry("random", "a random rank for each job, by the seed")),
    )
}

BACKFILLS: dict[str, tuple[Backfill, Entry]] = {
    entry.name: (backfill, entry)
    for backfill, entry in (
        (Backfill.NONE, Entry("none", "nothing starts before a job that waits ahead of it")),
        (Backfill.FIRST_FIT, Entry("first-fit", "every job that fits starts, in order")),
        (Backfill.EASY, Entry("easy", "what fits may start unless it delays the first job that waits", _TPDS01)),
        (Backfill.CONSERVATIVE, Entry("conservative", "what fits may start unless it delays any job", _TPDS01)),
    )
}

ALLOCATIONS: dict[str, tuple[Allocation, Entry]] = {
    entry.name: (allocation, entry)
    for allocation, entry in (
        (Allocation.FIRST_FIT, Entry("first-fit", "the free hosts with the lowest ids")),
        (Allocation.CONTIGUOUS, Entry("contiguous", "the lowest run of neighbours, else as first-fit")),
        (Allocation.BEST_FIT, Entry("best-fit", "the shortest run of neighbours that is enough, else as first-fit")),
        (Allocation.RANDOM, Entry("random", "any free hosts, by the seed")),
    )
}

POWERS: dict[str, tuple[Power, Entry]] = {
    entry.name: (power, entry)
    for power, entry in (
        (Power.NEVER, Entry("never", "no host ever sleeps")),
        (Power.IDLE_TIMEOUT, Entry("idle-timeout", "hosts idle for idle_timeout seconds sleep; woken in time")),
        (Power.KEEP_AWAKE, Entry("keep-awake", "all idle hosts but keep_awake sleep; woken in time")),
    )
}

ALIASES = {"filler": "first-fit"}


def split_name(name: str) -> tuple[str, str] | None:
    """Order and backfilling of a preset's name: ``sjf+easy``, ``sjf`` (strict) or ``easy`` (fcfs). None for others."""
    parts = [ALIASES.get(part, part) for part in name.split("+")]
    if len(parts) == 2 and parts[0] in ORDERS and parts[1] in BACKFILLS:
        return parts[0], parts[1]
    if len(parts) == 1 and parts[0] in ORDERS:
        return parts[0], "none"
    if len(parts) == 1 and parts[0] in BACKFILLS:
        return "fcfs", parts[0]
    return None


def preset_names() -> list[str]:
    """All names that `split_name` knows."""
    backfills = [name for name in (*BACKFILLS, *ALIASES) if name != "none"]
    return [*ORDERS, *backfills, *(f"{order}+{backfill}" for order in ORDERS for backfill in backfills)]


def _catalogue() -> list[Entry]:
    entries = [entry for _, entry in ORDERS.values()]
    entries += [entry for name, (_, entry) in BACKFILLS.items() if name != "none"]
    entries.append(Entry("filler", "another name of first-fit"))
    entries.append(Entry("kamelot", "fcfs, conservative over hosts instead of their number, as OAR does it", "OAR 3"))
    entries.append(Entry("dbf", "learned split-window deep backfilling; needs decision[learn]", "Wang et al. 2023"))
    entries.append(Entry("dbf-HEAD-TAIL", "the same for 256 hosts, window 28-4, 20-0, 16-4, 10-0, 9-1 or 0-10"))
    entries.append(Entry("rlscheduler", "learned order, with backfilling; needs decision[learn]", "Zhang et al. 2020"))
    entries.append(
        Entry(
            "inspector-f1",
            "f1 with backfilling, but for what it refuses to start; needs decision[learn]",
            "Zhang et al. 2022",
        )
    )
    entries.append(Entry("inspector-sjf", "the same for sjf"))
    entries.append(Entry("ranking", "learned order, reservations and restraint; needs decision[learn]"))
    entries.append(Entry("FILE.ckpt", "what decision train has learned"))
    entries.append(Entry("ORDER+BACKFILL", "any order with any backfilling: sjf+easy, wfp3+conservative"))
    entries += [entry._replace(name=f"...,allocation={name}") for name, (_, entry) in ALLOCATIONS.items()]
    entries += [entry._replace(name=f"...,power={name}") for name, (_, entry) in POWERS.items()]
    return entries


CATALOGUE: list[Entry] = _catalogue()
