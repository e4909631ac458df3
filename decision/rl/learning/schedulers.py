"""Training a scheduler, and comparing policies: loops over the records of `decision.rl.schedulers`."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.batsim.episodes import BatsimForEpisodes
from decision.files.text import InputFacts
from decision.files.workload import Selection
from decision.model.computer import check_memory
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import MachineEvent, Workload
from decision.policies.policy import Policy
from decision.rl.envs import PlacedJobs, Setup, evaluate, make_setup, random_rows
from decision.rl.envs.batch import ChooseAll
from decision.rl.envs.setup import without_misfits
from decision.rl.learning import find_checkpoint
from decision.rl.schedulers import ChoosingScheduler, Episodes, ParametricScheduler, Scheduler, find_scheduler
from decision.rl.schedulers.joint import Joint
from decision.rl.schedulers.prices import Prices

from .checkpoint import Manifest
from .choices import replay_choices
from .config import TrainConfig
from .deploy import LearnedPolicy, learned_policy
from .evolution import EvolutionLearner, JointEvolution, Play
from .prices_learner import PricesEvolution
from .training import Algorithm, Report, Training, run_training

# Validation: metrics over sequences of jobs that stay the same, shown from the first minute of a training on. These are
# some of the jobs that are learned from, so that no others have to be kept aside; how good a policy is
# `decision evaluate` says, on jobs that it has not seen.

PREFIX = "validation_"  # of the columns in the curves
_SEQUENCES = 16
_JOBS = 250  # of each; fewer where the workload has fewer


class Validation:
    """Sequences of jobs, evenly spread over a workload, after which none come; days, where these are learned from.

    What is shown are the metrics `Scheduler.validated`.

    Args:
        setup: of the environments that are learned in.
        workload: the jobs that are learned from.
    """

    def __init__(self, setup: Setup, workload: Workload) -> None:
        self._names = setup.scheduler.validated
        if setup.rules.drains or setup.rules.ends_with_jobs:
            rows = setup.beginnings.row
            self._first = rows[np.unique(np.linspace(0, len(rows) - 1, _SEQUENCES).astype(int))].tolist()
            self._setup = setup
            return
        jobs = min(_JOBS, len(workload.jobs))
        last = len(workload.jobs) - jobs
        self._first = np.unique(np.linspace(0, last, _SEQUENCES).astype(int)).tolist()
        episodes = Episodes(jobs=jobs, online=False)
        self._setup = make_setup(
            workload, setup.platform, encoder=setup.encoder, episodes=episodes, engine=setup.engine
        )

    def __call__(self, policy: Policy | ChooseAll) -> dict[str, float]:
        """Means over all jobs of the sequences; the same for the same policy."""
        metrics = evaluate(policy, self._setup, first=self._first)
        return {f"{PREFIX}{name}": float(metrics[name].mean()) for name in self._names}


ShareOut = Callable[[Play, Sequence[Any]], list[Any]]
"""Lets others do a function of items, as `decision.experiments.tasks.share_out` does."""

_EPISODE = 500  # bytes that the metrics of an episode take


class TrainingInputs(NamedTuple):
    """The jobs, the platform and the files that are learned from."""

    platform: Platform
    workload: Workload  # jobs, all with a walltime; episodes begin at any of them
    files: Sequence[InputFacts]  # of the platform, the workload and the events
    events: Sequence[MachineEvent] = ()  # a supply of power
    selection: Selection = Selection()  # which jobs of its file the workload has
    data: Path | None = None  # a file of recorded choices, for algorithms that learn from such
    engine: BatsimForEpisodes | None = None  # what simulates; None for the embedded engine


def train_scheduler(
    inputs: TrainingInputs,
    config: TrainConfig,
    folder: Path,
    *,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Report], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
    share_out: ShareOut | None = None,
) -> Path:
    """Learn; the checkpoint is the scheduler's name ``.ckpt`` in the folder.

    Args:
        inputs: what is learned from.
        config: what is learned and how.
        folder: gets checkpoint and curves.
        resume: as of `decision.rl.learning.training.run_training`, like `stop` and `report`.
        note: gets a line on recorded choices that the scheduler cannot make.
        share_out: lets others do what a generation of an evolution plays.

    Raises:
        ConfigError: if the inputs do not fit together, or the folder holds another run.
    """
    training = training_of(inputs, config, folder, note=note, share_out=share_out)
    return run_training(training, resume=resume, stop=stop, report=report)


def training_of(
    inputs: TrainingInputs,
    config: TrainConfig,
    folder: Path,
    *,
    note: Callable[[str], None] = lambda _: None,
    share_out: ShareOut | None = None,
) -> Training:
    """What `train_scheduler` runs; `decision.rl.learning.training.run_together` runs several."""
    scheduler = find_scheduler(config.scheduler)
    files = inputs.files
    learning = _how_to_learn(scheduler, config, inputs, note)
    if share_out is not None:
        recipe = pickle.dumps((config, inputs._replace(data=None)))
        learning = learning._replace(make=partial(_sharing, learning.make, partial(share_out, partial(_play, recipe))))
    manifest = Manifest(
        decision=__version__,
        algorithm=config.algorithm,
        config=config,
        encoder=learning.encoder,
        nb_hosts=len(inputs.platform.hosts),
        platform=files[0],
        workloads=tuple(files[1:2]),
        events=tuple(files[2:]),
        selection=inputs.selection,
        data=learning.data,
        steps=0,
    )
    metrics = (*scheduler.curves, *scheduler.metrics)
    validated = tuple(f"{PREFIX}{name}" for name in scheduler.validated)
    return Training(learning.make, metrics, manifest, folder, scheduler.file_name, learning.validate, validated)


def _sharing(make: Callable[[TrainConfig], Algorithm], play: Play, config: TrainConfig) -> Algorithm:
    """An evolution whose generations are played by others."""
    learner = make(config)
    if not isinstance(learner, EvolutionLearner):
        raise ConfigError(f"{config.algorithm} learns in one place; leave the option out", field="on")
    learner.play_elsewhere = play
    return learner


def _play(recipe: bytes, items: Sequence[Any]) -> list[Any]:
    """What a worker does for a generation."""
    return _evolution(recipe).play(items)


@lru_cache(maxsize=1)
def _evolution(recipe: bytes) -> EvolutionLearner:
    config, inputs = pickle.loads(recipe)
    learner = _how_to_learn(find_scheduler(config.scheduler), config, inputs, print).make(config)
    assert isinstance(learner, EvolutionLearner)
    return learner


class _Learning(NamedTuple):
    make: Callable[[TrainConfig], Algorithm]
    encoder: dict[str, Any]  # for the manifest
    validate: Callable[[Policy | ChooseAll], Mapping[str, float]]
    data: InputFacts | None = None  # recorded choices


def _how_to_learn(
    scheduler: Scheduler, config: TrainConfig, inputs: TrainingInputs, note: Callable[[str], None]
) -> _Learning:
    platform, workload = inputs.platform, inputs.workload
    if inputs.data is not None and not config.learn.replays:
        raise ConfigError(f"{config.algorithm} does not learn from recorded choices; leave them out", field="data")
    if isinstance(scheduler, Prices | Joint):
        evolution: Any = PricesEvolution if isinstance(scheduler, Prices) else JointEvolution
        learn = partial(evolution, scheduler=scheduler, platform=platform, workload=workload)
        if isinstance(scheduler, Joint):
            learn = partial(learn, engine=inputs.engine)
        elif inputs.engine is not None:
            raise ConfigError("prices are learned in the embedded engine alone; leave the engine out", field="engine")
        return _Learning(learn, dict(scheduler.sees), lambda _: {})
    setup = make_training_setup(scheduler, config, workload, platform, inputs.events, inputs.engine)
    module, _, name = config.learn.learner.partition(":")
    make = partial(getattr(import_module(f"{__package__}.{module}"), name).make, scheduler=scheduler, setup=setup)
    if isinstance(scheduler, ParametricScheduler):
        return _Learning(make, dict(scheduler.sees), Validation(setup, workload))
    data = seen = None
    if inputs.data is not None:
        data, seen = replay_choices(inputs.data, setup, inputs.files, inputs.selection)
        note(f"{inputs.data}: {seen.summary}")
    if config.learn.replays:
        make = partial(make, data=seen)
    return _Learning(make, msgspec.to_builtins(setup.encoder), Validation(setup, workload), data)


def choosing_setup(
    config: TrainConfig,
    workload: Workload,
    platform: Platform,
    events: Sequence[MachineEvent] = (),
    engine: BatsimForEpisodes | None = None,
) -> Setup:
    """The environments that a scheduler learns in.

    Raises:
        ConfigError: if it does not learn in environments, or the inputs do not fit together.
    """
    scheduler = find_scheduler(config.scheduler)
    if not isinstance(scheduler, ChoosingScheduler):
        raise ConfigError(f"{scheduler.name} does not choose step by step, so choices teach it nothing")
    return make_training_setup(scheduler, config, workload, platform, events, engine)


def make_training_setup(
    scheduler: Scheduler,
    config: TrainConfig,
    workload: Workload,
    platform: Platform,
    events: Sequence[MachineEvent] = (),
    engine: BatsimForEpisodes | None = None,
) -> Setup:
    """The environments, or the schedules, that a scheduler learns from."""
    workload = without_misfits(workload, platform)
    episodes = scheduler.episodes(config.env, workload)
    if isinstance(scheduler, ParametricScheduler):
        name = scheduler.observation
        return make_setup(workload, platform, encoder=name, episodes=episodes, events=events, engine=engine)
    assert isinstance(scheduler, ChoosingScheduler)
    name = scheduler.encoder_fields(config.env, len(platform.hosts))["name"]
    return make_setup(
        workload, platform, encoder=name, episodes=episodes, events=events, engine=engine, **config.settings
    )


class EpisodeComparison:
    """Policies over the same episodes of a workload.

    Attributes:
        first: (E,) the jobs with which they begin.
        jobs: of the workload; the last is followed by the first.

    Args:
        platform: the hosts.
        workload: jobs, all with a walltime.
        placed: jobs whose placement ends an episode.
        episodes: how many.
        seed: of the jobs that episodes begin with.
        online: whether other jobs arrive after those that are placed.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.
        engine: what simulates; None for the embedded engine.

    Raises:
        ConfigError: if platform and workload do not fit together, or their metrics not into memory.
    """

    def __init__(
        self,
        platform: Platform,
        workload: Workload,
        placed: int,
        episodes: int,
        seed: int,
        online: bool = True,
        decide_limit: float = 0.0,
        engine: BatsimForEpisodes | None = None,
    ) -> None:
        episode = Episodes(jobs=placed, online=online)
        self._setup = partial(make_setup, workload, platform, episodes=episode, engine=engine)
        self._seed, self._decide_limit = seed, decide_limit
        check_memory("episodes", episodes, _EPISODE)
        self._plain = self._setup()
        self.first, self.jobs = random_rows(self._plain, episodes, seed), len(workload.jobs)

    def metrics(self, policy: str | Policy, placed: list[PlacedJobs] | None = None) -> dict[str, NDArray[np.float64]]:
        """Each of `decision.rl.envs.EPISODE_METRICS` and of `decision.rl.envs.TAIL_METRICS` for each episode, (E,).

        Args:
            policy: a checkpoint ``*.ckpt``, the name of a shipped policy or a heuristic, or the policy itself.
            placed: if given, gets the jobs that each episode placed.

        Raises:
            InputError: if the checkpoint cannot be used.
            ConfigError: if there is no such policy, or it is not for this platform.
        """
        checkpoint = find_checkpoint(policy) if isinstance(policy, str) else None
        play = partial(evaluate, seed=self._seed, first=self.first, placed=placed)
        learned = policy if checkpoint is None else learned_policy(checkpoint)
        if not isinstance(learned, LearnedPolicy):  # it sees the cluster itself
            return play(learned, self._plain, decide_limit=self._decide_limit)
        encoder, actor = learned.encoder, learned.actor
        actor.reset(self._seed)
        setup = msgspec.structs.replace(self._setup(encoder=encoder), outlook=learned.expects)
        return play(actor.together, setup)
