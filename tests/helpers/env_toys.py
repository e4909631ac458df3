"""Small workloads for environments, and policies that play them."""

from collections.abc import Sequence

import numpy as np

from decision.model.workload import Delay, Job, Workload
from decision.rl.envs import Setup, make_setup


def workload(hosts: int, *jobs: tuple[float, int, float, float]) -> Workload:
    """From (submission, hosts, walltime, runtime) per job, times in seconds."""
    made = [
        Job(id=f"w0!{i:04}", submit_time=float(submit), size=size, walltime=float(walltime), profile=f"d{run:g}")
        for i, (submit, size, walltime, run) in enumerate(jobs)
    ]
    profiles = {f"d{run:g}": Delay(float(run)) for *_, run in jobs}
    return Workload(name="w0", jobs=made, profiles=profiles, nb_res=hosts)


def busy(nb_jobs: int = 300, hosts: int = 16, seed: int = 1) -> Workload:
    """More work than the cluster can do, many ties, walltimes that are kept, exceeded and not used up."""
    rng = np.random.default_rng(seed)
    size = rng.choice([1, 1, 2, 3, 4, 8, hosts], nb_jobs)
    run = rng.integers(1, 60, nb_jobs)
    wall = np.maximum(1, run + rng.integers(-5, 30, nb_jobs))
    submit = np.cumsum(rng.choice([0, 0, 1, 5, 15, 40], nb_jobs))
    return workload(hosts, *zip(submit.tolist(), size.tolist(), wall.tolist(), run.tolist(), strict=True))


def setup(trace: Workload | None = None, **options) -> Setup:
    """Of an environment with short episodes."""
    window = {"inspector": (), "rlscheduler": ("head",)}.get(str(options.get("encoder")), ("head", "tail"))
    slots = {name: slots for name, slots in (("head", 4), ("tail", 2)) if name in window}
    return make_setup(trace or busy(), **(slots | {"jobs": 50} | options))


def first_valid(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """The lowest valid action of each."""
    return masks.argmax(axis=-1)


def scrambled(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
    """Valid actions that depend on every number of the observation, and are as good as random."""
    bits = np.ascontiguousarray(np.atleast_2d(observations), np.float32).view(np.uint32).astype(np.uint64)
    weights = np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (bits * weights).sum(axis=1) * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(33)
    masks = np.atleast_2d(masks)
    return np.array([np.flatnonzero(m)[int(w % np.uint64(m.sum()))] for w, m in zip(words, masks, strict=True)])


def play(envs, steps: int, seed: int | Sequence[int] = 0) -> list[np.ndarray]:
    """Everything that N environments say under `scrambled`: a list of (steps + 1, N, ...) arrays."""
    observation, info = envs.reset(seed=seed)
    told = [(observation, info["action_mask"], np.zeros(envs.num_envs), *np.zeros((2, envs.num_envs), bool))]
    for _ in range(steps):
        observation, reward, terminated, truncated, info = envs.step(scrambled(observation, info["action_mask"]))
        told.append((observation, info["action_mask"], reward, terminated, truncated))
    return [np.stack(column) for column in zip(*told, strict=True)]
