"""What is expected of jobs, by hand: predictions, corrections, EASY++, and what is refused."""

import numpy as np
import pytest
from helpers.policy_toys import platform

from decision.model.errors import ConfigError, warn_once
from decision.model.workload import Delay, Job, Workload
from decision.policies import find_policy
from decision.policies.composed import ComposedPolicy
from decision.policies.traits import Estimator, OutlookSettings
from decision.policies.wrappers.guard import GuardedPolicy
from decision.policies.wrappers.prediction import EstimatedPolicy
from decision.simulation import simulate_workloads

Row = tuple[float, int, float, float, str]


def workload(*rows: Row, estimates: tuple[float, ...] = ()) -> Workload:
    """Jobs of (submission, hosts, walltime, run time, user)."""
    jobs = tuple(
        Job(
            id=f"w0!{i}",
            submit_time=float(submit),
            size=size,
            walltime=float(walltime),
            profile=f"p{i}",
            user=user,
            **({"estimate": estimates[i]} if estimates else {}),
        )
        for i, (submit, size, walltime, _, user) in enumerate(rows)
    )
    profiles = {f"p{i}": Delay(float(row[3])) for i, row in enumerate(rows)}
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=4)


def run(policy, work: Workload, hosts: int = 4) -> list[float]:
    jobs = simulate_workloads(platform(hosts), [work], policy).jobs
    at = dict(zip(jobs.id, np.asarray(jobs.start_time).tolist(), strict=True))
    return [at[job.id] for job in work.jobs]


def outlook_of(spec: str, work: Workload, hosts: int = 4):
    policy = find_policy(spec)
    run(policy, work, hosts)
    return policy.outlook


# Two jobs of the user take 10 s; then one asks for 1,000 s and is expected to take 10 s
LEARNED = ((0, 4, 1000, 10, "a"), (0, 4, 1000, 10, "a"))


def test_the_mean_of_the_last_two_fills_a_hole_that_the_walltime_does_not_fit() -> None:
    """At 100 a job takes 2 hosts for 50 s, and the next needs all 4 at 150; the user's job of 10 s fits before it."""
    work = workload(*LEARNED, (100, 2, 50, 50, "b"), (101, 4, 100, 100, "b"), (102, 2, 1000, 10, "a"))
    assert run("easy", work) == [0, 10, 100, 150, 250]
    assert run("easy,estimate=last2", work) == [0, 10, 100, 150, 102]


def test_a_job_that_ends_at_an_instant_is_learned_before_the_submissions_of_it() -> None:
    """The second job of the user ends at 20, when the third comes: it is expected to take 10 s already."""
    outlook = outlook_of("easy,estimate=last2", workload(*LEARNED, (20, 4, 1000, 10, "a"), (19, 4, 1000, 10, "a")))
    assert outlook.predicted[:4].tolist() == [1000, 1000, 1000, 10]  # by number: that of 19 came before


def test_a_prediction_is_a_second_at_least_and_the_walltime_at_most() -> None:
    work = workload((0, 1, 100, 5, ""), (0, 1, 100, 5, ""), (0, 1, 0.5, 0.1, ""), estimates=(0.25, 1e9, 7.0))
    assert outlook_of("easy,estimate=given", work).predicted[:3].tolist() == [1, 100, 0.5]


def test_a_job_that_its_walltime_ends_is_learned_as_that_long() -> None:
    work = workload((0, 4, 30, 99, "a"), (0, 4, 30, 99, "a"), (70, 4, 1000, 10, "a"))
    assert outlook_of("easy,estimate=last2", work).predicted[2] == 30


def test_a_job_that_is_killed_is_not_learned() -> None:
    class Killer:
        def reset(self, platform, seed) -> None:
            pass

        def decide(self, cluster, plan) -> None:
            for job in cluster.running:
                if job.size == 3 and cluster.now >= job.start_time + 5:
                    plan.kill(job)
            for job in cluster.queue:
                if job.size <= plan.nb_free:
                    plan.start(job)
            if cluster.now == 0:
                plan.call_at(5)

    rows = ((0, 1, 1000, 20, "a"), (0, 3, 1000, 500, "a"), (50, 1, 1000, 40, "a"), (200, 1, 1000, 1, "a"))
    policy = EstimatedPolicy(Killer(), OutlookSettings(Estimator.LAST2))
    run(policy, workload(*rows))
    assert policy.outlook.predicted[3] == 30  # of 20 s and 40 s; the killed one ran for 5 s


class Watched:
    """A policy that is looked at after each of its decisions."""

    needs_walltime = True

    def __init__(self, policy, look) -> None:
        self._policy, self._look = policy, look

    def reset(self, platform, seed) -> None:
        self._policy.reset(platform, seed)

    def decide(self, cluster, plan) -> None:
        self._policy.decide(cluster, plan)
        self._look(cluster.now)


def test_what_is_left_of_a_job_is_predicted_from_jobs_that_took_longer() -> None:
    """Nine jobs take 10 s, and three 500 s: the next is expected to take 10 s; at 100, when it still runs, 500 s."""
    rows = [(1000 * i, 4, 5000, 500 if i % 4 == 3 else 10, "a") for i in range(12)]
    rows += [(20000, 3, 5000, 900, "a"), (20100, 1, 1000, 5, "b"), (20600, 1, 1000, 5, "b")]
    seen = {}
    policy = find_policy("easy,estimate=quantiles,shadow=0.5,fill=0.5")

    def look(now) -> None:
        seen[now] = policy.outlook.expected_runtime[12]

    run(Watched(policy, look), workload(*rows))
    assert [seen[at] for at in (20000, 20100, 20600)] == [10, 500, 1200]  # then twice what it has run


@pytest.mark.parametrize(
    ("correction", "expected", "count"), [("walltime", 1000, 1), ("increments", 10 + 300, 2), ("doubling", 160, 4)]
)
def test_a_job_that_outlives_its_prediction_is_corrected_at_the_next_decision(correction, expected, count) -> None:
    """Predicted 10 s and still running at 100: 10 + 60 is too little, and so are 20, 40 and 80."""
    work = workload((0, 3, 1000, 900, ""), (100, 1, 10, 5, ""), estimates=(10.0, 10.0))

    policy = find_policy(f"easy,estimate=given,correction={correction}")
    seen = []

    def look(now) -> None:
        seen.append((now, policy.outlook.expected_runtime[0], policy.outlook.corrections[0]))

    run(Watched(policy, look), work)
    assert (100.0, expected, count) in seen


def test_candidates_are_looked_at_in_their_own_order_behind_the_same_head() -> None:
    """Two candidates for two free hosts while the head waits for all four: the shorter one, which came later, starts.

    The head starts at 100 as without, when the first job ends.
    """
    rows = ((0, 2, 100, 100, ""), (1, 4, 50, 50, ""), (2, 3, 80, 80, ""), (2, 2, 60, 60, ""), (2, 2, 20, 20, ""))
    work = workload(*rows)
    assert run("easy", work)[1:] == [100, 150, 2, 62]
    assert run("easy,backfill_order=sjf", work)[1:] == [100, 150, 22, 2]


def test_tsafrirs_easy_plus_plus_by_hand() -> None:
    """4 hosts. User a's jobs take 10 s of 1,000. At 100 a long job takes 3 hosts until 200, by its own prediction.

    The head of 4 hosts is promised 200. Behind it, b's job (walltime 90, no history) and a's job (expected 10 s) want
    the free host: a's is first, and b's, which would end at 202 by its walltime, has to wait for it and then no longer
    fits before 200.
    """
    rows = (*LEARNED, (100, 3, 100, 100, "c"), (101, 4, 50, 50, "c"), (112, 1, 90, 90, "b"), (112, 1, 1000, 10, "a"))
    assert run("easy++", workload(*rows)) == [0, 10, 100, 200, 250, 112]
    assert run("easy", workload(*rows)) == [0, 10, 100, 200, 250, 250]


def test_shorthands_and_guards_are_made_of_what_they_say() -> None:
    policy = find_policy("easy++")
    assert isinstance(policy, EstimatedPolicy)
    assert find_policy("easy++,estimate=regression").settings.estimate.name == "REGRESSION"
    with pytest.raises(ConfigError, match=r"use easy,backfill_order=sjf,estimate=quantiles,fill=0\.5$"):
        find_policy("easy++,estimate=quantiles,fill=0.5")
    guarded = find_policy("easy++,guard=60")
    assert isinstance(guarded, GuardedPolicy)
    assert isinstance(guarded.policy, EstimatedPolicy)
    assert isinstance(find_policy("easy,estimate=walltime,guard=60"), ComposedPolicy)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("easy,estimate=last3", "no estimate 'last3'; did you mean last2?"),
        ("easy,estimate=last2,correction=double", "no correction 'double'"),
        ("easy,correction=doubling", "correction does nothing without estimate"),
        ("easy,fill=0.5", "fill does nothing without estimate=quantiles"),
        ("easy,estimate=last2,shadow=0.5", "shadow does nothing without estimate=quantiles"),
        ("easy,estimate=quantiles,shadow=1", "shadow=1 must be a number between 0 and 1"),
        ("easy,estimate=quantiles,fill=much", "fill=much must be a number between 0 and 1"),
        ("easy,estimate=quantiles,correction=doubling", "takes no option correction"),
        ("fcfs,backfill_order=sjf", "backfill_order does nothing without EASY"),
        ("conservative,backfill_order=sjf", "backfill_order does nothing without EASY"),
        ("easy,backfill_order=sjff", "no order 'sjff'"),
        ("easy,estimat=last2", "no option 'estimat'"),
    ],
)
def test_nonsense_is_refused_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_policy(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_given_needs_an_estimate_of_every_job() -> None:
    work = workload((0, 1, 10, 5, ""), (0, 1, 10, 5, ""), estimates=(5.0, float("nan")))
    with pytest.raises(ConfigError, match=r"job w0!1 has no 'estimate'.*decision workload predict"):
        run("easy,estimate=given", work)
    work = workload((0, 1, 10, 5, ""), (0, 1, 10, 5, ""), estimates=(5.0, -3.0))
    with pytest.raises(ConfigError, match="job w0!1 has the 'estimate' -3, not above 0"):
        run("easy,estimate=given", work)


def test_last2_without_users_is_the_walltime_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    warn_once.cache_clear()
    outlook = outlook_of("easy,estimate=last2", workload(*((i, 1, 100, 5, "") for i in range(0, 60, 20))))
    assert outlook.predicted[:3].tolist() == [100, 100, 100]
    assert "no job has a user" in caplog.text
