"""A log of a batch system, or a table of jobs, as a workload."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from decision.model.errors import ConfigError
from decision.model.reshape import refuse_empty
from decision.model.workload import Workload

from .account import Account
from .assemble import assemble
from .event_logs import read_lsf, read_pbs, read_sge
from .records import Columns, Records
from .sacct import read_sacct
from .sacct_json import read_sacct_json
from .table_mappings import known_table, read_mapping, unknown_columns
from .tables import header_of, parquet_columns, read_csv, read_parquet
from .values import Clock

Reader = Callable[[str, Account, Clock], Iterator[Columns]]
READERS: dict[str, Reader] = {
    "sacct": read_sacct,
    "sacct-json": read_sacct_json,
    "pbs": read_pbs,
    "lsf": read_lsf,
    "sge": read_sge,
}


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is read; by default as its content says."""

    format: str | None = None  # one of `recognise.FORMATS`
    unit: str = "auto"  # what a host is: nodes, cores, gpus, or one of the first two
    machine: int | None = None  # hosts; larger jobs are left out
    time_zone: str | None = None  # of times that say none; UTC if None
    columns: str | None = None  # names with commas between them, or a TOML file, of a table without a header or unknown
    time_field: int | None = None  # of SWF: the field with the requested time; the standard's if None

    @property
    def names_columns(self) -> bool:
        """Whether `columns` are names, and no file."""
        return "," in (self.columns or "") and not Path(self.columns or "").is_file()


def load_trace(paths: Sequence[Path], format: str, options: TraceOptions, name: str = "w0") -> Workload:
    """The jobs of one or more files of a format; the lines of several files are counted through.

    Raises:
        InputError: if a file cannot be read, or no job is left.
        ConfigError: if an option does not fit.
    """
    account, records, clock = Account(), Records(), Clock(options.time_zone)
    kind, zone = format, options.time_zone or "UTC"
    with _no_garbage_collection():
        for path in paths:
            reader, kind, zone = _reader(path, format, options)
            lines = max(records.line, default=0) if len(paths) > 1 else 0
            for columns in reader(str(path), account, clock):
                records.add({**columns, "line": [lines + int(line) for line in columns["line"]]} if lines else columns)
    workload = assemble(
        records,
        account,
        format=kind,
        path=str(paths[0]),
        name=name,
        unit=options.unit,
        machine=options.machine,
        clock=zone,
        last_counts=format == "pbs",
    )
    refuse_empty(workload)
    return workload


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Fields of records make no cycles, and looking for some takes a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _reader(path: Path, format: str, options: TraceOptions) -> tuple[Reader, str, str]:
    """What reads a file, what its format is called, and the zone of times that say none."""
    zone = options.time_zone or "UTC"
    if format not in ("csv", "parquet"):
        if format == "sacct" and options.columns:
            names = _names(options.columns)
            return lambda file, account, clock: read_sacct(file, account, clock, names), format, zone
        return READERS[format], format, zone
    names = parquet_columns(path) if format == "parquet" else header_of(path)[0]
    if options.columns:
        kind, mapping = format, read_mapping(options.columns)
    elif known := known_table(names):
        kind, mapping = known
    else:
        raise unknown_columns(path, names)
    read = read_parquet if format == "parquet" else read_csv
    zone = options.time_zone or mapping.zone or "UTC"
    return lambda file, account, clock: read(file, account, Clock(zone), mapping), kind, zone


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2:
        raise ConfigError("columns: give the names of sacct's columns, with commas between them", field="columns")
    return names
