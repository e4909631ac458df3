"""A case: a cluster's configuration and log, read once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from decision.formats.traces.account import Account
from decision.formats.traces.values import named_zone
from decision.model.dates import DAY
from decision.model.errors import InputError

from .accounts import Association, Limits, Quality, merge_shares, read_associations, read_qualities, read_shares
from .conf import Conf, read_conf
from .conf_keys import KeyCount, count_keys
from .cycles import read_cycles
from .job_log import cluster_hosts, make_log, most_together
from .jobs import SlurmJob
from .nodes import Absence, Node, Partition, make_nodes, make_partitions
from .parameters import Settings
from .records import read_rows
from .switches import Switch, read_forest
from .text import is_nothing
from .unsimulated import Facts, with_touched
from .windows import read_node_events, read_reservations

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
