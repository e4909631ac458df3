"""What ``import decision`` offers: cheap to import, names and paths and objects in, tables and pictures out."""

import ast
import math
import subprocess
import sys
from pathlib import Path

import pytest

import decision as d
from decision.api import results
from decision.model.record import JobTable

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
    result = d.compare("toy", "toy", ["fcfs", "easy"], metrics=["makespan"])
    assert result.table[["policy", "score", "verdict"]].values.tolist() == [
        ["fcfs", 10, "baseline"],
        ["easy", 8, "open"],
    ]
    assert list(result.runs.makespan) == [10, 8]
    result.write(tmp_path)
    assert {"comparison.csv", "comparison.json", "report.html"} <= {file.name for file in tmp_path.iterdir()}


def test_a_comparison_reads_files_only():
    with pytest.raises(d.ConfigError, match="give a file or a shipped platform's name, not an object of type Platform"):
        d.compare(d.load_platform("toy"), "toy", ["fcfs"])


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
