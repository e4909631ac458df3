"""What a setting changes in paired runs, and how surely."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8

from .agree import REPEAT, block_error, blocks_of
from .case import Case
from .changes import Change
from .goals import Goal, Guard, areas

_CONFIDENCE = 0.95
_HELD_OUT = 1 / 3  # share of the log, its end, that decides
_MODEL_ERROR = 0.15  # standard error of a predicted change, as a share of it: of changes recorded in pairs


class Tried(NamedTuple):
    """What a setting changes, against the configuration as it is."""

    set: Change
    mean: float  # of the goal
    interval: tuple[float, float]
    held_out: float  # the change in the last third of the log
    broken: tuple[str, ...]  # guards that it breaks
    tested: float  # jobs tested by backfill per second of the log

    @property
    def better(self) -> bool:
        """Whether it surely lowers the goal, also where it was not chosen, and breaks no guard."""
        return self.interval[1] < 0 and self.held_out < 0 and not self.broken


def recorded_runtimes(case: Case, numbers: Sequence[int]) -> F8:
    """Seconds that these jobs ran."""
    return np.array([case.jobs[n].runtime for n in numbers])


def measure_change(
    case: Case,
    numbers: Sequence[int],
    goal: Goal,
    guards: Sequence[Guard],
    base: F8,
    waits: F8,
    change: Change,
    tested: float,
    nb_settings: int,
) -> Tried:
    """What a setting changes, from the waits of its runs and of those as configured, (R, K) each."""
    runtime, area = recorded_runtimes(case, numbers), areas(case, numbers)
    before = np.array([goal.of(row, runtime, area) for row in base])
    after = np.array([goal.of(row, runtime, area) for row in waits])
    mean = goal.sign * float((after - before).mean())
    error = _error(case, numbers, goal, base, waits, after - before, float(before.mean()), float(after.mean()))
    half = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / 2 / max(1, nb_settings)) * error if waits is not base else 0.0
    half = 0.0 if np.array_equal(base, waits) else half
    return Tried(
        set=change,
        mean=mean,
        interval=(mean - half, mean + half),
        held_out=_held_out(case, numbers, goal, base, waits, runtime, area),
        broken=tuple(guard.goal.text for guard in guards if _breaks(guard, base, waits, runtime, area)),
        tested=tested,
    )


def _error(
    case: Case, numbers: Sequence[int], goal: Goal, base: F8, waits: F8, changes: F8, before: float, after: float
) -> float:
    """Standard error of a change: phases, blocks of the log, a real Slurm's own spread, and the model's."""
    runtime = recorded_runtimes(case, numbers)
    chosen = [numbers[k] for k in goal.places]
    per_job = goal.per_job(waits.mean(0), runtime) - goal.per_job(base.mean(0), runtime)
    blocks = block_error(per_job, blocks_of(case, chosen))
    if goal.figure == "utilization":
        blocks *= after / max(1.0, float((waits.mean(0) + runtime).max()))
    phases = float(changes.std(ddof=1)) if len(changes) > 1 else 0.0
    repeats = REPEAT * float(np.hypot(before, after))
    return float(np.sqrt(phases**2 + blocks**2 + repeats**2 + (_MODEL_ERROR * changes.mean()) ** 2))


def _held_out(case: Case, numbers: Sequence[int], goal: Goal, base: F8, waits: F8, runtime: F8, area: F8) -> float:
    """The change of the goal among the jobs of the last third of the log, signed so that less is better."""
    submit = np.array([case.jobs[n].submitted for n in numbers], float)
    late = np.flatnonzero(submit >= submit.max() - _HELD_OUT * (submit.max() - submit.min()))
    kept = goal._replace(places=np.intersect1d(goal.places, late))
    if not len(kept.places):
        return 0.0
    changes = [
        kept.of(after, runtime, area) - kept.of(before, runtime, area)
        for before, after in zip(base, waits, strict=True)
    ]
    return goal.sign * float(np.mean(changes))


def _breaks(guard: Guard, base: F8, waits: F8, runtime: F8, area: F8) -> bool:
    before = np.mean([guard.goal.of(row, runtime, area) for row in base])
    after = np.mean([guard.goal.of(row, runtime, area) for row in waits])
    worse = guard.goal.sign * float(after - before)
    return worse > guard.share * abs(float(before))
