"""What is known at a moment, and draws from it: how long jobs last, and who comes later."""

import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.dates import DAY

SEVEN_DAYS = 7.0 * DAY
HOUR = 3600.0
_RECENT = 24  # run times that are remembered of each kind of jobs
EVERYBODY = 240  # and of the widest kinds
_PRIOR = 3.0  # jobs of a kind that weigh as much as all wider kinds
_FADE = 0.93  # what a job counts against the next one of its kind
# Jobs of one study are all short or all long. Of 0.4, 0.8 and 0.95 this held most intervals on CTC, Theta and Curie, at
# no larger loss.
COMMON = 0.8  # share of their luck that jobs of a user with the same limit have in common
STRATUM = 25  # futures among which run times are spread evenly
LONGEST = 400.0 * DAY  # seconds: of jobs of which nothing is known at all

OVER, UNDER_WAY, WAITS, NOT_YET = range(4)


class KnownJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs as a log has them, by submission; times in seconds on one clock, nan where something did not happen."""

    id: Sequence[str]
    submit: F8  # (n,)
    start: F8  # (n,)
    runtime: F8  # (n,) seconds
    size: I8  # (n,) hosts, or what else counts
    limit: F8  # (n,) seconds, inf without one
    user: I8  # (n,) -1 where unknown

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def end(self) -> F8:
        """(n,) seconds: when each job ended."""
        return self.start + self.runtime

    def states(self, at: float) -> I8:
        """(n,) What each job was at a time: ENDED, RUNNING, PENDING, or UNKNOWN as long as it was not submitted."""
        started, ended = self.start <= at, self.end <= at  # nan is neither
        known = np.where(ended, OVER, np.where(started, UNDER_WAY, WAITS))
        return np.where(self.submit <= at, known, NOT_YET)


class TimeSpread(NamedTuple):
    """How long a job may last: ``below[i]`` is the share of cases in which it lasts at most ``seconds[i]``."""

    seconds: F8  # ascending
    below: F8  # ascending; what is missing to 1 lasts longer than the last one, half of it twice as long
    longest: float  # seconds
    basis: str  # whose jobs it rests on
    jobs: int  # how many of the narrowest kind that there are

    def draw(self, share: F8) -> F8:
        """(k,) seconds at shares (k,) between 0 and 1."""
        if not len(self.seconds):
            return np.full(len(share), self.longest)
        at = np.searchsorted(self.below, share)
        known = self.seconds[np.minimum(at, len(self.seconds) - 1)]
        last, covered = self.seconds[-1], self.below[-1]
        beyond = last * (1 - covered) / np.maximum(1e-9, 1 - share)
        return np.where(at < len(self.seconds), known, np.minimum(beyond, max(self.longest, last)))


class RunTimes:
    """Run times of ended jobs by kind: those alike, the user's of the same limit, the user's, of like limits, and all.

    One pass over the history; nothing of it is kept but the last jobs of each kind. Times are remembered as shares of
    limits where there are some, so that kinds with different limits tell of each other.
    """

    def __init__(self) -> None:
        self._ended: dict[tuple[object, ...], deque[float]] = {}
        self._running: defaultdict[tuple[object, ...], list[float]] = defaultdict(list)
        self._spreads: dict[tuple[object, ...], TimeSpread] = {}

    def learn(self, user: int, size: int, limit: float, runtime: float) -> None:
        """A job has ended after so many seconds."""
        share = max(1.0, runtime) / _unit(limit)
        for kind in _kinds(user, size, limit):
            room = EVERYBODY if kind[0] in ("class", "all") else _RECENT
            self._ended.setdefault(kind, deque(maxlen=room)).append(share)
        self._spreads.clear()

    def watch(self, jobs: Iterable[tuple[int, int, float, float]]) -> None:
        """These jobs run: (user, size, limit, seconds that they have run); they will take longer than that."""
        self._running.clear()
        self._spreads.clear()
        for user, size, limit, elapsed in jobs:
            for kind in _kinds(user, size, limit):
                self._running[kind].append(elapsed / _unit(limit))

    def spread(self, user: int, size: int, limit: float, elapsed: float = 0.0) -> TimeSpread:
        """How long a job may last that has run for so many seconds.

        The estimate of Kaplan and Meier (1958) from jobs that ended and from those that still run, each kind weighing
        what the narrower ones leave.
        """
        key = (user, size, limit, elapsed)
        if key not in self._spreads:
            self._spreads[key] = self._estimate(user, size, limit, elapsed)
        return self._spreads[key]

    def _estimate(self, user: int, size: int, limit: float, elapsed: float) -> TimeSpread:
        unit, left = _unit(limit), 1.0
        values, weights, over = [], [], []
        basis, known = "the limit alone", 0
        for kind in _kinds(user, size, limit):
            ended, running = self._ended.get(kind, ()), self._running.get(kind, ())
            if not ended:
                continue
            counts = _FADE ** np.arange(len(ended))[::-1]
            total = counts.sum()
            if known == 0:
                basis, known = _BASIS[str(kind[0])], len(ended)
            share = 1.0 if kind[0] == "all" else total / (total + _PRIOR)
            # those that run weigh as the latest that ended: they began not long ago
            each = left * share / (total + len(running))
            values += [*ended, *running]
            weights += [*(counts * each), *([each] * len(running))]
            over += [True] * len(ended) + [False] * len(running)
            left *= 1 - share
        longest = limit if np.isfinite(limit) else LONGEST
        if not values:
            return TimeSpread(np.zeros(0), np.zeros(0), longest, basis, 0)
        seconds = np.array(values) * unit
        done = np.array(over)
        # at one time ends come before those who only are known to have run so long
        order = np.lexsort((~done, seconds))
        seconds, done, weight = seconds[order], done[order], np.array(weights)[order]
        at_risk = np.cumsum(weight[::-1])[::-1]
        counted = done & (seconds > elapsed + 1e-3)
        hazard = np.where(counted, np.minimum(1.0, weight / np.maximum(at_risk, 1e-300)), 0.0)
        below = 1 - np.cumprod(1 - hazard)
        seconds, below = np.minimum(seconds[counted], longest), below[counted]
        if not np.isfinite(limit):
            longest = 2 * max(elapsed, float(seconds[-1]) if len(seconds) else 1.0)
        if not len(seconds):  # no job alike took so long: anything up to the limit
            seconds, below = np.array([elapsed + 1.0]), np.array([0.0])
        return TimeSpread(seconds, below, max(longest, elapsed + 1.0), basis, known)


_BASIS = {
    "alike": "jobs alike of the user",
    "limit": "the user's jobs of this limit",
    "user": "other jobs of the user",
    "class": "others' jobs of such limits",
    "all": "all jobs",
}


def _unit(limit: float) -> float:
    return limit if np.isfinite(limit) else 1.0


def _kinds(user: int, size: int, limit: float) -> list[tuple[object, ...]]:
    """From the narrowest kind to the widest; jobs without limits are kinds of their own."""
    bounded = bool(np.isfinite(limit))
    own = [("alike", user, size, limit), ("limit", user, limit), ("user", user, bounded)] if user >= 0 else []
    octave = int(np.log2(max(1.0, limit))) if bounded else -1
    return [*own, ("class", octave, int(np.log2(max(1, size)))), ("all", bounded)]


class Luck:
    """Random numbers that belong to a job by its name and to a future by its number."""

    def __init__(self, seed: int, futures: int) -> None:
        self._seed, self.futures = seed, futures
        self._common: dict[int, F8] = {}

    def of(self, name: str, alike: int) -> F8:
        """(futures,) shares between 0 and 1, spread evenly; jobs with the same `alike` have some of it in common."""
        if alike not in self._common:
            self._common[alike] = self._normal(1, alike)
        own = self._normal(0, zlib.crc32(name.encode()))
        mixed = np.sqrt(COMMON) * self._common[alike] + np.sqrt(1 - COMMON) * own
        # by ranks within some futures, so that few futures already have the whole spread
        for first in range(0, self.futures, STRATUM):
            part = mixed[first : first + STRATUM]
            mixed[first : first + STRATUM] = (np.argsort(np.argsort(part)) + 0.5) / len(part)
        return mixed

    def _normal(self, kind: int, key: int) -> F8:
        return np.random.default_rng((self._seed, kind, key)).standard_normal(self.futures)


def kind_number(user: int, size: int, limit: float) -> int:
    """A number that jobs alike have in common."""
    return zlib.crc32(repr((user, size if user < 0 else 0, limit)).encode())


class Arrivals:
    """Who comes later: jobs of the history, from the same weekday and hour as long as it is long enough.

    Blocks of the history are taken whole, so that jobs that came together come together. A history of more than a week
    gives days of earlier weeks, one of more than two days parts of earlier days, a shorter one any part of itself.
    """

    def __init__(self, submit: F8, at: float) -> None:
        self._submit, self._at = submit[submit <= at], at
        first = float(self._submit[0]) if len(self._submit) else at
        span = at - first
        self._first = first
        self._period = SEVEN_DAYS if span >= SEVEN_DAYS else DAY if span >= 2 * DAY else 0.0
        self._block = DAY if span >= SEVEN_DAYS else 6 * HOUR if span >= 2 * DAY else max(60.0, span / 8)

    def draw(self, rng: np.random.Generator, horizon: float, most: int) -> tuple[I8, F8]:
        """Rows of the log and the times at which they come again, up to `horizon` seconds after the moment."""
        rows: list[I8] = []
        times: list[F8] = []
        count, shift = 0, 0.0
        for begin in np.arange(self._at, self._at + horizon, self._block):
            shift = self._shift(rng, begin, shift)
            if shift <= 0 or count >= most:
                break
            low, high = np.searchsorted(self._submit, (begin - shift, begin - shift + self._block), side="right")
            rows.append(np.arange(low, high))
            times.append(self._submit[low:high] + shift)
            count += int(high - low)
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0)
        found, when = np.concatenate(rows)[:most], np.concatenate(times)[:most]
        order = np.argsort(when, kind="stable")
        return found[order], when[order]

    def _shift(self, rng: np.random.Generator, begin: float, last: float) -> float:
        """Seconds by which the block at `begin` is later than what it repeats; 0 where there is no such history."""
        end, block = begin + self._block, self._block
        if not self._period:
            low, high = end - self._at, begin - self._first
            return float(rng.uniform(low, high)) if high > low else 0.0
        least = int(np.ceil((end - self._at) / self._period))
        most = int((begin - self._first) // self._period)
        if most < least:
            return (least * self._period) if end - least * self._period - block >= self._first else 0.0
        # what follows a block followed it in the history, too, more often than not
        if least * self._period <= last <= most * self._period and rng.random() < 0.7:
            return last
        return self._period * float(rng.integers(least, min(most, least + 11) + 1))
