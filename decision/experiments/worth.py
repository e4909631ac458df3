"""What a schedule was worth: values, deadlines, jobs that were suspended, and power beyond the supply.

A job that was suspended is several in Batsim's files: ``w0!7`` and what was left of it, ``w0!7#1``, ``w0!7#2``. Here it
is one, with its value once.
"""

import math
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.model.record import BatteryTable, FinalState, Floats, JobTable, RunRecord, SupplyTable, WorthTable
from decision.policies.traits import Battery
from decision.policies.wrappers.supply import level_after

# Where power went by time: supply, use, what a battery took and gave, and what nobody used.


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


DUE_TOLERANCE = 1e-3  # seconds: an end so much after its deadline is in time, since clocks round


def join_parts(jobs: JobTable) -> JobTable:
    """The jobs as they were submitted, each once.

    A job that was suspended has the submission of its first part, the final state of its last, and the run times of all
    together. It starts as much before its end as it ran: so what is not run time is waiting time.
    """
    if not (jobs.final_state == FinalState.COMPLETED_KILLED).any():
        return jobs
    ids = list(jobs.id)
    row_of = {job: row for row, job in enumerate(ids)}
    last: dict[int, int] = {}  # of the first part: the last part, by row
    ran = np.where(np.isnan(jobs.runtime), 0.0, jobs.runtime)
    total = ran.copy()
    parts = np.zeros(len(ids), np.bool_)
    for row, job in enumerate(ids):
        origin, mark, part = job.rpartition("#")
        first = row_of.get(origin, -1) if mark and part.isdigit() else -1
        if first >= 0 and jobs.final_state[first] == FinalState.COMPLETED_KILLED:
            parts[row] = True
            total[first] += ran[row]
            if first not in last or int(part) > int(ids[last[first]].rpartition("#")[2]):
                last[first] = row
    if not last:
        return jobs
    final, runtime = np.array(jobs.final_state), np.array(jobs.runtime)
    start, allocation = np.array(jobs.start_time), list(jobs.allocation)
    for first, row in last.items():
        final[first], runtime[first] = final[row], total[first] if final[row] != FinalState.REJECTED else math.nan
        start[first] = jobs.start_time[row] + jobs.runtime[row] - runtime[first]
        allocation[first] = allocation[row]
    joined = replace(jobs, final_state=final, runtime=runtime, start_time=start, allocation=allocation)
    return joined.take(np.flatnonzero(~parts))


def total_value(jobs: JobTable, worth: WorthTable | None) -> float:
    """``sum(value)`` of the jobs that ended successfully, in time or not; nan where no job has a value."""
    if worth is None or np.isnan(worth.value).all():
        return math.nan
    done = {job for job, state in zip(jobs.id, jobs.final_state.tolist(), strict=True) if state == _SUCCESS}
    return float(np.nansum([value for job, value in zip(worth.id, worth.value.tolist(), strict=True) if job in done]))


def value_share(jobs: JobTable, worth: WorthTable | None) -> float:
    """`total_value` over the sum of the values of all jobs that were submitted; nan where no job has a value."""
    value = total_value(jobs, worth)
    return value / float(np.nansum(worth.value)) if worth is not None and value == value else math.nan


def missed_deadlines(jobs: JobTable, worth: WorthTable | None) -> float:
    """Jobs that did not end successfully by their deadline, to the millisecond, rejected ones too; nan without any."""
    if worth is None or np.isnan(worth.deadline).all():
        return math.nan
    return float(_violated(jobs, worth).sum())


def violated_share(jobs: JobTable, worth: WorthTable | None) -> float:
    """Value of the jobs that `missed_deadlines` counts, over that of all submitted ones; nan where none has a value."""
    if worth is None or np.isnan(worth.value).all():
        return math.nan
    return float(np.nansum(worth.value[_violated(jobs, worth)]) / np.nansum(worth.value))


def _violated(jobs: JobTable, worth: WorthTable) -> NDArray[np.bool_]:
    """(n,) by the rows of `worth`; jobs without a deadline are not."""
    ends = dict(zip(jobs.id, (jobs.start_time + jobs.runtime).tolist(), strict=True))
    states = dict(zip(jobs.id, jobs.final_state.tolist(), strict=True))
    late = [
        deadline == deadline and (states.get(job) != _SUCCESS or ends[job] > deadline + DUE_TOLERANCE)
        for job, deadline in zip(worth.id, worth.deadline.tolist(), strict=True)
    ]
    return np.array(late, np.bool_)


def grid_time(jobs: JobTable, supply: SupplyTable | None, battery: BatteryTable | None = None) -> float:
    """``integral of max(0, busy hosts - supply)``: host-seconds beyond supply and battery; nan without a supply.

    `jobs` are those that ran, with all parts of those that were suspended.
    """
    if supply is None:
        return math.nan
    course = power_course(jobs, supply, battery)
    return float((course.grid * np.diff(course.edges)).sum())


def later_record(record: RunRecord, seconds: float) -> RunRecord:
    """The record with the times of deadlines, of the supply and of what energy emits and costs moved."""
    worth, supply, carbon, price = record.worth, record.supply, record.carbon, record.price
    return replace(
        record,
        worth=worth and replace(worth, deadline=worth.deadline + seconds),
        supply=supply and replace(supply, time=supply.time + seconds),
        carbon=carbon and replace(carbon, time=carbon.time + seconds),
        price=price and replace(price, time=price.time + seconds),
    )


_SUCCESS = int(FinalState.COMPLETED_SUCCESSFULLY)
