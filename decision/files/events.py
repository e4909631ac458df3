"""Batsim's external events: one JSON object per line, such as machines that leave and return, or power that does.

Those of Batsim 5 are all generic, with a text that it does not read. Where the text is the JSON of an event that Batsim
4 or we know, the event is that one.
"""

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from decision.files.accounting.read import recognise
from decision.files.accounting.records import Clock
from decision.files.accounting.tables import header_of, parquet_columns, parquet_table
from decision.model.demand import submit_times
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import nearest, parse_hosts
from decision.model.record import Floats
from decision.model.workload import FORWARDED, GENERIC, POWER_SUPPLY, MachineEvent, Workload

from .text import DECODE_ERRORS, compact, explain_text, explain_value, read_bytes

_MOST = 1 << 30  # hosts
_RANK = {"machine_available": 0, "machine_unavailable": 1}  # Batsim's order of events at one instant


class _Event(msgspec.Struct):
    type: str
    timestamp: Annotated[float, Meta(ge=0)]
    data: Any = None
    resources: Any = None
    hosts: Any = None
    forecast: Any = ()
    value: Any = None


_EVENT = msgspec.json.Decoder(_Event)


def load_events(
    path: str | os.PathLike[str], forward_unknown: bool = False, supply: bool = False
) -> list[MachineEvent]:
    """Read external events, sorted as Batsim does: by time, then available before unavailable before others.

    Args:
        path: a file with one JSON object per line; empty lines are skipped.
        forward_unknown: accept events of types that Batsim does not know (its ``--forward-unknown-events``).
        supply: accept the events that we know and Batsim only forwards. Of type ``power_supply``: `hosts` may compute
            from then on, and `forecast` (a list) are expected to, by step; of ``carbon_intensity`` and
            ``energy_price``: what a kWh emits (g) or costs from then on is `value`.

    Raises:
        InputError: if Batsim would refuse the file; one line with file, line and field.
    """
    return [event for _, event in load_placed_events([path], forward_unknown, supply)]


def load_placed_events(
    paths: Iterable[str | os.PathLike[str]], forward_unknown: bool = False, supply: bool = False
) -> list[tuple[str, MachineEvent]]:
    """The events of all files, in the order of `load_events`, each with its file and line; errors as there."""
    events = [
        (where := f"{path}, line {number}", _event(line, where, forward_unknown, supply))
        for path in paths
        for number, line in enumerate(read_bytes(path).splitlines(), 1)
        if line.strip()
    ]
    return sorted(events, key=lambda placed: (placed[1].timestamp, _RANK.get(placed[1].type, 2)))


def check_supply(events: Sequence[MachineEvent], nb_hosts: int, workloads: Sequence[Workload]) -> None:
    """Refuse a supply of more hosts than there are, and one that ends before the jobs have come.

    Raises:
        ConfigError: naming the number of hosts, or both times.
    """
    supply = [event for event in events if event.type == POWER_SUPPLY]
    if not supply:
        return
    most = max(supply, key=lambda event: event.hosts[0])
    if most.hosts[0] > nb_hosts:
        wrong = (
            f"{POWER_SUPPLY} at t={most.timestamp:.12g} s has {most.hosts[0]} hosts, and the platform has {nb_hosts}"
        )
        raise ConfigError(f"{wrong}; make the supply for this platform")
    last = max((float(submit_times(workload).max()) for workload in workloads if workload.jobs), default=0.0)
    end = max(event.timestamp for event in supply)
    if end < last:
        mistake = f"the supply of power ends at t={end:.12g} s, and the last job is submitted at t={last:.12g} s"
        raise ConfigError(f"{mistake}; make it longer (decision workload supply makes one for a workload)")


def _event(line: bytes, where: str, forward_unknown: bool, supply: bool) -> MachineEvent:
    fields = _decode(line, where)
    if fields.type == GENERIC and (meant := _meant(fields)):
        return _event(meant, where, forward_unknown, supply)
    hosts: tuple[int, ...] = ()
    known, value = supply or forward_unknown, 0.0
    if fields.type in _RANK:
        listed = fields.resources
        if not isinstance(listed, str) or not listed.strip():
            raise InputError(f"{where}, field 'resources': must be a host set like \"0-3 7\"; found {listed!r}")
        try:
            hosts = tuple(parse_hosts(listed))
        except ConfigError as error:
            raise InputError(f"{where}, field 'resources': {error}") from None
    elif fields.type == POWER_SUPPLY and known:
        hosts = read_forecast(fields.hosts, fields.forecast, where)
    elif fields.type in FORWARDED and known:
        value = fields.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{where}, field 'value': must be a finite number; found {value!r}")
    elif not forward_unknown and not (fields.type == GENERIC and isinstance(fields.data, str)):
        known_types = " or ".join(_RANK)
        reason = f"{fields.type!r} is unknown; use {known_types}, or forward unknown events"
        raise InputError(f"{where}, field 'type': {reason}")
    return MachineEvent(
        timestamp=fields.timestamp, type=fields.type, hosts=hosts, value=float(value), source=compact(line)
    )


def _meant(fields: _Event) -> bytes | None:
    """The event that a generic one's text is; None where that is not an event."""
    try:
        inner = msgspec.json.decode(fields.data) if isinstance(fields.data, str) else None
    except DECODE_ERRORS:
        return None
    if not isinstance(inner, dict) or inner.get("type") not in (*_RANK, *FORWARDED):
        return None
    return msgspec.json.encode({**inner, "timestamp": fields.timestamp})


def load_texts(path: str | os.PathLike[str], name: str) -> list[MachineEvent]:
    """Read external events as Batsim 5 takes them, by time: the source of each is its id and its text, as JSON.

    Args:
        path: a file with one generic event per line; empty lines are skipped.
        name: of the list, with which ids begin.

    Raises:
        InputError: if Batsim 5 would refuse the file; one line with file, line and field.
    """
    events: list[MachineEvent] = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if line:
            where = f"{path}, line {number}"
            fields = _decode(line, where)
            if fields.type != GENERIC:
                reason = f"must be {GENERIC!r} for Batsim 5; found {fields.type!r}"
                raise InputError(f"{where}, field 'type': {reason}")
            if not isinstance(fields.data, str):
                raise InputError(f"{where}, field 'data': must be a text; found {fields.data!r}")
            source = msgspec.json.encode({"id": f"{name}!{len(events)}", "data": fields.data})
            events.append(MachineEvent(timestamp=fields.timestamp, type=GENERIC, hosts=(), source=source))
    return sorted(events, key=lambda event: event.timestamp)


def converted_events(path: str | os.PathLike[str], to: str) -> bytes:
    """A file of external events in the form of Batsim 4 or 5 (`to`); lines that have it already stay as they are.

    Raises:
        InputError: if a line is not an event.
    """
    lines = []
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if line.strip():
            fields = _decode(line, f"{path}, line {number}")
            if to == "5" and fields.type != GENERIC:
                inner = {key: value for key, value in msgspec.json.decode(line).items() if key != "timestamp"}
                text = msgspec.json.encode(inner).decode()
                line = msgspec.json.encode({"type": GENERIC, "timestamp": fields.timestamp, "data": text})
            elif to == "4" and fields.type == GENERIC:
                line = _meant(fields) or line
            lines.append(line + b"\n")
    return b"".join(lines)


def _decode(line: bytes, where: str) -> _Event:
    try:
        return _EVENT.decode(line)
    except msgspec.ValidationError as error:
        raise InputError(explain_value(where, error, line)) from None
    except DECODE_ERRORS as error:
        raise InputError(f"{where}: not a JSON event: {explain_text(error, line)}") from None


def read_forecast(hosts: Any, forecast: Any, where: str) -> tuple[int, ...]:
    """How many hosts have power, and how many will by step, as a ``power_supply`` says.

    Raises:
        InputError: if it does not say it; `where` begins the line.
    """
    if not _is_number_of_hosts(hosts):
        raise InputError(f"{where}, field 'hosts': must be a whole number, 0 or more; found {hosts!r}")
    if not isinstance(forecast, list | tuple) or not all(map(_is_number_of_hosts, forecast)):
        raise InputError(f"{where}, field 'forecast': must be a list of whole numbers, 0 or more; found {forecast!r}")
    return (hosts, *forecast)


def _is_number_of_hosts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


# Series that people have, by time: power, irradiance, carbon intensity or prices, as CSV or Parquet.
#
# A row's value holds from its time until the next row's. Times are seconds, dates with or without a zone (without one
# they are UTC), or Parquet's; the simulation's 0 is the first of them, or one that is named. A table may have any step
# and any other columns. What it leaves out is named, and filled only where that is asked for.

_TIMES = ("time", "timestamp", "datetime", "date")  # columns, in lower case, that are the time where none is named
_MISSING = frozenset(("", "nan", "null", "none", "na", "n/a", "-"))  # in lower case
_LONGER = 1.5  # times the usual step: a gap


class SeriesLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Which columns of a table say what, and what becomes of its gaps."""

    time_column: str = ""  # "": time, timestamp, datetime or date
    column: str = ""  # with the values; "": by its usual name, or the only other one
    begin: str = ""  # the time at which the simulation begins, as the table has times; "": its first
    gaps: Literal["refuse", "hold", "linear"] = "refuse"  # hold: the value before lasts; linear: a line to the next


class Series(NamedTuple):
    """Values by time: ``value[i]`` from ``time[i]`` to ``time[i + 1]``, the last one for a usual step."""

    time: Floats  # (n,) seconds since the simulation's 0, ascending; the first is 0
    value: Floats  # (n,)
    end: float  # seconds: until when the table says something

    def averages(self, edges: Floats) -> Floats:
        """Means between neighbouring edges (n + 1,), seconds, ascending; what is last holds on."""
        times = np.append(self.time, max(float(edges[-1]), float(self.time[-1])))
        areas = np.append(0.0, np.cumsum(self.value * np.diff(times)))
        means: Floats = np.diff(np.interp(edges, times, areas)) / np.diff(edges)
        return means


def read_series(
    path: Path, layout: SeriesLayout, usual: Sequence[str] = (), *, until: float = 0.0, negative: bool = False
) -> Series:
    """The values of a table by time.

    Args:
        path: CSV (comma, semicolon, tab or bar) or Parquet (``pip install 'batsim-decision[traces]'``).
        layout: its columns, and what becomes of gaps.
        usual: names of the column with the values where the layout names none.
        until: seconds after the simulation's 0; a table that ends before has a gap there.
        negative: whether values may be below 0, as prices are.

    Raises:
        InputError: if the file cannot be read, or a row has no time or an impossible value; one line with its place.
        ConfigError: if a column is not there, or the table has gaps that are not to be filled.
    """
    packed = recognise(path) == "parquet"
    names = parquet_columns(path) if packed else header_of(path)[0]
    time_column = _find(path, names, layout.time_column, _TIMES, "time_column")
    others = [name for name in names if name != time_column]
    column = _find(path, others, layout.column, tuple(usual), "column")
    rows: Mapping[str, Sequence[str] | Floats]
    if packed:
        rows = parquet_table(path, (time_column, column), Clock())
    else:
        header, delimiter = header_of(path)
        at = [header.index(name) for name in (time_column, column)]
        text = read_bytes(path).decode("utf-8-sig", errors="replace").splitlines()
        lines = [row for row in csv.reader(text, delimiter=delimiter) if row][1:]
        for number, row in enumerate(lines):
            if len(row) <= max(at):
                raise InputError(f"{_place(path, number)}: has {len(row)} fields, and the header {len(header)}")
        rows = {name: [row[i].strip() for row in lines] for name, i in zip((time_column, column), at, strict=True)}
    time, value = _times(path, time_column, rows[time_column]), _values(path, column, rows[column], negative)
    if len(time) == 0:
        raise InputError(f"{path}: has no rows")
    late = np.flatnonzero(np.diff(time) <= 0)
    if len(late):
        raise InputError(
            f"{_place(path, int(late[0]) + 1)}: times must ascend, and this one is not after the one before"
        )
    zero = _times(path, "begin", [layout.begin])[0] if layout.begin else time[0]
    return _without_gaps(path, time - zero, value, layout.gaps, until)


def _find(path: Path, names: Sequence[str], wanted: str, usual: Sequence[str], field: str) -> str:
    """The column of this name, or by default that of a usual one, or the only one."""
    if wanted:
        if wanted not in names:
            raise ConfigError(
                f"{path}: there is no column {wanted!r}{nearest(wanted, names)} (there are {', '.join(names)})",
                field=field,
            )
        return wanted
    candidates = [name for each in usual for name in names if name.lower() == each][:1] or list(names)
    if len(candidates) != 1:
        raise ConfigError(f"{path}: has the columns {', '.join(names)}; say which one is meant", field=field)
    return candidates[0]


def _place(path: Path, row: int) -> str:
    return f"{path}, row {row + 1}"


def _times(path: Path, column: str, texts: Sequence[str] | Floats) -> Floats:
    """Seconds, (n,): as they are where all are numbers, else since 1970."""
    if isinstance(texts, np.ndarray):
        seconds, bad = texts, ~np.isfinite(texts)
    else:
        try:
            return np.array(texts, np.float64)
        except ValueError:
            seconds, bad = Clock().read(texts)
            bad |= np.isnan(seconds)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        wanted = "must be seconds, or dates like 2024-05-01T12:00:00+00:00"
        raise InputError(f"{_place(path, row)}, {column!r}: {wanted}; found {texts[row]!r}")
    return seconds


def _values(path: Path, column: str, texts: Sequence[str] | Floats, negative: bool) -> Floats:
    """Numbers, (n,), nan where there is none."""
    numbers = np.full(len(texts), math.nan)
    for row, text in enumerate(texts):
        try:
            numbers[row] = math.nan if str(text).lower() in _MISSING else float(text)
        except ValueError:
            raise InputError(f"{_place(path, row)}, {column!r}: must be a number; found {text!r}") from None
        if math.isinf(numbers[row]) or (numbers[row] < 0 and not negative):
            raise InputError(f"{_place(path, row)}, {column!r}: must be finite and not below 0; found {text}")
    return numbers


def _without_gaps(path: Path, time: Floats, value: Floats, gaps: str, until: float) -> Series:
    """The series from its 0 on, its gaps filled as asked for.

    A gap is where a value is missing, where rows are much further apart than is usual, and what is missing at the ends.
    """
    usual = float(np.median(np.diff(time))) if len(time) > 1 else math.inf
    known = np.flatnonzero(~np.isnan(value))
    if not len(known):
        raise InputError(f"{path}: has no value")
    time, value = time[known], value[known]
    end = float(time[-1]) + usual
    if end <= 0:
        raise ConfigError(f"{path}: the table is over before the simulation begins", field="begin")
    wide = np.flatnonzero(np.diff(time) > _LONGER * usual)
    begins, ends = time[wide] + usual, time[wide + 1]
    gaps_found = [(max(a, 0.0), b) for a, b in zip(begins.tolist(), ends.tolist(), strict=True) if b > 0 and a < until]
    gaps_found = [(0.0, float(time[0]))] * bool(time[0] > 0) + gaps_found + [(end, until)] * bool(end < until)
    if gaps_found and gaps == "refuse":
        first, last = gaps_found[0]
        more = f", and in {len(gaps_found) - 1} more gaps" if len(gaps_found) > 1 else ""
        mistake = f"{path}: has no value from {first:.12g} to {last:.12g} s after the simulation's begin{more}"
        raise ConfigError(f"{mistake}; fill them with hold (the value before lasts) or linear", field="gaps")
    if gaps == "linear" and len(wide):
        between = [np.arange(time[at] + usual, time[at + 1] - usual / 2, usual) for at in wide]
        filled = np.sort(np.concatenate([time, *between]))
        time, value = filled, np.interp(filled, time, value)
    first = max(int(np.searchsorted(time, 0.0, side="right")) - 1, 0)
    return Series(np.append(0.0, time[first + 1 :]), value[first:], end)
