"""Which policy suits a log: what is run, what is advised, and that it keeps the bound."""

import json

import numpy as np
import pytest

from decision.analysis.statistics import Estimate
from decision.analysis.whole import change_of_mean, rounded
from decision.formats.selection import Selection
from decision.model.errors import ConfigError
from decision.model.resample import SHAKE, shaken
from decision.model.workload import Delay, Job, Workload
from decision.runs import advise as advising
from decision.runs.advise import Wish, advise, expanded, heuristics
from decision.runs.store import ResultStore
from decision.runs.whole import Log, counted


def log(tmp_path, jobs=150, hosts=8):
    """A busy machine on which short jobs wait for long ones."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "id": str(k),
            "subtime": float(60 * k),
            "res": int(rng.integers(1, hosts + 1)),
            "walltime": 2 * int(seconds),
            "profile": str(seconds),
        }
        for k, seconds in enumerate(rng.choice([30, 60, 600], jobs).tolist())
    ]
    profiles = {str(s): {"type": "delay", "delay": s} for s in (30, 60, 600)}
    file = tmp_path / "busy.json"
    file.write_text(json.dumps({"nb_res": hosts, "jobs": rows, "profiles": profiles}))
    return Log(workload=file, platform=None, hosts=0, selection=Selection())


@pytest.fixture
def few(monkeypatch):
    """Few candidates, so that the test is fast."""
    monkeypatch.setattr(advising, "ORDERS", ("fcfs", "sjf"))
    monkeypatch.setattr(advising, "SHIPPED", ())


def test_the_advised_policy_keeps_the_bound_and_is_the_best_that_does(tmp_path, few):
    found = advise(log(tmp_path), Wish(copies=3), tmp_path / "out")
    rows = {row.policy: row for row in found.rows}
    assert max(rows[found.policy].longest_wait) <= 1.5
    kept = [row.change["wait"].value + row.change["bounded_slowdown"].value for row in found.rows if row.keeps_bound]
    assert rows[found.policy].change["wait"].value <= 0 or found.policy == "easy"
    assert found.rows[0].policy == "easy" and len(found.rows) <= 8 and kept
    assert found.policy in found.sentence and found.cannot


def test_one_more_policy_makes_only_its_own_runs(tmp_path, few):
    case = log(tmp_path)
    advise(case, Wish(copies=2), tmp_path / "out")
    before = len(ResultStore(tmp_path / "out" / "runs"))
    advise(case, Wish(copies=2, policies=("ljf+easy",)), tmp_path / "out")
    assert len(ResultStore(tmp_path / "out" / "runs")) == before + 2


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(longest_wait=0.5), "longest_wait: must be at least 1"),
        (Wish(weights={"speed": 1.0}), "weight: give wait=NUMBER"),
        (Wish(weights={"wait": 0.0}), "weight: give wait=NUMBER"),
        (Wish(metrics=("speed",)), "unknown metric 'speed'"),
        (Wish(policies=("nothing",)), "nothing"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(tmp_path, few, wish, said):
    with pytest.raises(ConfigError, match=said):
        advise(log(tmp_path), wish, tmp_path / "out")


def test_heuristics_are_each_order_with_each_backfilling_with_and_without_the_bound():
    names = heuristics(1.5)
    assert len(set(names)) == len(names)
    assert {"easy", "saf+first-fit", "saf+easy,guard=1.5x", "conservative"} <= set(names)
    assert "easy,guard=1.5x" not in names, "it is what the bound is relative to"


def test_names_of_several_policies_stand_for_each_of_them_once():
    assert expanded(["easy", "heuristics", "shipped", "easy"]) == [
        "easy",
        *(n for n in heuristics(1.5) if n != "easy"),
        "learned",
    ]


def test_shaken_copies_move_each_job_by_less_than_a_minute_and_differ():
    jobs = [Job(id=f"w0!{k}", submit_time=10.0 * k, size=1, profile="p") for k in range(50)]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=1.0)}, nb_res=1)
    assert shaken(workload, 0) is workload
    one, two = (shaken(workload, copy).jobs for copy in (1, 2))
    assert [job.submit_time for job in one] != [job.submit_time for job in two]
    times = [job.submit_time for job in one]
    assert times == sorted(times)
    assert all(0 <= job.submit_time - 10.0 * int(job.name) < SHAKE for job in one)
    assert [job.submit_time for job in shaken(workload, 1).jobs] == times


def test_intervals_of_changes_hold_the_truth_as_often_as_they_say():
    """Weeks and copies with known variances: a policy that waits 0.8 times as long in truth."""
    rng, hits, of = np.random.default_rng(0), 0, 200
    for _ in range(of):
        base = rng.gamma(4.0, 1.0, 40)
        own = 0.8 * base * rng.lognormal(-0.02, 0.2, 40)
        copies = np.exp(rng.normal(0, 0.03, (2, 10, 1)))
        found = change_of_mean(own * copies[0], base * copies[1], np.ones(40))
        hits += found.low <= -0.2 <= found.high
    assert 0.90 <= hits / of <= 0.99


def test_the_same_schedules_are_no_change():
    sums = np.arange(12.0).reshape(3, 4)
    assert change_of_mean(sums, sums, np.ones(4)) == Estimate(0.0, 0.0, 0.0)


def test_digits_that_are_noise_are_not_printed():
    assert rounded(Estimate(12_345.6, 11_000.0, 13_700.0)) == 12_000.0
    assert rounded(Estimate(1.23456, 1.23, 1.24)) == 1.235


def test_the_first_and_the_last_hundredth_are_not_counted():
    assert counted(1000) == slice(10, 990)
