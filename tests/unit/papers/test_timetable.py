"""How the policy timetable is made, with few and short sequences; and that what it is made from is what ships."""

import numpy as np
import pytest

pytest.importorskip("torch")
from decision.files.events import load_events
from decision.files.generate.events import SupplyModel, green_power, supply_lines
from decision.papers.campaign import Parts
from decision.papers.launchpad import power_events
from decision.papers.own import evolved
from decision.rl.learning import load_policy

FEW = evolved.Size(generations=2, checked_every=2, jobs=90, sequence=45, unseen=2, bounded=30)


@pytest.fixture(autouse=True)
def fewer(monkeypatch):
    monkeypatch.setattr(evolved, "_WORLDS", {10: 2, 20: 1})
    monkeypatch.setattr(evolved, "_HEURISTICS", (evolved.BY_DENSITY, "fcfs+easy"))


def test_a_stopped_reproduction_goes_on_and_finds_the_same(tmp_path, monkeypatch):
    shown, folder = [], tmp_path / "stopped"
    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(evolved, "_compare", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        evolved.reproduce_timetable(Parts(folder), FEW)
    kept = {file.name: file.stat().st_mtime_ns for file in folder.glob("*.json")}
    assert sorted(kept) == ["checked-2.json", "generation-1.json", "generation-2.json"]
    found = evolved.reproduce_timetable(Parts(folder, progress=lambda done, of: shown.append((done, of))), FEW)
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept, "nothing is scheduled again"
    assert shown == [(1, 6), (2, 6), (4, 6), (6, 6)]
    at_once = evolved.reproduce_timetable(Parts(tmp_path / "at once"), FEW)
    assert found.tables == at_once.tables
    assert (folder / "timetable.ckpt").read_bytes() == (tmp_path / "at once" / "timetable.ckpt").read_bytes()
    assert load_policy(str(folder / "timetable.ckpt"), {}).name == "timetable.ckpt"
    assert [row[0] for row in found.tables[0].rows] == ["10", "20"]
    assert all(0 < float(share) <= 1 for row in found.tables[0].rows for share in row[3:])


def test_the_ratio_is_that_of_the_best_heuristic():
    values = np.array([[2.0, 4.0], [1.0, 1.0], [2.0, 2.0]])
    row = evolved._row(10, values, np.array([0.5, 0.4]))
    assert row == ("10", "fcfs+easy", "1.500 (1.000 to 2.000)", "0.500", "0.400")


def test_power_is_that_of_the_files_that_decision_writes(tmp_path):
    model, file = SupplyModel(hosts=10, steps=50), tmp_path / "supply.txt"
    made = [np.random.default_rng(1), np.random.default_rng(1)]
    file.write_bytes(supply_lines(made[0], green_power(made[0], model), model))
    events = power_events(made[1], green_power(made[1], model), model)
    assert [(e.timestamp, e.hosts) for e in events] == [(e.timestamp, e.hosts) for e in load_events(file, supply=True)]
