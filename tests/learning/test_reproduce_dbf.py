"""The runs of DBF's paper, on a small log, with trainings of a few steps."""

import csv
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.learning_runs import write_log

from decision.cli.app import app
from decision.experiments.inputs import LogOnHosts
from decision.experiments.metrics import waiting_times
from decision.experiments.training import train_to_folder
from decision.files import load_swf
from decision.files.outputs_read import read_facts
from decision.files.text import InputFacts, file_facts
from decision.files.workload import Selection
from decision.papers import dbf
from decision.papers.dbf import DBF_BUDGETS
from decision.papers.dbf.claims import read_types, types_csv
from decision.rl.envs import EPISODE_METRICS, PlacedJobs, equal_hosts
from decision.rl.learning.checkpoint import read_manifest
from decision.rl.learning.config import load_config
from decision.simulation import simulate_workloads

pytest.importorskip("matplotlib")

RUNS = ("10-0-0", "9-1-0", "inspector-f1-0", "10-0-1", "9-1-1", "inspector-f1-1")
EPISODE = 250  # placed jobs
PICTURES = ("checkpoints.png", "comparison.png", "curves-10.png", "invisible.png", "splits.png", "types.png")


@pytest.fixture(scope="module")
def reproduce(tmp_path_factory):
    """A function that calls the command, always with the same output folder, and returns what was printed."""
    folder = tmp_path_factory.mktemp("reproduced")
    write_log(folder / "log.swf")
    command = ["reproduce", "dbf", "--swf", str(folder / "log.swf"), "-o", str(folder), "--processes", "1"]

    def call(*options):
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == 0, done.output
        return done.output

    call.folder = folder / "smoke"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DBF_BUDGETS, "smoke", DBF_BUDGETS["smoke"]._replace(steps=10_000))
        patch.setattr(dbf, "EPISODE_JOBS", EPISODE)
        yield call


@pytest.fixture(scope="module")
def reproduced(reproduce):
    """The folder of the smoke budget, all of it run, and what was printed."""
    return reproduce.folder, reproduce()


def test_the_smoke_budget_leaves_table_results_and_pictures(reproduced):
    folder, printed = reproduced
    results = {row["policy"]: row for row in read(folder / "results.csv")}
    assert set(results) == {
        *("DBF 10-0", "DBF 9-1", "SchedInspector over F1", "SchedInspector over F1 (offline)"),
        *("easy", "sqf+easy", "lcfs+easy"),
    }
    assert all(policy in printed for policy in results)
    assert [results["DBF 9-1"][name] for name in ("head", "tail")] == ["9", "1"]
    for picture in PICTURES:
        assert (folder / picture).read_bytes().startswith(b"\x89PNG"), picture
    table = (folder / "table.md").read_text()
    assert "10,000 steps" in table
    assert "4 episodes" in table
    assert "| DBF 9-1 | DBF 10-0 |" in table, "what the tail is good for"
    assert "| wait, s: 100 jobs | wait, s: 200 jobs | wait, s: whole |" in table
    assert [row["horizon"] for row in read(folder / "9-1-0" / "horizons.csv")] == ["100", "200", "0"]
    (training,) = (folder / "9-1-0").glob("*/run.json")
    facts = read_facts(training.parent)
    assert (facts.kind, facts.state, facts.workloads[0].name) == ("training", "finished", "log.swf")


def test_budgets_that_share_runs_do_them_alike():
    standard, splits = (DBF_BUDGETS[name] for name in ("standard", "splits"))
    assert (standard.runs, standard.steps, standard.episodes) == (splits.runs, splits.steps, splits.episodes)
    assert {sum(each.window) for each in splits.learned} == {8, 10, 16, 20, 32, 64, 128}
    assert (128, 0) in {each.window for each in standard.learned}


def test_the_papers_windows_and_baselines_are_learned_as_they_are_called():
    full, learned = DBF_BUDGETS["full"], {}
    for each in full.learned:
        config = load_config(each.preset, each.changes)
        learned[each.policy] = config.settings
        if each.window:
            assert (each.preset, config.env.mask, config.learn.envs) == ("dbf-paper", False, 1)
            assert (config.env.head, config.env.tail) == each.window
    splits = {(size - tail, tail) for size in (8, 10, 16, 20, 32, 64) for tail in (0, 1, size // 4, size // 2, size)}
    assert {each.window for each in full.learned if each.window} == splits | {(128, 0)}
    assert [learned[f"SchedInspector over {name}"]["base"] for name in ("SJF", "F1")] == ["sjf", "f1"]
    assert "RLScheduler" in learned
    assert (full.steps, full.checkpoints) == (299_700_000, 20), "a checkpoint after 5,000 of 100,000 episodes"


def test_policies_learn_from_the_first_half_and_are_compared_on_the_other(reproduced):
    folder, _ = reproduced
    (training,) = (folder / "9-1-0").glob("*/*.ckpt")
    assert read_manifest(training).selection.jobs == (0, 200), "of 400"
    rest = load_swf(folder.parent / "log.swf", jobs=slice(200, None), missing_walltime="runtime")
    waits = waiting_times(simulate_workloads(equal_hosts(8), [rest], "easy").jobs)
    (whole,) = [row for row in read(folder / "easy-horizons.csv") if row["horizon"] == "0"]
    assert float(whole["waiting_time"]) == pytest.approx(waits.mean())


def test_a_training_is_evaluated_on_its_way_and_then_as_if_it_had_not_been(reproduced):
    folder, _ = reproduced
    rows = read(folder / "10-0-0" / "checkpoints.csv")
    whole = read(folder / "10-0-0" / "metrics.csv")
    assert len(rows) >= 2, "the first update, and all"
    assert {row["steps"] for row in rows} <= {row["steps"] for row in read(folder / "10-0-0" / "progress.csv")}
    assert int(rows[0]["steps"]) < int(rows[-1]["steps"])
    for metric in ("waiting_time", "queue_length", "utilization"):
        values = [float(row[metric]) for row in whole]
        assert float(rows[-1][metric]) == pytest.approx(np.mean(values))
        assert float(rows[-1][f"{metric}_deviation"]) == pytest.approx(np.std(values))
    assert not (folder / "9-1-0" / "checkpoints.csv").exists(), "as in the paper's figure, without a tail"


def test_schedinspector_is_tested_online_and_offline(reproduced):
    folder, _ = reproduced
    arrived = {
        name: {float(row["arrived"]) for row in read(folder / "inspector-f1-0" / f"{name}.csv")}
        for name in ("metrics", "offline")
    }
    assert arrived["offline"] == {EPISODE}, "no other jobs than those that are placed"
    assert min(arrived["metrics"]) > EPISODE


def test_a_result_is_the_mean_over_the_episodes_of_its_run(reproduced):
    folder, _ = reproduced
    rows = {(row["head"], row["tail"], row["seed"]): row for row in read(folder / "results.csv")}
    episodes = read(folder / "9-1-1" / "metrics.csv")
    assert len(episodes) == 4
    for name in EPISODE_METRICS:
        assert float(rows["9", "1", "1"][name]) == pytest.approx(np.mean([float(row[name]) for row in episodes]))
    jobs = read(folder / "9-1-1" / "types.csv")
    assert sum(int(row["jobs"]) for row in jobs) == 4 * EPISODE
    waited = sum(int(row["jobs"]) * float(row["waiting_time"]) for row in jobs)
    assert waited / (4 * EPISODE) == pytest.approx(float(rows["9", "1", "1"]["placed_waiting_time"]))


def test_what_is_there_is_not_run_again_and_what_is_not_is_named(reproduced, reproduce):
    folder, _ = reproduced
    before, table = changed(folder), (folder / "table.md").read_text()
    assert {name.split("/")[0] for name in before} >= set(RUNS)
    reproduce()
    assert changed(folder) == before
    assert (folder / "table.md").read_text() == table
    (folder / "9-1-1" / "metrics.csv").unlink()
    del before["9-1-1/metrics.csv"]
    assert "1 of 6" in reproduce("--finished")
    assert "- DBF 9-1: 1\n" in (folder / "table.md").read_text()
    assert changed(folder) == before


def test_what_was_not_run_yet_is_shown_as_that_with_its_hours(reproduce):
    said = reproduce("--budget", "first", "--finished")
    assert "not finished: 15 of 15 runs" in said
    said = " ".join(said.split())
    assert "trainings that are left: 155; 3,396 hours of two cores, 2,606 hours of one H200" in said
    table = (reproduce.folder.with_name("first") / "table.md").read_text()
    assert "the best heuristic more utilization |  | not tried: 66 hours of two cores, 50 hours of one H200 |" in table
    assert "| 9-1 has less wait and queue than 10-0 |  | not tried: 131 hours of two cores" in table
    rows = [line for line in table.splitlines() if "| not tried: " in line]
    claimed = [f"{slots}-0 has less wait and queue than all others" for slots in (32, 64, 128)]
    claimed += [f"0-{slots} has more wait than {slots // 2}-{slots // 2}" for slots in (20, 32, 64)]
    claimed += [
        "9-1 has less",
        "10-10 has at most half",
        "0-10 has fewer placed jobs",
        "20-0 has most of its gain in wait",
    ]
    claimed += [f"SchedInspector over {name}, online and offline, has less utilization" for name in ("SJF", "F1")]
    assert [sum(f"| {what}" in row for row in rows) for what in claimed] == [1] * len(rows)


def test_a_training_that_was_begun_elsewhere_is_shown_as_it_stands_and_goes_on(reproduce, tmp_path, monkeypatch):
    first, log = DBF_BUDGETS["first"], reproduce.folder.parent / "log.swf"
    window = first.learned[0]
    small = window._replace(changes=(*window.changes, "network.hidden=[8, 8]", "learn.rollout=10", "learn.envs=4"))
    short = first._replace(
        seeds=1, steps=3200, episodes=2, horizons=(100,), long_episodes=1, checkpoints=2, learned=(small,)
    )
    monkeypatch.setitem(DBF_BUDGETS, "first", short)
    monkeypatch.setattr("decision.papers.dbf.claims.PAPER_STEPS", 8000)
    run = tmp_path / "first" / "10-0-0"
    config = load_config(small.preset, [*small.changes, "learn.steps=80", "learn.threads=1"], seed=0)

    def train(half):
        facts = InputFacts(name="eight.xml", sha256="ab"), file_facts(log)
        selection = Selection(jobs=half, walltime="runtime")
        begun = LogOnHosts(equal_hosts(8), selection.read(log, "w0"), facts, selection)
        return read_manifest(train_to_folder(begun, config, run / "training")).steps

    train((0, 100))

    def first_budget(*options):
        command = ["reproduce", "dbf", "--swf", str(log), "--processes", "1", "--budget", "first", "-o", str(tmp_path)]
        return CliRunner().invoke(app, [*command, *options])

    said = " ".join(first_budget().output.split())
    assert "learned from other jobs or hosts than the first half of log.swf on 8 equal hosts" in said
    shutil.rmtree(run)
    assert train((0, 200)) == 80
    assert "not finished: 1 of 1 runs" in first_budget("--finished").output
    (row,) = [row for row in read(run.parent / "results.csv") if row["policy"] == "DBF 10-0"]
    assert (run / "metrics-after-80.csv").exists()
    assert "| DBF 10-0 | 1 | 1.00% |" in (run.parent / "table.md").read_text(), "its share of the paper's steps"
    assert first_budget().exit_code == 0
    assert read_manifest(run / "training" / "dbf.ckpt").steps == 3200
    assert read_facts(run / "training").platform.name == "eight.xml"
    beyond = [int(each["steps"]) for each in read(run / "checkpoints.csv")]
    for k, wanted in enumerate((120, 160, 1600, 3200)):  # the next update, a twentieth of all, and two equal parts
        assert wanted <= beyond[k] <= wanted + 40, "an update has 40 steps"
    assert "| DBF 10-0 | 1 | 40.00% |" in (run.parent / "table.md").read_text()
    (later,) = [row for row in read(run.parent / "results.csv") if row["policy"] == "DBF 10-0"]
    assert (row["seed"], later["seed"]) == ("0", "0")


def test_types_are_powers_and_runs_count_by_their_jobs(tmp_path):
    one = PlacedJobs(np.array([1, 3, 4, 4]), np.array([1.0, 16.0, 5.0, 17.0]), np.array([0.0, 10.0, 20.0, 7.0]))
    other = PlacedJobs(np.array([3]), np.array([16.0]), np.array([60.0]))
    for name, placed in (("a", [one]), ("b", [one, other])):
        (tmp_path / name).write_text(types_csv(placed))
    found = read_types([tmp_path / "a", tmp_path / "b"])
    assert found == {(1, 1): (2, 0.0), (4, 16): (5, pytest.approx((10 + 20 + 10 + 20 + 60) / 5)), (4, 64): (2, 7.0)}


def read(path):
    """A table's rows."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def changed(folder):
    """When each file of the runs and the heuristics was last written."""
    files = [*folder.glob("*/*"), *folder.glob("*easy.csv")]
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}
