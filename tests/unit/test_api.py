"""What ``import decision`` offers: cheap to import, names and paths and objects in, tables and pictures out."""

import ast
import math
import subprocess
import sys
from math import nan
from pathlib import Path

import numpy as np
import pandas
import pytest
from msgspec.structs import replace

import decision as d
from decision.api import results
from decision.model.errors import ConfigError
from decision.model.record import JobTable
from decision.rl.learning.checkpoint import read_manifest

LIMIT = 50  # milliseconds for `import decision`


class ShortestFirst:
    """Shortest jobs first; whatever fits starts."""

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        for job in sorted(cluster.queue, key=lambda job: job.walltime):
            if job.size <= plan.nb_free:
                plan.start(job)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_loads_nothing_heavy():
    loaded = python("import sys, decision; print(*sys.modules)").split()
    assert not {"numba", "numpy", "msgspec", "torch", "gymnasium", "matplotlib", "pandas"} & set(loaded)


def test_importing_takes_milliseconds():
    code = "import time; t = time.perf_counter(); import decision; print(1000 * (time.perf_counter() - t))"
    assert min(float(python(code)) for _ in range(5)) < LIMIT


def test_every_name_exists_and_is_listed():
    assert set(d.__all__) <= set(dir(d))
    assert all(getattr(d, name) is not None for name in d.__all__)
    with pytest.raises(AttributeError, match="module 'decision' has no attribute 'simulat'"):
        _ = d.simulat


def test_type_checkers_see_the_same_names():
    stub = ast.parse(Path(d.__file__).with_suffix(".pyi").read_text())
    imported = {node.names[0].asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom)}
    assert imported == d._HOMES


def test_a_run_by_names_gives_a_table_of_its_jobs():
    result = d.simulate("toy", "toy", "easy")
    assert sorted(result.jobs.id) == [f"w0!{job}" for job in range(1, 6)]
    assert result.summary().makespan == 8
    assert d.simulate("toy", "toy", "fcfs").summary().makespan == 10
    assert set(result.jobs.final_state) == {"COMPLETED_SUCCESSFULLY"}
    assert repr(result) == "<SimulationResult: easy on toy, 5 jobs>"


def test_names_paths_and_objects_are_the_same(root):
    by_name = d.simulate("toy", "toy", "easy")
    by_path = d.simulate(root / "platforms/toy.xml", str(root / "workloads/toy.json"), "easy")
    objects = d.simulate(d.load_platform("toy"), d.load_workload("toy"), d.find_policy("easy"))
    assert by_name.jobs.equals(by_path.jobs)
    assert by_name.jobs.equals(objects.jobs)


def test_several_workloads_are_submitted_together():
    jobs = d.simulate("toy", ["toy", "toy"], "easy").jobs
    assert sorted(jobs.id) == [f"w{w}!{job}" for w in range(2) for job in range(1, 6)]


def test_logs_are_read_by_their_ending(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 5 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    (job,) = d.simulate("toy", log, "fcfs").jobs.itertuples()
    assert (job.size, job.runtime, job.walltime) == (2, 5, 9)


def test_an_own_policy_runs_as_an_object():
    assert d.simulate("toy", "toy", ShortestFirst()).summary().jobs == 5
    with pytest.raises(d.ConfigError, match=r"give ShortestFirst\(\)"):
        d.simulate("toy", "toy", ShortestFirst)


def test_options_of_a_named_policy_are_values():
    options = {"power": "idle-timeout", "idle_timeout": 1}
    slept = d.simulate("taurus", "toy", "easy", options, energy=True)
    assert slept.record.nb_switches > 0


def test_a_pybatsim_scheduler_is_named_as_on_the_command_line():
    pytest.importorskip("batsim")
    assert d.simulate("toy", "toy", "pybatsim:schedulers.easyBackfill:EasyBackfill").summary().jobs == 5


def test_energy_is_in_the_summary_where_it_was_simulated():
    assert d.simulate("toy", "toy", "easy", energy=True).summary().energy > 0
    assert math.isnan(d.simulate("toy", "toy", "easy").summary().energy)


def test_without_pandas_jobs_are_columns(monkeypatch):
    monkeypatch.setattr(results, "find_spec", lambda name: None)
    result = d.simulate("toy", "toy", "easy")
    assert isinstance(result.jobs, JobTable)
    assert len(result.jobs.start_time) == 5


def test_a_plot_is_a_figure_and_a_file(tmp_path):
    pytest.importorskip("matplotlib")
    figure = d.simulate("toy", "toy", "easy").plot(tmp_path / "toy.svg")
    assert "5 jobs on 4 hosts" in figure.get_suptitle()
    assert (tmp_path / "toy.svg").read_text().startswith("<?xml")


def test_batsims_files_are_written_on_request(tmp_path):
    d.simulate("toy", "toy", "easy").write(tmp_path)
    assert (tmp_path / "out_jobs.csv").read_text().count("\n") == 6


def test_a_comparison_has_a_table_of_scores_and_one_of_runs(tmp_path):
    result = d.compare("toy", "toy", ["fcfs", "easy"], metrics=["makespan"], whole=True)
    assert result.table[["policy", "estimate", "verdict"]].values.tolist() == [
        ["fcfs", 10, "baseline"],
        ["easy", 8, "open"],
    ]
    assert list(result.runs.makespan) == [10, 8]
    result.write(tmp_path)
    assert {"comparison.csv", "comparison.json", "report.html"} <= {file.name for file in tmp_path.iterdir()}


def test_objects_and_tables_of_jobs_are_compared():
    jobs = d.simulate("toy", "toy", "fcfs").jobs
    own, twin = ShortestFirst(), ShortestFirst()
    workloads = [d.load_workload("toy"), jobs]
    result = d.compare("toy", workloads, ["easy", own, twin], metrics=["makespan"], baseline=own, whole=True)
    found = result.table.pivot(index="policy", columns="workload", values="estimate")
    alike = {"jobs": 8, "toy": 8, "all": 1}
    assert found.to_dict("index") == {"easy": alike, "ShortestFirst": alike, "ShortestFirst 2": alike}
    assert result.comparison.baseline == "ShortestFirst"
    assert "jobs.json (5 jobs" in result.comparison.setup["workloads"]


def test_a_platform_that_is_no_files_is_compared_as_it_is():
    wide = replace(d.load_platform("toy"), hosts=d.load_platform("cluster256").hosts[:8])
    makespan = d.simulate(wide, "toy", "fcfs").summary().makespan
    assert list(d.compare(wide, "toy", "fcfs", whole=True).runs.makespan) == [makespan]
    assert makespan < 10


def test_a_table_of_jobs_is_a_workload():
    table = pandas.DataFrame({"submit_time": [5.0, 0.0], "size": [4, 1], "runtime": [60, 5.5], "walltime": [nan, 5.0]})
    jobs = d.simulate("toy", table, "fcfs").jobs.set_index("id")
    assert jobs.loc["w0!1", ["walltime", "finish_time"]].tolist() == [math.inf, 65.0]
    assert jobs.loc["w0!2", ["final_state", "runtime"]].tolist() == ["COMPLETED_WALLTIME_REACHED", 5.0]
    assert d.simulate("toy", d.simulate("toy", "toy", "easy").jobs, "easy").summary().makespan == 8


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"submit_time": [0], "size": [1]}, r"needs the column runtime \(it has submit_time, size\)"),
        ({"submit_time": [], "size": [], "runtime": []}, "the table has no jobs"),
        ({"submit_time": [0, nan], "size": [1, 1], "runtime": [1, 1]}, "row 1 .*submit_time: must be at least 0"),
        ({"submit_time": [0], "size": [1.5], "runtime": [1]}, "column size: must be a whole number, at least 1"),
        ({"submit_time": [0], "size": [1], "runtime": [0]}, "column runtime: must be above 0; found 0"),
        ({"submit_time": [0], "size": [1], "runtime": ["x"]}, "column runtime must have numbers only"),
        ({"submit_time": [0, 0], "size": [1, 1], "runtime": [1, 1], "id": ["a", "a"]}, "two jobs have the same id"),
    ],
)
def test_a_table_that_says_no_jobs_is_refused(table, says):
    with pytest.raises(d.ConfigError, match=says):
        d.simulate("toy", pandas.DataFrame(table), "fcfs")


def test_jobs_have_their_times_and_slowdowns():
    jobs = d.simulate("toy", "toy", "fcfs").jobs
    assert (jobs.waiting_time == jobs.start_time - jobs.submit_time).all()
    assert (jobs.finish_time == jobs.start_time + jobs.runtime).all()
    assert (jobs.turnaround_time == jobs.finish_time - jobs.submit_time).all()
    assert (jobs.stretch == jobs.turnaround_time / jobs.runtime).all()
    assert (jobs.bounded_slowdown == (jobs.turnaround_time / jobs.runtime.clip(10)).clip(1)).all()


def test_a_printed_summary_is_a_table_of_what_the_run_has():
    printed = str(d.simulate("toy", "toy", "easy").summary()).splitlines()
    assert printed[2].split() == ["makespan", "8.00", "s"]
    assert not any("nan" in line or "energy" in line for line in printed)
    assert len({line.rindex(".") for line in printed if line.endswith(" s")}) == 1  # aligned
    assert "energy" in str(d.simulate("toy", "toy", "easy", energy=True).summary())


def test_simulations_take_the_jobs_that_are_asked_for():
    assert d.simulate("toy", "toy", "easy", jobs=slice(0, 3)).summary().jobs == 3
    assert d.simulate("toy", d.load_workload("toy"), "easy", nodes=2).jobs["size"].max() == 2
    perfect = d.simulate("toy", "toy", "easy", walltime="runtime").jobs
    assert (perfect.walltime == perfect.runtime).all()
    with pytest.raises(d.ConfigError, match="not a log"):
        d.simulate("toy", "toy", "easy", time_field=9)


def test_a_run_is_read_back(tmp_path):
    result = d.simulate("taurus", "toy", "easy", energy=True)
    result.write(tmp_path)
    again = d.read_run(tmp_path, "taurus")
    assert list(again.jobs.id) == list(result.jobs.id)
    assert again.summary().makespan == result.summary().makespan
    assert again.summary().energy_waste == pytest.approx(result.summary().energy_waste)
    assert math.isnan(d.read_run(tmp_path).summary().energy_waste)
    with pytest.raises(d.ConfigError, match="the run had 16 hosts, and this platform has 4"):
        d.read_run(tmp_path, "toy")


class CallsForever:
    """Nothing but calls, every second."""

    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        plan.call_at(cluster.now + 1)


class HasNoIdea(ShortestFirst):
    def decide(self, cluster, plan):
        raise ValueError("no idea")


class WaitsForNight(ShortestFirst):
    """Nothing before the day is over, by looking at the clock each minute."""

    def decide(self, cluster, plan):
        if cluster.now < 86400:
            plan.call_at(cluster.now + 60)
        else:
            super().decide(cluster, plan)


def test_calls_without_end_end_in_a_line():
    with pytest.raises(d.PolicyError, match=r"asked 100,000 times, and jobs still wait: nothing else can happen"):
        d.simulate("toy", "toy", CallsForever())
    assert d.simulate("toy", "toy", WaitsForNight()).summary().jobs == 5


def test_policies_are_checked_by_name_by_class_and_as_objects():
    assert d.check_policy("easy") == []
    assert d.check_policy(ShortestFirst) == d.check_policy(ShortestFirst()) == []
    assert any("decide failed: ValueError: no idea" in line for line in d.check_policy(HasNoIdea))


def test_evaluations_have_a_row_per_policy_and_episode():
    pytest.importorskip("torch")
    table = d.evaluate("cluster256", "lublin_256", ["easy", ShortestFirst()], episodes=3, placed=50)
    assert table.groupby("policy").episode.max().to_dict() == {"ShortestFirst": 2, "easy": 2}
    (row,) = d.evaluate("toy", "toy", "easy", whole=True).to_dict("records")
    assert (row["policy"], row["makespan"]) == ("easy", 8)


BATSIM = {"engine": "batsim", "batsim": str(Path(sys.executable).with_name("decision-batsim"))}


@pytest.mark.nightly
def test_a_batsim_gives_the_same_evaluations():
    pytest.importorskip("torch")
    for how in ({"whole": True}, {"shake": 2}, {"episodes": 2, "placed": 4}):
        inside, outside = (
            d.evaluate("toy", "toy", {"easy": "easy", "mine": ShortestFirst()}, **how, **engine)
            for engine in ({}, BATSIM)
        )
        pandas.testing.assert_frame_equal(inside, outside, rtol=1e-4)  # times have six decimals there


def test_batsims_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="engine: must be embedded, batsim or docker"):
        d.evaluate("toy", "toy", "easy", engine="simgrid")
    with pytest.raises(ConfigError, match="batsim_args: it needs whole or episodes"):
        d.evaluate("toy", "toy", "easy", batsim_args="-q", **BATSIM)
    with pytest.raises(ConfigError, match="/no/batsim: command not found"):
        d.gates("packer", "toy", "toy", engine="batsim", batsim="/no/batsim")


def test_gates_say_what_they_found_and_keep_it(tmp_path):
    pytest.importorskip("torch")
    checkpoint = tmp_path / "packing.ckpt"
    checkpoint.write_bytes((Path(d.__file__).parent / "rl/learning/models/packer.ckpt").read_bytes())
    found = d.gates(checkpoint, "cluster256", "lublin_256", jobs=slice(0, 50))
    assert found.passed == all(gate.passed for gate in found.gates)
    assert found.jobs == 50
    assert found in read_manifest(checkpoint).gates
    assert d.gates(checkpoint, "cluster256", "lublin_256", jobs=slice(0, 50), **BATSIM) == found


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((5, "toy", "easy"), "platform: give a file or a shipped platform's name, not an object of type int"),
        (("toy", None, "easy"), "workload: give a file or a shipped workload's name, not an object of type NoneType"),
        (("toy", "toy", 5), "policy: give a policy's name, or an object with the methods reset and decide"),
        (("toy", "toy", "easy", ["guard"]), "options: must be a mapping"),
    ],
)
def test_an_object_of_a_wrong_type_is_refused_by_name(given, says):
    with pytest.raises(d.ConfigError, match=says):
        d.simulate(*given)


def test_an_environment_is_made_by_its_schedulers_name():
    pytest.importorskip("gymnasium")
    env = d.make_env("dbf", "cluster256", "lublin_256", head=4, jobs=10)
    observation, info = env.reset(seed=1)
    assert observation.shape == env.observation_space.shape
    assert info["action_mask"].any()
    assert d.make_env("dbf", None, "lublin_256", num_envs=3, head=4, jobs=10).num_envs == 3
    with pytest.raises(d.ConfigError, match="there is no environment 'dfb'"):
        d.make_env("dfb", None, "lublin_256")


def test_a_training_leaves_a_checkpoint_that_is_a_policy(tmp_path):
    pytest.importorskip("torch")
    small = {"learn.envs": 4, "learn.rollout": 8, "learn.minibatch": 16, "env.jobs": 20}
    checkpoint = d.train("dbf", "cluster256", "lublin_256", tmp_path, changes=small, steps=32)
    assert checkpoint == tmp_path / "dbf.ckpt"
    assert d.simulate("cluster256", "lublin_256", str(checkpoint)).summary().jobs == 500


def test_a_report_stops_a_training_which_then_goes_on(tmp_path):
    pytest.importorskip("torch")
    small = {"learn.envs": 4, "learn.rollout": 8, "learn.minibatch": 16, "env.jobs": 20}
    case, steps = ("dbf", "cluster256", "lublin_256"), []

    def stop(now):
        steps.append(now.steps)
        return np.float64(now.row["steps"]) >= 32  # numpy's truth

    stopped = d.train(*case, tmp_path / "stopped", changes=small, steps=128, report=stop)
    assert steps == [0, 32, 64] and stopped.is_file()
    resumed = d.train(*case, tmp_path / "stopped", changes=small, steps=128, resume=True)
    whole = d.train(*case, tmp_path / "whole", changes=small, steps=128, report=steps.append)
    assert resumed.read_bytes() == whole.read_bytes()


def test_an_unknown_scheduler_gets_the_nearest(tmp_path):
    with pytest.raises(d.ConfigError, match="there is no scheduler 'dfb'; did you mean dbf"):
        d.train("dfb", "toy", "toy", tmp_path)


def test_comparisons_take_the_jobs_that_are_asked_for():
    shortened = d.compare("toy", "toy", ["easy"], jobs=slice(0, 3), walltime="runtime")
    assert (
        "5 jobs" not in shortened.comparison.setup["workloads"] and "3 jobs" in shortened.comparison.setup["workloads"]
    )
    for wrong in (slice(-2, None), slice(0, 4, 2)):
        with pytest.raises(d.ConfigError, match="jobs: must be a range like"):
            d.compare("toy", "toy", ["easy"], jobs=wrong)


def test_a_picture_is_as_wide_as_is_asked_for(tmp_path):
    result = d.simulate("toy", "toy", "easy")
    assert result.plot(tmp_path / "a.pdf", width=3.5, type_size=7).get_figwidth() == 3.5
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
