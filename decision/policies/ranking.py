"""Ranking: list scheduling whose three questions are answered by functions that are learned.

At each decision all waiting jobs are ranked and looked at from the highest. One that fits starts, unless it is held
back. For the first that does not fit and is found worth it, hosts are kept, as EASY keeps them for the first of the
queue: jobs behind it that would still run by then, on hosts that it needs, are as a rule held back.

So there are three questions to a job: how high it ranks (ORDER), whether hosts are kept for it (KEEP), and whether it
is held back though it fits (HOLD; never on an idle cluster). Each is answered by a function of the same numbers, a
linear one and a few units a / (1 + |a|) (softsign) beside it; KEEP and HOLD say yes above 0. Any order by size and
runtime with EASY or first-fit is among them. Learning begins with `first_guess`: `smallest_area_first`, and the
rule that a job which would leave few hosts free for long waits until few others come.
"""

import math

import numpy as np
from numpy.typing import NDArray

from decision.jit import kernel
from decision.model.platform import Platform
from decision.state.cluster import N_FREE, N_JOBS, N_QUEUED, N_RUNNING
from decision.state.view import ClusterView

from .allocation import take_lowest
from .base import Plan
from .plan import START, add

ORDER, KEEP, HOLD = range(3)

# Numbers that a function sees, all about 1; logarithms, but for shares
_RUNTIME = 0  # requested
_SIZE = 1  # hosts
_WAIT = 2  # so far
_SLOWDOWN = 3  # so far
_DELAY = 4  # until the job could begin; with HOLD until the hosts are free that are kept for another
_OVERRUN = 5  # with HOLD: for how long it would use hosts that another job needs by then
_QUEUE = 6  # jobs
_FREE = 7  # share of hosts that are free
_SOON = 8  # share of hosts that are free within an hour
_CALM = 9  # in which time the last few jobs have come
_BLOCKED = 10  # with HOLD: for how long it would be among those that keep a share of the hosts from being free
_SEEN = 11
_UNITS = 3
_LINEAR = 1 + _SEEN  # weights of the linear part: a constant, and one for each number
_UNIT = _SEEN + 2  # of a unit: one for each number, a constant, and the unit's own
WEIGHTS = (3, _LINEAR + _UNITS * _UNIT)  # shape of all of them
SEES = {"name": "ranking", "version": 2}  # for checkpoints; the version is raised whenever a number changes its meaning

_LAST = 8  # jobs that came
_SHARE = 16  # of the hosts: one in so many
_SHORTEST = 10.0  # seconds: shorter jobs count as this long
_HOUR = 3600.0  # seconds


def smallest_area_first() -> NDArray[np.float64]:
    """(3, P) weights: SAF, indifferent about keeping hosts, strict about those that are kept; units do nothing."""
    weights = np.zeros(WEIGHTS)
    weights[ORDER, [1 + _RUNTIME, 1 + _SIZE]] = -5.0, -3.0  # as the numbers are scaled: minus the area's logarithm
    weights[HOLD, [0, 1 + _OVERRUN]] = -1.0, 20.0
    return weights


def first_guess() -> NDArray[np.float64]:
    """(3, P) weights: SAF, but what would block hosts for longer than the last few jobs took to come is held back.

    Jobs that run for hours had better begin when few jobs come.
    """
    weights = smallest_area_first()
    weights[HOLD, [0, 1 + _CALM, 1 + _BLOCKED]] = 0.0, -4.0, 4.0
    return weights


def random_units(rng: np.random.Generator, spread: float) -> NDArray[np.float64]:
    """(3, P) weights of units that see something and do nothing yet; the linear parts are 0."""
    weights = np.zeros(WEIGHTS)
    weights[:, _LINEAR:] = spread * rng.standard_normal((3, _UNITS * _UNIT))
    weights[:, _LINEAR + _UNIT - 1 :: _UNIT] = 0.0
    return weights


class RankingPolicy:
    """Schedules by ranking.

    Args:
        weights: (3, P), as `WEIGHTS` has the shape: of ORDER, KEEP and HOLD.
        name: for messages.
    """

    needs_walltime = True

    def __init__(self, weights: NDArray[np.float64], name: str = "ranking") -> None:
        self.weights, self.name = weights, name

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins; nothing is remembered."""

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Start jobs."""
        plan_by_rank(cluster.arrays, plan.arrays, self.weights)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


@kernel
def plan_by_rank(state, plan, weights):
    """Plan what starts now; the plan is empty."""
    queued, free, now = state.count[N_QUEUED], state.count[N_FREE], state.now[0]
    if free < _smallest(state):
        return
    idle = state.count[N_RUNNING] == 0
    ends, sizes, running = _running(state, min(queued, free))
    seen = np.zeros(_SEEN)
    seen[_QUEUE] = math.log1p(queued) / 5.0
    seen[_SOON] = _free_at(ends, sizes, running, free, now + _HOUR) / len(state.host_state)
    seen[_CALM] = _long(_calm(state)) - 0.5
    kept, shadow, spare = False, now, 0
    for job in _by_rank(state, weights[ORDER], ends, sizes, running, seen):
        size, end = state.size[job], now + state.walltime[job]
        if size > free:
            if kept:
                continue
            begin = _begin(ends, sizes, running, free, size)
            _see(state, job, begin, now, free, seen)
            seen[_BLOCKED] = 0.0
            if begin < np.inf and _answer(weights[KEEP], seen) > 0.0:
                kept, shadow = True, begin
                spare = _free_at(ends, sizes, running, free, begin) - size
            continue
        late = kept and end > shadow
        _see(state, job, shadow, end if late and size > spare else now, free, seen)
        seen[_BLOCKED] = _long(min(_until_share(state, ends, sizes, running, free - size), state.walltime[job])) - 0.5
        if not idle and _answer(weights[HOLD], seen) > 0.0:
            continue
        spare -= size if late else 0
        take_lowest(plan, add(plan, START, job), size)
        running = _note_start(ends, sizes, running, end, size)
        free -= size
        idle = False
        if free == 0:
            return


@kernel
def _smallest(state):
    """Hosts of the smallest waiting job; more than there are, if none waits."""
    smallest = len(state.host_state) + 1
    for i in range(state.count[N_QUEUED]):
        smallest = min(smallest, state.size[state.queue[i]])
    return smallest


@kernel
def _running(state, more):
    """Ends and sizes of the jobs that run, by expected end, with room for so many more; and how many there are."""
    count = state.count[N_RUNNING]
    ends, sizes = np.empty(count + more), np.empty(count + more, np.int64)
    for i in range(count):
        ends[i] = state.expected_end[i]
        sizes[i] = state.size[state.running[i]]
    return ends, sizes, count


@kernel
def _note_start(ends, sizes, running, end, size):
    at = running
    while at > 0 and ends[at - 1] > end:
        ends[at] = ends[at - 1]
        sizes[at] = sizes[at - 1]
        at -= 1
    ends[at] = end
    sizes[at] = size
    return running + 1


@kernel
def _begin(ends, sizes, running, free, size):
    """When so many hosts are free at the latest, if nothing else starts; inf if never."""
    begin = -np.inf
    for i in range(running):
        if free >= size:
            break
        free += sizes[i]
        begin = ends[i]
    return begin if free >= size else np.inf


@kernel
def _free_at(ends, sizes, running, free, time):
    for i in range(running):
        if ends[i] > time:
            break
        free += sizes[i]
    return free


@kernel
def _calm(state):
    """In which time (seconds) the last few jobs have come; extrapolated where there were fewer."""
    count = state.count[N_JOBS]
    last = min(count, _LAST)
    return (state.now[0] - state.submit_time[count - last]) * _LAST / last


@kernel
def _until_share(state, ends, sizes, running, free):
    """For how long (seconds) a share of the hosts is not free yet; inf where it never will be."""
    return _begin(ends, sizes, running, free, max(len(state.host_state) // _SHARE, 1)) - state.now[0]


@kernel
def _by_rank(state, weights, ends, sizes, running, seen):
    """Numbers of the waiting jobs, the highest rank first, ties by arrival."""
    queued, free = state.count[N_QUEUED], state.count[N_FREE]
    last = np.empty(queued)
    for i in range(queued):
        job = state.queue[i]
        _see(state, job, _begin(ends, sizes, running, free, state.size[job]), state.now[0], free, seen)
        last[i] = -_answer(weights, seen)
    return state.queue[:queued][np.argsort(last, kind="mergesort")]


@kernel
def _see(state, job, begin, end, free, out):
    """The numbers that are a job's own: it could begin at one time, and uses what others need up to the other."""
    now = state.now[0]
    wait, runtime = now - state.submit_time[job], max(state.walltime[job], _SHORTEST)
    out[_RUNTIME] = math.log(runtime) / 5.0 - 1.0
    out[_SIZE] = math.log(state.size[job]) / 3.0 - 0.5
    out[_WAIT] = _long(wait) - 0.5
    out[_SLOWDOWN] = math.log1p(wait / runtime) / 3.0
    out[_DELAY] = _long(begin - now) - 0.5
    out[_OVERRUN] = _long(end - max(begin, now))
    out[_FREE] = free / len(state.host_state)


@kernel
def _long(seconds):
    """From 0, for none or less, to about 2."""
    return math.log1p(min(max(seconds, 0.0), 1e9) / 60.0) / 4.0


@kernel
def _answer(weights, seen):
    answer = weights[0]
    for k in range(_SEEN):
        answer += weights[1 + k] * seen[k]
    for begin in range(_LINEAR, len(weights), _UNIT):
        unit = weights[begin + _SEEN]
        for k in range(_SEEN):
            unit += weights[begin + k] * seen[k]
        answer += weights[begin + _SEEN + 1] * unit / (1.0 + abs(unit))
    return answer
