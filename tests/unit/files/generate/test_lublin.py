"""The Lublin-Feitelson model against its own theory, and against the traces that others made with it."""

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from decision.files.generate.lublin import (
    BATCH,
    CLASSES,
    DAY,
    INTERACTIVE,
    WHOLE,
    JobClass,
    LublinJobs,
    arrivals,
    cycle,
    lublin_jobs,
    lublin_workload,
    share_of_short,
    through_the_day,
    with_settings,
)
from decision.model.errors import ConfigError

Floats = NDArray[np.float64]


def swf(path: Path) -> Floats:
    return np.loadtxt(path, comments=";")


def distance(left: Floats, right: Floats) -> float:
    """The two-sample Kolmogorov-Smirnov distance: the largest difference between the distribution functions."""
    values = np.concatenate((left, right))
    below = [np.searchsorted(np.sort(sample), values, side="right") / len(sample) for sample in (left, right)]
    return float(np.abs(below[0] - below[1]).max())


def drawn(seed: int = 0, count: int = 100_000, classes: tuple[JobClass, ...] = (WHOLE,)) -> LublinJobs:
    return lublin_jobs(np.random.default_rng(seed), count, 256, classes)


# 10,000 recorded jobs against 100,000 drawn ones differ by more than 0.0171 in one of a hundred cases by chance
CHANCE = 0.0171


@pytest.fixture(scope="module")
def recorded(shared: Path) -> Floats:
    return swf(shared / "data/lublin_256.swf")


def test_sizes_are_those_of_the_published_trace(recorded: Floats) -> None:
    assert distance(np.log2(recorded[:, 4]), np.log2(drawn().size)) < CHANCE


def test_run_times_are_those_of_the_published_trace(recorded: Floats) -> None:
    assert distance(np.log(recorded[:, 3]), np.log(drawn().runtime)) < CHANCE


def test_times_between_jobs_are_those_of_the_published_trace(recorded: Floats) -> None:
    assert distance(np.diff(recorded[:, 1]), np.diff(drawn().submit)) < CHANCE


def test_the_published_trace_loses_half_a_second_of_its_day_with_each_job(recorded: Floats) -> None:
    """Given back, its hours are those of the model: 0.05 apart as it is, within what chance does to 89 days then."""
    hours = arrivals(np.random.default_rng(0), WHOLE, 300_000) % DAY
    regained = recorded[:, 1] + 0.5 * np.arange(len(recorded))
    assert distance(regained % DAY, hours) < 0.025 < 0.045 < distance(recorded[:, 1] % DAY, hours)


def test_run_times_of_large_jobs_are_those_of_the_published_trace(recorded: Floats) -> None:
    """The mix of short and long run times goes with the number of hosts, not with its logarithm."""
    jobs = drawn(count=300_000)
    large, same = recorded[recorded[:, 4] >= 64, 3], jobs.runtime[jobs.size >= 64]
    assert distance(np.log(large), np.log(same)) < 1.63 * math.sqrt(1 / len(large) + 1 / len(same))


SECOND = {"batch": {"size_medium_below": "2.5"}, "interactive": {"size_high_below": "0", "size_medium_below": "2.3"}}


@pytest.mark.parametrize("kind", SECOND)
def test_the_second_trace_is_the_model_with_two_classes(shared: Path, kind: str) -> None:
    trace = swf(shared / "data/lublin_256_2.swf")
    (jobs,) = with_settings(CLASSES[kind], SECOND[kind]).values()
    mine = trace[trace[:, 14] == (kind == "batch")]
    made = drawn(classes=(jobs,))
    chance = 1.63 * math.sqrt(1 / len(mine) + 1 / len(made.size))
    assert distance(np.log2(mine[:, 4]), np.log2(made.size)) < chance
    assert distance(np.log(mine[:, 3]), np.log(made.runtime)) < chance
    assert distance(np.diff(mine[:, 1]), np.diff(made.submit)) < chance


# ------------------------------------------------------------------------------------------------ theory


@pytest.mark.parametrize("jobs", [WHOLE, BATCH, INTERACTIVE])
def test_the_mean_logarithm_of_run_times_is_that_of_the_hyper_gamma(jobs: JobClass) -> None:
    unlimited = msgspec.structs.replace(jobs, longest=50.0)
    made = drawn(classes=(unlimited,))
    short = share_of_short(jobs, made.size)
    mean = short * jobs.short_shape * jobs.short_scale + (1 - short) * jobs.long_shape * jobs.long_scale
    cut = np.log(made.runtime + 0.5)  # in the middle of the second that it was cut to
    assert cut.mean() == pytest.approx(mean.mean(), rel=0.01)


@pytest.mark.parametrize("jobs", [WHOLE, BATCH, INTERACTIVE])
def test_the_mean_time_between_jobs_is_that_of_the_gamma(jobs: JobClass) -> None:
    """The day's cycle moves jobs within the day and leaves the mean as it is."""
    logs = np.linspace(1e-6, jobs.longest_gap, 400_001)
    density = np.exp((jobs.gap_shape * jobs.gap_all_day - 1) * np.log(logs) - logs / jobs.gap_scale)
    mean = float((density * np.exp(logs)).sum() / density.sum())
    times = arrivals(np.random.default_rng(1), jobs, 1_000_000)
    assert times[-1] / len(times) == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize("jobs", [WHOLE, BATCH, INTERACTIVE])
def test_shares_of_sizes_are_those_of_the_parameters(jobs: JobClass) -> None:
    sizes = lublin_jobs(np.random.default_rng(2), 200_000, 128, (jobs,)).size
    assert (sizes == 1).mean() == pytest.approx(jobs.serial, abs=0.01)
    powers = (sizes > 1) & (np.log2(sizes) % 1 == 0)
    others = (sizes > 1) & ~powers
    assert others.mean() <= 1 - jobs.serial - jobs.power_of_two  # some of the others fall on a power of two
    largest = 2 ** (7 - jobs.size_high_below)
    assert sizes.max() in (round(largest), 2 ** round(math.log2(largest)))


def test_at_128_hosts_sizes_have_the_published_bounds() -> None:
    bounds = {
        name: (high := 7 - jobs.size_high_below, high - jobs.size_medium_below)
        for name, jobs in (("whole", WHOLE), ("batch", BATCH), ("interactive", INTERACTIVE))
    }
    assert bounds == {"whole": (7, 4.5), "batch": (7, 5), "interactive": (5.5, 3)}


def test_the_cycle_is_busiest_before_noon_and_one_on_average() -> None:
    busy = cycle(WHOLE)
    assert busy.mean() == pytest.approx(1)
    assert busy.argmax() / 2 == pytest.approx((8.1737 - 1) * 3.9631 / 2, abs=1)  # the gamma's mode, in hours
    assert busy.argmin() / 2 < 6


def test_a_flat_cycle_changes_no_time() -> None:
    times = np.array([0.0, 5.5, 90_000.0, 1e6])
    assert through_the_day(times, np.ones(48)) == pytest.approx(times)


def test_nothing_happens_in_a_half_hour_without_weight() -> None:
    weights = np.ones(48)
    weights[:4] = 0, 2, 0, 2
    times = through_the_day(np.linspace(0, DAY - 1, 10_000), weights)
    assert not ((times % DAY < 1800) | ((times % DAY > 3600) & (times % DAY < 5400))).any()


@pytest.mark.parametrize("hosts", [1, 2, 3, 5, 8, 100, 257, 4392])
def test_no_job_is_larger_than_the_machine(hosts: int) -> None:
    sizes = lublin_jobs(np.random.default_rng(3), 5000, hosts, (WHOLE, BATCH, INTERACTIVE)).size
    assert 1 <= sizes.min() <= sizes.max() <= hosts
    assert hosts < 5 or sizes.max() > hosts / 2


def test_jobs_are_in_order_of_submission_and_classes_are_told_apart() -> None:
    workload = lublin_workload(np.random.default_rng(4), 5000, 256, CLASSES["both"])
    times = [job.submit_time for job in workload.jobs]
    assert times == sorted(times)
    assert len(workload.jobs) == 5000
    queues = [(job.extra or {})["queue"] for job in workload.jobs]
    assert queues.count("batch") / 5000 == pytest.approx(612 / (612 + 3631), abs=0.03)  # by their mean gaps


def test_the_same_seed_gives_the_same_jobs() -> None:
    first, again, other = (lublin_workload(np.random.default_rng(seed), 100, 64) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seriel": "1"}, "seriel: unknown parameter, perhaps 'serial' is meant"),
        ({"batch.serial": "1"}, "batch.serial: unknown class 'batch'; choose from whole"),
        ({"size_low": "nan"}, "size_low=nan: Expected `float` >= 0.0"),
        ({"cycle_scale": "1e-9"}, "cycle_scale=1e-9: Expected `float` >= 0.2"),
        ({"serial": "1.5"}, "serial=1.5: Expected `float` <= 1.0"),
    ],
)
def test_a_wrong_parameter_is_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$".replace("[", r"\[")) as caught:
        with_settings(CLASSES["whole"], settings)
    assert caught.value.field == "settings"


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"longest": "1e-9"}, "hardly ever below their limit"), ({"cycle_shape": "1e6"}, "outside the day")],
)
def test_parameters_that_allow_no_job_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        lublin_workload(np.random.default_rng(0), 10, 8, with_settings(CLASSES["whole"], settings))
