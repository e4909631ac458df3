"""Which format a file has, by its content."""

import os
import re
from itertools import islice
from pathlib import Path

from decision.formats.files import opened
from decision.model.errors import InputError

from ..swf_lines import GRID_FIELDS
from .event_logs import PBS_LINE, sge_fields
from .sacct import is_header, is_headerless

_FORMATS = ("json", "swf", "gwf", "oar", "sacct", "sacct-json", "pbs", "lsf", "sge", "csv", "parquet")
_BY_NAME = {".swf": "swf", ".csv": "csv", ".parquet": "parquet", ".gwf": "gwf"}
_BEGIN = 1 << 20  # bytes
_LINES = 200  # that are looked at
_NUMBERS = re.compile(r"\s*-?[\d.]+([\s;]+\S+){17,}")
_OAR_KEYS = re.compile(rb'"(submission_time|submissionTime)"')
_SACCT_KEYS = re.compile(rb'"(submission|association|derived_exit_code|allocation_nodes)"\s*:')
_BATSIM_KEYS = re.compile(rb'"(subtime|nb_res)"\s*:')


def recognise(path: str | os.PathLike[str]) -> str:
    """One of `FORMATS`; what nobody knows is taken for what its name says, or for Batsim's JSON.

    Raises:
        InputError: if the file cannot be read.
    """
    with opened(path) as file:
        begin = file.read(_BEGIN)
    by_name = _BY_NAME.get(Path(path).suffix.lower(), "json")
    if begin.startswith(b"PAR1"):
        return "parquet"
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        return _of_json(text)
    if b"\0" in begin:
        return by_name
    lines = text.decode("utf-8", "replace").splitlines()
    found = _of_lines(lines[: -1 if len(begin) == _BEGIN else None])
    return found or by_name


def begins_as_json(path: str | os.PathLike[str]) -> bool:
    """Whether a file may be JSON; also one without any text. Raises InputError if it cannot be read."""
    with opened(path) as file:
        begin = file.read(_BEGIN).lstrip(b"\xef\xbb\xbf \t\r\n")
    return not begin or begin[:1] in (b"{", b"[") or b"\0" in begin


def _of_json(text: bytes) -> str:
    if _BATSIM_KEYS.search(text):
        return "json"
    if _OAR_KEYS.search(text):
        return "oar"
    return "sacct-json" if _SACCT_KEYS.search(text) else "json"


def _of_lines(lines: list[str]) -> str:
    """The format of text; "" where nobody knows it."""
    said = [line for line in islice(lines, _LINES) if line.strip() and line.lstrip()[0] not in ";#"]
    comments = {line.lstrip()[0] for line in islice(lines, _LINES) if line.strip() and line.lstrip()[0] in ";#"}
    if not said:
        return "swf" if ";" in comments else ""
    for line in said:
        if found := _of_line(line, comments):
            return found
    return "csv" if _is_table(said) else ""


def _of_line(line: str, comments: set[str]) -> str:
    if line.startswith('"JOB_') or line.startswith('"EVENT_'):
        return "lsf"
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


def _is_table(lines: list[str]) -> bool:
    """Whether the first line names columns, of which other lines have as many."""
    delimiter = max(",;\t|", key=lines[0].count)
    count = lines[0].count(delimiter)
    return count > 1 and len(lines) > 1 and lines[1].count(delimiter) == count


def check_format(name: str) -> str:
    """The name of a format, as `FORMATS` has it. Raises InputError."""
    known = {"uge": "sge", "table": "csv"}.get(name, name)
    if known not in _FORMATS:
        raise InputError(f"format {name!r}: unknown; give one of {', '.join(_FORMATS)}")
    return known
