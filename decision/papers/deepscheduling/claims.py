"""What DeepScheduling's paper claims, each with its number, and intervals over seeds and days.

Days are drawn with replacement, the same of all that is compared, and seeds apart; an interval holds 95 % of the values
over these samples. On days of real clusters a twentieth of the days has most of the waiting, so that pooled means rest
on few of them: hence the interquartile mean over days beside them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from decision.experiments.statistics import Estimate
from decision.model.record import Floats, Ints

from .rules import Days

SAMPLES = 400
_BUCKETS = (1.0, 5.0)  # slowdowns: of 1, above that to 5, above


class Jobs(NamedTuple):
    """The N jobs of D days, day by day."""

    day: Ints  # (N,)
    size: Floats  # (N,) cores
    run: Floats  # (N,) seconds
    sequential: Floats  # (N,) 1 where one came less than 5 minutes before, that day


class Change(Estimate):
    """A share by which something changes, and its interval."""

    def __str__(self) -> str:
        return f"{self.value:+.1%} ({self.low:+.1%} to {self.high:+.1%})"


Statistic = Callable[[Days, Jobs, Floats], float]  # of days with weights (D,)


def compare_days(
    statistic: Statistic, own: Sequence[Days], other: Sequence[Days], jobs: Jobs, samples: int = SAMPLES
) -> Change:
    """How much larger the statistic is of `own` than of `other`: means over the seeds of each."""
    rng, days = np.random.default_rng(0), len(own[0].jobs)

    def ratio(weight: Floats, ours: Sequence[Days], theirs: Sequence[Days]) -> float:
        top, bottom = (float(np.mean([statistic(each, jobs, weight) for each in some])) for some in (ours, theirs))
        return top / bottom - 1 if bottom else float("nan")

    value = ratio(np.ones(days), own, other)
    drawn = []
    for _ in range(samples):
        weight = np.bincount(rng.integers(0, days, days), minlength=days).astype(float)
        ours, theirs = ([some[k] for k in rng.integers(0, len(some), len(some))] for some in (own, other))
        drawn.append(ratio(weight, ours, theirs))
    low, high = np.nanquantile(drawn, (0.025, 0.975)) if np.isfinite(drawn).any() else (np.nan, np.nan)
    return Change(value, float(low), float(high))


def waste(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Joules of idle and switching servers."""
    return float(days.waste @ weight)


def server_switches(days: Days, jobs: Jobs, weight: Floats) -> float:
    """How often servers are switched on or off, weighted by days."""
    return float(days.switches @ weight)


def pooled_wait(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean wait of all jobs together, weighted by days."""
    return float(days.wait @ weight[jobs.day] / weight[jobs.day].sum())


def trimmed_wait(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean of the jobs from the 10th to the 90th percentile of their waits."""
    return _trimmed(days.wait, weight[jobs.day])


def daily_wait(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Interquartile mean of the days' mean waits."""
    sums = np.bincount(jobs.day, days.wait, len(weight))
    order = np.argsort(mean := sums / days.jobs, kind="stable")
    return _between(mean[order], weight[order], 0.25)


def _trimmed(values: Floats, weight: Floats) -> float:
    order = np.argsort(values, kind="stable")
    return _between(values[order], weight[order], 0.1)


def _between(ascending: Floats, weight: Floats, cut: float) -> float:
    """Mean without a share `cut` of the weight at either end."""
    upto = np.cumsum(weight)
    inside = np.diff(np.clip(upto, cut * upto[-1], (1 - cut) * upto[-1]), prepend=cut * upto[-1])
    return float(inside @ ascending / inside.sum())


def job_slowdowns(days: Days, jobs: Jobs) -> Floats:
    """(N,) (wait + run time) / run time."""
    return (days.wait + jobs.run) / jobs.run


def per_processor(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean slowdown per processor, from the 10th to the 90th percentile."""
    return _trimmed(np.maximum(job_slowdowns(days, jobs) / jobs.size, 1.0), weight[jobs.day])


def share_slowed(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Share of jobs with a slowdown above 1 and at most 5."""
    found, each = job_slowdowns(days, jobs), weight[jobs.day]
    return float(((found > _BUCKETS[0]) & (found <= _BUCKETS[1])) @ each / each.sum())


def sequential_slowdown(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean slowdown of sequential jobs without outliers: those within 1.5 times the interquartile range."""
    found = job_slowdowns(days, jobs)
    each = weight[jobs.day] * jobs.sequential
    kept = within_range(found, jobs.sequential > 0)
    return float(found[kept] @ each[kept] / each[kept].sum()) if each[kept].sum() else float("nan")


def within_range(values: Floats, which: np.ndarray) -> np.ndarray:
    """(N,) those of `which` that are within 1.5 times the interquartile range of these."""
    if not which.any():
        return which
    low, high = np.quantile(values[which], (0.25, 0.75))
    reach = 1.5 * (high - low)
    return which & (values >= low - reach) & (values <= high + reach)
