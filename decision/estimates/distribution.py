"""`quantiles` in Python: the slow twin of the kernels, and the predictor that `decision workload predict` knows."""

import math
from collections import deque
from operator import itemgetter

import numpy as np

LEVELS = np.array([0.1, 0.25, 0.5, 0.8, 0.9])  # of the quantiles that are held to what jobs took
RECENT = 16  # run times that are remembered of each kind of jobs
PRIOR = 3.0  # jobs of a kind that weigh as much as all wider kinds
FADE = 0.9  # what a job counts against the next one of its kind
LEVEL_STEP = 0.005  # by which a level moves, at most
EDGE = 0.02  # levels that jobs which took what was said do not move beyond, nor beyond 1 minus that
HAIR = 1e-3  # seconds: times are sums of others
MIDDLE = 0.5  # below are the lower ends of intervals

_COUNTS = [FADE**age for age in range(RECENT)]  # what jobs of a kind count, from the last one back

Sample = list[tuple[float, float]]  # (seconds, weight), ascending


class Quantiles:
    """Run times as distributions, from the last jobs alike, of the user, and of all; their levels are calibrated.

    What `decision.estimates.quantiles` says of it holds here, too.
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
            said = [_read_off(sample, level, walltime) for level in self.levels]
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
        seconds = _read_off(sample, float(np.interp(sure + level * (1 - sure), shares, levels)), walltime)
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
            self.levels = [_moved(level, share, took, seconds) for level, share, seconds in pairs]
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
                counts = _COUNTS[: len(recent)]
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


def _read_off(sample: Sample, level: float, walltime: float) -> float:
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


def _moved(level: float, share: float, took: float, said: float) -> float:
    below = took < said if share < MIDDLE else took <= said
    moved = level + LEVEL_STEP * (share - below)
    if took == said and (level > moved < EDGE or level < moved > 1 - EDGE):
        return level
    return moved


def _rising(levels: list[float], shares: list[float]) -> tuple[list[float], list[float]]:
    """The points whose level is above that of the one before."""
    kept = [0, *(k for k in range(1, len(levels)) if levels[k] > levels[k - 1])]
    return [levels[k] for k in kept], [shares[k] for k in kept]
