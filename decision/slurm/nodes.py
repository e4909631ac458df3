"""Nodes and partitions: from slurm.conf, and from ``scontrol show node`` and ``show partition`` where given."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from decision.model.errors import InputError

from .accounts import read_table
from .conf import Conf, read_text
from .jobs import SlurmJob
from .text import (
    NEVER,
    count_gres,
    in_plain_words,
    is_endless,
    is_nothing,
    read_date,
    read_hosts,
    read_memory,
    read_minutes,
    split_list,
    write_date,
)

_FIELD = re.compile(r"(?:^|(?<=\s))([A-Za-z][\w/]*)=(.*?)(?=\s+[A-Za-z][\w/]*=|\s*$)", re.MULTILINE)
_WHOLE = ""  # the key of all that is shown of a thing
_HEAVIEST = 2**32 - 1  # Weight, as in Slurm


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node, with what jobs can have of it."""

    name: str
    cores: int = 1
    threads: int = 1  # per core
    memory: float = 1.0  # megabytes
    gres: Mapping[str, int] = {}  # by name, and by name and type: gpu has those of all types, gpu:v100 is one
    features: tuple[str, ...] = ()
    weight: int = 1
    down: bool = False
    line: int = 0  # NodeName lines of slurm.conf before its own


# slurm.conf(5), PARTITION CONFIGURATION; defaults are those of 22.05.
class Partition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A partition. What is 0 or inf is not limited."""

    name: str
    nodes: tuple[str, ...]
    default: bool = False
    tier: int = 1
    job_factor: int = 1
    max_time: float = math.inf  # seconds
    default_time: float = math.inf  # seconds
    max_nodes: int = 0
    min_nodes: int = 0
    max_cpus_per_node: int = 0
    up: bool = True
    exclusive: bool = False  # OverSubscribe=EXCLUSIVE
    topology: str = ""  # of a topology.yaml
    own_user: bool = False  # Exclusive=USER: jobs share nodes with those of their user only
    preempt_mode: str = ""  # "": the cluster's
    memory_per_cpu: float = 0.0  # megabytes, by default
    memory_per_node: float = 0.0
    qos: str = ""
    lln: bool = False  # the least loaded nodes first
    grace: float = 0.0  # seconds

    def limit_of(self, job: SlurmJob) -> float:
        """The seconds that a job may run, inf where nothing limits it."""
        # slurm.conf(5), DefaultTime, else MaxTime of the partition
        limit = min(job.limit, self.default_time if math.isinf(job.limit) else math.inf)
        return limit if math.isfinite(limit) else self.max_time

    def takes(self, limit: float, nodes: int) -> bool:
        """Whether its limits let a job of so many seconds on so many nodes run."""
        fits = not math.isfinite(limit) or limit <= self.max_time
        return self.up and fits and nodes >= self.min_nodes and (not self.max_nodes or nodes <= self.max_nodes)


class Absence(msgspec.Struct, frozen=True):
    """A time in which nodes are not there for jobs, but for those of a reservation."""

    nodes: tuple[str, ...]
    begin: int  # seconds since 1970
    end: int
    reservation: str = ""
    cores: int = 0  # of each node that are not there; 0: the node


class States(NamedTuple):
    """What states of one moment say of nodes in the time of a log."""

    nodes: list[Node]
    absences: list[Absence]
    notes: list[str]


def read_records(path: Path, first: str) -> list[dict[str, str]]:
    """What ``scontrol show`` prints, with or without ``-o``: one mapping for each thing, keys in lower case.

    Args:
        path: the file.
        first: the key that begins a thing: NodeName.

    Raises:
        InputError: if there is none.
    """
    parts = re.split(rf"(?m)(?=^\s*{first}=)", read_text(path))
    found = [
        {_WHOLE: part} | {key.lower(): value.strip() for key, value in _FIELD.findall(part)}
        for part in parts
        if f"{first}=" in part
    ]
    if not found:
        raise InputError(f"{path}, line 1: there is no {first}=; make it with: scontrol show {first.lower()[:-4]}")
    return found


def make_nodes(conf: Conf, shown: Path | None, known: Iterable[str]) -> list[Node]:
    """All nodes, in the order of slurm.conf, down where that says so; what states say is `read_states`'s.

    Args:
        conf: whose NodeName lines are read, and DownNodes.
        shown: what ``scontrol show node`` prints, which counts where both say something.
        known: hosts that jobs of the log had.

    Raises:
        InputError: if there are none, or a number cannot be read.
    """
    records: dict[str, dict[str, str]] = {}
    lines: dict[str, int] = {}
    # order counts: Slurm takes nodes by their place in slurm.conf
    for number, entry in enumerate(conf.nodes):
        for name in read_hosts(entry.name):
            records.setdefault(name, {}).update(entry.pairs)
            lines[name] = number
    for entry in conf.down:
        for name in read_hosts(entry.name):
            if name not in records:
                raise InputError(f"{entry.line.place}: DownNodes has {name}, which no NodeName line has")
            # slurm.conf(5), DOWN NODE CONFIGURATION: DOWN where it does not say a state
            records[name]["state"] = entry.pairs.get("state", "DOWN")
    for fields in read_records(shown, "NodeName") if shown is not None else ():
        # by the keys of slurm.conf; the state is that of one moment: `read_states`
        pairs = {k: v for k, v in fields.items() if k in ("sockets", "corespersocket", "threadspercore", "realmemory")}
        pairs |= {"cpus": fields.get("cputot", fields.get("cpuefctv", "1")), "state": ""}
        for key, source in (("feature", "activefeatures"), ("gres", "gres"), ("weight", "weight")):
            if source in fields:
                pairs[key] = "" if is_nothing(fields[source]) else fields[source]
        records.setdefault(fields["nodename"], {}).update(pairs)
    if not records:
        records = {name: {} for name in known}
    if not records:
        raise InputError(f"{conf.path}: there is no NodeName line; add the file with them", field="nodes")
    made = (_make_node(name, pairs, conf) for name, pairs in records.items())
    return [msgspec.structs.replace(node, line=lines.get(node.name, 0)) for node in made]


def _make_node(name: str, pairs: Mapping[str, str], conf: Conf) -> Node:
    try:
        sockets = int(pairs.get("boards", "1")) * int(pairs.get("sockets", pairs.get("socketsperboard", "1")))
        cores = sockets * int(pairs.get("corespersocket", "1"))
        cpus = int(pairs.get("cpus", pairs.get("procs", "0"))) or cores * int(pairs.get("threadspercore", "1"))
        # slurm.conf(5), CPUs: without Sockets and CoresPerSocket each cpu counts as a core
        if cores > cpus or not {"sockets", "socketsperboard", "corespersocket", "boards"} & pairs.keys():
            cores = cpus
        gres = [part for part in split_list(pairs.get("gres", "")) if part]
        weight = int(pairs.get("weight", "1"))
        if abs(weight) > _HEAVIEST:
            raise ValueError(f"the weight {weight} is more than {_HEAVIEST:,}")
        return Node(
            name=name,
            cores=cores,
            threads=max(1, cpus // cores),
            memory=read_memory(pairs.get("realmemory", "1")),
            gres=count_gres(gres),
            features=tuple(split_list(pairs.get("feature", pairs.get("features", "")))),
            weight=weight,
            down=is_away(pairs.get("state", "")),
        )
    except ValueError as error:
        place = next((entry.line.place for entry in conf.nodes if name in read_hosts(entry.name)), conf.path)
        raise InputError(f"{place}: node {name}: {in_plain_words(error)}; check its numbers") from None


def is_away(state: str) -> bool:
    """Whether a node in such a state takes no new job; one that sleeps (POWERED_DOWN) is woken for it."""
    words = re.split(r"[+*~#!%$@^\- ]+", state.upper())
    return any(word in _AWAY or word.startswith(("DRAIN", "FAIL")) for word in words)


def read_states(path: Path, nodes: Sequence[Node], jobs: Iterable[SlurmJob], zone: ZoneInfo | None) -> States:
    """What the states of ``scontrol show node`` say of the time of a log: they are of one moment, and not its history.

    A node is away from the date on that its Reason has, and one without a date where no job of the log ran on it.

    Args:
        path: the file.
        nodes: the cluster's.
        jobs: those of the log.
        zone: of dates.

    Raises:
        InputError: if the file has no node.
    """
    last: dict[str, int] = {}
    for job in jobs:
        for name in read_hosts(job.hosts) if job.started else ():
            last[name] = max(last.get(name, 0), job.start)
    away, absences, there = set[str](), [], dict[str, str]()
    for fields in read_records(path, "NodeName"):
        name = fields["nodename"]
        if not is_away(fields.get("state", "")):
            continue
        # the date of "disk [root@2024-03-20T10:00:00]"
        found = re.search(r"@([^\]\s]+)\]\s*$", fields.get("reason", ""))
        try:
            since = read_date(found[1], zone) if found else NEVER
        except ValueError:
            since = NEVER
        if since > last.get(name, 0):
            absences.append(Absence((name,), since, _FAR))
        if name in last and since != NEVER:
            there[name] = f"away since {write_date(since)}"
        elif name in last:
            there[name] = "jobs ran on it, and no date says since when it is away"
        elif since == NEVER:
            away.add(name)
    notes = [f"{name} is {why}: it counts as there when jobs of the log ran on it" for name, why in there.items()]
    if len(notes) > _NAMED:
        notes = [*notes[:_NAMED], f"{len(notes) - _NAMED} more nodes are away now and had jobs in the log"]
    return States(
        [msgspec.structs.replace(node, down=node.down or node.name in away) for node in nodes], absences, notes
    )


def make_partitions(conf: Conf, shown: Path | None, nodes: Sequence[Node]) -> list[Partition]:
    """All partitions, in the order of slurm.conf; as `make_nodes`."""
    records: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for entry in conf.partitions:
        for name in read_hosts(entry.name):
            records.setdefault(name, {}).update(entry.pairs)
            places[name] = entry.line.place
    if shown is not None:
        for fields in read_records(shown, "PartitionName"):
            name = fields["partitionname"]
            records[name] = {**records.get(name, {}), **{k: v for k, v in fields.items() if not is_nothing(v)}}
            places.setdefault(name, str(shown))
    if not records:
        raise InputError(f"{conf.path}: there is no PartitionName line; add the file with them", field="partitions")
    every = tuple(node.name for node in nodes)
    # of each NodeSet the nodes that it lists, and those that have its feature
    sets: dict[str, list[str]] = {}
    for entry in conf.sets:
        wanted = set(split_list(entry.pairs.get("feature", "")))
        try:
            listed = read_hosts(entry.pairs.get("nodes", ""))
        except ValueError as error:
            raise InputError(f"{entry.line.place}: NodeSet {entry.name}: {error} is not a list of nodes") from None
        everything = every if [name.upper() for name in listed] == ["ALL"] else listed
        names = [*everything, *(node.name for node in nodes if wanted & set(node.features))]
        for name in read_hosts(entry.name):
            sets.setdefault(name, []).extend(names)
    return [_make_partition(name, pairs, every, places[name], sets) for name, pairs in records.items()]


def _make_partition(
    name: str, pairs: Mapping[str, str], every: tuple[str, ...], place: str, sets: Mapping[str, Sequence[str]]
) -> Partition:
    try:
        listed = pairs.get("nodes", "ALL")
        members = (
            set(every)
            if listed.upper() == "ALL"
            else {each for name in read_hosts(listed) for each in sets.get(name, (name,))}
        )
        if missing := members - set(every):
            raise InputError(f"{place}: partition {name} has {min(missing)}, which no NodeName or NodeSet line has")
        # the former key Priority set what PriorityTier and PriorityJobFactor set now
        priority = pairs.get("priority", "1")
        return Partition(
            name=name,
            nodes=tuple(node for node in every if node in members),
            default=pairs.get("default", "NO").upper() == "YES",
            tier=int(pairs.get("prioritytier", priority)),
            job_factor=int(pairs.get("priorityjobfactor", priority)),
            max_time=read_minutes(pairs.get("maxtime", "UNLIMITED")),
            default_time=read_minutes(_known(pairs.get("defaulttime", ""), "UNLIMITED")),
            max_nodes=_limit(pairs.get("maxnodes", "")),
            min_nodes=_limit(pairs.get("minnodes", "")),
            max_cpus_per_node=_limit(pairs.get("maxcpuspernode", "")),
            up=pairs.get("state", "UP").upper() in ("UP", "DRAIN"),
            # since 26.05 Exclusive=NODE says what OverSubscribe=EXCLUSIVE says
            exclusive=pairs.get("oversubscribe", pairs.get("shared", "NO")).upper() == "EXCLUSIVE"
            or pairs.get("exclusive", "NO").upper() in ("NODE", "YES"),
            topology=_known(pairs.get("topology", ""), ""),
            own_user=pairs.get("exclusive", "NO").upper() == "USER"
            or pairs.get("exclusiveuser", "NO").upper() == "YES",
            preempt_mode=_known(pairs.get("preemptmode", ""), ""),
            memory_per_cpu=default_memory(pairs.get("defmempercpu", "")),
            memory_per_node=default_memory(pairs.get("defmempernode", "")),
            qos=_known(pairs.get("qos", ""), ""),
            lln=pairs.get("lln", "NO").upper() == "YES",
            grace=float(_limit(pairs.get("gracetime", ""))),
        )
    except ValueError as error:
        raise InputError(f"{place}: partition {name}: {in_plain_words(error)}; check its values") from None


def _known(text: str, default: str) -> str:
    return default if is_nothing(text) else text


def _limit(text: str) -> int:
    return 0 if is_nothing(text) or is_endless(text) else int(float(text))


def default_memory(text: str) -> float:
    """Megabytes of DefMemPerCPU and the like; 0 where there is no default. Raises ValueError."""
    return 0.0 if is_nothing(text) or is_endless(text) else read_memory(text)


# Times in which nodes are not there: down (``sacctmgr show event -P``) or reserved (``scontrol show res``).

_FAR = 1 << 40  # seconds since 1970: a node that is not back yet
# states in which a node takes no new job
_AWAY = ("DOWN", "DRAIN", "FAIL", "MAINT", "REBOOT", "NOT_RESPONDING", "FUTURE", "ERROR")
_NAMED = 5  # nodes that notes name


def read_node_events(path: Path, zone: ZoneInfo | None = None) -> list[Absence]:
    """What ``sacctmgr -P show event`` prints of nodes that could run no job. Raises InputError."""
    found = []
    for number, row in enumerate(read_table(path, "NodeName"), 2):
        state = row.get("state", "").upper()
        if not row["nodename"] or (state and not is_away(state)):
            continue
        try:
            begin = read_date(row.get("timestart", row.get("start", "")), zone)
            end = read_date(row.get("timeend", row.get("end", "")), zone)
            nodes = tuple(read_hosts(row["nodename"]))
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {in_plain_words(error)}; is it what sacctmgr -P show event prints?"
            ) from None
        found.append(Absence(nodes, begin, _FAR if end == NEVER else end))
    return found


def read_reservations(path: Path, nodes: Iterable[Node], zone: ZoneInfo | None = None) -> list[Absence]:
    """What ``scontrol show res`` prints: reservations of nodes, and of some of their cores.

    Raises:
        InputError: if it is not that.
    """
    if read_text(path).strip().lower().startswith("no reservations"):
        return []
    cores_of = {node.name: node.cores for node in nodes}
    found = []
    for fields in read_records(path, "ReservationName"):
        name = fields["reservationname"]
        try:
            begin, end = (read_date(fields.get(key, ""), zone) for key in ("starttime", "endtime"))
            end = _FAR if end == NEVER else end
            listed = tuple(read_hosts(fields.get("nodes", "")))
            # of some nodes it has some cores only
            ids = re.findall(r"NodeName=(\S+)\s+CoreIDs=(\S+)", fields[_WHOLE])
            parts = {node: len(read_hosts(f"[{cores}]")) for name, cores in ids for node in read_hosts(name)}
            count, there = fields.get("corecnt", ""), sum(cores_of.get(node, 0) for node in listed)
            if not parts and count.isdigit() and 0 < int(count) < there:
                # which cores are not said: as many of each node
                parts = {node: -(-int(count) // len(listed)) for node in listed}
            parts = {node: cores for node, cores in parts.items() if cores < cores_of.get(node, 0)}
        except ValueError as error:
            raise InputError(
                f"{path}: reservation {name}: {in_plain_words(error)} is neither a date nor a list of nodes"
            ) from None
        if whole := tuple(node for node in listed if node not in parts):
            found.append(Absence(whole, begin, end, name))
        found += [Absence((node,), begin, end, name, cores) for node, cores in parts.items() if cores]
    return found
