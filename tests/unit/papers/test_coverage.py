"""The coverage experiment, with few and short logs."""

import pytest

pytest.importorskip("gymnasium")
from decision.papers import Parts
from decision.papers.own import coverage as experiment


def test_finished_logs_are_kept_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "POLICIES", ("easy", "saf+easy"))
    monkeypatch.setattr("decision.analysis.statistics.SAMPLES", 200)
    design, done = experiment.Design(logs=6, known=30, jobs=200, windows=20, length=20), []
    parts = Parts(tmp_path, progress=lambda number, of: done.append((number, of)))
    found = experiment.reproduce_coverage(parts, design)
    assert done[-1] == (3, 3)
    (table,) = found.tables
    assert [row[0] for row in table.rows] == ["easy", "saf+easy", "easy, saf+easy", "all"]
    shares = [float(cell) for row in table.rows for cell in row[1:] if cell]
    assert len(shares) == 4 + 4 + 2 + 6
    assert all(0 <= share <= 100 for share in shares)
    assert table.rows[0][3] == "", "a policy alone is not better than another"
    assert "| easy, saf+easy |" in (tmp_path / "table.md").read_text()
    monkeypatch.setattr(experiment, "schedule_logs", None)
    assert experiment.reproduce_coverage(parts, design) == found
