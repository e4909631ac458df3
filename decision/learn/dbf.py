"""Learning deep back-filling (Wang, Harwood and Rodriguez, HPCC 2022, arXiv 2401.09910), and comparing it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.envs import DbfVectorEnv, Setup, evaluate, make_setup
from decision.model.platform import Platform
from decision.model.workload import Workload

from .checkpoint import InputFacts, Manifest
from .config import EnvConfig, TrainConfig
from .deploy import Greedy, layout_of, learned_network
from .training import Report, Task, train

_CURVES = ("waiting_time", "queue_length", "utilization", "job_load", "bounded_slowdown")


def train_dbf(
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
    """Learn; the checkpoint is ``folder/dbf.ckpt``.

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
    setup = dbf_setup(platform, workload, config.env)
    envs = DbfVectorEnv(config.learn.envs, setup=setup, threads=1)
    manifest = Manifest(
        decision=__version__,
        algorithm="ppo",
        config=config,
        encoder=msgspec.to_builtins(setup.encoder),
        nb_hosts=len(platform.hosts),
        platform=files[0],
        workloads=tuple(files[1:]),
        steps=0,
    )
    task = Task(envs, layout_of(setup.encoder), _CURVES, manifest, folder, "dbf")
    try:
        return train(task, resume=resume, stop=stop, report=report)
    finally:
        envs.close()


def dbf_setup(platform: Platform, workload: Workload, env: EnvConfig) -> Setup:
    """The environment of a config. Raises ConfigError."""
    return make_setup(
        workload,
        platform,
        encoder="dbf" if env.cluster == "cores" else "dbf-pools",
        head=env.head,
        tail=env.tail,
        jobs=env.jobs,
        weights=(env.idle_weight, env.queue_weight, env.waiting_weight),
    )


class Comparison:
    """Policies over the same episodes of a workload.

    Args:
        platform: the hosts.
        workload: jobs, all with a walltime.
        placed: jobs whose placement ends an episode.
        episodes: how many.
        seed: of the jobs that episodes begin with.

    Raises:
        ConfigError: if platform and workload do not fit together.
    """

    def __init__(self, platform: Platform, workload: Workload, placed: int, episodes: int, seed: int) -> None:
        self._platform, self._workload, self._placed = platform, workload, placed
        self._episodes, self._seed = episodes, seed
        self._plain = make_setup(workload, platform, jobs=placed)

    def metrics(self, policy: str) -> dict[str, NDArray[np.float64]]:
        """Each of `decision.envs.METRICS` for each episode.

        Args:
            policy: a checkpoint ``*.ckpt``, or the name of a heuristic.

        Raises:
            InputError: if the checkpoint cannot be used.
            ConfigError: if there is no such policy, or it is not for this platform.
        """
        if not policy.endswith(".ckpt"):
            return evaluate(policy, self._plain, self._episodes, self._seed)
        encoder, network = learned_network(Path(policy))
        setup = make_setup(self._workload, self._platform, encoder=encoder, jobs=self._placed)
        return evaluate(Greedy(network).together, setup, self._episodes, self._seed)
