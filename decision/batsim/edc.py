"""What only a Batsim 5 needs of a decision process: a greeting, names and whole milliseconds for calls, and to read the
events that mean nothing to Batsim itself."""

import math
from typing import Any

import msgspec
import numpy as np

from decision import __version__
from decision.model.workload import POWER_SUPPLY
from decision.protocol import messages as m
from decision.state.cluster import ClusterState
from decision.state.platform_facts import PSTATE_COMPUTING, PlatformFacts

_MACHINE_EVENTS = ("machine_available", "machine_unavailable")


def hello(policy: str, suspends: bool) -> m.HelloData:
    """Our answer to Batsim's first message, which asks for no more than the policy needs."""
    wanted = m.Features(
        dynamic_registration=suspends,
        profile_reuse=suspends,
        acknowledge_dynamic_jobs=suspends,
        forward_profiles_on_job_submission=suspends,
    )
    return m.HelloData(name=f"decision ({policy})", version=__version__, features=wanted)


def milliseconds(time: float) -> float:
    """A time in seconds, rounded up to whole milliseconds."""
    return math.ceil(round(time * 1e9) / 1e6) / 1e3  # as `decision.engine.kernels.clock.whole_milliseconds`


def obeyed(event: m.ExternalEvent) -> m.Notify | None:
    """The notification that Batsim 4 would have sent for an external event; None for one that means nothing to us."""
    try:
        said = msgspec.json.decode(event.data.text)
    except (msgspec.DecodeError, RecursionError):
        return None
    kind = said.get("type") if isinstance(said, dict) else None
    if kind in _MACHINE_EVENTS:
        return _notify(event, type=f"event_{kind}", resources=said.get("resources", ""))
    return _notify(event, **said) if kind == POWER_SUPPLY else None


def _notify(event: m.ExternalEvent, **fields: Any) -> m.Notify:
    return m.Notify(event.timestamp, m.NotifyData(**fields))


def switches(state: ClusterState, facts: PlatformFacts, hosts: list[int], pstate: int) -> list[tuple[list[int], bool]]:
    """The hosts that are to change to a pstate, in groups of one command each, with whether the change is at once.

    From one computing pstate to another it is; hosts that are there already are in no group.
    """
    others = np.array([host for host in hosts if state.pstate[host] != pstate], np.int64)
    computes = facts.pstate_kind[others, state.pstate[others]] == PSTATE_COMPUTING
    at_once = computes & (facts.pstate_kind[others, pstate] == PSTATE_COMPUTING)
    groups = ((others[at_once].tolist(), True), (others[~at_once].tolist(), False))
    return [group for group in groups if group[0]]
