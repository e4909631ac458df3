"""How fast learned policies learn, beside sb3-contrib's MaskablePPO, and decide."""

import statistics
import tempfile
import time
from pathlib import Path

from decision.model.workload import Workload

from .inputs import NB_HOSTS, made, platform, workload
from .measures import decision_seconds

ROLLOUTS = 2
WINDOW = ("env.head=16", "env.tail=4", "env.cluster=cores", "env.jobs=1000")  # of the paper
PERCEPTRON = ("network.kind=mlp", "network.hidden=[256, 128]")


def ppo_ratio(swf: Path | None) -> list[float]:
    """Our steps per second over MaskablePPO's: same environments, perceptron, minibatches and epochs, in turn."""
    jobs = workload(swf)
    return [_our_rate(jobs, *PERCEPTRON) / _sb3_rate(jobs) for _ in range(3)]


def ppo_compact(swf: Path | None) -> list[float]:
    """Steps per second of the preset dbf-compact, rollouts and updates."""
    jobs = workload(swf)
    return [_our_rate(jobs) for _ in range(5)]


def _our_rate(jobs: Workload, *changes: str) -> float:
    """After the first iteration, which warms up."""
    from decision.formats.input_facts import InputFacts
    from decision.learn.config import load_config
    from decision.learn.schedulers import train_scheduler

    changes = (*WINDOW, *changes)
    config = load_config("dbf-compact", changes)
    steps = config.learn.envs * config.learn.rollout
    config = load_config("dbf-compact", [*changes, f"learn.steps={(ROLLOUTS + 2) * steps}"])
    seconds: list[float] = []
    facts = [InputFacts(name="", sha256="")] * 2
    with tempfile.TemporaryDirectory() as folder:
        train_scheduler(
            platform(NB_HOSTS),
            jobs,
            config,
            facts,
            Path(folder),
            report=lambda r: seconds.append(r.rate and steps / r.rate),
        )
    return ROLLOUTS * steps / sum(seconds[2:-1])  # nothing is collected in the last iteration


def _sb3_rate(jobs: Workload) -> float:
    from sb3_contrib import MaskablePPO
    from torch import nn

    from decision.envs.sb3 import DbfVecEnv
    from decision.learn.config import load_config

    config = load_config("dbf-compact", (*WINDOW, *PERCEPTRON))
    ppo, hidden = config.learn, list(config.network.hidden)
    envs = DbfVecEnv(ppo.envs, workload=jobs, head=config.env.head, tail=config.env.tail)
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=ppo.rollout,
        batch_size=ppo.minibatch,
        n_epochs=ppo.epochs,
        policy_kwargs={"net_arch": {"pi": hidden, "vf": hidden}, "activation_fn": nn.ReLU},
        device="cpu",
        seed=0,
    )
    steps = ppo.envs * ppo.rollout
    model.learn(steps)
    began = time.perf_counter()
    model.learn(ROLLOUTS * steps)
    return ROLLOUTS * steps / (time.perf_counter() - began)


def decide_latency(swf: Path | None) -> list[float]:
    """Milliseconds per question of the compact network, window 128: from bytes to bytes, mean over a run."""
    jobs = made(1_000, NB_HOSTS, load=0.9, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        policy = str(_untrained(jobs, Path(folder)))
        return [1e3 * statistics.fmean(decision_seconds(jobs, policy)) for _ in range(3)]


def decide_learned(swf: Path | None) -> list[float]:
    """Milliseconds per question of the learned order while 10,000 jobs wait: from bytes to bytes, mean of 2,500."""
    jobs = made(15_000, NB_HOSTS, load=4.0, seed=3)
    return [1e3 * statistics.fmean(decision_seconds(jobs, "learned", most=15_000)[12_500:]) for _ in range(3)]


def _untrained(jobs: Workload, folder: Path) -> Path:
    from decision.formats.input_facts import InputFacts
    from decision.learn.config import load_config
    from decision.learn.schedulers import train_scheduler

    tiny = ("learn.steps=1", "learn.envs=1", "learn.rollout=2", "learn.threads=1")
    config = load_config("dbf-compact", [*WINDOW, "env.head=112", "env.tail=16", *tiny])
    return train_scheduler(platform(NB_HOSTS), jobs, config, [InputFacts(name="", sha256="")] * 2, folder)
