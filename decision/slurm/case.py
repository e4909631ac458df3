"""A case: what is known of a cluster and its log, made of an operator's files once, and kept in a folder.

``CASE`` has ``case.json``, the ``slurm.conf`` as it was given (with what it includes), and ``platform.xml`` and
``workload.json`` for all other commands.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from decision.files.accounting.records import Account, named_zone
from decision.files.profiles import workload_lines
from decision.files.simgrid.write_platform import write_platform
from decision.files.text import json_bytes, read_bytes, write_files
from decision.model.dates import DAY
from decision.model.errors import InputError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Delay, Job, Workload

from .accounts import ROOT, Association, Limits, Quality, merge_shares, read_associations, read_qualities, read_shares
from .conf import Conf, Settings, read_conf, read_taken
from .jobs import SlurmJob, cluster_hosts, make_log, most_together, of_cluster
from .keys import USED_KEYS, Facts, KeyCount, count_keys, with_touched
from .nodes import (
    Absence,
    Node,
    Partition,
    make_nodes,
    make_partitions,
    read_node_events,
    read_reservations,
    read_states,
)
from .records import read_cycles, read_rows
from .switches import Forest, Switch, read_forest
from .text import is_nothing, read_hosts
from .versions import DEFAULTS, FIRST, read_version, version_text

VERSION = 2
CASE_FILE = "case.json"
TOPOLOGY_FILES = ("topology.yaml", "topology.conf")


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
    config: Path | None = None
    version: str = ""  # of Slurm
    time_zone: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True, dict=True):
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
    slurm: str = version_text(FIRST)  # its version
    taken: dict[str, str] = {}  # what slurmctld took for keys that slurm.conf leaves out
    folder: str = ""

    @cached_property
    def conf(self) -> Conf:
        """The slurm.conf in the case's folder, read once. Raises InputError."""
        return self.known_of(read_conf(Path(self.folder) / "slurm.conf"))

    def known_of(self, conf: Conf) -> Conf:
        """A slurm.conf of this cluster, with the version and what slurmctld took."""
        return msgspec.structs.replace(conf, version=read_version(self.slurm), taken=self.taken)

    @cached_property
    def settings(self) -> Settings:
        """The parameters as configured in it."""
        return Settings(self.conf)

    @cached_property
    def threads(self) -> int:
        """Cpus of which jobs get all or none: those of a core, or 1 where nodes differ, which round by themselves."""
        kinds = {node.threads for node in self.nodes}
        return kinds.pop() if len(kinds) == 1 else 1

    def units(self, node: Node) -> int:
        """How many of them a node has."""
        return node.cores * node.threads // self.threads

    @cached_property
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
    # the version as slurmctld says it, else as it was told, else the first one
    if sources.config is not None:
        version, taken = read_taken(sources.config)
        kept = {key: value for key, value in taken.items() if key in USED_KEYS and key not in conf.keys}
        conf = msgspec.structs.replace(conf, version=version, taken=kept)
    elif sources.version:
        conf = msgspec.structs.replace(conf, version=read_version(sources.version))
    rows, foreign = of_cluster(read_rows(sources.jobs, account), conf.get("ClusterName"))
    log = make_log(rows, zone, account)
    conf, refuted = _as_shared(conf, log.jobs)
    nodes = make_nodes(conf, sources.nodes, cluster_hosts(log.jobs))
    absences, strange_states = list[Absence](), list[str]()
    if sources.nodes is not None:
        nodes, absences, strange_states = read_states(sources.nodes, nodes, log.jobs, zone)
    partitions = make_partitions(conf, sources.partitions, nodes)
    associations = read_associations(sources.assoc) if sources.assoc else []
    qualities = read_qualities(sources.qos) if sources.qos else []
    notes = [*foreign, *log.notes, *strange_states, *refuted, *version_notes(conf, sources.config or sources.version)]
    if sources.shares:
        associations = merge_shares(associations, read_shares(sources.shares))
    # what is not in the configuration cannot be simulated; what is not described is guessed, and both are said
    jobs, more = _fitting(log.jobs, partitions)
    qualities, guessed = _with_guesses(qualities, jobs)
    windows = read_node_events(sources.events, zone) if sources.events else absences
    if sources.reservations:
        windows = [*windows, *read_reservations(sources.reservations, nodes, zone)]
    jobs, parted = _without_parts(jobs, windows)
    switches, strange, topologies = read_topology(conf, sources.topology, nodes)
    # a scheduler without backfill has no cycles
    builtin = Settings(conf).builtin
    cycles = read_cycles(sources.cycles, zone) if sources.cycles is not None and not builtin else []
    case = Case(
        version=VERSION,
        nodes=tuple(nodes),
        partitions=tuple(partitions),
        jobs=tuple(jobs),
        associations=tuple(associations),
        qualities=tuple(qualities),
        cycles=tuple(cycles),
        windows=tuple(windows),
        switches=tuple(switches),
        notes=(*notes, *more, *guessed, *strange, *parted),
        keys=with_touched(
            count_keys(conf, bool(switches)), Facts(conf, nodes, partitions, associations, qualities, jobs, topologies)
        ),
        linear=Settings(conf).linear,
        slurm=version_text(conf.version),
        taken=dict(conf.taken),
    )
    return case, conf


def _without_parts(jobs: Iterable[SlurmJob], windows: Iterable[Absence]) -> tuple[list[SlurmJob], list[str]]:
    """The jobs, those of reservations of some cores outside of these, and notes on such reservations."""
    parts = {window.reservation: window for window in windows if window.cores}
    inside = Counter(job.reservation for job in jobs if job.reservation in parts)
    notes = [
        f"reservation {name} has {window.cores} cores of {window.nodes[0]}: its {inside[name]:,} jobs run outside of it"
        for name, window in parts.items()
        if inside[name]
    ]
    kept = [msgspec.structs.replace(job, reservation="") if job.reservation in parts else job for job in jobs]
    return kept, notes


_APART = 5  # seconds that two jobs are on a node together before they share it: sacct's dates are rounded


def _as_shared(conf: Conf, jobs: Iterable[SlurmJob]) -> tuple[Conf, list[str]]:
    """The configuration, with select/cons_tres where it was left out and the log shows that jobs share nodes.

    A note says so, also where it says select/linear itself.
    """
    if not Settings(conf).linear:
        return conf, []
    ends: dict[str, float] = {}
    shared = 0
    for job in sorted((job for job in jobs if job.started), key=lambda job: job.start):
        hosts = read_hosts(job.hosts)
        shared += any(ends.get(host, 0.0) > job.start + _APART for host in hosts)
        for host in hosts:
            ends[host] = max(ends.get(host, 0.0), job.start + job.runtime)
    if not shared:
        return conf, []
    seen = f"{shared:,} jobs of the log ran on nodes that other jobs had, which SelectType=select/linear does not do"
    if conf.get("SelectType"):
        return conf, [f"{seen}: is slurm.conf that of this cluster?"]
    since, select = DEFAULTS["selecttype"]
    seen = f"{seen}: {select} is taken, the default since {version_text(since)}"
    if conf.version == FIRST:
        return msgspec.structs.replace(conf, version=since), [seen]
    return msgspec.structs.replace(conf, taken={**conf.taken, "selecttype": select}), [seen]


def version_notes(conf: Conf, is_known: object) -> list[str]:
    """Whose rules and defaults are taken, where nobody says the version."""
    if is_known:
        return []
    chosen = [f"{name}={Settings(conf).text(name)}" for name in ("SelectType", "PriorityType") if not conf.get(name)]
    defaults = f", and of its defaults {' and '.join(chosen)}" if chosen else ""
    return [
        f"the version of Slurm is not known: the rules of {version_text(conf.version)} are taken{defaults}; give "
        "--config (what scontrol show config prints) or --slurm-version"
    ]


def read_topology(conf: Conf, path: Path | None, nodes: Iterable[Node]) -> Forest:
    """The switches of a topology.conf, and notes; where topology/tree is configured, of the one next to slurm.conf.

    Raises:
        InputError: if it is none.
    """
    # slurmctld reads them from the same folder, without being told; topology.yaml goes before
    folder, tree = Path(conf.path).parent, "tree" in conf.get("TopologyPlugin").lower()
    found = [folder / name for name in TOPOLOGY_FILES if (folder / name).is_file()]
    if path is None and found and (tree or found[0].name != TOPOLOGY_FILES[-1]):
        path = found[0]
    return Forest([], [], {}) if path is None else read_forest(path, {node.name for node in nodes})


def _fitting(jobs: Iterable[SlurmJob], partitions: Sequence[Partition]) -> tuple[list[SlurmJob], list[str]]:
    """The jobs whose partition there is, and notes on the others."""
    known = {partition.name for partition in partitions}
    # slurm.conf(5), Default=YES; where none is, a job must name one, and this does not matter
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
    unknown = sorted({name for job in jobs for name in job.qos.split(",") if not is_nothing(name)} - known)
    notes = []
    for name in unknown:
        mine = [job for job in jobs if job.qos == name]
        # only this reason shows a limit that can be counted: as many as ever ran together of a user whom it held
        held = {job.user for job in mine if job.reason == "QOSMaxJobsPerUserLimit"}
        limit = max((most_together(job for job in mine if job.user == user) for user in held), default=-1)
        qualities = [*qualities, Quality(name=name, priority=-1, user=Limits(jobs=limit))]
        if len(unknown) > 1 or limit > 0:
            says = f"; its users seem to run {limit} jobs at most" if limit > 0 else ""
            notes.append(f"QOS {name} is described nowhere: its priority is taken from the log{says}")
    return qualities, notes


def write_case(case: Case, conf: Conf, folder: Path) -> None:
    """Write a case to a folder, all of its files or none.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents = {folder / CASE_FILE: [msgspec.json.format(json_bytes(case), indent=1)]}
    contents[folder / "workload.json"] = list(workload_lines(case_workload(case)))
    first, *others = conf.files
    contents[folder / "slurm.conf"] = [Path(first).read_bytes()]
    contents |= {folder / Path(name).name: [Path(name).read_bytes()] for name in others}
    write_files(contents)
    write_platform(folder / "platform.xml", case_platform(case))


def load_case(folder: Path) -> Case:
    """A case from its folder.

    Raises:
        InputError: if it is none, or made by another version.
    """
    path = folder / CASE_FILE
    if not path.is_file():
        raise InputError(f"{folder}: there is no {CASE_FILE} in it; make it with decision slurm read")
    try:
        case = msgspec.json.decode(read_bytes(path), type=Case)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a case of this version ({error}); make it again: decision slurm read") from None
    if case.version != VERSION:
        raise InputError(f"{path}: version {case.version}, not {VERSION}; make it again: decision slurm read")
    # a file that was edited by hand would fail deep in the arrays
    asked = {name for job in case.jobs for name in job.partition.split(",")} - {p.name for p in case.partitions}
    listed = {name for partition in case.partitions for name in partition.nodes} - {node.name for node in case.nodes}
    if unknown := asked | listed:
        raise InputError(f"{path}: it has no partition or node {min(unknown)!r}; make it again: decision slurm read")
    return msgspec.structs.replace(case, folder=str(folder))


# A case as the engine takes it: a platform of equal hosts, and a workload with the recorded runtimes.

# a platform of Batsim has a speed
_HOST_SPEED = 1e9  # flop/s; jobs take seconds, so it decides nothing


def engine_hosts(case: Case) -> list[str]:
    """The node of each host of the engine: hosts are the nodes themselves, or their cores where jobs share nodes."""
    return [node.name for node in case.nodes for _ in range(1 if case.linear else case.units(node))]


def case_platform(case: Case) -> Platform:
    """The platform: a host for each node, or for each core of it where jobs share nodes.

    Names sort as their numbers, because Batsim numbers hosts by name.
    """
    nodes = engine_hosts(case)
    # leading zeros, for the order by name
    width = len(str(len(nodes)))
    hosts = (
        Host(
            id=number,
            name=f"h{number:0{width}d}-{node}",
            pstates=(PowerState(speed=_HOST_SPEED),),
            properties={"server": node},
        )
        for number, node in enumerate(nodes)
    )
    return Platform(hosts=tuple(hosts))


def engine_size(case: Case, job: SlurmJob) -> int:
    """The hosts of the engine that a job takes: its nodes, or its cores where jobs share nodes."""
    if case.linear:
        return max(job.nodes, len(read_hosts(job.hosts)))
    return max(1, -(-max(job.cpus, job.cpus_had) // case.threads))


def limit_of(case: Case, job: SlurmJob) -> float:
    """The seconds that a job may run in the first of its partitions, inf where nothing limits it."""
    first = job.partition.split(",")[0]
    return next((each.limit_of(job) for each in case.partitions if each.name == first), job.limit)


def case_workload(case: Case, longest: float = math.inf) -> Workload:
    """The jobs as a workload: submission from the first one on, the recorded run time, hosts as the platform has.

    Jobs that were cancelled while they waited are left out. `longest` is the walltime of those without any limit,
    seconds.
    """
    begin, most = case.begin, len(engine_hosts(case))
    profiles: dict[str, Delay] = {}
    jobs = []
    for job in case.jobs:
        if not job.started and job.state not in ("PENDING", "RUNNING"):
            continue
        # a job that still waited when the log was made runs to its limit
        seconds = max(1.0, job.runtime if job.started else min(limit_of(case, job), 1e7))
        name = f"{seconds:g}s"
        profiles[name] = Delay(seconds)
        jobs.append(
            Job(
                id=f"slurm!{job.id}",
                submit_time=float(job.submitted - begin),
                size=min(engine_size(case, job), most),
                walltime=max(min(limit_of(case, job), longest), seconds),
                profile=name,
                user=job.user,
            )
        )
    return Workload(name="slurm", jobs=jobs, profiles=profiles, nb_res=most, unix_start=float(begin))


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
