"""Batsim's workload files read: jobs and profiles in one JSON object.

Follows Batsim 4.2.1 (``jobs``, ``profiles``, ``nb_res``; job ids are integers or strings; `walltime` is -1 or
absent where a job has none; fields that Batsim does not know are kept for the decision process). A workload of Batsim 5
is converted first (`decision.formats.workload5`).
"""

import math
import os
from collections.abc import Container, Mapping, Sequence
from typing import Any, BinaryIO, NoReturn

import msgspec
import numpy as np
from msgspec import Raw
from msgspec.structs import replace

from decision.model.dates import DAY, LAST_DATE
from decision.model.demand import read_estimate
from decision.model.errors import InputError
from decision.model.trace import read_trace
from decision.model.workload import Job, Parallel, Profile, Workload, Worth, used_profiles

from .files import opened, read_bytes
from .job_sources import TRACE_FIELDS, job_sources, stamp_of
from .json_parts import ArrayInParts, NotInPartsError
from .json_text import DECODE_ERRORS, as_rapidjson, compact, explain_value
from .profiles import check_sequences, read_profile
from .workload5 import as_batsim4
from .workload_columns import GrowingJobs
from .workload_objects import (
    WORKLOAD_DECODER,
    RawJob,
    RawWorkload,
    decode_workload,
    full_job_ids,
    given_walltime,
    given_worth,
    head_seconds,
    label,
)

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
    if not keep_extra and (large := _load_large(where, name, keep_source)):
        return large
    data = as_batsim4(as_rapidjson(read_bytes(path)), where)
    file = decode_workload(data, where)
    profiles = _read_profiles(file.profiles, where)
    used = used_profiles(profiles, _named_profiles(file.jobs, profiles, where))
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


def _named_profiles(jobs: Sequence[RawJob], profiles: Mapping[str, Profile], path: str) -> set[str]:
    """The names of the profiles that jobs use."""
    named = {job.profile for job in jobs}
    missing = named - profiles.keys()
    if missing:
        job = next(job for job in jobs if job.profile in missing)
        raise InputError(f"{path}: job {job.id!r}, field 'profile': the profile {job.profile!r} does not exist; add it")
    return named


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
            _refuse_width(path, full, job, widths[job.profile])
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


def _refuse_width(path: str, full: str, job: RawJob, width: int) -> NoReturn:
    reason = f"{job.res} hosts, but its parallel profile {job.profile!r} has {width}; make them equal"
    raise InputError(f"{path}: job {full!r}, field 'res': {reason}")


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


def _load_large(path: str, name: str, keep_source: bool) -> Workload | None:
    """A workload with its jobs as columns; None where the file is small, or is to be read as a whole for its error."""
    try:
        with opened(path) as file:
            large = os.fstat(file.fileno()).st_size >= LARGE
            return _read_parts(file, path, name, keep_source) if large else None
    except (NotInPartsError, InputError, *DECODE_ERRORS):
        return None


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
