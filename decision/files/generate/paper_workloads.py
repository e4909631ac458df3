"""The workloads of five papers on learned scheduling, generated again as far as they are published.

`predicted_runtimes` (Takizawa, Nomura and Matsuba), `grid5000_days` (DeepScheduling), `uniform` (Launchpad; neural
simulated annealing); the fifth, Deep Back-Filling, uses logs and `decision.files.generate.lublin`.

Design
------
The papers give figures, not files. What is published is met exactly where that is possible at all, by calibrating
one parameter with the random numbers held fixed, not by drawing until it fits: the same seed gives the same jobs, and
every seed meets the figures. What is not published is chosen and named in each module's docstring.
"""

import math

import msgspec
import numpy as np

from decision.model.record import Floats, Ints
from decision.model.reshape import Filters, at_load, reshape
from decision.model.workload import Workload

from .jobs import workload_of
from .lublin import WHOLE, cycle, draw_below, draw_sizes, through_the_day

# WL1 and WL2 of Takizawa, Nomura and Matsuba, who schedule with predicted run times (PPO).
#
# 2,000 jobs of the Lublin-Feitelson model for 256 nodes: 80 % (WL1) or 20 % (WL2) of them on a single node, requested
# times of at most 6 h and 0.5 h on average, gaps of at most 0.5 h and 100 s on average. Run times are requested times
# multiplied by an accuracy: 1 (``100``), 0.5 (``050``), or random per job and 0.5 on average (``RND``). Jobs are used
# in two halves, a to learn from and b to test on.
#
# The paper does not say how the model was made to fit. Here the share of short jobs is what gives the mean time, and
# the scale of the gaps' gamma what gives the mean gap; longer gaps are cut. Sizes other than single nodes and the
# cycle of the day are the model's. ``RND`` is uniform in (0, 1), spread evenly.

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
    sizes = draw_sizes(rng, _PARALLEL, _NB_HOSTS, _NB_JOBS)
    alone = SINGLE[name] if single is None else single
    sizes[rng.permutation(_NB_JOBS)[: round(alone * _NB_JOBS)]] = 1
    walltimes = _walltimes(rng, sizes)
    submit = _arrivals(rng)
    if accuracy == "RND":
        runtimes = walltimes * ((rng.permutation(_NB_JOBS) + 0.5) / _NB_JOBS)
    else:
        runtimes = walltimes * {"100": 1.0, "050": 0.5}[accuracy]
    whole = workload_of(submit, sizes, np.maximum(np.round(runtimes, 2), 0.01), _NB_HOSTS, walltimes=walltimes)
    whole = whole if load is None else at_load(whole, load)
    halves = {"a": slice(None, _NB_JOBS // 2), "b": slice(_NB_JOBS // 2, None)}
    return reshape(whole, Filters(jobs=halves[half], shift=True)) if half else whole


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


# Two workloads of uniform draws: a green datacenter, and topology-aware allocation on a fat-tree.
#
# Launchpad (Venkataswamy, Grigsby, Grimshaw and Qi) is the green datacenter.
#
# Jobs arrive as a Poisson process at a rate in percent of what the resources can do (120 % in the paper), need a number
# of resources and of time steps, are worth something, and come with a quality of service (QoS) in percent: a job must
# be finished before its duration divided by that share has passed since its submission.
#
# The paper names these fields and the rate; it does not publish distributions. Here resources, steps and values per
# resource and step are uniform whole numbers, the QoS is one of six percentages, and a step lasts a minute. Jobs
# arrive at the beginning of a step.
#
# Topology-aware allocation by neural simulated annealing is for a pruned fat-tree of 1,000 nodes: 100,000 jobs with 1
# to 40 nodes and run times of 10 to 1,800 s. As in the authors' published generator both are uniform whole numbers, and
# a job comes 5 to 30 whole seconds after the one before, uniform too.

_QOS = (50, 60, 70, 80, 90, 100)  # percent


class GreenModel(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the model."""

    hosts: int = 10  # resources of the datacenter
    rate: float = 1.2  # host-seconds that arrive per host-second that there is
    most_hosts: int = 5  # of a job
    most_steps: int = 10  # of a job
    most_value: int = 10  # of a job, per resource and step
    step: float = 60.0  # seconds
    price_by_qos: bool = False  # whether the value per host and step grows with the QoS; else it is drawn


def green_workload(rng: np.random.Generator, nb_jobs: int, model: GreenModel) -> Workload:
    """Jobs with `value`, `qos` (percent), `deadline` and `expected` (seconds): the run time, a step below the walltime.

    Batsim stops a job that is not shorter than its walltime, so an exact one would stop all of them.
    """
    sizes = rng.integers(1, model.most_hosts + 1, nb_jobs)
    steps = rng.integers(1, model.most_steps + 1, nb_jobs)
    prices = rng.integers(1, model.most_value + 1, nb_jobs).astype(np.float64)
    qos = rng.choice(_QOS, nb_jobs)
    if model.price_by_qos:  # from 1 for the least to most_value for the highest
        prices = 1 + (model.most_value - 1) * (qos - _QOS[0]) / (_QOS[-1] - _QOS[0])
    values = sizes * steps * prices
    mean_area = (1 + model.most_hosts) / 2 * (1 + model.most_steps) / 2  # host-steps
    gaps = rng.exponential(mean_area / (model.rate * model.hosts), nb_jobs)  # steps
    submit = (np.floor(np.cumsum(gaps)) * model.step).astype(np.float64)
    runtimes = (steps * model.step).astype(np.float64)
    deadlines = submit + runtimes / (qos / 100)
    worth = np.column_stack([values, qos, deadlines, runtimes])
    return workload_of(submit, sizes, runtimes, model.hosts, walltimes=runtimes + model.step, worth=worth)


_FAT_TREE_JOBS, _FAT_TREE_HOSTS = 100_000, 1000
_NODES = (1, 40)
_SECONDS = (10, 1800)
_GAP = (5, 30)  # seconds


def topology_workload(rng: np.random.Generator, nb_jobs: int = _FAT_TREE_JOBS) -> Workload:
    """Jobs of Lan et al.'s experiments, without walltimes: their sizes, gaps and run times are drawn evenly."""
    submit = np.cumsum(rng.integers(*_GAP, nb_jobs, endpoint=True)).astype(np.float64)
    runtimes = rng.integers(*_SECONDS, nb_jobs, endpoint=True).astype(np.float64)
    return workload_of(submit, rng.integers(*_NODES, nb_jobs, endpoint=True), runtimes, _FAT_TREE_HOSTS)
