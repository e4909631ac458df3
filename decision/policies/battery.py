"""A battery next to a supply of power: jobs that run beyond the supply run on while it lasts.

It takes what the supply has and no job uses, and gives to the jobs that run beyond it; it lets no job start, as no
power of the grid does. What cannot be had from it is as with no battery: jobs make way. It knows what is and what was,
never what comes: it gives as soon as power lacks, since nothing is gained by waiting while jobs can be cut.

Levels follow from what happened between two decisions, in which nothing changes: so the same numbers come from the
jobs that ran (`decision.analysis.power_course`).
"""

from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8, Bundle
from decision.compiling.jit import kernel
from decision.state.cluster import N_ENDED, N_RUNNING
from decision.state.plan_arrays import CALL_AT, add
from decision.state.transitions import spare_power

CAPACITY, CHARGE, DISCHARGE, EFFICIENCY = range(4)  # of `BatteryState.limits`
_SHORTEST = 1.0  # seconds: a battery that would be empty sooner is, because a call must reach Batsim before its time


class Battery(NamedTuple):
    """What a battery can do; powers are in hosts that compute."""

    capacity: float = 0.0  # host-seconds; 0: there is none
    charge: float = np.inf  # hosts that it takes the power of at most
    discharge: float = np.inf  # hosts that it powers at most
    efficiency: float = 1.0  # share of what it takes that it gives back


class BatteryState(Bundle):
    """A battery in a run. It is empty at first."""

    limits: F8  # (4,) those of a `Battery`
    level: F8  # (1,) host-seconds that it can give
    since: F8  # (1,) seconds: when that was so
    supply: F8  # (1,) hosts that have power since then
    asked: F8  # (1,) seconds: for when a call was asked that finds it empty


def new_battery(battery: Battery) -> BatteryState:
    """An empty battery at the beginning of a run."""
    zeros = {name: np.zeros(1) for name in ("level", "since", "asked")}
    return BatteryState(limits=np.array(battery, np.float64), supply=np.full(1, np.inf), **zeros)


@kernel
def level_after(limits, level, over, seconds):
    """What a battery holds (host-seconds) after so many seconds in which so many hosts computed beyond the supply."""
    if over > 0:
        return max(level - min(over, limits[DISCHARGE]) * seconds, 0.0)
    return min(level + min(-over, limits[CHARGE]) * limits[EFFICIENCY] * seconds, limits[CAPACITY])


@kernel
def follow_battery(state, battery):
    """Bring the battery to this instant, and find out what it does now.

    Returns:
        How many hosts may compute beyond the supply.
    """
    limits, now = battery.limits, state.now[0]
    if limits[CAPACITY] == 0.0:
        return 0
    if now > battery.since[0] and battery.supply[0] < np.inf:
        over = _busy_before(state, now) - battery.supply[0]
        battery.level[0] = level_after(limits, battery.level[0], over, now - battery.since[0])
    battery.since[0], battery.supply[0] = now, state.supply[0]
    over = min(-spare_power(state), limits[DISCHARGE])
    return np.int64(over) if over > 0 and battery.level[0] >= over * _SHORTEST else 0


@kernel
def _busy_before(state, now):
    """Hosts that computed just before this instant."""
    busy = 0
    for i in range(state.count[N_RUNNING]):
        job = state.running[i]
        busy += state.size[job] * (state.start_time[job] < now)
    for i in range(state.count[N_ENDED]):
        job = state.ended[i]
        busy += state.size[job] * (state.start_time[job] < now)
    return busy


@kernel
def ask_when_empty(state, plan, battery, lent):
    """Ask to be called when the battery is empty that powers so many hosts, unless that was asked for before."""
    if lent == 0:
        return
    empty = state.now[0] + battery.level[0] / lent
    if battery.asked[0] <= state.now[0] or empty < battery.asked[0]:
        battery.asked[0] = empty
        plan.time[add(plan, CALL_AT, -1)] = empty
