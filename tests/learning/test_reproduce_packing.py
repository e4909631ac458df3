"""Packing against chance, with the smoke budget as it is."""

import json

import numpy as np
import pytest

from decision.papers.campaign import Parts
from decision.papers.packing import PACKING, PACKING_BUDGETS, PackingPart, made_half, packed_utilization, setup_of
from decision.rl.learning.checkpoint import read_manifest
from decision.rl.learning.deploy import learned_policy


def test_the_best_triple_of_the_grid_is_tested_by_its_trainings(tmp_path):
    """The best is that on the half that was learned from; the rate is so high that trainings differ."""
    smoke, grid = PACKING_BUDGETS["smoke"], ((64, 128, 1), (64, 256, 1), (64, 128, 2))
    changes = ("env.steps=500", "learn.lr=0.02")
    budget = smoke._replace(steps=512, grid=grid, tries=2, changes=changes)
    task = PackingPart(budget=budget, seed=0, learned="WL2_RND", method="baseline", folder=tmp_path)
    PACKING.work(task)
    found = json.loads(task.file.read_text())
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    names = {"-".join(map(str, triple)): triple for triple in grid}
    assert {path.name for path in folder.iterdir()} == {f"{name}-{seed}" for name in names for seed in range(2)}
    means: dict[str, list[float]] = {"a": [], "b": []}
    for name, triple in names.items():
        checkpoints = [folder / f"{name}-{seed}" / "packing.ckpt" for seed in range(2)]
        for seed, checkpoint in enumerate(checkpoints):
            config = read_manifest(checkpoint).config
            learn = config.learn
            assert ((learn.rollout, learn.minibatch, learn.epochs), config.seed) == (triple, seed)
        for half, values in means.items():
            values.append(np.mean([utilization(checkpoint, half, budget.jobs) for checkpoint in checkpoints]))
    best = int(np.argmax(means["a"]))
    assert len(set(means["a"])) == len(grid), "else nothing is told apart"
    for half, values in means.items():
        assert found[f"WL2_RND{half}"]["baseline"] == pytest.approx(values[best])


def utilization(checkpoint, half, jobs):
    policy = learned_policy(checkpoint)
    policy.actor.reset(0)
    return packed_utilization(
        policy.actor.together, setup_of(made_half(0, "WL2_RND", half, jobs), encoder=policy.encoder)
    )


@pytest.mark.nightly
def test_the_smoke_budget_makes_all_tables_and_a_second_run_repeats_nothing(tmp_path):
    told = []
    found = PACKING.reproduce(Parts(tmp_path, progress=lambda done, of: told.append((done, of))))
    assert told[-1] == (24, 24)
    titles = [table.title for table in found.tables]
    assert [title[:7] for title in titles] == [
        "Table 4",
        "Table 5",
        "Table 6",
        "Table 6",
        "Table 6",
        "Claims,",
        "Claims:",
        "packing",
        "Share o",
        "One pol",
        "One pol",
    ]
    rivals = [row[0] for row in found.tables[-2].rows]
    assert rivals[:3] == ["packer, predictions", "packer", "laf+easy"]
    assert rivals[-3:] == ["specialists, baseline", "specialists, NN1", "specialists, NN2"]
    heuristics = found.tables[0]
    assert [row[0] for row in heuristics.rows[:3]] == ["WL1_100a", "WL1_100b", "WL1_050a"]
    bound = heuristics.columns.index("bound")
    for row in heuristics.rows:
        values = [float(cell.split()[0]) for cell in row[1:]]
        assert all(0 < value <= values[bound - 1] for value in values)
    assert "24 of 24 parts" in found.notes
    assert (tmp_path / "smoke" / "table.md").read_text().count("## ") == 11
    again = PACKING.reproduce(Parts(tmp_path, progress=lambda done, of: told.append((done, of))))
    assert (again, len(told)) == (found, 24)
    missing = PackingPart(
        budget=PACKING_BUDGETS["smoke"], seed=0, learned="WL2_RND", method="NN2", folder=tmp_path / "smoke"
    ).file
    missing.unlink()
    shown = PACKING.reproduce(Parts(tmp_path), only_finished=True)
    assert "23 of 24 parts" in shown.notes
    assert not missing.exists()
