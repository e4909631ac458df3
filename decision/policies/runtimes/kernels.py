"""`predictors.Regression` as kernels, for policies: run times from what each user's jobs took before."""

import math
from collections import deque
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from decision.compiling.bundle import F8, I4, U8, Bundle, F4x2, F8x2, Float, Int
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import first_word, insert_in_order
from decision.model.dates import DAY
from decision.model.errors import InternalError

# What is known of the run times of some jobs, by user or by user and request: a table that kernels learn in.
#
# A key is a hash of 64 bits. Rows are used in the order in which keys come, so that only as much memory is touched as
# there are keys, and they are found by open addressing. The first row is that of all jobs, and of no key.

_KEYS_PER_JOB = 2  # of its user, and of its user, size and walltime
_KEYS_OF_ALL = 2  # of all jobs with walltimes, and of all without


class Habits(Bundle):
    """Another table of N rows."""

    habit_slot: I4  # (S,) where the row of a key is, 0 where none is; S is a power of two, or 0 where rows are shared
    habit_key: U8  # (N + 1,)
    habit_jobs: F8  # (N + 1,) how many
    habit_mean: F8  # (N + 1,) of their run times, of late ones more
    habit_last: F8  # (N + 1,) the last run time,
    habit_before: F8  # (N + 1,) and the one before it
    habits_used: Int  # rows that have a key


H = TypeVar("H", bound=Habits)
_BY_ROW = ("habit_jobs", "habit_mean", "habit_last", "habit_before")


def room_for_habits(jobs: int) -> dict[str, Any]:
    """Empty arrays of `Habits` for so many jobs. Pages of rows that no key has take no memory."""
    rows = _keys_of(jobs)
    return {
        "habit_slot": np.zeros(1 << (2 * rows).bit_length(), np.int32),
        "habit_key": np.zeros(rows + 1, np.uint64),
        **{name: np.zeros(rows + 1) for name in _BY_ROW},
    }


def _keys_of(jobs: int) -> int:
    return _KEYS_PER_JOB * jobs + _KEYS_OF_ALL if jobs else 0


def shared_habits(rows: int) -> dict[str, Any]:
    """Empty arrays of `Habits` with so many rows for whatever keys come; those that share a row count as one."""
    return {
        "habit_slot": np.zeros(0, np.int32),
        "habit_key": np.zeros(0, np.uint64),
        **{name: np.zeros(rows) for name in _BY_ROW},
    }


def grown_habits(memory: H, jobs: int) -> H:
    """The same table with room for so many jobs: the same arrays where it has."""
    if len(memory.habit_key) > _keys_of(jobs):
        return memory
    room, rows = room_for_habits(jobs), memory.habits_used + 1
    for name in ("habit_key", *_BY_ROW):
        room[name][:rows] = getattr(memory, name)[:rows]
    grown = memory._replace(**room)
    _find_places(grown)
    return grown


@kernel
def forget_habits(memory):
    """No key has a row."""
    memory.habit_slot[:] = 0
    rows = memory.habits_used + 1
    memory.habit_jobs[:rows], memory.habit_mean[:rows] = 0.0, 0.0
    memory.habit_last[:rows], memory.habit_before[:rows] = 0.0, 0.0
    memory.habits_used = 0


@kernel
def _find_places(memory):
    for row in range(1, memory.habits_used + 1):
        memory.habit_slot[_place(memory, memory.habit_key[row])] = row


@kernel
def user_key(user):
    """The key of a user's jobs."""
    return first_word(1, user + 1)


@kernel
def request_key(user, size, walltime):
    """The key of a user's jobs of this size and walltime (seconds)."""
    return first_word(first_word(2, user + 1) ^ first_word(3, size), walltime * 1000.0 if walltime < 1e12 else 0.0)


@kernel
def row_of(memory, key):
    """The row of a key; 0 where it has none."""
    if len(memory.habit_slot) == 0:
        row = _shared_row(memory, key)
        return row if memory.habit_jobs[row] > 0.0 else 0
    return np.int64(memory.habit_slot[_place(memory, key)])


@kernel
def _shared_row(memory, key):
    # Row 0 is that of all jobs.
    return 1 + np.int64(key % np.uint64(len(memory.habit_jobs) - 1))


@kernel
def new_row_of(memory, key):
    """The row of a key, which gets one where it has none."""
    if len(memory.habit_slot) == 0:
        return _shared_row(memory, key)
    place = _place(memory, key)
    # First seen: the next row is cleared and taken. Rows are touched only here, so that unused pages take no memory.
    if memory.habit_slot[place] == 0:
        row = memory.habits_used + 1
        if row >= len(memory.habit_key):
            raise InternalError("a predictor's memory has no room for another user")
        memory.habits_used = row
        memory.habit_key[row] = key
        memory.habit_jobs[row], memory.habit_mean[row] = 0.0, 0.0
        memory.habit_last[row], memory.habit_before[row] = 0.0, 0.0
        memory.habit_slot[place] = row
    return np.int64(memory.habit_slot[place])


@kernel
def _place(memory, key):
    """Where the key is in the table, or could be put."""
    last = len(memory.habit_slot) - 1
    place = np.int64(key & np.uint64(last))
    # Linear probing; half of the slots at least are free (`room_for_habits`), so that this ends soon.
    while memory.habit_slot[place] != 0 and memory.habit_key[memory.habit_slot[place]] != key:
        place = (place + 1) & last
    return place


_INPUTS = 9
# So that a habit follows a user who changes: as with `predictors._FORGET`, the slow twin's.
_FORGET = 20.0  # jobs after which a habit's mean forgets


class RegressionMemory(Habits):
    """What was learned so far; habits are logarithms of seconds."""

    regression: F8  # (9,) weights
    inverse: F8x2  # (9, 9) of the covariance
    longest: Float  # of all run times, as a logarithm
    inputs: F8  # (9,) scratch
    gain: F8  # (9,) scratch
    ridge: Float  # weight of the pull to zero, in jobs


def new_regression(habits: dict[str, Any], ridge: float = 1.0) -> RegressionMemory:
    """One that has learned nothing.

    Args:
        habits: empty arrays of `Habits`.
        ridge: weight of the pull to zero, in jobs.
    """
    return RegressionMemory(
        regression=np.zeros(_INPUTS),
        inverse=np.eye(_INPUTS) / ridge,
        inputs=np.zeros(_INPUTS),
        gain=np.zeros(_INPUTS),
        ridge=ridge,
        **habits,
    )


@kernel
def forget_regression(memory):
    """Forget all jobs, so that the memory is as `new_regression` makes it."""
    forget_habits(memory)
    memory.longest = 0.0
    for i in range(_INPUTS):
        memory.regression[i] = 0.0
        for k in range(_INPUTS):
            memory.inverse[i, k] = 1.0 / memory.ridge if i == k else 0.0


@kernel
def predict(memory, user, size, walltime, submit_time):
    """Seconds that a job will run: a second at least, at most its walltime and the longest run time so far."""
    if memory.habit_jobs[0] == 0.0:
        return walltime
    _see(memory, user, size, walltime, submit_time)
    # Never beyond the longest run time so far: a line that was fitted to few points says anything far from them.
    guess = _value(memory)
    return min(math.exp(min(max(guess, 0.0), memory.longest)), walltime)


@kernel
def learn_end(memory, user, size, walltime, submit_time, runtime):
    """Learn that a job has ended after running for `runtime` seconds: a step of recursive least squares."""
    target = math.log(max(runtime, 1.0))
    # Learn with the inputs as they were when it was predicted from, before this job changes them.
    if memory.habit_jobs[0] > 0.0:
        _see(memory, user, size, walltime, submit_time)
        _correct(memory, target - _value(memory))
    memory.longest = max(memory.longest, target)
    _learn(memory, 0, target)
    _learn(memory, new_row_of(memory, user_key(user)), target)
    _learn(memory, new_row_of(memory, request_key(user, size, walltime)), target)


@kernel
def _value(memory):
    value = 0.0
    for k in range(_INPUTS):
        value += memory.regression[k] * memory.inputs[k]
    return value


@kernel
def _see(memory, user, size, walltime, submit_time):
    """Write the inputs; what is unknown of alike jobs is taken from the user's, and of these from all."""
    person = row_of(memory, user_key(user))
    alike = row_of(memory, request_key(user, size, walltime))
    alike = alike if alike > 0 else person
    hour, inputs = 2 * math.pi * (submit_time % DAY) / DAY, memory.inputs
    inputs[0], inputs[1] = 1.0, math.log2(size)
    inputs[2] = math.log(walltime) if walltime < np.inf else 0.0
    inputs[3], inputs[4] = math.sin(hour), math.cos(hour)
    inputs[5], inputs[6] = memory.habit_mean[person], _last_two(memory, person)
    inputs[7], inputs[8] = memory.habit_mean[alike], _last_two(memory, alike)


@kernel
def _correct(memory, error):
    scale, inverse, gain, inputs = 1.0, memory.inverse, memory.gain, memory.inputs
    # Recursive least squares without forgetting: gain = P x / (1 + x P x), then P loses gain times its own.
    for i in range(_INPUTS):
        gain[i] = 0.0
        for k in range(_INPUTS):
            gain[i] += inverse[i, k] * inputs[k]
        scale += gain[i] * inputs[i]
    for i in range(_INPUTS):
        memory.regression[i] += gain[i] / scale * error
        for k in range(_INPUTS):  # the matrix is symmetric
            inverse[i, k] -= gain[i] * gain[k] / scale


@kernel
def _learn(memory, row, target):
    memory.habit_jobs[row] += 1.0
    memory.habit_mean[row] += (target - memory.habit_mean[row]) / min(memory.habit_jobs[row], _FORGET)
    memory.habit_before[row] = memory.habit_last[row]
    memory.habit_last[row] = target


@kernel
def _last_two(memory, row):
    last = memory.habit_last[row]
    return last if memory.habit_jobs[row] < 2.0 else (last + memory.habit_before[row]) / 2.0


# `predictors.LastTwo` as kernels, for policies: the mean of the run times of a user's last two ended jobs.


@kernel
def predict_last_two(memory, user, walltime):
    """Seconds: the mean of the two; the walltime for users with fewer, and for jobs of nobody (-1)."""
    row = row_of(memory, user_key(user))
    return _last_two(memory, row) if user >= 0 and memory.habit_jobs[row] >= 2.0 else walltime


@kernel
def observe_last_two(memory, user, runtime):
    """Remember the run time (seconds) of a user's job that has ended, forget the one before the last."""
    if user >= 0:
        row = new_row_of(memory, user_key(user))
        memory.habit_jobs[row] += 1.0
        memory.habit_before[row] = memory.habit_last[row]
        memory.habit_last[row] = runtime


# Run times as distributions, as kernels for policies: predictions that say how sure they are.
#
# What a job may take is what the last jobs alike took, as shares of their walltimes where they have some: of the user
# with the same size and walltime, of the user, and of all, as far as there are such (the first ones first: a kind of n
# jobs takes n of n + `PRIOR` shares of what is left; older ones count less). A job that has run for some time takes
# longer than that, so only what took longer still counts.
#
# A distribution of so few jobs is not calibrated: more or fewer than one job in ten may take less than its quantile of
# 0.1. So the level at which such a quantile is read off moves with each job that ends, by adaptive conformal inference
# (Gibbs and Candes, arXiv 2106.00170): up where it took longer, down where it did not, such that in the long run the
# share is right on any log. Between the `LEVELS` that are followed others are interpolated.
#
# `distribution` has the same in Python.

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

    What `decision.policies.runtimes.kernels` says of it holds here, too.
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
        rising = [0, *(k for k in range(1, len(levels)) if levels[k] > levels[k - 1])]
        sure = float(np.interp(gone, [levels[k] for k in rising], [shares[k] for k in rising])) if gone else 0.0
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
            for k, share in enumerate(LEVELS.tolist()):
                level, below = self.levels[k], took < said[k] if share < MIDDLE else took <= said[k]
                moved = level + LEVEL_STEP * (share - below)
                beyond = took == said[k] and (level > moved < EDGE or level < moved > 1 - EDGE)
                self.levels[k] = level if beyond else moved
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
            memory.recent[row, np.int64(memory.habit_jobs[row]) % RECENT] = took / _unit(walltime)
            memory.habit_jobs[row] += 1.0


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
            jobs = np.int64(memory.habit_jobs[row])
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
