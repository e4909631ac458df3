"""Why a command is impossible, in one line for people. Whether it is was found by `decision.engine.possible`."""

from typing import TYPE_CHECKING

import numpy as np

from decision.model.errors import PolicyError
from decision.model.record import FinalState, HostState
from decision.policies import plan as p
from decision.state.cluster import QUEUED, RUNNING

from . import commands as c
from .possible import can_switch, first_unkillable

if TYPE_CHECKING:
    from .embedded import EmbeddedEngine

_PHASES = {QUEUED: "submitted", RUNNING: "running"}


def why_not(engine: "EmbeddedEngine", at: int) -> PolicyError:
    """Why command `at` of the plan is impossible now."""
    plan, kind, job = engine.plan, int(engine.plan.kind[at]), int(engine.plan.job[at])
    hosts = [h for i in range(plan.begin[at], plan.end[at]) for h in range(plan.first[i], plan.last[i] + 1)]
    if kind == p.CALL_AT:
        return engine.refuse(f"asked to be called at t={plan.time[at]:.12g} s, which is past")
    if kind == p.SET_PSTATE:
        return engine.refuse(_why_not_switch(engine, hosts, int(plan.value[at])))
    if kind == p.START:
        return engine.refuse(_why_not_start(engine, job, hosts, engine.hosts_of(at)))
    if kind == p.REJECT:
        return engine.refuse(f"{engine.job(job).id} cannot be rejected: it is {phase(engine, job)}")
    if kind == p.KILL:
        unkillable = first_unkillable(engine.state, plan, at)
        return engine.refuse(f"{engine.job(unkillable).id} cannot be killed: it was never executed")
    return why_not_become(engine, job, "RUNNING" if kind == c.START_ELSEWHERE else FinalState(int(plan.value[at])).name)


def why_not_become(engine: "EmbeddedEngine", job: int, wanted: str) -> PolicyError:
    """Why CHANGE_JOB_STATE is impossible."""
    if engine.state.alloc_count[job]:
        reason = f"was executed on hosts {engine.allocation(job)}; kill it instead"
    else:
        reason = f"is {phase(engine, job)} and cannot become {wanted!r}"
    return engine.refuse(f"{engine.job(job).id} {reason}")


def phase(engine: "EmbeddedEngine", job: int) -> str:
    """Where a job is in its life."""
    return _PHASES.get(int(engine.state.job_state[job]), "ended")


def _why_not_start(engine: "EmbeddedEngine", job: int, hosts: list[int], alloc: str) -> str:
    name, size = engine.job(job).id, int(engine.state.size[job])
    if engine.state.job_state[job] != QUEUED:
        return f"{name} cannot start: it is {phase(engine, job)}"
    if len(hosts) != size and not engine.truth.moldable[engine.sim.truth_of[job]]:
        return f"{name} needs {size} hosts, {len(hosts)} given"
    busy = next((host for host in hosts if not engine.state.free[host >> 6] & np.uint64(1 << (host & 63))), -1)
    reason = f"host {busy} {_doing(engine, busy)}" if busy >= 0 else "a host is named twice"
    return f"{name} cannot start on hosts {alloc}: {reason}"


def _doing(engine: "EmbeddedEngine", host: int) -> str:
    """What a host does that is not free."""
    state = engine.state
    if state.host_job[host] >= 0:
        return f"computes {engine.job(int(state.host_job[host])).id}"
    if state.host_state[host] != HostState.IDLE:
        return f"is {_state(engine, host)}"
    return f"cannot compute in pstate {state.pstate[host]}"


def _state(engine: "EmbeddedEngine", host: int) -> str:
    return HostState(int(engine.state.host_state[host])).name.lower().replace("_", " ")


def _why_not_switch(engine: "EmbeddedEngine", hosts: list[int], pstate: int) -> str:
    for host in hosts:
        if not can_switch(engine.state, engine.facts, host, pstate):
            return f"host {host} cannot go to pstate {pstate}: {_why_not_host(engine, host, pstate)}"
    return f"pstate {pstate}: no hosts given, or one of them twice"


def _why_not_host(engine: "EmbeddedEngine", host: int, pstate: int) -> str:
    facts, state = engine.platform.hosts[host], HostState(int(engine.state.host_state[host]))
    if not 0 <= pstate < len(facts.pstates):
        return f"it has pstates 0 to {len(facts.pstates) - 1}"
    if pstate in facts.virtual_pstates:
        return "that pstate only models a switch"
    if state in (HostState.SWITCHING_ON, HostState.SWITCHING_OFF):
        return f"it is {_state(engine, host)}"
    if engine.state.host_job[host] >= 0:
        return f"it {_doing(engine, host)}"
    if state is HostState.UNAVAILABLE:
        return "it is unavailable"
    return f"it sleeps in pstate {engine.state.pstate[host]}; wake it first"
