"""Learned schedulers: environments, trainings and gates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decision.model import errors as arguments
from decision.model.errors import ConfigError, a_path, flag, how_to_install, mapping, several, text
from decision.model.platform import Platform
from decision.model.workload import Workload

from . import given
from .given import Source
from .results import SearchResult

if TYPE_CHECKING:
    from gymnasium import Env
    from gymnasium.vector import VectorEnv
    from numpy.typing import ArrayLike, NDArray
    from pandas import DataFrame

    from decision.experiments.inputs import LoadedInputs
    from decision.model.reshape import Walltimes
    from decision.policies import Plan
    from decision.rl.learning.checkpoint import GateCheck
    from decision.rl.learning.config import TrainConfig
    from decision.rl.learning.training import Report
    from decision.rl.schedulers import ChoiceView, ChoosingPolicy, Environment, Scheduler

_CHANGES = '{"learn.lr": 1e-4}'


def train(
    scheduler: str,
    platform: Source,
    workload: Source,
    folder: Source,
    *,
    preset: Source | None = None,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
    seed: int = 0,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    resume: bool = False,
    report: "Callable[[Report], bool | None]" = lambda _: None,
    engine: str = "embedded",
    batsim: str | None = None,
    batsim_args: str = "",
) -> Path:
    """Train a learned scheduler in the embedded engine, or in a Batsim.

    Args:
        scheduler: ``dbf``, ``rlscheduler``, ``inspector`` or ``ranking``; or where a `decision.Environment`'s class is:
            ``./mine.py:MyScheduler``.
        platform: a SimGrid XML file, or a shipped platform's name; a checkpoint says what file it was learned on.
        workload: a file or a shipped workload's name; all jobs need a walltime.
        folder: gets the checkpoint, the curves, and the state from which a stopped training resumes.
        preset: a preset's name or a TOML file; by default the scheduler's.
        changes: values of the preset to change, ``{"learn.lr": 1e-4}``.
        steps: environment steps; for ``ranking``, jobs that are placed. By default the preset's.
        seed: of weights, episodes and draws.
        jobs: which jobs of the workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of a log's jobs without a requested time: ``none``, ``runtime``, ``longest`` or a model.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        resume: go on from the state in the folder.
        report: called before the first iteration and after each, with ``steps`` so far, ``rate`` (steps per second),
            ``row`` (by name what ``progress.csv`` gets: ``reward``, losses, ``validation_waiting_time`` where it was
            due) and ``seconds`` of a processor. Where it returns True, one more iteration is done and the training
            stops: the checkpoint is written, and `resume` goes on.
        engine: ``embedded``, or ``batsim`` or ``docker``, which start a Batsim for each episode.
        batsim: Batsim's executable, for ``batsim``; by default the command ``batsim``.
        batsim_args: more of its options, in one text.

    Returns:
        The checkpoint, whose path is a policy's name.

    Raises:
        ConfigError: if PyTorch is not installed, an input does not fit, or the folder holds another run.

    Examples:
        >>> import decision as d
        >>> small = {"learn.envs": 4, "learn.rollout": 8, "learn.minibatch": 16, "env.jobs": 20}
        >>> d.train("dbf", "cluster256", "lublin_256", "learned", changes=small, steps=32).name
        'dbf.ckpt'
    """
    from decision.rl.learning import require_learning

    require_learning()
    from decision.batsim.episodes import engine_of
    from decision.experiments.inputs import first_log
    from decision.experiments.training import Players, check_resumable, train_to_folder

    external, output, resume = engine_of(engine, batsim, batsim_args), a_path("folder", folder), flag("resume", resume)
    if not callable(report):
        raise ConfigError(f"report: must be a function that takes one report; found {report!r}", field="report")
    asked_for = _Asked.of(scheduler, preset, changes, steps)
    config = asked_for.config(asked_for.changes, arguments.whole("seed", seed))
    selection = given.as_selection(jobs, nodes, walltime, time_field, missing_walltime, time_zone)
    case = _read_files(platform, workload, (), False, selection)
    if resume:
        check_resumable(output)
    asked: list[bool] = []

    def reported(now: "Report") -> None:
        if report(now) in (True,):  # numpy's, too, and nothing else that a logger may return
            asked.append(True)

    return train_to_folder(
        first_log(case),
        config,
        output,
        resume=resume,
        stop=lambda: bool(asked),
        report=reported,
        players=Players(external),
    )


def search(
    scheduler: str,
    platform: Source,
    workload: Source,
    folder: Source,
    ranges: Mapping[str, Any],
    *,
    trials: int = 20,
    method: str = "bayesian",
    preset: Source | None = None,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    processes: int = 1,
) -> SearchResult:
    """Search for settings of a training, as ``decision train --search``: each trial is a training.

    Trials that are finished in the folder are known again, and those begun go on; more of them extend the search. The
    same seed gives the same trials. Where there is one seed, a trial is given up at a validation at which it is worse
    than the median of those before.

    Args:
        scheduler: as of `train`, like `platform`, `workload`, `preset`, `changes`, `steps` and `jobs` to `time_zone`.
        platform: a file, or a shipped platform's name.
        workload: a file, or a shipped workload's name.
        folder: gets a folder for each training, and ``search.csv``.
        ranges: by setting, what is tried: ``(1e-5, 1e-3)``, ``(1e-5, 1e-3, "log")``, a list of values, or the text that
            ``--set`` takes, ``"1e-5..1e-3:log"``.
        trials: how many choices of settings are tried.
        method: ``bayesian`` (optuna's TPE, from the trials before) or ``random``.
        preset: a preset's name or a TOML file; by default the scheduler's.
        changes: values of the preset that all trials have.
        steps: of each training.
        seed: of the search and of the trainings.
        seeds: trainings of each trial, with this seed and the next ones; a trial is judged by their mean.
        jobs: which jobs of the workload are used.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` or ``none``.
        missing_walltime: of a log's jobs without a requested time.
        time_field: the field of logs that holds the requested time, counted from 1.
        time_zone: of a log's local times.
        processes: trainings at a time; it changes no result. With more than 1, protect a script's entry:
            ``if __name__ == "__main__":``.

    Raises:
        ConfigError: if optuna or PyTorch is not installed, or an input does not fit.

    Examples:
        >>> import decision as d
        >>> small = {"learn.envs": 4, "learn.rollout": 8, "learn.minibatch": 16, "env.jobs": 20}
        >>> rates = {"learn.lr": (1e-4, 1e-2, "log")}
        >>> found = d.search("dbf", "cluster256", "lublin_256", "searched", rates, trials=2, changes=small, steps=32)
        >>> found.checkpoint.name, list(found.settings)
        ('dbf.ckpt', ['learn.lr'])
    """
    from decision.rl.learning import require_learning

    require_learning()
    from decision.experiments.training import SettingsSearch, require_optuna, search_settings
    from decision.rl.learning.config import read_space

    require_optuna()
    if method not in ("bayesian", "random"):
        raise ConfigError(f"method: must be bayesian or random; found {method!r}", field="method")
    output, asked = a_path("folder", folder), _Asked.of(scheduler, preset, changes, steps)
    varied = [f"{key}={_range_text(key, values)}" for key, values in mapping("ranges", ranges, _RANGES).items()]
    space = read_space([*asked.changes, *varied])
    asked.config(space.first)
    selection = given.as_selection(jobs, nodes, walltime, time_field, missing_walltime, time_zone)
    inputs = _read_files(platform, workload, (), asked.record.energy, selection).inputs
    first = arguments.whole("seed", seed)
    every = range(first, first + arguments.whole("seeds", seeds, 1))
    number = arguments.whole("trials", trials, 1)
    wanted = SettingsSearch(asked.preset, space, number, method, every)  # type: ignore[arg-type]
    done = search_settings(wanted, inputs, output, processes=arguments.whole("processes", processes, 1))
    return SearchResult(done, space, output / asked.record.file_name)


class _Asked(NamedTuple):
    """Which scheduler is to learn, and how, as callers of `train` and `search` say it."""

    scheduler: str
    record: "Scheduler"
    preset: str
    changes: list[str]  # of the preset

    @classmethod
    def of(
        cls, scheduler: Any, preset: Source | None, changes: Mapping[str, Any] | None, steps: int | None
    ) -> "_Asked":
        """What callers gave. Raises ConfigError."""
        from decision.rl.schedulers import find_scheduler

        record, wanted = find_scheduler(text("scheduler", scheduler)), mapping("changes", changes, _CHANGES)
        if steps is not None:
            wanted |= {"learn.steps": arguments.whole("steps", steps, 1)}
        name = record.default_preset if preset is None else str(a_path("preset", preset))
        return cls(scheduler, record, name, [f"{key}={value}" for key, value in wanted.items()])

    def config(self, changes: Sequence[str], seed: int = 0) -> "TrainConfig":
        """The preset with these changes. Raises ConfigError if it is for another scheduler."""
        from decision.rl.learning.config import load_config

        config = load_config(self.preset, changes, seed=seed)
        if config.scheduler != self.scheduler:
            why = f"is for {config.scheduler}, not for {self.scheduler}"
            raise ConfigError(f"the preset {self.preset} {why}", field="preset")
        return config


_RANGES = '{"learn.lr": (1e-5, 1e-3, "log"), "learn.envs": [8, 16]}'


def _range_text(key: str, values: Any) -> str:
    """A range or several values as ``--set`` takes them. Raises ConfigError."""
    if isinstance(values, str):
        return values
    if isinstance(values, tuple) and len(values) in (2, 3) and values[2:] in ((), ("log",)):
        return f"{values[0]}..{values[1]}{':log' if values[2:] else ''}"
    if isinstance(values, list) and values:
        return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    raise ConfigError(f"ranges: {key} must have values like {_RANGES}; found {values!r}", field="ranges")


def gates(
    checkpoint: Source,
    platform: Source,
    workload: Source,
    *,
    events: "Iterable[Source] | Source" = (),
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    engine: str = "embedded",
    batsim: str | None = None,
    batsim_args: str = "",
) -> "GateCheck":
    """Check whether a checkpoint may be deployed, on a log that it has not seen, and keep what is found in it.

    As ``decision gates``: ``decision run`` and ``serve`` refuse a checkpoint that was not checked or that fails on one
    of its logs. A shipped checkpoint stays as it is.

    Args:
        checkpoint: the file, or the name of a learned policy that is shipped.
        platform: a SimGrid XML file, or a shipped platform's name.
        workload: a file or a shipped workload's name; all jobs need a walltime.
        events: files with a supply of power.
        jobs: which jobs of the workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of a log's jobs without a requested time: ``none``, ``runtime``, ``longest`` or a model.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        engine: ``embedded``, or ``batsim`` or ``docker``: a Batsim simulates the log, too, and its schedule must be the
            same.
        batsim: Batsim's executable, for ``batsim``; by default the command ``batsim``.
        batsim_args: more of its options, in one text.

    Returns:
        What was found: ``passed``, and ``gates``, each with ``name``, ``found``, ``most`` and ``passed``.

    Raises:
        InputError: if the checkpoint cannot be used.
        ConfigError: if the inputs do not fit together, it was learned from these jobs, or PyTorch is not installed and
            the policy needs it.

    Examples:
        >>> import decision as d
        >>> d.gates("packer", "cluster256", "lublin_256", jobs=slice(0, 50)).gates[0].name
        'idle room'
    """
    from decision.batsim.episodes import engine_of
    from decision.experiments.gates import check_gates, keep_check, lets_sleep
    from decision.experiments.inputs import first_log
    from decision.experiments.run import in_batsim
    from decision.rl.learning import SHIPPED_NAMES, existing_checkpoint
    from decision.rl.learning.checkpoint import require_unseen

    external = engine_of(engine, batsim, batsim_args)
    name = str(a_path("checkpoint", checkpoint))
    file = existing_checkpoint(name)
    selection = given.as_selection(jobs, nodes, walltime, time_field, missing_walltime, time_zone)
    case = _read_files(platform, workload, events, lets_sleep(file), selection)
    require_unseen(name, case.workloads[0])
    found = check_gates(file, first_log(case), in_batsim(case, external))
    if name not in SHIPPED_NAMES:
        keep_check(file, found)
    return found


def _read_files(
    platform: Source, workload: Source, events: "Iterable[Source] | Source", energy: bool, selection: Any
) -> "LoadedInputs":
    """One workload on a platform, from files: what was learned from them says which they were."""
    from decision.experiments.inputs import Inputs, load_inputs
    from decision.model.computer import find_platform, find_workload

    files = tuple(a_path("events", each) for each in several(events))
    hosts, log = find_platform(platform), find_workload(workload)
    return load_inputs(Inputs(platform=hosts, workloads=(log,), events=files, energy=energy, selection=selection))


def make_env(
    scheduler: "str | type[Environment]",
    platform: Platform | Source | None,
    workload: "Workload | DataFrame | Source",
    *,
    num_envs: int | None = None,
    reward: "Callable[[ChoiceView], float] | None" = None,
    observe: "Callable[[ChoiceView], ArrayLike] | None" = None,
    action: "Callable[[ChoiceView, int, Plan], bool | None] | None" = None,
    mask: "Callable[[ChoiceView], ArrayLike] | None" = None,
    actions: int | None = None,
    **options: Any,
) -> "Env[Any, Any] | VectorEnv[Any, Any, Any]":
    """Make a Gymnasium environment of a learned scheduler, or of one's own.

    Args:
        scheduler: ``dbf``, ``rlscheduler``, ``inspector``, ``packing``, ``green``, ``deepscheduling``, ``repair``, or
            one that was registered: the environment ``decision/DBF-v0`` and so on; or a `decision.Environment`'s class,
            or where it is: ``./mine.py:MyScheduler``.
        platform: the hosts, a file or a shipped platform's name; None: equal hosts, as many as the workload asks for.
        workload: the jobs, a file or a shipped workload's name, or a DataFrame; all jobs need a walltime.
        num_envs: so many side by side, as one vector environment; a single environment if None.
        reward: of the last choice, from a `decision.rl.schedulers.ChoiceView` of what has become of it, in place of the
            scheduler's.
        observe: what a choice is made from, from a view of the cluster: always as many numbers.
        action: what an action means: it gets the view, the action and the plan, and writes into that, ``plan.start``;
            time passes where nothing starts, or what it returns says.
        mask: which actions may be chosen.
        actions: with `action`, how many there are.
        options: of `decision.rl.envs.make_setup`: ``head``, ``tail``, ``jobs``, ``online``, ...; of single environments
            also ``render_mode`` and ``dict_observation``.
            ``engine="batsim"`` plays each episode in a Batsim, and ``batsim``, ``batsim_args``, ``timeout`` say which.

    Raises:
        ConfigError: if Gymnasium is not installed, there is no such environment, or an option makes no sense.

    Examples:
        >>> import decision as d
        >>> env = d.make_env("dbf", "cluster256", "lublin_256", head=4, jobs=10)
        >>> observation, info = env.reset(seed=1)
        >>> observation.shape == env.observation_space.shape
        True
        >>> env = d.make_env("dbf", "cluster256", "lublin_256", head=4, reward=lambda view: -len(view.queue))
        >>> env.reset(seed=1)[0].shape, env.step(4)[1]
        ((272,), -2.0)
    """
    if find_spec("gymnasium") is None:
        raise ConfigError(f"environments need gymnasium: {how_to_install('learn')}")
    import gymnasium

    from decision.files.workload import frame_workload, is_frame

    module = import_module("decision.rl.envs")  # registers the environments
    jobs = frame_workload(workload) if is_frame(workload) else workload
    wanted = {"platform": platform, "workload": jobs, **options}
    number = None if num_envs is None else arguments.whole("num_envs", num_envs, 1)
    functions = {"reward": reward, "observe": observe, "act": action, "mask": mask}
    own = _own_record(scheduler, {name: each for name, each in functions.items() if each is not None}, actions)
    if own is not None:
        wanted |= {"encoder": own}
        return module.SchedulerEnv(**wanted) if number is None else module.SchedulerVectorEnv(number, **wanted)
    ids = {spec.name.lower(): name for name, spec in gymnasium.registry.items() if spec.namespace == "decision"}
    if text("scheduler", scheduler).lower() not in ids:
        raise ConfigError(f"there is no environment {scheduler!r} (there are {', '.join(ids)})", field="scheduler")
    if number is None:
        return gymnasium.make(ids[scheduler.lower()], **wanted)  # type: ignore[union-attr]  # a class is one's own
    return gymnasium.make_vec(ids[scheduler.lower()], number, "vector_entry_point", **wanted)  # type: ignore[union-attr]


def _own_record(scheduler: Any, functions: dict[str, Any], actions: int | None) -> Any:
    """The record of a class of one's own, or of functions in place of a shipped one's; None where there is neither.

    Raises:
        ConfigError: if these are not functions, or the class is not complete.
    """
    from decision.rl.schedulers.own import Environment
    from decision.rl.schedulers.own_record import named_record, record_of

    for name, each in functions.items():
        if not callable(each):
            field = "action" if name == "act" else name
            raise ConfigError(f"{field}: must be a function; found {each!r}", field=field)
    kind = scheduler
    if isinstance(scheduler, str):
        if ":" in scheduler:
            kind = named_record(scheduler).kind
        elif functions or actions is not None:
            kind = type(scheduler, (Environment,), {"base": scheduler.lower(), "__module__": __name__})
        else:
            return None
    if not (isinstance(kind, type) and issubclass(kind, Environment)):
        wanted = "a scheduler's name, or a class that inherits from decision.Environment"
        raise ConfigError(f"scheduler: give {wanted}; found {scheduler!r}", field="scheduler")
    more: dict[str, Any] = {name: staticmethod(each) for name, each in functions.items()}
    if actions is not None:
        more["actions"] = arguments.whole("actions", actions, 1)
    if isinstance(scheduler, str) and ":" in scheduler and not more:
        return named_record(scheduler)
    return record_of(type(kind.__name__, (kind,), more) if more else kind, kind.__name__)


def policy_from(
    env: Any, model: "Any | Callable[[NDArray[Any], NDArray[Any]], int]", name: str | None = None
) -> "ChoosingPolicy":
    """What a library has learned in an environment, as a policy: for `simulate`, `compare`, `check_policy`.

    For `decision run` and `serve` write it into a function without arguments of a file: ``--policy ./mine.py:learned``.

    Args:
        env: of `make_env`, single or vector, wrapped or not, or a `decision.rl.envs.sb3.SchedulerVecEnv`; the policy
            has its observation and actions, one's own ones, too.
        model: of Stable-Baselines3 or sb3-contrib (anything with their ``predict``), whose likeliest choice is taken;
            or a function from an observation (D,) f32 and the mask of valid actions (A,) i8 to an action.
        name: in tables and pictures; the model's class if None.

    Raises:
        ConfigError: if these are something else.

    Examples:
        >>> import decision as d
        >>> env = d.make_env("dbf", "toy", "toy", head=4)
        >>> first = d.policy_from(env, lambda observation, mask: mask.argmax(), "first that fits")
        >>> d.simulate("toy", "toy", first).summary().makespan
        8.0
    """
    import inspect

    from decision.rl.schedulers import ChoosingPolicy

    inner = getattr(env, "unwrapped", env)
    setup = getattr(inner, "setup", None)
    if setup is None:
        raise ConfigError(f"env: must be an environment of make_env; found {type(env).__name__}", field="env")
    predict = getattr(model, "predict", None)
    if not (predict or callable(model)):
        wanted = "a model with the method predict, or a function of observation and mask"
        raise ConfigError(f"model: must be {wanted}; found {type(model).__name__}", field="model")
    called = name or str(type(model).__name__ if predict else getattr(model, "__name__", "own"))
    if predict is None:
        return ChoosingPolicy(setup.encoder, model, called, scheduler=setup.scheduler)
    masked = "action_masks" in inspect.signature(predict).parameters

    def predicted(observation: "NDArray[Any]", mask: "NDArray[Any]") -> int:
        # The likeliest choice of a model, of the valid ones where it knows masks
        action, _ = predict(observation, deterministic=True, **({"action_masks": mask} if masked else {}))
        return int(action)

    return ChoosingPolicy(setup.encoder, predicted, called, scheduler=setup.scheduler)
