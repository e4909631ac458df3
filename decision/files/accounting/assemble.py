"""Jobs of accounting records: parts joined, repeats left out, one unit of size, hosts counted, times from 0 s on."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from decision.files.profiles import INT32_MAX, delay_profiles
from decision.model.columns import JobColumns, Labelled, Texts, numbered
from decision.model.demand import Recorded, use_of
from decision.model.errors import ConfigError
from decision.model.record import Floats
from decision.model.trace import Field, Reading, Trace, says
from decision.model.workload import Workload, unloadable_part

from .records import NUMBERS, REASONS, TEXTS, Account, Records, RecordTable, node_names

# What a host of a workload is: a node, or a core where jobs share nodes.

UNITS = ("auto", "nodes", "cores", "gpus")
SHARED = 0.02  # of the jobs may share a node before nodes are no unit
_PAIRS = 4_000_000  # of a job and a node that are looked at together


class HostUnit(NamedTuple):
    """What a host of the workload is."""

    name: str
    reason: str
    changes: int | None  # jobs that have another size in the other unit
    size: Floats  # (n,) of each job


def choose_unit(table: RecordTable, unit: str) -> HostUnit:
    """The unit that was asked for, or the one that fits the jobs. Raises ConfigError."""
    if unit not in UNITS:
        raise ConfigError(f"unit {unit!r}: must be one of {', '.join(UNITS)}", field="unit")
    nodes, cores = table.numbers["nodes"], table.numbers["cores"]
    known = ~np.isnan(nodes) & ~np.isnan(cores)
    changes = int((nodes[known] != cores[known]).sum()) if known.any() else None
    if unit != "auto":
        size = table.numbers[unit]
        if len(size) and np.isnan(size).all():
            raise ConfigError(f"the log does not say how many {unit} its jobs had; choose another unit", field="unit")
        return HostUnit(unit, "as asked for", changes, size)
    if np.isnan(cores).all() and np.isnan(nodes).all() and not np.isnan(table.numbers["gpus"]).all():
        return HostUnit("gpus", "neither cores nor nodes are known", changes, table.numbers["gpus"])
    if np.isnan(cores).all():
        return HostUnit("nodes", "cores are not known", changes, nodes)
    if np.isnan(nodes).all():
        return HostUnit("cores", "nodes are not known", changes, cores)
    share = shared_nodes(table)
    if share is None:
        return HostUnit("cores", "which nodes a job had is not known, so they may have been shared", changes, cores)
    compared = "at most" if share <= SHARED else "more than"
    reason = f"{100 * share:.1f} % of the jobs shared a node at one time, {compared} {100 * SHARED:.0f} %"
    return HostUnit("nodes", reason, changes, nodes) if share <= SHARED else HostUnit("cores", reason, changes, cores)


def shared_nodes(table: RecordTable) -> float | None:
    """The share of the jobs that had a node together with another job at one time; None where nodes are not known."""
    lists = table.texts["node_list"]
    shares = sharing(lists, table.numbers["start"], table.numbers["run"])
    if shares is None:
        return None
    has_nodes = np.array([bool(node_names(text)) for text in lists.labels])
    return float(shares[has_nodes[lists.codes]].mean())


def sharing(lists: Labelled[str], start: Floats, run: Floats) -> np.ndarray | None:
    """Which jobs had a node together with another job at one time, (n,) bool; None where nodes are not known.

    Args:
        lists: (n,) each job's nodes, as a batch system writes them.
        start: (n,) seconds.
        run: (n,) seconds.
    """
    codes: dict[str, int] = {}
    of_list = [
        np.array([codes.setdefault(node, len(codes)) for node in node_names(text)], np.int32) for text in lists.labels
    ]
    counts = np.array([len(nodes) for nodes in of_list], np.int64)[lists.codes]
    if not counts.any():
        return None
    shares = np.zeros(len(start), bool)
    groups = max(1, int(counts.sum() // _PAIRS))
    for group in range(groups):
        chosen = of_list if groups == 1 else [nodes[nodes % groups == group] for nodes in of_list]
        _mark_shared(start, run, lists.codes, chosen, shares)
    return shares


def _mark_shared(starts: Floats, runs: Floats, codes: np.ndarray, of_list: Sequence[np.ndarray], shares: Any) -> None:
    """Mark the jobs that have one of these nodes while another job has it."""
    counts = np.array([len(nodes) for nodes in of_list])[codes]
    job = np.repeat(np.arange(len(codes)), counts)
    if not len(job):
        return
    node = np.concatenate([of_list[code] for code in codes.tolist()])
    start = starts[job]
    order = np.lexsort((start, node))
    node, job, start = node[order], job[order], start[order]
    end = start + runs[job]
    # the latest end so far on the node: ends are lifted by the node's number so that a running maximum starts again
    span = float(end.max() - start.min()) + 1.0
    lifted = end - start.min() + node * span
    before = np.concatenate([[-1.0], np.maximum.accumulate(lifted)[:-1]])
    overlaps = np.flatnonzero(before > start - start.min() + node * span)
    shares[job[overlaps]] = True
    holder = np.maximum.accumulate(np.where(lifted > before, np.arange(len(job)), 0))
    shares[job[holder[overlaps - 1]]] = True


def assemble(
    records: Records,
    account: Account,
    *,
    format: str,
    path: str,
    name: str = "w0",
    unit: str = "auto",
    machine: int | None = None,
    clock: str = "",
    last_counts: bool = False,
    cluster: str | None = None,
) -> Workload:
    """The workload of accounting records; the first submission is 0 s.

    Args:
        records: of jobs that ran.
        account: what became of the other records; grows.
        format: how the file is written.
        path: the file.
        name: the workload's name.
        unit: what a host is: one of `decision.files.accounting.assemble.UNITS`.
        machine: how many hosts there are, where that is known.
        clock: whose clock the times are.
        cluster: which one's jobs, of records of several clusters or servers.
        last_counts: whether of records with one id and start the last one counts, not the first.

    Raises:
        ConfigError: if a unit is not known of any job.
    """
    numbers = {column: records.number(column) for column in NUMBERS}
    texts = {column: records.text(column) for column in TEXTS}
    table = RecordTable(np.array(records.line, np.int64), records.id, numbers, texts)
    table = _of_cluster(table, account, cluster, path)
    table = _without_repeats(table, account, last_counts)
    table = _joined(_unresized(table, account), records, account)
    choice = choose_unit(table, unit)
    table = _sized(table, choice.size, account, machine)
    table = table.take(np.argsort(table.numbers["submit"], kind="stable"))
    number = table.numbers
    first = float(np.floor(number["submit"].min())) if table.id else 0.0
    ids = _ids(table.id, name)
    profile, profiles = delay_profiles(number["run"])
    jobs = JobColumns(
        id=ids,
        submit_time=number["submit"] - first,
        size=number["size"].astype(np.int32),
        walltime=np.where(number["walltime"] > 0, number["walltime"], np.inf),
        profile=profile,
        user=table.texts["user"],
    )
    hosts, source, notes = _hosts(table, choice.name, machine)
    _count_lost(table, account, choice.name)
    reading = Reading(
        format=format,
        records=account.records,
        joined=account.joined,
        unit=choice.name,
        unit_reason=choice.reason,
        unit_changes=choice.changes,
        hosts_from=source,
        requested=int((number["walltime"] > 0).sum()),
        lost=account.lost,
        clock=clock,
        misfit=account.misfit,
    )
    return Workload(
        name=name,
        jobs=jobs,
        profiles=profiles,
        nb_res=hosts,
        path=path,
        dropped={REASONS[reason]: entry.count for reason, entry in account.left_out.items()},
        dropped_lines={REASONS[reason]: tuple(entry.lines) for reason, entry in account.left_out.items()},
        unix_start=first if table.id else None,
        trace=_trace(table, ids),
        reading=reading,
        notes=notes,
    )


def _of_cluster(table: RecordTable, account: Account, cluster: str | None, path: str) -> RecordTable:
    """The records of one cluster or server: others have jobs of the same numbers, and hosts. Raises ConfigError."""
    column = table.texts["cluster"]
    names = sorted(set(column.used()) - {""})
    if cluster is not None and cluster not in names:
        there = ", ".join(names) or "the log names none"
        raise ConfigError(f"{path}: no record is of the cluster {cluster!r} (there are {there})", field="cluster")
    if len(names) < 2:
        return table
    if cluster is None:
        why = f"its records are of {len(names)} clusters, whose job numbers repeat: {', '.join(names[:10])}"
        raise ConfigError(f"{path}: {why}; convert one of them, by its name", field="cluster")
    mine = np.array([name == cluster for name in column.labels])[column.codes]
    account.leave_out("other_cluster", table.line[~mine].tolist())
    return table.take(np.flatnonzero(mine))


def _unresized(table: RecordTable, account: Account) -> RecordTable:
    """Jobs that changed their size while they ran, which have a record for each size: one job, of its largest size."""
    states = table.texts["state"]
    if not any(name.startswith("RESIZING") for name in states.used()):
        return table
    parts: dict[tuple[str, float], list[int]] = {}
    for row, key in enumerate(zip(table.id, table.numbers["submit"].tolist(), strict=True)):
        parts.setdefault(key, []).append(row)
    gone: list[int] = []
    for rows in parts.values():
        rows = sorted(rows, key=lambda row: float(table.numbers["start"][row]))
        if len(rows) < 2 or not any(states[row].startswith("RESIZING") for row in rows):
            continue
        for name in ("nodes", "cores", "gpus", "memory", "asked_memory", "walltime", "end"):
            table.numbers[name][rows[0]] = np.fmax.reduce(table.numbers[name][rows])
        for name in ("run", "suspended"):
            values = table.numbers[name][rows]
            table.numbers[name][rows[0]] = math.nan if np.isnan(values).all() else np.nansum(values)
        largest = max(rows, key=lambda row: float(np.nan_to_num(table.numbers["nodes"][row])))
        table.texts["node_list"] = _with(table.texts["node_list"], rows[0], table.texts["node_list"][largest])
        table.texts["state"] = _with(table.texts["state"], rows[0], states[rows[-1]])
        gone += rows[1:]
    account.joined += len(gone)
    account.lose("sizes that changed while a job ran", len({table.id[row] for row in gone}))
    return table.take(np.delete(np.arange(len(table.id)), gone)) if gone else table


def _without_repeats(table: RecordTable, account: Account, last_counts: bool) -> RecordTable:
    """One record of each id and start."""
    if len(set(table.id)) == len(table.id):
        return table
    seen: dict[tuple[str, float], int] = {}
    again: list[int] = []
    for row, key in enumerate(zip(table.id, table.numbers["start"].tolist(), strict=True)):
        if key in seen:
            again.append(seen[key] if last_counts else row)
        if last_counts or key not in seen:
            seen[key] = row
    if not again:
        return table
    account.leave_out("repeat", table.line[again].tolist())
    return table.take(np.delete(np.arange(len(table.id)), again))


def _joined(table: RecordTable, records: Records, account: Account) -> RecordTable:
    """Parts of one job that start together as one: sizes are added, the longest run and walltime count."""
    if not any(records.part_of):
        return table
    of = dict(zip(records.line, records.part_of, strict=True))
    groups: dict[tuple[str, float], list[int]] = {}
    for row, (line, start) in enumerate(zip(table.line.tolist(), table.numbers["start"].tolist(), strict=True)):
        if of[line]:
            groups.setdefault((of[line], start), []).append(row)
    gone: list[int] = []
    for (job, _), rows in groups.items():
        if len(rows) > 1:
            first = rows[0]
            for name in ("nodes", "cores", "gpus", "memory", "asked_memory"):
                values = table.numbers[name][rows]
                table.numbers[name][first] = math.nan if np.isnan(values).all() else np.nansum(values)
            for name in ("run", "end", "walltime", "suspended"):
                table.numbers[name][first] = np.fmax.reduce(table.numbers[name][rows])
            nodes = ",".join(table.texts["node_list"][row] for row in rows if table.texts["node_list"][row])
            table.texts["node_list"] = _with(table.texts["node_list"], first, nodes)
            table.id[first] = job
            gone += rows[1:]
    account.joined += len(gone)
    return table.take(np.delete(np.arange(len(table.id)), gone)) if gone else table


def _with(column: Labelled[str], row: int, text: str) -> Labelled[str]:
    codes = column.codes.astype(np.int64)
    codes[row] = len(column.labels)
    return Labelled([*column.labels, text], codes)


def _sized(table: RecordTable, size: Floats, account: Account, machine: int | None) -> RecordTable:
    """The jobs with a size in the unit, no larger than the machine where that is known."""
    with np.errstate(invalid="ignore"):
        good = (size >= 1) & (size <= INT32_MAX)
        large = good & (size > (machine or INT32_MAX))
    table.numbers["size"] = size
    if good.all() and not large.any():
        return table
    account.leave_out("no_size", table.line[~good].tolist())
    account.leave_out("too_large", table.line[large].tolist())
    return table.take(np.flatnonzero(good & ~large))


def _ids(texts: Sequence[str], name: str) -> Texts | Labelled[str]:
    """Full ids; an attempt after the first has its number at the end."""
    seen: dict[str, int] = {}
    unique = list(texts)
    for row, text in enumerate(texts if len(set(texts)) < len(texts) else ()):
        times = seen[text] = seen.get(text, 0) + 1
        unique[row] = text if times == 1 else f"{text}-{times}"
    if all(map(str.isdecimal, unique)) and max(map(len, unique), default=0) < 16:
        numbers = list(map(int, unique))
        if list(map(str, numbers)) == unique:
            return numbered(name, np.array(numbers, np.float64))
    loadable = [text.replace("!", "_") if not unloadable_part(text) else f"job{row}" for row, text in enumerate(unique)]
    return Labelled([f"{name}!{text}" for text in loadable], np.arange(len(loadable)))


def _hosts(table: RecordTable, unit: str, machine: int | None) -> tuple[int, str, tuple[str, ...]]:
    """How many hosts there are, where that is from, and what is to be said of it."""
    size = table.numbers["size"]
    if machine is not None:
        return machine, "given", ()
    if not table.id:
        return 1, "nothing", ()
    jobs = Recorded(np.arange(len(size)), table.numbers["submit"], table.numbers["start"], table.numbers["run"], size)
    peak = int(use_of(jobs).hosts.max())
    if unit == "nodes":
        nodes = len({node for text in table.texts["node_list"].used() for node in node_names(text)})
        if nodes >= size.max():
            return nodes, "distinct nodes", ()
    if np.isnan(table.numbers["wait"]).all():
        source = "peak of use if nothing waited"
        return (
            peak,
            source,
            (f"warning: no start is known; {peak:,} hosts are the {source} (give them with --machine)",),
        )
    return peak, "peak of recorded use", ()


def _count_lost(table: RecordTable, account: Account, unit: str) -> None:
    """Count the jobs of which a workload says less than the log."""
    number = table.numbers
    with np.errstate(invalid="ignore"):
        account.lose("memory", int((number["asked_memory"] > 0).sum()))
        account.lose("gpus", int((number["gpus"] > 0).sum()) if unit != "gpus" else 0)
        account.lose("suspended time", int((number["suspended"] > 0).sum()))
        account.lose("cores", int((number["cores"] > 0).sum()) if unit == "nodes" else 0)
        back = int((number["start"] < number["submit"]).sum())
    account.lose("dependencies", sum(map(bool, table.texts["dependency"])))
    for name, feature in (("partition", "partitions"), ("qos", "qualities of service")):
        if len(table.texts[name].used()) > 1:
            account.lose(feature, sum(map(bool, table.texts[name])))
    account.lose("starts before the submission, where a clock went back", back)


def _trace(table: RecordTable, ids: Sequence[str]) -> Trace:
    number, text = table.numbers, table.texts
    each = 1024.0 / number["size"]  # KB of a host, where records say MB in all
    recorded: dict[str, Field] = {
        "size": number["size"],
        "state": text["state"],
        "nodes": text["node_list"],
        "memory": np.round(number["memory"] * each),
        "gpus": number["gpus"],
        "cores": number["cores"],
        "suspended": number["suspended"],
    }
    request: dict[str, Field] = {
        "memory": np.round(number["asked_memory"] * each),
        "partition": text["partition"],
        "account": text["account"],
        "group": text["group"],
        "qos": text["qos"],
        "dependency": text["dependency"],
        "reason": text["reason"],
    }
    return Trace(
        id=ids,
        wait=np.maximum(number["wait"], 0.0),
        recorded={name: field for name, field in recorded.items() if says(field)},
        request={name: field for name, field in request.items() if says(field)},
    )


# Records with too many fields, because a text in them has the delimiter: the one way in which all fields fit.

Fits = Callable[[str], object]
Ways = dict[int, list[tuple[tuple[str, ...], tuple[str, ...]]]]  # by parts too many that are still to be placed

_DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d\d:?\d\d)?|Unknown|None|N/A|\d*"
_SPAN = r"(\d+-)?(\d+:){1,2}\d+(\.\d+)?|UNLIMITED|Partition_Limit|INVALID|"
_COUNT = r"-?\d+(\.\d+)?[KMGTP]?|"
_TRES = r"([\w./:-]+=[^,=|]*)(,[\w./:-]+=[^,=|]*)*|"
_NODES = r"None assigned|[\w.\[\],-]*"
_STATE = r"[A-Z][A-Z_]+( by \S+)?\+?"
_JOB = r"\d+([_+](\d+|\[[^\]|]*\]))?(\.\w+)?"
_AMOUNT = r"[\d.]+[KMGTP]?[Bb]?[nc]?|"
_CLIENT = r"(\S*/)?(sbatch|srun|salloc)\b"

_KINDS = {
    _DATE: "submit eligible start end",
    _SPAN: "elapsed timelimit suspended cputime totalcpu systemcpu usercpu avecpu mincpu reserved planned plannedcpu "
    "resvcpu",
    _COUNT: "elapsedraw timelimitraw nnodes ncpus alloccpus reqcpus allocnodes reqnodes uid gid priority cputimeraw "
    "ntasks dbindex associd wckeyid qosraw plannedcpuraw resvcpuraw jobidraw",
    _TRES: "reqtres alloctres tresusageinave tresusageinmax tresusageinmin tresusageintot tresusageoutave "
    "tresusageoutmax tresusageoutmin tresusageouttot",
    _NODES: "nodelist",
    _STATE: "state",
    _JOB: "jobid",
    _AMOUNT: "reqmem avevmsize averss maxrss maxvmsize",
    r"\d+:\d+|": "exitcode derivedexitcode",
    # it begins with a command's name, and Slurm's own commands are not behind a delimiter in another one's arguments
    rf"(?s){_CLIENT}.*|(?!.*\|{_CLIENT})([^\s|]+(\s.*)?)?": "submitline",
}
_OF_LINES = "submitline"  # a column whose text may have line ends; of two ways the one in which it is longer counts
_NAMES = frozenset(("user", "account", "group", "partition", "qos", "dependency"))
_NO_KIND = "?|?"  # fits columns of any text alone
_LISTS = frozenset(("flags", *(name for kind in (_TRES, _NODES) for name in _KINDS[kind].split())))
_FREE = frozenset(
    (
        *("jobname", "constraints", "submitline", "comment", "admincomment", "systemcomment", "workdir", "extra"),
        "container",
    )
)


class TraceField(NamedTuple):
    """A column: what fits it, whether a text in it may hold the delimiter, and whether ways may not differ in it."""

    name: str
    fits: Fits
    free: bool
    read: bool


def sacct_fields(names: Sequence[str], read: Mapping[str, object], delimiter: str = "|") -> list[TraceField]:
    """The columns of sacct by their names; those of no known kind fit any text without the delimiter.

    With a comma between columns, lists of resources and nodes have it, too.
    """
    lists = _LISTS if delimiter == "," else frozenset[str]()
    kinds = {name: re.compile(pattern).fullmatch for pattern, some in _KINDS.items() for name in some.split()}
    kinds["jobidraw"] = re.compile(_JOB).fullmatch
    return [
        TraceField(name, kinds.get(name, lambda text: True), name in _FREE | lists, name in read and name != _OF_LINES)
        for name in (name.lower() for name in names)
    ]


class Aligner:
    """Finds the one way to lay parts onto columns.

    Args:
        fields: the columns.
        delimiter: what is between them.
    """

    def __init__(self, fields: Sequence[TraceField], delimiter: str) -> None:
        self._fields, self._delimiter = fields, delimiter
        names = [field.name for field in fields]
        self._least = names.index(_OF_LINES) + 1 if _OF_LINES in names else len(names)
        self._typed = [not field.free and not field.fits(_NO_KIND) for field in fields]
        # the free columns around a name before the next columns of a known kind: a delimiter may be of either
        self._near: dict[int, list[int]] = {}
        for at, column in enumerate(fields):
            if column.read and column.name in _NAMES:
                after = takewhile(lambda other: not self._typed[other], range(at + 1, len(fields)))
                before = takewhile(lambda other: not self._typed[other], range(at - 1, -1, -1))
                self._near[at] = [other for other in (*after, *before) if fields[other].free]
        self._known: dict[int, set[str]] = {at: set() for at, near in self._near.items() if near}

    def learn(self, at: int, texts: set[str]) -> None:
        """Names that one of `learns` had in records that fit."""
        self._known[at] |= texts

    @property
    def learns(self) -> list[int]:
        """The columns whose names are to be learned."""
        return list(self._known)

    def begins(self, parts: Sequence[str]) -> bool:
        """Whether these can be the fields of a record's first line: some texts have several lines."""
        if len(parts) < self._least:
            return False
        reached = {0}  # parts that the columns so far may have taken
        for field in self._fields[: self._least - 1]:
            if field.free:
                reached = set(range(min(reached) + 1, len(parts) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(parts) and field.fits(parts[at])}
            if not reached:
                return False
        return True

    def place(self, parts: Sequence[str]) -> list[str] | None:
        """The fields of a record; None where there is no way, or more than one that is read differently."""
        extra = len(parts) - len(self._fields)
        if extra < 0:
            return None
        # at most two ways that differ in what is read: widths of columns from the last to the first
        ways: Ways = {extra: [((), ())]}
        for at in range(len(self._fields) - 1, -1, -1):
            ways = self._before(at, parts, ways)
        whole = ways.get(0, [])
        return list(reversed(whole[0][1])) if len(whole) == 1 else None

    def is_apart(self, at: int, fields: Sequence[str]) -> bool:
        """Whether no text next to the name in a column has the delimiter."""
        return not any(self._delimiter in fields[other] for other in self._near[at])

    def is_sure(self, fields: Sequence[str]) -> bool:
        """Whether names next to a text with a delimiter are such as other records have."""
        return all(fields[at] in known or self.is_apart(at, fields) for at, known in self._known.items())

    def _before(self, at: int, parts: Sequence[str], ways: Ways) -> Ways:
        """The ways with column `at` in front; each is what is read of it, and all its fields, the last first."""
        field = self._fields[at]
        longer: Ways = {}
        for left, some in ways.items():
            end = at + left + 1
            widths = range(left + 1 if field.free else 1)
            for wide in reversed(widths) if field.name == _OF_LINES else widths:
                text = self._delimiter.join(parts[end - wide - 1 : end])
                if not field.fits(text) or (not field.free and self._delimiter in text):
                    continue
                for read, fields in some:
                    new = ((*read, text) if field.read else read, (*fields, text))
                    others = longer.setdefault(left - wide, [])
                    if len(others) < 2 and all(new[0] != other[0] for other in others):
                        others.append(new)
        return longer
