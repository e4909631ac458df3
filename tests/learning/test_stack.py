"""Trainings that learn together learn what each learns alone."""

import csv

import msgspec
import numpy as np
import pytest
import torch
from helpers.env_toys import busy, setup
from helpers.learning_runs import SMALL, task
from helpers.learning_toys import TwoQueues

from decision.rl.envs import SchedulerVectorEnv
from decision.rl.learning.checkpoint import read_checkpoint
from decision.rl.learning.config import NetworkConfig, PpoConfig, TrainConfig
from decision.rl.learning.ppo import PpoLearner
from decision.rl.learning.stack import PpoStack, why_alone
from decision.rl.learning.training import run_together, run_training
from decision.rl.learning.weights import load
from decision.rl.schedulers.base import find_scheduler

CHANGES = [
    {},
    {"overlap": False, "lr_schedule": "constant", "critic_lr": 1e-3, "value_clip": 0.2, "max_gradient": 0.05},
    {"rollout": 17, "normalise_advantages": False},  # the last minibatch is a shorter one
]


def weights(path):
    return load(str(path), read_checkpoint(path)[1])


def rows(path):
    with (path.parent / "progress.csv").open() as file:
        return [{k: float(v or "nan") for k, v in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize("changes", CHANGES, ids=["default", "other losses", "ragged"])
def test_each_seed_learns_what_it_learns_alone(tmp_path, changes):
    ppo = msgspec.structs.replace(SMALL, **changes)

    def of(seed, folder):
        return task(TwoQueues(8), tmp_path / folder / str(seed), ppo=ppo, seed=seed)

    alone = [run_training(of(seed, "alone")) for seed in (3, 4, 5)]
    stacked = run_together([of(seed, "stacked") for seed in (3, 4, 5)])
    assert len({tuple(weights(path)["policy.0.bias"].tolist()) for path in stacked}) == 3
    for one, other in zip(alone, stacked, strict=True):
        mine, theirs = weights(one), weights(other)
        for name, value in mine.items():
            assert torch.allclose(value, theirs[name], rtol=1e-3, atol=1e-5), name
        for row, expected in zip(rows(other), rows(one), strict=True):
            assert row == pytest.approx(expected, rel=1e-3, abs=1e-5, nan_ok=True)


def test_what_learned_together_goes_on_alone_and_what_learned_alone_together(tmp_path):
    longer = msgspec.structs.replace(SMALL, lr_schedule="constant", overlap=False)
    shorter = msgspec.structs.replace(longer, steps=SMALL.steps // 2)

    def of(ppo, seed, folder):
        return task(TwoQueues(8), tmp_path / folder / str(seed), ppo=ppo, seed=seed)

    whole = [run_training(of(longer, seed, "whole")) for seed in (0, 1)]
    run_together([of(shorter, seed, "first") for seed in (0, 1)])
    apart = [run_training(of(longer, seed, "first"), resume=True) for seed in (0, 1)]
    for seed in (0, 1):
        run_training(of(shorter, seed, "then"))
    joined = run_together([of(longer, seed, "then") for seed in (0, 1)], resume=True)
    for expected, *found in zip(whole, apart, joined, strict=True):
        for path in found:
            assert len(rows(path)) == len(rows(expected))
            for name, value in weights(expected).items():
                assert torch.allclose(value, weights(path)[name], rtol=1e-3, atol=1e-5), name


@pytest.mark.parametrize(
    ("name", "kind", "hidden", "options"),
    [
        ("dbf", "mlp", (32, 16), {"paper": True, "mask": False}),
        ("dbf", "jobs", (16,), {}),
        ("rlscheduler", "priority", (16,), {}),
    ],
)
def test_networks_of_each_kind_are_multiplied_together(name, kind, hidden, options):
    scheduler = find_scheduler(name)
    made = setup(busy(120, 8, 1), encoder=name, jobs=20, **options)
    ppo = PpoConfig(steps=4 * 8 * 3, envs=4, rollout=8, minibatch=16, epochs=2, overlap=False, threads=1)

    def learner(seed):
        config = TrainConfig(
            scheduler=name, env=options, learn=ppo, network=NetworkConfig(kind=kind, hidden=hidden), seed=seed
        )
        envs = SchedulerVectorEnv(4, setup=made, threads=1)
        return PpoLearner(config, envs, scheduler.layout(made.encoder), ("waiting_time",))

    alone, stack = [learner(0), learner(1)], PpoStack([learner(0), learner(1)])
    for _ in range(3):
        expected, found = [each.iterate() for each in alone], stack.iterate()
        for one, other in zip(expected, found, strict=True):
            assert other == pytest.approx(one, rel=1e-3, abs=1e-5, nan_ok=True)
    stack.hand_back()
    for one, other in zip(alone, stack.learners, strict=True):
        for key, value in one.weights().items():
            assert torch.allclose(value, other.weights()[key], rtol=1e-3, atol=1e-5), key
        assert np.array_equal(one.collector.observation, other.collector.observation)
    stack.close()
    for each in alone:
        each.close()


def test_a_stack_of_one_learns_as_a_learner_does(tmp_path):
    learners = [task(TwoQueues(8), tmp_path).algorithm(task(TwoQueues(8), tmp_path).manifest.config) for _ in range(2)]
    stack = PpoStack(learners[1:])
    for _ in range(3):
        expected, (found,) = learners[0].iterate(), stack.iterate()
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True)
    stack.hand_back()
    moments = [each.optimizer.state_dict()["state"] for each in learners]
    for mine, theirs in zip(moments[0].values(), moments[1].values(), strict=True):
        assert mine["step"] == theirs["step"] > 0
        assert torch.allclose(mine["exp_avg"], theirs["exp_avg"], rtol=1e-3, atol=1e-7)
    stack.close()


def test_what_differs_in_more_than_seeds_learns_alone(tmp_path):
    def of(**changes):
        made = task(TwoQueues(8), tmp_path, ppo=msgspec.structs.replace(SMALL, **changes))
        return made.algorithm(made.manifest.config)

    assert why_alone([of(), of()]) == ""
    assert "differ" in why_alone([of(), of(lr=1e-4)])
    further = of()
    further.iterate()
    assert "further" in why_alone([of(), further])
    assert "target_kl" in why_alone([of(target_kl=0.1), of(target_kl=0.1)])
