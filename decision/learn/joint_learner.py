"""Learning the joint policy by evolution: whole days of several clusters, with all trade-offs at once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from decision.computer.cores import available_cores
from decision.envs import Setup, make_setup
from decision.envs.batch import Batch
from decision.envs.evaluation import play_episode
from decision.envs.setup import without_misfits
from decision.generate.clusters import SwitchTimes, Wanted, grid5000_cluster
from decision.generate.grid5000 import find_cluster
from decision.generate.papers.grid5000_days import grid5000_days
from decision.generate.papers.grid5000_traces import PUBLISHED_TRACES
from decision.learned.joint import EVEN, Joint, JointPolicy, JointSettings
from decision.model.dates import busy_days
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.composed import ComposedPolicy
from decision.policies.prepared import CompiledPolicy

from .config import TrainConfig
from .evolution_learner import EvolutionLearner

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

    Raises:
        ConfigError: if the inputs do not fit together, or cannot be simulated.
    """

    def __init__(self, config: TrainConfig, scheduler: Joint, platform: Platform, workload: Workload) -> None:
        self._limits = config.env
        setups = day_setups(config.env, platform, workload)
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
        each = max(self._evolve.sequences // len(self._ends), 1)
        begins = np.append(0, self._ends[:-1])
        pairs = zip(begins.tolist(), self._ends.tolist(), strict=True)
        return np.concatenate([self._rng.integers(begin, end, each) for begin, end in pairs])

    def _judge(
        self, candidates: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """All candidates schedule the same days with even weights, and every second one with others, new each time."""
        traded = self._rng.dirichlet(EVEN)
        again = np.arange(0, len(first), 2)
        items: list[Any] = [(None, EVEN, int(day)) for day in first]
        for each in candidates:
            items += [(each, EVEN, int(day)) for day in first]
            items += [(each, traded, int(day)) for day in first[again]]
        played = np.array(self._played(items))
        theirs, own = played[: len(first)], played[len(first) :].reshape(len(candidates), -1, len(_PLAYED))
        even, uneven = own[:, : len(first)], own[:, len(first) :]
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
