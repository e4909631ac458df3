"""Many environments side by side, stepped by one call per thread that holds no lock of Python's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import B1, F4, F8, I8, F4x2, F8x2, I1x2, I8x2
from decision.compiling.jit import compile_ahead, kernel
from decision.compiling.small_kernels import first_word
from decision.engine.kernels.server import engine
from decision.files.text import write_files
from decision.model.computer import check_memory
from decision.model.errors import ConfigError, PolicyError
from decision.policies.checks import check_estimate
from decision.policies.loading import reset_policy
from decision.policies.policy import Plan, Policy
from decision.policies.prepared import prepare
from decision.policies.registry import find_policy
from decision.policies.traits import traits_of
from decision.policies.wrappers.supply import supplied
from decision.rl.schedulers.base import SchedulerKernels
from decision.rl.schedulers.decision_points import is_over
from decision.rl.schedulers.own import ChoiceView
from decision.rl.schedulers.own_record import Own, OwnEncoder, OwnScheduler

from .environment import (
    EPISODE_METRICS,
    TAIL_METRICS,
    Begun,
    Environment,
    PlacedJobs,
    begun_in,
    environment_at,
    episode_tail,
    gather,
    new_environments,
    placed_jobs,
)
from .episode import begin_episode, measure_all, run_policy, see, step
from .external import ExternalEngines
from .setup import Rules, Setup

ANY_ROW = -1  # instead of the first row of an episode: any
GO_ON = -2  # instead of it: the present episode goes on
_NO_SUCH_ROW = -3

_OWN = ("state", "sim", "plan", "cycles", "seen", "outlook", "memory")  # of an `Environment`, not shared
_LAZY = ("interval_first", "interval_last")  # room for the worst, most of it never touched


class Outputs(NamedTuple):
    """Where a step of N environments is written: arrays of the caller's, C-contiguous."""

    observation: F4x2  # (N, D)
    mask: I1x2  # (N, A) 1 where an action is valid
    reward: F4  # (N,)
    terminated: B1  # (N,)
    truncated: B1  # (N,)


def new_outputs(envs: int, width: int, actions: int) -> Outputs:
    """Arrays for N environments with observations of `width` numbers."""
    return Outputs(
        observation=np.empty((envs, width), np.float32),
        mask=np.empty((envs, actions), np.int8),
        reward=np.empty(envs, np.float32),
        terminated=np.empty(envs, np.bool_),
        truncated=np.empty(envs, np.bool_),
    )


def check_outputs(out: Outputs, like: Outputs) -> Outputs:
    """Refuse arrays that a step cannot be written into: of other shapes or types than those of `like`.

    Raises:
        ConfigError: naming the array, and what it must be.
    """
    given: Iterable[NDArray[Any]] = out
    wanted: Iterable[NDArray[Any]] = like
    for name, array, model in zip(out._fields, given, wanted, strict=True):
        if array.shape != model.shape or array.dtype != model.dtype or not array.flags.c_contiguous:
            found = f"found {array.dtype} {array.shape}"
            raise ConfigError(f"out.{name}: must be C-contiguous {model.dtype} {model.shape}; {found}")
    return out


class Batch:
    """N environments of one kind.

    Args:
        setup: what they share.
        envs: N.
        threads: that step them.

    Raises:
        ConfigError: if there is not enough memory for them.
    """

    def __init__(self, setup: Setup, envs: int, threads: int) -> None:
        compile_ahead(engine, *setup.scheduler.entries, _play_part)
        (one,) = new_environments(setup, 1)
        own = [named for bundle in _OWN for named in getattr(one, bundle).arrays().items()]
        least = sum({id(array): array.nbytes for name, array in own if name not in _LAZY}.values())
        check_memory("environments", envs, least)
        self.setup, self.kernels = setup, setup.scheduler.kernels()
        self.envs = gather(new_environments(setup, envs), _OWN, _LAZY)
        self.addresses = np.array([[bundle.address for bundle in env] for env in self.envs])
        self.final = np.zeros((envs, *setup.encoder.shape), np.float32)
        self.final_mask = np.zeros((envs, setup.encoder.actions), np.int8)
        self.metrics = np.zeros((envs, len(self.metric_names)))
        self._cores = len(setup.platform.hosts)
        self._external = ExternalEngines(setup, self.envs) if setup.engine is not None else None
        if self._external is not None:  # threads wait for Batsims, which run side by side
            threads = envs
        self._bounds = np.linspace(0, envs, min(threads, envs) + 1).astype(int).tolist()
        self._go_on, self._once = np.full(envs, GO_ON), np.ones(envs, np.int64)
        self._pool = ThreadPoolExecutor(len(self._bounds) - 2) if len(self._bounds) > 2 else None

    @property
    def metric_names(self) -> tuple[str, ...]:
        """EPISODE_METRICS, and the scheduler's own."""
        return (*EPISODE_METRICS, *self.setup.scheduler.metrics)

    def new_outputs(self) -> Outputs:
        """Arrays that a step of all environments is written to."""
        return new_outputs(len(self.envs), self.setup.encoder.shape[0], self.setup.encoder.actions)

    def seed(self, seeds: Sequence[int]) -> None:
        """Start the random numbers of each environment."""
        for env, seed in zip(self.envs, seeds, strict=True):
            env.progress.word[0] = first_word(seed % 2**63, 0)

    def reset(self, first: NDArray[np.int64], out: Outputs) -> None:
        """New episodes from rows `first` (N,) of the trace, from any where ANY_ROW; GO_ON leaves one as it is.

        Raises:
            ConfigError: if no episode begins with such a row.
        """
        beginnings = self._beginnings(first)
        if (beginnings == _NO_SUCH_ROW).any():
            rows = self.setup.beginnings.row
            which = "a job from" if len(rows) == self.setup.trace.jobs else f"one of {len(rows)} jobs from"
            raise ConfigError(f"first: must be {which} {rows[0]} to {rows[-1]}, or -1; found {first.tolist()}")
        self._check(out)
        self._play(beginnings, np.zeros((len(first), 0), np.int64), np.zeros_like(first), False, out)

    def step(self, actions: NDArray[np.int64], autoreset: bool, out: Outputs) -> None:
        """One choice (N,) in each environment.

        Where an episode ends its last observation, the mask that goes with it and its metrics are written into `final`
        (N, D), `final_mask` (N, A) and `metrics` (N, K) of this object. With `autoreset` the next one then begins at
        once, and is what `out` has the observation of; else nothing happens there any more.
        """
        self._check(out)
        self._play(self._go_on, actions.reshape(len(self._go_on), 1), self._once, autoreset, out)

    def _check(self, out: Outputs) -> None:
        """Refuse arrays that kernels would write outside of. Raises ConfigError."""
        self.setup.encoder.check_arrays(self._cores, out.observation, out.mask)

    def _beginnings(self, first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices into `Beginnings` of these rows."""
        rows = self.setup.beginnings.row
        index = np.minimum(np.searchsorted(rows, first), len(rows) - 1)
        index = np.where(rows[index] == first, index, _NO_SUCH_ROW)
        return np.where((first == ANY_ROW) | (first == GO_ON), first, index)

    def _play(
        self,
        beginnings: NDArray[np.int64],
        actions: NDArray[np.int64],
        steps: NDArray[np.int64],
        autoreset: bool,
        out: Outputs,
    ) -> None:
        """Let each thread play its part of the environments; the caller's thread takes the first."""
        rules, kernels = self.setup.rules, self.kernels
        asked, ends = _Asked(beginnings, actions, steps, autoreset), _Ends(self.final, self.final_mask, self.metrics)

        def play(begin: int, end: int) -> bool:
            return _play_part(self.addresses, rules, kernels, begin, end, asked, out, ends)

        parts = list(zip(self._bounds[:-1], self._bounds[1:], strict=True))
        futures = [self._pool.submit(play, *part) for part in parts[1:] if self._pool]
        refused = [play(*parts[0])] + [future.result() for future in futures]
        self.check()
        if any(refused):
            raise PolicyError(f"scheduler {self.setup.scheduler.name}: the engine cannot carry out what it planned")

    def state(self) -> dict[str, NDArray]:
        """All that `restore` needs: where each episode began, what was chosen since, and the random numbers to come."""
        all_progress = [env.progress for env in self.envs]
        steps = np.array([progress.nb_steps for progress in all_progress], np.int64)
        return {
            "first": np.array([progress.first_row for progress in all_progress], np.int64),
            "steps": steps,
            "actions": np.stack([progress.actions[: steps.max()] for progress in all_progress]),
            "word": np.concatenate([progress.word for progress in all_progress]),
        }

    def restore(self, state: dict[str, NDArray], out: Outputs) -> None:
        """Make the choices of a saved state again; then everything is as it was.

        Raises:
            ConfigError: if it is of other environments.
        """
        first, actions, steps = (np.ascontiguousarray(state[name], np.int64) for name in ("first", "actions", "steps"))
        shapes = (first.shape, steps.shape, actions.shape[:-1], state["word"].shape)
        room = min(actions.shape[-1], self.setup.rules.steps)
        fits = shapes == (self._go_on.shape,) * 4 and first.min() >= 0 and 0 <= steps.min() <= steps.max() <= room
        beginnings = self._beginnings(first)
        if not fits or beginnings.min() < 0:
            raise ConfigError(
                "the saved state is of other environments; make as many, of the same workload and options"
            )
        self._check(out)
        self._play(beginnings, actions, steps, False, out)
        for env, word in zip(self.envs, state["word"], strict=True):
            env.progress.word[0] = word

    def check(self) -> None:
        """Raise what an external engine could not raise through a kernel, since the last look."""
        if self._external is not None:
            self._external.check()

    def close(self) -> None:
        """End the threads, and Batsims; the environments stay readable."""
        if self._external is not None:  # first, because threads may wait for one
            self._external.close()
        if self._pool:
            self._pool.shutdown()


class OwnBatch(Batch):
    """N environments of a class of one's own: compiled code steps them all, then Python looks at each."""

    def __init__(self, setup: Setup, envs: int, threads: int) -> None:
        super().__init__(setup, envs, threads)
        assert isinstance(setup.encoder, OwnEncoder)
        inner = setup.encoder.inner
        self._shipped = new_outputs(envs, inner.shape[0], inner.actions)  # what the base's kernels write
        self._own: list[Own] = []  # what asks the class in each environment
        for i, env in enumerate(self.envs):
            assert isinstance(setup.scheduler, OwnScheduler)
            plan, ids = Plan(env.plan, env.state, env.facts), _JobIds(env, setup.trace.ids)
            view = ChoiceView(env.seen, env.facts, ids, env.cycles, plan, partial(self._measured, i))
            view.observation, view.valid = self._shipped.observation[i], self._shipped.mask[i]
            own = Own(setup.scheduler)
            own.look(view, plan, env.memory)
            self._own.append(own)
        self._returns = np.zeros(envs)

    def _measured(self, i: int) -> dict[str, float]:
        """The metrics of an episode so far."""
        found = np.zeros(len(self.metric_names))
        _measure(self.addresses[i], self.kernels, found)
        return dict(zip(self.metric_names, found.tolist(), strict=True))

    def _play(
        self,
        beginnings: NDArray[np.int64],
        actions: NDArray[np.int64],
        steps: NDArray[np.int64],
        autoreset: bool,
        out: Outputs,
    ) -> None:
        if beginnings is not self._go_on:
            self._begin(beginnings)
        out.reward[:] = 0.0
        count = steps.tolist()
        for k in range(actions.shape[1]):
            live = [i for i, own in enumerate(self._own) if k < count[i] and not own.view.over]
            chosen, once = np.ascontiguousarray(actions[:, k : k + 1]), np.zeros(len(actions), np.int64)
            for i in live:
                self._own[i].act(int(chosen[i, 0]))
                once[i] = 1
            super()._play(self._go_on, chosen, once, False, self._shipped)
            for i in live:
                own = self._own[i]
                own.view.paid = float(self._shipped.reward[i])
                self._note_over(i)
                out.reward[i] = earned = own.reward() if own.pays else own.view.paid
                self._returns[i] += earned
        self._see(range(len(count)), out)
        out.terminated[:], out.truncated[:] = self._shipped.terminated, self._shipped.truncated
        ended = [i for i, own in enumerate(self._own) if own.view.over]
        if not ended:
            return
        if self._own[0].pays:
            self.metrics[ended, _RETURN] = self._returns[ended]
        if autoreset:
            self.final[ended], self.final_mask[ended] = out.observation[ended], out.mask[ended]
            again = self._go_on.copy()
            again[ended] = ANY_ROW
            self._begin(again)
            self._see(ended, out)

    def _begin(self, beginnings: NDArray[np.int64]) -> None:
        """New episodes where they are asked for."""
        none = np.zeros(len(beginnings), np.int64)
        super()._play(beginnings, none[:, None], none, False, self._shipped)
        for i in np.flatnonzero(beginnings != GO_ON).tolist():
            self._own[i].begin()
            self._note_over(i)
            self._returns[i] = 0.0

    def _note_over(self, i: int) -> None:
        self._own[i].view.over = bool(self._shipped.terminated[i] or self._shipped.truncated[i])

    def _see(self, which: Iterable[int], out: Outputs) -> None:
        """What Python observes of these environments."""
        for i in which:
            self._own[i].write(out.observation[i], out.mask[i])


def make_batch(setup: Setup, envs: int, threads: int) -> Batch:
    """N environments of what the setup says, kernels or a class of one's own. Raises ConfigError as `Batch`."""
    return (OwnBatch if isinstance(setup.scheduler, OwnScheduler) else Batch)(setup, envs, threads)


_RETURN = EPISODE_METRICS.index("return")


@kernel
def _measure(addresses: I8, kernels: SchedulerKernels, out: F8) -> bool:
    measure_all(environment_at(addresses), kernels, out)
    return True


class _Asked(NamedTuple):
    """What is to be done in N environments."""

    beginnings: I8  # (N,) of a new episode, or GO_ON
    actions: I8x2  # (N, S)
    steps: I8  # (N,) how many of them are taken
    autoreset: bool  # whether another episode begins where one ends


class _Ends(NamedTuple):
    """What is written where an episode ends: its last observation and mask, and its metrics."""

    final: F4x2  # (N, D)
    mask: I1x2  # (N, A)
    metrics: F8x2  # (N, K)


@kernel
def _play_part(
    addresses: I8x2,
    rules: Rules,
    kernels: SchedulerKernels,
    begin: int,
    end: int,
    asked: _Asked,
    out: Outputs,
    ends: _Ends,
) -> bool:
    """In the environments begin .. end - 1: a new episode where one is asked for, then the choices.

    Returns whether a plan could not be carried out.
    """
    refused = False
    for i in range(begin, end):
        env = environment_at(addresses[i])
        out.reward[i] = 0.0
        if asked.beginnings[i] != GO_ON:
            begin_episode(env, rules, kernels, asked.beginnings[i])
        for k in range(asked.steps[i]):
            out.reward[i] = step(env, rules, kernels, asked.actions[i, k]) if not is_over(env.progress) else 0.0
        out.terminated[i] = env.progress.terminated == 1
        out.truncated[i] = env.progress.truncated == 1 and not out.terminated[i]
        see(env, kernels, out.observation[i], out.mask[i])
        if is_over(env.progress):
            refused |= env.progress.refused_plan == 1
            measure_all(env, kernels, ends.metrics[i])
            if asked.autoreset:
                ends.final[i] = out.observation[i]
                ends.mask[i] = out.mask[i]
                begin_episode(env, rules, kernels, ANY_ROW)
                see(env, kernels, out.observation[i], out.mask[i])
    return refused


# --- Evaluation: learned choices and heuristics over the same episodes, with the same metrics ----------------------

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
        # side by side, as many as fit into memory: a network is asked once for all of them
        chunks = [rows[at : at + TOGETHER] for at in range(0, len(rows), TOGETHER)]
        tables, of_chunks = zip(*(_run_together(chosen, setup, chunk, placed) for chunk in chunks), strict=True)
        table, names = np.concatenate(tables), of_chunks[0]
    else:
        raise ConfigError(f"policy {policy} is neither a heuristic nor a function of observations")
    return {name: table[:, k] for k, name in enumerate(names)}


def random_rows(setup: Setup, episodes: int, seed: int | Sequence[int]) -> NDArray[np.int64]:
    """The jobs with which so many random episodes begin."""
    rows = setup.beginnings.row
    return rows[np.random.default_rng(seed).integers(len(rows), size=episodes)]


Table = tuple[NDArray[np.float64], tuple[str, ...]]  # (E, K), and K names


def _run_together(choose: ChooseAll, setup: Setup, first: NDArray[np.int64], placed: list[PlacedJobs] | None) -> Table:
    batch = make_batch(setup, len(first), 1)
    out = batch.new_outputs()
    batch.reset(first, out)
    while not (out.terminated | out.truncated).all():
        actions = np.ascontiguousarray(choose(out.observation, out.mask), np.int64)
        batch.step(actions, False, out)
    batch.close()
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
        for row in np.flatnonzero(setup.trace.truth.estimate[: setup.trace.jobs] == 0)[:1].tolist():
            check_estimate(setup.trace.ids[row], np.nan, "the environment's workload")
    if setup.supply is not None:
        policy = supplied(policy, setup.supply)
    batch = make_batch(setup, 1, 1)
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
    where = batch.addresses[which], batch.setup.rules, batch.kernels
    could = bool(_play(*where, policy, memory, beginning, out))
    batch.check()
    return could


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
