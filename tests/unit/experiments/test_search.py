"""A search for settings: what it tries, that it goes on where it stood, and when trials are given up."""

import csv
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.model.errors import ConfigError
from decision.rl.learning.config import Range, range_of, read_space

pytest.importorskip("torch")
pytest.importorskip("gymnasium")
pytest.importorskip("optuna")
import decision as d
from decision.experiments import training as searching
from decision.experiments.inputs import Inputs
from decision.experiments.results import SearchTrial, best_trial, table_rows
from decision.experiments.training import SettingsSearch, search_settings
from decision.rl.learning.config import PpoConfig

SHORT = ("learn.steps=64", "learn.rollout=8", "learn.minibatch=16", "env.jobs=5")
VARIED = ("learn.lr=1e-4..1e-1:log", "learn.envs=2,4", "learn.epochs=1..4")


@pytest.fixture
def inputs(root):
    return Inputs(platform=root / "platforms/toy.xml", workloads=(root / "workloads/toy.json",))


def searched(trials, method="bayesian", seeds=(0,)):
    return SettingsSearch("dbf-compact", read_space([*SHORT, *VARIED]), trials, method, seeds)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("learn.lr=1e-5..1e-3:log", Range(1e-5, 1e-3, whole=False, log=True)),
        ("learn.clip=.1..0.3", Range(0.1, 0.3, whole=False, log=False)),
        ("learn.envs=8..64", Range(8, 64, whole=True, log=False)),
        ("learn.steps=1_000..2_000:log", Range(1000, 2000, whole=True, log=True)),
        ("learn.lr=1e-3", None),
        ("learn.lr=1e-3,1e-4", None),
        ("env.path=../there", None),
    ],
)
def test_two_numbers_with_two_dots_are_a_range(change, found):
    assert range_of(change) == found


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["learn.lr=1e-3..1e-5"], "its lower end first"),
        (["learn.entropy=0..0.1:log"], "above 0"),
        (["learn.lr=1e-3"], "a search varies nothing"),
        (["learn.envs=8,8"], "name each setting and each value once"),
        (["learn.lr=1e-5..1e-3", "learn.lr=1e-5..1e-2"], "name each setting and each value once"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(changes, says):
    with pytest.raises(ConfigError, match=says):
        read_space(changes)


def test_the_same_seed_gives_the_same_trials_however_many_there_are_and_wherever_it_was_stopped(inputs, tmp_path):
    whole = search_settings(searched(6), inputs, tmp_path / "whole")
    begun = search_settings(searched(5), inputs, tmp_path / "begun")
    assert [trial.settings for trial in begun] == [trial.settings for trial in whole[:5]]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("begun/trainings/*/dbf.ckpt")}
    extended = search_settings(searched(6), inputs, tmp_path / "begun", processes=2)
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what is finished is not done again"
    assert [(trial.settings, trial.judged) for trial in extended] == [(trial.settings, trial.judged) for trial in whole]
    rows = list(csv.DictReader((tmp_path / "begun/search.csv").open()))
    assert rows == [{name: str(value) for name, value in row.items()} for row in table_rows(extended)]
    assert all(2 <= int(row["learn.envs"]) <= 4 and 1e-4 <= float(row["learn.lr"]) <= 0.1 for row in rows)
    assert len({row["learn.lr"] for row in rows}) == 6
    other = search_settings(searched(2, seeds=(1,)), inputs, tmp_path / "other")
    assert other[0].settings != whole[0].settings
    random = search_settings(searched(2, "random"), inputs, tmp_path / "random")
    assert {trial.state for trial in random} == {"finished"}


def test_the_best_trial_is_a_training_like_any_other(inputs, tmp_path):
    found = search_settings(searched(2, seeds=(3, 4)), inputs, tmp_path / "many")
    best = best_trial(found)
    assert best.judged["validation_waiting_time"] == min(each.judged["validation_waiting_time"] for each in found)
    assert [folder.name[-6:] for folder in best.folders] == ["seed=3", "seed=4"]
    changes = {**dict(each.split("=") for each in SHORT), **best.settings, "learn.threads": 1}
    alone = d.train("dbf", "toy", "toy", tmp_path / "alone", preset="dbf-compact", changes=changes, seed=3)
    assert alone.read_bytes() == (best.folders[0] / "dbf.ckpt").read_bytes()
    assert json.loads((best.folders[0] / "run.json").read_text())["state"] == "finished"


def test_a_trial_that_falls_behind_is_given_up_and_goes_on_when_it_is_resumed(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(PpoConfig, "validated_every", 16)
    monkeypatch.setattr(searching, "_limits", lambda trials: [-1.0] * 4 if trials else [])  # no wait is below
    found = search_settings(searched(6), inputs, tmp_path)
    assert [trial.state for trial in found] == ["finished"] * 4 + ["pruned"] * 2
    assert 0 < found[4].steps < 64
    assert best_trial(found).number <= 4
    [folder] = found[4].folders
    assert json.loads((folder / "run.json").read_text())["state"] == "interrupted"
    again = search_settings(searched(6), inputs, tmp_path)
    assert table_rows(again) == table_rows(found)
    for path in tmp_path.glob("runs/*"):  # a kill before the result was kept
        path.unlink()
    assert table_rows(search_settings(searched(6), inputs, tmp_path)) == table_rows(found)


def test_the_limit_is_the_median_of_five_finished_trials():
    def trial(number, values, state="finished"):
        return SearchTrial(number=number, settings={}, state=state, values=values)

    four = [trial(at, [10.0 * at, at]) for at in range(4)]
    assert searching._limits(four) == []
    assert searching._limits([*four, trial(4, [100.0], "pruned")]) == []
    assert searching._limits([*four, trial(4, [100.0, 100.0])]) == [20.0, 2.0]


def test_settings_that_do_not_fit_together_are_refused_and_the_others_tried(inputs, tmp_path):
    space = read_space([*SHORT, "network.kind=mlp,jobs", "network.hidden=[8,8],[8]"])
    found = search_settings(SettingsSearch("dbf-compact", space, 6, "random", (1,)), inputs, tmp_path)
    refused = [trial for trial in found if trial.state == "refused"]
    assert refused
    assert all(trial.settings == {"network.kind": "jobs", "network.hidden": "[8,8]"} for trial in refused)
    assert "the network jobs has one width" in refused[0].reason
    assert best_trial(found).settings["network.hidden"] in ("[8]", "[8,8]")


def test_the_command_names_the_best_trial_and_draws_them(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    toy = ("train", "dbf", "-p", "toy", "-w", "toy", "-o", str(tmp_path / "out"), "-j", "1")
    settings = [word for change in (*SHORT, *VARIED) for word in ("--set", change)]
    done = CliRunner().invoke(app, [*toy, *settings, "--search", "2"], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((tmp_path / "out/search.csv").open()))
    best = min(rows, key=lambda row: float(row["validation_waiting_time"]))
    assert f"--set learn.lr={best['learn.lr']}" in done.output
    page = (tmp_path / "out/report.html").read_text()
    assert f"--set learn.lr={best['learn.lr']}" in page
    assert (tmp_path / "out/search.png").read_bytes()[1:4] == b"PNG"
    for options, says in (
        (("--search", "0"), "write the number of trainings, like 20, or 20:random"),
        (("--search", "2:grid"), "write the number of trainings"),
        ((), "is a range; say with --search"),
        (("--search", "2", "--share", "0/2"), "what is tried next depends on all trainings before"),
    ):
        refused = CliRunner().invoke(app, [*toy, *settings, *options], env={"COLUMNS": "160"})
        assert refused.exit_code == 2
        assert says in " ".join(refused.stderr.split())


def test_without_optuna_one_line_says_what_to_install(root, tmp_path):
    lines = (
        "import sys; sys.modules['optuna'] = None; import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'optuna' else find(name, *more)\n"
        f"import decision as d\nd.search('dbf', 'toy', 'toy', {str(tmp_path / 'out')!r}, {{'learn.lr': (1e-4, 1e-3)}})"
    )
    done = subprocess.run([sys.executable, "-c", lines], cwd=root, capture_output=True, text=True)
    assert "a search needs optuna, which is not installed: pip install" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_python_takes_ranges_as_tuples_and_draws_in_axes(tmp_path):
    from matplotlib.figure import Figure

    small = dict(each.split("=") for each in SHORT)
    ranges = {"learn.lr": (1e-4, 1e-2, "log"), "learn.envs": [2, 4], "learn.epochs": "1..2"}
    found = d.search("dbf", "toy", "toy", tmp_path / "out", ranges, trials=2, changes=small)
    assert found.checkpoint.is_file()
    assert list(found.table["learn.lr"]) == [trial.settings["learn.lr"] for trial in found.trials]
    axes = Figure().subplots()
    assert found.plot(ax=axes) is axes.figure
    found.plot(tmp_path / "search.pdf")
    assert "2 trials" in repr(found)
    assert found._repr_html_().count("<tr>") == 3
    with pytest.raises(ConfigError, match=r"ranges: learn\.lr must have values like"):
        d.search("dbf", "toy", "toy", tmp_path / "out", {"learn.lr": 3})
