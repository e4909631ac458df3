"""Profiles of Batsim workloads: from JSON to the model and back."""

import difflib
import graphlib
import os
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw

from decision.model.columns import DelayProfiles, Labelled, Texts, distinct
from decision.model.demand import submit_times
from decision.model.errors import InputError
from decision.model.record import Floats
from decision.model.trace import of_jobs, trace_fields
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
)

from .json_text import json_bytes, with_short_numbers
from .text import write_files

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
        raise msgspec.ValidationError(f"unknown to Batsim 4{_advice(kind.type)} - at `$.type`")
    return Foreign(kind.type, msgspec.json.decode(source), kind.ret)


def _advice(kind: str) -> str:
    if kind in RENAMED_TYPES:
        return f", which renamed it {RENAMED_TYPES[kind]!r}"
    near = difflib.get_close_matches(kind, KNOWN_TYPES + FOREIGN_TYPES, 1)
    return f", perhaps {near[0]!r} is meant" if near else ""


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
    durations, which = distinct(runtimes)
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
    yield json_bytes(_head(workload))[:-1] + b',\n"jobs":[\n'
    jobs = (
        _ENCODER.encode(_job_fields(job, workload.name) | worth)
        for job, worth in zip(workload.jobs, _records(workload), strict=False)
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


def _head(workload: Workload) -> dict[str, Any]:
    head: dict[str, Any] = {"description": workload.description} if workload.description else {}
    if workload.unix_start is not None:
        head |= {"unix_start_time": workload.unix_start, "time_zone": workload.time_zone}
    return {**head, "nb_res": workload.nb_res}


def profile_json(workload: Workload, name: str) -> bytes:
    """A profile's JSON object as Batsim forwards it: the file's where it was kept, or else made from the profile."""
    return workload.profile_sources.get(name) or _ENCODER.encode(profile_fields(workload.profiles[name]))


def _job_fields(job: Job, workload: str) -> dict[str, Any]:
    # Batsim takes an id that contains the workload's name for a full one, so only such a one is written whole
    fields = job.fields(job.id if workload in job.name else job.name)
    return {**fields, **job.extra} if job.extra else fields
