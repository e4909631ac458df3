"""The coverage experiment, with few and short logs."""

import numpy as np
import pytest

from decision.model.demand import runtimes, submit_times

pytest.importorskip("gymnasium")
from decision.papers.campaign import Parts
from decision.papers.own import coverage as experiment


def test_finished_logs_are_kept_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "_POLICIES", ("easy", "saf+easy"))
    monkeypatch.setattr("decision.experiments.statistics._SAMPLES", 200)
    design, done = experiment.Design(logs=6, known=30, jobs=200, windows=20, length=20), []
    parts = Parts(tmp_path, progress=lambda number, of: done.append((number, of)))
    found = experiment.reproduce_coverage(parts, design)
    assert done[-1] == (6, 6)
    table, memory = found.tables
    assert "memory of 500 jobs" in memory.title and len(memory.rows) == 4
    assert [row[0] for row in table.rows] == ["easy", "saf+easy", "easy, saf+easy", "all"]
    shares = [float(cell) for row in table.rows for cell in row[1:] if cell]
    assert len(shares) == 4 + 4 + 2 + 6
    assert all(0 <= share <= 100 for share in shares)
    assert table.rows[0][3] == "", "a policy alone is not better than another"
    assert "| easy, saf+easy |" in (tmp_path / "table.md").read_text()
    monkeypatch.setattr(experiment, "schedule_logs", None)
    assert experiment.reproduce_coverage(parts, design) == found


def test_weeks_of_a_log_are_drawn_whole(tmp_path):
    week, day = 604_800, 86_400
    submits = [w * week + d * day for w in range(4) for d in range(w + 1)]
    rows = [f"{i} {t} 0 {100 + t // week} 1 0 0 1 200 0 1 1 1 1 1 1 -1 -1" for i, t in enumerate(submits, 1)]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 2\n" + "\n".join(rows) + "\n")
    drawn = experiment._weeks_of(log, 30, np.random.default_rng(1))
    times, lengths = submit_times(drawn), runtimes(drawn)
    assert len(times) == 30 and (np.diff(times) > 0).all()
    for w in range(int(times[-1] // week)):
        inside = times // week == w
        (which,) = set(lengths[inside] - 100)
        assert inside.sum() == which + 1 < 4, "all jobs of one of the whole weeks"


def test_a_load_with_memory_makes_crowds_of_jobs():
    rng = np.random.default_rng
    gaps = {how: np.diff(submit_times(experiment._made(how, 4000, rng(5)))) for how in ("model", "memory")}
    sums = {how: np.add.reduceat(each[:3900], np.arange(0, 3900, 100)) for how, each in gaps.items()}
    spread = {how: each.std() / each.mean() for how, each in sums.items()}
    assert spread["memory"] > spread["model"]
