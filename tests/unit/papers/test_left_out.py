"""What is learned without some logs, and judged on these, with few and short logs."""

import numpy as np
import pytest

pytest.importorskip("torch")
from decision.experiments.whole import WEEK, LogPart
from decision.files import write_swf
from decision.files.generate.lublin import lublin_workload
from decision.files.swf import REQUESTED_TIME
from decision.model.demand import runtimes
from decision.papers.campaign import Parts
from decision.papers.own import held_out, judged
from decision.policies.runtimes import apply_estimates
from decision.rl.learning.checkpoint import read_manifest

FOLDS = (("a",), ("b",))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of two logs of 80 jobs, each a fold; two orders stand for all heuristics."""
    files = {name: (f"{name}.swf", REQUESTED_TIME) for name in "ab"}
    for module in (judged, held_out, judged):
        monkeypatch.setattr(module, "FILES", files)
    for module in (held_out, judged):
        monkeypatch.setattr(module, "FOLDS", FOLDS)
    monkeypatch.setattr(judged, "heuristics", lambda bound: ["easy", "lcfs+first-fit", f"sjf+easy,guard={bound:g}x"])
    folder = tmp_path / "logs"
    folder.mkdir()
    for seed, name in enumerate(files):
        rng = np.random.default_rng(seed)
        log = apply_estimates(lublin_workload(rng, 80, 16), "exact", rng)
        write_swf(folder / f"{name}.swf", log, runtimes(log, 1.0))
    parts = tuple(judged.TrainingPart(name, judged.log_of(folder, name).read().workload) for name in files)
    monkeypatch.setattr(held_out, "training_parts", lambda data: parts)
    return folder


def test_what_is_judged_on_a_log_was_learned_without_it_and_is_kept(data, tmp_path, monkeypatch):
    shown = []
    parts = Parts(tmp_path / "out", progress=lambda done, of: shown.append((done, of)))
    found = held_out.reproduce_left_out(data, parts, generations=1, pool=4, copies=2)
    judged_table, longest = found.tables
    assert [row[0] for row in judged_table.rows] == ["a", "b"]
    assert all(len(row) == len(judged_table.columns) for row in judged_table.rows)
    assert [row[0] for row in longest.rows] == ["sjf+easy,guard=1.5x", "learned"]
    assert all(done <= of for done, of in shown)
    learned_from = [
        [facts.name for facts in read_manifest(parts.folder / f"{name}.ckpt").workloads]
        for name in ("without-fold-1", "without-fold-2")
    ]
    assert learned_from == [["b.swf"], ["a.swf"]]
    monkeypatch.setattr(held_out, "_schedule", None)
    monkeypatch.setattr(judged, "perform_whole_run", None)
    assert held_out.reproduce_left_out(data, parts, generations=1, pool=4, copies=2) == found, "nothing is done again"


def test_a_weekly_choice_takes_what_was_best_in_the_weeks_before():
    part = LogPart(first=0.0, last=3 * WEEK, warm_up=0.0, wanted=0.0, block=WEEK)
    jobs = np.array([10.0, 20.0, 10.0])

    def result(waits):
        total, sums = jobs.sum(), np.array(waits) * jobs
        means = {"wait": sums.sum() / total, "bounded_slowdown": (sums + jobs).sum() / total}
        without = {
            "wait": ((sums.sum() - sums) / (total - jobs)).tolist(),
            "bounded_slowdown": (((sums + jobs).sum() - sums - jobs) / (total - jobs)).tolist(),
        }
        return {**means, "without": without, "block_jobs": jobs.tolist()}

    first, second = [result([100.0, 60.0, 50.0])], [result([10.0, 70.0, 1.0])]
    chosen = judged.weekly_choice([first, second], part)
    waits = np.array([100.0, 70.0, 1.0])  # the first policy, then the one that was better in all weeks before
    assert chosen["wait"].values == pytest.approx([waits @ jobs / jobs.sum()])
    assert chosen["wait"].without[0] == pytest.approx((waits @ jobs - waits * jobs) / (jobs.sum() - jobs))
