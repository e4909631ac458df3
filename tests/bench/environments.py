"""How fast environments step: random valid actions, chosen in compiled code, arrays reused."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from decision.compiling.jit import kernel
from decision.files.generate.jobs import workload_of
from decision.files.generate.platforms import full_tree, networked
from decision.model.platform import Link, PowerState

from .inputs import days_of, green_jobs, packing_jobs, workload
from .peak import peak_megabytes

ENVS = 512  # threads wake once for each step of all: with 128 environments that costs a third of the speed
SECONDS = 2.0
REPEAT = 7


def dbf(window: int, tail: int) -> Callable[[Path | None], list[float]]:
    """Steps per second of ENVS environments of 256 cores with all threads, after some to warm up."""

    def measure(swf: Path | None) -> list[float]:
        from decision.rl.envs import DbfVectorEnv

        return _rates(DbfVectorEnv(ENVS, workload=workload(swf), head=window - tail, tail=tail), ENVS)

    return measure


def repair(swf: Path | None) -> list[float]:
    """Steps per second of 64 environments of 1,000 hosts in one thread, on jobs as the paper's."""
    from decision.rl.envs import RepairVectorEnv

    platform = networked(full_tree((10, 4, 25), [Link(1e9, 0.0)] * 3), (PowerState(1e9),))
    rng = np.random.default_rng(0)
    submit, run = np.cumsum(rng.integers(5, 31, 5000)), rng.integers(10, 1801, 5000)
    columns = submit.astype(float), rng.integers(1, 41, 5000), run.astype(float)
    jobs = workload_of(*columns, 1000, walltimes=run.astype(float))
    return _rates(RepairVectorEnv(64, workload=jobs, platform=platform, period=30.0, threads=1), 64)


def packing(swf: Path | None) -> list[float]:
    """Steps per second of 64 environments of 256 nodes that say 812 numbers, in one thread."""
    from decision.rl.envs import PackingVectorEnv

    envs = PackingVectorEnv(64, workload=packing_jobs(), encoder="packing", estimate="given", threads=1)
    return _rates(envs, 64)


def packing_memory(swf: Path | None) -> list[float]:
    """MB at most of a process that steps 64 such environments; it imports, and compiles or loads kernels, too."""
    return [peak_megabytes([sys.executable, "-c", f"from {__name__} import packing_of; packing_of(64)"])]


def packing_of(number: int) -> None:
    """A thousand steps of so many."""
    from decision.rl.envs import PackingVectorEnv

    envs = PackingVectorEnv(number, workload=packing_jobs(), encoder="packing", estimate="given")
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(1000):
        envs.step(rng.integers(0, 101, number))


def deepscheduling(cluster: str, number: int = ENVS) -> Callable[[Path | None], list[float]]:
    """Steps per second of so many environments with all threads."""

    def measure(swf: Path | None) -> list[float]:
        from decision.rl.envs import DeepSchedulingVectorEnv

        on, days = days_of(cluster)
        return _rates(DeepSchedulingVectorEnv(number, workload=days, platform=on), number)

    return measure


def deepscheduling_memory(swf: Path | None) -> list[float]:
    """MB at most of a process that steps 64 environments of econome; it imports, and compiles or loads kernels, too."""
    return [peak_megabytes([sys.executable, "-c", f"from {__name__} import deepscheduling_of; deepscheduling_of(64)"])]


def deepscheduling_of(number: int) -> None:
    """A thousand steps of so many."""
    from decision.rl.envs import DeepSchedulingVectorEnv

    on, days = days_of("econome")
    envs = DeepSchedulingVectorEnv(number, workload=days, platform=on)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(1000):
        envs.step(rng.integers(0, 21, number))


def green(hosts: int) -> Callable[[Path | None], list[float]]:
    """Steps per second of ENVS environments with all threads."""

    def measure(swf: Path | None) -> list[float]:
        from decision.rl.envs import GreenVectorEnv

        jobs, supply = green_jobs(hosts)
        return _rates(GreenVectorEnv(ENVS, workload=jobs, events=supply, jobs=20 * hosts), ENVS)

    return measure


def own(python: bool) -> Callable[[Path | None], list[float]]:
    """Steps per second of one environment of 256 hosts, stepped from Python: DBF's, or with one's own methods."""

    def measure(swf: Path | None) -> list[float]:
        import decision as d

        def observe(view):
            jobs, seen = view.queue[:16], np.zeros(33, np.float32)
            seen[0] = view.nb_free / 256
            seen[1 : 1 + len(jobs)] = jobs.size / 256
            seen[17 : 17 + len(jobs)] = np.minimum(jobs.walltime / 36_000, 1)
            return seen

        methods = {"observe": observe, "reward": lambda view: -len(view.queue) * view.elapsed} if python else {}
        env = d.make_env("dbf", "cluster256", "lublin_256", head=16, tail=4, jobs=500, **methods)
        return [_steps_of_one(env) for _ in range(REPEAT + 1)][1:]

    return measure


def _steps_of_one(env) -> float:
    (_, info), steps, began = env.reset(seed=1), 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < SECONDS / 2:
        for _ in range(100):
            _, _, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
            if terminated or truncated:
                _, info = env.reset()
        steps += 100
    return steps / spent


def copies(swf: Path | None) -> list[float]:
    """Milliseconds to copy a simulation of 1,000 jobs in its middle."""
    import decision as d

    sim = d.Simulation("cluster256", "lublin_256", jobs=slice(0, 1000))
    sim.run_until(50_000)
    found = []
    for _ in range(REPEAT + 1):
        began = time.perf_counter()
        for _ in range(100):
            sim.copy()
        found.append((time.perf_counter() - began) * 10)
    return found[1:]


def _rates(envs, number: int) -> list[float]:
    out, actions, words = envs.new_outputs(), np.zeros(number, np.int64), np.arange(number, dtype=np.uint64)
    envs.reset(seed=0, out=out)
    _steps_per_second(envs, out, actions, words)
    rates = [_steps_per_second(envs, out, actions, words) for _ in range(REPEAT)]
    envs.close()
    return rates


def _steps_per_second(envs, out, actions: np.ndarray, words: np.ndarray) -> float:
    steps, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < SECONDS:
        for _ in range(50):
            _choose(out.mask, actions, words)
            envs.step(actions, out=out)
        steps += 50 * len(actions)
    return steps / spent


@kernel
def _choose(masks, actions, words):
    """One of the valid actions of each environment, at random."""
    for i in range(len(actions)):
        valid = 0
        for action in range(masks.shape[1]):
            valid += masks[i, action]
        words[i] = words[i] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        left = np.int64((words[i] >> np.uint64(33)) % np.uint64(valid))
        for action in range(masks.shape[1]):
            if masks[i, action]:
                if left == 0:
                    actions[i] = action
                    break
                left -= 1
