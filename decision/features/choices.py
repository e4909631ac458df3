"""What the choices of learned schedulers do.

DBF: one job of the window after the other is chosen and starts, until something else is chosen: Fwd, an empty slot, a
job that does not fit. The cycle ends then.

RLScheduler (Zhang et al., RLScheduler: an automated HPC batch job scheduler using reinforcement learning, SC 2020):
the job that is chosen is the next to start. Until it fits nothing is chosen, and jobs behind it, in order of arrival,
are backfilled where they fit and end before it can begin. An empty slot ends the cycle.

SchedInspector (Zhang, Dai and Xie, SchedInspector: a batch job scheduling inspector using reinforcement learning, HPDC
2022): the first job in some order is the next to start, as above, unless it is refused. Then the cycle ends, and the
next one begins after `PAUSE` seconds at the latest. A job is refused so often at most that it waits for 12 hours.
"""

import numpy as np

from decision.jit import kernel
from decision.policies.order import rank_of
from decision.policies.plan import CALL_AT, add

from .cycles import COMMITTED, FREE, LENGTH, place_of, start_at

# Encoding.kind
DBF, PICK, INSPECT = range(3)

REFUSE = 1  # action of INSPECT; any other accepts
PAUSE = 600.0  # seconds
MOST_REFUSALS = 72  # of a job


@kernel
def open_cycle(state, cycles, plan, encoding):
    """A cycle begins; returns whether there is something to choose in it."""
    if encoding.kind == DBF:
        return True
    if cycles.number[COMMITTED] >= 0:
        at = 0
        while cycles.queue[at] != cycles.number[COMMITTED]:
            at += 1
        if not _start_or_commit(state, cycles, plan, at):
            return False
    return cycles.number[LENGTH] > 0


@kernel
def act(state, cycles, plan, encoding, action):
    """Make a choice; what starts is in the plan. Returns whether there is another choice in this cycle."""
    if encoding.kind == INSPECT:
        at = first_in_order(state, cycles, encoding)
        if action == REFUSE and cycles.refused[cycles.queue[at]] < MOST_REFUSALS:
            _refuse(state, cycles, plan, cycles.queue[at])
            return False
        return _start_or_commit(state, cycles, plan, at) and cycles.number[LENGTH] > 0
    at = place_of(cycles, encoding, action)
    if at < 0:
        return False
    if encoding.kind == PICK:
        return _start_or_commit(state, cycles, plan, at) and cycles.number[LENGTH] > 0
    if state.size[cycles.queue[at]] > cycles.number[FREE]:
        return False
    start_at(state, cycles, plan, at)
    return True


@kernel
def first_in_order(state, cycles, encoding):
    """Place in the queue of the job that the base order has first; ties go to fewer hosts, then to the older one."""
    best, lowest = 0, np.inf
    for at in range(cycles.number[LENGTH]):
        job = cycles.queue[at]
        rank = rank_of(state, encoding.base, job)
        if rank < lowest or (rank == lowest and state.size[job] < state.size[cycles.queue[best]]):
            best, lowest = at, rank
    return best


@kernel
def _refuse(state, cycles, plan, job):
    cycles.refused[job] += 1
    cycles.call[0] = state.now[0] + PAUSE
    plan.time[add(plan, CALL_AT, -1)] = cycles.call[0]


@kernel
def _start_or_commit(state, cycles, plan, at):
    """Start the job; or else let others start that it will not wait for, and return False."""
    job = cycles.queue[at]
    if state.size[job] <= cycles.number[FREE]:
        cycles.number[COMMITTED] = -1
        start_at(state, cycles, plan, at)
        return True
    cycles.number[COMMITTED] = job
    _backfill(state, cycles, plan, job)
    return False


@kernel
def _backfill(state, cycles, plan, committed):
    """Start what fits and ends before as many cores as the committed job needs are free, by requested times."""
    needed = state.size[committed]
    begins = np.partition(cycles.until, needed - 1)[needed - 1]
    at = 0
    while at < cycles.number[LENGTH]:
        job = cycles.queue[at]
        fits = state.size[job] <= cycles.number[FREE]
        if fits and job != committed and state.now[0] + state.walltime[job] < begins:
            start_at(state, cycles, plan, at)
        else:
            at += 1
