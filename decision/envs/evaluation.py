"""Learned choices and heuristics over the same episodes, with the same metrics."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from decision.jit import kernel
from decision.model.errors import ConfigError
from decision.policies.composed import ComposedPolicy
from decision.policies.ranking import RankingPolicy
from decision.policies.registry import find_policy
from decision.policies.slots import Power

from .batch import Batch
from .episode import restart, run_composed, run_ranking
from .outputs import new_outputs
from .placed import PlacedJobs, placed_jobs
from .setup import Setup
from .tally import METRICS, measure

ChooseAll = Callable[[NDArray[np.float32], NDArray[np.int8]], NDArray[np.integer]]

TOGETHER = 128  # episodes that are stepped side by side


def evaluate(
    policy: str | ComposedPolicy | RankingPolicy | ChooseAll,
    setup: Setup,
    episodes: int = 100,
    seed: int = 0,
    first: Sequence[int] | None = None,
    placed: list[PlacedJobs] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Metrics of each episode; the episodes depend on nothing but the trace, their number and the seed.

    Args:
        policy: a composed policy, a ranking, or the name of either; or a function from observations (n, D) f32 and
            masks (n, A) i8 to actions (n,).
        setup: of the environment.
        episodes: E.
        seed: of the episodes' first jobs, and of the policy.
        first: the jobs of the trace with which episodes begin, instead of random ones.
        placed: if given, gets the jobs that each episode placed.

    Returns:
        For each of METRICS an array (E,). A heuristic gets no rewards, and sees all of the queue.

    Raises:
        ConfigError: if the policy is neither, or switches hosts off.
    """
    rows = _random_jobs(setup, episodes, seed) if first is None else np.array(first, np.int64)
    chosen = find_policy(policy) if isinstance(policy, str) else policy
    if isinstance(chosen, ComposedPolicy | RankingPolicy):
        table = _run_policy(chosen, setup, rows, seed, placed)
    elif callable(chosen):
        table = _run_choices(chosen, setup, rows, placed)
    else:
        raise ConfigError(f"policy {policy} is neither a heuristic of this package nor a function of observations")
    return {name: table[:, k] for k, name in enumerate(METRICS)}


def _random_jobs(setup: Setup, episodes: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(setup.trace.jobs, size=episodes)


def _run_choices(
    choose: ChooseAll, setup: Setup, first: NDArray[np.int64], placed: list[PlacedJobs] | None
) -> NDArray[np.float64]:
    """(E, K)"""
    chunks = [first[at : at + TOGETHER] for at in range(0, len(first), TOGETHER)]
    return np.concatenate([_run_together(choose, setup, chunk, placed) for chunk in chunks])


def _run_together(
    choose: ChooseAll, setup: Setup, first: NDArray[np.int64], placed: list[PlacedJobs] | None
) -> NDArray[np.float64]:
    envs, encoder = len(first), setup.encoder
    batch = Batch(envs, setup.trace, setup.platform, setup.rules, encoder, 1)
    out = new_outputs(envs, *encoder.shape, encoder.actions)
    batch.reset(first, out)
    while not (out.terminated | out.truncated).all():
        actions = np.ascontiguousarray(choose(out.observation, out.mask), np.int64)
        batch.step(actions, False, out)
    if placed is not None:
        placed.extend(map(placed_jobs, batch.worlds))
    return batch.metrics


def _run_policy(
    policy: ComposedPolicy | RankingPolicy,
    setup: Setup,
    first: NDArray[np.int64],
    seed: int,
    placed: list[PlacedJobs] | None,
) -> NDArray[np.float64]:
    """(E, K)"""
    if isinstance(policy, ComposedPolicy) and policy.config.power != Power.NEVER:
        raise ConfigError(f"policy {policy.name} switches hosts off, which environments do not simulate; let it not")
    world = Batch(1, setup.trace, setup.platform, setup.rules, setup.encoder, 1).worlds[0]
    metrics = np.zeros((len(first), len(METRICS)))
    policy.reset(setup.platform, seed)
    for row, job in zip(metrics, first.tolist(), strict=True):
        if isinstance(policy, RankingPolicy):
            play_ranking(world, setup.rules, policy.weights, job, row)
        else:
            _play_composed(world, setup.rules, policy.config, policy.memory_for(world.state), job, row)
        if placed is not None:
            placed.append(placed_jobs(world))
    return metrics


@kernel
def _play_composed(world, rules, config, memory, first, metrics):
    restart(world, rules, first)
    run_composed(world, rules, config, memory)
    measure(world, metrics)


@kernel
def play_ranking(world, rules, weights, first, metrics):
    """An episode from row `first` of the trace; its METRICS are written into `metrics` (K,)."""
    restart(world, rules, first)
    run_ranking(world, rules, weights)
    measure(world, metrics)
