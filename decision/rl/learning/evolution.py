"""Learning by evolution: CMA-ES, and what makes whole schedules of its candidates.

A normal distribution adapts its covariance matrix (Hansen, The CMA evolution strategy: a tutorial, arXiv 1604.00772,
with its defaults and positive weights only; the numbers of its equations are in the comments). Read `CmaEs.tell` from
top to bottom. Of more than MOST_FULL numbers only the variances are adapted, and so faster (Ros and Hansen, A simple
modification in CMA-ES achieving linear time and space complexity, PPSN 2008): the covariances of a network's weights
would not fit into memory.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace
from numpy.typing import NDArray
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from decision.batsim.episodes import BatsimForEpisodes
from decision.files.generate.grid5000 import find_cluster
from decision.files.generate.paper_workloads import PUBLISHED_TRACES, grid5000_days
from decision.files.generate.platforms import SwitchTimes, Wanted, grid5000_cluster
from decision.model.computer import available_cores
from decision.model.dates import busy_days
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.composed import ComposedPolicy
from decision.policies.policy import Policy
from decision.policies.prepared import CompiledPolicy, prepare
from decision.policies.wrappers.supply import supplied
from decision.rl.envs import Setup, evaluate, make_setup
from decision.rl.envs.batch import Batch, ChooseAll, play_episode
from decision.rl.envs.setup import without_misfits
from decision.rl.schedulers.base import ChoosingScheduler, ParametricScheduler, Scheduler
from decision.rl.schedulers.joint import EVEN, Joint, JointPolicy, JointSettings

from .acting import NetworkActor
from .config import CmaEsConfig, TrainConfig
from .networks import untrained_network

Vector = NDArray[np.float64]
MOST_FULL = 1000


class CmaEs:
    """Minimises a function of n numbers, which may be noisy, from the order of its values alone.

    Args:
        mean: (n,) where it begins.
        spread: standard deviation of the first candidates.
        population: candidates of a generation, 4 at least.
    """

    def __init__(self, mean: Vector, spread: float, population: int) -> None:
        n = len(mean)
        self._parents = population // 2
        raw = np.log((population + 1) / 2) - np.log(np.arange(1, self._parents + 1))
        self._weights = raw / raw.sum()
        mu = 1 / np.square(self._weights).sum()  # the effective number of parents
        self._mu, self._expected = mu, np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))  # length of N(0, I)
        self._path_rate = (mu + 2) / (n + mu + 5)
        self._damping = 1 + 2 * max(0.0, np.sqrt((mu - 1) / (n + 1)) - 1) + self._path_rate
        self._rank_one_path_rate = (4 + mu / n) / (n + 4 + 2 * mu / n)
        self._rank_one_rate = 2 / ((n + 1.3) ** 2 + mu)
        self._rank_mu_rate = min(1 - self._rank_one_rate, 2 * (mu - 2 + 1 / mu) / ((n + 2) ** 2 + mu))
        self._full = n <= MOST_FULL
        if not self._full:
            faster = (n + 2) / 3
            self._rank_one_rate *= faster
            self._rank_mu_rate = min(1 - self._rank_one_rate, faster * self._rank_mu_rate)
        self.mean, self.spread, self.generation = mean.copy(), spread, 0
        self._covariance = np.eye(n) if self._full else np.ones(n)
        self._path, self._rank_one_path = np.zeros(n), np.zeros(n)
        self._moves = np.zeros((population, n))
        self._look_at_axes()

    def ask(self, rng: np.random.Generator) -> Vector:
        """(population, n) candidates, whose values `tell` takes."""
        moves = rng.standard_normal(self._moves.shape) * self._root
        self._moves = moves @ self._axes.T if self._full else moves  # (38), (39)
        return self.mean + self.spread * self._moves

    def tell(self, values: Vector) -> None:
        """Learn from the (population,) values of the candidates that were asked for last."""
        best = self._moves[np.argsort(values, kind="stable")[: self._parents]]
        move = self._weights @ best  # (41)
        self.mean = self.mean + self.spread * move  # (42)
        self.generation += 1

        whitened = self._axes @ ((self._axes.T @ move) / self._root) if self._full else move / self._root
        keep = 1 - self._path_rate
        self._path = keep * self._path + np.sqrt((1 - keep**2) * self._mu) * whitened  # (43)
        length = float(np.linalg.norm(self._path))

        steady = length / np.sqrt(1 - keep ** (2 * self.generation))
        calm = steady < (1.4 + 2 / (len(move) + 1)) * self._expected
        keep = 1 - self._rank_one_path_rate
        self._rank_one_path = keep * self._rank_one_path + calm * np.sqrt((1 - keep**2) * self._mu) * move  # (45)
        lost = 0.0 if calm else 1 - keep**2
        path = self._rank_one_path
        self._covariance = (
            (1 - self._rank_one_rate * (1 - lost) - self._rank_mu_rate) * self._covariance
            + self._rank_one_rate * (np.outer(path, path) if self._full else path**2)
            + self._rank_mu_rate * ((best.T * self._weights) @ best if self._full else self._weights @ best**2)
        )  # (47)
        self.spread *= float(np.exp(self._path_rate / self._damping * (length / self._expected - 1)))  # (44)
        self._look_at_axes()

    def state(self) -> dict[str, NDArray]:
        """All from which `restore` goes on exactly as from here, between `tell` and `ask`."""
        return {
            "mean": self.mean.copy(),
            "covariance": self._covariance.copy(),
            "paths": np.stack([self._path, self._rank_one_path]),
            "numbers": np.array([self.spread, self.generation]),
        }

    def restore(self, state: Mapping[str, NDArray]) -> None:
        """Go on from a `state`."""
        self.mean, self._covariance = state["mean"].copy(), state["covariance"].copy()
        self._path, self._rank_one_path = state["paths"].copy()
        self.spread, self.generation = float(state["numbers"][0]), int(state["numbers"][1])
        self._look_at_axes()

    def _look_at_axes(self) -> None:
        """Lengths (n,) and directions (n, n), in columns, of the covariance's axes."""
        if not self._full:
            self._root = np.sqrt(np.maximum(self._covariance, 1e-20))
            return
        variances, self._axes = np.linalg.eigh((self._covariance + self._covariance.T) / 2)
        self._root = np.sqrt(np.maximum(variances, 1e-20))


# Learning the numbers of a compiled policy by evolution: whole schedules are compared.
#
# A schedule of a thousand jobs takes some milliseconds, and there are hundreds of numbers to learn, not thousands. So
# hundreds of schedules for one step are affordable, no gradient is needed, and what is minimised is what is wanted:
# means over all jobs when all are done, without discount. Networks may be learned so, too: `NetworkEvolution`.


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
        self._batches.append(self._batch)
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
        self._batches: list[Batch] = []

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
        """How many generations have been judged."""
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
        """Ask for candidates, judge them, and learn from that: a generation."""
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
        weights = (*self._references, *candidates)
        tables = self._played([(numbers.ravel(), first) for numbers in weights])
        references, judged = tables[: len(self._references)], tables[len(self._references) :]
        done = min(self.steps / self._evolve.steps, 1.0)
        compared = [self._by_name(table) for table in references]
        env = self._config.env
        costs = np.array([self._scheduler.cost(env, self._by_name(table), compared, done) for table in judged])
        return costs, dict(zip(self._batch.metric_names, np.mean(judged, axis=(0, 1)).tolist(), strict=True))

    def _by_name(self, table: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Each metric of (sequences, metrics)."""
        return {name: table[:, k] for k, name in enumerate(self._batch.metric_names)}

    def _played(self, items: Sequence[Any]) -> list[Any]:
        return (self.play_elsewhere or self.play)(items)

    def play(self, items: Sequence[Any]) -> list[Any]:
        """For each candidate (P,) with rows: (sequences, metrics); which thread plays what makes no difference."""
        shape = self._scheduler.weights
        policies: list[Policy] = [
            self._scheduler.policy(weights.reshape(shape), str(k)) for k, (weights, _) in enumerate(items)
        ]
        if (supply := self._setup.supply) is not None:  # schedules are made under it, as runs are
            policies = [supplied(policy, supply) for policy in policies]
        tables = [np.zeros((len(first), len(self._batch.metric_names))) for _, first in items]
        episodes = [(p, k) for p, (_, first) in enumerate(items) for k in range(len(first))]
        threads = len(self._batch.envs)

        def play(thread: int) -> None:
            env = self._batch.envs[thread]
            asked = [prepare(policy, env.facts, ()) for policy in policies]
            for p, k in episodes[thread::threads]:
                memory = asked[p].memory_for(env.state, env.plan)  # an episode begins without one
                play_episode(self._batch, thread, asked[p].address, memory.address, int(items[p][1][k]), tables[p][k])

        list(self._pool.map(play, range(threads)))
        return tables

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
        """End the environments, and the threads that play in them."""
        for batch in self._batches:
            batch.close()
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
        played = self._played([(weights, rows) for weights in candidates])
        costs = np.array([-metrics["return"].mean() for metrics in played])
        return costs, {name: float(np.mean([metrics[name].mean() for metrics in played])) for name in self._curves}

    def play(self, items: Sequence[Any]) -> list[Any]:
        """For each candidate (P,) with rows, the metrics of the episodes that begin there."""
        return [evaluate(self._actor(weights), self._setup, first=rows) for weights, rows in items]

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
        """There is nothing to end: no thread plays."""


# --- The joint policy: whole days of several clusters, with all trade-offs at once ---------------------------------

_CHOICES = 100_000  # of a day; no policy needs so many
_LEARNED = 0.8  # share of the days of a cluster that is made
_SWITCHES = SwitchTimes(wake=60.0, sleep=180.0)  # of its servers, as DeepScheduling's authors have them
_STEEP = 10.0  # what is beyond a limit counts so many times
_SHORT = 60.0  # seconds, added to mean waits: where hardly any job waits, ratios say nothing
_SUMS = ("energy_waste", "waiting_time", "switches")  # in the order of TRADED


class JointEvolution(EvolutionLearner):
    """Weights as candidates, and the days that they schedule.

    Args:
        config: how it learns.
        scheduler: what learns.
        platform: servers that sleep.
        workload: jobs of many days, all with a walltime.
        engine: what simulates; None for the embedded engine.

    Raises:
        ConfigError: if the inputs do not fit together, or cannot be simulated.
    """

    def __init__(
        self,
        config: TrainConfig,
        scheduler: Joint,
        platform: Platform,
        workload: Workload,
        engine: BatsimForEpisodes | None = None,
    ) -> None:
        self._limits = config.env
        setups = [replace(setup, engine=engine) for setup in day_setups(config.env, platform, workload)]
        counts = [len(setup.beginnings.row) for setup in setups]
        self._ends = np.cumsum(counts)  # a day's number among those of all clusters
        jobs = sum(int((setup.beginnings.last - setup.beginnings.row).sum()) for setup in setups)
        self._begin(config, scheduler.curves, np.arange(sum(counts)), max(jobs // sum(counts), 1))
        self._go_from(scheduler.first_weights(self._rng))
        self._threads = self._evolve.threads or available_cores()
        self._batches = [Batch(setup, self._threads, 1) for setup in setups]
        self._pool = ThreadPoolExecutor(self._threads)
        self._setup = setups[0]
        for setup in setups:
            JointPolicy(self._average).reset(setup.platform, 0)

    def _draw(self) -> NDArray[np.int64]:
        """As many days of each cluster."""
        days = max(self._evolve.sequences // len(self._ends), 1)
        begins = np.append(0, self._ends[:-1])
        pairs = zip(begins.tolist(), self._ends.tolist(), strict=True)
        return np.concatenate([self._rng.integers(begin, end, days) for begin, end in pairs])

    def _judge(
        self, candidates: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """All candidates schedule the same days with even weights, and every second one with others, new each time."""
        traded = self._rng.dirichlet(EVEN)
        again = np.arange(0, len(first), 2)
        items: list[Any] = [(None, EVEN, int(day)) for day in first]
        for weights in candidates:
            items += [(weights, EVEN, int(day)) for day in first]
            items += [(weights, traded, int(day)) for day in first[again]]
        played = np.array(self._played(items))
        theirs, judged = played[: len(first)], played[len(first) :].reshape(len(candidates), -1, len(_PLAYED))
        even, uneven = judged[:, : len(first)], judged[:, len(first) :]
        cluster = np.searchsorted(self._ends, first, side="right")
        costs = np.zeros(len(candidates))
        for c in range(len(self._ends)):
            here, some = np.flatnonzero(cluster == c), np.flatnonzero(cluster[again] == c)
            costs += [cost_within(ratios(days[here], theirs[here]), self._limits) for days in even]
            costs += [float(traded @ np.log(ratios(days[some], theirs[again][some]))) for days in uneven]
        waste, wait, switches, jobs = even.sum(axis=(0, 1)).tolist()
        days = len(candidates) * len(first)
        means = {"energy_waste": waste / days, "waiting_time": wait / jobs, "switches": switches / days}
        return costs / len(self._ends), means

    def play(self, items: Sequence[Any]) -> list[Any]:
        """For each candidate, or None for first-fit, with the weights of what is traded and a day: (4,) as `play_day`.

        Which thread plays what makes no difference.
        """
        found = np.zeros((len(items), len(_PLAYED)))

        def play(thread: int) -> None:
            for at in range(thread, len(items), self._threads):
                candidate, traded, day = items[at]
                policy = first_fit() if candidate is None else JointPolicy(candidate, traded=traded)
                cluster = int(np.searchsorted(self._ends, day, side="right"))
                batch, before = self._batches[cluster], int(self._ends[cluster - 1]) if cluster else 0
                found[at] = play_day(batch, thread, policy, int(batch.setup.beginnings.row[day - before]))

        list(self._pool.map(play, range(self._threads)))
        return list(found)

    def policy(self) -> JointPolicy:
        """That of the average over the last generations' means."""
        return JointPolicy(self._average)

    def weights(self) -> dict[str, torch.Tensor]:
        """The average over the last generations' means."""
        return {"weights": torch.from_numpy(self._average.copy())}


_PLAYED = (*_SUMS, "arrived")


def play_day(batch: Batch, which: int, policy: CompiledPolicy, row: int) -> NDArray[np.float64]:
    """(4,) waste (joules), sum of waits (seconds), switches, and jobs of a day in one environment of a batch."""
    policy.reset(batch.setup.platform, 0)
    env, out = batch.envs[which], np.zeros(len(batch.metric_names))
    memory = policy.memory_for(env.state)
    play_episode(batch, which, policy.entry.address, memory.address, row, out)
    found: NDArray[np.float64] = out[[batch.metric_names.index(name) for name in _PLAYED]]
    found[1] *= found[-1]
    return found


def first_fit() -> ComposedPolicy:
    """What the limits are shares of: first-fit with a timeout of 5 minutes."""
    return ComposedPolicy(backfill="first-fit", start="bound", power="idle-timeout", idle_timeout=300.0)


def ratios(own: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) energy, wait and switches of (days, 4), as shares of the others'.

    The wait is the larger of two shares: of the mean over all jobs, and the geometric mean of each day's share. Nearly
    all waiting is on the fullest days, and beside these hours the minutes would not count for which jobs of calm days
    wait for servers; but days on which jobs wait for hours must not wait longer for the sake of calm ones, either.
    """
    ours, others = own.sum(axis=0), theirs.sum(axis=0)
    least = np.array([1.0, _SHORT * others[-1], 1.0])
    found: NDArray[np.float64] = (ours[:-1] + least) / (others[:-1] + least)
    daily = (own[:, 1] / own[:, 3] + _SHORT) / (theirs[:, 1] / theirs[:, 3] + _SHORT)
    found[1] = max(found[1], np.exp(np.log(daily).mean()))
    return found


def cost_within(found: NDArray[np.float64], limits: JointSettings) -> float:
    """The logarithm of the waste, and what is beyond the limits."""
    energy, wait, switches = found.tolist()
    beyond = max(wait - limits.wait_limit, 0.0) + max(switches - limits.switch_limit, 0.0)
    return float(np.log(energy)) + _STEEP * beyond


def day_setups(settings: JointSettings, platform: Platform, workload: Workload) -> list[Setup]:
    """The days that are given, and those of the clusters that are made."""
    own = without_misfits(workload, platform)
    found = [_setup(own, platform, settings.days)]
    for name in settings.like:
        wanted = Wanted(cluster=find_cluster(name), by_core=True, power=True, switch_times=_SWITCHES)
        made = grid5000_days(np.random.default_rng(0), PUBLISHED_TRACES[name], slice(None))
        found.append(_setup(made, grid5000_cluster(wanted), (0, int(_LEARNED * len(busy_days(made))))))
    return found


def _setup(workload: Workload, platform: Platform, days: tuple[int, ...]) -> Setup:
    return make_setup(workload, platform, encoder="deepscheduling", days=days, steps=_CHOICES)
