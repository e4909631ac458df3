"""What a log recorded of its jobs, next to the jobs: nothing that decides or simulates sees it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from .columns import JobColumns, Labelled, labelled
from .record import Floats, Ints
from .workload import Job, Workload

Field = NDArray[np.float64] | Labelled[str]  # (n,) nan or "" where unknown
Fields = Mapping[str, Field]

_DIGITS = 6  # decimals of a start that is made of a submission and a wait


class Trace(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What happened to jobs, and what they asked for, by job id. Columns of length n.

    `recorded` may have ``size`` (hosts allocated), ``state``, ``nodes``, ``memory`` (KB a host), ``cpu_time`` and
    ``suspended`` (s), ``gpus``, ``fields`` (of SWF, those after the 18th); `request` ``size``, ``walltime``,
    ``memory``, ``partition``, ``account``, ``qos``, ``gpus``, ``dependency`` and ``think_time`` (s).
    """

    id: Sequence[str]
    wait: Floats  # seconds from submission to start, nan where unknown
    recorded: Fields = {}
    request: Fields = {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return (
            self.id == other.id
            and _are_same(self.wait, other.wait)
            and _are_same_fields(self.recorded, other.recorded)
            and _are_same_fields(self.request, other.request)
        )

    __hash__ = None  # type: ignore[assignment]

    def rows(self, ids: Iterable[str]) -> Ints:
        """Where these jobs are, -1 for those that are not there."""
        where = {job: row for row, job in enumerate(self.id)}
        return np.array([where.get(job, -1) for job in ids], np.int64)

    def of(self, ids: Iterable[str]) -> "Trace":
        """The records of these jobs, in their order; what is not known is empty."""
        rows = self.rows(ids)
        return Trace(
            id=[self.id[row] if row >= 0 else "" for row in rows.tolist()],
            wait=_taken(self.wait, rows),
            recorded={name: _taken(field, rows) for name, field in self.recorded.items()},
            request={name: _taken(field, rows) for name, field in self.request.items()},
        )

    def part(self, rows: slice) -> "Trace":
        """Some jobs that follow each other."""
        return Trace(
            id=self.id[rows],
            wait=self.wait[rows],
            recorded={name: field[rows] for name, field in self.recorded.items()},
            request={name: field[rows] for name, field in self.request.items()},
        )

    def number(self, part: str, name: str) -> Floats:
        """A field of ``recorded`` or ``request``, (n,), nan where it is not known; to be read only."""
        field = getattr(self, part).get(name)
        return field if isinstance(field, np.ndarray) else np.broadcast_to(np.nan, len(self.wait))

    def texts(self, part: str, name: str) -> Labelled[str]:
        """A field of ``recorded`` or ``request`` as texts, "" where it is not known."""
        field = getattr(self, part).get(name)
        return field if isinstance(field, Labelled) else Labelled([""], np.zeros(len(self.wait), np.uint8))

    def without_times(self) -> "Trace":
        """The same with no start known, for jobs that come at other times than they came."""
        return msgspec.structs.replace(self, wait=np.full(len(self.wait), np.nan))


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a workload was read: what became of each record, and what was decided on the way."""

    format: str
    records: int
    joined: int = 0  # records that are a job together with another one
    unit: str = "hosts"  # what a host of the workload is: nodes, cores, gpus, or what the log counts
    unit_reason: str = ""
    unit_changes: int | None = None  # jobs that have another size in the other unit
    hosts_from: str = ""
    requested: int = 0  # jobs with a requested time
    lost: Mapping[str, int] = {}  # what a workload cannot say, with how many jobs it is true of
    clock: str = ""  # whose clock its times are
    misfit: str = ""  # the first record whose fields do not fit, and which field that is


def _are_same_fields(some: Fields, others: Fields) -> bool:
    return some.keys() == others.keys() and all(_are_same(field, others[name]) for name, field in some.items())


def _are_same(some: Field, other: Field) -> bool:
    """Whether columns are equal; what is not known is equal to what is not known."""
    if isinstance(some, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(some, other, equal_nan=True)
    return type(some) is type(other) and some == other


def _taken(field: Any, rows: Ints) -> Any:
    """A field of these rows, unknown where there is none (-1)."""
    if isinstance(field, np.ndarray):
        return np.where(rows >= 0, field[rows], np.nan) if len(field) else np.full(len(rows), np.nan)
    return labelled([field[row] if row >= 0 else "" for row in rows.tolist()])


def without_records(workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads without what was recorded of them: for all that decides or simulates."""
    return [given if given.trace is None else msgspec.structs.replace(given, trace=None) for given in workloads]


def of_jobs(trace: Trace, jobs: Sequence[Job]) -> Trace:
    """The records of these jobs, in their order."""
    if isinstance(jobs, JobColumns) and jobs.id is trace.id:
        return trace
    return trace.of(jobs.id if isinstance(jobs, JobColumns) else [job.id for job in jobs])


def join_traces(parts: Sequence[Trace], ids: Sequence[str]) -> Trace:
    """Traces one after the other as one, of jobs with these ids."""

    def fields(part: str) -> dict[str, Field]:
        names = dict.fromkeys(name for trace in parts for name in getattr(trace, part))
        return {name: _joined([(getattr(trace, part).get(name), len(trace.wait)) for trace in parts]) for name in names}

    wait = np.concatenate([trace.wait for trace in parts])
    return Trace(id=ids, wait=wait, recorded=fields("recorded"), request=fields("request"))


def _joined(fields: Sequence[tuple[Field | None, int]]) -> Field:
    """A field of all parts, each with its length; texts where one part has texts."""
    if any(isinstance(field, Labelled) for field, _ in fields):
        texts = [
            [""] * count if field is None else ["" if item is None else str(item) for item in _items(field)]
            for field, count in fields
        ]
        return labelled([text for part in texts for text in part])
    return np.concatenate([np.full(count, np.nan) if field is None else field for field, count in fields])


def trace_fields(trace: Trace, submit: Floats) -> Iterable[dict[str, dict[str, Any]]]:
    """Each job's ``recorded`` and ``request`` as a file has them, of those that are not empty.

    Args:
        trace: of the jobs.
        submit: (n,) seconds, when they are submitted: a start is written, not a wait.
    """
    start = np.round(submit + trace.wait, _DIGITS)
    parts = {"recorded": {"start": start, **trace.recorded}, "request": dict(trace.request)}
    columns = {part: {name: list(_items(field)) for name, field in fields.items()} for part, fields in parts.items()}
    for row in range(len(submit)):
        known = {
            part: {name: items[row] for name, items in fields.items() if items[row] not in ("", None)}
            for part, fields in columns.items()
        }
        yield {part: fields for part, fields in known.items() if fields}


def says(field: Field) -> bool:
    """Whether a field is known of any job."""
    return bool(any(field.used())) if isinstance(field, Labelled) else not bool(np.isnan(field).all())


def _items(field: Field) -> Iterable[Any]:
    if isinstance(field, np.ndarray):
        return (None if value != value else int(value) if value % 1 == 0 else value for value in field.tolist())
    return field


def read_trace(ids: Sequence[str], submit: Floats, parts: Sequence[tuple[Any, Any]]) -> Trace | None:
    """What files say under ``recorded`` and ``request`` of their jobs; None where they say nothing.

    Args:
        ids: of the jobs, (n,).
        submit: (n,) seconds.
        parts: (n,) the two objects of each job; what is not an object says nothing.
    """
    recorded = _columns([part[0] for part in parts])
    request = _columns([part[1] for part in parts])
    if not recorded and not request:
        return None
    start = recorded.pop("start", None)
    wait = start - submit if isinstance(start, np.ndarray) else np.full(len(submit), np.nan)
    return Trace(id=ids, wait=np.round(wait, _DIGITS), recorded=recorded, request=request)


def _columns(objects: Sequence[Any]) -> dict[str, Field]:
    rows = [each if isinstance(each, dict) else {} for each in objects]
    return {
        name: _column([row.get(name) for row in rows]) for name in dict.fromkeys(key for row in rows for key in row)
    }


def _column(values: Sequence[Any]) -> Field:
    """Numbers where all that is known is a number, else texts."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return labelled(["" if value is None else str(value) for value in values])
