"""Series that people have, by time: power, irradiance, carbon intensity or prices, as CSV or Parquet.

A row's value holds from its time until the next row's. Times are seconds, dates with or without a zone (without one
they are UTC), or Parquet's; the simulation's 0 is the first of them, or one that is named. A table may have any step
and any other columns. What it leaves out is named, and filled only where that is asked for.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from decision.model.errors import ConfigError, InputError
from decision.model.names import nearest
from decision.model.record import Floats

from .files import read_bytes
from .traces.recognise import recognise
from .traces.tables import header_of, parquet_columns, parquet_table
from .traces.values import Clock

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
    rows = parquet_table(path, (time_column, column), Clock()) if packed else _rows(path, time_column, column)
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
    found = [name for each in usual for name in names if name.lower() == each][:1] or list(names)
    if len(found) != 1:
        raise ConfigError(f"{path}: has the columns {', '.join(names)}; say which one is meant", field=field)
    return found[0]


def _rows(path: Path, *names: str) -> dict[str, list[str]]:
    """Those columns of a CSV file, as texts."""
    header, delimiter = header_of(path)
    at = [header.index(name) for name in names]
    text = read_bytes(path).decode("utf-8-sig", errors="replace").splitlines()
    lines = [row for row in csv.reader(text, delimiter=delimiter) if row][1:]
    for number, row in enumerate(lines):
        if len(row) <= max(at):
            raise InputError(f"{_place(path, number)}: has {len(row)} fields, and the header {len(header)}")
    return {name: [row[i].strip() for row in lines] for name, i in zip(names, at, strict=True)}


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
        what = "must be seconds, or dates like 2024-05-01T12:00:00+00:00"
        raise InputError(f"{_place(path, row)}, {column!r}: {what}; found {texts[row]!r}")
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
    found = [(max(a, 0.0), b) for a, b in zip(begins.tolist(), ends.tolist(), strict=True) if b > 0 and a < until]
    found = [(0.0, float(time[0]))] * bool(time[0] > 0) + found + [(end, until)] * bool(end < until)
    if found and gaps == "refuse":
        first, last = found[0]
        more = f", and in {len(found) - 1} more gaps" if len(found) > 1 else ""
        what = f"{path}: has no value from {first:.12g} to {last:.12g} s after the simulation's begin{more}"
        raise ConfigError(f"{what}; fill them with hold (the value before lasts) or linear", field="gaps")
    if gaps == "linear" and len(wide):
        between = [np.arange(time[at] + usual, time[at + 1] - usual / 2, usual) for at in wide]
        filled = np.sort(np.concatenate([time, *between]))
        time, value = filled, np.interp(filled, time, value)
    first = max(int(np.searchsorted(time, 0.0, side="right")) - 1, 0)
    return Series(np.append(0.0, time[first + 1 :]), value[first:], end)
