"""DeepScheduling's claims, with the smoke budget as it is."""

import pytest

from decision.papers.campaign import Parts
from decision.papers.deepscheduling import DEEPSCHEDULING, DeepSchedulingPart


@pytest.mark.nightly
def test_the_smoke_budget_gives_each_claim_a_number_and_a_second_run_repeats_nothing(tmp_path):
    told = []
    found = DEEPSCHEDULING.reproduce(Parts(tmp_path, progress=lambda done, of: told.append((done, of))))
    assert told[-1] == (9, 9)
    (table,) = found.tables
    assert table.title == "orion: 4 held-out days, 1 seed (95 % over seeds and days)"
    cells = {row[0]: row[2] for row in table.rows}
    assert len(cells) >= 20
    assert all(cells.values())
    assert cells["sum that tau pays, most over least - 1"] == "0.0e+00", "whoever schedules"
    assert 1 <= float(cells["waste over waste_bound, joint"]) < float(cells["waste over waste_bound, first-fit"])
    assert 0 < float(cells["waste of all energy, First-Fit"].rstrip("%")) < 50
    assert "9 of 9 parts" in found.notes
    assert sorted(path.name for path in (tmp_path / "smoke").glob("*.svg")) == [
        f"orion-figure-{number}.svg" for number in (2, 3, 4)
    ]
    again = DEEPSCHEDULING.reproduce(Parts(tmp_path, progress=lambda done, of: told.append((done, of))))
    assert (again, len(told)) == (found, 9)
    missing = DeepSchedulingPart(
        budget=DEEPSCHEDULING.budgets["smoke"], cluster="orion", who="rules", seed=0, folder=tmp_path / "smoke"
    ).file
    missing.unlink()
    shown = DEEPSCHEDULING.reproduce(Parts(tmp_path), only_finished=True)
    assert (shown.tables, missing.exists()) == ((), False)
    assert "8 of 9 parts" in shown.notes
