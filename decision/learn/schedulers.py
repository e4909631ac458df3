"""Learning schedulers, and comparing them.

Those that `decision.learn.config.SCHEDULERS` names: deep back-filling (Wang, Harwood and Rodriguez, HPCC 2022, arXiv
2401.09910), RLScheduler (Zhang et al., SC 2020), SchedInspector (Zhang, Dai and Xie, HPDC 2022), and rankings.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.envs import DbfVectorEnv, PlacedJobs, Setup, evaluate, make_setup
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.ranking import SEES

from . import find_checkpoint
from .checkpoint import InputFacts, Manifest
from .config import TrainConfig
from .deploy import LearnedPolicy, layout_of, learned_policy
from .learner import Learner
from .ranking import RankingLearner
from .training import Report, Task, train

_CURVES = ("waiting_time", "queue_length", "utilization", "job_load", "bounded_slowdown")


def train_scheduler(
    platform: Platform,
    workload: Workload,
    config: TrainConfig,
    files: Sequence[InputFacts],
    folder: Path,
    *,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
) -> Path:
    """Learn; the checkpoint is the scheduler's name ``.ckpt`` in the folder.

    Args:
        platform: the hosts.
        workload: jobs, all with a walltime; episodes begin at any of them.
        config: what is learned and how.
        files: of the platform and the workload.
        folder: gets checkpoint and curves.
        resume: as of `decision.learn.training.train`, like `stop` and `report`.

    Raises:
        ConfigError: if the inputs do not fit together, or the folder holds another run.
    """
    setup = make_setup(workload, platform, **_OPTIONS[config.scheduler](config.settings))
    evolves = config.scheduler == "ranking"
    manifest = Manifest(
        decision=__version__,
        algorithm="cma-es" if evolves else "ppo",
        config=config,
        encoder=SEES if evolves else msgspec.to_builtins(setup.encoder),
        nb_hosts=len(platform.hosts),
        platform=files[0],
        workloads=tuple(files[1:]),
        steps=0,
    )
    algorithm = partial(RankingLearner if evolves else _ppo, setup=setup, metrics=_CURVES)
    task = Task(algorithm, _CURVES, manifest, folder, config.scheduler)
    return train(task, resume=resume, stop=stop, report=report)


def _ppo(config: TrainConfig, setup: Setup, metrics: tuple[str, ...]) -> Learner:
    envs = DbfVectorEnv(config.learn.envs, setup=setup, threads=1)
    return Learner(config, envs, layout_of(setup.encoder), metrics)


def _dbf(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: settings[name] for name in ("head", "tail", "jobs", "online")}
    encoder = {"cores": "dbf", "pools": "dbf-pools"}[settings["cluster"]]
    weights = [settings[name] for name in ("idle_weight", "queue_weight", "waiting_weight")]
    return plain | {"encoder": encoder, "weights": weights}


_OPTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {  # of `make_setup`, from a config's settings
    "dbf": _dbf,
    "rlscheduler": lambda settings: {"encoder": "rlscheduler", **settings},
    "inspector": lambda settings: {"encoder": "inspector", **settings},
    "ranking": lambda settings: {"online": False, **settings},
}


class Comparison:
    """Policies over the same episodes of a workload.

    Args:
        platform: the hosts.
        workload: jobs, all with a walltime.
        placed: jobs whose placement ends an episode.
        episodes: how many.
        seed: of the jobs that episodes begin with.
        online: whether other jobs arrive after those that are placed.

    Raises:
        ConfigError: if platform and workload do not fit together.
    """

    def __init__(
        self, platform: Platform, workload: Workload, placed: int, episodes: int, seed: int, online: bool = True
    ) -> None:
        self._setup = partial(make_setup, workload, platform, jobs=placed, online=online)
        self._episodes, self._seed = episodes, seed
        self._plain = self._setup()

    def metrics(self, policy: str, placed: list[PlacedJobs] | None = None) -> dict[str, NDArray[np.float64]]:
        """Each of `decision.envs.METRICS` for each episode.

        Args:
            policy: a checkpoint ``*.ckpt``, or the name of a shipped policy or a heuristic.
            placed: if given, gets the jobs that each episode placed.

        Raises:
            InputError: if the checkpoint cannot be used.
            ConfigError: if there is no such policy, or it is not for this platform.
        """
        checkpoint = find_checkpoint(policy)
        learned = policy if checkpoint is None else learned_policy(checkpoint)
        if not isinstance(learned, LearnedPolicy):  # it sees the cluster itself
            return evaluate(learned, self._plain, self._episodes, self._seed, placed=placed)
        encoder, actor = learned.encoder, learned.actor
        actor.reset(self._seed)
        return evaluate(actor.together, self._setup(encoder=encoder), self._episodes, self._seed, placed=placed)
