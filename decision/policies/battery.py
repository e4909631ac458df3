"""A battery next to a supply of power: jobs that run beyond the supply run on while it lasts.

It takes what the supply has and no job uses, and gives to the jobs that run beyond it; it lets no job start, as no
power of the grid does. What cannot be had from it is as with no battery: jobs make way. It knows what is and what was,
never what comes: it gives as soon as power lacks, since nothing is gained by waiting while jobs can be cut.

Levels follow from what happened between two decisions, in which nothing changes: so the same numbers come from the
jobs that ran (`decision.analysis.power_course`).
"""

from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import Bundle, Float
from decision.compiling.jit import kernel
from decision.state.plan_arrays import CALL_AT, add
from decision.state.transitions import spare_power

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
