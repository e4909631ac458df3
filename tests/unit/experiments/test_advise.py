"""Which policy suits a log: what is run, what is advised, and that it keeps the bound."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.cli.compare import advice_table
from decision.experiments import advise
from decision.experiments.advise import AdviceRow, Wish, expanded, find_advice, heuristics
from decision.experiments.statistics import Estimate
from decision.experiments.store import ResultStore
from decision.experiments.whole import Log, WholeRun
from decision.files.workload import Selection
from decision.model.errors import ConfigError


def log(tmp_path, jobs=150, hosts=8):
    """A busy machine on which short jobs wait for long ones."""
    rng = np.random.default_rng(3)
    rows = [
        {
            "id": str(k),
            "subtime": float(60 * k),
            "res": int(rng.integers(1, hosts + 1)),
            "walltime": 2 * int(seconds),
            "profile": str(seconds),
        }
        for k, seconds in enumerate(rng.choice([30, 60, 600], jobs).tolist())
    ]
    profiles = {str(s): {"type": "delay", "delay": s} for s in (30, 60, 600)}
    file = tmp_path / "busy.json"
    file.write_text(json.dumps({"nb_res": hosts, "jobs": rows, "profiles": profiles}))
    return Log(workload=file, platform=None, hosts=0, selection=Selection())


@pytest.fixture
def few(monkeypatch):
    """Few candidates, so that the test is fast."""
    monkeypatch.setattr(advise, "ORDERS", ("fcfs", "sjf"))
    monkeypatch.setattr(advise, "SHIPPED", ())


def test_the_advised_policy_keeps_the_bound_and_is_the_best_that_does(tmp_path, few):
    found = find_advice(log(tmp_path), Wish(copies=3), tmp_path / "out")
    rows = {row.policy: row for row in found.rows}
    assert max(rows[found.policy].longest_wait) <= 1.5
    kept = [row.change["wait"].value + row.change["bounded_slowdown"].value for row in found.rows if row.keeps_bound]
    assert rows[found.policy].change["wait"].value <= 0 or found.policy == "easy"
    assert found.rows[0].policy == "easy" and len(found.rows) <= 8 and kept
    assert found.policy in found.sentence and found.cannot


def test_names_of_several_policies_are_those_that_are_tried_anyway(tmp_path, few):
    plain = find_advice(log(tmp_path), Wish(copies=1, longest_wait=1.2), tmp_path / "out")
    runs = len(list((tmp_path / "out" / "runs").rglob("*")))
    wish = Wish(copies=1, longest_wait=1.2, policies=("heuristics", "shipped"))
    assert find_advice(log(tmp_path), wish, tmp_path / "out") == plain
    assert len(list((tmp_path / "out" / "runs").rglob("*"))) == runs, "no other bound, and no other row"


def _row(policy, wait, slowdown, longest=1.2):
    changes = {"wait": Estimate(*wait), "bounded_slowdown": Estimate(*slowdown)}
    return AdviceRow(policy=policy, metrics={}, change=changes, longest_wait=[longest], keeps_bound=True)


def test_what_is_advised_is_better_as_far_as_can_be_seen_and_says_whether_that_is_sure():
    unsure = _row("a", (-0.2, -0.5, 0.2), (-0.3, -0.6, 0.4))
    sure = _row("b", (-0.1, -0.16, -0.01), (0.0, -0.1, 0.1))
    worse = _row("c", (-0.3, -0.36, -0.21), (0.2, 0.1, 0.5))
    same = _row("d", (-0.005, -0.1, 0.1), (0.0, -0.1, 0.1))
    assert [advise._may_be_advised(row, Wish()) for row in (unsure, sure, worse, same)] == [True, True, False, False]
    assert advise._may_be_advised(worse, Wish(weights={"wait": 1.0}))
    (line,) = advise.passed_over(worse, sure, Wish())
    assert line.startswith("c came first and is not advised: wait 30 % shorter (95 %: 21 to 36), bounded")
    assert advise.passed_over(sure, sure, Wish()) == []
    assert advise.advice_sentence(_row("easy", (0, 0, 0), (0, 0, 0)), Wish(), ()).startswith("Keep easy: no policy")
    said = advise.advice_sentence(sure, Wish(), ())
    assert said.startswith("Use b: the mean wait is 10 % shorter (95 %: 1 to 16)")
    said = advise.advice_sentence(unsure, Wish(), ())
    assert said.startswith("Perhaps use a: the mean wait is 20 % shorter (95 %: -50 to +20 %, so not for sure)")


def test_the_least_wait_comes_first_and_of_those_that_wait_hardly_longer_the_least_slowdown():
    logs = {"easy": (0.0, 0.0), "least": (-0.80, -0.6), "near": (-0.78, -0.7), "far": (-0.70, -2.0)}
    assert advise._ranked(logs, Wish()) == ["near", "least", "far", "easy"], "no slowdown makes up for far"
    assert advise._ranked(logs, Wish(weights={"wait": 1.0})) == ["least", "near", "far", "easy"]
    assert advise._ranked(logs, Wish(weights={"slowdown": 1.0})) == ["far", "near", "least", "easy"]
    assert advise._ranked(logs, Wish(weights={"wait": 1.0, "slowdown": 4.0}))[0] == "far", "0.12 more is taken"
    assert advise._ranked({"none": (float("-inf"), 0.0), **logs}, Wish())[0] == "none"


def test_those_that_break_the_bound_are_looked_at_last():
    def runs(wait, *longest):
        return [{"wait": wait, "bounded_slowdown": wait, "max_wait": each} for each in longest]

    found = {"easy": runs(10.0, 100.0, 100.0), "worst": runs(1.0, 900.0, 900.0), "good": runs(8.0, 149.0, 149.0)}
    found["bad"] = runs(2.0, 100.0, 160.0)  # on one of two copies, which is enough
    found = {name: [{**each, "schedule": name} for each in results] for name, results in found.items()}
    assert advise._candidates(found, Wish()) == (["good", "bad", "worst"], 1)


@pytest.mark.parametrize("policies", [(), ("worse", "fourth")], ids=["none", "two"])
def test_where_the_first_finalists_break_the_bound_the_next_ones_run(tmp_path, monkeypatch, policies):
    """Whatever is asked for: what else is advised comes from the same runs."""
    waits = {"easy": 10.0, "first": 5.0, "second": 6.0, "third": 7.0, "fourth": 8.0, "worse": 20.0, "worst": 21.0}

    def run(task):
        longest = 2.0 if task.policy == "first" and task.copy > 2 else 1.0
        beside = {"class_waits": [0.0] * 9, "class_jobs": [0] * 9, "users": {}, "block_jobs": [1], "block_waits": [0.0]}
        means = dict.fromkeys(("wait", "bounded_slowdown"), waits[task.policy])
        return {**means, **beside, "max_wait": longest, "schedule": task.policy, "without": {}}

    asked = []

    def run_tasks(_, tasks, folder, **how):
        asked.append(sorted({task.policy for task in tasks}))
        return [run(task) for task in tasks]

    monkeypatch.setattr(advise, "run_tasks", run_tasks)
    monkeypatch.setattr(advise, "heuristics", lambda _: ["easy", "first", "second", "third", "worst"])
    monkeypatch.setattr(advise, "find_policy", lambda name: name)
    monkeypatch.setattr(advise, "SHIPPED", ())
    monkeypatch.setattr(advise, "MOST_ROWS", 2)
    found = find_advice(log(tmp_path), Wish(copies=4, policies=policies), tmp_path / "out")
    assert (found.policy, [row.policy for row in found.rows]) == ("second", ["easy", "second"])
    others = [[each for each in names if each not in policies] for names in asked]
    assert others[1:] == [["easy", "first", "second"], ["easy", "first"], ["easy", "second"]]
    assert set(policies) <= set(asked[0]) & set(asked[1]) & set(asked[2])


def test_jobs_of_one_instant_are_advised_on(tmp_path):
    case = log(tmp_path, jobs=3)
    text = json.loads(case.workload.read_text())
    case.workload.write_text(json.dumps(text | {"jobs": [job | {"subtime": 5.0} for job in text["jobs"]]}))
    found = find_advice(case, Wish(copies=2), tmp_path / "out")
    assert advice_table(found, ("arrival_utilization",))[1][0][:2] == ["easy", "-"]
    assert "too short for blocks" in " ".join(found.cannot) and "Is the number of hosts right?" in " ".join(
        found.cannot
    )


def test_that_jobs_ask_for_more_than_there_is_is_said_before_anything_runs(tmp_path, few):
    case = log(tmp_path)
    words = ["advise", "-w", str(case.workload), "--shake", "1", "--json", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert done.stderr.splitlines()[0].endswith("waits grow until the end. Is the number of hosts right?")
    assert json.loads(done.stdout)["cannot"][2] == done.stderr.splitlines()[0]


def test_the_bound_is_kept_by_every_copy_and_by_a_further_one_as_far_as_their_spread_says():
    assert advise._keeps([1.2, 1.3, 1.25, 1.2, 1.22], 1.5)
    assert not advise._keeps([1.0] * 9 + [1.51], 1.5), "one copy is above"
    assert not advise._keeps([1.45, 1.38, 1.48, 1.42, 1.49], 1.5), "none is, and the next one may be"
    spread = [1.0, 1.1]  # Student's t of one degree is 6.31 at 95 %, and 1.05 * exp(6.31 * 1.22 * 0.067) is 1.76
    assert advise._keeps(spread, 1.77) and not advise._keeps(spread, 1.75)
    assert advise._keeps([1.0] * 4, 1.0) and advise._keeps([1.4], 1.5)
    assert advise._keeps([0.1, 0.9, 0.1, 0.1], 1.5), "how far below EASY's it is does not count"


def test_one_more_policy_makes_only_its_own_runs(tmp_path, few):
    case = log(tmp_path)
    find_advice(case, Wish(copies=2), tmp_path / "out")
    before = len(ResultStore(tmp_path / "out" / "runs"))
    find_advice(case, Wish(copies=2, policies=("ljf+easy",)), tmp_path / "out")
    assert len(ResultStore(tmp_path / "out" / "runs")) == before + 2


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(longest_wait=0.5), "longest_wait: must be at least 1"),
        (Wish(weights={"speed": 1.0}), "weight: give wait=NUMBER"),
        (Wish(weights={"wait": 0.0}), "weight: give wait=NUMBER"),
        (Wish(weights={"wait": float("inf")}), "weight: give wait=NUMBER"),
        (Wish(metrics=("speed",)), "unknown metric 'speed'"),
        (Wish(policies=("nothing",)), "nothing"),
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(tmp_path, few, wish, said):
    with pytest.raises(ConfigError, match=said):
        find_advice(log(tmp_path), wish, tmp_path / "out")


def test_heuristics_are_each_order_with_each_backfilling_with_and_without_the_bound():
    names = heuristics(1.5)
    assert len(set(names)) == len(names)
    assert {"easy", "saf+first-fit", "saf+easy,guard=1.5x", "conservative"} <= set(names)
    assert "easy,guard=1.5x" not in names, "it is what the bound is relative to"


def test_names_of_several_policies_stand_for_each_of_them_once():
    assert expanded(["easy", "heuristics", "shipped", "easy"]) == [
        "easy",
        *(n for n in heuristics(1.5) if n != "easy"),
        "learned",
    ]


def test_another_checkpoint_of_the_same_name_is_another_policy(tmp_path):
    checkpoint = tmp_path / "own.ckpt"
    run = WholeRun(log=log(tmp_path), policy=f"{checkpoint},guard=auto", copy=1)
    checkpoint.write_bytes(b"one")
    before = run.definition()
    checkpoint.write_bytes(b"other")
    assert run.definition() != before
