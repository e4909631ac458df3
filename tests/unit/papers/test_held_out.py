"""Learned policies beside heuristics, with few heuristics and short logs."""

import numpy as np
import pytest

pytest.importorskip("torch")
from decision.files import write_swf
from decision.files.generate.lublin import lublin_workload
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.papers.campaign import Parts
from decision.papers.own import held_out as experiment
from decision.policies.runtimes import apply_estimates


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of two logs of 200 jobs, the second half of which is scheduled."""
    monkeypatch.setattr(experiment, "ORDERS", ("fcfs", "sjf"))
    monkeypatch.setattr(experiment, "ALL_BACKFILLS", ("easy",))
    monkeypatch.setattr(experiment, "LOGS", {"a.swf": (slice(100), 9), "b.swf": (slice(100), 9)})
    for seed, name in enumerate(experiment.LOGS):
        rng = np.random.default_rng(seed)
        log = apply_estimates(lublin_workload(rng, 200, 16), "exact", rng)
        write_swf(tmp_path / name, log, runtimes(log, 1.0))
    return tmp_path


def test_a_policy_beside_itself_changes_nothing_and_the_table_is_kept(data, tmp_path):
    parts = Parts(tmp_path / "out")
    found = experiment.reproduce_held_out(data, parts, "sjf+easy,guard=auto")
    summary, pairs = found.tables
    assert [row[:2] for row in summary.rows] == [
        (log, metric) for log in experiment.LOGS for metric in ("wait", "slowdown")
    ]
    same = [row for row in pairs.rows if row[1] == "sjf+easy,guard=auto"]
    assert all(row[2:] == ("0 %", "0 %") for row in same)
    assert not [row for row in pairs.rows if row[1] == "fcfs+easy,guard=auto"], "it makes the schedule of easy"
    assert (parts.folder / "table.md").read_text().startswith("| log | metric |")
    assert experiment.reproduce_held_out(data, parts, "sjf+easy,guard=auto") == found


def test_a_policy_that_fails_the_gates_is_said_to(data, tmp_path):
    found = experiment.reproduce_held_out(data, Parts(tmp_path / "out"), "fcfs")
    assert found.notes.startswith("gates: fails on a.swf")


def test_an_unknown_policy_is_refused_before_anything_runs(data, tmp_path):
    with pytest.raises(ConfigError):
        experiment.reproduce_held_out(data, Parts(tmp_path / "out"), "nobody")
    assert not (tmp_path / "out").exists()
