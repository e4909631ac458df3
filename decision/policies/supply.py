"""A cap on power, for any policy: so many hosts may compute as stay below it, whichever they are.

A cap is a supply of power that a policy knows of: hosts beyond it are as good as away, and jobs that run beyond it
where it falls are suspended. What hosts draw is bounded (`decision.model.platform`), so the cap is kept whatever a
policy does.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import Bundle, Float
from decision.compiling.jit import kernel
from decision.files.events import SeriesLayout, read_series
from decision.model.demand import supply_table
from decision.model.errors import ConfigError
from decision.model.platform import Platform, draw_of
from decision.model.record import Floats, Ints
from decision.model.workload import POWER_SUPPLY, MachineEvent
from decision.state.plan_arrays import CALL_AT, add
from decision.state.transitions import spare_power

CAP = "cap"  # name of the option, for every policy
_COLUMNS = ("cap", "watts", "power")


class HostCap(NamedTuple):
    """How many hosts may compute from each time on. Columns of length n."""

    time: Floats  # seconds, ascending; the first is 0
    hosts: Ints


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
    times = cap.time if table is None else np.union1d(cap.time, table.time)
    allowed = cap.hosts[np.searchsorted(cap.time, times, side="right") - 1]
    if table is not None:
        at = np.searchsorted(table.time, times, side="right") - 1
        powered = np.where(at >= 0, table.hosts[np.maximum(at, 0)], np.inf)
        allowed = np.minimum(allowed, powered).astype(np.int64)
    made = []
    for time, hosts in zip(times.tolist(), allowed.tolist(), strict=True):
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

_SHORTEST = 1.0  # seconds: a battery that would be empty sooner is, because a call must reach Batsim before its time


class Battery(NamedTuple):
    """What a battery can do; powers are in hosts that compute."""

    capacity: float = 0.0  # host-seconds; 0: there is none
    charge: float = np.inf  # hosts that it takes the power of at most
    discharge: float = np.inf  # hosts that it powers at most
    efficiency: float = 1.0  # share of what it takes that it gives back


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


def new_battery(battery: Battery) -> BatteryState:
    """An empty battery at the beginning of a run."""
    return BatteryState(**battery._asdict())


@kernel
def level_after(battery, level, over, seconds):
    """What a battery holds (host-seconds) after so many seconds in which so many hosts computed beyond the supply."""
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
    if now > battery.since and battery.supply < np.inf:
        over = _busy_before(state, now) - battery.supply
        battery.level = level_after(battery, battery.level, over, now - battery.since)
    battery.since, battery.supply = now, state.supply
    over = min(-spare_power(state), battery.discharge)
    return np.int64(over) if over > 0 and battery.level >= over * _SHORTEST else 0


@kernel
def _busy_before(state, now):
    """Hosts that computed just before this instant."""
    busy = 0
    for i in range(state.nb_running):
        job = state.running[i]
        busy += state.size[job] * (state.start_time[job] < now)
    for i in range(state.nb_ended):
        job = state.ended[i]
        busy += state.size[job] * (state.start_time[job] < now)
    return busy


@kernel
def ask_when_empty(state, plan, battery, lent):
    """Ask to be called when the battery is empty that powers so many hosts, unless that was asked for before."""
    if lent == 0:
        return
    empty = state.now + battery.level / lent
    if battery.asked <= state.now or empty < battery.asked:
        battery.asked = empty
        plan.time[add(plan, CALL_AT, -1)] = empty
