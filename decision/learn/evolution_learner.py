"""Learning the numbers of a compiled policy by evolution: whole schedules are compared.

A schedule of a thousand jobs takes some milliseconds, and there are hundreds of numbers to learn, not thousands. So
hundreds of schedules for one step are affordable, no gradient is needed, and what is minimised is what is wanted: means
over all jobs when all are done, without discount. Networks may be learned so, too: `NetworkEvolution`.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from decision.computer.cores import available_cores
from decision.envs import Setup, evaluate
from decision.envs.batch import Batch
from decision.envs.evaluation import ChooseAll, play_episode
from decision.learned.base import ChoosingScheduler, ParametricScheduler, Scheduler
from decision.policies.around.supplied import supplied
from decision.policies.policy import Policy
from decision.policies.prepared import prepare

from .actor import NetworkActor
from .algorithm_settings import CmaEsConfig
from .config import TrainConfig
from .evolution import CmaEs
from .networks import untrained_network

Play = Callable[[Sequence[Any]], list[Any]]
"""What makes of each item that a generation plays what was found of it; an item depends on no other."""

_AVERAGED = 0.05  # share of the newest mean in what is learned: single means are noisy


class EvolutionLearner:
    """Candidates, and the sequences of jobs that they schedule.

    Attributes:
        play_elsewhere: does what `play` does, by others; None for this process.

    Args:
        config: how it learns.
        scheduler: what learns.
        setup: of the schedules.
    """

    def __init__(self, config: TrainConfig, scheduler: ParametricScheduler, setup: Setup) -> None:
        self._begin(config, scheduler.curves, setup.beginnings.row, setup.rules.jobs)
        self._setup = setup
        self._scheduler = scheduler
        self._go_from(scheduler.first_weights(self._rng).ravel())
        threads = self._evolve.threads or available_cores()
        self._batch = Batch(setup, threads, 1)
        self._pool = ThreadPoolExecutor(threads)
        self._references = scheduler.references()

    def _begin(self, config: TrainConfig, curves: tuple[str, ...], rows: NDArray[np.int64], jobs: int) -> None:
        """How it learns, the jobs with which sequences may begin, and how many jobs a sequence has."""
        assert isinstance(config.learn, CmaEsConfig)
        self._config, self._evolve, self._curves = config, config.learn, curves
        self._rows, self._jobs = rows, jobs
        self.columns: tuple[str, ...] = ("episodes", "reward", *curves, "best_reward", "spread")
        self._rng = np.random.default_rng(config.seed)
        self.play_elsewhere: Play | None = None

    def _go_from(self, first: NDArray[np.float64]) -> None:
        self._evolution = CmaEs(first, self._evolve.spread, self._evolve.population)
        self._average = first

    @classmethod
    def make(cls, config: TrainConfig, scheduler: Scheduler, setup: Setup) -> "EvolutionLearner":
        """For a scheduler's schedules, or a network's episodes."""
        if isinstance(scheduler, ChoosingScheduler):
            return NetworkEvolution(config, scheduler, setup)
        assert isinstance(scheduler, ParametricScheduler)
        return cls(config, scheduler, setup)

    @property
    def iteration(self) -> int:
        """Generations."""
        return self._evolution.generation

    @property
    def steps(self) -> int:
        """Jobs that candidates have placed."""
        return self.iteration * self._evolve.population * self._evolve.sequences * self._jobs

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self._evolve.steps

    def iterate(self) -> dict[str, float]:
        """A generation."""
        first = self._draw()
        candidates = self._evolution.ask(self._rng)
        costs, means = self._judge(candidates, first)
        self._evolution.tell(costs)
        self._average += _AVERAGED * (self._evolution.mean - self._average)
        return {
            "episodes": len(candidates) * len(first),
            "reward": -float(costs.mean()),
            **{name: means[name] for name in self._curves},
            "best_reward": -float(costs.min()),
            "spread": self._evolution.spread,
        }

    def _draw(self) -> NDArray[np.int64]:
        """Rows with which the sequences of a generation begin."""
        return self._rows[self._rng.integers(len(self._rows), size=self._evolve.sequences)]

    def _judge(
        self, candidates: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """What each of (n, P) candidates costs over sequences from these rows on, and means of the metrics."""
        played = self._played([(each.ravel(), first) for each in (*self._references, *candidates)])
        references, own = played[: len(self._references)], played[len(self._references) :]
        done = min(self.steps / self._evolve.steps, 1.0)
        compared = [self._by_name(table) for table in references]
        env = self._config.env
        costs = np.array([self._scheduler.cost(env, self._by_name(table), compared, done) for table in own])
        return costs, dict(zip(self._batch.metric_names, np.mean(own, axis=(0, 1)).tolist(), strict=True))

    def _by_name(self, table: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Each metric of (sequences, metrics)."""
        return {name: table[:, k] for k, name in enumerate(self._batch.metric_names)}

    def _played(self, items: Sequence[Any]) -> list[Any]:
        return (self.play_elsewhere or self.play)(items)

    def play(self, items: Sequence[Any]) -> list[Any]:
        """For each candidate (P,) with rows: (sequences, metrics); which thread plays what makes no difference."""
        shape = self._scheduler.weights
        policies = [self._scheduler.policy(each.reshape(shape), str(k)) for k, (each, _) in enumerate(items)]
        found = [np.zeros((len(first), len(self._batch.metric_names))) for _, first in items]
        episodes = [(p, k) for p, (_, first) in enumerate(items) for k in range(len(first))]
        threads = len(self._batch.envs)

        def play(thread: int) -> None:
            env = self._batch.envs[thread]
            asked = [prepare(self._supplied(policy), env.facts, ()) for policy in policies]
            for p, k in episodes[thread::threads]:
                memory = asked[p].memory_for(env.state, env.plan)  # an episode begins without one
                play_episode(self._batch, thread, asked[p].address, memory.address, int(items[p][1][k]), found[p][k])

        list(self._pool.map(play, range(threads)))
        return found

    def _supplied(self, policy: Policy) -> Policy:
        """The policy under the supply of power of the schedules, if there is one."""
        return policy if self._setup.supply is None else supplied(policy, self._setup.supply)

    def policy(self) -> Policy | ChooseAll:
        """That of the average over the last generations' means."""
        return self._scheduler.policy(self._average.reshape(self._scheduler.weights), self._scheduler.name)

    def weights(self) -> dict[str, torch.Tensor]:
        """The average over the last generations' means."""
        return {"weights": torch.from_numpy(self._average.reshape(self._scheduler.weights).copy())}

    def state(self) -> dict[str, Any]:
        """All from which `restore` goes on exactly as from here."""
        arrays = {**self._evolution.state(), "average": self._average.copy()}
        return {
            **{name: torch.from_numpy(array) for name, array in arrays.items()},
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        arrays = {name: value.numpy() for name, value in state.items() if name != "rng"}
        self._evolution.restore(arrays)
        self._average = arrays["average"].copy()
        self._rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


class NetworkEvolution(EvolutionLearner):
    """Networks as candidates, and the episodes that they play; what is minimised is minus the mean return.

    Args:
        config: how it learns.
        scheduler: what learns.
        setup: of the environments.
    """

    def __init__(self, config: TrainConfig, scheduler: ChoosingScheduler, setup: Setup) -> None:
        self._begin(config, (*scheduler.curves, *scheduler.metrics), setup.beginnings.row, setup.rules.jobs)
        self._setup = setup
        assert config.network is not None
        encoder, layout = setup.encoder, scheduler.layout(setup.encoder)
        self._network = untrained_network(config.network, encoder.shape[0], encoder.actions, layout, config.seed)
        self._draws = scheduler.draws_of(config.env)
        self._go_from(parameters_to_vector(self._network.parameters()).detach().numpy().astype(float))

    def _judge(
        self, candidates: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """All candidates play the same episodes."""
        rows = np.unique(first).tolist()
        played = self._played([(each, rows) for each in candidates])
        costs = np.array([-each["return"].mean() for each in played])
        return costs, {name: float(np.mean([each[name].mean() for each in played])) for name in self._curves}

    def play(self, items: Sequence[Any]) -> list[Any]:
        """For each candidate (P,) with rows, the metrics of the episodes that begin there."""
        return [evaluate(self._actor(each), self._setup, first=rows) for each, rows in items]

    def _actor(self, weights: NDArray[np.float64]) -> ChooseAll:
        vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), self._network.parameters())
        return NetworkActor(self._network, self._draws).together

    def policy(self) -> ChooseAll:
        """The choices of the average over the last generations' means."""
        return self._actor(self._average)

    def weights(self) -> dict[str, torch.Tensor]:
        """Those of the average over the last generations' means."""
        self._actor(self._average)
        return self._network.state_dict()

    def close(self) -> None:
        """There are no threads."""
