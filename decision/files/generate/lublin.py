"""The workload model of Lublin and Feitelson (2003), in full: parameters, arrivals, sizes and run times.

Lublin and Feitelson, The workload on parallel supercomputers: modeling the characteristics of rigid jobs, Journal
of Parallel and Distributed Computing 63(11), 2003. There are three published fits: to all jobs, to the batch jobs, and
to the interactive jobs of the logs.

A job's size is one host, or a two-stage uniform on a logarithmic scale that is often rounded to a power of two. Its
run time is e to a hyper-gamma (a short or a long gamma) whose mix depends on the size. Jobs arrive with gamma gaps
under a daily cycle. It follows the authors' program (m_lublin99.c in the Parallel Workloads Archive), including what
the paper leaves open: the mix is linear in the number of hosts (not in its logarithm), values above a limit are drawn
again, times are whole seconds.

It differs in two ways. Power-of-two sizes also fit machines of other sizes. And the clock keeps its fractions: the
program cuts its clock to whole seconds at each job but not its place in the day, so that its days begin half a second
earlier for each job, an hour and a half after 10,000 jobs; ours stay at midnight.

RLScheduler's traces are this model at 256 hosts: Lublin-1 with all defaults, Lublin-2 with both classes and
``batch.size_medium_below=2.5``, ``interactive.size_high_below=0``, ``interactive.size_medium_below=2.3``.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from decision.model.dates import DAY
from decision.model.errors import ConfigError
from decision.model.record import Floats, Ints
from decision.model.workload import Workload

from .jobs import workload_of

# The model's parameters: the published fits, and how they are changed.

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, Meta(gt=0.0, le=1e6)]
Exponent = Annotated[float, Meta(ge=0.0, le=50.0)]  # a logarithm that does not overflow
Slope = Annotated[float, Meta(ge=-1e6, le=1e6)]


class JobClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One class of jobs: how large they are, how long they run, when they come.

    Sizes are relative to the machine: at 128 hosts the defaults are the published ones.
    """

    serial: Share  # share of jobs on one host
    power_of_two: Share  # share of jobs on more than one host whose number is a power of two
    size_low: Exponent  # log2 of the smallest parallel size
    size_high_below: Exponent = 0.0  # how far the largest size's log2 is below that of the hosts
    size_medium_below: Exponent  # how far the log2 of the size where the density changes is below that of the largest
    size_low_share: Share  # share of the parallel jobs below that size

    short_shape: Positive  # of the gamma of the logarithm of short run times
    short_scale: Positive
    long_shape: Positive  # of that of long ones
    long_scale: Positive
    short_share: Slope  # share of short jobs among the smallest, before it is cut to [0, 1]
    short_share_slope: Slope  # what each host of a job adds to that
    longest: Exponent = 12.0  # logarithm of the longest run time, seconds

    gap_shape: Positive  # of the gamma of the logarithm of times between jobs in rush hours
    gap_scale: Positive
    gap_all_day: Positive  # what the shape is multiplied with to hold for the whole day
    longest_gap: Exponent = 13.0  # logarithm of the longest time between jobs, seconds, before the day's cycle
    cycle_shape: Positive  # of the gamma of arrivals over the half hours of a day that begins at half past five
    cycle_scale: Annotated[float, Meta(ge=0.2, le=1e6)]


WHOLE = JobClass(
    serial=0.244,
    power_of_two=0.576,
    size_low=0.8,
    size_medium_below=2.5,
    size_low_share=0.86,
    short_shape=4.2,
    short_scale=0.94,
    long_shape=312.0,
    long_scale=0.03,
    short_share=0.78,
    short_share_slope=-0.0054,
    gap_shape=10.2303,
    gap_scale=0.4871,
    gap_all_day=1.0225,
    cycle_shape=8.1737,
    cycle_scale=3.9631,
)
BATCH = JobClass(
    serial=0.2927,
    power_of_two=0.6686,
    size_low=1.2,
    size_medium_below=2.0,
    size_low_share=0.875,
    short_shape=6.57,
    short_scale=0.823,
    long_shape=639.1,
    long_scale=0.0156,
    short_share=0.6986,
    short_share_slope=-0.003,
    gap_shape=6.0415,
    gap_scale=0.8531,
    gap_all_day=1.0519,
    cycle_shape=6.1271,
    cycle_scale=5.2740,
)
INTERACTIVE = JobClass(
    serial=0.1541,
    power_of_two=0.625,
    size_low=1.0,
    size_high_below=1.5,
    size_medium_below=2.5,
    size_low_share=0.705,
    short_shape=3.8351,
    short_scale=0.6605,
    long_shape=7.073,
    long_scale=0.6856,
    short_share=0.9156,
    short_share_slope=-0.0118,
    gap_shape=6.5510,
    gap_scale=0.6621,
    gap_all_day=0.9797,
    cycle_shape=8.9186,
    cycle_scale=3.6680,
)
CLASSES: Mapping[str, Mapping[str, JobClass]] = {
    "whole": {"whole": WHOLE},
    "batch": {"batch": BATCH},
    "interactive": {"interactive": INTERACTIVE},
    "both": {"batch": BATCH, "interactive": INTERACTIVE},
}


def with_settings(classes: Mapping[str, JobClass], settings: Mapping[str, str]) -> dict[str, JobClass]:
    """The classes with some parameters changed.

    Args:
        classes: the classes by name.
        settings: values by ``parameter`` (of all classes) or ``class.parameter``.

    Raises:
        ConfigError: for an unknown class or parameter, or a value out of its range.
    """
    changed = dict(classes)
    for key, value in settings.items():
        owner, dot, parameter = key.rpartition(".")
        if dot and owner not in changed:
            advice = f"choose from {', '.join(changed)}"
            raise ConfigError(f"{key}: unknown class {owner!r}; {advice}", field="settings")
        for name in [owner] if dot else list(changed):
            if parameter not in JobClass.__struct_fields__:
                near = difflib.get_close_matches(parameter, JobClass.__struct_fields__, 1)
                advice = f", perhaps {near[0]!r} is meant" if near else ""
                raise ConfigError(f"{key}: unknown parameter{advice}", field="settings")
            parameters = {**msgspec.structs.asdict(changed[name]), parameter: value}
            try:
                changed[name] = msgspec.convert(parameters, JobClass, strict=False)
            except msgspec.ValidationError as error:
                mistake = str(error).partition(" - at ")[0]
                raise ConfigError(f"{key}={value}: {mistake}", field="settings") from None
    return changed


_BUCKETS = 48  # half hours of a day
_BUCKET = DAY // _BUCKETS  # seconds
_FIRST = 11  # the day of the fitted gamma begins with this half hour, and goes round
_ROUNDS = 1000  # of drawing again what was above the limit


def arrivals(rng: np.random.Generator, jobs: JobClass, count: int) -> Floats:
    """(count,) submission times in whole seconds after a midnight, ascending.

    The gaps are those of a clock on which all half hours are equally busy; a half hour of that clock lasts
    the longer, the fewer jobs come at that time of the day.
    """
    shape = jobs.gap_shape * jobs.gap_all_day
    logs = draw_below(jobs.longest_gap, count, lambda places: rng.gamma(shape, jobs.gap_scale, len(places)))
    return np.floor(through_the_day(np.cumsum(np.exp(logs)), cycle(jobs)))


def cycle(jobs: JobClass) -> Floats:
    """(48,) how busy each half hour of the day is, from midnight; 1 on average.

    Raises:
        ConfigError: if no half hour is.
    """
    edges = np.arange(_BUCKETS + 1, dtype=np.float64) + (_FIRST - 0.5)
    weights = np.diff(_gamma_cdf(edges, jobs.cycle_shape, jobs.cycle_scale))
    if not weights.sum() > 0:
        raise ConfigError("cycle_shape and cycle_scale leave all arrivals outside the day; change one of them")
    return np.roll(weights, _FIRST - 1) / weights.mean()


def through_the_day(even: Floats, weights: Floats) -> Floats:
    """Times of an evenly busy clock, seconds, as times of a clock whose days have the cycle `weights`."""
    days, rest = np.divmod(even, DAY)
    busy = np.concatenate(([0.0], np.cumsum(weights * _BUCKET)))
    return days * DAY + np.interp(rest, busy, np.arange(_BUCKETS + 1) * float(_BUCKET))


def draw_below(limit: float, count: int, draw: Callable[[Ints], Floats]) -> Floats:
    """(count,) random values, drawn again while they are above the limit.

    Args:
        limit: the largest value.
        count: how many.
        draw: values for the given places.

    Raises:
        ConfigError: if nearly all are above.
    """
    above = np.arange(count)
    values = np.empty(count)
    for _ in range(_ROUNDS):
        values[above] = draw(above)
        above = above[values[above] > limit]
        if not len(above):
            return values
    raise ConfigError(f"times are hardly ever below their limit of exp({limit:g}) s; change shape, scale or limit")


def _gamma_cdf(values: Floats, shape: float, scale: float) -> Floats:
    """The distribution function of the gamma distribution, by its power series."""
    x = values / scale
    term = np.full_like(x, 1 / shape)
    total = term.copy()
    for k in range(1, int(2 * x.max()) + 200):  # terms shrink by half and more from 2 x on
        term *= x / (shape + k)
        total += term
    return total * np.exp(shape * np.log(x) - x - math.lgamma(shape))


class LublinJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs in the order of their submission. All columns have length J."""

    submit: Floats  # whole seconds from midnight of the first day
    size: Ints  # hosts
    runtime: Floats  # whole seconds, >= 1
    kind: Ints  # which of the classes


def lublin_workload(
    rng: np.random.Generator, nb_jobs: int, nb_hosts: int, classes: Mapping[str, JobClass] = CLASSES["whole"]
) -> Workload:
    """Jobs of the model with delay profiles and without walltimes; `queue` names the class where there are several.

    Args:
        rng: where all choices come from.
        nb_jobs: how many jobs.
        nb_hosts: hosts of the machine; no job is larger.
        classes: parameters by name of the class, each with its own arrivals.

    Raises:
        ConfigError: if there are no jobs or no hosts, or the parameters hardly ever meet their limits.
    """
    jobs = lublin_jobs(rng, nb_jobs, nb_hosts, tuple(classes.values()))
    queues = [{"queue": name} for name in classes]
    extras = [queues[kind] for kind in jobs.kind.tolist()] if len(classes) > 1 else None
    return workload_of(jobs.submit, jobs.size, jobs.runtime, nb_hosts, extras=extras)


def lublin_jobs(rng: np.random.Generator, nb_jobs: int, nb_hosts: int, classes: tuple[JobClass, ...]) -> LublinJobs:
    """The model's jobs as columns; see `lublin_workload`."""
    if nb_jobs < 1 or nb_hosts < 1:
        raise ConfigError(f"a workload needs at least one job and one host; found {nb_jobs} and {nb_hosts}")
    submit = np.stack([arrivals(rng, jobs, nb_jobs) for jobs in classes])
    first = np.argsort(submit, axis=None, kind="stable")[:nb_jobs]
    kind = first // nb_jobs
    size = np.empty(nb_jobs, np.int64)
    runtime = np.empty(nb_jobs)
    for number, jobs in enumerate(classes):
        mine = kind == number
        size[mine] = draw_sizes(rng, jobs, nb_hosts, int(mine.sum()))
        runtime[mine] = draw_runtimes(rng, jobs, size[mine])
    return LublinJobs(submit=submit.ravel()[first], size=size, runtime=runtime, kind=kind)


def draw_sizes(rng: np.random.Generator, jobs: JobClass, nb_hosts: int, count: int) -> Ints:
    """Sizes of so many jobs, (count,) hosts."""
    high = max(math.log2(nb_hosts) - jobs.size_high_below, 0.0)
    low = min(jobs.size_low, high)
    medium = max(high - jobs.size_medium_below, low)
    below = rng.random(count) <= jobs.size_low_share
    exponent = rng.uniform(np.where(below, low, medium), np.where(below, medium, high))
    kind = rng.random(count)
    rounded = kind <= jobs.serial + jobs.power_of_two
    exponent[rounded] = np.minimum(np.floor(exponent[rounded] + 0.5), math.floor(math.log2(nb_hosts)))
    sizes = np.minimum(np.floor(2**exponent + 0.5), nb_hosts)
    return np.where(kind <= jobs.serial, 1, sizes).astype(np.int64)


def draw_runtimes(rng: np.random.Generator, jobs: JobClass, sizes: Ints) -> Floats:
    """(J,) run times in whole seconds of jobs with the given sizes."""
    short = share_of_short(jobs, sizes)

    def draw(places: Ints) -> Floats:
        shorter = rng.random(len(places)) <= short[places]
        shape = np.where(shorter, jobs.short_shape, jobs.long_shape)
        return rng.gamma(shape, np.where(shorter, jobs.short_scale, jobs.long_scale))

    return np.floor(np.exp(draw_below(jobs.longest, len(sizes), draw)))


def share_of_short(jobs: JobClass, sizes: Ints) -> Floats:
    """(J,) the probability that a job of each size is a short one."""
    return np.clip(jobs.short_share + jobs.short_share_slope * sizes, 0.0, 1.0)
