"""The comparison of rankings with all orderings, on a small log and a short training."""

import csv

import numpy as np
import pytest
from helpers.learning_runs import write_log

from decision.papers.campaign import Parts
from decision.papers.own import ranking


@pytest.fixture
def script(monkeypatch):
    """The module, with fewer and shorter sequences."""
    for name, value in {
        "TRAINING_JOBS": 2000,
        "SEQUENCE_JOBS": 50,
        "_STRIDE": 10,
        "MADE_SEQUENCES": 7,
        "RESAMPLES": 1000,
    }.items():
        monkeypatch.setattr(ranking, name, value)
    return ranking


@pytest.mark.nightly
def test_rankings_are_compared_with_every_ordering_and_learned_once(script, tmp_path):
    write_log(tmp_path / "log.swf")
    folder, progress = tmp_path / "out", []
    parts = Parts(folder, progress=lambda done, of: progress.append((done, of)))
    found = [script.reproduce_ranking(tmp_path / "log.swf", parts, seeds=2, steps=480_000) for _ in range(2)]
    assert found[0] == found[1]
    assert "chosen: seed" in found[0].notes
    assert progress[-1][0] >= progress[-1][1] == 960_000
    assert [len((folder / seed / "progress.csv").read_text().splitlines()) for seed in "01"] == [3, 3]
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    policies = {row["policy"] for row in rows}
    assert {"saf+easy", "f4+first-fit", "fcfs+conservative", "ranking, all seeds", "ranking, chosen"} <= policies
    assert "fcfs+conservative" in policies
    assert not policies & {"saf+conservative", "f4+conservative"}, "one schedule counts once"
    assert f"{len(policies) - 2} of the 42 heuristics make different schedules" in found[0].notes
    saf = [row["where"] for row in rows if row["policy"] == "saf+easy"]
    assert [saf.count(where) for where in ("sequences", "half", "made")] == [20, 1, 7]
    table = (folder / "table.md").read_text()
    for policy in ("ranking, chosen", "ranking, all seeds"):
        assert table.count(f"| {policy} | waiting time |") == 9


def test_a_change_is_in_percent_of_the_means_with_an_interval_over_runs_and_sequences(script):
    own, other = np.array([[50.0, 100.0], [70.0, 80.0]]), np.array([100.0, 100.0])
    change = script._change(own, other, 1)
    assert change.value == pytest.approx(-25.0)
    assert -50.0 <= change.low < -25.0 < change.high <= 0.0
    assert script._percent(change).startswith("-25.0 % (-")


def test_neighbours_that_share_jobs_make_an_interval_no_shorter(script):
    own = np.repeat(np.random.default_rng(1).uniform(50.0, 150.0, 20), 10)[None]
    alone, together = (script._change(own, np.full(200, 100.0), neighbours) for neighbours in (1, 10))
    assert together.high - together.low > 2 * (alone.high - alone.low)
    all_of_them = script._change(own, np.full(200, 100.0), 200)
    assert all_of_them.low == pytest.approx(all_of_them.high), "any beginning, and once around"


def test_a_typical_change_leaves_out_the_sequences_that_are_least_like_the_others(script):
    own, other = np.array([[50.0, 90.0, 80.0, 900.0]] * 2), np.full(4, 100.0)
    typical = script._typical_change(own, other)
    assert typical == pytest.approx((-15.0, -15.0, -15.0))
    assert script._percent(typical) == "-15.0 %"
