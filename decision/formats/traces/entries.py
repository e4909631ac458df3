"""Accounting files with a job or an event a line: what each line is, and columns of the jobs that ran."""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .account import Account
from .lines import line_parts
from .records import TEXTS, Columns, usable

Entry = dict[str, Any]  # a job's columns
Reader = Callable[[str], "Entry | str | None"]  # of a line: the job, why it is none, or None where it is a comment


def read_entries(path: str | os.PathLike[str], account: Account, read: Reader) -> Iterator[Columns]:
    """The jobs of a file, line by line."""
    for number, lines in line_parts(path):
        yield from from_entries(((number + at, _tried(read, line)) for at, line in enumerate(lines)), account)


def _tried(read: Reader, line: str) -> "Entry | str | None":
    """What a line is; one that does not fit is malformed."""
    try:
        return read(line) if line.strip() else None
    except (ValueError, IndexError, KeyError, OverflowError):
        return "malformed"


def from_entries(entries: Iterable[tuple[int, "Entry | str | None"]], account: Account) -> Iterator[Columns]:
    """Columns of jobs that ran, from what each line or record is."""
    jobs: list[Entry] = []
    lines: list[int] = []
    for line, entry in entries:
        if entry is None:
            continue
        account.records += 1
        if isinstance(entry, str):
            account.leave_out(entry, [line])
        else:
            jobs.append(entry)
            lines.append(line)
    if jobs:
        names = dict.fromkeys(name for job in jobs for name in job)
        columns: dict[str, Any] = {name: [job.get(name, _nothing(name)) for job in jobs] for name in names}
        yield from usable({"line": np.array(lines), **columns}, account)


def _nothing(name: str) -> Any:
    return "" if name in ("id", "part_of", *TEXTS) else math.nan


def known_time(text: str) -> float:
    """Seconds since 1970; nan for 0 and below, which say that something has not happened."""
    seconds = float(text)
    if not math.isfinite(seconds):
        raise ValueError(text)
    return seconds if seconds > 0 else math.nan
