"""What a schedule was worth: values, deadlines, jobs that were suspended, and power beyond the supply.

A job that was suspended is several in Batsim's files: ``w0!7`` and what was left of it, ``w0!7#1``, ``w0!7#2``. Here it
is one, with its value once.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.model.demand import DEADLINE, VALUE, runtimes, sizes, submit_times, supply_table, walltimes, worths
from decision.model.errors import ConfigError
from decision.model.record import BatteryTable, FinalState, Floats, JobTable, RunRecord, SupplyTable, WorthTable
from decision.model.workload import MachineEvent, Workload
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

# What value no schedule can exceed, suspensions and known run times included: a Lagrangian relaxation of the power.
#
# Each host-second has a price that depends on the step alone. Were power without limit at that price, a job would take
# the cheapest seconds between its submission and its deadline, if they cost less than its value. The sum over jobs of
# what they gain, and of all power at its price, is not below the value that any schedule gets in time, whatever the
# prices are. They are raised where jobs want more power than there is (subgradient method with Polyak's steps). The
# best prices give the linear relaxation in which jobs are cut and mixed freely. A battery sells power at these prices,
# and buys what it sells (`power_station`).

# What supply, grid and a battery together can give jobs, where a host-second has a price that depends on the step.
#
# A battery buys where power is cheap and sells where it is dear, within its capacity and rates. What it earns at most
# for each level that it may end a step with is a concave function, kept as segments by slope; a step adds what giving
# less and what taking more cost, and cuts off levels below 0 and above the capacity. What is cut off below has been
# sold: so the segments also tell when the battery gives and takes. All prices being known, that is exact.


@kernel
def station(prices, power, grid, most, battery, given):
    """Write the host-seconds that are given in each step, for the most that they are worth.

    Args:
        prices: (S,) of a host-second, at least 0.
        power: (S,) host-seconds of the supply.
        grid: host-seconds that the grid has in each step.
        most: host-seconds that jobs can use in a step.
        battery: a `Battery`, whose charge and discharge are host-seconds in a step.
        given: (S,) receives them.
    """
    if battery.capacity <= 0.0:
        given[:] = np.minimum(power + grid, most)
        return
    slope, length, owner = np.zeros(2 * len(prices) + 1), np.zeros(2 * len(prices) + 1), np.zeros(2 * len(prices) + 1)
    cost = np.zeros(len(slope))  # host-seconds that a step gives less for each that the segment holds
    head, tail, efficiency = 0, 0, battery.efficiency
    held = 0.0
    for step in range(len(prices)):
        gives = min(battery.discharge, max(most - power[step] - grid, 0.0))
        takes = min(battery.charge, power[step]) * efficiency
        spare = min(takes, max(power[step] + grid - most, 0.0) * efficiency)
        given[step] = min(power[step] + grid + gives, most)
        held += spare  # costs nothing, and is before all else
        for amount, each in ((gives, 1.0), (takes - spare, 1.0 / efficiency)):
            if amount > 0.0:
                at = tail
                while at > head and slope[at - 1] > prices[step] * each:
                    slope[at], length[at], owner[at], cost[at] = (
                        slope[at - 1],
                        length[at - 1],
                        owner[at - 1],
                        cost[at - 1],
                    )
                    at -= 1
                slope[at], length[at], owner[at], cost[at] = prices[step] * each, amount, step, each
                tail += 1
        sold = min(held, gives)
        held, gives = held - sold, gives - sold
        while gives > 0.0:
            sold = min(length[head], gives)
            given[np.int64(owner[head])] -= sold * cost[head]
            gives, length[head] = gives - sold, length[head] - sold
            head += length[head] <= 0.0
        held = min(held, battery.capacity)
        over = held - battery.capacity
        for at in range(head, tail):
            over += length[at]
        while over > 0.0 and tail > head:
            dropped = min(length[tail - 1], over)
            over, length[tail - 1] = over - dropped, length[tail - 1] - dropped
            tail -= length[tail - 1] <= 0.0


_MOST_STEPS = 1_000_000
_ROUNDS = 2000  # of the subgradient method
_PATIENCE = 20  # rounds without a better bound, after which steps are halved
_DEFLECTION = 1.5  # of a direction that turns back upon the last one (Camerini, Fratta and Maffioli 1975)
_ENOUGH = 1e-5  # of the bound: shorter steps gain nothing


class ValueBound(NamedTuple):
    """Of a workload, on so many hosts under a supply of power."""

    value: float  # that no schedule can exceed with jobs that end in time
    submitted: float  # of all jobs together

    @property
    def share(self) -> float:
        """Of the value that was submitted."""
        return self.value / self.submitted


def value_bound(
    workload: Workload,
    nb_hosts: int,
    events: Sequence[MachineEvent] = (),
    step: float = 60.0,
    speed: float | None = None,
    rounds: int = _ROUNDS,
    battery: Battery = Battery(),  # noqa: B008 - immutable
    grid: float = 0.0,
) -> ValueBound:
    """What no schedule can exceed that suspends the jobs beyond supply, battery and grid.

    Args:
        workload: the jobs; what they really run counts, and a job without deadline gets its value.
        nb_hosts: of the machine.
        events: those that say how many hosts have power; none: all have.
        step: seconds that have one price.
        speed: flop/s of the hosts, for jobs that compute.
        rounds: of the method; each makes the bound as good or better.
        battery: what takes power of the supply and gives it to jobs later, empty at first, and knows what comes.
        grid: hosts that have power beyond the supply at all times.

    Raises:
        ConfigError: if no job has a value, or there are too many steps.
    """
    rows = worths(workload)
    if rows is None or np.isnan(rows[:, VALUE]).all():
        raise ConfigError(f"{workload.path or workload.name}: no job has a 'value', and the bound is one of values")
    value, size, run = np.nan_to_num(rows[:, VALUE]), sizes(workload), runtimes(workload, speed)
    begin, end = submit_times(workload), rows[:, DEADLINE] + DUE_TOLERANCE
    possible = (size <= nb_hosts) & (run < walltimes(workload)) & ~(end - begin < run)
    bounded = possible & ~np.isnan(end)
    free = float(value[possible & np.isnan(end)].sum())
    columns = [np.ascontiguousarray(column[bounded], np.float64) for column in (value, size, run, begin, end)]
    best = free
    if bounded.any():
        steps = int(float(columns[4].max()) / step) + 1
        if steps > _MOST_STEPS:
            why = f"the jobs' deadlines span {steps:,} steps of {step:g} s"
            raise ConfigError(f"{why}; give longer steps", field="step")
        power, supply = np.full(steps, nb_hosts * step), supply_table(events)  # host-seconds that there are in each
        if supply is not None:
            edges = np.arange(steps + 1) * step
            times = np.concatenate([[0.0], supply.time, [max(edges[-1], supply.time[-1])]])
            hosts = np.concatenate([[nb_hosts], np.minimum(supply.hosts, nb_hosts)])
            given = np.concatenate([[0.0], np.cumsum(hosts * np.diff(times))])
            power = np.diff(np.interp(edges, times, given))
        by_step = Battery(*map(float, np.array(battery) * (1.0, step, step, 1.0)))
        best += float(_least((power, grid * step, nb_hosts * step, by_step), step, rounds, *columns))
    return ValueBound(best, float(value.sum()))


@kernel
def _least(source, step, rounds, value, size, run, begin, end):
    """The least bound that is found: at first that of free power, the sum of all values.

    `source` is where power is from: arguments of `station`.
    """
    prices = np.zeros(len(source[0]))
    power, wanted, way = prices.copy(), prices.copy(), prices.copy()
    best_prices = prices.copy()
    best, length, since = np.inf, 0.5, 0
    for _ in range(rounds):
        station(prices, *source, power)
        bound = _bound(prices, power, step, value, size, run, begin, end, wanted)
        if bound < best * (1 - 1e-9):
            best_prices[:] = prices
            best, since = bound, 0
        else:
            since += 1
        if since >= _PATIENCE:
            length, since = length / 2, 0
            prices[:] = best_prices
            way[:] = 0.0
            station(prices, *source, power)
            bound = _bound(prices, power, step, value, size, run, begin, end, wanted)
        slope = power - wanted
        slope[(prices <= 0.0) & (slope > 0.0)] = 0.0
        turn = np.sum(slope * way)
        if turn < 0.0:
            slope -= _DEFLECTION * turn / np.sum(way**2) * way
            slope[(prices <= 0.0) & (slope > 0.0)] = 0.0
        way[:] = slope
        square = np.sum(slope**2)
        if length < _ENOUGH or square == 0.0:
            break
        prices = np.maximum(prices - length * best / square * slope, 0.0)
    return best


@kernel
def _bound(prices, power, step, value, size, run, begin, end, wanted):
    """The bound at these prices per host-second; `wanted` (S,) gets the host-seconds that jobs take."""
    wanted[:] = 0.0
    bound = np.sum(prices * power)
    for job in range(len(value)):
        first = np.int64(begin[job] / step)
        last = min(np.int64(end[job] / step), len(prices) - 1)
        order = first + np.argsort(prices[first : last + 1], kind="mergesort")
        left, cost = run[job], 0.0
        for at in order:
            room = min(end[job], (at + 1) * step) - max(begin[job], at * step)
            taken = min(left, room)
            cost += taken * prices[at]
            left -= taken
            if left <= 0.0:
                break
        gain = value[job] - size[job] * cost
        if gain <= 0.0:
            continue
        bound += gain
        left = run[job]
        for at in order:
            taken = min(left, min(end[job], (at + 1) * step) - max(begin[job], at * step))
            wanted[at] += size[job] * taken
            left -= taken
            if left <= 0.0:
                break
    return bound
