"""Records with too many fields, because a text in them has the delimiter: the one way in which all fields fit."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Fits = Callable[[str], object]
Ways = dict[int, list[tuple[tuple[str, ...], tuple[str, ...]]]]  # by parts too many that are still to be placed

_DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d\d:?\d\d)?|Unknown|None|N/A|\d*"
_SPAN = r"(\d+-)?(\d+:){1,2}\d+(\.\d+)?|UNLIMITED|Partition_Limit|INVALID|"
_COUNT = r"-?\d+(\.\d+)?[KMGTP]?|"
_TRES = r"([\w./:-]+=[^,=|]*)(,[\w./:-]+=[^,=|]*)*|"
_NODES = r"None assigned|[\w.\[\],-]*"
_STATE = r"[A-Z][A-Z_]+( by \S+)?\+?"
_JOB = r"\d+([_+](\d+|\[[^\]|]*\]))?(\.\w+)?"
_AMOUNT = r"[\d.]+[KMGTP]?[Bb]?[nc]?|"
_CLIENT = r"(\S*/)?(sbatch|srun|salloc)\b"

_KINDS = {
    _DATE: "submit eligible start end",
    _SPAN: "elapsed timelimit suspended cputime totalcpu systemcpu usercpu avecpu mincpu reserved planned plannedcpu "
    "resvcpu",
    _COUNT: "elapsedraw timelimitraw nnodes ncpus alloccpus reqcpus allocnodes reqnodes uid gid priority cputimeraw "
    "ntasks dbindex associd wckeyid qosraw plannedcpuraw resvcpuraw jobidraw",
    _TRES: "reqtres alloctres tresusageinave tresusageinmax tresusageinmin tresusageintot tresusageoutave "
    "tresusageoutmax tresusageoutmin tresusageouttot",
    _NODES: "nodelist",
    _STATE: "state",
    _JOB: "jobid",
    _AMOUNT: "reqmem avevmsize averss maxrss maxvmsize",
    r"\d+:\d+|": "exitcode derivedexitcode",
    # it begins with a command's name, and Slurm's own commands are not behind a delimiter in another one's arguments
    rf"(?s){_CLIENT}.*|(?!.*\|{_CLIENT})([^\s|]+(\s.*)?)?": "submitline",
}
_OF_LINES = "submitline"  # a column whose text may have line ends; of two ways the one in which it is longer counts
_NAMES = frozenset(("user", "account", "group", "partition", "qos", "dependency"))
_NO_KIND = "?|?"  # fits columns of any text alone
_FREE = frozenset(
    (
        *("jobname", "constraints", "submitline", "comment", "admincomment", "systemcomment", "workdir", "extra"),
        "container",
    )
)


class Field(NamedTuple):
    """A column: what fits it, whether a text in it may hold the delimiter, and whether ways may not differ in it."""

    name: str
    fits: Fits
    free: bool
    read: bool


def sacct_fields(names: Sequence[str], read: Mapping[str, object]) -> list[Field]:
    """The columns of sacct by their names; those of no known kind fit any text without the delimiter."""
    kinds = {name: re.compile(pattern).fullmatch for pattern, some in _KINDS.items() for name in some.split()}
    kinds["jobidraw"] = re.compile(_JOB).fullmatch
    return [
        Field(name, kinds.get(name, lambda text: True), name in _FREE, name in read and name != _OF_LINES)
        for name in (name.lower() for name in names)
    ]


class Aligner:
    """Finds the one way to lay parts onto columns.

    Args:
        fields: the columns.
        delimiter: what is between them.
    """

    def __init__(self, fields: Sequence[Field], delimiter: str) -> None:
        self._fields, self._delimiter = fields, delimiter
        names = [field.name for field in fields]
        self._least = names.index(_OF_LINES) + 1 if _OF_LINES in names else len(names)
        self._typed = [not field.free and not field.fits(_NO_KIND) for field in fields]
        self._near = {at: self._free_near(at) for at in range(len(fields)) if self._is_name(at)}
        self._known: dict[int, set[str]] = {at: set() for at, near in self._near.items() if near}

    def _is_name(self, at: int) -> bool:
        return self._fields[at].read and self._fields[at].name in _NAMES

    def _free_near(self, at: int) -> list[int]:
        """The free columns around a name before the next columns of a known kind: a delimiter may be of either."""
        near = []
        for steps in (range(at + 1, len(self._fields)), range(at - 1, -1, -1)):
            for other in steps:
                if self._typed[other]:
                    break
                near += [other] * self._fields[other].free
        return near

    def learn(self, at: int, texts: set[str]) -> None:
        """Names that one of `learns` had in records that fit."""
        self._known[at] |= texts

    @property
    def learns(self) -> list[int]:
        """The columns whose names are to be learned."""
        return list(self._known)

    def begins(self, parts: Sequence[str]) -> bool:
        """Whether these can be the fields of a record's first line: some texts have several lines."""
        if len(parts) < self._least:
            return False
        reached = {0}  # parts that the columns so far may have taken
        for field in self._fields[: self._least - 1]:
            if field.free:
                reached = set(range(min(reached) + 1, len(parts) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(parts) and field.fits(parts[at])}
            if not reached:
                return False
        return True

    def place(self, parts: Sequence[str]) -> list[str] | None:
        """The fields of a record; None where there is no way, or more than one that is read differently."""
        extra = len(parts) - len(self._fields)
        ways = self._ways(parts, extra) if extra >= 0 else []
        return ways[0] if len(ways) == 1 else None

    def is_sure(self, fields: Sequence[str]) -> bool:
        """Whether names next to a text with a delimiter are such as other records have."""
        return all(
            fields[at] in known or not any(self._delimiter in fields[other] for other in self._near[at])
            for at, known in self._known.items()
        )

    def _ways(self, parts: Sequence[str], extra: int) -> list[list[str]]:
        """At most two ways that differ in what is read: widths of columns from the last to the first."""
        last = len(self._fields)
        ways: Ways = {extra: [((), ())]}
        for at in range(last - 1, -1, -1):
            ways = self._before(at, parts, ways)
            if not ways:
                return []
        return [list(reversed(fields)) for _, fields in ways.get(0, [])]

    def _before(self, at: int, parts: Sequence[str], ways: Ways) -> Ways:
        """The ways with column `at` in front; each is what is read of it, and all its fields, the last first."""
        field = self._fields[at]
        found: Ways = {}
        for left, some in ways.items():
            end = at + left + 1
            widths = range(left + 1 if field.free else 1)
            for wide in reversed(widths) if field.name == _OF_LINES else widths:
                text = self._delimiter.join(parts[end - wide - 1 : end])
                if not field.fits(text) or (not field.free and self._delimiter in text):
                    continue
                for read, fields in some:
                    new = ((*read, text) if field.read else read, (*fields, text))
                    others = found.setdefault(left - wide, [])
                    if len(others) < 2 and all(new[0] != other[0] for other in others):
                        others.append(new)
        return found
