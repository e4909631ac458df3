"""What Slurm's ``sacct --parsable2`` prints: any columns in any order with a header, or Open XDMoD's 26 without one.

`sacct_records` reads its records as texts by column, for all who ask of a log of Slurm's; `read_sacct` makes of them
the jobs of a workload. There a job's run time is Elapsed, from which Slurm has taken suspended time out; times have no
zone, so that they are those of `Clock`. ``5+0`` and ``5+1`` are parts of one job; a line whose id has a dot is a step.
With ``--duplicates`` each attempt has its own Submit, and is a job of its own.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from operator import itemgetter

import numpy as np

from decision.model.errors import InputError

from .account import Account
from .align import Aligner, sacct_fields
from .lines import line_parts
from .records import Columns
from .sacct_columns import Texts, job_columns_of
from .values import Clock

XDMOD = (
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem"),
    *("ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
)
READ = dict.fromkeys(
    (
        *("jobid", "jobidraw", "submit", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw"),
        *("suspended", "state", "nnodes", "allocnodes", "ncpus", "alloccpus", "alloctres", "reqtres", "reqmem"),
        *("user", "account", "group", "partition", "qos", "nodelist", "dependency"),
    )
)

_NEEDED = (("jobid", "jobidraw"), ("submit",), ("start",))
_CONTINUED = 200  # lines that a record may have
_LINE_DELIMITERS = 4  # that a line of a text has at most, where it is not a record that does not fit
_DELIMITERS = "|,;\t\x1f\x01^"


def is_header(line: str) -> str:
    """The delimiter of a line that names sacct's columns; empty if it is none."""
    for delimiter in _DELIMITERS:
        names = {name.lower() for name in line.split(delimiter)}
        if names & {"jobid", "jobidraw"} and names & {"submit", "start", "state", "elapsed"}:
            return delimiter
    return ""


def is_headerless(line: str) -> bool:
    """Whether a line is a record of Open XDMoD's 26 columns."""
    return Aligner(sacct_fields(XDMOD, READ), "|").place(line.split("|")) is not None


def read_sacct(
    path: str | os.PathLike[str], account: Account, clock: Clock, names: Sequence[str] = ()
) -> Iterator[Columns]:
    """The records of jobs that ran, as columns (see `records`), in parts; others are counted in `account`.

    Args:
        path: the file.
        account: what becomes of each record.
        clock: that of the machine.
        names: of the columns, where the file has no header; by default `XDMOD`.

    Raises:
        InputError: if the file cannot be read or lacks a column that is needed.
    """
    for lines, columns in sacct_records(path, account, names):
        yield from job_columns_of(np.array(lines), columns, account, clock)


def sacct_records(
    path: str | os.PathLike[str],
    account: Account,
    names: Sequence[str] = (),
    read: Mapping[str, object] = READ,
    check: Callable[[Sequence[str]], None] | None = None,
) -> Iterator[tuple[list[int], Texts]]:
    """All records, in parts: the number of the first line of each, and texts by column, names in small letters.

    A text with the delimiter in it, such as a job's name with ``|``, is put together again where one way of doing so
    fits all columns.

    Args:
        path: the file.
        account: counts the records, and those that fit no columns.
        names: of the columns, where the file has no header; by default `XDMOD`.
        read: the columns that are wanted, those of them that there are.
        check: is called with the names of the columns that there are, in small letters, and raises where some are
            missing; by default those that jobs need must be there.

    Raises:
        InputError: if the file cannot be read or lacks a column that is needed.
    """
    table = _Table(path, account, read, check or _has_times(path))
    if names:
        table.use(names, "|")
    for number, lines in line_parts(path):
        yield from table.read(number, lines)
    yield from table.rest()


def _has_times(path: str | os.PathLike[str]) -> Callable[[Sequence[str]], None]:
    """A check that a job's id, submission and start are among the columns."""

    def check(names: Sequence[str]) -> None:
        for needed in _NEEDED:
            if not set(needed) & set(names):
                raise InputError(f"{path}: the column {needed[0]!r} is missing; ask sacct for it (--format)")

    return check


_Parts = Iterator[tuple[list[int], Texts]]


class _Table:
    """A file under way: its columns, and lines that are part of a record which has not ended."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        account: Account,
        read: Mapping[str, object],
        check: Callable[[Sequence[str]], None],
    ) -> None:
        self._path, self._account, self._read, self._check = path, account, read, check
        self._names: list[str] = []
        self._left: list[str] = []  # lines that more lines may belong to
        self._left_at = 0
        self._trails = ""  # what each record ends with, as --parsable has it

    def use(self, names: Sequence[str], delimiter: str) -> None:
        """Take these columns from now on. Raises InputError."""
        self._names = [name.strip().lower() for name in names]
        self._check(self._names)
        self._delimiter, self._header = delimiter, delimiter.join(names)
        self._aligner = Aligner(sacct_fields(self._names, self._read), delimiter)
        self._has_lines = "submitline" in self._names
        self._at = [at for at, name in enumerate(self._names) if name in self._read and name not in self._names[:at]]

    def read(self, number: int, lines: list[str]) -> _Parts:
        """The records of a part of the file that begins with line `number`."""
        first = self._left_at if self._left else number
        lines = self._without_trails(lines)
        yield from self._part(first, self._left + lines, last=False)

    def _without_trails(self, lines: list[str]) -> list[str]:
        return [line.removesuffix(self._trails) for line in lines] if self._trails else lines

    def rest(self) -> _Parts:
        """The records of the end of the file."""
        yield from self._part(self._left_at, self._left, last=True)

    def _part(self, first: int, lines: list[str], last: bool) -> _Parts:
        rows, at = SacctRows(), 0
        if self._names and not last and (split := self._plain(lines)):
            self._left, self._left_at = [], 0
            yield from self._records(SacctRows(list(range(first, first + len(lines))), split))
            return
        self._left, self._left_at = ([], 0) if last else (lines[-1:], first + len(lines) - 1)
        while at < len(lines) - (not last):
            line = lines[at]
            if delimiter := self._named(line):
                yield from self._records(rows)
                rows = SacctRows()
                if line.endswith(delimiter):
                    self._trails = delimiter
                    lines = self._without_trails(lines)
                    self._left = lines[-1:] if self._left else []
                self.use(line.removesuffix(delimiter).split(delimiter), delimiter)
            elif line:
                parts = line.split(self._delimiter)
                if len(parts) == len(self._names):
                    rows.add(first + at, parts)
                else:
                    end = self._end(lines, at)
                    if end == len(lines) and not last and end - at < _CONTINUED:
                        begin = at - rows.take_back(first + at - 1)
                        self._left, self._left_at = lines[begin:], first + begin
                        break
                    self._odd(rows, first, lines, at, end)
                    at = end - 1
            at += 1
        yield from self._records(rows)

    def _plain(self, lines: list[str]) -> list[list[str]]:
        """The fields of all lines where each is a record, as nearly always; else none."""
        split = [line.split(self._delimiter) for line in lines]
        is_plain = set(map(len, split)) == {len(self._names)} and self._header not in lines
        return split if is_plain and not self._has_lines else []

    def _end(self, lines: list[str], at: int) -> int:
        """Where the lines end that may belong to a record with too few or too many fields, or to the one before."""
        end = at + 1
        while self._has_lines and end < min(len(lines), at + _CONTINUED) and not self._begins(lines[end]):
            end += 1
        return end

    def _begins(self, line: str) -> bool:
        parts = line.split(self._delimiter)
        most = max(len(self._names) // 2, len(self._names) - self._names.index("submitline") + _LINE_DELIMITERS)
        return len(parts) == len(self._names) or len(parts) > most or self._aligner.begins(parts)

    def _odd(self, rows: "SacctRows", first: int, lines: list[str], at: int, end: int) -> None:
        """Read lines that are no record of one line: the rest of the one before, or one with delimiters in a text."""
        if self._has_lines and not self._begins(lines[at]) and rows.ends_at(first + at - 1):
            fields = self._placed("\n".join(lines[at - 1 : end]))
            if fields is not None:
                rows.take_back(first + at - 1)
                rows.add(first + at - 1, fields, end=first + end - 1)
                return
        fields = self._placed("\n".join(lines[at:end]))
        broken = range(0)
        if fields is None:  # then the first line may be a record by itself
            fields = self._placed(lines[at])
            broken = range(at + (fields is not None), end)
            end = at + 1
        if fields is not None:
            rows.add(first + at, fields, end=first + end - 1)
        lost = [first + line for line in broken if lines[line]]
        self._account.records += len(lost)
        self._account.leave_out("malformed", lost)

    def _placed(self, text: str) -> list[str] | None:
        parts = text.split(self._delimiter)
        if len(parts) == len(self._names) + 1 and not parts[-1]:  # --parsable ends records with a delimiter
            parts.pop()
        return self._aligner.place(parts)

    def _named(self, line: str) -> str:
        """The delimiter of a line that names the columns; empty if it is a record."""
        if self._names and (line == self._header or line[:1].isdecimal()):
            return self._delimiter if line == self._header else ""
        found = is_header(line)
        if not found and not self._names:
            self.use(XDMOD, "|")
        return found

    def _records(self, rows: "SacctRows") -> _Parts:
        if not rows.fields:
            return
        self._account.records += len(rows.fields)
        odd = [line in rows.odd for line in rows.lines] if rows.odd else [False] * len(rows.lines)
        for at in self._aligner.learns:
            self._aligner.learn(at, {fields[at] for is_odd, fields in zip(odd, rows.fields, strict=True) if not is_odd})
        if rows.odd:
            sure = [not at or self._aligner.is_sure(fields) for at, fields in zip(odd, rows.fields, strict=True)]
            self._account.leave_out("malformed", compress(rows.lines, np.logical_not(sure)))
            rows = SacctRows(list(compress(rows.lines, sure)), list(compress(rows.fields, sure)))
            if not rows.lines:
                return
        picked = zip(*map(itemgetter(*self._at), rows.fields), strict=True)
        yield rows.lines, dict(zip((self._names[at] for at in self._at), picked, strict=True))


class SacctRows:
    """Records that were split into fields, with the numbers of their first lines."""

    def __init__(self, lines: list[int] | None = None, fields: Sequence[Sequence[str]] = ()) -> None:
        self.lines: list[int] = lines or []
        self.fields: list[Sequence[str]] = list(fields)
        self.odd: set[int] = set()  # lines of those that had to be placed
        self._end = 0

    def add(self, line: int, fields: Sequence[str], end: int = 0) -> None:
        """Add a record; one with an `end`, its last line, had to be placed."""
        self.lines.append(line)
        self.fields.append(fields)
        self._end = end or line
        if end:
            self.odd.add(line)

    def ends_at(self, line: int) -> bool:
        """Whether the last record is this line alone."""
        return bool(self.lines) and self.lines[-1] == self._end == line

    def take_back(self, line: int) -> bool:
        """Forget the last record if it is this line alone; whether it is."""
        if not self.ends_at(line):
            return False
        self.odd.discard(self.lines.pop())
        self.fields.pop()
        return True
