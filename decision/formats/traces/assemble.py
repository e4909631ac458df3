"""Jobs of accounting records: parts joined, repeats left out, one unit of size, hosts counted, times from 0 s on."""

import math
from collections.abc import Sequence

import numpy as np

from decision.formats.profiles import INT32_MAX, delay_profiles
from decision.model.column import Labelled, Texts, numbered
from decision.model.columns import JobColumns
from decision.model.record import Floats
from decision.model.trace import Field, Reading, Trace, says
from decision.model.usage import Recorded, use_of
from decision.model.workload import Workload, unloadable_part

from .account import REASONS, Account
from .host_units import HostUnit, choose_unit
from .records import NUMBERS, TEXTS, Records, RecordTable
from .values import node_names


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
) -> Workload:
    """The workload of accounting records; the first submission is 0 s.

    Args:
        records: of jobs that ran.
        account: what became of the other records; grows.
        format: how the file is written.
        path: the file.
        name: the workload's name.
        unit: what a host is: one of `decision.formats.traces.host_units.UNITS`.
        machine: how many hosts there are, where that is known.
        clock: whose clock the times are.
        last_counts: whether of records with one id and start the last one counts, not the first.

    Raises:
        ConfigError: if a unit is not known of any job.
    """
    numbers = {column: records.number(column) for column in NUMBERS}
    texts = {column: records.text(column) for column in TEXTS}
    table = RecordTable(np.array(records.line, np.int64), records.id, numbers, texts)
    table = _without_repeats(table, account, last_counts)
    table = _joined(table, records, account)
    choice = choose_unit(table, unit)
    table = _sized(table, choice.size, account)
    table = table.take(np.argsort(table.numbers["submit"], kind="stable"))
    return _workload(table, account, choice, format, path, name, machine, clock)


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


def _sized(table: RecordTable, size: Floats, account: Account) -> RecordTable:
    """The jobs with a size in the unit."""
    with np.errstate(invalid="ignore"):
        good = (size >= 1) & (size <= INT32_MAX)
    table.numbers["size"] = size
    if good.all():
        return table
    account.leave_out("no_size", table.line[~good].tolist())
    return table.take(np.flatnonzero(good))


def _workload(
    table: RecordTable,
    account: Account,
    unit: HostUnit,
    format: str,
    path: str,
    name: str,
    machine: int | None,
    clock: str,
) -> Workload:
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
        extra=None,
    )
    hosts, source, notes = _hosts(table, unit.name, machine)
    _count_lost(table, account, unit.name)
    back = int((number["start"] < number["submit"]).sum())
    account.lose("starts before the submission, where a clock went back", back)
    reading = Reading(
        format=format,
        records=account.records,
        joined=account.joined,
        unit=unit.name,
        unit_reason=unit.reason,
        unit_changes=unit.changes,
        hosts_from=source,
        requested=int((number["walltime"] > 0).sum()),
        lost=account.lost,
        clock=clock,
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
    account.lose("dependencies", sum(map(bool, table.texts["dependency"])))
    for name, what in (("partition", "partitions"), ("qos", "qualities of service")):
        if len(table.texts[name].used()) > 1:
            account.lose(what, sum(map(bool, table.texts[name])))


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
    }
    return Trace(
        id=ids,
        wait=np.maximum(number["wait"], 0.0),
        recorded={name: field for name, field in recorded.items() if says(field)},
        request={name: field for name, field in request.items() if says(field)},
    )
