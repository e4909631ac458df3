"""Learning to rank (`decision.policies.ranking`) by evolution: whole schedules are compared.

A schedule of a thousand jobs takes some milliseconds, and there are hundreds of numbers to learn, not thousands. So
hundreds of schedules for one step are affordable, no gradient is needed, and what is minimised is what is wanted: mean
waiting time and mean bounded slowdown when all jobs are done, without discount.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from decision.cores import available_cores
from decision.envs import METRICS, Setup
from decision.envs.batch import Batch
from decision.envs.evaluation import play_ranking
from decision.policies.ranking import KEEP, WEIGHTS, first_guess, random_units, smallest_area_first

from .config import TrainConfig
from .evolution import CmaEs

_AVERAGED = 0.05  # share of the newest mean in what is learned: single means are noisy
_UNITS_SPREAD = 0.3
_BOTH = 0.25  # of either ratio in what is minimised, beside the larger one
_EASY, _FIRST_FIT = range(2)  # references
_WAIT, _SLOWDOWN = METRICS.index("waiting_time"), METRICS.index("bounded_slowdown")


class RankingLearner:
    """Candidates, and the sequences of jobs that they schedule.

    Args:
        config: how it learns.
        setup: of the schedules.
        metrics: of the schedules, for the curves.
    """

    def __init__(self, config: TrainConfig, setup: Setup, metrics: tuple[str, ...]) -> None:
        self._metrics = metrics
        self.columns: tuple[str, ...] = ("episodes", "reward", *metrics, "best_reward", "spread")
        self._config, self._evolve = config, config.evolve
        self._rng = np.random.default_rng(config.seed)
        first = first_guess() + random_units(self._rng, _UNITS_SPREAD)
        self._evolution = CmaEs(first.ravel(), self._evolve.spread, self._evolve.population)
        self._average = first.ravel()
        threads = self._evolve.threads or available_cores()
        self._batch = Batch(threads, setup.trace, setup.platform, setup.rules, setup.encoder, 1)
        self._pool = ThreadPoolExecutor(threads)
        self._references = [smallest_area_first(), smallest_area_first()]
        self._references[_EASY][KEEP, 0], self._references[_FIRST_FIT][KEEP, 0] = 1.0, -1.0  # always, never

    @property
    def iteration(self) -> int:
        """Generations."""
        return self._evolution.generation

    @property
    def steps(self) -> int:
        """Jobs that candidates have placed."""
        return self.iteration * self._evolve.population * self._evolve.sequences * self._config.env.jobs

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self._evolve.steps

    def iterate(self) -> dict[str, float]:
        """A generation."""
        first = self._rng.integers(self._batch.trace.jobs, size=self._evolve.sequences)
        candidates = self._evolution.ask(self._rng).reshape(-1, *WEIGHTS)
        played = self._play([*self._references, *candidates], first)
        references, metrics = played[: len(self._references)], played[len(self._references) :]
        costs = np.array([self._cost(own, references) for own in metrics])
        self._evolution.tell(costs)
        self._average += _AVERAGED * (self._evolution.mean - self._average)
        means = dict(zip(METRICS, np.mean(metrics, axis=(0, 1)).tolist(), strict=True))
        return {
            "episodes": len(candidates) * len(first),
            "reward": -float(costs.mean()),
            **{name: means[name] for name in self._metrics},
            "best_reward": -float(costs.min()),
            "spread": self._evolution.spread,
        }

    def _play(self, policies: list[NDArray[np.float64]], first: NDArray[np.int64]) -> NDArray[np.float64]:
        """(policies, sequences, METRICS); which thread plays what makes no difference."""
        metrics = np.zeros((len(policies), len(first), len(METRICS)))
        episodes = [(p, k) for p in range(len(policies)) for k in range(len(first))]

        def play(thread: int) -> None:
            world = self._batch.worlds[thread]
            for p, k in episodes[thread :: len(self._batch.worlds)]:
                play_ranking(world, self._batch.rules, policies[p], first[k], metrics[p, k])

        list(self._pool.map(play, range(len(self._batch.worlds))))
        return metrics

    def _cost(self, own: NDArray[np.float64], references: NDArray[np.float64]) -> float:
        """Of (sequences, METRICS): mostly the larger of its waiting time and weighted slowdown over the best of SAF's.

        SAF waits least with first-fit, and has the least slowdown with EASY. A sequence counts by the square root of
        what it costs SAF: else the few worst would be all that counts.
        """
        wait = _ratio(own[:, _WAIT], references[_FIRST_FIT][:, _WAIT])
        slowdown = _ratio(own[:, _SLOWDOWN], references[_EASY][:, _SLOWDOWN])
        done = min(self.steps / self._evolve.steps, 1.0)
        slowdown *= (1 - done) * self._evolve.slowdown_first + done * self._evolve.slowdown_last
        return max(wait, slowdown) + _BOTH * (wait + slowdown)

    def weights(self) -> dict[str, torch.Tensor]:
        """The average over the last generations' means."""
        return {"weights": torch.from_numpy(self._average.reshape(WEIGHTS).copy())}

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


def _ratio(own: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """A mean of their ratios; a second is added to both, so that where nothing waits nothing is infinite."""
    own, reference = own + 1, reference + 1
    return float((own / np.sqrt(reference)).sum() / np.sqrt(reference).sum())
