"""The model against recordings of a real Slurm: starts, with the times of its cycles, and mean waits, without."""

import numpy as np
import pytest

from decision.slurm.agree import agree, agreement_document, calibrated
from decision.slurm.simulate import simulate_case
from decision.slurm.sweep import read_goal, read_vary, sweep
from tests.helpers.slurm_cases import recording

# measured: the share of starts within 30 s of the record, with the best guess at what the log does not say
_CLOSE = {
    "fcfs": 0.99,
    "basic_backfill": 0.96,
    "coarse_backfill": 0.99,
    "partitions": 0.99,
    "age_size": 0.99,
    "mixed_requests": 0.94,
    "preempt_requeue": 0.97,
    "fair_share_qos_again2": 0.97,
    "shared_nodes": 0.97,
    "v26_coarse_backfill": 0.99,
    "v26_shared_nodes": 0.89,
    "v26_preempt_requeue": 0.98,
}


@pytest.mark.parametrize("name", sorted(_CLOSE))
def test_jobs_start_when_slurm_started_them(name: str) -> None:
    case = recording(name)
    best, _ = calibrated(case, case.settings, runs=1)[0]
    starts = np.array([job.start if job.started else np.nan for job in case.jobs], float)
    apart = np.abs(best.start - starts)[~np.isnan(starts)]
    assert np.mean(apart <= 30) >= _CLOSE[name]
    waits = [(run, job.wait) for run, job in zip(best.wait, case.jobs, strict=True) if job.started]
    simulated, recorded = np.nanmean(waits, 0)
    assert abs(simulated / recorded - 1) <= (0.06 if "shared" in name else 0.03)


@pytest.mark.parametrize(
    ("name", "most"),
    [("coarse_backfill", 0.04), ("partitions", 0.04), ("preempt_requeue", 0.06), ("shared_nodes", 0.12)],
)
def test_the_mean_wait_is_that_of_the_log_and_the_interval_holds_it(name: str, most: float) -> None:
    case = recording(name, cycles=False)
    found = agree(case, case.settings, runs=10)
    means, (low, high) = found.means, found.interval
    assert abs(means["simulated"] / means["recorded"] - 1) <= most
    assert low <= means["recorded"] <= high
    assert (high - low) / 2 <= 0.2 * means["simulated"]
    assert abs(means["easy"] / means["recorded"] - 1) > 0.1  # what today's policies make of it
    assert agreement_document(case, found)["jobs"] == len(found.started)


@pytest.mark.parametrize("name", ["age_size", "basic_backfill", "mixed_requests", "partitions", "v26_shared_nodes"])
def test_a_cycle_that_goes_on_from_the_last_one_finds_what_a_new_one_finds(name: str) -> None:
    case = recording(name, cycles=False)
    changes = {"PriorityType": "priority/multifactor", "bf_interval": "5"}
    # a bound on priorities, which all jobs are above, lets each cycle begin anew
    settings = [case.settings.changing({**changes, "bf_min_prio_reserve": bound}) for bound in ("0", "1")]
    runs = [simulate_case(case, each) for each in settings]
    assert np.array_equal(runs[0].start, runs[1].start, equal_nan=True)
    assert runs[0].tested == runs[1].tested
    assert runs[0].cycles == runs[1].cycles


def test_a_change_of_backfill_is_predicted_from_one_log_both_ways() -> None:
    fine, coarse = recording("basic_backfill", cycles=False), recording("coarse_backfill", cycles=False)
    recorded = np.mean([j.wait for j in coarse.jobs if j.started]) - np.mean([j.wait for j in fine.jobs if j.started])
    there = read_vary("bf_interval=300&bf_window=60&bf_resolution=600&bf_max_job_test=6")
    back = read_vary("bf_interval=30&bf_window=1440&bf_resolution=60&bf_max_job_test=500")
    for case, changes, change in ((fine, there, recorded), (coarse, back, -recorded)):
        numbers = [n for n, job in enumerate(case.jobs) if job.started]
        counts: list[tuple[int, int]] = []
        goal = read_goal("mean-wait", case, numbers)
        found = sweep(case, case.settings, changes, goal, runs=10, show=lambda *count: counts.append(count))  # noqa: B023
        assert counts[-1] == (50, 50) and {of for _, of in counts} == {50}  # 30 guesses, and 10 under each setting
        low, high = found.tried[0].interval
        assert low <= change <= high
        assert np.sign(found.tried[0].mean) == np.sign(change)


def test_the_same_seed_gives_the_same_result() -> None:
    case = recording("coarse_backfill", cycles=False)
    once, again = (agree(case, case.settings, runs=3) for _ in range(2))
    assert once.simulated.tolist() == again.simulated.tolist()
