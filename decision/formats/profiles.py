"""Profiles of Batsim workloads: from JSON to the model and back."""

import difflib
import graphlib
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw

from decision.model.column import Labelled, Texts, small
from decision.model.columns import DelayProfiles
from decision.model.errors import InputError
from decision.model.record import Floats
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
)

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
    distinct, which = np.unique(runtimes, return_inverse=True)
    names = Texts(_delay_names, distinct)
    return Labelled(names, small(which)), DelayProfiles(names, distinct.astype(np.float64))


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
