"""Any policy under a supply of power, deadlines and failures.

What a supply leaves free is in the state, so that every policy obeys it unchanged. Here is what happens to the jobs
that run beyond it, and to jobs that wait and could only end after their deadline: they are rejected before a policy
sees them. A cap on power is a supply that the policy's options say, and a battery powers jobs beyond the supply for as
long as it lasts.
"""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import Bundle, Float, Int, bundle_at
from decision.compiling.jit import kernel
from decision.files.events import SeriesLayout, read_series
from decision.model.demand import sizes, supply_table
from decision.model.errors import ConfigError, InternalError
from decision.model.platform import Platform, draw_of
from decision.model.record import BatteryTable, Floats, Ints
from decision.model.workload import FORWARDED, POWER_SUPPLY, Delay, MachineEvent, Workload
from decision.policies.policy import Policy
from decision.policies.prepared import DECIDE, DECIDED, NO_PLAN
from decision.policies.profile import TOLERANCE
from decision.policies.traits import CAP, Battery, Failed, SupplySettings, traits_of
from decision.state.cluster import UNAVAILABLE, ClusterState
from decision.state.plan_arrays import CALL_AT, KILL, REJECT, START, SUSPEND, add, cannot_be_cut, clear, put_first
from decision.state.transitions import bring_back, set_aside, spare_power

from . import AroundPolicy, ask_inner, layers, own_memory

_NOT_CUT = "choose suspend=never, beyond=grid and failed=kill, or give jobs delays"
_COLUMNS = ("cap", "watts", "power")
_SHORTEST = 1.0  # seconds: a battery that would be empty sooner is, because a call must reach Batsim before its time
_STEP = 1e-5  # seconds: a call that finds a job too late is so much after the last moment
_SOON = 1.0  # seconds: no such call is nearer, because it must reach Batsim before its time


class HostCap(NamedTuple):
    """How many hosts may compute from each time on. Columns of length n."""

    time: Floats  # seconds, ascending; the first is 0
    hosts: Ints


class BatteryState(Bundle):
    """A battery in a run. It is empty at first."""

    capacity: Float  # as of a `Battery`, and so the next three
    charge: Float
    discharge: Float
    efficiency: Float
    level: Float  # host-seconds that it can give
    since: Float  # seconds: when that was so
    supply: Float = np.inf  # hosts that have power since then
    asked: Float  # seconds: for when a call was asked that finds it empty


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
    # Jobs on failed hosts, and then those beyond the supply, leave first, in a plan of their own: the policy is asked
    # in the next question, when their hosts are free.
    if own.failed and some_failed(state):
        clear(plan, state)
        if let_fail(state, plan, own.failed):
            return DECIDED
    if own.suspends_beyond and runs_beyond(state, lent):
        clear(plan, state)
        make_way(state, plan, lent)
        return DECIDED
    # Late jobs are taken out of the queue while the policy decides, and rejected after that.
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
    # A cap that never falls suspends nobody: what starts keeps within it.
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


# A cap on power, for any policy: so many hosts may compute as stay below it, whichever they are.
#
# A cap is a supply of power that a policy knows of: hosts beyond it are as good as away, and jobs that run beyond it
# where it falls are suspended. What hosts draw is bounded (`decision.model.platform`), so the cap is kept whatever a
# policy does.


def read_cap(policy: str, cap: str, platform: Platform, sleeps: bool) -> HostCap:
    """How many hosts may compute under a cap.

    Args:
        policy: for messages.
        cap: watts, or a file with watts by time (`decision.files.events`); the last of them hold on.
        platform: whose hosts say what they draw.
        sleeps: whether the policy may change what hosts without a job do.

    Raises:
        ConfigError: if it is neither, or lower than what the hosts draw without a job.
    """
    try:
        watts = float(cap)
        time, level = np.zeros(1), np.array([watts])
    except ValueError:
        if not Path(cap).is_file():
            raise ConfigError(f"policy {policy}: option {CAP}={cap} must be watts, or a file of them by time") from None
        time, level, _ = read_series(Path(cap), SeriesLayout(), _COLUMNS)
    draw = draw_of(platform, sleeps)
    hosts = draw.hosts_within(level)
    low = np.flatnonzero((hosts < 0) | ~(level < math.inf))
    if len(low):
        least = f"the {draw.watts[0]:.12g} W that the hosts of {platform.path} draw without a job"
        what = f"{level[low[0]]:.12g} W is not above {least}"
        raise ConfigError(f"policy {policy}: option {CAP}={cap}: {what}; give more")
    return HostCap(time, hosts)


def capped_events(cap: HostCap, events: Sequence[MachineEvent]) -> list[MachineEvent]:
    """The events with a supply of power that the cap limits, or that is the cap where there is none."""
    others = [event for event in events if event.type != POWER_SUPPLY]
    supply = {event.timestamp: event for event in events if event.type == POWER_SUPPLY}
    table = supply_table(events)
    # At each time at which either changes, the lower of both holds.
    times = cap.time if table is None else np.union1d(cap.time, table.time)
    allowed = cap.hosts[np.searchsorted(cap.time, times, side="right") - 1]
    if table is not None:
        at = np.searchsorted(table.time, times, side="right") - 1
        powered = np.where(at >= 0, table.hosts[np.maximum(at, 0)], np.inf)
        allowed = np.minimum(allowed, powered).astype(np.int64)
    made = []
    for time, hosts in zip(times.tolist(), allowed.tolist(), strict=True):
        # What is forecast was said of the supply; the cap holds then, too.
        expected = [min(hosts, there) for there in supply[time].hosts[1:]] if time in supply else []
        said = {"type": POWER_SUPPLY, "timestamp": time, "hosts": hosts, "forecast": expected}
        source = json.dumps(said).encode()
        made.append(MachineEvent(timestamp=time, type=POWER_SUPPLY, hosts=(hosts, *expected), source=source))
    return sorted([*others, *made], key=lambda event: event.timestamp)


# A battery next to a supply of power: jobs that run beyond the supply run on while it lasts.
#
# It takes what the supply has and no job uses, and gives to the jobs that run beyond it; it lets no job start, as no
# power of the grid does. What cannot be had from it is as with no battery: jobs make way. It knows what is and what
# was, never what comes: it gives as soon as power lacks, since nothing is gained by waiting while jobs can be cut.
#
# Levels follow from what happened between two decisions, in which nothing changes: so the same numbers come from the
# jobs that ran (`decision.experiments.worth`).


def new_battery(battery: Battery) -> BatteryState:
    """An empty battery at the beginning of a run."""
    return BatteryState(**battery._asdict())


@kernel
def level_after(battery, level, over, seconds):
    """What a battery holds (host-seconds) after so many seconds in which so many hosts computed beyond the supply."""
    # Between two decisions the number of busy hosts is constant, so the level is a straight line up to its ends.
    if over > 0:
        return max(level - min(over, battery.discharge) * seconds, 0.0)
    return min(level + min(-over, battery.charge) * battery.efficiency * seconds, battery.capacity)


@kernel
def follow_battery(state, battery):
    """Bring the battery to this instant, and find out what it does now.

    Returns:
        How many hosts may compute beyond the supply.
    """
    now = state.now
    if battery.capacity == 0.0:
        return 0
    # First what happened since the last decision, by the supply of then,
    if now > battery.since and battery.supply < np.inf:
        busy = 0  # hosts that computed just before this instant
        for i in range(state.nb_running):
            busy += state.size[state.running[i]] * (state.start_time[state.running[i]] < now)
        for i in range(state.nb_ended):
            busy += state.size[state.ended[i]] * (state.start_time[state.ended[i]] < now)
        over = busy - battery.supply
        battery.level = level_after(battery, battery.level, over, now - battery.since)
    battery.since, battery.supply = now, state.supply
    # then what it gives from now on; nothing where it would be empty within a second.
    over = min(-spare_power(state), battery.discharge)
    return np.int64(over) if over > 0 and battery.level >= over * _SHORTEST else 0


@kernel
def ask_when_empty(state, plan, battery, lent):
    """Ask to be called when the battery is empty that powers so many hosts, unless that was asked for before."""
    if lent == 0:
        return
    empty = state.now + battery.level / lent
    if battery.asked <= state.now or empty < battery.asked:
        battery.asked = empty
        plan.time[add(plan, CALL_AT, -1)] = empty


# Who makes way where power lacks or hosts fail, and who leaves when it is late.
#
# A job is too late with a tolerance of a millisecond, because a peer's clock rounds and what it rounds adds up.


@kernel
def some_failed(state):
    """Whether some hosts are unavailable now."""
    return state.nb_in_state[UNAVAILABLE] > 0


@kernel
def let_fail(state, plan, failed):
    """End the jobs that run on unavailable hosts as `failed` (Failed) says; whether there are any."""
    found = False
    for i in range(state.nb_running):
        job = state.running[i]
        begin, lost = state.alloc_first[job], False
        for k in range(begin, begin + state.alloc_count[job]):
            for host in range(state.interval_first[k], state.interval_last[k] + 1):
                lost |= state.host_state[host] == UNAVAILABLE
        if lost and state.suspended[job] == 0:
            found = True
            if failed == Failed.KILL:
                add(plan, KILL, job)
            else:
                plan.value[add(plan, SUSPEND, job)] = 1
    return found


@kernel
def runs_beyond(state, lent):
    """Whether more hosts compute than have power: that of the supply, and of so many hosts besides."""
    return state.supply < len(state.host_state) and spare_power(state) + lent < 0


@kernel
def too_late(state):
    """Which of the queue's jobs (n,) can no longer end in time."""
    queue = state.queue[: state.nb_queued]
    late = np.zeros(len(queue), np.bool_)
    for i in range(len(queue)):
        late[i] = _is_late(state, queue[i])
    return late


@kernel
def is_any_late(state):
    """Whether one of the queue's jobs can no longer end in time."""
    late = False
    for i in range(state.nb_queued):
        late |= _is_late(state, state.queue[i])
    return late


@kernel
def _is_late(state, job):
    return state.now > latest_start(state, job) + TOLERANCE


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
        put_first(plan, REJECT, state.queue[state.nb_queued - nb_hidden : state.nb_queued])


@kernel
def ask_when_late(state, plan, nb_hidden):
    """Where nothing runs and nothing starts, ask to be called when the next job that waits is too late.

    It may never start: then nothing else would happen, and the simulation could not end.
    """
    if state.nb_running > 0 or state.nb_queued == nb_hidden:
        return
    # A start or a call is an event to come: then this question is asked again.
    for at in range(plan.nb_actions):
        if plan.kind[at] in (START, CALL_AT):
            return
    soonest = np.inf
    for i in range(state.nb_queued):
        last = latest_start(state, state.queue[i]) + TOLERANCE
        if last >= state.now:
            soonest = min(soonest, last)
    if soonest < np.inf:
        plan.time[add(plan, CALL_AT, -1)] = max(soonest + _STEP, state.now + _SOON)


@kernel
def make_way(state, plan, lent):
    """Suspend running jobs until no more hosts compute than have power: those of least value, of equals the last.

    `lent` is how many hosts have power besides the supply.
    """
    running = state.running[: state.nb_running]
    # Those whose suspension is under way have given their hosts back already.
    goes = state.suspended[running] > 0
    over = -spare_power(state) - lent - np.sum(state.size[running] * goes)
    while over > 0:
        least = -1
        for i in range(len(running)):
            if not goes[i]:
                more = state.value[running[least]] - state.value[running[i]] if least >= 0 else np.inf
                if more > 0 or (more == 0 and running[i] > running[least]):
                    least = i
        if least < 0:
            raise InternalError("jobs beyond the supply of power that do not run")
        goes[least] = True
        add(plan, SUSPEND, running[least])
        over -= state.size[running[least]]
