"""Any policy under a supply of power, deadlines and failures.

What a supply leaves free is in the state, so that every policy obeys it unchanged. Here is what happens to the jobs
that run beyond it, and to jobs that wait and could only end after their deadline: they are rejected before a policy
sees them (`supply_kernels`).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from decision.compiling.bundle import Int, bundle_at
from decision.model.demand import sizes, supply_table
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import BatteryTable
from decision.model.workload import FORWARDED, POWER_SUPPLY, Delay, MachineEvent, Workload
from decision.policies.battery import BatteryState, ask_when_empty, follow_battery, new_battery
from decision.policies.cap import HostCap, capped_events, read_cap
from decision.policies.policy import Policy
from decision.policies.prepared import DECIDE, DECIDED, NO_PLAN
from decision.policies.supply_settings import Failed, SupplySettings
from decision.policies.traits import traits_of
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import clear
from decision.state.rules import cannot_be_cut
from decision.state.transitions import set_aside

from .base import AroundPolicy, ask_inner, layers, own_memory
from .supply_kernels import ask_when_late, let_fail, make_way, reject_hidden, runs_beyond, some_failed, too_late

_NOT_CUT = "choose suspend=never, beyond=grid and failed=kill, or give jobs delays"


class _SupplyMemory(BatteryState):
    """Its battery, and what the settings say."""

    rejects_late: Int  # 1: jobs that are too late
    suspends_beyond: Int  # 1: jobs beyond the supply
    failed: Int  # `Failed`


_memory_at = bundle_at(_SupplyMemory)


@DECIDE.entry
def _decide_supplied(state, facts, memory, plan):
    own = _memory_at(own_memory(memory))
    lent = follow_battery(state, own)
    if own.failed and some_failed(state):
        clear(plan, state)
        if let_fail(state, plan, own.failed):
            return DECIDED
    if own.suspends_beyond and runs_beyond(state, lent):
        clear(plan, state)
        make_way(state, plan, lent)
        return DECIDED
    nb_hidden = set_aside(state, too_late(state)) if own.rejects_late else 0
    if not ask_inner(memory, facts, plan):
        return NO_PLAN  # the jobs that are too late stay hidden, so that the fault is found again
    reject_hidden(state, plan, nb_hidden)
    if own.rejects_late:
        ask_when_late(state, plan, nb_hidden)
    ask_when_empty(state, plan, own, lent)
    return DECIDED


class SuppliedPolicy(AroundPolicy):
    """Another policy under a supply of power and deadlines.

    Args:
        policy: any.
        settings: what happens beyond the supply and after deadlines.
        name: for messages.
    """

    entry = _decide_supplied

    def __init__(self, policy: Policy, settings: SupplySettings, name: str = "") -> None:
        super().__init__(policy, name)
        self.settings = settings

    def memory_for(self, state: ClusterState, memory: _SupplyMemory | None = None) -> _SupplyMemory:
        """What the settings say, and their battery; it is empty where there is no memory yet."""
        if memory is not None:
            return memory
        settings, battery = self.settings, new_battery(self.settings.battery)
        return _SupplyMemory(
            rejects_late=settings.rejects_late,
            suspends_beyond=settings.suspends_beyond,
            failed=settings.failed,
            **battery.arrays(),
        )

    def __repr__(self) -> str:
        return f"<policy {self.name}, supplied>"


def supplied(policy: Policy, settings: SupplySettings | None = None) -> Policy:
    """The policy under a supply and deadlines: as its options say, or these settings, or as it was learned."""
    if _supply_over(policy) is not None:
        return policy
    return SuppliedPolicy(policy, settings or traits_of(policy).supply or SupplySettings())


def _supply_over(policy: Policy) -> SuppliedPolicy | None:
    return next((layer for layer in layers(policy) if isinstance(layer, SuppliedPolicy)), None)


def settings_of(policy: Policy) -> SupplySettings:
    """What happens beyond the supply under which a policy stands; the defaults where it stands under none."""
    there = _supply_over(policy)
    return SupplySettings() if there is None else there.settings


def battery_table(policy: Policy) -> BatteryTable | None:
    """The battery that the policy's options say; None where they say none."""
    battery = settings_of(policy).battery
    if not battery.capacity:
        return None
    return BatteryTable(**{name: np.array([value]) for name, value in battery._asdict().items()})


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
    cap, traits = settings_of(policy).cap, traits_of(policy)
    return read_cap(traits.name, cap, platform, traits.switches_hosts is not False) if cap else None


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
    events, settings = list(events), settings_of(policy)
    beyond = settings.suspends_beyond and has_supply(events) and not (settings.cap and never_falls(events))
    return traits_of(policy).suspends or beyond or settings.failed is Failed.RESUBMIT


def check_suspensions(policy: Policy, workloads: Sequence[Workload], events: Sequence[MachineEvent]) -> None:
    """Refuse what does not go with a supply, and jobs that cannot be cut where jobs may be suspended.

    Raises:
        ConfigError: naming the policy, or the first such job and its profile.
    """
    if has_supply(events):
        refuse_booking(policy)
    if not may_suspend(policy, events):
        return
    for workload in workloads:
        whole = {name for name, profile in workload.profiles.items() if not isinstance(profile, Delay)}
        job = next((job for job in workload.jobs if job.profile in whole), None) if whole else None
        if job is not None:
            raise ConfigError(f"{workload.path or workload.name}: {cannot_be_cut(job.id, job.profile)}; {_NOT_CUT}")


def refuse_booking(policy: Policy) -> None:
    """Refuse a policy that gives jobs hosts before they are awake: under a supply they may have no power then.

    Raises:
        ConfigError: naming the policy.
    """
    traits = traits_of(policy)
    if traits.books_hosts:
        raise ConfigError(f"policy {traits.name}: start=bound does not go with a supply of power; use start=awake")
