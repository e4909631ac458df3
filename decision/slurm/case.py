"""A case: a cluster's configuration and log, read once."""

import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from decision.files.accounting.records import Account
from decision.files.accounting.values import named_zone
from decision.model.dates import DAY
from decision.model.errors import InputError

from .accounts import ROOT, Association, Limits, Quality, merge_shares, read_associations, read_qualities, read_shares
from .conf import NO_NORMAL, Conf, KeyCount, Settings, count_keys, read_conf, read_text
from .jobs import SlurmJob, cluster_hosts, make_log, most_together
from .nodes import Absence, Node, Partition, make_nodes, make_partitions, read_node_events, read_reservations
from .records import read_rows
from .switches import Switch, read_forest
from .text import is_nothing, read_date

# What of a configuration is not simulated, and how many jobs of the log it touches.

_KNOWN_WORDS = {
    "PriorityFlags": {
        *NO_NORMAL,
        *("NO_NORMAL_ALL", "FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME", "INCR_ONLY", "ACCRUE_ALWAYS"),
    },
    "SelectTypeParameters": {
        *("CR_CORE", "CR_CORE_MEMORY", "CR_CPU", "CR_CPU_MEMORY", "CR_LLN", "CR_CORE_DEFAULT_DIST_BLOCK", "NONE"),
        *("CR_ONE_TASK_PER_CORE", "OTHER_CONS_TRES", "OTHER_CONS_RES"),
    },
    "TopologyParam": {"TOPOOPTIONAL", "NOINADDRANY", "NOCTLDINADDRANY", "NOINADDRANYCTLD", "ROUTEPART"},
    "SchedulerType": {"SCHED/BACKFILL", "SCHED/BUILTIN"},
    "SelectType": {"SELECT/LINEAR", "SELECT/CONS_TRES", "SELECT/CONS_RES"},
    "PreemptType": {"PREEMPT/NONE", "PREEMPT/PARTITION_PRIO", "PREEMPT/QOS"},
    "PriorityType": {"PRIORITY/BASIC", "PRIORITY/MULTIFACTOR"},
}
_OF_PARTITIONS = {
    **{"exclusiveuser": "ExclusiveUser", "maxcpuspernode": "MaxCPUsPerNode", "overtimelimit": "OverTimeLimit"},
    **{"selecttypeparameters": "SelectTypeParameters", "maxmempernode": "MaxMemPerNode", "reqresv": "ReqResv"},
    **{"maxmempercpu": "MaxMemPerCPU", "oversubscribe": "OverSubscribe", "shared": "Shared"},
    **{"tresbillingweights": "TRESBillingWeights"},
}
_OF_NODES = {"corespeccount": "CoreSpecCount", "memspeclimit": "MemSpecLimit", "cpuspeclist": "CpuSpecList"}
_QUIET = {"", "NO", "NONE", "N/A", "(NULL)", "0", "UNLIMITED", "EXCLUSIVE", "INFINITE"}


class Facts(NamedTuple):
    """What is known of a cluster and its log."""

    conf: Conf
    nodes: Sequence[Node]
    partitions: Sequence[Partition]
    associations: Sequence[Association]
    qualities: Sequence[Quality]
    jobs: Sequence[SlurmJob]

    def count(self, partition: str) -> int:
        """The jobs of a partition."""
        return sum(partition in job.partition.split(",") for job in self.jobs)


def with_touched(keys: KeyCount, facts: Facts) -> KeyCount:
    """The keys, where those that may matter say how many jobs they touch, as far as a log shows that.

    Added is what is not a key of its own: single words of lists, what partitions, nodes, associations and QOS set, and
    options of jobs.
    """
    several = sum(job.nodes > 1 or job.nodes_max > 1 for job in facts.jobs)
    said = [_counted(name, several if name.lower().startswith("topologyplugin=") else None) for name in keys.may_matter]
    parts = (_words(facts), _of_partitions(facts), _of_nodes(facts), _of_accounts(facts), _of_jobs(facts))
    return replace(keys, may_matter=(*said, *(line for part in parts for line in part)))


def _words(facts: Facts) -> Iterator[str]:
    """Words of a key's list that are not known."""
    for key, known in _KNOWN_WORDS.items():
        for word in facts.conf.get(key).split(","):
            if word.strip() and word.strip().upper() not in known:
                yield f"{key}={word.strip()}"
    threads = any(node.threads > 1 for node in facts.nodes)
    if threads and "CR_CPU" in facts.conf.get("SelectTypeParameters").upper() and not Settings(facts.conf).linear:
        yield "SelectTypeParameters=CR_CPU on nodes with threads: cores are allocated whole"


def _of_partitions(facts: Facts) -> Iterator[str]:
    billed = any(job.billing for job in facts.jobs)
    for entry in facts.conf.partitions:
        for key, shown in _OF_PARTITIONS.items():
            value = entry.pairs.get(key, "")
            known = value.upper() in _QUIET or (key == "tresbillingweights" and billed)
            if not known:
                yield _counted(f"{shown}={value} of partition {entry.name}", facts.count(entry.name))
    preempts = "none" not in facts.conf.get("PreemptType", "preempt/none").lower()
    for partition in facts.partitions:
        own = (partition.preempt_mode or facts.conf.get("PreemptMode")).upper()
        if "SUSPEND" in own or "GANG" in own or ("WITHIN" in own and preempts):
            yield _counted(f"PreemptMode={own} of partition {partition.name}", facts.count(partition.name))


def _of_nodes(facts: Facts) -> Iterator[str]:
    for entry in facts.conf.nodes:
        for key, shown in _OF_NODES.items():
            if entry.pairs.get(key, "0") != "0":
                yield f"{shown} of node {entry.name}"


def _of_accounts(facts: Facts) -> Iterator[str]:
    for quality in facts.qualities:
        nb_jobs = sum(job.qos == quality.name for job in facts.jobs)
        own = quality.preempt_mode.upper()
        if any(word in own for word in ("SUSPEND", "GANG", "WITHIN")):
            yield _counted(f"PreemptMode={own} of QOS {quality.name}", nb_jobs)
        for limit in quality.not_simulated:
            yield _counted(f"{limit} of QOS {quality.name}", nb_jobs)
    touched: Counter[str] = Counter()
    for each in filter(lambda each: each.not_simulated, facts.associations):
        mine = sum(job.account == each.account and each.user in ("", job.user) for job in facts.jobs)
        for limit in each.not_simulated:
            touched[limit] += mine
    for limit, nb_jobs in touched.items():
        yield _counted(f"{limit} of associations", nb_jobs)


def _of_jobs(facts: Facts) -> Iterator[str]:
    found = Counter(option for job in facts.jobs for option in job.options)
    for option, nb_jobs in sorted(found.items()):
        yield _counted(option, nb_jobs)


def _counted(name: str, nb_jobs: int | None) -> str:
    return name if nb_jobs is None else f"{name} ({nb_jobs:,} job{'' if nb_jobs == 1 else 's'})"


# When cycles of backfill began: from slurmctld's log, or from a file with one time a line.

_LOGGED = re.compile(r"^\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?\]?\s+(.*)")
_BEGINS = re.compile(r"^cycle\b|(?:_attempt_backfill|backfill):?.*\bbeginning\b|backfill: beginning")


def read_cycles(path: Path, zone: ZoneInfo | None = None) -> list[int]:
    """Seconds since 1970 at which cycles began, ascending.

    slurmctld says "backfill: beginning" with ``DebugFlags=Backfill`` or ``SlurmctldDebug=debug``.

    Raises:
        InputError: if there is none, or a line is no time.
    """
    times, plain = [], True
    for number, line in enumerate(_lines(path), 1):
        text = line.strip()
        found = _LOGGED.match(text)
        if found and found[2]:
            plain = False
            if _BEGINS.search(found[2]):
                times.append(read_date(found[1], zone))
        elif text and (plain or found):
            times.append(_time(text, f"{path}, line {number}", zone))
    if not times:
        raise InputError(
            f"{path}: no cycle of backfill begins in it; log with DebugFlags=Backfill, or give one time a line"
        )
    return sorted(set(times))


def _time(text: str, place: str, zone: ZoneInfo | None) -> int:
    try:
        found = _LOGGED.match(text)
        return round(float(text)) if not found and text.replace(".", "", 1).isdigit() else read_date(text, zone)
    except ValueError:
        raise InputError(f"{place}: {text[:40]!r} is not a time like 2026-03-02T08:05:48") from None


def _lines(path: Path) -> list[str]:
    if path.suffix != ".xz":
        return read_text(path).splitlines()
    try:
        with lzma.open(path, "rt", encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (OSError, lzma.LZMAError) as error:
        raise InputError(f"{path}: cannot be unpacked ({error}); check the file") from None


VERSION = 1
TOPOLOGY_FILE = "topology.conf"


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The files that make a case."""

    conf: Path
    jobs: Path
    nodes: Path | None = None
    partitions: Path | None = None
    assoc: Path | None = None
    qos: Path | None = None
    shares: Path | None = None
    cycles: Path | None = None
    events: Path | None = None
    reservations: Path | None = None
    topology: Path | None = None
    time_zone: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a cluster and its log."""

    version: int
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    jobs: tuple[SlurmJob, ...]
    associations: tuple[Association, ...] = ()
    qualities: tuple[Quality, ...] = ()
    cycles: tuple[int, ...] = ()  # seconds since 1970: when backfill began
    windows: tuple[Absence, ...] = ()
    switches: tuple[Switch, ...] = ()  # of topology.conf
    notes: tuple[str, ...] = ()
    keys: KeyCount
    linear: bool  # whether jobs get whole nodes
    folder: str = ""

    @property
    def conf(self) -> Conf:
        """The slurm.conf of the case."""
        return read_conf(Path(self.folder) / "slurm.conf")

    @property
    def settings(self) -> Settings:
        """The parameters as configured."""
        return Settings(self.conf)

    @property
    def begin(self) -> int:
        """Seconds since 1970 from which the simulation runs: the first submission."""
        return min((job.submitted for job in self.jobs), default=DAY)


def read_case(sources: Sources) -> tuple[Case, Conf]:
    """Make a case of the files of an operator.

    Raises:
        InputError: naming the file and the line that cannot be read.
    """
    zone = named_zone(sources.time_zone)
    conf, account = read_conf(sources.conf), Account()
    log = make_log(read_rows(sources.jobs, account), zone, account)
    nodes = make_nodes(conf, sources.nodes, cluster_hosts(log.jobs))
    partitions = make_partitions(conf, sources.partitions, nodes)
    associations = read_associations(sources.assoc) if sources.assoc else []
    qualities = read_qualities(sources.qos) if sources.qos else []
    notes = list(log.notes)
    if sources.shares:
        associations = merge_shares(associations, read_shares(sources.shares))
    jobs, more = _fitting(log.jobs, partitions)
    qualities, guessed = _with_guesses(qualities, jobs)
    windows = [*(read_node_events(sources.events, zone) if sources.events else ())]
    windows += read_reservations(sources.reservations, zone) if sources.reservations else []
    switches, strange = read_topology(conf, sources.topology, nodes)
    case = Case(
        version=VERSION,
        nodes=tuple(nodes),
        partitions=tuple(partitions),
        jobs=tuple(jobs),
        associations=tuple(associations),
        qualities=tuple(qualities),
        cycles=_cycles(sources, conf, zone),
        windows=tuple(windows),
        switches=tuple(switches),
        notes=(*notes, *more, *guessed, *strange),
        keys=with_touched(
            count_keys(conf, bool(switches)), Facts(conf, nodes, partitions, associations, qualities, jobs)
        ),
        linear=Settings(conf).linear,
    )
    return case, conf


def read_topology(conf: Conf, path: Path | None, nodes: Iterable[Node]) -> tuple[list[Switch], list[str]]:
    """The switches of a topology.conf, and notes; where topology/tree is configured, of the one next to slurm.conf.

    Raises:
        InputError: if it is none.
    """
    beside = Path(conf.path).parent / TOPOLOGY_FILE
    if path is None and "tree" in conf.get("TopologyPlugin").lower() and beside.is_file():
        path = beside
    return ([], []) if path is None else read_forest(path, {node.name for node in nodes})


def _cycles(sources: Sources, conf: Conf, zone: ZoneInfo | None) -> tuple[int, ...]:
    """When backfill began; a scheduler without backfill has no cycles."""
    if sources.cycles is None or Settings(conf).builtin:
        return ()
    return tuple(read_cycles(sources.cycles, zone))


def _fitting(jobs: Iterable[SlurmJob], partitions: Sequence[Partition]) -> tuple[list[SlurmJob], list[str]]:
    """The jobs whose partition there is, and notes on the others."""
    known = {partition.name for partition in partitions}
    default = next((p.name for p in partitions if p.default), partitions[0].name)
    kept, skipped = [], Counter[str]()
    for job in jobs:
        names = [name for name in (job.partition or default).split(",") if name in known]
        if not names:
            skipped[job.partition] += 1
            continue
        kept.append(msgspec.structs.replace(job, partition=",".join(names)))
    if not kept:
        raise InputError(f"no job of the log is in a partition of slurm.conf ({', '.join(sorted(known))})")
    return kept, [f"{count:,} jobs of the unknown partition {name} were skipped" for name, count in skipped.items()]


def _with_guesses(qualities: list[Quality], jobs: Sequence[SlurmJob]) -> tuple[list[Quality], list[str]]:
    """Qualities that nobody described, with the limit that the reasons in the log speak of."""
    known = {each.name for each in qualities}
    unknown = sorted({job.qos for job in jobs if not is_nothing(job.qos)} - known)
    notes = []
    for name in unknown:
        mine = [job for job in jobs if job.qos == name]
        held = {job.user for job in mine if job.reason == "QOSMaxJobsPerUserLimit"}
        limit = max((most_together(job for job in mine if job.user == user) for user in held), default=-1)
        qualities = [*qualities, Quality(name=name, priority=-1, user=Limits(jobs=limit))]
        if len(unknown) > 1 or limit > 0:
            says = f"; its users seem to run {limit} jobs at most" if limit > 0 else ""
            notes.append(f"QOS {name} is described nowhere: its priority is taken from the log{says}")
    return qualities, notes


# A case without the names of people: users, accounts, jobs and what they typed.


def hide_names(case: Case) -> Case:
    """The same case with ``user1``, ``account1``, ... in place of names; nothing that is simulated changes."""
    users, accounts, names = _Names("user"), _Names("account"), _Names("job")
    jobs = tuple(
        msgspec.structs.replace(
            job, user=users.of(job.user), account=accounts.of(job.account), singleton=names.of(job.singleton)
        )
        for job in case.jobs
    )
    associations = tuple(
        msgspec.structs.replace(
            each, user=users.of(each.user), account=accounts.of(each.account), parent=accounts.of(each.parent)
        )
        for each in case.associations
    )
    return msgspec.structs.replace(case, jobs=jobs, associations=associations)


class _Names:
    """Other names, in order of appearance."""

    def __init__(self, kind: str) -> None:
        self._kind, self._known = kind, {"": "", ROOT: ROOT}

    def of(self, name: str) -> str:
        """What stands for a name."""
        return self._known.setdefault(name, f"{self._kind}{len(self._known) - 1}")
