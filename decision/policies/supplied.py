"""Any policy under a supply of power and deadlines: who makes way where power falls, and who leaves when it is late.

What a supply leaves free is in the state, so that every policy obeys it unchanged. Here is what happens to the jobs
that run beyond it, and to jobs that wait and could only end after their deadline: they are rejected before a policy
sees them, with a tolerance of a millisecond, because a peer's clock rounds and what it rounds adds up.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from decision.jit import kernel
from decision.model.demand import sizes, supply_table
from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.platform import Platform
from decision.model.workload import FORWARDED, POWER_SUPPLY, Delay, MachineEvent, Workload
from decision.state.cluster import N_QUEUED, N_RUNNING
from decision.state.plan_arrays import CALL_AT, REJECT, START, add, put_first
from decision.state.rules import cannot_be_cut
from decision.state.transitions import bring_back, set_aside, spare_power
from decision.state.view import ClusterView

from .around import AroundPolicy, innermost
from .cap import CAP, HostCap, capped_events, read_cap
from .capacity import TOLERANCE
from .config import StartHosts
from .options import read_value
from .policy import Plan, Policy
from .suspension import make_way

LATE, BEYOND, RESTART = "late", "beyond", "restart"  # names of the options, for every policy
SUPPLY_OPTIONS = (LATE, BEYOND, RESTART, CAP)
_CHOICES = {LATE: ("reject", "keep"), BEYOND: ("suspend", "grid")}
_NOT_CUT = "choose suspend=never and beyond=grid, or give jobs delays"
_STEP = 1e-5  # seconds: a call that finds a job too late is so much after the last moment
_SOON = 1.0  # seconds: no such call is nearer, because it must reach Batsim before its time


class SupplySettings(NamedTuple):
    """What a policy's options say."""

    rejects_late: bool = True  # whether jobs leave that cannot end in time any more
    suspends_beyond: bool = True  # whether jobs beyond the supply are suspended; else they run on, on power of the grid
    restart: float = 0.0  # seconds that what is left of a suspended job takes before it goes on
    cap: str = ""  # watts, or a file of them by time, that are never passed; "": none


def read_supply(policy: str, options: dict[str, Any]) -> SupplySettings | None:
    """Take `late`, `beyond`, `restart` and `cap` out of a policy's options; None where there is none of them.

    Raises:
        ConfigError: naming the policy and the value.
    """
    if not options.keys() & set(SUPPLY_OPTIONS):
        return None
    late, beyond = (_chosen(policy, name, options) for name in (LATE, BEYOND))
    restart = read_value(policy, RESTART, options.pop(RESTART, 0.0), float)
    if not 0 <= restart < math.inf:
        raise ConfigError(f"policy {policy}: option {RESTART}={restart:g} must be finite and not negative")
    cap = str(options.pop(CAP, ""))
    if cap and beyond != "suspend":
        raise ConfigError(f"policy {policy}: cap={cap} is not kept with beyond={beyond}; leave one of them out")
    return SupplySettings(late == "reject", beyond == "suspend", restart, cap)


def _chosen(policy: str, option: str, options: dict[str, Any]) -> str:
    names = _CHOICES[option]
    value = str(options.pop(option, names[0]))
    if value not in names:
        has = f"there are {', '.join(names)}"
        raise ConfigError(f"policy {policy}: there is no {option} {value!r}{nearest(value, names)} ({has})")
    return value


class SuppliedPolicy(AroundPolicy):
    """Another policy under a supply of power and deadlines.

    Args:
        policy: any.
        settings: what happens beyond the supply and after deadlines.
        name: for messages.
    """

    def __init__(self, policy: Policy, settings: SupplySettings, name: str = "") -> None:
        super().__init__(policy, name)
        self.settings = settings

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        self.policy.reset(platform, seed)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan, for callers that have a `ClusterView`."""
        state = cluster.arrays
        if self.settings.suspends_beyond and runs_beyond(state):
            make_way(state, plan.arrays)
            return
        nb_hidden = set_aside(state, too_late(state)) if self.settings.rejects_late else 0
        self.policy.decide(cluster, plan)
        reject_hidden(state, plan.arrays, nb_hidden)
        if self.settings.rejects_late:
            ask_when_late(state, plan.arrays, nb_hidden)

    def __repr__(self) -> str:
        return f"<policy {self.name}, supplied>"


def supplied(policy: Policy) -> SuppliedPolicy:
    """The policy under a supply and deadlines, as its options say, or as it was learned, or by default."""
    if isinstance(policy, SuppliedPolicy):
        return policy
    return SuppliedPolicy(policy, getattr(innermost(policy), "supply", None) or SupplySettings())


def has_supply(events: Iterable[MachineEvent]) -> bool:
    """Whether events say how many hosts have power."""
    return any(event.type == POWER_SUPPLY for event in events)


def never_falls(events: Sequence[MachineEvent]) -> bool:
    """Whether a supply that is there from the beginning never gets less."""
    table = supply_table(events)
    return table is None or (float(table.time[0]) == 0.0 and bool((np.diff(table.hosts) >= 0).all()))


def host_cap(policy: Policy, platform: Platform) -> HostCap | None:
    """How many hosts may compute under the cap that the policy's options say; None where they say none.

    Raises:
        ConfigError: if it cannot be kept.
    """
    if not isinstance(policy, SuppliedPolicy) or not policy.settings.cap:
        return None
    sleeps = bool(getattr(innermost(policy), "switches_hosts", True))
    return read_cap(policy.name, policy.settings.cap, platform, sleeps)


def with_cap(
    policy: Policy, platform: Platform, workloads: Sequence[Workload], events: Sequence[MachineEvent]
) -> Sequence[MachineEvent]:
    """The events, with the cap that the policy's options say.

    Raises:
        ConfigError: if it cannot be kept, or leaves too few hosts for a job that fits the platform.
    """
    cap = host_cap(policy, platform)
    if cap is None:
        return events
    most = int(cap.hosts.max())
    for workload in workloads:
        wanted = sizes(workload)
        large = np.flatnonzero((wanted > most) & (wanted <= len(platform.hosts)))
        if len(large):
            job = workload.jobs[int(large[0])]
            what = f"job {job.id} needs {job.size} hosts, and the policy's cap on power lets {most} compute"
            raise ConfigError(f"{workload.path or workload.name}: {what}; give more")
    return capped_events(cap, events)


def are_forwarded(events: Iterable[MachineEvent]) -> bool:
    """Whether there are events that Batsim knows nothing of and is to forward."""
    return any(event.type in FORWARDED for event in events)


def may_suspend(policy: Policy, events: Iterable[MachineEvent]) -> bool:
    """Whether jobs may be suspended under these events: by the policy, or because the supply falls."""
    inner, events = innermost(policy), list(events)
    settings = policy.settings if isinstance(policy, SuppliedPolicy) else SupplySettings()
    beyond = settings.suspends_beyond and has_supply(events) and not (settings.cap and never_falls(events))
    return bool(getattr(inner, "suspends", False)) or beyond


def check_suspensions(policy: Policy, workloads: Sequence[Workload], events: Sequence[MachineEvent]) -> None:
    """Refuse what does not go with a supply, and jobs that cannot be cut where jobs may be suspended.

    Raises:
        ConfigError: naming the policy, or the first such job and its profile.
    """
    if has_supply(events):
        refuse_bound(policy)
    if not may_suspend(policy, events):
        return
    for workload in workloads:
        whole = {name for name, profile in workload.profiles.items() if not isinstance(profile, Delay)}
        job = next((job for job in workload.jobs if job.profile in whole), None) if whole else None
        if job is not None:
            raise ConfigError(f"{workload.path or workload.name}: {cannot_be_cut(job.id, job.profile)}; {_NOT_CUT}")


def refuse_bound(policy: Policy) -> None:
    """Refuse a policy that gives jobs hosts before they are awake: under a supply they may have no power then.

    Raises:
        ConfigError: naming the policy.
    """
    inner: Any = innermost(policy)
    if getattr(getattr(inner, "config", None), "start", StartHosts.AWAKE) == StartHosts.BOUND:
        raise ConfigError(f"policy {inner.name}: start=bound does not go with a supply of power; use start=awake")


@kernel
def runs_beyond(state):
    """Whether more hosts compute than have power."""
    return state.supply[0] < len(state.host_state) and spare_power(state) < 0


@kernel
def too_late(state):
    """Which of the queue's jobs (n,) can no longer end in time."""
    queue = state.queue[: state.count[N_QUEUED]]
    late = np.zeros(len(queue), np.bool_)
    for i in range(len(queue)):
        late[i] = _is_late(state, queue[i])
    return late


@kernel
def is_any_late(state):
    """Whether one of the queue's jobs can no longer end in time."""
    late = False
    for i in range(state.count[N_QUEUED]):
        late |= _is_late(state, state.queue[i])
    return late


@kernel
def _is_late(state, job):
    return state.now[0] > latest_start(state, job) + TOLERANCE


@kernel
def latest_start(state, job):
    """When (seconds) a job must start to end in time as expected; inf where it has no deadline."""
    if state.deadline[job] == 0.0:
        return np.inf
    expected = state.expected[job] if state.expected[job] > 0.0 else state.walltime[job]
    return state.deadline[job] - expected


@kernel
def reject_hidden(state, plan, nb_hidden):
    """Bring the jobs back that are too late, and reject them before all else in the plan."""
    if nb_hidden > 0:
        bring_back(state, nb_hidden)
        put_first(plan, REJECT, state.queue[state.count[N_QUEUED] - nb_hidden : state.count[N_QUEUED]])


@kernel
def ask_when_late(state, plan, nb_hidden):
    """Where nothing runs and nothing starts, ask to be called when the next job that waits is too late.

    It may never start: then nothing else would happen, and the simulation could not end.
    """
    if state.count[N_RUNNING] > 0 or state.count[N_QUEUED] == nb_hidden:
        return
    for at in range(plan.count[0]):
        if plan.kind[at] in (START, CALL_AT):
            return
    soonest = np.inf
    for i in range(state.count[N_QUEUED]):
        last = latest_start(state, state.queue[i]) + TOLERANCE
        if last >= state.now[0]:
            soonest = min(soonest, last)
    if soonest < np.inf:
        plan.time[add(plan, CALL_AT, -1)] = max(soonest + _STEP, state.now[0] + _SOON)
