"""The comparison of rankings with all orderings, on a small log and a short training."""

import csv

import pytest
from test_reproduce_dbf import write_log


@pytest.fixture
def script(root, monkeypatch):
    """The module, with fewer and shorter sequences."""
    monkeypatch.syspath_prepend(str(root / "scripts" / "reproduce"))
    import ranking

    for name, value in {"JOBS": 2000, "SEQUENCES": 5, "LENGTH": 50, "MADE": 7, "SAMPLES": 100}.items():
        monkeypatch.setattr(ranking, name, value)
    return ranking


def test_rankings_are_compared_with_every_ordering_and_learned_once(script, tmp_path, capsys):
    write_log(tmp_path / "log.swf")
    folder, printed = tmp_path / "out", []
    for _ in range(2):
        script.main(tmp_path / "log.swf", folder, seeds=2, steps=480_000)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "chosen: seed" in printed[0]
    assert [len((folder / seed / "progress.csv").read_text().splitlines()) for seed in "01"] == [2, 2]
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    policies = {row["policy"] for row in rows}
    assert {"saf+easy", "f4+first-fit", "fcfs+conservative", "ranking, all seeds", "ranking, chosen"} <= policies
    assert len(policies) == 14 * 3 + 2
    saf = [row["where"] for row in rows if row["policy"] == "saf+easy"]
    assert [saf.count(where) for where in ("sequences", "half", "made")] == [5, 1, 7]
    table = (folder / "table.md").read_text()
    for policy in ("ranking, chosen", "ranking, all seeds"):
        assert table.count(f"| {policy} | waiting time |") == 9


def test_a_change_is_in_percent_of_the_means_with_an_interval_over_sequences(script):
    import numpy as np

    own, other = np.array([[50.0, 100.0], [70.0, 80.0]]), np.array([100.0, 100.0])
    change = script._change(own, other)
    assert change.value == pytest.approx(-25.0)
    assert -50.0 <= change.low < -25.0 < change.high <= 0.0
