"""A comparison's runs: which there are, that each is what `decision run` would do, and that none is done twice."""

import hashlib
import re

import pytest
from msgspec.structs import replace

from decision import __version__
from decision.experiments import Engine
from decision.experiments.compare import describe_setup, read_workloads, run_comparison
from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
from decision.experiments.plan import ComparisonPlan, find_baseline
from decision.experiments.run import run_to_folder
from decision.experiments.store import ResultStore
from decision.files.workload import Selection
from decision.model.errors import ConfigError, RunsFailedError

LAZY = """
class Lazy:
    def reset(self, platform, seed):
        pass

    def decide(self, cluster, plan):
        if cluster.now > 0:
            for job in cluster.queue:
                if job.size <= plan.nb_free:
                    plan.start(job)
"""


@pytest.fixture
def toy(root):
    def plan(*policies, **changes):
        given = {"platform": root / "platforms/toy.xml", "workloads": (root / "workloads/toy.json",)}
        return ComparisonPlan(policies=policies, **{**given, **changes})

    return plan


def test_a_run_gives_what_decision_run_gives(toy, tmp_path):
    plan = toy("easy", "fcfs", energy=True)
    outcomes = run_comparison(plan, tmp_path)
    assert [outcome.contender for outcome in outcomes] == ["easy", "fcfs"]
    case = load_inputs(Inputs(platform=plan.platform, workloads=plan.workloads, energy=True))
    summary = run_to_folder(case, PolicyChoice(policy="easy"), tmp_path / "out")
    metrics = outcomes[0].metrics
    assert metrics["wait"] == summary.wait
    assert metrics["bounded_slowdown"] == summary.bounded_slowdown
    assert metrics["energy"] == summary.energy
    assert metrics["energy_waste"] == 0  # EASY leaves no hole, FCFS ends 2 s later: 8 host-seconds at 95 W
    assert outcomes[1].metrics["energy_waste"] == pytest.approx(8 * 95)


def test_metrics_without_a_value_are_left_out(toy, tmp_path):
    (outcome,) = run_comparison(toy("easy"), tmp_path)
    assert "energy" not in outcome.metrics and "hops" not in outcome.metrics and "wait" in outcome.metrics


def test_engines_agree_and_are_told_apart(toy, tmp_path):
    outcomes = run_comparison(toy("easy", engines=(Engine.EMBEDDED, Engine.REFERENCE)), tmp_path)
    assert [outcome.contender for outcome in outcomes] == ["easy @embedded", "easy @reference"]
    assert outcomes[0].metrics == outcomes[1].metrics and outcomes[0].metrics["wait"] > 0


def test_windows_are_the_same_for_all_policies_and_drawn_by_seed(toy, tmp_path):
    plan = toy("easy", "fcfs", windows=5, length=3, draw=1)
    outcomes = run_comparison(plan, tmp_path)
    starts = {name: [o.first_job for o in outcomes if o.contender == name] for name in ("easy", "fcfs")}
    assert starts["easy"] == starts["fcfs"] and len(set(starts["easy"])) > 1
    other = run_comparison(toy("easy", windows=5, length=3, draw=2), tmp_path)
    assert [outcome.first_job for outcome in other] != starts["easy"]


def test_a_window_has_the_jobs_that_were_submitted_then(toy, tmp_path):
    (whole,) = run_comparison(toy("easy"), tmp_path)
    jobs = len(load_inputs(Inputs(platform=toy("easy").platform, workloads=toy("easy").workloads)).workloads[0].jobs)
    (window,) = run_comparison(toy("easy", windows=1, length=jobs), tmp_path)
    assert window.metrics == whole.metrics
    with pytest.raises(ConfigError, match=rf"toy\.json: has {jobs} jobs, too few for windows of {jobs + 1}"):
        run_comparison(toy("easy", windows=1, length=jobs + 1), tmp_path)


def test_only_what_is_new_is_run(toy, tmp_path):
    def kept():
        return {file.name: file.read_bytes() for file in (tmp_path / "runs").glob("*.jsonl")}

    run_comparison(toy("easy", windows=4, length=3), tmp_path)
    before = kept()
    run_comparison(toy("easy", "fcfs", windows=6, length=3), tmp_path)
    assert before.items() <= kept().items()  # what is there is never touched
    counts = []
    run_comparison(toy("fcfs", windows=6, length=3), tmp_path, progress=lambda *count: counts.append(count))
    assert {done for done, _ in counts} == {counts[0][1]}  # all were there


def test_a_policy_of_ones_own_runs_again_when_its_file_has_changed(toy, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(LAZY)
    (first,) = run_comparison(toy(f"{mine}:Lazy"), tmp_path)
    mine.write_text(LAZY.replace("cluster.now > 0", "cluster.now > 0.5"))
    (second,) = run_comparison(toy(f"{mine}:Lazy"), tmp_path)
    assert len(ResultStore(tmp_path / "runs")) == 2
    assert first.metrics["rejected"] == second.metrics["rejected"] == 0


def test_namesakes_are_told_apart_by_their_paths(toy, tmp_path, root):
    twin = tmp_path / "toy.json"
    twin.write_bytes((root / "workloads/toy.json").read_bytes())
    outcomes = run_comparison(toy("easy", workloads=(root / "workloads/toy.json", twin)), tmp_path)
    assert len({outcome.workload for outcome in outcomes}) == 2
    assert len(ResultStore(tmp_path / "runs")) == 1  # the content is the same, and so is the result


def test_a_run_that_fails_says_which_it_is(toy, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(LAZY.replace("job.size <= plan.nb_free", "True"))
    with pytest.raises(RunsFailedError, match=r"Lazy on .*toy\.json jobs 0:5, seed 0: t="):
        run_comparison(toy(f"{mine}:Lazy", windows=1, length=5, draw=3), tmp_path)


def test_a_misspelt_policy_is_refused_before_anything_runs(toy, tmp_path):
    with pytest.raises(ConfigError, match="there is no policy 'eesy'; did you mean easy"):
        run_comparison(toy("easy", "eesy"), tmp_path)
    assert not (tmp_path / "runs").exists()
    with pytest.raises(ConfigError, match="command not found"):
        run_comparison(toy("easy", engines=(Engine.BATSIM,), batsim="no-such-batsim"), tmp_path)


def test_the_baseline_is_the_first_or_the_named_one(toy):
    assert find_baseline(toy("easy", "fcfs"), None) == "easy"
    assert find_baseline(toy("easy", "fcfs"), "fcfs") == "fcfs"
    both = toy("easy", "fcfs", engines=(Engine.REFERENCE, Engine.EMBEDDED))
    assert find_baseline(both, "fcfs") == "fcfs @reference"
    assert find_baseline(both, "fcfs @embedded") == "fcfs @embedded"
    reason = r"the baseline 'sjf' is not compared \(compared are easy, fcfs\)"
    with pytest.raises(ConfigError, match=reason) as caught:
        find_baseline(toy("easy", "fcfs"), "sjf")
    assert caught.value.field == "baseline"


def test_the_setup_says_what_was_chosen_and_what_was_left_out(toy, tmp_path):
    log = tmp_path / "log.swf"
    sizes = (1, 2, 64)  # the last one is larger than --nodes
    log.write_text(
        "".join(f"{i} {i} 0 10 {size} 0 0 {size} 20 0 1 1 1 1 1 1 -1 -1\n" for i, size in enumerate(sizes, 1))
    )
    plan = toy("easy", "fcfs", windows=3, length=2, draw=7, seeds=2, settings={"power": "none"})
    plan = replace(plan, workloads=(*plan.workloads, log), selection=Selection(nodes=4))
    setup = describe_setup(plan, read_workloads(plan), "decision compare ...")
    sha256 = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (plan.platform, *plan.workloads)]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", setup.pop("date"))
    assert setup == {
        "command": "decision compare ...",
        "platform": f"{plan.platform} (sha256 {sha256[0]})",
        "workloads": f"{plan.workloads[0]} (5 jobs, sha256 {sha256[1]}), {log} (2 jobs, sha256 {sha256[2]})",
        f"left out of {log}": "1 larger than 4 hosts (line 3)",
        "jobs": "3 random sequences of 2 jobs of each workload, drawn with seed 7, the same for all policies",
        "policies": "easy; fcfs",
        "options of every policy": "power=none",
        "seeds of the policies": "0 to 1",
        "engine": "embedded",
        "energy": "not simulated",
        "jobs left out": "those larger than 4 hosts",
        "walltimes": "requested",
        "package": f"decision {__version__}",
    }


def test_a_plain_setup_is_short(toy):
    plan = toy("easy")
    setup = describe_setup(plan, read_workloads(plan))
    assert list(setup) == [
        "platform",
        "workloads",
        "jobs",
        "policies",
        "seeds of the policies",
        "engine",
        "energy",
        "package",
        "date",
    ]
    assert setup["jobs"] == "all of each workload"
