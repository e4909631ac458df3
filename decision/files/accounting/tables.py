"""Tables of jobs, as CSV or Parquet: those of known data sets by their columns, others by a user's mapping."""

import csv
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import msgspec
import numpy as np

from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError, how_to_install
from decision.model.record import Floats

from .records import Account, Clock, Columns, line_parts, span_of, usable

# Which columns of a table of jobs say what: those of known data sets, and a user's mapping.

SECONDS_OF_UNITS = {"s": 1.0, "ms": 1e-3, "min": 60.0}  # seconds; ``iso`` is a date and time
_SIZES = ("nodes", "cores", "gpus")
_ROLES = ("submit", "wait", "start", "run", "end", "size", "walltime", "user", "id", "state", "partition")


class TableMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which columns of a table say what; "" where none does.

    `times` is the unit of submissions, starts, waits, ends and run times, and `walltimes` that of walltimes.
    """

    submit: str
    wait: str = ""
    start: str = ""
    run: str = ""
    end: str = ""
    size: str
    unit: str = "nodes"
    walltime: str = ""
    user: str = ""
    id: str = ""
    state: str = ""
    partition: str = ""
    times: str = "s"
    spans: str = ""  # unit of waits and run times, where it is another
    walltimes: str = "s"
    zone: str = ""  # of dates that say none


_SLURM = {"start": "start_time", "end": "end_time", "times": "iso", "id": "job_id", "state": "job_state"}
_KNOWN: tuple[tuple[str, frozenset[str], TableMapping], ...] = tuple(
    (name, frozenset(signature.split()), TableMapping(**columns))
    for name, signature, columns in (
        (
            "f-data",
            "jid adt sdt edt nnumr",
            {
                **{"submit": "adt", "start": "sdt", "end": "edt", "size": "nnumr", "walltime": "elpl", "user": "usr"},
                **{"id": "jid", "state": "exit state", "times": "iso", "zone": "Asia/Tokyo"},
            },
        ),
        (
            "pm100",
            "job_id submit_time start_time end_time num_nodes_alloc derived_ec",
            {
                **_SLURM,
                **{"submit": "submit_time", "size": "num_nodes_alloc", "walltime": "time_limit", "walltimes": "min"},
                **{"user": "user_id", "partition": "partition"},
            },
        ),
        (
            "adastra",
            "job_id submit_time start_time end_time num_nodes_alloc time_limit",
            {
                **_SLURM,
                **{"submit": "submit_time", "size": "num_nodes_alloc", "walltime": "time_limit", "user": "user_id"},
            },
        ),
        (
            "lassen",
            "job_submit_time begin_time end_time num_nodes",
            {
                **{"submit": "job_submit_time", "start": "begin_time", "end": "end_time", "size": "num_nodes"},
                **{"walltime": "time_limit", "user": "hashed_user_id", "times": "iso"},
            },
        ),
        (
            "djc",
            "QUEUED_TIMESTAMP START_TIMESTAMP END_TIMESTAMP NODES_USED",
            {
                **{"submit": "QUEUED_TIMESTAMP", "start": "START_TIMESTAMP", "end": "END_TIMESTAMP"},
                **{"size": "NODES_USED", "walltime": "WALLTIME_SECONDS", "user": "USERNAME_GENID", "times": "iso"},
                **{"id": "JOB_NAME"},
            },
        ),
        (
            "helios",
            "job_id gpu_num node_num submit_time duration vc",
            {
                **{"submit": "submit_time", "start": "start_time", "run": "duration", "size": "gpu_num"},
                **{"unit": "gpus", "user": "user", "id": "job_id", "state": "state", "partition": "vc"},
                **{"times": "iso", "spans": "s", "zone": "Asia/Shanghai"},
            },
        ),
        (
            "opendc",
            "id submission_time duration cpu_count",
            {
                **{"submit": "submission_time", "run": "duration", "size": "cpu_count", "unit": "cores"},
                **{"times": "ms", "id": "id"},
            },
        ),
        *(
            (
                "lumos",
                f"submit_time wait_time run_time {size}",
                {
                    **{"submit": "submit_time", "wait": "wait_time", "run": "run_time", "size": size, "unit": unit},
                    "user": "user",
                },
            )
            for size, unit in (("node_num", "nodes"), ("nodes", "nodes"), ("gpu_num", "gpus"), ("cores", "cores"))
        ),
    )
)


def known_table(names: Sequence[str]) -> tuple[str, TableMapping] | None:
    """The data set whose columns these are, and what they say; None of none."""
    known = ((name, mapping) for name, signature, mapping in _KNOWN if signature <= set(names))
    return next(known, None)


def read_mapping(path: str | os.PathLike[str]) -> TableMapping:
    """A mapping of columns from a TOML file. Raises InputError."""
    try:
        fields = tomllib.loads(read_bytes(path).decode("utf-8"))
        mapping = msgspec.convert(fields, TableMapping)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path}: not a mapping of columns ({error}); the guide has an example") from None
    if mapping.unit not in _SIZES:
        raise InputError(f"{path}: unit {mapping.unit!r}: must be nodes, cores or gpus")
    for name, unit in (("times", mapping.times), ("spans", mapping.spans or "s"), ("walltimes", mapping.walltimes)):
        if unit not in (*SECONDS_OF_UNITS, "iso"):
            raise InputError(f"{path}: {name} {unit!r}: must be s, ms, min or iso")
    if not (mapping.run or mapping.end) or not (mapping.wait or mapping.start or mapping.run):
        raise InputError(f"{path}: name a column for run, or for start and end")
    return mapping


def unknown_columns(path: str | os.PathLike[str], names: Sequence[str]) -> InputError:
    """The error of a table whose columns are not known: what they are, and a mapping to fill in."""
    shown = "\n".join(f'{name} = ""' for name in ("submit", "wait", "run", "size", "walltime", "user", "id"))
    listed = ", ".join(names[:100])
    return InputError(
        f"{path}: a table of unknown columns: {listed}\n"
        f"write which of them say what into a TOML file, and give that as the mapping of columns:\n{shown}\n"
        'unit = "nodes"  # or cores, gpus: what size counts\ntimes = "s"  # or ms, min, iso',
        field="columns",
    )


_ROWS = 65536  # of Parquet at once


def header_of(path: str | os.PathLike[str]) -> tuple[list[str], str]:
    """The columns of a CSV file, and what is between them. Raises InputError."""
    _, lines = next(line_parts(path), (1, [""]))
    delimiter = delimiter_of(lines[0])
    return [name.strip().strip('"') for name in _parted(lines[0], delimiter)], delimiter


def delimiter_of(header: str) -> str:
    """What is between the columns of a table: the most frequent of some marks, or else blanks."""
    delimiter = max(",;\t|", key=header.count)
    return delimiter if header.count(delimiter) else " "


def _parted(line: str, delimiter: str) -> list[str]:
    return line.split() if delimiter == " " else line.split(delimiter)


def read_csv(path: str | os.PathLike[str], account: Account, clock: Clock, mapping: TableMapping) -> Iterator[Columns]:
    """The jobs of a CSV file with a header; as `decision.files.accounting.sacct.read_sacct`."""
    names, delimiter = header_of(path)
    reader = _Reader(path, names, account, clock, mapping)
    for number, lines in line_parts(path):
        rows, at = [], []
        for place, row in enumerate(_split(lines, delimiter), number):
            if place == 1 or not row:
                continue
            if len(row) == len(names):
                rows.append(row)
                at.append(place)
            else:
                account.records += 1
                account.leave_out("malformed", [place], f"{len(row)} fields for {len(names)} columns")
        if rows:
            yield from reader.columns(at, dict(zip(names, zip(*rows, strict=True), strict=True)))


def _split(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The fields of each line; a quote that is not closed takes no other line with it."""
    for line in lines:
        if '"' not in line:
            yield _parted(line, delimiter) if line else []
            continue
        try:
            yield next(csv.reader([line.strip()], delimiter=delimiter, skipinitialspace=delimiter == " "), [])
        except csv.Error:  # longer than a field may be, or a carriage return in it
            yield [line]


def read_parquet(
    path: str | os.PathLike[str], account: Account, clock: Clock, mapping: TableMapping
) -> Iterator[Columns]:
    """The jobs of a Parquet file; as `decision.files.accounting.sacct.read_sacct`; lines are rows, from 1."""
    file = _parquet(path)
    names = file.schema_arrow.names
    reader = _Reader(path, names, account, clock, mapping)
    number = 1
    for batch in file.iter_batches(batch_size=_ROWS, columns=reader.used):
        columns = {name: _plain(batch.column(name), clock) for name in batch.schema.names}
        rows = range(number, number + batch.num_rows)
        yield from reader.columns(rows, columns)
        number += batch.num_rows


def parquet_columns(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a Parquet file. Raises InputError, and ConfigError where pyarrow is missing."""
    return list(_parquet(path).schema_arrow.names)


def parquet_table(
    path: str | os.PathLike[str], names: Sequence[str], clock: Clock
) -> dict[str, Sequence[Any] | Floats]:
    """These columns of a Parquet file: numbers and times (seconds since 1970) as arrays, others as texts.

    Raises:
        InputError: if it cannot be read.
        ConfigError: where pyarrow is missing.
    """
    table = _parquet(path).read(columns=list(names))
    return {name: _plain(table.column(name).combine_chunks(), clock) for name in names}


def _parquet(path: str | os.PathLike[str]) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError(f"{path}: Parquet needs pyarrow; {how_to_install('traces')}") from None
    try:
        return parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from None


def _plain(column: Any, clock: Clock) -> Sequence[Any] | Floats:
    """A column of numbers as an array, of times as seconds in an array, of others as texts."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        whole = column.cast(pyarrow.timestamp("us", kind.tz)).cast(pyarrow.int64())
        seconds = whole.to_numpy(zero_copy_only=False).astype(np.float64) * 1e-6
        return clock.utc(seconds) if kind.tz is None else seconds
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        return column.to_numpy(zero_copy_only=False).astype(np.float64)
    if pyarrow.types.is_duration(kind):
        return column.cast(pyarrow.duration("us")).cast(pyarrow.int64()).to_numpy(zero_copy_only=False) * 1e-6
    return ["" if value is None else str(value) for value in column.to_pylist()]


class _Reader:
    """Columns of a table as those of records."""

    def __init__(
        self, path: str | os.PathLike[str], names: Sequence[str], account: Account, clock: Clock, mapping: TableMapping
    ) -> None:
        self._account, self._clock, self._mapping = account, clock, mapping
        column_of = {name: getattr(mapping, name) for name in _ROLES}
        optional = ("walltime", "user", "state", "partition", "id")
        for role, column in column_of.items():
            if column and column not in names and role not in optional:
                raise InputError(f"{path}: the column {column!r} is missing (there are {', '.join(names[:100])})")
        self._column_of = {role: column for role, column in column_of.items() if column and column in names}
        self.used = list(dict.fromkeys(self._column_of.values()))

    def columns(self, lines: Sequence[int], table: Mapping[str, Any]) -> Iterator[Columns]:
        """The records of some rows."""
        self._account.records += len(lines)
        unit, spans = self._mapping.times, self._mapping.spans or self._mapping.times
        numbers: dict[str, Any] = {}
        bad, first = np.zeros(len(lines), bool), {}
        for role, kind in (("submit", unit), ("start", unit), ("end", unit), ("wait", spans), ("run", spans)):
            if role in self._column_of:
                is_span = role in ("wait", "run") and kind == "iso"
                numbers[role], wrong = self._times(table[self._column_of[role]], "s" if is_span else kind)
                bad, first[role] = bad | wrong, wrong
        size, wrong = _numbers(table[self._column_of["size"]])
        bad, first["size"] = bad | wrong, wrong
        if "walltime" in self._column_of:
            numbers["walltime"], _ = self._times(table[self._column_of["walltime"]], self._mapping.walltimes)
        # the column of the first row that does not fit, and what stands there
        at = int(np.argmax(bad))
        column = next((self._column_of[role] for role, faults in first.items() if faults[at]), "")
        misfit = f"{column} is {str(table[column][at])[:40]!r}" if column else ""
        self._account.leave_out("malformed", np.asarray(lines)[bad].tolist(), misfit)
        columns: dict[str, Any] = {
            "line": np.asarray(lines),
            "id": self._texts(table, "id") if "id" in self._column_of else [str(line) for line in lines],
            self._mapping.unit: size,
            **_filled(numbers),
            **{role: self._texts(table, role) for role in ("user", "state", "partition") if role in self._column_of},
        }
        keep = ~bad
        if not keep.all():
            columns = {name: list(compress(column, keep)) for name, column in columns.items()}
        if keep.any():
            yield from usable(columns, self._account)

    def _texts(self, table: Mapping[str, Sequence[Any]], role: str) -> list[str]:
        return [f"{value:.0f}" if isinstance(value, float) else str(value) for value in table[self._column_of[role]]]

    def _times(self, values: Sequence[Any], unit: str) -> tuple[Floats, np.ndarray]:
        """Seconds, nan where they are not known, and which are no times."""
        if isinstance(values, np.ndarray):
            return values * (1.0 if unit == "iso" else SECONDS_OF_UNITS[unit]), np.zeros(len(values), bool)
        if unit == "iso":
            return self._clock.read([str(value).strip().replace(" ", "T", 1)[:32] for value in values])
        numbers, wrong = _numbers(values)
        spans = np.array([span_of(str(value)) for value in values])
        known = ~np.isnan(spans)
        return np.where(known, spans, numbers * SECONDS_OF_UNITS[unit]), wrong & ~known


def _numbers(values: Sequence[Any]) -> tuple[Floats, np.ndarray]:
    """Numbers, nan where they are not known, and which are none."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64), np.zeros(len(values), bool)
    numbers = np.full(len(values), np.nan)
    wrong = np.zeros(len(values), bool)
    for row, value in enumerate(values):
        text = str(value).strip()
        if text and text.lower() not in ("nan", "none", "null", "na"):
            try:
                numbers[row] = float(text)
            except ValueError:
                wrong[row] = True
    wrong |= np.isinf(numbers)
    return numbers, wrong


def _filled(times: dict[str, Floats]) -> dict[str, Floats]:
    """Start, end and run time; without waits and starts jobs count as started when they were submitted."""
    submit = times["submit"]
    start = times.get("start")
    if start is None:
        start = submit + times["wait"] if "wait" in times else submit
    run = times["run"] if "run" in times else times["end"] - start
    end = times["end"] if "end" in times else start + run
    known = {"submit": submit, "start": start, "end": end, "run": run}
    if not times.keys() & {"start", "wait"}:
        known["wait"] = np.full(len(submit), np.nan)
    return known | ({"walltime": times["walltime"]} if "walltime" in times else {})
