"""The objects of a workload file as its JSON has them, and what is wrong with one."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from decision.model.demand import read_worth
from decision.model.errors import ConfigError, InputError
from decision.model.workload import Worth, unloadable_part

from .json_text import DECODE_ERRORS, explain_text, field_value, found_text, split_error
from .profiles import INT32_MAX, Int32


class RawJob(msgspec.Struct, gc=False):
    """A job."""

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


def full_job_ids(jobs: Sequence[RawJob], name: str, path: str) -> list[str]:
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
