"""Walltimes for workloads that have none: exact, a factor too long, or as real users choose them."""

import math
from collections.abc import Callable

import msgspec
import numpy as np

from decision.model.demand import runtimes, walltimes
from decision.model.errors import ConfigError
from decision.model.record import Floats, Ints
from decision.model.reshape import MISSING, fill_walltimes, with_walltimes
from decision.model.workload import Workload

# User estimates after Tsafrir, Etsion and Feitelson, Modeling User Runtime Estimates, JSSPP 2005.
#
# Users ask for few, round times: 20 values cover 89 % of the jobs, the longest allowed one more than any other. The
# model makes a histogram of estimates from nothing but the number of jobs and the longest estimate, and deals it
# out such that no job runs for longer than its estimate. Parameters are the paper's (its Table of defaults, and the
# authors' program for how popularity goes with length).
#
# Differences: tail values that would fall on others are dropped rather than moved by seconds; where more jobs are long
# than have long estimates, those get the next popular value above their run time rather than the model failing.

_MINUTE, _HOUR = 60, 3600  # seconds
_HEAD = 20  # popular values
_HEAD_SHARE = 0.89  # share of the jobs that use them
_HEAD_SIZE = (0.140491, -0.177531, 0.00462513)  # a e^(b rank) + c: share of jobs, for ranks from 2 on
_TAIL_POWER = -2.267  # share of jobs ~ rank^power, for ranks from 21 on
_TAIL_TIME = (12.1039, -0.6026)  # a = 1 + p n^q in time(x) = (a - 1) x / (a - x), for n values, x = rank / n
_DISTINCT = ((0, 20, 200, 1000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565))  # values used by so many jobs

# values popular in all logs, and what round values to add until there are 20
_POPULAR = tuple(60 * m for m in (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080))  # seconds
_ROUND = tuple(60 * m for m in (12_000, 6000, 3000, 600, 300, 120, 60, 20, 10, 5))  # seconds

# popularity rank by length (the longest allowed first, then from short to long) in the four logs of the paper
_RANKS = tuple(
    zip(
        (3, 1, 4, 17, 13, 7, 8, 18, 2, 6, 16, 10, 5, 15, 14, 19, 11, 12, 9, 20),
        (1, 3, 4, 2, 12, 9, 8, 18, 6, 7, 11, 20, 16, 5, 14, 13, 10, 15, 17, 19),
        (1, 4, 10, 14, 20, 2, 3, 7, 12, 6, 19, 5, 18, 16, 9, 17, 15, 13, 8, 11),
        (1, 6, 5, 3, 7, 2, 18, 19, 4, 11, 20, 9, 10, 14, 13, 16, 15, 17, 8, 12),
        strict=True,
    )
)


def modal_estimates(runtimes: Floats, rng: np.random.Generator, longest: float | None = None) -> Floats:
    """Estimates that users would give, none below its run time.

    Args:
        runtimes: (J,) seconds, > 0.
        rng: where choices come from.
        longest: the longest estimate that is allowed, seconds, at least an hour; by default the run times' maximum
            in whole hours.

    Raises:
        ConfigError: if a job runs for longer than the longest estimate.
    """
    if not len(runtimes):
        return runtimes.copy()
    most = float(runtimes.max())
    longest = max(1, math.ceil(most / _HOUR)) * float(_HOUR) if longest is None else longest
    if most > longest:
        raise ConfigError(f"a job runs for {most:g} s, above the longest estimate of {longest:g} s; raise that")
    values, counts = histogram(len(runtimes), longest, rng)
    return _deal(runtimes, values, counts, rng)


def histogram(nb_jobs: int, longest: float, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Distinct estimates in seconds, ascending, and how many jobs use each.

    Args:
        nb_jobs: jobs in all.
        longest: the longest estimate that is allowed, seconds.
        rng: where choices come from.
    """
    head = _head_values(longest)
    wanted = round(float(np.interp(nb_jobs, *_DISTINCT)))
    tail = _tail_values(wanted - len(head), longest, head)
    # The most popular value gets what the others leave.
    a, b, c = _HEAD_SIZE
    others = a * np.exp(b * np.arange(2, len(head) + 1)) + c
    head_shares = np.concatenate(([_HEAD_SHARE - others.sum()], others))
    tail_shares = np.arange(_HEAD + 1, _HEAD + 1 + len(tail)) ** _TAIL_POWER
    shares = np.concatenate(
        (
            head_shares[_popularity(rng, len(head))],
            rng.permutation(tail_shares * ((1 - _HEAD_SHARE) / tail_shares.sum() if len(tail) else 0.0)),
        )
    )
    values = np.concatenate((head, tail))
    order = np.argsort(values)
    # Whole numbers with the same sum: the largest fractions are rounded up.
    amounts = shares[order] / shares.sum() * nb_jobs
    counts = np.floor(amounts).astype(np.int64)
    missing = round(float(amounts.sum())) - int(counts.sum())
    counts[np.argsort(counts - amounts, kind="stable")[:missing]] += 1
    return values[order], counts


def _head_values(longest: float) -> Floats:
    """At most 20 popular values, seconds: the longest first, the others ascending."""
    values = [float(value) for value in _POPULAR if value < longest]
    for value in (float(step * multiple) for step in _ROUND for multiple in range(int(longest // step), 0, -1)):
        if len(values) == _HEAD - 1:
            break
        if value < longest and value not in values:
            values.append(value)
    return np.array([longest, *sorted(values)])


def _popularity(rng: np.random.Generator, count: int) -> Ints:
    """Places in order of popularity, 0 the most popular, of the longest value and then the others from short to long.

    Each place takes one of the ranks that its like, or a shorter one, had in some log, rather a popular one; a rank
    is taken at the latest where it last occurs.
    """
    last = {rank: row for row, ranks in enumerate(_RANKS) for rank in ranks}
    taken = [1]  # the longest allowed value is the most popular
    pool = list(_RANKS[0])
    for row, ranks in enumerate(_RANKS[1:], 1):
        pool = [rank for rank in (*pool, *ranks) if rank not in taken]
        due = [rank for rank in pool if last[rank] <= row]
        taken.append(min(due or [pool[place] for place in rng.integers(len(pool), size=2)]))
    return np.array(taken[:count]).argsort().argsort()


def _tail_values(count: int, longest: float, head: Floats) -> Floats:
    """About `count` less popular values, in whole minutes, seconds."""
    if count < 1:
        return np.empty(0)
    p, q = _TAIL_TIME
    a = 1 + p * (count + _HEAD) ** q
    x = np.arange(1, count + 1) / count
    values = np.unique(np.rint((a - 1) * x / (a - x) * longest / _MINUTE) * float(_MINUTE))
    values = values[(values > 0) & (values < longest)]
    return np.setdiff1d(values, head)


def _deal(runtimes: Floats, values: Floats, counts: Ints, rng: np.random.Generator) -> Floats:
    """Give each job one of the estimates that are not below its run time, all equally likely, longest jobs first."""
    order = np.argsort(-runtimes, kind="stable")
    longest_first = runtimes[order]
    needed = values[np.searchsorted(values, longest_first)]
    estimates = np.maximum(np.repeat(values, counts)[::-1], needed)
    within = np.searchsorted(-estimates, -longest_first, side="right")  # how many estimates cover each job
    left = estimates.tolist()
    for place, (end, draw) in enumerate(zip(within.tolist(), rng.random(len(left)).tolist(), strict=True)):
        other = place + int(draw * (end - place))
        left[place], left[other] = left[other], left[place]
    dealt = np.empty(len(left))
    dealt[order] = left
    return dealt


Model = Callable[[Floats, np.random.Generator], Floats]

ESTIMATES = "exact, factor:F, tsafrir or tsafrir:LONGEST"


def apply_estimates(workload: Workload, model: str, rng: np.random.Generator, speed: float | None = None) -> Workload:
    """The workload with walltimes from a model of estimates.

    Args:
        workload: jobs whose run times are known (see `decision.model.demand.runtimes`).
        model: ``exact``, the run time (Batsim then reports that the walltime was reached); ``factor:F``, F times the
            run time; ``tsafrir``, modal estimates (Tsafrir, Etsion and Feitelson 2005), with ``tsafrir:LONGEST`` for
            the longest allowed in seconds.
        rng: where choices come from.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if the model is unknown, a job's run time is unknown, or is above the longest estimate.
    """
    walltimes = read_model(model)(runtimes(workload, speed), rng).tolist()
    jobs = tuple(
        msgspec.structs.replace(job, walltime=walltime, source=None)
        for job, walltime in zip(workload.jobs, walltimes, strict=True)
    )
    return msgspec.structs.replace(workload, jobs=jobs)


def read_model(text: str) -> Model:
    """The model of estimates that a text names: a function from run times (J,) in seconds to walltimes (J,).

    Raises:
        ConfigError: if it is unknown.
    """
    name, colon, value = text.partition(":")
    if text == "exact":
        return lambda times, rng: times.copy()
    if name == "factor" and colon:
        factor = _number(text, value, least=1.0)
        return lambda times, rng: factor * times
    if name == "tsafrir":
        longest = _number(text, value, least=3600.0) if colon else None
        return lambda times, rng: modal_estimates(times, rng, longest)
    raise ConfigError(f"the estimates {text!r}: write {ESTIMATES}", field="estimates")


def _number(text: str, value: str, least: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        reason = f"must have a number of at least {least:g} after the colon"
        raise ConfigError(f"the estimates {text!r}: {reason}", field="estimates")
    return number


# Walltimes for jobs that asked for none: the run time, the longest, or what a model of users makes of the run time.


def fill_missing(workload: Workload, missing: str, seed: int = 0, speed: float | None = None) -> Workload:
    """The workload with walltimes for jobs that have none.

    Args:
        workload: the jobs.
        missing: ``none`` leaves them without; ``runtime``, ``longest``, or a model as `read_model` takes it.
        seed: of the model.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if the model is unknown, a run time is not known, or no job has a walltime to be the longest.
    """
    if missing == "none":
        return workload
    if missing in MISSING:
        return fill_walltimes(workload, missing, speed)
    try:
        model = read_model(missing)
    except ConfigError as error:
        wanted = f"write {', '.join(MISSING)}, or a model: {ESTIMATES}"
        raise ConfigError(f"missing walltimes {missing!r}: {wanted}", field="missing_walltime") from error
    limits = walltimes(workload)
    unknown = np.isinf(limits)
    limits[unknown] = model(runtimes(workload, speed)[unknown], np.random.default_rng(seed))
    return with_walltimes(workload, limits)


def missing_text(workload: Workload, missing: str) -> str:
    """How many jobs of a log have no requested time, and what takes its place; "" where all have one.

    Args:
        workload: as it was read.
        missing: as of `fill_missing`.
    """
    reading, jobs = workload.reading, len(workload.jobs)
    if reading is None or reading.format == "json" or not (without := int(np.isinf(walltimes(workload)).sum())):
        return ""
    place = {
        "none": "they have no walltime",
        "runtime": "their run time takes its place (perfect estimates)",
        "longest": "the longest walltime takes its place",
    }.get(missing, f"the model {missing} takes its place")
    return f"{without:,} of {jobs:,} jobs ({100 * without / jobs:.0f} %) have no requested time: {place}"
