"""The commands about learning, from a shell's point of view."""

import csv
import re
import shutil
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.complaints import complaints

from decision.batsim.signals import StopRequest
from decision.cli.app import app
from decision.files.outputs_read import lock_folder, read_facts

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

TOY = ("-p", "platforms/toy.xml", "-w", "workloads/toy.json")
SHORT = ("--steps", "64", "--set", "learn.envs=4", "--set", "learn.rollout=8", "--set", "env.jobs=5")
EVOLVE = ("--steps", "64", "--set", "learn.population=4", "--set", "learn.sequences=4", "--set", "env.jobs=4")


def cli(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"})


@pytest.fixture(autouse=True)
def _in_checkout(root, monkeypatch):
    monkeypatch.chdir(root)


def train(what, folder):
    result = cli("train", what, *TOY, *(EVOLVE if what == "ranking" else SHORT), "-o", folder)
    assert result.exit_code == 0, result.output
    return folder / f"{what}.ckpt"


@pytest.fixture
def trained(tmp_path):
    return train("dbf", tmp_path)


@pytest.mark.parametrize("what", ["dbf", "rlscheduler", "inspector", "ranking"])
def test_what_is_trained_can_be_shown_evaluated_and_run(what, tmp_path):
    trained = train(what, tmp_path)
    shown = cli("report", "show", trained)
    assert "64 of 64 steps" in shown.stdout
    assert shown.stdout.split()[:2] == ["scheduler", what]
    assert ("idle_weight" in shown.stdout) == (what == "dbf"), "only settings that it has"
    assert "workloads" not in shown.stdout, "a checkpoint keeps no folders"
    table = tmp_path / "metrics.csv"
    compared = cli("evaluate", trained, "easy", *TOY, "--episodes", 3, "--placed", 5, "-o", table)
    assert compared.exit_code == 0, compared.output
    rows = list(csv.DictReader(table.open()))
    assert [row["policy"] for row in rows] == [str(trained)] * 3 + ["easy"] * 3
    ran = cli("run", *TOY, "--policy", trained, "--force", "-o", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "out" / "out_jobs.csv").exists()


def test_a_second_training_in_the_same_folder_asks_for_resume(trained):
    again = cli("train", "dbf", *TOY, *SHORT, "-o", trained.parent)
    assert again.exit_code == 2
    assert "holds a run: resume it, or choose another folder (--resume)" in again.stderr
    resumed = cli("train", "dbf", *TOY, *SHORT, "-o", trained.parent, "--resume")
    assert resumed.exit_code == 0, resumed.output


def test_more_steps_extend_a_training_and_fewer_are_refused(trained, tmp_path):
    folder = shutil.copytree(trained.parent, tmp_path / "learned")
    again = ("train", "dbf", *TOY, *SHORT[2:], "-o", folder, "--resume", "--steps")
    extended = cli(*again, "128")
    assert extended.exit_code == 0
    says = "the learning rate was planned for 64 steps: going on to 128 gives another result than one training of 128"
    assert says in " ".join(extended.stderr.split())
    constant = cli(*again, "128")
    assert "was planned for" not in constant.stderr
    assert "128 of 128 steps" in cli("report", "show", folder / "dbf.ckpt").stdout
    refused = cli(*again, "64")
    assert refused.exit_code == 2
    assert "holds a run of 128 steps, which can become more and not fewer; found 64 (--steps)" in refused.stderr


def test_a_trainings_folder_says_what_made_it_and_is_for_no_run(trained):
    facts, folder = read_facts(trained.parent), trained.parent
    assert (facts.kind, facts.state, facts.policy, facts.seed) == ("training", "finished", "dbf", 0)
    assert facts.options["learn.steps"] == "64" and "decision" in facts.command
    assert set(facts.files) >= {"dbf.ckpt", "progress.csv", "resume.pt"}
    before = trained.read_bytes()
    refused = cli("run", *TOY, "--policy", "easy", "-o", folder)
    assert refused.exit_code == 2
    assert "the folder holds a training of dbf; choose another folder" in refused.stderr
    with lock_folder(folder):
        refused = cli("train", "dbf", *TOY, *SHORT, "-o", folder, "--resume")
    assert refused.exit_code == 2
    assert "another training goes on in this folder" in refused.stderr
    assert read_facts(folder) == facts and trained.read_bytes() == before


def test_an_interrupted_training_says_so_and_resumes_to_the_same_files(tmp_path, monkeypatch):
    longer = ("--steps", "256", *SHORT[2:])
    assert cli("train", "dbf", *TOY, *longer, "-o", tmp_path / "whole").exit_code == 0
    with monkeypatch.context() as patched:
        patched.setattr(StopRequest, "signal", signal.SIGINT, raising=False)
        patched.setattr(StopRequest, "__init__", lambda self: None)
        stopped = cli("train", "dbf", *TOY, *longer, "-o", tmp_path / "parts")
    assert stopped.exit_code == 130, stopped.output
    facts = read_facts(tmp_path / "parts")
    assert (facts.state, facts.reason) == ("interrupted", "32 of 256 steps are done")
    assert cli("train", "dbf", *TOY, *longer, "-o", tmp_path / "parts", "--resume").exit_code == 0
    assert read_facts(tmp_path / "parts").state == "finished"
    for name in ("dbf.ckpt", "progress.csv"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_more_environments_than_fit_are_refused_before_they_are_made(tmp_path):
    refused = cli("train", "dbf", *TOY, "-o", tmp_path, "--set", "learn.envs=1000000000")
    assert refused.exit_code == 2
    assert "1,000,000,000 environments with their rollouts need" in refused.stderr
    assert re.search(r"GiB are free: at most [\d,]+ fit$", refused.stderr.strip())


def test_more_episodes_than_fit_are_refused_before_they_are_drawn():
    refused = cli("evaluate", "easy", *TOY, "--episodes", "1000000000")
    assert refused.exit_code == 2
    assert re.search(r"1,000,000,000 episodes need .* GiB are free: at most [\d,]+ fit$", refused.stderr.strip())


def test_a_run_is_not_resumed_with_other_inputs(trained, tmp_path):
    other = tmp_path / "other.json"
    other.write_bytes(Path("workloads/toy.json").read_bytes() + b"\n")
    result = cli("train", "dbf", "-p", "platforms/toy.xml", "-w", other, *SHORT, "-o", trained.parent, "--resume")
    assert result.exit_code == 2
    assert "with another workloads" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("train", "dbf", *TOY, "-o", "x", "--preset", "dbf-compct"), "did you mean dbf-compact?"),
        (("train", "dbf", *TOY, "-o", "x", "--set", "learn.lr=-1"), "learn.lr: expected `float` > 0"),
        (
            ("train", "ranking", *TOY, "-o", "x", "--set", "learn.lr=1"),
            "'learn.lr=1': there is no learn.lr; did you mean learn.spread? (--set)",
        ),
        (("train", "inspector", *TOY, "-o", "x", "--preset", "rlscheduler"), "--preset rlscheduler is for rlscheduler"),
        (
            ("train", "rlscheduler", *TOY, "-o", "x", "--set", "env.tail=1"),
            "there is no env.tail (rlscheduler has estimate, correction, head, jobs",
        ),
        (("evaluate", "esy", *TOY), "there is no policy 'esy'"),
        (("evaluate", "none.ckpt", *TOY), "none.ckpt: cannot be read"),
        (("report", "show", "platforms/toy.xml"), "this is not a checkpoint of decision"),
        (("report", "show", "dfb"), "dfb: there is no such file, nor a shipped policy of that name; did you mean dbf?"),
    ],
)
def test_mistakes_are_one_line(arguments, says):
    result = cli(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    ("options", "began", "option"),
    [
        ((), ":4, not all", "--select"),
        (("--select", ":4", "--walltime", "runtime"), "requested, not runtime", "--walltime"),
        (("--select", ":4", "--nodes", "4"), "any, not 4", "--nodes"),
    ],
)
def test_a_run_is_not_resumed_on_other_jobs(tmp_path, options, began, option):
    first = cli("train", "dbf", *TOY, *SHORT, "--select", ":4", "-o", tmp_path)
    assert first.exit_code == 0, first.output
    again = cli("train", "dbf", *TOY, *SHORT, "-o", tmp_path, "--resume", *options)
    assert again.exit_code == 2
    assert f"{began}; go on with what it began with ({option})" in " ".join(again.stderr.split())
    same = cli("train", "dbf", *TOY, *SHORT, "-o", tmp_path, "--resume", "--select", "0:4")
    assert same.exit_code == 0, same.output


def test_a_checkpoint_says_what_it_was_learned_from_and_who_judges_it_on_that_is_warned(tmp_path):
    trained = cli("train", "dbf", *TOY, *SHORT, "--select", ":4", "-o", tmp_path)
    assert trained.exit_code == 0, trained.output
    checkpoint = tmp_path / "dbf.ckpt"
    shown = [line.split() for line in cli("report", "show", checkpoint).stdout.splitlines()]
    assert ["jobs", ":4"] in shown and ["nodes", "any"] in shown and ["walltime", "requested"] in shown
    short = ("--episodes", 1, "--placed", 2)
    for options, seen in (((), 4), (("--select", "2:"), 2), (("--select", "4:"), 0), (("--nodes", 1), None)):
        evaluated = cli("evaluate", checkpoint, "easy", *TOY, *short, *options)
        assert evaluated.exit_code == 0, evaluated.output
        if seen is not None:
            says = " ".join(evaluated.stderr.split())
            assert ("warning" in says) == (seen > 0)
            assert seen == 0 or f"was learned from {seen} of the" in says
    policies = ("--policy", "easy", "--policy", checkpoint, "-o", tmp_path / "compared", "-j", 1)
    assert "was learned from 4 of the 5 jobs" in " ".join(cli("compare", *TOY, *policies).stderr.split())
    assert "warning" not in cli("compare", *TOY, *policies, "--select", "4:").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("train", "dbf", *TOY, *SHORT, "--resume", "-o", "{}"), "{}: there is no training to resume"),
        (("train", "dbf", *TOY, *SHORT, "-o", "/"), "/: the root of all folders is none for results"),
        (("gates", "easy", *TOY), "easy: there is no such file, nor a shipped policy of that name"),
        (("report", "show", "{}/longer.ckpt"), "{}/longer.ckpt: the file is damaged"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(arguments, says, tmp_path):
    shipped = Path("decision/rl/learning/models/packer.ckpt").read_bytes()
    (tmp_path / "longer.ckpt").write_bytes(shipped + bytes(100))
    before = set(Path("/").iterdir())
    result = cli(*(str(word).format(tmp_path) for word in arguments))
    assert result.exit_code == 2
    (line,) = complaints(result.stderr)
    assert line.startswith(f"error: {says.format(tmp_path)}")
    assert set(Path("/").iterdir()) == before
