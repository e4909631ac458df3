"""What Slurm's ``sacct --parsable2`` prints: any columns in any order with a header, or Open XDMoD's 26 without one.

`sacct_records` reads its records as texts by column, for all who ask of a log of Slurm's; `read_sacct` makes of them
the jobs of a workload. There a job's run time is Elapsed, from which Slurm has taken suspended time out; times have no
zone, so that they are those of `Clock`. ``5+0`` and ``5+1`` are parts of one job; a line whose id has a dot is a step.
With ``--duplicates`` each attempt has its own Submit, and is a job of its own.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any

import numpy as np

from decision.model.errors import InputError
from decision.model.record import Floats

from .assemble import Aligner, sacct_fields
from .records import Account, Clock, Columns, gpus_of, line_parts, megabytes, seconds_of, tres, usable, whole_count

Texts = Mapping[str, Sequence[str]]  # columns by name, in small letters
XDMOD = (
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem"),
    *("ReqTRES", "AllocTRES", "Timelimit", "NodeList", "JobName"),
)
READ = dict.fromkeys(
    (
        *("jobid", "jobidraw", "submit", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw"),
        *("suspended", "state", "nnodes", "allocnodes", "ncpus", "alloccpus", "alloctres", "reqtres", "reqmem"),
        *("user", "account", "group", "partition", "qos", "nodelist", "dependency", "cluster", "reason"),
    )
)
_NEEDED = (("jobid", "jobidraw"), ("submit",), ("start",))
_CONTINUED = 200  # lines that a record may have
_LINE_DELIMITERS = 4  # that a line of a text has at most, where it is not a record that does not fit
_DELIMITERS = "|,;\t\x1f\x01^"


def is_for_people(lines: Sequence[str]) -> bool:
    """Whether it is the table that sacct prints without --parsable2, whose columns are cut to a width."""
    if len(lines) < 2 or set(lines[1].strip()) != {"-", " "}:  # the rule below the names of columns
        return False
    return bool({"jobid", "jobidraw"} & set(lines[0].lower().split()))


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
    table = _Table(path, account, read, check)
    if names:
        table.use(names, "|")
    for number, lines in line_parts(path):
        yield from table.read(number, lines)
    yield from table.rest()


_Parts = Iterator[tuple[list[int], Texts]]


class _Table:
    """A file under way: its columns, and lines that are part of a record which has not ended."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        account: Account,
        read: Mapping[str, object],
        check: Callable[[Sequence[str]], None] | None,
    ) -> None:
        self._path, self._account, self._read, self._check = path, account, read, check
        self._names: list[str] = []
        self._left: list[str] = []  # lines that more lines may belong to
        self._left_at = 0
        self._trails = ""  # what each record ends with, as --parsable has it

    def use(self, names: Sequence[str], delimiter: str) -> None:
        """Take these columns from now on. Raises InputError."""
        self._names = [name.strip().lower() for name in names]
        if self._check is not None:
            self._check(self._names)
        else:
            for needed in _NEEDED:
                if not set(needed) & set(self._names):
                    mistake = f"the column {needed[0]!r} is missing; ask sacct for it (--format)"
                    raise InputError(f"{self._path}: {mistake}")
        self._delimiter, self._header = delimiter, delimiter.join(names)
        self._aligner = Aligner(sacct_fields(self._names, self._read, delimiter), delimiter)
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
        if self._names and not last and not self._has_lines:
            # nearly always each line is a record
            split = [line.split(self._delimiter) for line in lines]
            if set(map(len, split)) == {len(self._names)} and self._header not in lines:
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
        lost = [line for line in broken if lines[line]]
        self._account.records += len(lost)
        there = f"{len(lines[lost[0]].split(self._delimiter))} fields for {len(self._names)} columns" if lost else ""
        self._account.leave_out("malformed", [first + line for line in lost], there)

    def _placed(self, text: str) -> list[str] | None:
        parts = text.split(self._delimiter)
        if len(parts) == len(self._names) + 1 and not parts[-1]:  # --parsable ends records with a delimiter
            parts.pop()
        return self._aligner.place(parts)

    def _named(self, line: str) -> str:
        """The delimiter of a line that names the columns; empty if it is a record."""
        if self._names and (line == self._header or line[:1].isdecimal()):
            return self._delimiter if line == self._header else ""
        delimiter = is_header(line)
        if not delimiter and not self._names:
            self.use(XDMOD, "|")
        return delimiter

    def _records(self, rows: "SacctRows") -> _Parts:
        if not rows.fields:
            return
        self._account.records += len(rows.fields)
        odd = [line in rows.odd for line in rows.lines] if rows.odd else [False] * len(rows.lines)
        for at in self._aligner.learns:
            known = zip(odd, rows.fields, strict=True)
            names = {fields[at] for is_odd, fields in known if not is_odd or self._aligner.is_apart(at, fields)}
            self._aligner.learn(at, names)
        if rows.odd:
            sure = [not at or self._aligner.is_sure(fields) for at, fields in zip(odd, rows.fields, strict=True)]
            unsure = compress(rows.lines, np.logical_not(sure))
            self._account.leave_out(
                "malformed", unsure, "a name beside a text with the delimiter is of no other record"
            )
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


# What the texts of sacct's columns say: times, sizes, limits and memory as numbers.


_COUNTS = (("nodes", ("allocnodes", "nnodes"), "node"), ("cores", ("alloccpus", "ncpus"), "cpu"))
_JOB = re.compile(r"\d+([_+](\d+|\[.*\]))?")
_NO_LIMIT = frozenset(("UNLIMITED", "Partition_Limit", "", "INVALID"))
_NO_NODES = frozenset(("None assigned", "None", "N/A"))
# an attempt that was requeued has ended, and waits again under a record of its own
UNFINISHED = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "PENDING")


def job_columns_of(lines: np.ndarray, text: Texts, account: Account, clock: Clock) -> Iterator[Columns]:
    """Columns of numbers from columns of texts, of the records that ran."""
    step = np.array(["." in job for job in text.get("jobid") or text["jobidraw"]])
    account.leave_out("step", lines[step].tolist())
    if step.any():
        keep = (~step).tolist()
        lines, text = lines[keep], {name: list(compress(column, keep)) for name, column in text.items()}
    if not len(lines):
        return
    ids = text.get("jobid") or text["jobidraw"]
    times = {name: clock.read(text[name]) for name in ("submit", "start", "end") if name in text}
    run, bad_run = np.full(len(lines), np.nan), np.zeros(len(lines), bool)
    if (lasted := text.get("elapsedraw") or text.get("elapsed")) is not None:
        run = _each(lasted, seconds_of)
        bad_run = np.isnan(run) & np.array([duration not in ("", "Unknown") for duration in lasted])
    state = [entry.partition(" ")[0].rstrip("+") for entry in text.get("state", [""] * len(lines))]
    strange = ~np.array(list(map(str.isdecimal, ids)))
    strange[strange] = [_JOB.fullmatch(ids[at]) is None for at in np.flatnonzero(strange).tolist()]
    elapsed = "elapsedraw" if text.get("elapsedraw") else "elapsed"
    wrong = {"jobid": strange, elapsed: bad_run, **{name: faults for name, (_, faults) in times.items()}}
    bad = np.logical_or.reduce(list(wrong.values()))
    misfit = ""  # the column of the first record that does not fit, and what stands there
    if bad.any():
        at = int(np.argmax(bad))
        name = next(name for name, faults in wrong.items() if faults[at])
        misfit = f"{name} is {(ids if name == 'jobid' else text[name])[at][:40]!r}"
    account.leave_out("malformed", lines[bad].tolist(), misfit)
    good = (~bad).tolist()
    columns = {
        "line": lines,
        "id": ids,
        "part_of": [job.partition("+")[0] if "+" in job else "" for job in ids],
        "state": state,
        **_when({name: seconds for name, (seconds, _) in times.items()}, run, text, state, clock),
        **_sizes(text, len(lines)),
        **_asked(text),
    }
    if bad.any():
        columns = {name: list(compress(column, good)) for name, column in columns.items()}
    if any(good):
        yield from usable(columns, account)


def _when(times: dict[str, Floats], run: Floats, text: Texts, state: Sequence[str], clock: Clock) -> dict[str, Floats]:
    """Submission, start, end and run time; where the clock goes back, Elapsed decides."""
    submit, start, end = times["submit"], times["start"], times.get("end")
    suspended = _each(text["suspended"], seconds_of) if "suspended" in text else np.full(len(run), np.nan)
    later = clock.fold(start)
    with np.errstate(invalid="ignore"):
        if end is not None:
            run = np.where(np.isnan(run), end - start, run)
            elapsed = run + np.nan_to_num(suspended)
            off = np.abs(end - start - elapsed)
            nearer = (off > 1) & (np.abs(end + clock.fold(end) - (start + later) - elapsed) < off)
            start = np.where((later > 0) & (nearer | (start < submit)), start + later, start)
        unassigned = np.array([entry in _NO_NODES for entry in text["nodelist"]]) if "nodelist" in text else False
        going = np.array([entry in UNFINISHED for entry in state])
        ended = start + run if end is None else np.where(np.isnan(end), np.nan, start + run)
        start = np.where(unassigned & ~(run > 0), np.nan, start)
    return {"submit": submit, "start": start, "end": np.where(going, np.nan, ended), "run": run, "suspended": suspended}


def _sizes(text: Texts, count: int) -> dict[str, Floats]:
    """Allocated nodes, cores and GPUs."""
    nothing = np.full(count, np.nan)
    allocated = text.get("alloctres")
    sizes = {}
    for name, columns, resource in _COUNTS:
        named = next((_each(text[column], whole_count) for column in columns if column in text), nothing)
        listed = (
            nothing
            if allocated is None
            else _each(allocated, lambda entry, of=resource: whole_count(tres(entry).get(of, "")))
        )
        sizes[name] = np.where(named >= 1, named, listed)
    gpus = nothing if allocated is None else _each(allocated, lambda each: gpus_of(tres(each)))
    return {**sizes, "gpus": gpus}


def _asked(text: Texts) -> dict[str, Any]:
    """What was asked for, and names; sacct's nodes where there are some."""
    columns: dict[str, Any] = {
        name: text[name]
        for name in ("cluster", "user", "account", "group", "partition", "qos", "dependency")
        if name in text
    }
    if "reason" in text:
        columns["reason"] = [each.removeprefix("None") for each in text["reason"]]
    if "timelimitraw" in text:
        columns["walltime"] = 60.0 * _each(text["timelimitraw"], lambda each: whole_count(each))
    elif "timelimit" in text:
        columns["walltime"] = _each(text["timelimit"], lambda each: math.nan if each in _NO_LIMIT else seconds_of(each))
    if "reqmem" in text:
        # ReqMem may be that of a core (``c``) or of a node (``n``)
        amounts = _each(text["reqmem"], megabytes)
        for end, counted in (("c", ("ncpus", "alloccpus")), ("n", ("nnodes", "allocnodes"))):
            of_each = np.array([amount.endswith(end) for amount in text["reqmem"]])
            counts = next((_each(text[column], whole_count) for column in counted if column in text), None)
            if counts is not None:
                amounts = np.where(of_each, amounts * counts, amounts)
        columns["asked_memory"] = amounts
    if "nodelist" in text:
        columns["node_list"] = ["" if each in _NO_NODES else each for each in text["nodelist"]]
    return columns


def _each(texts: Sequence[str], read: Any) -> Floats:
    """What `read` makes of each text, (n,); of equal texts once."""
    known = {text: read(text) for text in set(texts)}
    return np.array([known[text] for text in texts], np.float64)


# Slurm's jobcomp/filetxt, and what scontrol -o show job prints.

_PAIR = re.compile(r"(\w[\w:/]*)=(.*?)(?=\s+\w[\w:/]*=|\s*$)")
_FILETXT = {  # sacct's columns, and what they are called here
    **{"jobid": ("ArrayJob", "JobId"), "submit": ("SubmitTime",), "start": ("StartTime",), "end": ("EndTime",)},
    **{"state": ("JobState",), "nnodes": ("NodeCnt", "NumNodes"), "ncpus": ("ProcCnt", "NumCPUs")},
    **{"alloctres": ("AllocTRES", "Tres", "TRES"), "user": ("UserId",), "group": ("GroupId",), "account": ("Account",)},
    **{"partition": ("Partition",), "qos": ("QOS",), "nodelist": ("NodeList",), "cluster": ("Cluster",)},
    **{"timelimit": ("TimeLimit",), "dependency": ("Dependency",)},
}


def is_filetxt(line: str) -> bool:
    """Whether a line is a job of Slurm's jobcomp/filetxt."""
    return line.startswith("JobId=") and " EndTime=" in line


def read_filetxt(path: str | os.PathLike[str], account: Account, clock: Clock) -> Iterator[Columns]:
    """The jobs of Slurm's jobcomp/filetxt; as `read_sacct`."""
    for number, lines in line_parts(path):
        records = [(at, line) for at, line in enumerate(lines, number) if line.strip()]
        account.records += len(records)
        odd = [at for at, line in records if not is_filetxt(line)]
        account.leave_out("malformed", odd, "there is no JobId= and EndTime=")
        rows = []
        for _, line in (record for record in records if is_filetxt(record[1])):
            pairs = dict(_PAIR.findall(line))
            if "ArrayJobId" in pairs:
                pairs["ArrayJob"] = f"{pairs['ArrayJobId']}_{pairs.get('ArrayTaskId', '')}"
            row = {name: next((pairs[key] for key in keys if pairs.get(key)), "") for name, keys in _FILETXT.items()}
            row |= {name: row[name].partition("(")[0] for name in ("user", "group")}  # name(number)
            row["cluster"] = row["cluster"].removeprefix("unknown")
            row["dependency"] = row["dependency"].removeprefix("(null)")
            if row["timelimit"].isdecimal():  # minutes
                row["timelimit"] += ":00"
            rows.append(row)
        if rows:
            texts = {name: [row[name] for row in rows] for name in _FILETXT}
            yield from job_columns_of(np.array([at for at, line in records if is_filetxt(line)]), texts, account, clock)


# The command that prints a cluster's records with Slurm's sacct.
_ASKED = (  # what `decision workload sacct` asks for
    *("JobID", "JobIDRaw", "Submit", "Start", "End", "ElapsedRaw", "TimelimitRaw", "Suspended", "State", "NNodes"),
    *("NCPUS", "AllocTRES", "ReqTRES", "ReqMem", "User", "Account", "Group", "Partition", "QOS", "NodeList", "Reason"),
)
_PRINTED = r"\x1f"  # between fields: the unit separator of ASCII


def sacct_script(hashed: bool, since: str, until: str) -> str:
    """The command to run on a cluster, for a shell.

    Args:
        hashed: whether users and accounts become hashes, with a salt that is drawn each time.
        since: first day.
        until: day after the last one, or ``now``.
    """
    command = (
        f"TZ=UTC SLURM_TIME_FORMAT=%Y-%m-%dT%H:%M:%S sacct --allusers --duplicates --allocations --noconvert "
        f"--parsable2 --delimiter=$'{_PRINTED}' --starttime={since} --endtime={until} \\\n  --format={','.join(_ASKED)}"
    )
    if not hashed:
        return f"{command} > sacct.txt"
    at = [_ASKED.index(name) + 1 for name in ("User", "Account", "Group")]
    fields = " ".join(f"${number} = hash(${number});" for number in at)
    return (
        f"salt=$(head -c 16 /dev/urandom | base64)\n{command} \\\n"
        f"  | awk -v salt=\"$salt\" -F $'{_PRINTED}' -v OFS=$'{_PRINTED}' '\n"
        "    function hash(text,  command, sum) {\n"
        '      if (text == "" || text in known) return known[text]\n'
        '      command = "printf %s \\047" salt text "\\047 | sha256sum"; command | getline sum; close(command)\n'
        "      return known[text] = substr(sum, 1, 12) }\n"
        f"    NR > 1 {{ {fields} }} {{ print }}' > sacct.txt"
    )
