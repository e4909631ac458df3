"""Rankings that evolved: better than where they began, the same everywhere, and the same again."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from helpers.learning_runs import FILES, workload

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.experiments.run import simulate_by_messages
from decision.model.errors import ConfigError, InputError
from decision.policies import find_policy
from decision.rl.envs import equal_hosts, evaluate, make_setup
from decision.rl.learning.checkpoint import read_checkpoint, write_checkpoint
from decision.rl.learning.config import load_config
from decision.rl.learning.evolution import EvolutionLearner
from decision.rl.learning.schedulers import EpisodeComparison, TrainingInputs, make_training_setup, train_scheduler
from decision.rl.learning.weights import dump, load
from decision.rl.schedulers import find_scheduler
from decision.simulation import simulate_workloads

HOSTS = 8
SHORT = ("env.jobs=60", "learn.population=8", "learn.sequences=4")
GENERATION = 60 * 8 * 4  # jobs


@pytest.fixture(scope="module")
def mixed():
    return workload(400, [1, 1, 2, 4, 8], seed=1, load=1.1)


@pytest.fixture(scope="module")
def checkpoint(mixed, tmp_path_factory):
    return learn(mixed, tmp_path_factory.mktemp("ranking"), 3)


def learn(jobs, folder, generations, *changes, stop=lambda: False, seed=0, **options) -> Path:
    config = load_config("ranking", [*SHORT, f"learn.steps={generations * GENERATION}", *changes], seed=seed)
    return train_scheduler(TrainingInputs(equal_hosts(HOSTS), jobs, FILES), config, folder, stop=stop, **options)


def test_it_waits_less_than_the_policies_that_it_began_between(mixed, tmp_path):
    learned = learn(mixed, tmp_path, 60, "env.slowdown_first=0", "env.slowdown_last=0")
    compared = EpisodeComparison(
        equal_hosts(HOSTS), workload(400, [1, 1, 2, 4, 8], seed=2, load=1.1), 60, 50, 0, online=False
    )
    policies = (str(learned), "saf+easy", "saf+first-fit", "fcfs+easy")
    wait = {policy: compared.metrics(policy)["waiting_time"].mean() for policy in policies}
    assert wait[str(learned)] < 0.97 * min(wait["saf+easy"], wait["saf+first-fit"])
    assert wait["saf+easy"] < wait["fcfs+easy"]


@pytest.mark.parametrize("name", ["ranking", "learned"])
def test_an_episode_knows_nothing_of_those_before_it(name, mixed):
    scheduler, config = find_scheduler(name), load_config(name, ["env.jobs=60", "learn.threads=1"])
    setup = make_training_setup(scheduler, config, mixed, equal_hosts(HOSTS))
    learner = EvolutionLearner(config, scheduler, setup)
    weights, rows = scheduler.first_weights(np.random.default_rng(0)).ravel(), np.array([0, 200, 100])
    (together,) = learner.play([(weights, rows)])
    alone = [learner.play([(weights, rows[k : k + 1])])[0][0] for k in range(3)]
    assert np.array_equal(together, alone)


def test_the_same_checkpoint_makes_the_same_schedule_everywhere(checkpoint, mixed):
    platform, policy = equal_hosts(HOSTS), str(checkpoint)
    simulated = simulate_workloads(platform, [mixed], policy).jobs
    told = simulate_by_messages(EmbeddedEngine(platform, [mixed], ()), Agent(policy, {})).jobs
    assert (told.id, told.allocation) == (simulated.id, simulated.allocation)
    placed = []
    evaluate(policy, make_setup(mixed, platform, jobs=None, online=False), first=[0], placed=placed)
    wait = dict(zip(simulated.id, simulated.start_time - simulated.submit_time, strict=True))
    assert placed[0].wait == pytest.approx([wait[job.id] for job in mixed.jobs], abs=1e-6)
    assert len(simulate_workloads(equal_hosts(100), [mixed], policy).jobs.id) == len(mixed.jobs), (
        "on any number of hosts"
    )


def test_training_again_gives_the_same_file_whatever_the_threads(mixed, tmp_path):
    one, two = (learn(mixed, tmp_path / str(n), 3, f"learn.threads={n}") for n in (1, 2))
    assert torch.equal(weights(one), weights(two))
    assert one.read_bytes() == learn(mixed, tmp_path / "again", 3, "learn.threads=1").read_bytes()
    assert not torch.equal(weights(one), weights(learn(mixed, tmp_path / "other", 3, seed=1)))


def weights(path):
    return load(str(path), read_checkpoint(path)[1])["weights"]


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(mixed, tmp_path):
    whole = learn(mixed, tmp_path / "whole", 5)
    calls = iter([False, True])
    learn(mixed, tmp_path / "parts", 5, stop=lambda: next(calls))
    assert read_checkpoint(tmp_path / "parts" / "ranking.ckpt")[0].steps == 2 * GENERATION
    parts = learn(mixed, tmp_path / "parts", 5, resume=True)
    assert parts.read_bytes() == whole.read_bytes()
    curves = [(tmp_path / name / "progress.csv").read_text() for name in ("whole", "parts")]
    assert curves[0] == curves[1]


def test_the_checkpoint_says_how_it_was_learned_and_a_foreign_one_is_refused(checkpoint, tmp_path):
    manifest, data = read_checkpoint(checkpoint)
    assert (manifest.algorithm, manifest.steps, manifest.nb_hosts) == ("cma-es", 3 * GENERATION, HOSTS)
    newer = msgspec.structs.replace(manifest, encoder=manifest.encoder | {"version": 7})
    write_checkpoint(tmp_path / "newer.ckpt", newer, data)
    with pytest.raises(ConfigError, match=r"'version': 7.*'version': 2.*train again"):
        find_policy(str(tmp_path / "newer.ckpt"))
    for name, content in (("shape", {"weights": torch.zeros(3, 4)}), ("none", {"other": torch.zeros(1)})):
        write_checkpoint(tmp_path / f"{name}.ckpt", manifest, dump(content))
        with pytest.raises(InputError, match="the file is damaged"):
            find_policy(str(tmp_path / f"{name}.ckpt"))


def test_curves_have_what_the_candidates_came_to(checkpoint):
    header, *rows = (checkpoint.parent / "progress.csv").read_text().splitlines()
    assert header.startswith("iteration,steps,episodes,reward,waiting_time,")
    begun = dict(zip(header.split(","), rows[0].split(","), strict=True))
    assert (begun["steps"], begun["reward"]) == ("0", "") and float(begun["validation_waiting_time"]) > 0
    first = dict(zip(header.split(","), (float(value or "0") for value in rows[1].split(",")), strict=True))
    assert (first["steps"], first["episodes"]) == (GENERATION, 8 * 4)
    assert first["best_reward"] > first["reward"]
    assert np.isfinite(list(first.values())).all()
