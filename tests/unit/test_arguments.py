"""Arguments that make no sense: each is refused in a line that names it, before anything is run."""

import re

import pandas
import pytest
from helpers.failing_policies import First as Own

import decision as d


def refused(field, call, *given, **named):
    """That a call is refused for this argument."""
    with pytest.raises(d.DecisionError) as caught:
        call(*given, **named)
    assert "\n" not in str(caught.value)
    assert re.search(rf"\b{field}\b", f"{caught.value.field} {caught.value}"), caught.value


WHOLE = ["a", 1.5, -1, None, True, [1]]
FLAG = ["yes", 2, None, "false"]
RANGE = [(0, 3), 5, "0:3", slice(-2, None), slice(0, 4, 2), slice(0.5, 2), slice("a", None)]
SELECTION = [("jobs", each) for each in RANGE]
SELECTION += [("nodes", each) for each in ("a", 0, -1, 2.5)] + [("time_field", each) for each in ("a", 0, 1.5)]
SELECTION += [("missing_walltime", each) for each in ("x", 5, "factor:a", "tsafrir:1")]
SELECTION += [("walltime", each) for each in ("perfect", None, 5)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("seed", each) for each in WHOLE),
        *(("energy", each) for each in FLAG),
        *(("events", each) for each in (5, [5], ["x"], None)),
        *(("options", each) for each in (["guard"], "guard", 5, {5: 6})),
        *SELECTION,
    ],
)
def test_of_simulate(field, value):
    refused(field, d.simulate, "toy", "toy", "easy", **{field: value})


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("platform", (5, "toy", "easy")),
        ("platform", (None, "toy", "easy")),
        ("workload", ("toy", 5, "easy")),
        ("workload", ("toy", [], "easy")),
        ("workload", ("toy", [5], "easy")),
        ("workload", ("toy", pandas.DataFrame({"a": [1]}), "easy")),
        ("policy", ("toy", "toy", 5)),
        ("policy", ("toy", "toy", None)),
        ("policy", ("toy", "toy", Own)),
        ("options", ("toy", "toy", Own(), {"a": 1})),
    ],
)
def test_of_simulate_by_position(field, given):
    refused(field, d.simulate, *given)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("windows", each) for each in (2.5, -1, "3", None)),
        *(("length", each) for each in (0, -1, "a", 1.5)),
        *(("draw", each) for each in ("a", -1, 1.5)),
        *(("seeds", each) for each in (0, -1, 1.5, "a")),
        *(("processes", each) for each in (0, -1, 1.5, "a", None)),
        *(("metrics", each) for each in (5, ["waiting"], [5], "waiting")),
        *(("baseline", each) for each in ("sjf", 5, Own())),
        *(("energy", each) for each in FLAG),
        *(("options", each) for each in (["guard"], 5)),
        *(("folder", each) for each in (5, ["x"])),
        *SELECTION,
    ],
)
def test_of_compare(field, value):
    refused(field, d.compare, "toy", "toy", ["easy"], **{field: value})


def test_of_compare_with_objects(tmp_path):
    refused("policies", d.compare, "toy", "toy", [])
    refused("policy", d.compare, "toy", "toy", [5])
    refused("workload", d.compare, "toy", [], ["easy"])
    refused("workload", d.compare, "toy", pandas.DataFrame({"a": [1]}), ["easy"])
    refused("platform", d.compare, 5, "toy", ["easy"])
    refused("options", d.compare, "toy", "toy", [Own()], options={"a": 1})
    refused("processes", d.compare, "toy", "toy", [Own()], processes=2)
    refused("folder", d.compare, "toy", "toy", [Own()], folder=tmp_path)
    assert d.compare("toy", "toy", "easy", metrics="makespan", whole=True).runs.makespan.tolist() == [8]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("seed", each) for each in ("a", -1, 1.5)),
        *(("steps", each) for each in (0, -1, 1.5, "a")),
        *(("changes", each) for each in (["learn.lr=1"], 5, "learn.lr")),
        *(("folder", each) for each in (None, 5)),
        *(("preset", each) for each in (5, ["x"])),
        *(("resume", each) for each in FLAG),
        ("report", 5),
        *(("scheduler", each) for each in (5, None, "dfb")),
        *SELECTION,
    ],
)
def test_of_train(field, value, tmp_path):
    pytest.importorskip("torch")
    given = {"scheduler": "dbf", "folder": tmp_path / "new", field: value}
    refused(field, d.train, platform="cluster256", workload="lublin_256", **given)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("num_envs", each) for each in (0, -1, 1.5, "a")),
        *(("scheduler", each) for each in (5, "dfb")),
        *(("jobs", each) for each in (0, "a", 1.5)),
        ("nonsense", 1),
    ],
)
def test_of_make_env(field, value):
    pytest.importorskip("gymnasium")
    refused(field, d.make_env, **{"scheduler": "dbf", "platform": None, "workload": "lublin_256", field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("episodes", each) for each in (0, -1, 1.5, "a")),
        *(("placed", each) for each in (0, 1.5)),
        *(("offline", each) for each in FLAG),
        *(("whole", each) for each in FLAG),
        *(("seed", each) for each in ("a", -1)),
        ("policies", []),
        ("workload", ["toy", "toy"]),
    ],
)
def test_of_evaluate(field, value):
    pytest.importorskip("torch")
    refused(field, d.evaluate, **{"platform": "toy", "workload": "toy", "policies": "easy", field: value})


def test_of_the_others():
    refused("spec", d.find_policy, 5)
    refused("options", d.find_policy, "easy", ["guard"])
    refused("options", d.check_policy, Own(), {"a": 1})
    refused("decide_limit", d.check_policy, "easy", decide_limit="a")
    refused("policy", d.check_policy, 5)
    refused("folder", d.read_run, 5)
    for name, value in (("energy", "yes"), ("roles", 5), ("master", 5), ("mmax", "a")):
        refused(name, d.load_platform, "toy", **{name: value})
    for name, value in (("name", 5), ("keep_source", "yes"), ("options", 5), ("missing_walltime", "x")):
        refused(name, d.load_workload, "toy", **{name: value})
    refused("platform", d.load_platform, 5)
    refused("workload", d.load_workload, 5)
    refused("jobs", d.load_workload, "toy", jobs=(0, 3))
    refused("nodes", d.load_workload, "toy", nodes="a")
    refused("walltime", d.load_workload, "toy", walltime="x")
    result = d.simulate("toy", "toy", "easy")
    refused("folder", result.write, 5)
    refused("path", result.plot, 5)
    refused("width", result.plot, width=-1)
    refused("dpi", result.plot, dpi="a")


@pytest.mark.parametrize(
    "options", [5, {"first": 1.5}, {"first": "a"}, {"first": [1, 2, 3]}, {"reset_mask": 5}, {"reset_mask": [True] * 3}]
)
@pytest.mark.parametrize("envs", [None, 2])
def test_of_reset(options, envs):
    pytest.importorskip("gymnasium")
    env = d.make_env("dbf", "cluster256", "lublin_256", num_envs=envs, jobs=10)
    refused("options", env.reset, options=options)


def test_a_training_that_is_not_there_is_not_resumed(tmp_path):
    pytest.importorskip("torch")
    refused("resume", d.train, "dbf", "cluster256", "lublin_256", tmp_path / "new", resume=True)
    assert not (tmp_path / "new").exists()


def test_a_table_of_jobs_is_in_seconds():
    days = pandas.DataFrame({"submit_time": pandas.date_range("2026-01-01", periods=2), "size": 1, "runtime": 5})
    refused("submit_time", d.simulate, "toy", days, "fcfs")
    spans = pandas.DataFrame({"submit_time": [0, 1], "size": 1, "runtime": pandas.to_timedelta([5, 6], unit="s")})
    refused("runtime", d.simulate, "toy", spans, "fcfs")


def test_a_comparison_names_no_file_of_its_own():
    with pytest.raises(d.PolicyError, match=r"easy on jobs\.json, seed 0: jobs\.json: job w0!1 has no 'walltime'"):
        d.compare("toy", pandas.DataFrame({"submit_time": [0], "size": [1], "runtime": [5]}), "easy", whole=True)


def test_a_table_of_jobs_gets_walltimes_from_a_model():
    table = pandas.DataFrame({"submit_time": [0, 1], "size": [4, 1], "runtime": [60, 5]})
    jobs = d.simulate("toy", table, "easy", missing_walltime="factor:2").jobs
    assert jobs.walltime.tolist() == [120, 10]


@pytest.mark.parametrize("action", [999, -1, 21, 1.5, "a", None])
def test_an_action_outside_of_the_action_space_is_refused(action):
    pytest.importorskip("gymnasium")
    env = d.make_env("dbf", "cluster256", "lublin_256", head=10, tail=10, jobs=10)
    env.reset(seed=1)
    refused("action", env.step, action) if isinstance(action, int) else refused("actions", env.step, action)
    side_by_side = d.make_env("dbf", "cluster256", "lublin_256", num_envs=2, head=10, tail=10, jobs=10)
    side_by_side.reset(seed=1)
    refused("actions?", side_by_side.step, [0, action])
    refused("actions", side_by_side.step, [0])
