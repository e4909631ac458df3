"""Heuristics and learned choices meet the same episodes, and are measured alike."""

import numpy as np
import pytest
from helpers.env_toys import busy, first_valid, setup, workload

from decision.experiments import metrics as m
from decision.model.errors import ConfigError
from decision.policies import ComposedPolicy
from decision.rl.envs import EPISODE_METRICS, evaluate
from decision.rl.schedulers import ChoosingPolicy
from decision.simulation import simulate_workloads


def whole(jobs):
    """One episode that is the whole workload, after which nothing waits."""
    return setup(jobs, jobs=None, online=False, head=4, tail=0)


@pytest.mark.parametrize(
    "policy",
    ["fcfs", "easy", "conservative", "sqf+first-fit", "lcfs+easy", "easy,backfill_order=sjf,estimate=regression"],
)
def test_a_heuristic_makes_the_schedule_of_a_simulation(policy):
    jobs = busy(150)
    made = whole(jobs)
    told = {name: column[0] for name, column in evaluate(policy, made, first=[0]).items()}
    record = simulate_workloads(made.platform, [jobs], policy)
    waited = m.waiting_times(record.jobs)
    until = record.jobs.start_time.max() - record.jobs.submit_time.min()
    assert told["placed_waiting_time"] == pytest.approx(waited.mean())
    assert told["waiting_time"] == pytest.approx(waited.mean()), "all have been placed"
    assert told["bounded_slowdown"] == pytest.approx(m.bounded_slowdowns(record.jobs).mean())
    assert told["duration"] == pytest.approx(until)
    assert told["queue_length"] == pytest.approx(waited.sum() / until)
    load = waited * record.jobs.size * record.jobs.walltime
    assert told["job_load"] == pytest.approx(load.sum() / until)
    assert told["arrived"] == 150
    assert told["p99_wait"] == pytest.approx(np.percentile(waited, 99))
    assert told["max_wait"] == pytest.approx(waited.max())
    assert told["late_starts"] == m.late_starts(record.jobs)
    assert told["arrival_utilization"] == pytest.approx(m.arrival_utilization(record.jobs, len(made.platform.hosts)))


def test_jobs_that_still_wait_count_among_the_longest_waits():
    jobs = workload(2, (0, 1, 1000, 1000), (1, 2, 10, 10), (2, 1, 5, 5), (20, 1, 5, 5), (30, 1, 5, 5))
    told = evaluate("sjf+first-fit", setup(jobs, jobs=3, head=1, tail=0), first=[0])
    assert told["max_wait"] == 19, "the job on both hosts, until the third of the others begins at 20 s"
    assert told["late_starts"] == 1


@pytest.mark.parametrize("policy", ["easy", "lcfs+easy", first_valid])
def test_the_placed_jobs_of_a_whole_workload_waited_as_in_a_simulation(policy):
    made, placed = whole(busy(150)), []
    evaluate(policy, made, first=[0], placed=placed)
    deployed = ChoosingPolicy(made.encoder, lambda *seen: int(first_valid(*seen))) if callable(policy) else policy
    jobs = simulate_workloads(made.platform, [busy(150)], deployed).jobs
    order = np.lexsort((jobs.id, jobs.submit_time))
    (found,) = placed
    assert np.array_equal(found.size, jobs.size[order])
    assert np.array_equal(found.walltime, jobs.walltime[order])
    assert found.wait == pytest.approx(m.waiting_times(jobs)[order])


@pytest.mark.parametrize("policy", ["fcfs", "sqf+first-fit", first_valid])
def test_an_episode_places_as_many_jobs_as_it_shall_and_its_metrics_are_theirs(policy):
    made, placed = setup(), []
    told = evaluate(policy, made, 9, placed=placed)
    assert [len(jobs.wait) for jobs in placed] == [made.rules.jobs] * 9
    assert [jobs.wait.mean() for jobs in placed] == pytest.approx(told["placed_waiting_time"])


def test_a_window_over_all_of_the_queue_that_takes_what_fits_is_first_fit():
    made = setup(busy(200), head=200, tail=0)
    learned, heuristic = evaluate(first_valid, made, 12), evaluate("fcfs+first-fit", made, 12)
    per_arrival = {"arrived", "waiting_time"}  # the last instant may end before all of its arrivals are seen
    for name in set(EPISODE_METRICS) - {"return", "length"} - per_arrival:
        assert learned[name] == pytest.approx(heuristic[name]), name
    assert (learned["return"] < 0).all()


def test_episodes_depend_on_nothing_but_trace_number_and_seed():
    made = setup()
    few, many = evaluate("easy", made, 5, seed=3), evaluate("easy", made, 9, seed=3)
    assert np.array_equal(few["waiting_time"], many["waiting_time"][:5])
    assert not np.array_equal(few["waiting_time"], evaluate("easy", made, 5, seed=4)["waiting_time"])
    assert np.array_equal(few["arrived"], evaluate(ComposedPolicy(backfill="easy"), made, 5, seed=3)["arrived"])


def test_jobs_outside_of_the_window_are_counted():
    jobs = workload(2, (0, 2, 100, 100), (0, 1, 10, 10), (0, 1, 10, 10), (50, 1, 10, 10))
    made = setup(jobs, jobs=None, online=False, head=1, tail=0)
    told = evaluate(first_valid, made, first=[0])
    assert told["duration"] == 110
    assert told["unseen_jobs"] == pytest.approx((1 * 50 + 2 * 50 + 0 * 10) / 110)
    assert told["partial_time"] == pytest.approx(100 / 110)


def test_what_is_neither_heuristic_nor_choice_is_refused():
    with pytest.raises(ConfigError, match="switches hosts off"):
        evaluate("easy,power=idle-timeout", setup(), 1)
    with pytest.raises(ConfigError, match="did you mean easy"):
        evaluate("eazy", setup(), 1)
    with pytest.raises(ConfigError, match="neither a heuristic"):
        evaluate(object(), setup(), 1)


def test_a_policy_in_python_is_evaluated_like_its_compiled_equal():
    class FirstCome:
        def reset(self, platform, seed):
            pass

        def decide(self, cluster, plan):
            for job in cluster.queue:
                if job.size > plan.nb_free:
                    break
                plan.start(job)

    ours, compiled = evaluate(FirstCome(), setup(), 4), evaluate("fcfs", setup(), 4)
    assert all(np.array_equal(ours[name], compiled[name]) for name in compiled)
