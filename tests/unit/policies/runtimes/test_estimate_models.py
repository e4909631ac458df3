"""Walltimes for workloads that have none."""

import numpy as np
import pytest

from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, ParallelHomogeneous, Workload
from decision.policies.runtimes import apply_estimates, read_model
from decision.policies.runtimes.walltimes import histogram, modal_estimates

HOUR = 3600.0


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def runtimes(count: int = 5000) -> np.ndarray:
    return np.minimum(np.ceil(np.exp(rng(9).normal(6.5, 2.0, count))), 18 * HOUR)


def test_exact_and_factor_are_what_they_say() -> None:
    times = np.array([1.0, 10.5, 3600.0])
    assert read_model("exact")(times, rng()).tolist() == times.tolist()
    assert read_model("factor:2.5")(times, rng()).tolist() == [2.5, 26.25, 9000.0]


@pytest.mark.parametrize(
    "text", ["", "Exact", "factor", "factor:", "factor:0.5", "factor:nan", "tsafrir:", "tsafrir:60"]
)
def test_other_models_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the estimates") as caught:
        read_model(text)
    assert caught.value.field == "estimates"


def test_modal_estimates_follow_the_paper() -> None:
    """20 values cover 89 % of the jobs, the longest allowed is the most popular, all popular ones are round."""
    estimates = modal_estimates(runtimes(), rng(), 18 * HOUR)
    values, counts = np.unique(estimates, return_counts=True)
    popular = values[np.argsort(-counts)[:20]]
    assert np.sort(counts)[::-1][:20].sum() / 5000 == pytest.approx(0.89, abs=0.002)
    assert popular[0] == 18 * HOUR
    assert {300, 900, 1800, 3600, 7200, 14_400, 43_200} <= set(popular.tolist())
    assert (values % 60 == 0).all()


def test_the_number_of_different_estimates_grows_as_in_the_logs() -> None:
    """About 90 values for 10,000 jobs and 340 for 70,000; a few fewer where the tail's fall together."""
    for jobs, distinct in ((1000, 35), (10_000, 90), (70_000, 340)):
        values, counts = histogram(jobs, 36 * HOUR, rng())
        assert 0.9 * distinct <= len(values) <= distinct
        assert counts.sum() == jobs


@pytest.mark.parametrize("count", [1, 2, 7, 30, 5000])
@pytest.mark.parametrize("longest", [None, 36 * HOUR])
def test_no_job_runs_for_longer_than_its_estimate(count: int, longest: float | None) -> None:
    times = runtimes(count)
    estimates = modal_estimates(times, rng(count), longest)
    assert (estimates >= times).all()
    assert estimates.max() <= (longest or np.ceil(times.max() / HOUR) * HOUR)


def test_jobs_too_long_for_the_model_get_the_next_popular_value() -> None:
    """All jobs run for 9 h 30, and the model would give most of them shorter estimates."""
    estimates = modal_estimates(np.full(100, 9.5 * HOUR), rng(), 10 * HOUR)
    assert set(estimates.tolist()) == {10 * HOUR, 9 * HOUR + 2400}


def test_estimates_are_hardly_correlated_with_run_times_below_them() -> None:
    """A short job gets any estimate: what makes the model hard for backfilling, as real estimates are."""
    short = np.concatenate((np.full(2500, 10.0), np.full(2500, 20.0)))
    estimates = modal_estimates(short, rng(), 18 * HOUR)
    assert estimates[:2500].mean() == pytest.approx(estimates[2500:].mean(), rel=0.1)


def test_the_same_generator_gives_the_same_estimates() -> None:
    first, again, other = (modal_estimates(runtimes(), rng(seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_a_run_time_above_the_longest_estimate_is_refused() -> None:
    with pytest.raises(ConfigError, match="a job runs for 7200 s, above the longest estimate of 3600 s; raise that"):
        modal_estimates(np.array([7200.0]), rng(), HOUR)


def test_a_workload_gets_walltimes_and_keeps_the_rest() -> None:
    jobs = tuple(Job(id=f"w0!{i}", submit_time=i, size=1, profile=f"p{i}", source=b"{}") for i in (1, 2))
    workload = Workload(name="w0", jobs=jobs, profiles={"p1": Delay(5.0), "p2": Delay(7.0)}, nb_res=1)
    estimated = apply_estimates(workload, "factor:2", rng())
    assert [job.walltime for job in estimated.jobs] == [10, 14]
    assert [(job.id, job.profile, job.source) for job in estimated.jobs] == [("w0!1", "p1", None), ("w0!2", "p2", None)]


def test_run_times_that_depend_on_hosts_need_their_speed() -> None:
    workload = Workload(
        name="w0",
        jobs=(Job(id="w0!1", submit_time=0, size=1, profile="p"),),
        profiles={"p": ParallelHomogeneous(1e9, 0)},
        nb_res=1,
    )
    with pytest.raises(ConfigError, match="profile 'p': it computes, and how fast is not known"):
        apply_estimates(workload, "exact", rng())
    assert apply_estimates(workload, "factor:2", rng(), speed=1e8).jobs[0].walltime == 20
