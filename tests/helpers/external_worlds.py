"""Environments of every scheduler, to be played in the embedded engine and in a Batsim."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from decision.files.generate.platforms import full_tree, networked
from decision.model.platform import Link, PowerState
from decision.rl.envs import SchedulerVectorEnv, Setup, equal_hosts, make_setup
from helpers import green_worlds
from helpers.day_toys import busy_days_of
from helpers.env_toys import busy, scrambled, setup, workload
from helpers.policy_toys import platform

DECISION_BATSIM = str(Path(sys.executable).with_name("decision-batsim"))  # our replacement of Batsim

_TREE = networked(full_tree((4, 2, 3), [Link(1e9, 0.0)] * 3), (PowerState(1e9),))
_SERVERS = platform(4, sleeps=True, wake=151.5, doze=6.1, cores=2)


def _small_jobs() -> Any:
    """Jobs for a tree of 24 hosts."""
    rng, count = np.random.default_rng(3), 80
    submit, size, run = np.sort(rng.integers(0, 480, count)), rng.integers(1, 9, count), rng.integers(5, 60, count)
    return workload(24, *((float(at), int(n), float(s), float(s)) for at, n, s in zip(submit, size, run, strict=True)))


def _green(**options: Any) -> Setup:
    supply = list(green_worlds.supply(2, 60))
    return make_setup(green_worlds.workload(2, 60), equal_hosts(8), events=supply, jobs=30, **options)


def _packing(**options: Any) -> Setup:
    return make_setup(busy(60, 16), window=8, steps=400, **options)


WORLDS: dict[str, Callable[..., Setup]] = {
    "dbf": lambda **engine: setup(encoder="dbf", **engine),
    "dbf-pools": lambda **engine: setup(encoder="dbf-pools", **engine),
    "dbf-offline": lambda **engine: setup(encoder="dbf", online=False, **engine),
    "rlscheduler": lambda **engine: setup(encoder="rlscheduler", **engine),
    "inspector": lambda **engine: setup(encoder="inspector", **engine),
    "packing": lambda **engine: _packing(encoder="packing", **engine),
    "packing-pools": lambda **engine: _packing(encoder="packing-pools", pools=4, **engine),
    "repair": lambda **engine: make_setup(_small_jobs(), _TREE, encoder="repair", period=10.0, q=14, jobs=20, **engine),
    "green": lambda **engine: _green(encoder="green", **engine),
    "green-suspends": lambda **engine: _green(encoder="green", suspend="density", **engine),
    "green-image": lambda **engine: _green(encoder="green-image", **engine),
    "deepscheduling": lambda **engine: make_setup(
        busy_days_of(2, seed=3), _SERVERS, encoder="deepscheduling", steps=2_000, **engine
    ),
}


def difference(made: Callable[..., Setup], episodes: int, seed: int, **engine: Any) -> tuple[str, int]:
    """The first thing that the engines show otherwise in so many random episodes, and how many choices were made."""
    envs = [SchedulerVectorEnv(1, setup=made(**options)) for options in ({}, engine)]
    try:
        return _play(envs, episodes, seed)
    finally:
        for each in envs:
            each.close()


def _play(envs: list[SchedulerVectorEnv], episodes: int, seed: int) -> tuple[str, int]:
    (seen, info), (again, other) = (each.reset(seed=seed) for each in envs)
    steps = done = 0
    while done < episodes:
        told = {"observation": (seen, again), "mask": (info["action_mask"], other["action_mask"])}
        told["time"] = (np.array(envs[0].state_of(0).now), np.array(envs[1].state_of(0).now))
        for name, (one, two) in told.items():
            if not np.array_equal(one, two):
                return f"{name} after {steps} steps, in episode {done}: {one} and {two}", steps
        action = scrambled(seen, info["action_mask"])
        seen, *here, info = envs[0].step(action)
        again, *there, other = envs[1].step(action)
        steps += 1
        for name, one, two in zip(("reward", "terminated", "truncated"), here, there, strict=True):
            if not np.array_equal(one, two):
                return f"{name} after {steps} steps, in episode {done}: {one} and {two}", steps
        if here[1][0] or here[2][0]:
            done += 1
            for name, column in info["metrics"].items():
                if not np.array_equal(column, other["metrics"][name], equal_nan=True):
                    return f"{name} of episode {done - 1}: {column} and {other['metrics'][name]}", steps
            if not np.array_equal(info["final_obs"], other["final_obs"]):
                return f"last observation of episode {done - 1}", steps
    return "", steps
