"""How fast learned policies learn, beside sb3-contrib's MaskablePPO, and decide."""

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decision.files.generate.paper_workloads import topology_workload
from decision.files.text import InputFacts
from decision.files.workload import Selection
from decision.model.dates import busy_days, of_day
from decision.model.platform import Platform
from decision.model.workload import MachineEvent, Workload
from decision.policies.runtimes import apply_estimates

from .inputs import NB_HOSTS, days_of, made, packing_jobs, platform, workload
from .measures import decision_seconds

if TYPE_CHECKING:
    from decision.rl.envs import Setup
    from decision.rl.envs.demonstrations import Schedule
    from decision.rl.learning.config import TrainConfig
    from decision.rl.learning.schedulers import TrainingInputs
    from decision.rl.learning.training import Report

ROLLOUTS = 2
UPDATES = 600  # of an algorithm that learns from recorded choices
RECORDED = ("env.head=10", "env.tail=0", "learn.batch=256", "learn.threads=1")
WINDOW = ("env.head=16", "env.tail=4", "env.cluster=cores", "env.jobs=1000")  # of the paper
PERCEPTRON = ("network.kind=mlp", "network.hidden=[256, 128]")


def ppo_ratio(swf: Path | None) -> list[float]:
    """Our steps per second over MaskablePPO's: same environments, perceptron, minibatches and epochs, in turn."""
    jobs = workload(swf)
    return [_our_rate(jobs, "dbf-compact", *WINDOW, *PERCEPTRON) / _sb3_rate(jobs) for _ in range(3)]


def ppo_compact(swf: Path | None) -> list[float]:
    """Steps per second of the preset dbf-compact, rollouts and updates."""
    jobs = workload(swf)
    return [_our_rate(jobs, "dbf-compact", *WINDOW) for _ in range(5)]


def ppo_packing(swf: Path | None) -> list[float]:
    """Steps per second of the preset packing-compact, rollouts and updates."""
    jobs = packing_jobs()
    return [_our_rate(jobs, "packing-compact") for _ in range(5)]


def ppo_packing_ratio(swf: Path | None) -> list[float]:
    """As `ppo_ratio`, in packing-compact's environments, against PPO without masks."""
    jobs = packing_jobs()
    return [_our_rate(jobs, "packing-compact", *PERCEPTRON) / _sb3_packing_rate(jobs) for _ in range(3)]


def updates(method: str) -> Callable[[Path | None], list[float]]:
    """Updates per second of one core, 256 transitions at a time, by a network shared by ten jobs.

    bc and crr learn from recorded choices; sac makes an update for each step in its environments.
    """

    def measure(swf: Path | None) -> list[float]:
        jobs = workload(swf)
        with tempfile.TemporaryDirectory() as folder:
            return [_update_rate(jobs, method, Path(folder) / str(k)) for k in range(5)]

    return measure


def updates_ratio(method: str, peer: str) -> Callable[[Path | None], list[float]]:
    """Updates per second over those of an algorithm of d3rlpy, (256, 256), on the same recorded choices, in turn."""

    def measure(swf: Path | None) -> list[float]:
        jobs = workload(swf)
        with tempfile.TemporaryDirectory() as folder:
            return [_update_rate(jobs, method, Path(folder) / str(k)) / _d3rlpy_rate(jobs, peer) for k in range(3)]

    return measure


def without_d3rlpy() -> list[str]:
    """What is missing for `updates_ratio`."""
    return [] if find_spec("d3rlpy") else ["d3rlpy"]


def _update_rate(jobs: Workload, method: str, folder: Path) -> float:
    """After the first iteration."""
    from decision.rl.learning.choices import write_choices
    from decision.rl.learning.config import load_config
    from decision.rl.learning.schedulers import TrainingInputs, train_scheduler

    acting = ("learn.updates=1.0", "learn.warmup=1", "learn.envs=4") if method == "sac" else ()
    config = load_config(f"dbf-{method}", (*RECORDED, *acting, f"learn.steps={UPDATES}"))
    setup, schedules = _schedules(jobs)
    folder.mkdir()
    facts, data = [InputFacts(name="", sha256="")] * 2, folder / "x.choices"
    write_choices(data, schedules, setup, facts, Selection(), (), 0)
    done: list[tuple[int, float]] = []
    hosts = platform(NB_HOSTS)

    def note(report: "Report") -> None:
        done.append((report.steps, time.process_time()))

    train_scheduler(TrainingInputs(hosts, jobs, facts, data=data), config, folder, report=note)
    return statistics.median((n - m) / (t - s) for (m, s), (n, t) in pairwise(done[1:]))


def _d3rlpy_rate(jobs: Workload, algorithm: str) -> float:
    """After the first updates."""
    import d3rlpy
    import torch

    from decision.rl.envs.demonstrations import replay_schedules

    torch.set_num_threads(1)
    seen = replay_schedules(*_schedules(jobs))
    rows = seen.choices
    episode = np.searchsorted(np.flatnonzero(seen.action < 0), rows)
    over, terminal = np.diff(episode, append=-1) != 0, seen.terminated[rows]
    columns = seen.observation[rows], seen.action[rows], seen.reward[rows]
    data = d3rlpy.dataset.MDPDataset(*columns, over & terminal, over & ~terminal)
    learner = getattr(d3rlpy.algos, f"{algorithm}Config")(batch_size=256).create(device="cpu:0")
    silent = {"show_progress": False, "save_interval": 10**9, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}
    learner.fit(data, n_steps=100, n_steps_per_epoch=100, **silent)
    began = time.process_time()
    learner.fit(data, n_steps=UPDATES, n_steps_per_epoch=UPDATES, **silent)
    return UPDATES / (time.process_time() - began)


def _schedules(jobs: Workload) -> tuple["Setup", list["Schedule"]]:
    """Recorded episodes, and their environment."""
    from decision.rl.envs.demonstrations import record_schedules
    from decision.rl.learning.config import load_config
    from decision.rl.learning.schedulers import choosing_setup

    setup = choosing_setup(load_config("dbf-bc", RECORDED), jobs, platform(NB_HOSTS))
    return setup, record_schedules("sjf+easy", setup, 20_000, 0)


def ppo_deepscheduling(swf: Path | None) -> list[float]:
    """Steps per second of the preset deepscheduling-compact on orion, rollouts and updates."""
    on, days = days_of("orion")
    return [_our_rate(days, "deepscheduling-compact", on=on) for _ in range(5)]


def agent(preset: str, *changes: str, threads: int = 1) -> Callable[[Path | None], list[float]]:
    """Steps that a paper's own agent makes and learns from; updates, of Launchpad's SAC.

    By seconds of a core with one thread, and by those of the clock with more.
    """

    def measure(swf: Path | None) -> list[float]:
        from decision.rl.learning.schedulers import TrainingInputs

        on, jobs, events = _world_of(preset, swf)
        inputs = TrainingInputs(on, jobs, [InputFacts(name="", sha256="")] * 3, events)
        return _rates(inputs, preset, threads, *changes)

    return measure


def _world_of(preset: str, swf: Path | None) -> tuple[Platform, Workload, list[MachineEvent]]:
    """Servers, jobs and events like those of the agent's paper."""
    if preset.startswith("packing"):
        return platform(NB_HOSTS), packing_jobs(), []
    if preset.startswith("deepscheduling"):
        return *days_of("orion"), []
    if preset.startswith("green"):
        from decision.papers.launchpad import world

        made = world(10, True, 0, 10_000)
        return made.platform, made.workload, list(made.events)
    if preset.startswith("repair"):
        from decision.papers.topology.parts import TREES, platform_of

        rng = np.random.default_rng(0)
        return platform_of(TREES["text"]), apply_estimates(topology_workload(rng, 10_000), "exact", rng), []
    return platform(NB_HOSTS), workload(swf), []


def _rates(inputs: "TrainingInputs", preset: str, threads: int, *changes: str) -> list[float]:
    """Of each iteration after the first one."""
    from decision.rl.learning.config import load_config
    from decision.rl.learning.schedulers import train_scheduler

    changes = (f"learn.threads={threads}", *changes)
    config = load_config(preset, changes)
    sac = config.algorithm == "sac"
    steps = config.learn.envs * (32 if sac else config.learn.rollout)
    config = load_config(preset, [*changes, f"learn.steps={(ROLLOUTS + 1) * steps}"])
    done: list[Report] = []
    with tempfile.TemporaryDirectory() as folder:
        train_scheduler(inputs, config, Path(folder), report=done.append)
    return [report.rate if threads > 1 else steps / report.seconds for report in done[2:]]


def _our_rate(jobs: Workload, preset: str, *changes: str, on: Platform | None = None) -> float:
    """After the first iteration, which warms up."""
    from decision.rl.learning.config import load_config
    from decision.rl.learning.schedulers import TrainingInputs, train_scheduler

    config = load_config(preset, changes)
    steps = config.learn.envs * config.learn.rollout
    config = load_config(preset, [*changes, f"learn.steps={(ROLLOUTS + 2) * steps}"])
    seconds: list[float] = []
    facts = [InputFacts(name="", sha256="")] * 2
    with tempfile.TemporaryDirectory() as folder:
        train_scheduler(
            TrainingInputs(on or platform(NB_HOSTS), jobs, facts),
            config,
            Path(folder),
            report=lambda r: seconds.append(r.rate and steps / r.rate),
        )
    return ROLLOUTS * steps / sum(seconds[2:-1])  # nothing is collected in the last iteration


def _sb3_rate(jobs: Workload) -> float:
    from sb3_contrib import MaskablePPO

    from decision.rl.envs.sb3 import DbfVecEnv
    from decision.rl.learning.config import load_config

    config = load_config("dbf-compact", (*WINDOW, *PERCEPTRON))
    envs = DbfVecEnv(config.learn.envs, workload=jobs, head=config.env.head, tail=config.env.tail)
    return _rate_of(MaskablePPO, envs, config)


def _sb3_packing_rate(jobs: Workload) -> float:
    from stable_baselines3 import PPO

    from decision.rl.envs.sb3 import SchedulerVecEnv
    from decision.rl.learning.config import load_config

    config = load_config("packing-compact", PERCEPTRON)
    envs = SchedulerVecEnv(config.learn.envs, workload=jobs, encoder="packing-pools", **config.settings)
    return _rate_of(PPO, envs, config)


def _rate_of(algorithm: type, envs: object, config: "TrainConfig") -> float:
    """Of rollouts and updates of Stable-Baselines3, after the first ones."""
    from torch import nn

    ppo, hidden = config.learn, list(config.network.hidden)
    model = algorithm(
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
        policy = str(_untrained(jobs, Path(folder), "dbf-compact", *WINDOW, "env.head=112", "env.tail=16"))
        return [1e3 * statistics.fmean(decision_seconds(jobs, policy)) for _ in range(3)]


def decide_learned(swf: Path | None) -> list[float]:
    """Milliseconds per question of the learned order while 10,000 jobs wait: from bytes to bytes, mean of 2,500."""
    jobs = made(15_000, NB_HOSTS, load=4.0, seed=3)
    return [1e3 * statistics.fmean(decision_seconds(jobs, "learned", most=15_000)[12_500:]) for _ in range(3)]


def packing_latency(swf: Path | None) -> list[float]:
    """Milliseconds per question of the network of packing-compact, as `decide_latency`."""
    jobs = packing_jobs()
    with tempfile.TemporaryDirectory() as folder:
        policy = str(_untrained(jobs, Path(folder), "packing-compact"))
        return [1e3 * statistics.fmean(decision_seconds(jobs, policy)) for _ in range(3)]


def deepscheduling_latency(preset: str) -> Callable[[Path | None], list[float]]:
    """Milliseconds per question of a preset's network on a busy day of orion, as `decide_latency`."""

    def measure(swf: Path | None) -> list[float]:
        on, days = days_of("orion")
        busiest = max(busy_days(days), key=lambda day: day.jobs)
        with tempfile.TemporaryDirectory() as folder:
            policy, alone = str(_untrained(days, Path(folder), preset, on=on)), of_day(days, busiest)
            return [1e3 * statistics.fmean(decision_seconds(alone, policy, servers=on)) for _ in range(3)]

    return measure


def _untrained(jobs: Workload, folder: Path, preset: str, *changes: str, on: Platform | None = None) -> Path:
    from decision.files.text import InputFacts
    from decision.rl.learning.config import load_config
    from decision.rl.learning.schedulers import TrainingInputs, train_scheduler

    tiny = ("learn.steps=1", "learn.envs=1", "learn.rollout=2", "learn.threads=1")
    config = load_config(preset, [*changes, *tiny])
    return train_scheduler(
        TrainingInputs(on or platform(NB_HOSTS), jobs, [InputFacts(name="", sha256="")] * 2), config, folder
    )
