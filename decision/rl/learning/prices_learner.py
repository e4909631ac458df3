"""Learning what free hosts are worth: whole schedules in the embedded engine, with the network where jobs use it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.truth import submission_order
from decision.model.computer import available_cores
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.checks import check_walltime
from decision.policies.composed import ComposedPolicy
from decision.policies.loading import reset_policy
from decision.policies.placement.tree import text_costs
from decision.policies.traits import traits_of
from decision.rl.envs.setup import without_misfits
from decision.rl.schedulers.prices import Prices, PricesSettings
from decision.simulation import simulate_on

from .config import TrainConfig
from .evolution import EvolutionLearner

_METRICS = ("hops", "stretch", "waiting_time")


class PricesEvolution(EvolutionLearner):
    """Prices as candidates, and the schedules that they make.

    What is minimised is the mean over sequences of a metric of a schedule, divided by that without prices.

    Args:
        config: how it learns.
        scheduler: what learns.
        platform: the hosts, connected by a tree of switches.
        workload: jobs; sequences begin at any of them that has enough behind it.

    Raises:
        ConfigError: if the inputs do not fit together, or cannot be simulated.
    """

    def __init__(self, config: TrainConfig, scheduler: Prices, platform: Platform, workload: Workload) -> None:
        self._prices, self._settings = scheduler, config.env
        first = scheduler.first_weights(platform)
        self._shape = first.shape
        self._schedules = Schedules(platform, workload, config.env)
        self._begin(config, scheduler.curves, self._schedules.rows, self._schedules.jobs)
        self._go_from(first.ravel().copy())
        self._none = first
        traits = traits_of(self.policy())
        for job in workload.jobs:
            check_walltime(traits, job.id, job.walltime, workload.path or f"workload {workload.name}")
        self._pool = ThreadPoolExecutor(self._evolve.threads or available_cores())

    def _judge(
        self, candidates: NDArray[np.float64], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """All candidates schedule the same sequences."""
        every = (self._none.ravel(), *candidates)
        played = np.array(self._played([(weights, int(row)) for weights in every for row in first]))
        table = played.reshape(len(every), len(first), len(_METRICS))
        judged = table[:, :, _METRICS.index(self._settings.metric)]
        means = dict(zip(_METRICS, table[1:].mean(axis=(0, 1)).tolist(), strict=True))
        return (judged[1:] / judged[0]).mean(axis=1), means

    def play(self, items: Sequence[Any]) -> list[Any]:
        """For each candidate (P,) and the first job of a sequence, METRICS."""
        return list(self._pool.map(lambda item: self._schedules.measure(self._policy(item[0]), item[1]), items))

    def _policy(self, weights: NDArray[np.float64]) -> ComposedPolicy:
        return self._prices.policy(weights.reshape(self._shape), self._settings)

    def policy(self) -> ComposedPolicy:
        """That of the average over the last generations' means."""
        return self._policy(self._average)

    def weights(self) -> dict[str, torch.Tensor]:
        """The average over the last generations' means, as far as weights may go."""
        return {"weights": torch.from_numpy(self._prices.bounded(self._average).reshape(self._shape))}


class Schedules:
    """Sequences of jobs of a workload, after which none come, scheduled in the embedded engine.

    Attributes:
        rows: (R,) jobs with which they may begin.
        jobs: of each.

    Args:
        platform: the hosts.
        workload: the jobs.
        settings: how many jobs a sequence has, and what is minimised.

    Raises:
        ConfigError: if the workload cannot be judged so.
    """

    def __init__(self, platform: Platform, workload: Workload, settings: PricesSettings) -> None:
        workload = without_misfits(workload, platform)
        if not workload.jobs:
            raise ConfigError(f"{workload.path or workload.name}: there are no jobs; prices are learned from some")
        self._platform = platform
        self._workload = replace(workload, jobs=submission_order(workload.jobs))
        self.jobs = min(settings.jobs, len(workload.jobs))
        self.rows = np.arange(len(workload.jobs) - self.jobs + 1)
        speed = max(host.pstates[host.initial_pstate].speed for host in platform.hosts)
        self._alone = runtimes(self._workload, speed)
        if settings.metric == "hops" and max(job.size for job in workload.jobs) < 2:
            raise ConfigError(f"{workload.path or workload.name}: no job is on several hosts; hops cannot be learned")
        places = np.array(platform.places) if platform.places else np.arange(len(platform.hosts))
        self._down, self._places = np.array(platform.down), places

    def measure(self, policy: ComposedPolicy, row: int) -> tuple[float, ...]:
        """METRICS of the sequence that begins with a job."""
        jobs = self._workload.jobs[row : row + self.jobs]
        engine = EmbeddedEngine(self._platform, [replace(self._workload, jobs=jobs)])
        reset_policy(policy, self._platform, 0)
        simulate_on(engine, policy)
        state, count = engine.state, int(engine.state.nb_jobs)
        hops = np.zeros(count)
        _hops_of_all(state, self._down, self._places, hops)
        wait = state.start_time[:count] - state.submit_time[:count]
        ran, alone = state.end_time[:count] - state.start_time[:count], self._alone[row : row + count]
        stretch = ran[alone > 0] / alone[alone > 0]
        return float(hops.mean()), float(stretch.mean()) if len(stretch) else 1.0, float(wait.mean())


@kernel
def _hops_of_all(state, down, places, hops):
    """Write the hops of each job (n,)."""
    begin = np.zeros(2, np.int64)
    for job in range(len(hops)):
        first, on = state.alloc_first[job], np.empty(state.size[job], np.int64)
        begin[1] = 0
        for at in range(first, first + state.alloc_count[job]):
            for host in range(state.interval_first[at], state.interval_last[at] + 1):
                on[begin[1]] = places[host]
                begin[1] += 1
        text_costs(down, on, begin, hops[job : job + 1])
