"""Batsim's workload files read: jobs and profiles in one JSON object.

Follows Batsim 4.2.1 (``jobs``, ``profiles``, ``nb_res``; job ids are integers or strings; `walltime` is -1 or
absent where a job has none; fields that Batsim does not know are kept for the decision process). A workload of Batsim 5
is converted first (`decision.files.profiles`).
"""

import math
import os
import re
from array import array
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Meta, Raw
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.model.columns import Column, JobColumns, Labelled, Rows, numbered, small, worth_rows
from decision.model.dates import DAY, LAST_DATE
from decision.model.demand import read_estimate, read_worth
from decision.model.errors import ConfigError, InputError
from decision.model.trace import Trace, join_traces, read_trace
from decision.model.workload import Job, Parallel, Profile, Workload, Worth, unloadable_part, used_profiles

from .profiles import INT32_MAX, Int32, as_batsim4, check_sequences, read_profile
from .text import (
    DECODE_ERRORS,
    ArrayInParts,
    ArrayPart,
    NotInPartsError,
    as_rapidjson,
    compact,
    explain_text,
    explain_value,
    field_value,
    found_text,
    is_plain_number,
    opened,
    read_bytes,
    split_error,
)

# The objects of a workload file as its JSON has them, and what is wrong with one.


class RawJob(msgspec.Struct, gc=False):
    """A job as its JSON has it, with the fields that Batsim knows."""

    id: Int32 | str
    subtime: Annotated[float, Meta(ge=0)]
    res: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    profile: str
    walltime: float = -1.0
    user: Any = ""
    estimate: Any = None
    value: Any = None
    qos: Any = None
    deadline: Any = None
    expected: Any = None
    recorded: Any = None
    request: Any = None


class RawWorkload(msgspec.Struct):
    """A workload; profiles are read later."""

    nb_res: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    jobs: list[RawJob]
    profiles: dict[str, Raw]
    description: Any = ""
    unix_start_time: Any = None
    time_zone: Any = None


WORKLOAD_DECODER = msgspec.json.Decoder(RawWorkload)

_LOG = re.compile(rb"\s*(;|(-?[\d.]+[ \t]+){17}-?[\d.]+\s)")  # a comment, or 18 numbers
_AS_LOG = "read it as one (load_workload)"


def decode_workload(data: bytes, path: str) -> RawWorkload:
    """The workload in a file. Raises InputError."""
    try:
        return WORKLOAD_DECODER.decode(data)
    except DECODE_ERRORS as error:
        if _LOG.match(data):
            raise InputError(f"{path}: this looks like a log in the Standard Workload Format; {_AS_LOG}") from None
        if not isinstance(error, msgspec.ValidationError):
            raise InputError(f"{path}: not a JSON workload: {explain_text(error, data)}") from None
        text, field = split_error(error)
        found = field_value(data, field) if field else None
        place = f"field {field!r}: " if field else ""
        if match := re.fullmatch(r"jobs\[(\d+)\]\.?(.*)", field):
            jobs, at, field = field_value(data, "jobs"), int(match[1]), match[2]
            job = jobs[at] if jobs and isinstance(jobs[at], dict) else {}  # as far as it can be read
            found = job.get(field)
            place = f"job {job['id']!r}" if "id" in job else f"job number {at + 1}"
            place += f", field {field!r}: " if field else ": "
        raise InputError(f"{path}: {place}{text}{found_text(found) if field else ''}") from None


def full_job_ids(jobs: Sequence[RawJob], name: str, path: str) -> list[str]:
    """Ids as Batsim makes them: ``w0!`` and the id, unless the id contains the workload's name already."""
    ids = []
    for job in jobs:
        short = str(job.id)
        if odd := unloadable_part(short):
            reason = f"Batsim cannot load a job whose id contains {odd!r}; rename the job"
            raise InputError(f"{path}: job {short!r}, field 'id': {reason}")
        if name not in short and "!" not in short:
            ids.append(f"{name}!{short}")
            continue
        prefix, _, rest = short.partition("!")
        if prefix != name or not rest or "!" in rest:
            reason = f"neither a name without '!' and {name!r}, nor '{name}!' and a name; rename the job"
            raise InputError(f"{path}: job {short!r}, field 'id': {reason}")
        ids.append(short)
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise InputError(f"{path}: job {twice!r}, field 'id': used by more than one job; make ids unique")
    return ids


def given_walltime(job: RawJob, full: str, path: str) -> float:
    """Seconds, inf for none. Raises InputError."""
    if job.walltime > 0:
        return job.walltime
    if job.walltime == -1:
        return math.inf
    reason = "must be above 0, or -1 for none"
    raise InputError(f"{path}: job {full!r}, field 'walltime': {reason}; found {job.walltime:g}")


def label(value: Any) -> str:
    """A user or queue, which Batsim leaves to the decision process, as text; empty where it is neither."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def head_seconds(value: Any, least: float, most: float) -> float | None:
    """A time in the file's head, which Batsim does not read; None where it is something else."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and least <= value <= most else None


def given_worth(job: RawJob, full: str, path: str) -> Worth | None:
    """What the job is worth; None where it does not say. Raises InputError."""
    if job.value is None and job.qos is None and job.deadline is None and job.expected is None:
        return None
    try:
        return read_worth(msgspec.structs.asdict(job), job.subtime)
    except ConfigError as error:
        raise InputError(f"{path}: job {full!r}, {error}") from None


# Each job's JSON as Batsim forwards it: the file's own, without what was recorded, from memory or from the file.

Stamp = tuple[int, ...]

TRACE_FIELDS = ("recorded", "request")  # not for who decides: see `decision.model.trace`


class _Sources(msgspec.Struct):
    jobs: list[dict[str, Raw]]


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_SOURCES = msgspec.json.Decoder(_Sources)
_ENCODER = msgspec.json.Encoder()


def job_sources(data: bytes, ids: Sequence[str]) -> list[bytes]:
    """Each job's JSON with its full id, as Batsim forwards it."""
    return [_source(fields, full) for fields, full in zip(_SOURCES.decode(data).jobs, ids, strict=True)]


def _source(fields: dict[str, Raw], full: str) -> bytes:
    for name in TRACE_FIELDS:
        fields.pop(name, None)
    fields["id"] = Raw(_ENCODER.encode(full))
    return compact(_ENCODER.encode(fields))


def without_trace(data: bytes) -> bytes:
    """A workload that can be read, as it is but for what was recorded of its jobs."""
    fields = _FIELDS.decode(data)
    jobs = msgspec.json.decode(fields["jobs"], type=list[dict[str, Raw]])
    for job in jobs:
        for name in TRACE_FIELDS:
            job.pop(name, None)
    return _ENCODER.encode(fields | {"jobs": jobs})


class SourcesInFile(Column[bytes]):
    """Each job's JSON as Batsim forwards it, made of the file's when it is asked for.

    Args:
        path: the file.
        stamp: of the file when it was read.
        ids: (n,) of the jobs.
        begin: (n,) byte at which each begins.
        length: (n,) bytes of each.
    """

    def __init__(
        self, path: str, stamp: Stamp, ids: Column[str], begin: NDArray[np.int64], length: NDArray[np.int32]
    ) -> None:
        self._path, self._stamp, self._ids, self._begin, self._length = path, stamp, ids, begin, length

    def __len__(self) -> int:
        return len(self._begin)

    def item(self, row: int) -> bytes:
        """The JSON of a row. Raises InputError if the file has changed."""
        return self.take(slice(row, row + 1)).made()[0]

    def made(self) -> list[bytes]:
        """All of them. Raises InputError if the file has changed."""
        with opened(self._path) as file:
            if stamp_of(file) != self._stamp:
                raise InputError(f"{self._path}: was changed while it was in use; start again")
            texts = []
            for begin, length in zip(self._begin.tolist(), self._length.tolist(), strict=True):
                file.seek(begin)
                texts.append(file.read(length))
        return [_source(_FIELDS.decode(as_rapidjson(t)), full) for t, full in zip(texts, self._ids.made(), strict=True)]

    def take(self, rows: Rows) -> "SourcesInFile":
        """The sources of these rows, in this order."""
        places = self._begin[rows], self._length[rows]
        return SourcesInFile(self._path, self._stamp, self._ids.take(rows), *places)


def stamp_of(file: BinaryIO) -> Stamp:
    """What shows that a file has not changed."""
    stat = os.fstat(file.fileno())
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


# The jobs of a large workload file as columns that grow part by part.

_JOBS = msgspec.json.Decoder(list[RawJob])


class GrowingJobs:
    """The columns of jobs whose ids are numbers, growing part by part."""

    def __init__(self, name: str, path: str) -> None:
        self._name, self._path = name, path
        self._ids, self._size = array("q"), array("i")
        self._submit, self.given_walltime, self._estimate = array("d"), array("d"), array("d")
        self.given_worth: list[tuple[int, NDArray[np.float64] | None]] = []  # by part: jobs, and what they are worth
        self._profile, self._user = array("i"), array("i")
        self._profiles: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._traces: list[Trace] = []  # by part
        self._begin, self._length = array("q"), array("i")  # bytes: each job's JSON in the file

    def add(self, part: ArrayPart) -> None:
        """Add some jobs. Raises NotInPartsError, InputError, or one of DECODE_ERRORS."""
        jobs = _JOBS.decode(b"[" + as_rapidjson(part.text) + b"]")
        full = full_job_ids(jobs, self._name, self._path)
        if not all(is_plain_number(str(job.id)) for job in jobs):
            raise NotInPartsError
        self._ids.extend([int(job.id) for job in jobs])
        self._submit.extend([job.subtime for job in jobs])
        self._size.extend([job.res for job in jobs])
        self.given_walltime.extend([given_walltime(job, i, self._path) for job, i in zip(jobs, full, strict=True)])
        self._estimate.extend([read_estimate(job.estimate) for job in jobs])
        self.given_worth.append(
            (len(jobs), worth_rows([given_worth(job, i, self._path) for job, i in zip(jobs, full, strict=True)]))
        )
        self._profile.extend([self._profiles.setdefault(job.profile, len(self._profiles)) for job in jobs])
        self._user.extend([self._users.setdefault(label(job.user), len(self._users)) for job in jobs])
        submit = np.array([job.subtime for job in jobs])
        trace = read_trace((), submit, [(job.recorded, job.request) for job in jobs])
        self._traces.append(trace or Trace(id=(), wait=np.full(len(full), math.nan)))
        at = 0
        for source in part.objects:
            at, length = part.text.index(b"{", at), memoryview(source).nbytes
            self._begin.append(part.begin + at)
            self._length.append(length)
            at += length

    def jobs(self, stamp: Stamp | None) -> JobColumns:
        """All jobs, with their JSON in the file that has this stamp, if any. Raises NotInPartsError."""
        numbers = np.array(self._ids)
        if len(np.unique(numbers)) < len(numbers):
            raise NotInPartsError
        ids = numbered(self._name, numbers)
        places = np.array(self._begin), np.array(self._length)
        estimate = np.array(self._estimate)
        worth = None
        if any(rows is not None for _, rows in self.given_worth):
            parts = (np.full((n, 4), math.nan) if rows is None else rows for n, rows in self.given_worth)
            worth = np.concatenate(list(parts))
        return JobColumns(
            id=ids,
            submit_time=np.array(self._submit),
            size=np.array(self._size),
            walltime=np.array(self.given_walltime),
            profile=Labelled(list(self._profiles), small(np.array(self._profile))),
            user=Labelled(list(self._users), small(np.array(self._user))),
            estimate=None if np.isnan(estimate).all() else estimate,
            worth=worth,
            source=SourcesInFile(self._path, stamp, ids, *places) if stamp else None,
        )

    def trace(self, jobs: JobColumns) -> Trace | None:
        """What was recorded of the jobs; None where nothing was."""
        trace = join_traces(self._traces, jobs.id)
        return trace if trace.recorded or trace.request or not np.isnan(trace.wait).all() else None


LARGE = 32 << 20  # bytes of a file whose jobs are kept as columns
_KNOWN_FIELDS = frozenset(("id", "subtime", "res", "profile", "walltime", *TRACE_FIELDS))


def load_json(
    path: str | os.PathLike[str], name: str = "w0", keep_source: bool = False, keep_extra: bool = False
) -> Workload:
    """Read a workload of Batsim's.

    Jobs keep the file's order. Profiles that no job uses are left out, as Batsim does. The jobs of a large file are
    columns (`decision.model.columns`), and a job's source is read from the file again when it is asked for.

    Args:
        path: the JSON file.
        name: the workload's name, the part of job ids before ``!``.
        keep_source: keep each job's and profile's JSON as Batsim forwards it (see `Job.source`).
        keep_extra: keep what Batsim does not know: such fields of jobs in `Job.extra`, the JSON of profiles.

    Raises:
        InputError: if Batsim would refuse the file; one line with file, job or profile, and field.
    """
    where = str(path)
    if not keep_extra:
        with suppress(NotInPartsError, InputError, *DECODE_ERRORS), opened(where) as opened_file:
            if os.fstat(opened_file.fileno()).st_size >= LARGE:
                return _read_parts(opened_file, where, name, keep_source)
    # it is small, or is read as a whole for its error
    data = as_batsim4(as_rapidjson(read_bytes(path)), where)
    file = decode_workload(data, where)
    profiles = _read_profiles(file.profiles, where)
    named = {job.profile for job in file.jobs}
    if missing := named - profiles.keys():
        job = next(job for job in file.jobs if job.profile in missing)
        mistake = f"the profile {job.profile!r} does not exist; add it"
        raise InputError(f"{where}: job {job.id!r}, field 'profile': {mistake}")
    used = used_profiles(profiles, named)
    ids = full_job_ids(file.jobs, name, where)
    jobs = _jobs(
        file.jobs,
        ids,
        profiles,
        where,
        job_sources(data, ids) if keep_source else None,
        _job_extras(data) if keep_extra else None,
    )
    submit = np.array([job.subtime for job in file.jobs], np.float64)
    trace = read_trace(ids, submit, [(job.recorded, job.request) for job in file.jobs])
    return replace(_workload(file, name, where, jobs, profiles, used, keep_source or keep_extra), trace=trace)


def _workload(
    file: RawWorkload,
    name: str,
    path: str,
    jobs: Sequence[Job],
    profiles: Mapping[str, Profile],
    used: Container[str],
    keep_sources: bool,
) -> Workload:
    raw = file.profiles if keep_sources else {}
    return Workload(
        name=name,
        jobs=jobs,
        profiles={key: profile for key, profile in profiles.items() if key in used},
        nb_res=file.nb_res,
        path=path,
        description=file.description if isinstance(file.description, str) else "",
        unix_start=head_seconds(file.unix_start_time, 0.0, LAST_DATE),
        time_zone=head_seconds(file.time_zone, -DAY, DAY) or 0.0,
        profile_sources={key: compact(source) for key, source in raw.items()},
    )


def _read_profiles(sources: Mapping[str, Raw], path: str) -> dict[str, Profile]:
    profiles = {}
    for name, source in sources.items():
        try:
            profiles[name] = read_profile(source)
        except msgspec.ValidationError as error:
            raise InputError(explain_value(f"{path}: profile {name!r}", error, source)) from None
    check_sequences(profiles, path)
    return profiles


def _jobs(
    jobs: Sequence[RawJob],
    ids: Sequence[str],
    profiles: Mapping[str, Profile],
    path: str,
    sources: Sequence[bytes] | None,
    extras: Sequence[Mapping[str, Any] | None] | None,
) -> tuple[Job, ...]:
    names = {name: name for name in profiles}  # one string per profile, not one per job
    widths = {name: len(p.flops) for name, p in profiles.items() if isinstance(p, Parallel)}
    built = []
    for index, (job, full) in enumerate(zip(jobs, ids, strict=True)):
        if widths and widths.get(job.profile, job.res) != job.res:
            reason = f"{job.res} hosts, but its parallel profile {job.profile!r} has {widths[job.profile]}"
            raise InputError(f"{path}: job {full!r}, field 'res': {reason}; make them equal")
        built.append(
            Job(
                id=full,
                submit_time=job.subtime,
                size=job.res,
                walltime=given_walltime(job, full, path),
                profile=names[job.profile],
                user=label(job.user),
                estimate=read_estimate(job.estimate),
                worth=given_worth(job, full, path),
                extra=extras[index] if extras else None,
                source=sources[index] if sources else None,
            )
        )
    return tuple(built)


def _job_extras(data: bytes) -> list[dict[str, Any] | None]:
    """Each job's fields that Batsim does not know, and a user that is not a name."""
    extras: list[dict[str, Any] | None] = []
    for fields in msgspec.json.decode(data)["jobs"]:
        known = _KNOWN_FIELDS | {"user"} if label(fields.get("user")) else _KNOWN_FIELDS
        known |= set() if math.isnan(read_estimate(fields.get("estimate"))) else {"estimate"}
        known |= {name for name in Worth.__struct_fields__ if not math.isnan(read_estimate(fields.get(name)))}
        extras.append({key: value for key, value in fields.items() if key not in known} or None)
    return extras


# --- Large files --------------------------------------------------------------------------------------------------


def _read_parts(file: BinaryIO, path: str, name: str, keep_source: bool) -> Workload:
    array_of_jobs, columns = ArrayInParts(file, "jobs"), GrowingJobs(name, path)
    for part in array_of_jobs:
        columns.add(part)
    rest = WORKLOAD_DECODER.decode(as_rapidjson(array_of_jobs.rest))
    profiles = _read_profiles(rest.profiles, path)
    jobs = columns.jobs(stamp_of(file) if keep_source else None)
    if not profiles.keys() >= set(jobs.profile.labels) or any(isinstance(p, Parallel) for p in profiles.values()):
        raise NotInPartsError
    used = used_profiles(profiles, jobs.profile.labels)
    return replace(_workload(rest, name, path, jobs, profiles, used, keep_source), trace=columns.trace(jobs))
