"""Many environments side by side, stepped by one call per thread that holds no lock of Python's."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.bundle import bundle_at
from decision.engine.arrays import Rows, Sim, Truth, grow_sim, new_rows, new_sim
from decision.features.choices import MOST_REFUSALS
from decision.features.cycles import Cycles, new_cycles
from decision.features.encoder import Encoder
from decision.jit import kernel
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.policies.draws import first_word
from decision.policies.plan import PlanArrays, new_plan
from decision.state.cluster import ClusterState, PlatformFacts, new_state, platform_facts

from .arena import gather
from .episode import begin_episode, look, step
from .outputs import Outputs
from .tally import (
    FIRST,
    METRICS,
    N_NUMBERS,
    N_TOTALS,
    STEPS,
    TERMINATED,
    TRUNCATED,
    Episode,
    Rules,
    World,
    is_over,
    measure,
)
from .trace import Trace

OWN = ("state", "sim", "plan", "cycles")  # of a World, not shared
LAZY = ("interval_first", "interval_last")  # room for the worst, most of it never touched
KEEP = -2  # instead of the first job of an episode: the present one goes on


class Batch:
    """N environments of one trace on one platform.

    Args:
        envs: N.
        trace: the jobs.
        platform: the hosts.
        rules: what an episode is.
        encoder: what is observed.
        threads: that step them.
    """

    def __init__(
        self, envs: int, trace: Trace, platform: Platform, rules: Rules, encoder: Encoder, threads: int
    ) -> None:
        self.rules, self.encoding, self.trace = rules, encoder.encoding, trace
        facts, pstates = platform_facts(platform, energy=False)
        rows = new_rows(0, energy=False)
        worlds = [new_world(facts, pstates, rows, trace, rules) for _ in range(envs)]
        self.worlds = gather(worlds, OWN, LAZY)
        addresses = [[bundle.address for bundle in world] for world in self.worlds]
        self.addresses = np.array(addresses)  # (N, fields of World)
        self._bounds = np.linspace(0, envs, min(threads, envs) + 1).astype(int).tolist()
        self._keep, self._once = np.full(envs, KEEP), np.ones(envs, np.int64)
        self.final = np.zeros((envs, *encoder.shape), np.float32)
        self.metrics = np.zeros((envs, len(METRICS)))
        self._pool = ThreadPoolExecutor(len(self._bounds) - 2) if len(self._bounds) > 2 else None

    def seed(self, seeds: Sequence[int]) -> None:
        """Begin the random numbers of each environment anew."""
        for world, seed in zip(self.worlds, seeds, strict=True):
            world.episode.word[0] = first_word(seed % 2**63, 0)

    def reset(self, first: NDArray[np.int64], out: Outputs) -> None:
        """New episodes from rows `first` (N,) of the trace, from random ones where -1; KEEP leaves one as it is.

        Raises:
            ConfigError: if there is no such row.
        """
        if first.min() < KEEP or first.max() >= self.trace.jobs:
            raise ConfigError(f"first: must be a job from 0 to {self.trace.jobs - 1}, or -1; found {first.tolist()}")
        self._play(first, np.zeros((len(first), 0), np.int64), np.zeros_like(first), False, out)

    def step(self, actions: NDArray[np.int64], autoreset: bool, out: Outputs) -> None:
        """One choice (N,) in each environment.

        Where an episode ends its last observation and its METRICS are written into `final` (N, D) and `metrics` (N, K)
        of this object. With `autoreset` the next one then begins at once, and is what `out` has the observation of;
        else nothing happens there any more.
        """
        self._play(self._keep, actions.reshape(len(self._keep), 1), self._once, autoreset, out)

    def _play(self, *arguments: Any) -> None:
        *given, out = arguments
        self._in_parts(play_some, *given, *out, self.final, self.metrics)

    def _in_parts(self, function: Any, *arguments: Any) -> None:
        """Call a kernel for a part of the environments per thread; the caller's thread takes the first."""
        shared: tuple[Any, ...] = (self.addresses, self.rules, self.encoding)
        parts = list(zip(self._bounds[:-1], self._bounds[1:], strict=True))
        futures = [self._pool.submit(function, *shared, *part, *arguments) for part in parts[1:] if self._pool]
        function(*shared, *parts[0], *arguments)
        for future in futures:
            future.result()

    def state(self) -> dict[str, NDArray]:
        """All that `restore` needs: where each episode began, what was chosen since, and the random numbers to come."""
        number = np.stack([world.episode.number for world in self.worlds])
        steps = int(number[:, STEPS].max())
        return {
            "first": number[:, FIRST].copy(),
            "steps": number[:, STEPS].copy(),
            "actions": np.stack([world.episode.actions[:steps] for world in self.worlds]),
            "word": np.concatenate([world.episode.word for world in self.worlds]),
        }

    def restore(self, state: dict[str, NDArray], out: Outputs) -> None:
        """Make the choices of a saved state again; then everything is as it was.

        Raises:
            ConfigError: if it is of other environments.
        """
        first, actions, steps = (np.ascontiguousarray(state[name], np.int64) for name in ("first", "actions", "steps"))
        if len(first) != len(self.worlds) or not 0 <= first.min() <= first.max() < self.trace.jobs:
            raise ConfigError(
                "the saved state is of other environments; make as many, of the same workload and options"
            )
        self._play(first, actions, steps, False, out)
        for world, word in zip(self.worlds, state["word"], strict=True):
            world.episode.word[0] = word

    def close(self) -> None:
        """End the threads."""
        if self._pool:
            self._pool.shutdown()


def new_world(facts: PlatformFacts, pstates: NDArray[np.int32], rows: Rows, trace: Trace, rules: Rules) -> World:
    """One environment's arrays, with room for all that an episode can come to: nothing grows."""
    state = _roomy_state(facts, pstates, trace, rules)
    own = trace.truth._replace(workload_end=trace.truth.workload_end.copy())
    steps = rules.jobs + (2 + MOST_REFUSALS) * rules.arrivals + 2  # arrivals, ends and refusals begin cycles
    return World(
        state=state,
        facts=facts,
        truth=own,
        sim=_roomy_sim(own, len(pstates), rules),
        rows=rows,
        plan=new_plan(state),
        cycles=new_cycles(state),
        episode=Episode(
            number=np.zeros(N_NUMBERS, np.int64),
            total=np.zeros(N_TOTALS),
            word=np.zeros(1, np.uint64),
            actions=np.zeros(steps, np.int32),
            runtime=trace.runtime,
        ),
    )


def _roomy_state(facts: PlatformFacts, pstates: NDArray[np.int32], trace: Trace, rules: Rules) -> ClusterState:
    """A job of s out of H hosts has at most min(s, H - s + 1) intervals of them. Pages never used cost nothing."""
    hosts = len(pstates)
    size = trace.truth.size[: trace.jobs].astype(np.int64)
    intervals = int(np.minimum(size, hosts - size + 1).max()) * (rules.jobs + hosts) + 16 * hosts + 1024
    running = 4 * hosts + 64
    return new_state(facts, pstates, rules.arrivals)._replace(
        interval_first=np.zeros(intervals, np.int32),
        interval_last=np.zeros(intervals, np.int32),
        running=np.zeros(running, np.int32),
        expected_end=np.zeros(running),
        ended=np.zeros(running, np.int32),
    )


def _roomy_sim(truth: Truth, hosts: int, rules: Rules) -> Sim:
    """Every host may end a job and begin another at one instant, and all jobs may come."""
    jobs, room = rules.arrivals, 16 * hosts + 1024
    sim = grow_sim(new_sim(truth, hosts, 0, jobs), jobs, room)
    logs = {name: getattr(sim, name) for name in ("log_kind", "log_time", "log_arg", "log_value")}
    return sim._replace(**{name: np.zeros(jobs + room, log.dtype) for name, log in logs.items()})


_state_at, _facts_at, _truth_at, _sim_at = (bundle_at(kind) for kind in (ClusterState, PlatformFacts, Truth, Sim))
_rows_at, _plan_at, _cycles_at, _episode_at = (bundle_at(kind) for kind in (Rows, PlanArrays, Cycles, Episode))


@kernel
def _world(row):
    """The environment whose bundles are at these addresses."""
    return World(
        _state_at(row[0]),
        _facts_at(row[1]),
        _truth_at(row[2]),
        _sim_at(row[3]),
        _rows_at(row[4]),
        _plan_at(row[5]),
        _cycles_at(row[6]),
        _episode_at(row[7]),
    )


@kernel
def play_some(
    addresses,
    rules,
    encoding,
    begin,
    end,
    first,
    actions,
    steps,
    autoreset,
    observation,
    mask,
    reward,
    terminated,
    truncated,
    final,
    metrics,
):
    """In the environments begin .. end - 1: a new episode from row first[i] (unless KEEP), then steps[i] choices."""
    for i in range(begin, end):
        world = _world(addresses[i])
        reward[i] = 0.0
        if first[i] != KEEP:
            begin_episode(world, rules, encoding, first[i])
        for k in range(steps[i]):
            reward[i] = step(world, rules, encoding, actions[i, k]) if not is_over(world) else 0.0
        terminated[i] = world.episode.number[TERMINATED] == 1
        truncated[i] = world.episode.number[TRUNCATED] == 1 and not terminated[i]
        look(world, encoding, observation[i], mask[i])
        if is_over(world):
            measure(world, metrics[i])
            if autoreset:
                final[i] = observation[i]
                begin_episode(world, rules, encoding, -1)
                look(world, encoding, observation[i], mask[i])
