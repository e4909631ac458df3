"""The slots of composed policies by name, with one line each and where they come from."""

from collections.abc import Mapping
from typing import NamedTuple

from .config import Allocation, Backfill, Order, PolicyConfig, Power, StartHosts, Suspend


class PolicyLine(NamedTuple):
    """One line of ``decision policies``."""

    name: str
    summary: str
    paper: str = ""


class OptionLine(NamedTuple):
    """One option of a policy, as ``decision policies NAME`` shows it."""

    name: str
    default: str  # "" where it must be given
    unit: str  # "" for names and for numbers without unit
    summary: str
    paper: str = ""


_DEEPSCHEDULING = "Casagrande et al., AINA 2020"
_LAN = "cost after Lan et al., 2023"
_LAUNCHPAD = "Venkataswamy et al., JSSPP 2024"
_SC17 = "Carastan-Santos and de Camargo, SC 2017"
_CLUSTER09 = "Tang et al., Cluster 2009"
_COMPACT = "Krumke et al., TCS 1997"
_TPDS01 = "Mu'alem and Feitelson, TPDS 2001"
TSAFRIR = "Tsafrir, Etsion and Feitelson, TPDS 2007"

ORDER_LINES: dict[str, tuple[Order, PolicyLine]] = {
    line.name: (order, line)
    for order, line in (
        (Order.FCFS, PolicyLine("fcfs", "first come, first served, in strict order")),
        (Order.LCFS, PolicyLine("lcfs", "last come, first served")),
        (Order.SJF, PolicyLine("sjf", "shortest walltime first")),
        (Order.LJF, PolicyLine("ljf", "longest walltime first")),
        (Order.SAF, PolicyLine("saf", "smallest area first, walltime x hosts", "Srinivasan et al., JSSPP 2002")),
        (Order.LAF, PolicyLine("laf", "largest area first, walltime x hosts")),
        (Order.SQF, PolicyLine("sqf", "fewest hosts first")),
        (Order.LQF, PolicyLine("lqf", "most hosts first")),
        (Order.WFP3, PolicyLine("wfp3", "highest (wait / walltime)^3 x hosts first", _CLUSTER09)),
        (Order.UNICEP, PolicyLine("unicep", "highest wait / (log2(hosts) x walltime) first", _CLUSTER09)),
        (Order.F1, PolicyLine("f1", "lowest log10(walltime) x hosts + 870 log10(submission) first", _SC17)),
        (Order.F2, PolicyLine("f2", "lowest sqrt(walltime) x hosts + 25600 log10(submission) first", _SC17)),
        (Order.F3, PolicyLine("f3", "lowest walltime x hosts + 6860000 log10(submission) first", _SC17)),
        (Order.F4, PolicyLine("f4", "lowest walltime x sqrt(hosts) + 530000 log10(submission) first", _SC17)),
        (Order.MULTIFACTOR, PolicyLine("multifactor", "highest weighted age and size first", "Slurm")),
        (Order.HVF, PolicyLine("hvf", "highest value first", _LAUNCHPAD)),
        (Order.QOS, PolicyLine("qos", "highest quality of service first", _LAUNCHPAD)),
        (Order.DENSITY, PolicyLine("density", "highest value per host-second left first")),
        (Order.EDF, PolicyLine("edf", "earliest deadline first", "Liu and Layland, JACM 1973")),
        (Order.RANDOM, PolicyLine("random", "a random rank for each job, by the seed")),
    )
}

BACKFILLS: dict[str, tuple[Backfill, PolicyLine]] = {
    line.name: (backfill, line)
    for backfill, line in (
        (Backfill.NONE, PolicyLine("none", "nothing starts before a job that waits ahead of it")),
        (Backfill.FIRST_FIT, PolicyLine("first-fit", "every job that fits starts, in order")),
        (Backfill.EASY, PolicyLine("easy", "what fits may start unless it delays the first job that waits", _TPDS01)),
        (Backfill.CONSERVATIVE, PolicyLine("conservative", "what fits may start unless it delays any job", _TPDS01)),
    )
}

ALLOCATIONS: dict[str, tuple[Allocation, PolicyLine]] = {
    line.name: (allocation, line)
    for allocation, line in (
        (Allocation.LOWEST, PolicyLine("first-fit", "the free hosts with the lowest ids")),
        (Allocation.CONTIGUOUS, PolicyLine("contiguous", "the lowest run of neighbours, else as first-fit")),
        (
            Allocation.BEST_FIT,
            PolicyLine("best-fit", "the shortest run of neighbours that is enough, else as first-fit"),
        ),
        (Allocation.SCATTERED, PolicyLine("random", "any free hosts, by the seed")),
        (Allocation.TREE, PolicyLine("tree", "of a fat-tree, the free hosts that are fewest hops apart", _LAN)),
        (
            Allocation.SLURM_TREE,
            PolicyLine(
                "slurm-tree", "of a fat-tree, the lowest switch that fits, best fit below it", "Slurm, topology/tree"
            ),
        ),
        (Allocation.PACK, PolicyLine("pack", "the server that is awake with the fewest free hosts first")),
        (
            Allocation.HOPS,
            PolicyLine("hops", "of any network, free hosts that are few hops from one of them", _COMPACT),
        ),
    )
}

POWERS: dict[str, tuple[Power, PolicyLine]] = {
    line.name: (power, line)
    for power, line in (
        (Power.NEVER, PolicyLine("never", "no host ever sleeps")),
        (Power.IDLE_TIMEOUT, PolicyLine("idle-timeout", "hosts idle for idle_timeout seconds sleep; woken in time")),
        (Power.KEEP_AWAKE, PolicyLine("keep-awake", "all idle hosts but keep_awake sleep; woken in time")),
    )
}

_STARTS: dict[str, tuple[StartHosts, PolicyLine]] = {
    line.name: (start, line)
    for start, line in (
        (StartHosts.AWAKE, PolicyLine("awake", "a job gets hosts that are awake, when it starts")),
        (
            StartHosts.BOOKED,
            PolicyLine(
                "bound", "a job gets hosts at once, asleep or not, and starts when the last is awake", _DEEPSCHEDULING
            ),
        ),
    )
}

SUSPENSIONS: dict[str, tuple[Suspend, PolicyLine]] = {
    line.name: (suspend, line)
    for suspend, line in (
        (Suspend.NEVER, PolicyLine("never", "no job that runs gives way to one that waits")),
        (Suspend.VALUE, PolicyLine("value", "jobs of less value are suspended for one that does not fit", _LAUNCHPAD)),
        (Suspend.DENSITY, PolicyLine("density", "likewise, by value per host-second left")),
    )
}

ALIASES = {"filler": "first-fit"}


_SLURM = "Slurm, priority/multifactor"

SLOTS: Mapping[str, tuple[str, Mapping[str, tuple[int, PolicyLine]]]] = {
    "order": ("in which order jobs are looked at", ORDER_LINES),
    "backfill": ("what happens behind a job that does not fit", BACKFILLS),
    "allocation": ("which of the free hosts a job gets", ALLOCATIONS),
    "power": ("when idle hosts sleep", POWERS),
    "start": ("which hosts a job may be given", _STARTS),
    "suspend": ("which running jobs give way to a waiting one", SUSPENSIONS),
}
PRICES_LINE = OptionLine(
    "prices", "none", "", "with allocation=tree: what free hosts are worth, FILE.ckpt of decision train prices"
)
_NUMBERS = (
    ("age_weight", "", "with order=multifactor: of a job's wait, as a share of max_age", _SLURM),
    ("size_weight", "", "with order=multifactor: of a job's hosts, as a share of all hosts", _SLURM),
    ("max_age", "s", "with order=multifactor: wait that counts in full", _SLURM),
    ("idle_timeout", "s", "with power=idle-timeout: a host that is idle for so long sleeps", ""),
    ("keep_awake", "hosts", "with power=keep-awake: idle hosts that stay awake", ""),
    ("wake_time", "s", "with power=...: what a host takes to wake, where the platform does not say it", ""),
    ("patience", "s", "with start=bound: no server is woken for a job that has waited for less", ""),
)


_BACKFILL_ORDER = OptionLine(
    "backfill_order", "that of the queue", "", "with backfill=easy: an order, of the jobs behind the first that waits"
)


def composed_options(order: str, backfill: str) -> list[OptionLine]:
    """The options of the composed policy with these slots."""
    chosen = {"order": order, "backfill": backfill, "allocation": "first-fit", "power": "never", "start": "awake"}
    chosen["suspend"] = "never"
    slots = [
        OptionLine(slot, chosen[slot], "", f"{summary}: {', '.join(values)}")
        for slot, (summary, values) in SLOTS.items()
    ]
    defaults = PolicyConfig()
    numbers = [OptionLine(n, f"{getattr(defaults, n):g}", u, text, paper) for n, u, text, paper in _NUMBERS]
    return [*slots, _BACKFILL_ORDER, PRICES_LINE, *numbers]


SHORTHANDS = {"easy++": "easy,backfill_order=sjf,estimate=last2,correction=increments"}


def canonical(name: str) -> str:
    """The name behind an alias."""
    return ALIASES.get(name, name)


def split_name(name: str) -> tuple[str, str] | None:
    """Order and backfilling of a preset's name: ``sjf+easy``, ``sjf`` (strict) or ``easy`` (fcfs). None for others."""
    parts = [canonical(part) for part in name.split("+")]
    if len(parts) == 2 and parts[0] in ORDER_LINES and parts[1] in BACKFILLS:
        return parts[0], parts[1]
    if len(parts) == 1 and parts[0] in ORDER_LINES:
        return parts[0], "none"
    if len(parts) == 1 and parts[0] in BACKFILLS:
        return "fcfs", parts[0]
    return None


def composed_names() -> list[str]:
    """All names that `split_name` knows."""
    backfills = [name for name in (*BACKFILLS, *ALIASES) if name != "none"]
    return [*ORDER_LINES, *backfills, *(f"{order}+{backfill}" for order in ORDER_LINES for backfill in backfills)]


PRESETS = [
    *(line for _, line in ORDER_LINES.values()),
    *(line for name, (_, line) in BACKFILLS.items() if name != "none"),
    *(PolicyLine(alias, f"another name of {name}") for alias, name in ALIASES.items()),
    *(PolicyLine(name, f"another name of {spec}", TSAFRIR) for name, spec in SHORTHANDS.items()),
]
PARTS = [
    PolicyLine("ORDER+BACKFILL", "any order with any backfilling: sjf+easy, wfp3+conservative"),
    *(line._replace(name=f"...,allocation={name}") for name, (_, line) in ALLOCATIONS.items()),
    *(line._replace(name=f"...,power={name}") for name, (_, line) in POWERS.items()),
    *(line._replace(name=f"...,start={name}") for name, (_, line) in _STARTS.items()),
    *(line._replace(name=f"...,suspend={name}") for name, (_, line) in SUSPENSIONS.items()),
]
