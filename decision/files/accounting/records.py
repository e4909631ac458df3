"""Accounting records of jobs that ran, as columns, and how their values are written: what all readers of logs share."""

import codecs
import datetime
import math
import os
import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.files.text import read_blocks
from decision.model.columns import Labelled, small
from decision.model.errors import ConfigError, InputError
from decision.model.record import Floats, Ints

# What became of each record of a file: a job, a part of one, or left out for a reason.

REASONS = {
    "step": "steps of jobs",
    "never_started": "that never started",
    "not_ended": "that did not end",
    "no_time": "with an unknown or zero run time",
    "no_size": "with an unknown or zero size",
    "repeat": "of a job seen before",
    "malformed": "whose fields do not fit",
    "other_event": "of another kind than a job's end",
    "partial": "of parts of a job",
    "other_cluster": "of another cluster",
    "too_large": "larger than the machine",
}
_SHOWN = 60  # characters of a line that does not fit
NAMED = 5  # lines of a reason whose numbers are kept


class LeftOut(msgspec.Struct):
    """Records that became no jobs, for one reason."""

    count: int = 0
    lines: list[int] = []  # the first of them


class Account(msgspec.Struct):
    """The records of one or more files: all are jobs, joined with another one to a job, or left out."""

    records: int = 0
    joined: int = 0
    left_out: dict[str, LeftOut] = {}  # by `REASONS`
    lost: dict[str, int] = {}  # what a workload cannot say, with how many jobs it is true of
    misfit: str = ""  # of the first record whose fields do not fit: which, and why

    def leave_out(self, reason: str, lines: Iterable[int], why: str = "") -> None:
        """Count records as left out; `lines` are where they stand, and `why` says it of the first of them."""
        numbers = [int(line) for line in lines]
        if numbers:
            if why and not self.misfit:
                self.misfit = f"line {numbers[0]:,}: {why}"
            entry = self.left_out.setdefault(reason, LeftOut())
            entry.count += len(numbers)
            entry.lines = sorted([*entry.lines, *numbers])[:NAMED]

    def lose(self, feature: str, jobs: int) -> None:
        """Count jobs of which something cannot be said."""
        if jobs:
            self.lost[feature] = self.lost.get(feature, 0) + int(jobs)


NUMBERS = (
    *("submit", "start", "end"),  # seconds since 1970, nan where unknown
    *("wait", "run", "walltime", "suspended"),  # seconds; a walltime is nan where none was requested
    *("nodes", "cores", "gpus"),  # allocated
    *("memory", "asked_memory"),  # MB in all
)
TEXTS = ("cluster", "user", "account", "group", "partition", "qos", "state", "node_list", "dependency", "reason")

Columns = Mapping[str, Sequence[Any] | Floats]  # of equal length: line, id, part_of, and any of `NUMBERS` and `TEXTS`


class Records:
    """Columns that grow part by part; texts of which many are equal are kept once."""

    def __init__(self) -> None:
        self.line = array("q")
        self.id: list[str] = []
        self.part_of: list[str] = []  # the job that starts together with others as one; "" for a job by itself
        self._numbers = {name: array("d") for name in NUMBERS}
        self._codes = {name: array("i") for name in TEXTS}
        self._labels: dict[str, dict[str, int]] = {name: {"": 0} for name in TEXTS}

    def __len__(self) -> int:
        return len(self.id)

    def add(self, columns: Columns) -> None:
        """Add records; a column that is not there is unknown."""
        count = len(columns["id"])
        self.line.frombytes(np.asarray(columns["line"], np.int64).tobytes())
        self.id.extend(columns["id"])
        self.part_of.extend(columns.get("part_of", [""] * count))
        for name, numbers in self._numbers.items():
            values = columns.get(name)
            known = np.full(count, np.nan) if values is None else np.asarray(values, np.float64)
            numbers.frombytes(known.tobytes())
        for name, codes in self._codes.items():
            labels, texts = self._labels[name], columns.get(name, ("",) * count)
            for text in dict.fromkeys(texts):
                labels.setdefault(text, len(labels))
            codes.extend(map(labels.__getitem__, texts))

    def number(self, name: str) -> Floats:
        """The column of one of `NUMBERS`, (n,), in its unit."""
        return np.array(self._numbers[name])

    def text(self, name: str) -> Labelled[str]:
        """The column of one of `TEXTS`, (n,), empty where it is not known."""
        return Labelled(list(self._labels[name]), small(np.array(self._codes[name])))


def usable(columns: Columns, account: Account) -> Iterator[Columns]:
    """The records that ran, of columns that have at least line, id, submit, start, end and run; others are counted."""
    lines = np.asarray(columns["line"])
    good = np.ones(len(lines), bool)
    submit, start, end, run = (np.asarray(columns[name], float) for name in ("submit", "start", "end", "run"))
    size = np.fmax(_column(columns, "nodes", lines), _column(columns, "cores", lines))
    with np.errstate(invalid="ignore"):
        for reason, wrong in (
            ("no_time", np.isnan(submit)),
            ("never_started", np.isnan(start)),
            ("not_ended", np.isnan(end)),
            ("no_time", ~(run > 0)),
            ("no_size", ~(np.fmax(size, _column(columns, "gpus", lines)) >= 1)),
        ):
            account.leave_out(reason, lines[good & wrong].tolist())
            good &= ~wrong
    columns = {"wait": start - submit, **columns}
    if good.all():
        yield columns
    elif good.any():
        keep = good.tolist()
        yield {name: list(compress(values, keep)) for name, values in columns.items()}


def _column(columns: Columns, name: str, lines: np.ndarray) -> Floats:
    values = columns.get(name)
    return np.full(len(lines), np.nan) if values is None else np.asarray(values, float)


class RecordTable(NamedTuple):
    """Jobs in order of submission. Columns of length n."""

    line: Ints
    id: list[str]
    numbers: dict[str, Floats]
    texts: dict[str, Labelled[str]]

    def take(self, rows: Ints) -> "RecordTable":
        """The jobs of these rows."""
        return RecordTable(
            self.line[rows],
            [self.id[row] for row in rows.tolist()],
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column.take(rows) for name, column in self.texts.items()},
        )


# The lines of a text file, in parts, so that a large file never stands in memory.

_LONGEST_LINE = 16 << 20  # bytes: the nodes of a job, or a script in one line


def line_parts(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Parts of some megabytes: the number of the first line, from 1, and the lines without their ends.

    Bytes that are no UTF-8 become ``\\ufffd``.

    Raises:
        InputError: if the file cannot be read, is empty or is not text.
    """
    number = 1
    for part, block in enumerate(read_blocks(path, _LONGEST_LINE)):
        text = block if part else block.removeprefix(codecs.BOM_UTF8)
        if b"\0" in text:
            line = number + text.count(b"\n", 0, text.index(b"\0"))
            raise InputError(f"{path}, line {line}: a zero byte, so this is not a text file; is it the right file?")
        lines = text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        yield number, lines
        number += len(lines)
    if number == 1:
        raise InputError(f"{path}: the file is empty")


# Accounting files with a job or an event a line: what each line is, and columns of the jobs that ran.

Entry = dict[str, Any]  # a job's columns
# of a line: the job, why it is none ("step", "malformed: ..."), or None where it is a comment
Reader = Callable[[str], "Entry | str | None"]


def read_entries(path: str | os.PathLike[str], account: Account, read: Reader) -> Iterator[Columns]:
    """The jobs of a file, line by line."""
    for number, lines in line_parts(path):
        entries: list[tuple[int, Entry | str | None]] = []
        for at, line in enumerate(lines, number):
            try:
                entries.append((at, read(line) if line.strip() else None))
            except (ValueError, IndexError, KeyError, OverflowError, TypeError):
                entries.append((at, f"malformed: {line.strip()[:_SHOWN]!r}"))
        yield from from_entries(entries, account)


def from_entries(entries: Iterable[tuple[int, "Entry | str | None"]], account: Account) -> Iterator[Columns]:
    """Columns of jobs that ran, from what each line or record is."""
    jobs: list[Entry] = []
    lines: list[int] = []
    for line, entry in entries:
        if entry is None:
            continue
        account.records += 1
        if isinstance(entry, str):
            reason, _, why = entry.partition(": ")
            account.leave_out(reason, [line], why)
        else:
            jobs.append(entry)
            lines.append(line)
    if jobs:
        names = dict.fromkeys(name for job in jobs for name in job)
        texts = ("id", "part_of", *TEXTS)
        columns: dict[str, Any] = {
            name: [job.get(name, "" if name in texts else math.nan) for job in jobs] for name in names
        }
        yield from usable({"line": np.array(lines), **columns}, account)


def known_time(text: str) -> float:
    """Seconds since 1970; nan for 0 and below, which say that something has not happened."""
    seconds = float(text)
    if not math.isfinite(seconds):
        raise ValueError(text)
    return seconds if seconds > 0 else math.nan


# How accounting records write values: durations, sizes of memory, counts, node lists, times of a local clock.

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtTpP]?)[iI]?([bBwW]?)[nc]?")
_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(sorted(_SECONDS, key=len, reverse=True))})", re.IGNORECASE)
_SPANS = re.compile(rf"({_SPAN.pattern}\s*)+", re.IGNORECASE)
# sacct(1), SLURM_TIME_FORMAT: a strftime text of the site; others are what tables have
DATE_FORMATS = (
    *("%m/%d/%y-%H:%M:%S", "%m/%d/%Y-%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%b %d %Y %H:%M:%S", "%d %b %Y %H:%M:%S"),
    *("%m/%d/%yT%H:%M:%S", "%m/%d/%YT%H:%M:%S", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%YT%H:%M"),
    *("%Y/%m/%d %H:%M:%S", "%Y/%m/%dT%H:%M:%S", "%Y/%m/%d-%H:%M:%S", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M:%S"),
    *("%d.%m.%YT%H:%M:%S", "%a %b %d %H:%M:%S %Y", "%aT%b %d %H:%M:%S %Y"),
)
_FACTOR = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_UNKNOWN_TIMES = frozenset(("", "Unknown", "None", "N/A", "NONE"))
_SECOND_TEXT = len("2020-01-01T00:00:00")
_ENDLESS = 2147486648.0  # MB: what sacct writes for all memory of a node
_MOST_NODES = 10_000_000  # of one list; more are a mistake


def seconds_of(text: str) -> float:
    """``[DAYS-][HOURS:]MINUTES:SECONDS`` or plain seconds; nan where it is neither."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    try:
        numbers = [float(part) for part in parts]
        whole = 86_400.0 * int(days) if dash else 0.0
    except ValueError:
        return math.nan
    if len(parts) > 3 or min(numbers) < 0 or not math.isfinite(sum(numbers)):
        return math.nan
    if dash:  # of DAYS-HOURS[:MINUTES[:SECONDS]]
        return whole + sum(number * unit for number, unit in zip(numbers, (3600.0, 60.0, 1.0), strict=False))
    for number in numbers:
        whole = 60.0 * whole + number
    return whole


def span_of(text: str) -> float:
    """Seconds of a clock (``1:02:03``) or of numbers with units (``1h 2m 3s``, ``45.2s``); nan where it is neither."""
    text = text.strip()
    if ":" in text:
        return seconds_of(text)
    parts = _SPAN.findall(text) if _SPANS.fullmatch(text) else []
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts) if parts else math.nan


def megabytes(text: str, default: str = "M") -> float:
    """An amount of memory in MB; nan where there is none. `default` is the unit of a plain number.

    Slurm's ``c`` and ``n`` at the end, for a core and a node, say what it is of and are left to the caller.
    """
    match = _AMOUNT.fullmatch(text)
    if not match:
        return math.nan
    letter = match[2].upper() or ("" if match[3] else default)
    amount = float(match[1]) * (8.0 if match[3] in ("w", "W") else 1.0) * 1024.0 ** (_FACTOR[letter] - 2)
    return math.nan if amount >= _ENDLESS else amount


def whole_count(text: str) -> float:
    """A count, which may be written as ``9.2K``; nan where it is none."""
    if text.isdecimal():
        return float(text)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG])", text)
    return float(round(float(match[1]) * 1024.0 ** _FACTOR[match[2]])) if match else math.nan


def tres(text: str) -> dict[str, str]:
    """Slurm's trackable resources, ``cpu=4,mem=8G,gres/gpu:a100=2,node=1``, by name."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def gpus_of(resources: dict[str, str]) -> float:
    """GPUs among Slurm's resources: those of any type, or else the sum over the types; nan of none."""
    if "gres/gpu" in resources:
        return whole_count(resources["gres/gpu"])
    typed = [whole_count(count) for name, count in resources.items() if name.startswith("gres/gpu:")]
    return sum(typed) if typed else math.nan


@lru_cache(maxsize=1 << 16)
def node_names(text: str) -> tuple[str, ...]:
    """The nodes of a list in Slurm's way, ``n[01-03,7],gpu1``; none where it is not such a list.

    ClusterShell, where it is installed, reads what this does not: steps, and operations on sets.
    """
    nodes: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[\]]*)(?:\[([^\]]*)\])?", part):
            numbers = _numbers(ranges) if ranges else [""]
            if numbers is None or len(names) * len(numbers) > _MOST_NODES:
                try:
                    from ClusterShell.NodeSet import NodeSet, NodeSetParseError
                except ImportError:
                    return ()
                try:
                    return tuple(NodeSet(text, resolver=None))
                except (NodeSetParseError, AssertionError):  # the latter of more nodes than it takes
                    return ()
            names = [name + plain + number for name in names for number in numbers]
        nodes += names
    return tuple(nodes)


def _numbers(ranges: str) -> list[str] | None:
    """The numbers of ``01-03,7`` as texts; None where they are no such ranges."""
    numbers: list[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return None
        end = int(last) if dash else int(first)
        if not 0 <= end - int(first) < _MOST_NODES:
            return None
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), end + 1)]
    return numbers


def named_zone(name: str | None) -> ZoneInfo | None:
    """A time zone such as ``Europe/Berlin``; None where none is named. Raises ConfigError if there is no such zone."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):
        raise ConfigError(
            f"time zone {name!r}: unknown here; give a name like Europe/Berlin", field="time_zone"
        ) from None


def read_clock_text(text: str) -> datetime.datetime | None:
    """The date and time of an ISO text, or of one of `DATE_FORMATS`; None where it is neither."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in DATE_FORMATS:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    return None


class Clock:
    """The clock of a machine, which may go by summer time; UTC where no zone is known.

    Args:
        zone: a name like ``Europe/Berlin``.

    Raises:
        ConfigError: if there is no such zone.
    """

    def __init__(self, zone: str | None = None) -> None:
        self._zone = named_zone(zone)
        # by local quarter of an hour: seconds ahead of UTC, before and after a fold
        self._offsets: dict[float, tuple[float, float]] = {}

    def read(self, texts: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
        """Seconds since 1970, (n,), nan where a time is not known, and which texts are no times."""
        plain = [text if len(text) == _SECOND_TEXT else "NaT" for text in texts]
        bad = np.zeros(len(texts), bool)
        others = [at for at, text in enumerate(plain) if text == "NaT" and texts[at] not in _UNKNOWN_TIMES]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of a text of that length that names a zone
                local = np.array(plain, "datetime64[s]")
        except (ValueError, UserWarning):
            others = [at for at, text in enumerate(texts) if text not in _UNKNOWN_TIMES]
            local = np.full(len(texts), np.datetime64("NaT"), "datetime64[s]")
        seconds = np.where(np.isnat(local), np.nan, local.astype(np.int64).astype(np.float64))
        seconds = self.utc(seconds)
        for at in others:
            moment = None if texts[at].isdecimal() else read_clock_text(texts[at])
            if texts[at].isdecimal():
                seconds[at] = float(texts[at])
            elif moment is None:
                bad[at] = True
                seconds[at] = math.nan
            elif moment.tzinfo is not None:
                seconds[at] = moment.timestamp()
            else:
                seconds[at] = self.utc(np.array([moment.replace(tzinfo=datetime.UTC).timestamp()]))[0]
        return seconds, bad

    def utc(self, local: Floats) -> Floats:
        """Seconds since 1970 of what the clock shows, (n,); the first of two where it shows a time twice."""
        return local - self._ahead(local)[0] if self._zone else local

    def fold(self, local: Floats) -> Floats:
        """How many seconds later the second of two times is that the clock shows alike; 0 where it is one. (n,)."""
        if self._zone is None:
            return np.zeros(len(local))
        hours = np.floor(local / 3600.0)
        known = {
            hour: self._offset(datetime.datetime.fromtimestamp(hour * 3600.0, self._zone))
            for hour in np.unique(hours[np.isfinite(local)]).tolist()
        }
        first, second = self._ahead(local + np.array([known.get(hour, 0.0) for hour in hours.tolist()]))
        return first - second

    def _ahead(self, local: Floats) -> tuple[Floats, Floats]:
        """Seconds ahead of UTC, (n,), before and after the clock went back where it did."""
        quarter = np.floor(local / 900.0)
        distinct, which = np.unique(quarter, return_inverse=True)
        pairs = np.zeros((len(distinct), 2))
        for row, key in enumerate(distinct.tolist()):
            if math.isnan(key):
                continue
            if key not in self._offsets:
                shown = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=key * 900)
                first, second = (self._offset(shown.replace(tzinfo=self._zone, fold=fold)) for fold in (0, 1))
                self._offsets[key] = first, second if second < first else first
            pairs[row] = self._offsets[key]
        return pairs[which, 0], pairs[which, 1]

    @staticmethod
    def _offset(moment: datetime.datetime) -> float:
        ahead = moment.utcoffset()
        return ahead.total_seconds() if ahead else 0.0
