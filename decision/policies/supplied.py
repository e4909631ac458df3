"""Any policy under a supply of power, deadlines and failures: who makes way, and who leaves when it is late.

What a supply leaves free is in the state, so that every policy obeys it unchanged. Here is what happens to the jobs
that run beyond it, and to jobs that wait and could only end after their deadline: they are rejected before a policy
sees them, with a tolerance of a millisecond, because a peer's clock rounds and what it rounds adds up.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from decision.jit import kernel
from decision.model.demand import sizes, supply_table
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import BatteryTable
from decision.model.workload import FORWARDED, POWER_SUPPLY, Delay, MachineEvent, Workload
from decision.state.cluster import N_QUEUED, N_RUNNING, N_UNAVAILABLE, UNAVAILABLE
from decision.state.plan_arrays import CALL_AT, KILL, REJECT, START, SUSPEND, add, put_first
from decision.state.rules import cannot_be_cut
from decision.state.transitions import bring_back, set_aside, spare_power
from decision.state.view import ClusterView

from .around import AroundPolicy, innermost
from .battery import ask_when_empty, follow_battery, new_battery
from .cap import HostCap, capped_events, read_cap
from .capacity import TOLERANCE
from .config import StartHosts
from .policy import Plan, Policy
from .supply_settings import Failed, SupplySettings
from .suspension import make_way

_NOT_CUT = "choose suspend=never, beyond=grid and failed=kill, or give jobs delays"
_STEP = 1e-5  # seconds: a call that finds a job too late is so much after the last moment
_SOON = 1.0  # seconds: no such call is nearer, because it must reach Batsim before its time


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
        self.battery = new_battery(settings.battery)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        self.policy.reset(platform, seed)
        self.battery = new_battery(self.settings.battery)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan, for callers that have a `ClusterView`."""
        state, failed = cluster.arrays, int(self.settings.failed)
        lent = follow_battery(state, self.battery)
        if failed and some_failed(state) and let_fail(state, plan.arrays, failed):
            return
        if self.settings.suspends_beyond and runs_beyond(state, lent):
            make_way(state, plan.arrays, lent)
            return
        nb_hidden = set_aside(state, too_late(state)) if self.settings.rejects_late else 0
        self.policy.decide(cluster, plan)
        reject_hidden(state, plan.arrays, nb_hidden)
        if self.settings.rejects_late:
            ask_when_late(state, plan.arrays, nb_hidden)
        ask_when_empty(state, plan.arrays, self.battery, lent)

    def __repr__(self) -> str:
        return f"<policy {self.name}, supplied>"


def supplied(policy: Policy) -> SuppliedPolicy:
    """The policy under a supply and deadlines, as its options say, or as it was learned, or by default."""
    if isinstance(policy, SuppliedPolicy):
        return policy
    return SuppliedPolicy(policy, getattr(innermost(policy), "supply", None) or SupplySettings())


def battery_table(policy: Policy) -> BatteryTable | None:
    """The battery that the policy's options say; None where they say none."""
    if not isinstance(policy, SuppliedPolicy) or not policy.settings.battery.capacity:
        return None
    return BatteryTable(**{name: np.array([value]) for name, value in policy.settings.battery._asdict().items()})


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
    return bool(getattr(inner, "suspends", False)) or beyond or settings.failed is Failed.RESUBMIT


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
def some_failed(state):
    """Whether hosts are unavailable."""
    return state.count[N_UNAVAILABLE] > 0


@kernel
def let_fail(state, plan, failed):
    """End the jobs that run on unavailable hosts as `failed` (Failed) says; whether there are any."""
    found = False
    for i in range(state.count[N_RUNNING]):
        job = state.running[i]
        if state.suspended[job] == 0 and _has_failed(state, job):
            found = True
            if failed == Failed.KILL:
                add(plan, KILL, job)
            else:
                plan.value[add(plan, SUSPEND, job)] = 1
    return found


@kernel
def _has_failed(state, job):
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            if state.host_state[host] == UNAVAILABLE:
                return True
    return False


@kernel
def runs_beyond(state, lent):
    """Whether more hosts compute than have power: that of the supply, and of so many hosts beside it."""
    return state.supply[0] < len(state.host_state) and spare_power(state) + lent < 0


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
