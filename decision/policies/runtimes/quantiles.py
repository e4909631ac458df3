"""Run times as distributions, as kernels for policies: predictions that say how sure they are.

What a job may take is what the last jobs alike took, as shares of their walltimes where they have some: of the user
with the same size and walltime, of the user, and of all, as far as there are such (the first ones first: a kind of n
jobs takes n of n + `PRIOR` shares of what is left; older ones count less). A job that has run for some time takes
longer than that, so only what took longer still counts.

A distribution of so few jobs is not calibrated: more or fewer than one job in ten may take less than its quantile of
0.1. So the level at which such a quantile is read off moves with each job that ends, by adaptive conformal inference
(Gibbs and Candes, arXiv 2106.00170): up where it took longer, down where it did not, such that in the long run the
share is right on any log. Between the `LEVELS` that are followed others are interpolated.

`distribution` has the same in Python.
"""

import math
from collections import deque
from operator import itemgetter
from typing import Any

import numpy as np

from decision.compiling.bundle import F8, F4x2, F8x2
from decision.compiling.draws import first_word
from decision.compiling.jit import kernel
from decision.compiling.ordered import insert_in_order

from .kernels import JOBS, RegressionMemory, new_row_of, request_key, row_of

# `quantiles` in Python: the slow twin of the kernels, and the predictor that `decision workload predict` knows.

LEVELS = np.array([0.1, 0.25, 0.5, 0.8, 0.9])  # of the quantiles that are held to what jobs took
RECENT = 16  # run times that are remembered of each kind of jobs
PRIOR = 3.0  # jobs of a kind that weigh as much as all wider kinds
FADE = 0.9  # what a job counts against the next one of its kind
# A larger step follows a change of the log sooner and is noisier.
LEVEL_STEP = 0.005  # by which a level moves, at most
EDGE = 0.02  # levels that jobs which took what was said do not move beyond, nor beyond 1 minus that
HAIR = 1e-3  # seconds: times are sums of others
MIDDLE = 0.5  # below are the lower ends of intervals

_COUNTS_OF_REQUEST = [FADE**age for age in range(RECENT)]  # what jobs of a kind count, from the last one back

Sample = list[tuple[float, float]]  # (seconds, weight), ascending


class Quantiles:
    """Run times as distributions, from the last jobs alike, of the user, and of all; their levels are calibrated.

    What `decision.policies.runtimes.quantiles` says of it holds here, too.
    """

    def __init__(self) -> None:
        self.levels = LEVELS.tolist()
        self.compared = self.held = 0  # jobs that have ended, and those that took what their interval of 80 % says
        self._recent: dict[tuple[object, ...], deque[float]] = {}
        self._said: dict[tuple[object, ...], deque[list[float]]] = {}  # of jobs that have not ended

    def predict(self, user: str, size: int, walltime: float, submit_time: float) -> float:
        """The median. The quantiles of `LEVELS` are remembered, and the job's end is compared with them."""
        sample = self._sample(user, size, walltime)
        if sample:
            said = [_read_off_in_python(sample, level, walltime) for level in self.levels]
            self._said.setdefault((user, size, walltime, submit_time), deque()).append(said)
        return self._quantile(sample, walltime, 0.0, 0.5)

    def quantile(self, user: str, size: int, walltime: float, elapsed: float, level: float) -> float:
        """Seconds that a job which has run for `elapsed` seconds takes in so many cases (`level`, between 0 and 1)."""
        return self._quantile(self._sample(user, size, walltime), walltime, elapsed, level)

    def _quantile(self, sample: Sample, walltime: float, elapsed: float, level: float) -> float:
        if not sample:
            return walltime
        longer = [each for each in sample if elapsed == 0 or each[0] > elapsed + HAIR]
        if not longer:
            return min(2 * elapsed, walltime)
        gone = sum(weight for _, weight in sample[: len(sample) - len(longer)])
        shares, levels = [0.0, *LEVELS, 1.0], [0.0, *np.maximum.accumulate(np.clip(self.levels, 0, 1)), 1.0]
        sure = float(np.interp(gone, *_rising(levels, shares))) if gone else 0.0
        seconds = _read_off_in_python(sample, float(np.interp(sure + level * (1 - sure), shares, levels)), walltime)
        return max(seconds, longer[0][0]) if gone else seconds

    def observe(self, user: str, size: int, walltime: float, submit_time: float, runtime: float) -> None:
        """Move the levels, and remember the run time."""
        took = min(max(runtime, 1.0), walltime)
        job = user, size, walltime, submit_time
        if job in self._said:
            said = self._said[job].popleft()
            self.compared += 1
            self.held += said[0] <= took <= said[-1]
            pairs = zip(self.levels, LEVELS.tolist(), said, strict=True)
            self.levels = [_moved_in_python(level, share, took, seconds) for level, share, seconds in pairs]
            if not self._said[job]:
                del self._said[job]
        for key in _kinds(user, size, walltime):
            unit = walltime if walltime < math.inf else 1.0
            self._recent.setdefault(key, deque(maxlen=RECENT)).appendleft(float(np.float32(took / unit)))

    def _sample(self, user: str, size: int, walltime: float) -> Sample:
        sample, left, unit = [], 1.0, walltime if walltime < math.inf else 1.0
        for key in _kinds(user, size, walltime):
            recent = self._recent.get(key)
            if recent:
                counts = _COUNTS_OF_REQUEST[: len(recent)]
                total = sum(counts)
                share = 1.0 if key[0] == "all" else total / (total + PRIOR)
                for each, count in zip(recent, counts, strict=True):
                    seconds = min(max(math.floor(each * unit + 0.5), 1.0), walltime)
                    sample.append((seconds, left * share * count / total))
                left *= 1 - share
        return sorted(sample, key=itemgetter(0))


def _kinds(user: str, size: int, walltime: float) -> list[tuple[object, ...]]:
    """Jobs alike, the user's, and all; those without walltimes apart."""
    endless = walltime == math.inf
    own = [("user", user, endless)] if user else []
    return [("alike", user, size, walltime), *own, ("all", endless)]


def _read_off_in_python(sample: Sample, level: float, walltime: float) -> float:
    if level <= 0:
        return min(1.0, walltime)
    if level >= 1:
        return walltime if walltime < math.inf else 2 * sample[-1][0]
    below = 0.0
    for seconds, weight in sample[:-1]:
        below += weight
        if below >= level - 1e-12:
            return seconds
    return sample[-1][0]


def _moved_in_python(level: float, share: float, took: float, said: float) -> float:
    below = took < said if share < MIDDLE else took <= said
    moved = level + LEVEL_STEP * (share - below)
    if took == said and (level > moved < EDGE or level < moved > 1 - EDGE):
        return level
    return moved


def _rising(levels: list[float], shares: list[float]) -> tuple[list[float], list[float]]:
    """The points whose level is above that of the one before."""
    kept = [0, *(k for k in range(1, len(levels)) if levels[k] > levels[k - 1])]
    return [levels[k] for k in kept], [shares[k] for k in kept]


KINDS = 3  # of jobs: those alike, the user's, all
_ALIKE, _USERS, _ALL = range(KINDS)
_COUNTS = FADE ** np.arange(RECENT)  # what jobs of a kind count, from the last one back


class QuantileMemory(RegressionMemory):
    """What was learned so far; N rows of `Habits`, and J jobs."""

    recent: F4x2  # (N + 1, RECENT) run times, as shares of walltimes where there are some; a ring
    levels: F8  # (L,) at which the quantiles of `LEVELS` are read off
    said: F8x2  # (J, L) seconds: these quantiles of each job, at its submission; nan where nothing was known
    sample: F8  # (KINDS * RECENT,) scratch: seconds, ascending
    weight: F8  # (KINDS * RECENT,) scratch: of each, 1 together


def room_for_quantiles(rows: int, jobs: int) -> dict[str, Any]:
    """Empty arrays of `QuantileMemory` besides the regression's, for so many rows of `Habits` and jobs."""
    return {
        "recent": np.zeros((rows, RECENT), np.float32),
        "levels": LEVELS.copy(),
        "said": np.zeros((jobs, len(LEVELS))),
        "sample": np.zeros(KINDS * RECENT),
        "weight": np.zeros(KINDS * RECENT),
    }


@kernel
def forget_quantiles(memory):
    """As `room_for_quantiles` makes it; what is read was written before."""
    memory.levels[:] = LEVELS


@kernel
def say_quantiles(memory, job, user, size, walltime):
    """Remember the quantiles of a job that is submitted, which its end will be compared with."""
    length = _see_alike(memory, user, size, walltime)
    # What was said is kept by job: its end judges what was said then, not what would be said now.
    for k in range(len(LEVELS)):
        memory.said[job, k] = _read_off(memory, length, memory.levels[k], walltime) if length > 0 else np.nan


@kernel
def quantile(memory, user, size, walltime, elapsed, level):
    """Seconds that a job which has run for `elapsed` seconds takes in so many cases (`level`, between 0 and 1).

    The walltime where nothing is known; and where no job alike took so long, twice what has elapsed.
    """
    length = _see_alike(memory, user, size, walltime)
    if length == 0:
        return walltime
    first, gone = 0, 0.0
    while first < length and elapsed > 0.0 and memory.sample[first] <= elapsed + HAIR:
        gone += memory.weight[first]
        first += 1
    if first == length:
        return min(2.0 * elapsed, walltime)
    # It has run for longer than a share `sure` of such jobs: the rest of the distribution is all there is.
    if first > 0:
        sure = _share_at(memory.levels, gone)
        level = sure + level * (1.0 - sure)
    seconds = _read_off(memory, length, _level_of(memory.levels, level), walltime)
    return max(seconds, memory.sample[first]) if first > 0 else seconds


@kernel
def learn_quantiles(memory, job, user, size, walltime, runtime):
    """Learn that a job has ended after `runtime` seconds: move the levels, and remember the run time."""
    # As what is said: at least a second, at most the walltime.
    took = min(max(runtime, 1.0), walltime)
    if not np.isnan(memory.said[job, 0]):
        for k in range(len(LEVELS)):
            memory.levels[k] = _moved(memory.levels[k], LEVELS[k], took, memory.said[job, k])
    for kind in range(KINDS):
        if kind != _USERS or user >= 0:
            row = new_row_of(memory, _key(kind, user, size, walltime))
            memory.recent[row, np.int64(memory.habits[row, JOBS]) % RECENT] = took / _unit(walltime)
            memory.habits[row, JOBS] += 1.0


@kernel
def _moved(level, share, took, said):
    """The level of a quantile that is to be above this share of jobs, after one of them.

    A job that took just what was said is within an interval that ends there; so it moves the level inwards, but never
    beyond what the sample spans: where all jobs take the same, any level will do.
    """
    below = took < said if share < MIDDLE else took <= said
    moved = level + LEVEL_STEP * (share - (1.0 if below else 0.0))
    beyond = (moved < level and moved < EDGE) or (moved > level and moved > 1.0 - EDGE)
    return level if took == said and beyond else moved


@kernel
def _unit(walltime):
    """Seconds in which run times are remembered."""
    return walltime if walltime < np.inf else 1.0


@kernel
def _key(kind, user, size, walltime):
    """Of a kind of jobs; those without walltimes are kinds of their own."""
    if kind == _ALIKE:
        return request_key(user, size, walltime)
    endless = 0 if walltime < np.inf else 1
    return first_word(3 + kind, 2 * (user + 1) + endless if kind == _USERS else endless)


@kernel
def _see_alike(memory, user, size, walltime):
    """Write run times of jobs alike, ascending, in whole seconds, and what each weighs; returns how many."""
    length, left = 0, 1.0
    for kind in range(KINDS):
        row = row_of(memory, _key(kind, user, size, walltime)) if kind != _USERS or user >= 0 else 0
        if row > 0:
            jobs = np.int64(memory.habits[row, JOBS])
            known = min(jobs, RECENT)
            # Each kind takes its part of what the narrower kinds have left; all jobs take the rest.
            counts = _COUNTS[:known].sum()
            share = 1.0 if kind == _ALL else counts / (counts + PRIOR)
            for i in range(known):
                seconds = math.floor(memory.recent[row, (jobs - 1 - i) % RECENT] * _unit(walltime) + 0.5)
                seconds, weight = min(max(seconds, 1.0), walltime), left * share * _COUNTS[i] / counts
                insert_in_order(memory.sample, memory.weight, length, seconds, weight)
                length += 1
            left *= 1.0 - share
    return length


@kernel
def _read_off(memory, length, level, walltime):
    """The quantile of the first `length` of the sample at a level; a second and the walltime beyond 0 and 1."""
    if level <= 0.0:
        return min(1.0, walltime)
    if level >= 1.0:
        return walltime if walltime < np.inf else 2.0 * memory.sample[length - 1]
    at, below = 0, memory.weight[0]
    # 1e-12: weights are sums of many, and an equal level must not slip to the next job.
    while at < length - 1 and below < level - 1e-12:
        at += 1
        below += memory.weight[at]
    return memory.sample[at]


@kernel
def _level_of(levels, share):
    """The level at which the quantile is read off that a share of jobs stays below."""
    x0, y0 = 0.0, 0.0
    for k in range(len(LEVELS)):
        x1, y1 = LEVELS[k], min(max(levels[k], y0), 1.0)
        if share <= x1:
            return y0 + (y1 - y0) * (share - x0) / (x1 - x0)
        x0, y0 = x1, y1
    return y0 + (1.0 - y0) * (share - x0) / (1.0 - x0)


@kernel
def _share_at(levels, level):
    """The share of jobs that stays below what is read off at a level: the other way round."""
    x0, y0 = 0.0, 0.0
    for k in range(len(LEVELS)):
        x1, y1 = LEVELS[k], min(max(levels[k], y0), 1.0)
        if level <= y1 and y1 > y0:
            return x0 + (x1 - x0) * (level - y0) / (y1 - y0)
        x0, y0 = x1, y1
    return x0 + (1.0 - x0) * (level - y0) / (1.0 - y0) if y0 < 1.0 else 1.0
