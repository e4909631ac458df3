"""Learned choices and heuristics over the same episodes, with the same metrics."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.formats.files import write_files
from decision.model.errors import ConfigError, PolicyError
from decision.policies.around.supplied import supplied
from decision.policies.failures import reset_policy
from decision.policies.job_check import check_estimate
from decision.policies.policy import Policy
from decision.policies.prepared import prepare
from decision.policies.registry import find_policy
from decision.policies.traits import traits_of

from .batch import Batch
from .environment import Environment, environment_at
from .episode import run_policy
from .metrics import TAIL_METRICS, Begun, PlacedJobs, begun_in, episode_tail, placed_jobs
from .setup import Setup

ChooseAll = Callable[[NDArray[np.float32], NDArray[np.int8]], NDArray[np.integer]]

TOGETHER = 128  # episodes that are stepped side by side


def evaluate(
    policy: str | Policy | ChooseAll,
    setup: Setup,
    episodes: int = 100,
    seed: int = 0,
    first: Sequence[int] | NDArray[np.int64] | None = None,
    placed: list[PlacedJobs] | None = None,
    began: list[Begun] | None = None,
    decide_limit: float = 0.0,
) -> dict[str, NDArray[np.float64]]:
    """Metrics of each episode; the episodes depend on nothing but the trace, their number and the seed.

    Args:
        policy: a policy or the name of one; or a function from observations (n, D) f32 and masks (n, A) i8 to actions
            (n,).
        setup: of the environment.
        episodes: E.
        seed: of the episodes' first jobs, and of the policy.
        first: the jobs of the trace with which episodes begin, instead of random ones.
        placed: if given, gets the jobs that each episode placed.
        began: if given, and it is a policy, gets for each episode when each job that came began.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.

    Returns:
        For each of EPISODE_METRICS, of the scheduler's own metrics, and of TAIL_METRICS, an array (E,). A policy gets
        no rewards, and sees all of the queue.

    Raises:
        ConfigError: if the policy is neither, or switches hosts off where energy is not simulated.
        PolicyError: if it plans what is impossible.
    """
    rows = random_rows(setup, episodes, seed) if first is None else np.array(first, np.int64)
    chosen = find_policy(policy) if isinstance(policy, str) else policy
    if hasattr(chosen, "decide"):
        table, names = _run_policy(cast(Policy, chosen), setup, rows, seed, placed, began, decide_limit)
    elif callable(chosen):
        table, names = _run_choices(chosen, setup, rows, placed)
    else:
        raise ConfigError(f"policy {policy} is neither a heuristic nor a function of observations")
    return {name: table[:, k] for k, name in enumerate(names)}


def random_rows(setup: Setup, episodes: int, seed: int | Sequence[int]) -> NDArray[np.int64]:
    """The jobs with which so many random episodes begin."""
    rows = setup.beginnings.row
    return rows[np.random.default_rng(seed).integers(len(rows), size=episodes)]


Table = tuple[NDArray[np.float64], tuple[str, ...]]  # (E, K), and K names


def _run_choices(choose: ChooseAll, setup: Setup, first: NDArray[np.int64], placed: list[PlacedJobs] | None) -> Table:
    chunks = [first[at : at + TOGETHER] for at in range(0, len(first), TOGETHER)]
    tables, names = zip(*(_run_together(choose, setup, chunk, placed) for chunk in chunks), strict=True)
    return np.concatenate(tables), names[0]


def _run_together(choose: ChooseAll, setup: Setup, first: NDArray[np.int64], placed: list[PlacedJobs] | None) -> Table:
    batch = Batch(setup, len(first), 1)
    out = batch.new_outputs()
    batch.reset(first, out)
    while not (out.terminated | out.truncated).all():
        actions = np.ascontiguousarray(choose(out.observation, out.mask), np.int64)
        batch.step(actions, False, out)
    if placed is not None:
        placed.extend(map(placed_jobs, batch.envs))
    return np.hstack([batch.metrics, [episode_tail(env) for env in batch.envs]]), _names(batch)


def _run_policy(
    policy: Policy,
    setup: Setup,
    first: NDArray[np.int64],
    seed: int,
    placed: list[PlacedJobs] | None,
    began: list[Begun] | None,
    decide_limit: float,
) -> Table:
    traits = traits_of(policy)
    if traits.switches_hosts and not setup.rules.energy:
        raise ConfigError(
            f"policy {traits.name} switches hosts off, and this environment does not simulate energy; use power=never"
        )
    if traits.needs_estimate:
        for row in np.flatnonzero(setup.trace.truth.told[: setup.trace.jobs] == 0)[:1].tolist():
            check_estimate(setup.trace.ids[row], np.nan, "the environment's workload")
    if setup.supply is not None:
        policy = supplied(policy, setup.supply)
    batch = Batch(setup, 1, 1)
    env, metrics, tails = batch.envs[0], np.zeros((len(first), len(batch.metric_names))), []
    names = _JobIds(env, setup.trace.ids)
    for row, out in zip(first.tolist(), metrics, strict=True):
        reset_policy(policy, setup.platform, seed)
        prepared = prepare(policy, env.facts, names, decide_limit)
        memory = prepared.memory_for(env.state, env.plan)
        if not play_episode(batch, 0, prepared.address, memory.address, row, out):
            raise prepared.error()
        if env.progress.refused_plan:
            raise PolicyError(f"t={env.state.now:.12g} s: the engine cannot carry out what the policy planned")
        tails.append(episode_tail(env))
        if placed is not None:
            placed.append(placed_jobs(env))
        if began is not None:
            began.append(begun_in(env))
    return np.hstack([metrics, tails]), _names(batch)


def _names(batch: Batch) -> tuple[str, ...]:
    return (*batch.metric_names, *TAIL_METRICS)


def play_episode(batch: Batch, which: int, policy: int, memory: int, row: int, out: NDArray[np.float64]) -> bool:
    """An episode from a row of the trace, in one environment of a batch, under a compiled policy.

    Args:
        batch: the environments.
        which: of them.
        policy: address of the policy's entry, as `decision.policies.prepared` has it.
        memory: address of its memory.
        row: an episode begins with.
        out: (K,) gets the metrics.

    Returns:
        Whether all plans could be carried out.
    """
    beginning = int(np.searchsorted(batch.setup.beginnings.row, row))
    return bool(_play(batch.addresses[which], batch.setup.rules, batch.kernels, policy, memory, beginning, out))


@kernel
def _play(addresses, rules, kernels, policy, memory, beginning, out):
    return run_policy(environment_at(addresses), rules, kernels, policy, memory, beginning, out)


class _JobIds(Sequence[str]):
    """The ids of an episode's jobs by number."""

    def __init__(self, env: Environment, ids: Sequence[str]) -> None:
        self._env, self._ids = env, ids

    def __len__(self) -> int:
        return len(self._env.state.size)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        return self._ids[(int(self._env.progress.first_row) + int(number)) % len(self._ids)]


def write_metrics(path: Path, metrics: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> None:
    """Write the results of `evaluate`, by policy, as CSV with a row per policy and episode; what is nan is empty."""
    names = list(next(iter(metrics.values())))
    lines = [",".join(("policy", "episode", *names))]
    for policy, columns in metrics.items():
        rows = zip(*(columns[name].tolist() for name in names), strict=True)
        quoted = f'"{policy}"' if "," in policy else policy
        cells = (["" if value != value else repr(value) for value in row] for row in rows)
        lines += [",".join((quoted, str(k), *row)) for k, row in enumerate(cells)]
    write_files({path: ["\n".join((*lines, "")).encode()]})
