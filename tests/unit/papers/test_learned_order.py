"""How the policy learned is made, with few and short logs."""

import os
import signal

import numpy as np
import pytest

pytest.importorskip("torch")
from decision.batsim.signals import Interrupted
from decision.experiments.gates import Measures
from decision.files import write_swf
from decision.files.generate.lublin import lublin_workload
from decision.model.demand import runtimes
from decision.papers.campaign import Parts
from decision.papers.own import learned as experiment
from decision.policies.runtimes import apply_estimates
from decision.rl.learning import load_policy
from decision.rl.learning.checkpoint import read_manifest

EASY = Measures(wait=100.0, slowdown=10.0, longest=1000.0)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of logs of 60 jobs each, which three heuristics are tried on, one in place of the shipped week, too."""
    monkeypatch.setattr(experiment, "ORDERS", ("sjf",))
    monkeypatch.setattr(experiment, "MADE_JOBS", 60)
    folder = tmp_path / "logs"
    folder.mkdir()
    monkeypatch.setattr(experiment, "find_workload", lambda name: folder / next(iter(experiment.LOGS)))
    for seed, name in enumerate(experiment.LOGS):
        rng = np.random.default_rng(seed)
        log = apply_estimates(lublin_workload(rng, 60, 16), "exact", rng)
        write_swf(folder / name, log, runtimes(log, 1.0))
    experiment.training_logs.cache_clear()
    yield folder
    experiment.training_logs.cache_clear()


def test_an_interrupted_evolution_goes_on_and_learns_the_same(data, tmp_path, monkeypatch):
    schedule, calls, shown = experiment.measure_logs, [], []

    def interrupted(trial):
        calls.append(trial.policy)
        if len(calls) == 15:
            os.kill(os.getpid(), signal.SIGINT)
        return schedule(trial)

    at_once = experiment.reproduce_learned(data, Parts(tmp_path / "at once"), generations=2)
    monkeypatch.setattr(experiment, "measure_logs", interrupted)
    parts = Parts(tmp_path / "stopped", progress=lambda done, of: shown.append((done, of)))
    with pytest.raises(Interrupted):
        experiment.reproduce_learned(data, parts, generations=2)
    assert not (parts.folder / "learned.ckpt").exists()
    assert experiment.reproduce_learned(data, parts, generations=2).tables == at_once.tables
    assert len(calls) == 3 + 2 * 12, "nothing is scheduled again"
    assert shown[-1] == (27, 27)
    learned = parts.folder / "learned.ckpt"
    assert learned.read_bytes() == (tmp_path / "at once" / "learned.ckpt").read_bytes()
    manifest = read_manifest(learned)
    assert [facts.name for facts in manifest.workloads] == list(experiment.LOGS)
    assert manifest.gates == ()
    assert load_policy(str(learned), {}).name == "learned.ckpt"


def test_only_heuristics_that_pass_the_gates_are_the_measure():
    longest = EASY.longest
    passing = [Measures(50.0, 8.0, 1.5 * longest), Measures(90.0, 4.0, longest)]
    failing = [Measures(1.0, 1.0, 1.6 * longest), Measures(101.0, 1.0, longest), Measures(1.0, 10.1, longest)]
    assert experiment._least(EASY, passing + failing) == Measures(50.0, 4.0, longest)
    assert experiment._least(EASY, failing) == EASY


def test_what_is_worse_than_the_measure_counts_three_times():
    best = {"a": Measures(0.0, 1.0, 600.0)}
    slower, faster = ({"a": Measures(0.0, slowdown, 600.0)} for slowdown in (np.e, 1 / np.e))
    assert experiment._cost(best, best) == 0.0
    assert experiment._cost(slower, best) == pytest.approx(1.5)
    assert experiment._cost(faster, best) == pytest.approx(-0.5)
    assert experiment._cost({"a": Measures(0.0, 1.0, 1e6)}, best) > 1.0, "a long wait costs"
