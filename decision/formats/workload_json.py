"""Batsim's workload files read: jobs and profiles in one JSON object.

Follows Batsim 4.2.1 (``jobs``, ``profiles``, ``nb_res``; job ids are integers or strings; `walltime` is -1 or
absent where a job has none; fields that Batsim does not know are kept for the decision process).
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Raw

from decision.model.dates import DAY, LAST_DATE
from decision.model.errors import InputError
from decision.model.workload import Job, Parallel, Profile, Workload, unloadable_part, used_profiles

from .files import read_bytes
from .json_text import (
    DECODE_ERRORS,
    as_rapidjson,
    compact,
    explain_text,
    explain_value,
    field_value,
    found_text,
    split_error,
)
from .profiles import INT32_MAX, Int32, check_sequences, read_profile


class _Job(msgspec.Struct, gc=False):
    id: Int32 | str
    subtime: Annotated[float, Meta(ge=0)]
    res: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    profile: str
    walltime: float = -1.0
    user: Any = ""


class _File(msgspec.Struct):
    nb_res: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    jobs: list[_Job]
    profiles: dict[str, Raw]
    description: Any = ""
    unix_start_time: Any = None
    time_zone: Any = None


class _Sources(msgspec.Struct):
    jobs: list[dict[str, Raw]]


_FILE = msgspec.json.Decoder(_File)
_SOURCES = msgspec.json.Decoder(_Sources)
_ENCODER = msgspec.json.Encoder()
_LOG = re.compile(rb"\s*(;|(-?[\d.]+[ \t]+){17}-?[\d.]+\s)")  # a comment, or 18 numbers
_AS_LOG = "let its name end in .swf where a log is read"
_KNOWN_FIELDS = frozenset(("id", "subtime", "res", "profile", "walltime"))


def load_json(
    path: str | os.PathLike[str], name: str = "w0", keep_source: bool = False, keep_extra: bool = False
) -> Workload:
    """Read a workload of Batsim's.

    Jobs keep the file's order. Profiles that no job uses are left out, as Batsim does.

    Args:
        path: the JSON file.
        name: the workload's name, the part of job ids before ``!``.
        keep_source: keep each job's and profile's JSON as Batsim forwards it (see `Job.source`).
        keep_extra: keep what Batsim does not know: such fields of jobs in `Job.extra`, the JSON of profiles.

    Raises:
        InputError: if Batsim would refuse the file; one line with file, job or profile, and field.
    """
    where = str(path)
    data = as_rapidjson(read_bytes(path))
    file = _decode(data, where)
    profiles = _read_profiles(file.profiles, where)
    used = used_profiles(profiles, _named_profiles(file.jobs, profiles, where))
    raw = file.profiles if keep_source or keep_extra else {}
    ids = _full_ids(file.jobs, name, where)
    return Workload(
        name=name,
        jobs=_jobs(
            file.jobs,
            ids,
            profiles,
            where,
            _job_sources(data, ids) if keep_source else None,
            _job_extras(data) if keep_extra else None,
        ),
        profiles={key: profile for key, profile in profiles.items() if key in used},
        nb_res=file.nb_res,
        path=where,
        description=file.description if isinstance(file.description, str) else "",
        unix_start=_seconds(file.unix_start_time, 0.0, LAST_DATE),
        time_zone=_seconds(file.time_zone, -DAY, DAY) or 0.0,
        profile_sources={key: compact(source) for key, source in raw.items() if key in used},
    )


def _decode(data: bytes, path: str) -> _File:
    try:
        return _FILE.decode(data)
    except DECODE_ERRORS as error:
        if _LOG.match(data):
            raise InputError(f"{path}: this looks like a log in the Standard Workload Format; {_AS_LOG}") from None
        if isinstance(error, msgspec.ValidationError):
            raise InputError(f"{path}: {_explain(error, data)}") from None
        raise InputError(f"{path}: not a JSON workload: {explain_text(error, data)}") from None


def _explain(error: msgspec.ValidationError, data: bytes) -> str:
    text, where = split_error(error)
    match = re.fullmatch(r"jobs\[(\d+)\]\.?(.*)", where)
    if not match:
        return f"field {where!r}: {text}{found_text(field_value(data, where))}" if where else text
    job = _loose_job(data, int(match[1]))
    name = f"job {job['id']!r}" if "id" in job else f"job number {int(match[1]) + 1}"
    return f"{name}, field {match[2]!r}: {text}{found_text(job.get(match[2]))}" if match[2] else f"{name}: {text}"


def _loose_job(data: bytes, index: int) -> dict[str, Any]:
    """The job as far as it can be read, for an error message."""
    jobs = field_value(data, "jobs")
    return jobs[index] if jobs and isinstance(jobs[index], dict) else {}


def _read_profiles(sources: Mapping[str, Raw], path: str) -> dict[str, Profile]:
    profiles = {}
    for name, source in sources.items():
        try:
            profiles[name] = read_profile(source)
        except msgspec.ValidationError as error:
            raise InputError(explain_value(f"{path}: profile {name!r}", error, source)) from None
    check_sequences(profiles, path)
    return profiles


def _named_profiles(jobs: Sequence[_Job], profiles: Mapping[str, Profile], path: str) -> set[str]:
    """The names of the profiles that jobs use."""
    named = {job.profile for job in jobs}
    missing = named - profiles.keys()
    if missing:
        job = next(job for job in jobs if job.profile in missing)
        raise InputError(f"{path}: job {job.id!r}, field 'profile': the profile {job.profile!r} does not exist; add it")
    return named


def _full_ids(jobs: Sequence[_Job], name: str, path: str) -> list[str]:
    """Ids as Batsim makes them: ``w0!`` and the id, unless the id contains the workload's name already."""
    ids = []
    for job in jobs:
        short = str(job.id)
        if odd := unloadable_part(short):
            reason = f"Batsim cannot load a job whose id contains {odd!r}; rename the job"
            raise InputError(f"{path}: job {short!r}, field 'id': {reason}")
        ids.append(f"{name}!{short}" if name not in short and "!" not in short else _given_id(short, name, path))
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise InputError(f"{path}: job {twice!r}, field 'id': used by more than one job; make ids unique")
    return ids


def _given_id(text: str, name: str, path: str) -> str:
    prefix, _, rest = text.partition("!")
    if prefix == name and rest and "!" not in rest:
        return text
    reason = f"neither a name without '!' and {name!r}, nor '{name}!' and a name; rename the job"
    raise InputError(f"{path}: job {text!r}, field 'id': {reason}")


def _jobs(
    jobs: Sequence[_Job],
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
            _refuse_width(path, full, job, widths[job.profile])
        built.append(
            Job(
                id=full,
                submit_time=job.subtime,
                size=job.res,
                walltime=job.walltime if job.walltime > 0 else _no_walltime(job, full, path),
                profile=names[job.profile],
                user=label(job.user),
                extra=extras[index] if extras else None,
                source=sources[index] if sources else None,
            )
        )
    return tuple(built)


def _no_walltime(job: _Job, full: str, path: str) -> float:
    if job.walltime == -1:
        return math.inf
    reason = "must be above 0, or -1 for none"
    raise InputError(f"{path}: job {full!r}, field 'walltime': {reason}; found {job.walltime:g}")


def label(value: Any) -> str:
    """A user or queue, which Batsim leaves to the decision process, as text; empty where it is neither."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _seconds(value: Any, least: float, most: float) -> float | None:
    """A time in the file's head, which Batsim does not read; None where it is something else."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and least <= value <= most else None


def _refuse_width(path: str, full: str, job: _Job, width: int) -> NoReturn:
    reason = f"{job.res} hosts, but its parallel profile {job.profile!r} has {width}; make them equal"
    raise InputError(f"{path}: job {full!r}, field 'res': {reason}")


def _job_sources(data: bytes, ids: Sequence[str]) -> list[bytes]:
    """Each job's JSON with its full id, as Batsim forwards it."""
    sources = []
    for fields, full in zip(_SOURCES.decode(data).jobs, ids, strict=True):
        fields["id"] = Raw(_ENCODER.encode(full))
        sources.append(compact(_ENCODER.encode(fields)))
    return sources


def _job_extras(data: bytes) -> list[dict[str, Any] | None]:
    """Each job's fields that Batsim does not know, and a user that is not a name."""
    extras: list[dict[str, Any] | None] = []
    for fields in msgspec.json.decode(data)["jobs"]:
        known = _KNOWN_FIELDS | {"user"} if label(fields.get("user")) else _KNOWN_FIELDS
        extras.append({key: value for key, value in fields.items() if key not in known} or None)
    return extras
