"""WL1 and WL2 of Takizawa, Nomura and Matsuba, who schedule with predicted run times (PPO).

2,000 jobs of the Lublin-Feitelson model for 256 nodes: 80 % (WL1) or 20 % (WL2) of them on a single node, requested
times of at most 6 h and 0.5 h on average, gaps of at most 0.5 h and 100 s on average. Run times are requested times
multiplied by an accuracy: 1 (``100``), 0.5 (``050``), or random per job and 0.5 on average (``RND``). Jobs are used
in two halves, a to learn from and b to test on.

The paper does not say how the model was made to fit. Here the share of short jobs is what gives the mean time, and
the scale of the gaps' gamma what gives the mean gap; longer gaps are cut. Sizes other than single nodes and the
cycle of the day are the model's. ``RND`` is uniform in (0, 1), spread evenly.
"""

import math

import msgspec
import numpy as np

from decision.model.record import Floats, Ints
from decision.model.reshape import Filters, at_load, reshape
from decision.model.workload import Workload

from ..jobs import workload_of
from ..lublin import cycle, draw_below, draw_sizes, through_the_day
from ..lublin_parameters import WHOLE

_NB_JOBS, _NB_HOSTS = 2000, 256
SINGLE = {"WL1": 0.8, "WL2": 0.2}  # share of single-node jobs
_LONGEST, _MEAN = 6 * 3600.0, 1800.0  # requested times, seconds
_LONGEST_GAP, MEAN_GAP = 1800.0, 100.0  # seconds

_PARALLEL = msgspec.structs.replace(WHOLE, serial=0.0, power_of_two=WHOLE.power_of_two / (1 - WHOLE.serial))


def predicted_runtimes(
    rng: np.random.Generator,
    name: str,
    accuracy: str,
    half: str = "",
    single: float | None = None,
    load: float | None = None,
) -> Workload:
    """The workload ``WL1`` or ``WL2`` with the accuracy ``100``, ``050`` or ``RND``, or its half ``a`` or ``b``.

    The same generator gives the same jobs and requested times for all accuracies. A half begins at 0 s.

    Args:
        rng: draws.
        name: of the workload.
        accuracy: run times relative to requested times.
        half: or all of it.
        single: share of single-node jobs in place of the workload's own.
        load: offered load that gaps are scaled to; as the gaps come by default.
    """
    sizes = _sizes(rng, SINGLE[name] if single is None else single)
    walltimes = _walltimes(rng, sizes)
    submit = _arrivals(rng)
    runtimes = walltimes * _accuracy(rng, accuracy)
    whole = workload_of(submit, sizes, np.maximum(np.round(runtimes, 2), 0.01), _NB_HOSTS, walltimes=walltimes)
    whole = whole if load is None else at_load(whole, load)
    halves = {"a": slice(None, _NB_JOBS // 2), "b": slice(_NB_JOBS // 2, None)}
    return reshape(whole, Filters(jobs=halves[half], shift=True)) if half else whole


def _sizes(rng: np.random.Generator, single: float) -> Ints:
    sizes = draw_sizes(rng, _PARALLEL, _NB_HOSTS, _NB_JOBS)
    sizes[rng.permutation(_NB_JOBS)[: round(single * _NB_JOBS)]] = 1
    return sizes


def _walltimes(rng: np.random.Generator, sizes: Ints) -> Floats:
    """Requested times in whole seconds: as many short ones, most likely of small jobs, as give the mean."""
    jobs = WHOLE
    short = _times(rng, jobs.short_shape, jobs.short_scale)
    long = _times(rng, jobs.long_shape, jobs.long_scale)
    order = np.argsort(
        rng.random(_NB_JOBS) - jobs.short_share_slope * sizes
    )  # who is short first when that share rises
    totals = long.sum() - np.concatenate(([0.0], np.cumsum((long - short)[order])))
    shortened = order[: np.abs(totals / _NB_JOBS - _MEAN).argmin()]
    long[shortened] = short[shortened]
    return long


def _times(rng: np.random.Generator, shape: float, scale: float) -> Floats:
    return np.floor(
        np.exp(draw_below(math.log(_LONGEST), _NB_JOBS, lambda places: rng.gamma(shape, scale, len(places))))
    )


def _arrivals(rng: np.random.Generator) -> Floats:
    """Submission times in whole seconds, the first at 0 s: the model's, with the scale that gives the mean gap."""
    even, weights = rng.gamma(WHOLE.gap_shape * WHOLE.gap_all_day, 1.0, _NB_JOBS), cycle(WHOLE)

    def gaps(scale: float) -> Floats:
        times = through_the_day(np.cumsum(np.minimum(np.exp(np.minimum(scale * even, 20.0)), _LONGEST_GAP)), weights)
        return np.minimum(np.diff(times), _LONGEST_GAP)

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaps(middle).mean() < MEAN_GAP else (low, middle)
    return np.floor(np.concatenate(([0.0], np.cumsum(gaps(high)))))


def _accuracy(rng: np.random.Generator, name: str) -> Floats:
    if name == "RND":
        return (rng.permutation(_NB_JOBS) + 0.5) / _NB_JOBS
    return np.full(_NB_JOBS, {"100": 1.0, "050": 0.5}[name])
