"""Batsim 5's workloads, converted from and to Batsim 4's, object by object.

They differ in the names of profiles, in walltimes (absent where a job has none), and in what Batsim does not know,
which is in the field `extra_data` of jobs and profiles: a text, an object or a list. An object's fields are those that
Batsim 4 has in the job itself; a conversion there and back gives the same file.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from decision.model.errors import InputError
from decision.model.workload import Worth

from .json_text import DECODE_ERRORS, as_rapidjson, with_short_numbers

_NEW = re.compile(rb'"type"\s*:\s*"[A-Za-z]+Profile"')
_OLD = re.compile(rb'"type"\s*:\s*"[a-z_]+"')
_EXTRA = "extra_data"
_STRATEGY = "generation_strategy"
_EACH, _SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"

# Profiles of Batsim 4 and 5, and the fields of each that both know
_PROFILES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("delay", "DelayProfile", ("delay",)),
    ("parallel", "ParallelTaskProfile", ("cpu", "com")),
    ("parallel_homogeneous", "ParallelTaskHomogeneousProfile", ("cpu", "com")),
    ("parallel_homogeneous_total", "ParallelTaskHomogeneousProfile", ("cpu", "com", _STRATEGY)),
    ("composed", "SequentialCompositionProfile", ("seq", "repeat")),
    (
        "parallel_homogeneous_pfs",
        "ParallelTaskOnStorageHomogeneousProfile",
        ("bytes_to_read", "bytes_to_write", "storage", "host", _STRATEGY),
    ),
    ("data_staging", "ParallelTaskDataStagingBetweenStoragesProfile", ("nb_bytes", "from", "to")),
    ("smpi", "TraceReplayProfile", ("filename", "trace_type")),
    ("usage_trace", "TraceReplayProfile", ("filename", "trace_type")),
)
_OLD_FIELDS = {old: (new, {"type", "ret", *fields}) for old, new, fields in _PROFILES}
_NEW_NAMES = {new: old for old, new, _ in reversed(_PROFILES)}
_NOT_IMPLEMENTED = ("ForkJoinCompositionProfile", "ParallelTaskMergeCompositionProfile")
_TRACES = {"smpi": "SMPI", "usage_trace": "FractionalComputation"}
_JOB = ("id", "subtime", "res", "profile", "walltime")
_FORWARDED = ("user", "estimate", *Worth.__struct_fields__)  # what a policy may know of a job


def is_of_5(data: bytes) -> bool:
    """Whether a workload is one of Batsim 5: a profile has one of its types."""
    return _NEW.search(data) is not None


def is_of_4(data: bytes) -> bool:
    """Whether a workload is one of Batsim 4 without doubt: it has profiles, and none is one of Batsim 5."""
    return not is_of_5(data) and _OLD.search(data) is not None


def as_batsim4(data: bytes, name: str, path: str) -> bytes:
    """A workload in Batsim 4's form; one that has it already is returned as it is.

    Args:
        data: the file's.
        name: the workload's.
        path: of the file, for messages.

    Raises:
        InputError: if it cannot be said there; one line with file, job or profile, and field.
    """
    if not is_of_5(data):
        return data
    try:
        file = msgspec.json.decode(data)
    except DECODE_ERRORS:
        return data  # whose reader says why
    if not isinstance(file, dict):
        return data
    file = workload_for_4(file, path)
    for job in file["jobs"] if isinstance(file.get("jobs"), list) else ():
        if isinstance(job, dict) and isinstance(job.get("profile"), str):
            job["profile"] = _short(job["profile"], name, f"{path}: job {job.get('id')!r}, field 'profile'")
    for key, profile in file["profiles"].items() if isinstance(file.get("profiles"), dict) else ():
        if isinstance(profile, dict) and isinstance(profile.get("seq"), list):
            place = f"{path}: profile {key!r}, field 'seq'"
            profile["seq"] = [_short(part, name, place) if isinstance(part, str) else part for part in profile["seq"]]
    return msgspec.json.encode(file)


def _short(profile: str, workload: str, place: str) -> str:
    """A profile's name without its workload's, which Batsim 5 adds where the name does not contain it."""
    if workload not in profile:
        return profile
    prefix, _, rest = profile.partition("!")
    if prefix != workload or not rest:
        problem = f"{profile!r} contains {workload!r}, the workload's name, so that Batsim 5 takes it for a full one"
        raise InputError(f"{place}: {problem}; rename the profile, or write {workload}!{profile}")
    return rest


def workload_for_4(file: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The object of a workload of Batsim 5 in Batsim 4's form. Raises InputError."""
    return _converted(file, path, _job_for_4, _profile_for_4)


def workload_for_5(file: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The object of a workload of Batsim 4 in Batsim 5's form. Raises InputError."""
    return _converted(file, path, _job_for_5, _profile_for_5)


def _converted(file: Mapping[str, Any], path: str, job: Any, profile: Any) -> dict[str, Any]:
    jobs, profiles = file.get("jobs"), file.get("profiles")
    whole = dict(file)
    if isinstance(jobs, list):
        whole["jobs"] = [job(entry, path) if isinstance(entry, dict) else entry for entry in jobs]
    if isinstance(profiles, dict):
        whole["profiles"] = {
            name: profile(name, entry, path) if isinstance(entry, dict) else entry for name, entry in profiles.items()
        }
    return whole


# --- Jobs ----------------------------------------------------------------------------------------------------


def _job_for_4(job: dict[str, Any], path: str) -> dict[str, Any]:
    walltime = job.get("walltime", 1)
    if walltime is None or (isinstance(walltime, int | float) and walltime <= 0):
        reason = f"must be above 0, or absent for none; found {walltime}"
        raise InputError(f"{path}: job {job.get('id')!r}, field 'walltime': {reason}")
    extra = job.get(_EXTRA)
    _check_extra(job, f"{path}: job {job.get('id')!r}")
    if not job.keys() <= {*_JOB, _EXTRA}:  # which Batsim 5 does not forward, where Batsim 4 does
        forwarded = _forwarded_fields(extra)
        return {
            **job,
            _EXTRA: "" if extra is None else extra,
            **{name: forwarded[name] for name in _FORWARDED if name in forwarded},
        }
    if not isinstance(extra, dict) or not extra or not extra.keys().isdisjoint(job):
        forwarded = _forwarded_fields(extra)
        return {**job, **{name: forwarded[name] for name in _FORWARDED if name in forwarded and name not in job}}
    return {**{name: value for name, value in job.items() if name != _EXTRA}, **extra}


def _forwarded_fields(extra: Any) -> dict[str, Any]:
    """The fields of a text that is a JSON object, or of the object itself."""
    if isinstance(extra, str):
        try:
            extra = msgspec.json.decode(extra)
        except DECODE_ERRORS:
            return {}
    return extra if isinstance(extra, dict) else {}


def _job_for_5(job: dict[str, Any], path: str) -> dict[str, Any]:
    fields = {name: value for name, value in job.items() if name in _JOB}
    rest = {name: value for name, value in job.items() if name not in _JOB}
    if fields.get("walltime") == -1:
        rest["walltime"] = fields.pop("walltime")
    if _EXTRA in rest:
        forwarded = _forwarded_fields(rest[_EXTRA])
        if rest[_EXTRA] == "":  # as `_job_for_4` left it
            return {name: value for name, value in job.items() if name != _EXTRA}
        if all(name == _EXTRA or (name in _FORWARDED and forwarded.get(name) == value) for name, value in rest.items()):
            return {**fields, _EXTRA: rest[_EXTRA]}
    return {**fields, _EXTRA: rest} if rest else fields


# --- Profiles ------------------------------------------------------------------------------------------------


def _profile_for_4(name: str, profile: dict[str, Any], path: str) -> dict[str, Any]:
    new, fields = profile.get("type"), dict(profile)
    if new not in _NEW_NAMES:
        lacks = "Batsim 5 does not simulate it" if new in _NOT_IMPLEMENTED else "unknown to Batsim 5"
        raise InputError(f"{path}: profile {name!r}, field 'type': {lacks}; found {new!r}")
    old = _NEW_NAMES[new]
    if old == "parallel_homogeneous":
        old = _homogeneous(name, fields, path)
    elif old == "smpi":
        old = next((kind for kind, trace in _TRACES.items() if trace == fields.get("trace_type")), "")
        if not old:
            reason = f"must be {' or '.join(_TRACES.values())}; found {fields.get('trace_type')!r}"
            raise InputError(f"{path}: profile {name!r}, field 'trace_type': {reason}")
        del fields["trace_type"]
        fields["trace"] = fields.pop("filename", None)
    elif old == "parallel":
        _complete(fields)
    fields["type"] = old
    _check_extra(profile, f"{path}: profile {name!r}")
    extra = fields.get(_EXTRA)
    if not fields.keys() <= {_EXTRA, "trace", *_OLD_FIELDS[old][1]}:  # which Batsim 5 does not forward
        return {**fields, _EXTRA: "" if extra is None else extra}
    if isinstance(extra, dict) and extra and extra.keys().isdisjoint(fields):
        del fields[_EXTRA]
        fields |= extra
    return fields


def _check_extra(fields: Mapping[str, Any], place: str) -> None:
    """Refuse what is neither a text nor an object nor a list, as Batsim 5 does. Raises InputError."""
    if not isinstance(fields.get(_EXTRA, ""), str | dict | list):
        raise InputError(f"{place}, field {_EXTRA!r}: must be a text, an object or a list; found {fields[_EXTRA]}")


def _homogeneous(name: str, profile: dict[str, Any], path: str) -> str:
    strategy = profile.pop(_STRATEGY, _EACH)
    if strategy not in (_EACH, _SPREAD):
        reason = f"must be {_EACH} or {_SPREAD}; found {strategy!r}"
        raise InputError(f"{path}: profile {name!r}, field {_STRATEGY!r}: {reason}")
    return "parallel_homogeneous" if strategy == _EACH else "parallel_homogeneous_total"


def _complete(profile: dict[str, Any]) -> None:
    """A parallel task has both amounts in Batsim 4."""
    cpu, com = profile.get("cpu"), profile.get("com")
    if isinstance(cpu, list) and com is None:
        profile["com"] = [0.0] * len(cpu) ** 2
    elif isinstance(com, list) and cpu is None:
        profile["cpu"] = [0.0] * round(len(com) ** 0.5)


def _profile_for_5(name: str, profile: dict[str, Any], path: str) -> dict[str, Any]:
    old = profile.get("type")
    if old not in _OLD_FIELDS:
        raise InputError(f"{path}: profile {name!r}, field 'type': Batsim 5 cannot say it; found {old!r}")
    new, known = _OLD_FIELDS[old]
    fields: dict[str, Any] = {"type": new}
    if old == "parallel_homogeneous_total":
        fields[_STRATEGY] = _SPREAD
    if old in _TRACES:
        fields["trace_type"] = _TRACES[old]
        profile = {("filename" if key == "trace" else key): value for key, value in profile.items()}
    fields |= {key: value for key, value in profile.items() if key in known and key != "type"}
    rest = {key: value for key, value in profile.items() if key not in known}
    if rest.keys() == {_EXTRA}:
        return {**fields, **rest}
    if rest.get(_EXTRA) == "":  # as `_profile_for_4` left it
        return {**fields, **{key: value for key, value in rest.items() if key != _EXTRA}}
    return {**fields, _EXTRA: rest} if rest else fields


# --- Files ---------------------------------------------------------------------------------------------------


def converted_lines(data: bytes, to: str, path: str) -> Iterator[bytes]:
    """A workload's file in the form of Batsim 4 or 5 (`to`), one job and one profile per line.

    Raises:
        InputError: if it is not a JSON object, or cannot be said there.
    """
    try:
        file = msgspec.json.decode(as_rapidjson(data))
    except DECODE_ERRORS as error:
        raise InputError(f"{path}: not a JSON workload: {error}") from None
    if not isinstance(file, dict):
        raise InputError(f"{path}: not a JSON workload: it is not an object")
    if is_of_5(data) != (to == "5"):
        file = workload_for_5(file, path) if to == "5" else workload_for_4(file, path)
    yield from file_lines(file)


def file_lines(file: Mapping[str, Any]) -> Iterator[bytes]:
    """The text of a workload's object, one job and one profile per line."""
    encode = msgspec.json.encode
    head = {name: value for name, value in file.items() if name not in ("jobs", "profiles")}
    yield (encode(head)[:-1] + b"," if head else b"{") + b'\n"jobs":[\n'
    yield with_short_numbers(b",\n".join(encode(job) for job in file.get("jobs", [])))
    yield b'\n],\n"profiles":{\n'
    profiles = file.get("profiles", {}).items()
    yield with_short_numbers(b",\n".join(encode(name) + b":" + encode(profile) for name, profile in profiles))
    yield b"\n}}\n"
