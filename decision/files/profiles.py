"""Batsim's JSON: profiles to the model and back, workloads written, and converted between Batsim 4 and 5.

A workload of Batsim 5 differs in the names of profiles, in walltimes (absent where a job has none), and in what Batsim
does not know, which is in the field `extra_data` of jobs and profiles: a text, an object or a list. An object's fields
are those that Batsim 4 has in the job itself; a conversion there and back gives the same file.
"""

import difflib
import graphlib
import os
import re
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw

from decision.model.columns import DelayProfiles, Labelled, Texts, coded
from decision.model.demand import submit_times
from decision.model.errors import InputError
from decision.model.record import Floats
from decision.model.trace import of_jobs, trace_fields
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
    Worth,
)

from .text import DECODE_ERRORS, as_rapidjson, json_bytes, with_short_numbers, write_files

INT32_MAX = 2**31 - 1
Int32 = Annotated[int, Meta(ge=-INT32_MAX - 1, le=INT32_MAX)]
Amount = Annotated[float, Meta(ge=0)]
Amounts = Annotated[tuple[Amount, ...], Meta(min_length=1)]

FOREIGN_TYPES = ("parallel_homogeneous_pfs", "data_staging", "send", "recv", "smpi", "usage_trace")
RENAMED_TYPES = {  # since Batsim 3.0
    "msg_par": "parallel",
    "msg_par_hg": "parallel_homogeneous",
    "msg_par_hg_tot": "parallel_homogeneous_total",
    "msg_par_hg_pfs": "parallel_homogeneous_pfs",
}


class _DelaySpec(msgspec.Struct, tag="delay"):
    delay: Annotated[float, Meta(gt=0)]
    ret: Int32 = 0

    def build(self) -> Profile:
        return Delay(self.delay, self.ret)


class _HomogeneousSpec(msgspec.Struct, tag="parallel_homogeneous"):
    cpu: Amount
    com: Amount
    ret: Int32 = 0

    def build(self) -> Profile:
        return ParallelHomogeneous(self.cpu, self.com, self.ret)


class _TotalSpec(msgspec.Struct, tag="parallel_homogeneous_total"):
    cpu: Amount
    com: Amount
    ret: Int32 = 0

    def build(self) -> Profile:
        return ParallelHomogeneousTotal(self.cpu, self.com, self.ret)


class _ParallelSpec(msgspec.Struct, tag="parallel"):
    cpu: Amounts
    com: Amounts
    ret: Int32 = 0

    def build(self) -> Profile:
        wanted = len(self.cpu) ** 2
        if len(self.com) != wanted:
            raise msgspec.ValidationError(f"must have {wanted} values for {len(self.cpu)} hosts - at `$.com`")
        return Parallel(self.cpu, self.com, self.ret)


class _ComposedSpec(msgspec.Struct, tag="composed"):
    seq: Annotated[tuple[str, ...], Meta(min_length=1)]
    repeat: Annotated[int, Meta(ge=1, le=INT32_MAX)] = 1
    ret: Int32 = 0

    def build(self) -> Profile:
        return Composed(self.seq, self.repeat, self.ret)


class _ForeignSpec(msgspec.Struct):
    type: str
    ret: Int32 = 0


_Spec = _DelaySpec | _HomogeneousSpec | _TotalSpec | _ParallelSpec | _ComposedSpec
_KNOWN = msgspec.json.Decoder(_Spec)
_FOREIGN = msgspec.json.Decoder(_ForeignSpec)
KNOWN_TYPES = ("delay", "parallel_homogeneous", "parallel_homogeneous_total", "parallel", "composed")


def read_profile(source: Raw | bytes) -> Profile:
    """Turn a profile's JSON object into the model's profile.

    Raises:
        msgspec.ValidationError: if Batsim would refuse it; the message ends with the field's path.
    """
    try:
        return _KNOWN.decode(source).build()
    except msgspec.ValidationError:
        kind = _FOREIGN.decode(source)
        if kind.type in KNOWN_TYPES:
            raise
    if kind.type not in FOREIGN_TYPES:
        near = difflib.get_close_matches(kind.type, KNOWN_TYPES + FOREIGN_TYPES, 1)
        advice = f", perhaps {near[0]!r} is meant" if near else ""
        if kind.type in RENAMED_TYPES:
            advice = f", which renamed it {RENAMED_TYPES[kind.type]!r}"
        raise msgspec.ValidationError(f"unknown to Batsim 4{advice} - at `$.type`")
    return Foreign(kind.type, msgspec.json.decode(source), kind.ret)


def check_sequences(profiles: Mapping[str, Profile], path: str) -> None:
    """Refuse composed profiles that name a missing profile or contain themselves."""
    graph = {name: profile.sequence for name, profile in profiles.items() if isinstance(profile, Composed)}
    for name, sequence in graph.items():
        for part in sequence:
            if part not in profiles:
                raise InputError(f"{path}: profile {name!r}, field 'seq': the profile {part!r} does not exist; add it")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle = " > ".join(error.args[1])
        raise InputError(f"{path}: profiles contain themselves: {cycle}; break the cycle") from None


def delay_profiles(runtimes: Floats) -> tuple[Labelled[str], DelayProfiles]:
    """One delay profile per distinct run time (J,) in seconds: the name of each job's, and the profiles by name."""
    durations, which = coded(runtimes)
    names = Texts(_delay_names, durations)
    return Labelled(names, which), DelayProfiles(names, durations.astype(np.float64))


def _delay_names(durations: Floats) -> list[str]:
    return [f"delay{duration:.17g}" for duration in durations.tolist()]


def profile_fields(profile: Profile) -> dict[str, Any]:
    """The profile as Batsim's JSON object."""
    match profile:
        case Delay():
            fields: dict[str, Any] = {"type": "delay", "delay": profile.duration}
        case ParallelHomogeneous():
            fields = {"type": "parallel_homogeneous", "cpu": profile.flops, "com": profile.bytes}
        case ParallelHomogeneousTotal():
            fields = {"type": "parallel_homogeneous_total", "cpu": profile.flops, "com": profile.bytes}
        case Parallel():
            fields = {"type": "parallel", "cpu": profile.flops, "com": profile.bytes}
        case Composed():
            fields = {"type": "composed", "repeat": profile.repeat, "seq": profile.sequence}
        case Foreign():
            return profile.fields
    return {**fields, "ret": profile.exit_code} if profile.exit_code else fields


# Workloads as Batsim's JSON, and the JSON of a profile as Batsim forwards it.

_CHUNK = 65536  # jobs whose records are made at once
_ENCODER = msgspec.json.Encoder()


def write_workload(path: str | os.PathLike[str], workload: Workload) -> None:
    """Write a workload as Batsim's JSON, one job and one profile per line.

    Fields of jobs and profiles that only their sources know are kept. Numbers have at most 15 digits: of longer ones
    Batsim's RapidJSON makes others than Python. What says when 0 s was is written as
    ``unix_start_time`` and ``time_zone`` (seconds), which Batsim ignores.

    Raises:
        ConfigError: if the file cannot be written.
    """
    write_files({Path(path): workload_lines(workload)})


def workload_lines(workload: Workload) -> Iterator[bytes]:
    """The content of the file that `write_workload` writes."""
    head: dict[str, Any] = {"description": workload.description} if workload.description else {}
    if workload.unix_start is not None:
        head |= {"unix_start_time": workload.unix_start, "time_zone": workload.time_zone}
    yield json_bytes({**head, "nb_res": workload.nb_res})[:-1] + b',\n"jobs":[\n'
    # Batsim takes an id that contains the workload's name for a full one, so only such a one is written whole
    jobs = (
        _ENCODER.encode(
            {**job.fields(job.id if workload.name in job.name else job.name), **(job.extra or {}), **recorded}
        )
        for job, recorded in zip(workload.jobs, _records(workload), strict=False)
    )
    yield with_short_numbers(b",\n".join(jobs))
    yield b'\n],\n"profiles":{\n'
    profiles = (_ENCODER.encode(name) + b":" + profile_json(workload, name) for name in workload.profiles)
    yield with_short_numbers(b",\n".join(profiles))
    yield b"\n}}\n"


def _records(workload: Workload) -> Iterator[dict[str, Any]]:
    """What was recorded of each job."""
    if workload.trace is None:
        yield from repeat({})
        return
    trace, submit = of_jobs(workload.trace, workload.jobs), submit_times(workload)
    for first in range(0, len(submit), _CHUNK):
        rows = slice(first, first + _CHUNK)
        yield from trace_fields(trace.part(rows), submit[rows])


def profile_json(workload: Workload, name: str) -> bytes:
    """A profile's JSON object as Batsim forwards it: the file's where it was kept, or else made from the profile."""
    return workload.profile_sources.get(name) or _ENCODER.encode(profile_fields(workload.profiles[name]))


# Batsim 5's workloads, converted from and to Batsim 4's, object by object.

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


def as_batsim4(data: bytes, path: str) -> bytes:
    """A workload in Batsim 4's form; one that has it already is returned as it is.

    Raises:
        InputError: if it cannot be said there; one line with file, job or profile, and field.
    """
    if not is_of_5(data):
        return data
    try:
        file = msgspec.json.decode(data)
    except DECODE_ERRORS:
        return data  # whose reader says why
    return msgspec.json.encode(workload_for_4(file, path)) if isinstance(file, dict) else data


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
        strategy = fields.pop(_STRATEGY, _EACH)
        if strategy not in (_EACH, _SPREAD):
            reason = f"must be {_EACH} or {_SPREAD}; found {strategy!r}"
            raise InputError(f"{path}: profile {name!r}, field {_STRATEGY!r}: {reason}")
        old = "parallel_homogeneous" if strategy == _EACH else "parallel_homogeneous_total"
    elif old == "smpi":
        old = next((kind for kind, trace in _TRACES.items() if trace == fields.get("trace_type")), "")
        if not old:
            reason = f"must be {' or '.join(_TRACES.values())}; found {fields.get('trace_type')!r}"
            raise InputError(f"{path}: profile {name!r}, field 'trace_type': {reason}")
        del fields["trace_type"]
        fields["trace"] = fields.pop("filename", None)
    elif old == "parallel":  # which has both amounts in Batsim 4
        cpu, com = fields.get("cpu"), fields.get("com")
        if isinstance(cpu, list) and com is None:
            fields["com"] = [0.0] * len(cpu) ** 2
        elif isinstance(com, list) and cpu is None:
            fields["cpu"] = [0.0] * round(len(com) ** 0.5)
    fields["type"] = old
    extra = fields.get(_EXTRA)
    if isinstance(extra, dict) and extra and extra.keys().isdisjoint(fields):
        del fields[_EXTRA]
        fields |= extra
    return fields


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
