"""A log of a batch system, or a table of jobs, as a workload."""

import gc
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from decision.files.swf import GRID_FIELDS
from decision.files.text import opened
from decision.model.errors import ConfigError, InputError
from decision.model.reshape import refuse_empty
from decision.model.workload import Workload

from .assemble import assemble
from .event_logs import (
    PBS_LINE,
    read_condor,
    read_flux,
    read_lsf,
    read_pbs,
    read_philly,
    read_sacct_json,
    read_sge,
    read_sge_json,
    sge_fields,
)
from .records import Account, Clock, Columns, Records
from .sacct import is_filetxt, is_for_people, is_header, is_headerless, read_filetxt, read_sacct
from .tables import (
    delimiter_of,
    header_of,
    known_table,
    parquet_columns,
    read_csv,
    read_mapping,
    read_parquet,
    unknown_columns,
)

Reader = Callable[[str, Account, Clock], Iterator[Columns]]
READERS: dict[str, Reader] = {
    "sacct": read_sacct,
    "sacct-json": read_sacct_json,
    "pbs": read_pbs,
    "lsf": read_lsf,
    "sge": read_sge,
    "sge-json": read_sge_json,
    "filetxt": read_filetxt,
    "condor": read_condor,
    "flux": read_flux,
    "philly": read_philly,
}


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a log is read; by default as its content says."""

    format: str | None = None  # one of `recognise.FORMATS`
    unit: str = "auto"  # what a host is: nodes, cores, gpus, or one of the first two
    machine: int | None = None  # hosts; larger jobs are left out
    time_zone: str | None = None  # of times that say none; UTC if None
    columns: str | None = None  # names with commas between them, or a TOML file, of a table without a header or unknown
    cluster: str | None = None  # of records of several clusters or servers, the one that is read
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
        cluster=options.cluster,
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
            names = [name.strip() for name in options.columns.split(",")]
            if len(names) < 2:
                mistake = "give the names of sacct's columns, with commas between them"
                raise ConfigError(f"columns: {mistake}", field="columns")
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


# Which format a file has, by its content.

_FORMATS = ("json", "swf", "gwf", "oar", *READERS, "csv", "parquet")
_BY_NAME = {".swf": "swf", ".csv": "csv", ".parquet": "parquet", ".gwf": "gwf"}
_BEGIN = 1 << 20  # bytes
_LINES = 200  # that are looked at
_NUMBERS = re.compile(r"\s*-?[\d.]+([\s;]+\S+){17,}")
_OAR_KEYS = re.compile(rb'"(submission_time|submissionTime)"')
_SACCT_KEYS = re.compile(rb'"(submission|association|derived_exit_code|allocation_nodes)"\s*:')
_FOR_PEOPLE = (
    "sacct cut these columns to a width, so that names and states are not whole; print it with sacct -P: "
    "decision workload sacct shows the command"
)
_SGE_KEYS = re.compile(rb'"(job_number|slots)"\s*:')
_OF_OTHERS = {  # what two fields of each have
    "condor": re.compile(rb'"(ClusterId|QDate)"\s*:'),
    "flux": re.compile(rb'"(t_submit|t_cleanup|t_run)"\s*:'),
    "philly": re.compile(rb'"(submitted_time|attempts)"\s*:'),
}
_WORKLOAD_KEYS = re.compile(rb'"(nb_res|profiles|subtime|jobs)"\s*:')
_BATSIM_KEYS = re.compile(rb'"(subtime|nb_res)"\s*:')


def recognise(path: str | os.PathLike[str]) -> str:
    """One of `FORMATS`; what nobody knows is taken for what its name says, or for Batsim's JSON.

    Raises:
        InputError: if the file cannot be read, or is JSON of others, or a table of sacct's for people.
    """
    with opened(path) as file:
        begin = file.read(_BEGIN)
    by_name = _BY_NAME.get(Path(path).suffix.lower(), "json")
    if begin.startswith(b"PAR1"):
        return "parquet"
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        return _of_json(text, path)
    if b"\0" in begin:
        return by_name
    lines = text.decode("utf-8", "replace").splitlines()
    if is_for_people(lines):
        raise InputError(f"{path}: {_FOR_PEOPLE}")
    whole = [line for line in lines[: -1 if len(begin) == _BEGIN else None][:_LINES] if line.strip()]
    records = [line for line in whole if line.lstrip()[0] not in ";#"]
    comments = {line.lstrip()[0] for line in whole} & {";", "#"}
    if not records:
        return "swf" if ";" in comments else by_name
    for line in records:
        if format := _of_line(line, comments):
            return format
    # a table's first line names columns, of which other lines have as many
    delimiter, second = delimiter_of(records[0]), "".join(records[1:2])
    if delimiter == " ":
        names = records[0].split()
        is_table = len(names) == len(second.split()) > 2 and all(name[:1].isalpha() for name in names)
    else:
        is_table = records[0].count(delimiter) == second.count(delimiter) > 1
    return "csv" if is_table else by_name


def begins_as_json(path: str | os.PathLike[str]) -> bool:
    """Whether a file may be JSON; also one without any text. Raises InputError if it cannot be read."""
    with opened(path) as file:
        begin = file.read(_BEGIN).lstrip(b"\xef\xbb\xbf \t\r\n")
    return not begin or begin[:1] in (b"{", b"[") or b"\0" in begin


def _of_json(text: bytes, path: str | os.PathLike[str]) -> str:
    """The format of JSON. Raises InputError if it is a list or lines of objects, or one object, of no known kind."""
    if _BATSIM_KEYS.search(text):
        return "json"
    if len(set(_SGE_KEYS.findall(text))) > 1:
        return "sge-json"
    if _OAR_KEYS.search(text):
        return "oar"
    for format, keys in _OF_OTHERS.items():
        if len(set(keys.findall(text))) > 1:
            return format
    if _SACCT_KEYS.search(text):
        return "sacct-json"
    # a list of objects with fields, lines of objects, or an object with fields of nobody's
    named = re.match(rb'[\[{\s]+"[^"]+"\s*:', text) is not None
    several = text[:1] == b"[" or re.search(rb"\}\s*\n\s*\{", text)
    if named and (several or not _WORKLOAD_KEYS.search(text)):
        known = "Batsim's workloads, tables of OAR, and logs of Slurm, Grid Engine, HTCondor, Flux and Philly"
        raise InputError(
            f"{path}: JSON of no known format (known are {known}); write its jobs as a table, CSV with a header, "
            "and say which columns are what",
            field="columns",
        )
    return "json"


def _of_line(line: str, comments: set[str]) -> str:
    if line.startswith('"JOB_') or line.startswith('"EVENT_'):
        return "lsf"
    if is_filetxt(line):
        return "filetxt"
    if PBS_LINE.fullmatch(line.strip()):
        return "pbs"
    if is_header(line) or is_headerless(line):
        return "sacct"
    if sge_fields(line) is not None:
        return "sge"
    if _NUMBERS.match(line):
        grid = len(line.split("\t")) == GRID_FIELDS or ("#" in comments and len(line.split()) >= GRID_FIELDS)
        return "gwf" if grid else "swf"
    return ""


def check_format(name: str) -> str:
    """The name of a format, as `FORMATS` has it. Raises InputError."""
    known = {"uge": "sge", "table": "csv"}.get(name, name)
    if known not in _FORMATS:
        raise InputError(f"format {name!r}: unknown; give one of {', '.join(_FORMATS)}")
    return known
