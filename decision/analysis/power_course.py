"""Where power went by time: supply, use, what a battery took and gave, and what nobody used."""

import math
from typing import NamedTuple

import numpy as np

from decision.model.record import BatteryTable, Floats, JobTable, SupplyTable
from decision.policies.battery import Battery, level_after


class PowerCourse(NamedTuple):
    """Between edges of time nothing changes. Powers are in hosts that compute."""

    edges: Floats  # (n + 1,) seconds
    supply: Floats  # (n,) hosts that have power, inf where power is not limited
    busy: Floats  # (n,) hosts that compute
    level: Floats  # (n + 1,) host-seconds that the battery holds
    given: Floats  # (n,) hosts that the battery powers
    taken: Floats  # (n,) hosts that the supply could power, and the battery takes

    @property
    def grid(self) -> Floats:
        """(n,) hosts that compute and neither the supply nor the battery powers."""
        return np.maximum(self.busy - self.supply, 0.0) - self.given

    @property
    def waste(self) -> Floats:
        """(n,) hosts that have power, do not compute, and do not charge the battery."""
        return np.maximum(self.supply - self.busy, 0.0) - self.taken


def power_course(jobs: JobTable, supply: SupplyTable, battery: BatteryTable | None = None) -> PowerCourse:
    """Where power went.

    Args:
        jobs: those that ran, with all parts of those that were suspended.
        supply: hosts that have power.
        battery: what powered jobs beyond it, if anything did; empty at first.
    """
    end = jobs.start_time + jobs.runtime
    times = np.unique(np.concatenate([jobs.start_time, end, supply.time]))
    change = np.zeros(len(times))
    np.add.at(change, np.searchsorted(times, jobs.start_time), jobs.size)
    np.add.at(change, np.searchsorted(times, end), -jobs.size)
    busy = np.cumsum(change)[:-1]
    at = np.searchsorted(supply.time, times, side="right")[:-1] - 1
    hosts = np.where(at >= 0, supply.hosts[np.maximum(at, 0)], math.inf)
    if battery is None:
        return PowerCourse(times, hosts, busy, np.zeros(len(times)), 0.0 * busy, 0.0 * busy)
    return _with_battery(times, hosts, busy, battery)


def _with_battery(times: Floats, supply: Floats, busy: Floats, battery: BatteryTable) -> PowerCourse:
    """The course, with more edges where the battery is full or empty."""
    columns = (battery.capacity, battery.charge, battery.discharge, battery.efficiency)
    limits = Battery(*(float(column[0]) for column in columns))
    capacity, charge, discharge, efficiency = limits
    rows, level = [], 0.0
    for time, end, hosts, used in zip(times[:-1].tolist(), times[1:].tolist(), supply, busy, strict=True):
        while time < end:
            over = float(used - hosts)
            given = min(max(over, 0.0), discharge) if level > 0 else 0.0
            taken = min(max(-over, 0.0), charge) if level < capacity and math.isfinite(hosts) else 0.0
            rate = taken * efficiency - given
            last = ((capacity if rate > 0 else 0.0) - level) / rate if rate else math.inf
            after = end if time + last >= end or time + last <= time else time + last
            rows.append((time, hosts, used, level, given, taken))
            if math.isfinite(hosts):
                level = float(level_after(limits, level, over, after - time))
            if after < end:  # exactly full or empty
                level = capacity if rate > 0 else 0.0
            time = after
    begin, hosts, used, levels, gave, took = np.array(rows).reshape(-1, 6).T
    return PowerCourse(np.append(begin, times[-1:]), hosts, used, np.append(levels, level), gave, took)
