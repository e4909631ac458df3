"""What no schedule of a log can be below: a Lagrangian relaxation of the hosts, with run times known in advance.

Each host-second has a price that depends on the time alone. Were hosts without limit at that price, each job would
begin when its own cost and the price of its hosts are least together; the sum of that over jobs, less the price of all
hosts, is a lower bound of the cost of all schedules, whatever the prices are. They are raised where jobs want more
hosts than there are (subgradient method with Polyak's steps). The best prices give the linear relaxation of the
time-indexed formulation (Dyer and Wolsey, Discrete Applied Mathematics 26, 1990), which is at least as tight as
preemptive relaxations; prices that are not the best give less, but never too much.
"""

import math
from typing import NamedTuple

import numpy as np

from decision.compiling.jit import kernel
from decision.model.record import SHORTEST_RUNTIME, Floats, JobTable

_CELLS = 4000  # of constant price
_STEPS = 400  # of the subgradient method
_PATIENCE = 10  # steps without a better bound, after which they are halved


class LowerBound(NamedTuple):
    """Of a log, on so many hosts."""

    wait: float  # seconds, mean
    slowdown: float  # bounded, mean


def lower_bound(jobs: JobTable, nb_hosts: int) -> LowerBound:
    """Of the mean wait and the mean bounded slowdown of any schedule of the jobs.

    Args:
        jobs: all jobs, as a schedule has run them; it says how far the costs can be from the bound.
        nb_hosts: of the machine.
    """
    order = np.argsort(jobs.submit_time, kind="stable")
    submit, start, runtime = (
        np.asarray(each, np.float64)[order] for each in (jobs.submit_time, jobs.start_time, jobs.runtime)
    )
    size, waits = np.asarray(jobs.size, np.float64)[order], start - submit
    free = np.maximum(SHORTEST_RUNTIME - runtime, 0.0)  # seconds of waiting that cost no slowdown
    problem = submit - submit[0], size, runtime
    end = float((start + runtime).max() - submit[0])
    rate = 1 / np.maximum(runtime, SHORTEST_RUNTIME)
    wait = _bound(*problem, np.ones(len(size)), np.zeros(len(size)), nb_hosts, end, float(waits.mean()))
    over = float((np.maximum(waits - free, 0.0) * rate).mean())
    return LowerBound(wait, 1 + _bound(*problem, rate, free, nb_hosts, end, over))


def _bound(
    submit: Floats, size: Floats, runtime: Floats, rate: Floats, free: Floats, nb_hosts: int, end: float, known: float
) -> float:
    """Of the mean of ``rate * max(wait - free, 0)``; `known` is what some schedule has that ends at `end`."""
    cell, best, since, share = end / _CELLS, 0.0, 0, 1.0
    price, tried = np.zeros(_CELLS), np.zeros(_CELLS)
    for _ in range(_STEPS):
        sums = np.concatenate([[0.0], np.cumsum(price) * cell])
        wanted = np.zeros(_CELLS)  # host-seconds
        cost = _cheapest(submit, size, runtime, rate, free, sums, cell, wanted)
        bound = (cost - nb_hosts * sums[-1]) / len(size)
        if bound > best:
            best, tried, since = bound, price, 0
        else:
            since += 1
        if since == _PATIENCE:
            price, share, since = tried, share / 2, 0
            continue
        slope = (wanted - nb_hosts * cell) / len(size)
        slope[(price == 0) & (slope < 0)] = 0.0
        square = float(slope @ slope)
        if square == 0 or known <= best * (1 + 1e-6):
            break
        price = np.maximum(price + share * (known - bound) / square * slope, 0.0)
    return float(best)


@kernel
def _cheapest(submit, size, runtime, rate, free, sums, cell, wanted):
    """The sum of what jobs cost when they are cheapest; adds the host-seconds that they then want to each cell.

    Costs are linear between edges of cells, for a job's begin and for its end, so these are all that is looked at.
    """
    total = 0.0
    for job in range(len(submit)):
        begin, length = submit[job], runtime[job]
        at = begin
        least = size[job] * (_price(sums, cell, begin + length) - _price(sums, cell, begin))
        for shift in (0.0, length):
            edge = math.floor((begin + shift) / cell) + 1
            while edge < len(sums):
                start = max(edge * cell - shift, begin)
                late = rate[job] * max(start - begin - free[job], 0.0)
                if late >= least:
                    break
                cost = late + size[job] * (_price(sums, cell, start + length) - _price(sums, cell, start))
                if cost < least:
                    least, at = cost, start
                edge += 1
        start = begin + free[job]
        cost = size[job] * (_price(sums, cell, start + length) - _price(sums, cell, start))
        if cost < least:
            least, at = cost, start
        total += least
        _want(wanted, cell, size[job], at, at + length)
    return total


@kernel
def _price(sums, cell, time):
    """The price of a host from 0 s on until `time`."""
    place = time / cell
    low = int(place)
    if low >= len(sums) - 1:
        return sums[len(sums) - 1]
    return sums[low] + (place - low) * (sums[low + 1] - sums[low])


@kernel
def _want(wanted, cell, size, begin, end):
    at = int(begin / cell)
    while at < len(wanted) and at * cell < end:
        wanted[at] += size * max(min(end, (at + 1) * cell) - max(begin, at * cell), 0.0)
        at += 1
