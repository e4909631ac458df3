"""Many trainings by one command: which they are, that each goes on where it stood, and that each is as if alone."""

import csv

import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.files.workload import Selection
from decision.rl.learning.config import alternatives

pytest.importorskip("torch")
pytest.importorskip("gymnasium")
from decision.experiments import training as sweep
from decision.experiments.inputs import Inputs, first_log, load_inputs
from decision.experiments.training import combinations, train_all, train_to_folder, training_folders
from decision.model.errors import ConfigError
from decision.rl.learning import training
from decision.rl.learning.stack import PpoStack

SHORT = ("learn.steps=96", "learn.envs=4", "learn.rollout=8", "env.jobs=5")


@pytest.mark.parametrize(
    ("change", "every"),
    [
        ("learn.lr=1e-3", ["learn.lr=1e-3"]),
        ("learn.lr=1e-3, 3e-4", ["learn.lr=1e-3", "learn.lr=3e-4"]),
        ("network.hidden=[64,64],[8, 8]", ["network.hidden=[64,64]", "network.hidden=[8, 8]"]),
        ("learn.method=ppo,evolution", ["learn.method=ppo", "learn.method=evolution"]),
    ],
)
def test_a_setting_may_have_several_values(change, every):
    assert alternatives(change) == every


def test_each_seed_and_each_value_are_a_training():
    found = combinations("dbf-compact", ["learn.lr=1e-3,3e-4", "env.head=9"], [3, 4])
    assert [each.name for each in found] == [f"learn.lr={lr},seed={s}" for lr in ("1e-3", "3e-4") for s in (3, 4)]
    assert [(each.config.learn.lr, each.config.seed) for each in found] == [
        (lr, s) for lr in (1e-3, 3e-4) for s in (3, 4)
    ]
    assert all(each.config.settings["head"] == 9 and each.config.learn.threads == 1 for each in found)
    assert [each.name for each in combinations("dbf-compact", [], [7])] == ["seed=7"]
    with pytest.raises(ConfigError, match=r"learn\.lr=1e-3 is there twice"):
        combinations("dbf-compact", ["learn.lr=1e-3,1e-3"], [0])


def test_trainings_go_on_where_they_stood_and_are_as_if_alone(root, tmp_path):
    inputs = Inputs(
        platform=root / "platforms/toy.xml", workloads=(root / "workloads/toy.json",), selection=Selection()
    )
    trainings = combinations("dbf-compact", SHORT, [0, 1])
    log = first_log(load_inputs(inputs))
    alone = train_to_folder(log, trainings[1].config, tmp_path / "alone")
    stopped, _ = reversed(training_folders(trainings, tmp_path / "many"))
    begun = train_to_folder(log, trainings[1].config, stopped, stop=lambda: True)
    assert begun.read_bytes() != alone.read_bytes()
    rows = train_all(trainings, inputs, tmp_path / "many")
    assert [(row["seed"], row["steps"]) for row in rows] == [("0", "96"), ("1", "96")]
    assert (stopped / "dbf.ckpt").read_bytes() == alone.read_bytes()
    assert list(csv.DictReader((tmp_path / "many/trainings.csv").open())) == rows
    before = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("many/trainings/*/dbf.ckpt"))]
    assert train_all(trainings, inputs, tmp_path / "many", processes=2) == rows
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("many/trainings/*/dbf.ckpt"))] == before


def test_on_a_gpu_the_seeds_of_a_combination_learn_together(root, tmp_path, monkeypatch):
    inputs = Inputs(
        platform=root / "platforms/toy.xml", workloads=(root / "workloads/toy.json",), selection=Selection()
    )
    trainings = combinations("dbf-compact", [*SHORT, "learn.lr=1e-3,3e-4"], [0, 1])
    apart = train_all(trainings, inputs, tmp_path / "apart")
    monkeypatch.setattr(sweep, "_together", lambda trainings, data: True)  # what a GPU says; the learner is the same
    stacks = []
    monkeypatch.setattr(training, "PpoStack", lambda learners: stacks.append(len(learners)) or PpoStack(learners))
    rows = train_all(trainings, inputs, tmp_path / "together")
    assert stacks == [2, 2], "two seeds for each of two rates"
    for row, expected in zip(rows, apart, strict=True):
        assert [row[name] for name in ("learn.lr", "seed", "steps")] == [
            expected[name] for name in ("learn.lr", "seed", "steps")
        ]
        mine, theirs = (float(each["validation_waiting_time"]) for each in (row, expected))
        assert mine == pytest.approx(theirs, rel=0.05)


def test_the_command_prints_a_row_of_each_and_draws_them(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    toy = ("train", "dbf-compact", "-p", "toy", "-w", "toy", "-o", str(tmp_path), "-j", "1")
    settings = [word for change in SHORT for word in ("--set", change)]
    done = CliRunner().invoke(app, [*toy, *settings, "--seeds", "0:1", "--set", "learn.lr=1e-3,3e-4"])
    assert done.exit_code == 0, done.output
    assert [line.split()[:3] for line in done.stdout.splitlines() if "e-" in line] == [
        ["1e-3", "0", "96"],
        ["3e-4", "0", "96"],
    ]
    assert (tmp_path / "report.html").is_file()
    for options, says in (
        (("--seeds", "2:2"), "'2:2' names no seed"),
        (("--seeds", "0:2", "--seed", "3"), "--seeds names them"),
        (("--seeds", "0:2", "--audit", "1"), "what is done again goes on where it stood"),
        (("-j", "2"), "it needs --seeds, or several values in --set"),
    ):
        refused = CliRunner().invoke(app, [*toy[:-2], *settings, *options])
        assert refused.exit_code == 2
        assert says in " ".join(refused.stderr.split())
