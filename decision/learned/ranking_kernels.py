"""Jobs by learned ranks, decided at an instant."""

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, I8, Bundle, F8x2, bundle_at
from decision.compiling.jit import kernel
from decision.compiling.ordered import insert_in_order
from decision.model.errors import InternalError
from decision.model.record import SHORTEST_RUNTIME
from decision.policies.allocation import take_lowest
from decision.policies.order import sort_by_key
from decision.policies.prepared import DECIDE, DECIDED
from decision.state.cluster import ClusterState, nb_hosts
from decision.state.plan_arrays import START, add, clear

from .releases import enough_at, free_hosts_at, smallest_waiting

ORDER, RESERVE, HOLD = range(3)


class RankNumber(IntEnum):
    """What a function sees of a job; all about 1, logarithms but for shares."""

    RUNTIME = 0  # requested
    SIZE = 1  # hosts
    WAIT = 2  # so far
    SLOWDOWN = 3  # so far
    DELAY = 4  # until the job could begin; with HOLD until the hosts are free that are kept for another
    OVERRUN = 5  # with HOLD: for how long it would use hosts that another job needs by then
    QUEUE = 6  # jobs
    FREE = 7  # share of hosts that are free
    SOON = 8  # share of hosts that are free within an hour
    CALM = 9  # in which time the last few jobs have come
    BLOCKED = 10  # with HOLD: for how long it would be among those that keep a share of the hosts from being free


NB_RANK_SEEN = len(RankNumber)
NB_RANK_UNITS = 3
RANK_LINEAR = 1 + NB_RANK_SEEN  # weights of the linear part: a constant, and one for each number
NB_RANK_UNIT = NB_RANK_SEEN + 2  # of a unit: one for each number, a constant, and the unit's own
_LAST = 8  # jobs that came
_SHARE = 16  # of the hosts: one in so many
_HOUR = 3600.0  # seconds


class RankingMemory(Bundle):
    """The weights, and room for a decision. R jobs may run, H hosts, J jobs may wait."""

    weights: F8x2  # (3, P)
    numbers: F8  # (11,) that a function sees
    ends: F8  # (R + H,) seconds, ascending: expected ends of the jobs that run or are planned to start
    sizes: I8  # (R + H,) their hosts
    ranked: I4  # (J,) numbers of the waiting jobs, the highest rank first
    spare: I4  # (J,) scratch
    key: F8  # (J,) minus the rank of each job


def new_ranking_memory(state: ClusterState, weights: NDArray[np.float64]) -> RankingMemory:
    """With room for every job and host of `state`."""
    jobs, running = len(state.size), len(state.running) + nb_hosts(state)
    return RankingMemory(
        weights=np.ascontiguousarray(weights, np.float64),
        numbers=np.zeros(NB_RANK_SEEN),
        ends=np.zeros(running),
        sizes=np.zeros(running, np.int64),
        ranked=np.zeros(jobs, np.int32),
        spare=np.zeros(jobs, np.int32),
        key=np.zeros(jobs),
    )


@DECIDE.entry
def decide_by_rank(state, facts, memory, plan):
    """As `plan_by_rank`, always with a plan."""
    clear(plan, state)
    plan_by_rank(state, plan, _memory_at(memory))
    return DECIDED


_memory_at = bundle_at(RankingMemory)


@kernel
def plan_by_rank(state, plan, memory):
    """Plan what starts now; the plan is empty."""
    queued, free, now = state.nb_queued, state.nb_free, state.now
    if free < smallest_waiting(state):
        return
    weights, seen, ends, sizes = memory.weights, memory.numbers, memory.ends, memory.sizes
    idle, calm = state.nb_running == 0, _all_fit(state, free)
    running = _list_running(state, ends, sizes)
    seen[:] = 0.0
    seen[RankNumber.QUEUE] = math.log1p(queued) / 5.0
    seen[RankNumber.SOON] = free_hosts_at(ends, sizes, running, free, now + _HOUR) / len(state.host_state)
    seen[RankNumber.CALM] = _long(_calm(state)) - 0.5
    kept, shadow, spare = False, now, 0
    _rank(state, memory, running)
    for i in range(queued):
        job = memory.ranked[i]
        size, end = state.size[job], now + state.expected_runtime[job]
        if size > free:
            if kept:
                continue
            begin = enough_at(ends, sizes, running, free, size)
            _see(state, job, begin, now, free, seen)
            seen[RankNumber.BLOCKED] = 0.0
            if begin < np.inf and _answer(weights[RESERVE], seen) > 0.0:
                kept, shadow = True, begin
                spare = free_hosts_at(ends, sizes, running, free, begin) - size
            continue
        late = kept and end > shadow
        _see(state, job, shadow, end if late and size > spare else now, free, seen)
        seen[RankNumber.BLOCKED] = (
            _long(min(_until_share(state, ends, sizes, running, free - size), state.expected_runtime[job])) - 0.5
        )
        if not idle and not calm and _answer(weights[HOLD], seen) > 0.0:
            continue
        spare -= size if late else 0
        take_lowest(plan, add(plan, START, job), size)
        running = _note_start(ends, sizes, running, end, size)
        free -= size
        idle = False
        if free == 0:
            return


@kernel
def _all_fit(state, free):
    """Whether all that wait could start now: then no job is held back for another."""
    for i in range(state.nb_queued):
        free -= state.size[state.queue[i]]
        if free < 0:
            return False
    return True


@kernel
def _list_running(state, ends, sizes):
    """Write ends and sizes of the jobs that run, by expected end; returns how many there are."""
    count = state.nb_running
    for i in range(count):
        ends[i] = state.expected_end[i]
        sizes[i] = state.size[state.running[i]]
    return count


@kernel
def _note_start(ends, sizes, running, end, size):
    if running >= len(ends):
        raise InternalError("a ranking started more jobs than there are free hosts")
    insert_in_order(ends, sizes, running, end, size)
    return running + 1


@kernel
def _calm(state):
    """In which time (seconds) the last few jobs have come; extrapolated where there were fewer."""
    count = state.nb_jobs
    last = min(count, _LAST)
    return (state.now - state.submit_time[count - last]) * _LAST / last


@kernel
def _until_share(state, ends, sizes, running, free):
    """For how long (seconds) a share of the hosts is not free yet; inf where it never will be."""
    return enough_at(ends, sizes, running, free, max(len(state.host_state) // _SHARE, 1)) - state.now


@kernel
def _rank(state, memory, running):
    """Sort the waiting jobs, the highest rank first, ties by arrival."""
    queued, free, seen = state.nb_queued, state.nb_free, memory.numbers
    for i in range(queued):
        job = state.queue[i]
        begin = enough_at(memory.ends, memory.sizes, running, free, state.size[job])
        _see(state, job, begin, state.now, free, seen)
        memory.key[job] = -_answer(memory.weights[ORDER], seen)
        memory.ranked[i] = job
    sort_by_key(memory.ranked, memory.spare, memory.key, 1, queued)


@kernel
def _see(state, job, begin, end, free, out):
    """The numbers that are a job's own: it could begin at one time, and uses what others need up to the other."""
    now = state.now
    wait, runtime = now - state.submit_time[job], max(state.expected_runtime[job], SHORTEST_RUNTIME)
    out[RankNumber.RUNTIME] = math.log(runtime) / 5.0 - 1.0
    out[RankNumber.SIZE] = math.log(state.size[job]) / 3.0 - 0.5
    out[RankNumber.WAIT] = _long(wait) - 0.5
    out[RankNumber.SLOWDOWN] = math.log1p(wait / runtime) / 3.0
    out[RankNumber.DELAY] = _long(begin - now) - 0.5
    out[RankNumber.OVERRUN] = _long(end - max(begin, now))
    out[RankNumber.FREE] = free / len(state.host_state)


@kernel
def _long(seconds):
    """From 0, for none or less, to about 2."""
    return math.log1p(min(max(seconds, 0.0), 1e9) / 60.0) / 4.0


@kernel
def _answer(weights, seen):
    answer = weights[0]
    for k in range(NB_RANK_SEEN):
        answer += weights[1 + k] * seen[k]
    for begin in range(RANK_LINEAR, len(weights), NB_RANK_UNIT):
        unit = weights[begin + NB_RANK_SEEN]
        for k in range(NB_RANK_SEEN):
            unit += weights[begin + k] * seen[k]
        answer += weights[begin + NB_RANK_SEEN + 1] * unit / (1.0 + abs(unit))
    return answer
