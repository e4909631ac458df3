"""What a learned scheduler is: one record of all that is its own.

`ChoosingScheduler` is one that looks at the cluster and chooses, again and again; `ParametricScheduler` is a compiled
policy with numbers to be learned. `decision.rl.schedulers` says how to add one.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F4, F8, I1, Bundle
from decision.compiling.entry import Entry, Interface
from decision.model.dates import BusyDay
from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.options import OptionLine
from decision.policies.prepared import CompiledPolicy, NoMemory
from decision.policies.traits import Correction, Estimator, OutlookSettings, SupplySettings
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays

from .decision_points import Cycles, EpisodeProgress


class Encoder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which observation a scheduler reads, and what its kernels must know: kept in checkpoints.

    Raises:
        ConfigError: if the observation is of another version than this package's.
    """

    name: str  # of the observation
    version: int = 1

    VERSIONS: ClassVar[tuple[int, ...]] = (1,)  # that are known; a number with another meaning makes a new one

    def __post_init__(self) -> None:
        if self.version not in self.VERSIONS:
            known = " and ".join(map(str, self.VERSIONS))
            raise ConfigError(
                f"encoder {self.name} of version {self.version} was asked for, this package has version {known}; "
                "use the package that made the checkpoint"
            )

    @property
    def shape(self) -> tuple[int]:
        """(D,): how many numbers an observation has."""
        raise NotImplementedError

    @property
    def actions(self) -> int:
        """A: how many there are."""
        raise NotImplementedError

    @property
    def window(self) -> int:
        """Jobs of the queue that are seen."""
        return 0

    @property
    def suspends(self) -> bool:
        """Whether running jobs may be suspended."""
        return False

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the highest that a number of an observation can be."""
        return 0.0, 1.0

    @property
    def flags(self) -> int:
        """How many of the observation's first numbers are always 0 or 1."""
        return 0

    def new_memory(self, state: ClusterState) -> Bundle:
        """The memory of the scheduler's kernels before a run, with room for every job of `state`."""
        return NoMemory()

    def with_room(self, memory: Any, state: ClusterState) -> Bundle:
        """The same memory with room for every job of `state`, between two decisions of a run."""
        return memory if isinstance(memory, Bundle) else self.new_memory(state)

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform of another size than the observation is for.

        Raises:
            ConfigError: naming both sizes.
        """

    def check_platform(self, platform: Platform) -> None:
        """Refuse a platform that the observation is not for.

        Raises:
            ConfigError: naming what does not fit.
        """
        self.check_cores(len(platform.hosts), platform.path or "the platform")

    def width_on(self, cores: int) -> int:
        """Numbers that the kernel `observe` writes on so many cores: D, unless the encoder is for another number."""
        return self.shape[0]

    def check_arrays(self, cores: int, observation: NDArray[np.float32], mask: NDArray[np.int8]) -> None:
        """Refuse arrays (..., D) and (..., A) that the kernels would write outside of.

        Raises:
            ConfigError: naming what they must be on so many cores.
        """
        width = self.width_on(cores)
        if (observation.shape[-1], mask.shape[-1]) != (width, self.actions):
            raise ConfigError(
                f"the encoder {self.name} writes {width} numbers and {self.actions} actions on {cores} hosts; "
                f"the arrays have room for {observation.shape[-1]} and {mask.shape[-1]}"
            )


class Layout(NamedTuple):
    """What stands where in an observation: first the cluster, then the window's jobs with four numbers each."""

    cluster: int  # numbers about the cluster
    window: int  # jobs: actions 0 to window - 1 start them, action `window` goes forward
    by_core: bool  # whether they are the remaining times of cores, or else shares of the cores in pools of such times
    endless: bool  # whether a wait w is w / (w + longest), or else w / longest, and 1 from there on


class Sequences(NamedTuple):
    """What stands where in an observation of three sequences, entry after entry, of so many numbers each.

    Action 0 lets time pass, action k is about the k-th job.
    """

    jobs: tuple[int, int]  # entries, and numbers of each
    running: tuple[int, int]
    snapshots: tuple[int, int]  # the oldest first


class Pool(NamedTuple):
    """What stands where in an observation: first the cluster, then jobs with as many numbers each."""

    cluster: int  # numbers about the cluster
    jobs: int  # actions 0 to jobs - 1 start them
    features: int  # numbers of a job
    more: int  # actions after these


class Image(NamedTuple):
    """An observation that is an image, and then other numbers."""

    shape: tuple[int, int, int]  # channels, rows, columns
    more: int  # other numbers


Layouts = Layout | Sequences | Pool | Image

# --- What the kernels of a scheduler are given and return ------------------------------------------------------------
#
# All take the state, the facts of the platform and the scheduler's own memory, as `Encoder.new_memory` makes it.

# A run or an episode begins: forget all of the last one
BEGIN = Interface(int, ClusterState, PlatformFacts, Bundle)

# A cycle begins; returns 1 where there is something to choose in it, else 0
OPEN = Interface(int, ClusterState, PlatformFacts, Cycles, PlanArrays, Bundle)

# Make the choice of an action; what starts or switches is in the plan. Returns 1 where another choice follows in this
# cycle, else 0
ACT = Interface(int, ClusterState, PlatformFacts, Cycles, PlanArrays, Bundle, int)

# Write the observation (D,) and the mask of valid actions (A,), all of both
OBSERVE = Interface(int, ClusterState, PlatformFacts, Cycles, PlanArrays, Bundle, F4, I1)

# What is paid at this moment (CYCLE_ENDS or STEP_ENDS); only environments ask
REWARD = Interface(float, ClusterState, PlatformFacts, Cycles, EpisodeProgress, Bundle, int)
CYCLE_ENDS = 0  # the last choice of a cycle was made, and time passes next
STEP_ENDS = 1  # the next choice is open, or the episode is over (`progress.is_over`)

# Write the scheduler's own metrics (`ChoosingScheduler.metrics`) of an episode that is over
MEASURE = Interface(int, ClusterState, PlatformFacts, Cycles, EpisodeProgress, Bundle, F8)

# The action by which a recorded schedule goes on: job i began at starts[i] (seconds; nan where it did not)
FOLLOW = Interface(int, ClusterState, Cycles, Bundle, F8)

call_begin, call_open, call_act = BEGIN.caller(), OPEN.caller(), ACT.caller()
call_observe, call_reward, call_measure = OBSERVE.caller(), REWARD.caller(), MEASURE.caller()
call_follow = FOLLOW.caller()


class SchedulerKernels(NamedTuple):
    """Addresses of a scheduler's entries, as compiled loops take them."""

    begin: int
    open: int
    act: int
    observe: int
    reward: int
    measure: int


@BEGIN.entry_with(NoMemory)
def forget_nothing(state, facts, memory):
    """For schedulers that remember nothing."""
    return 0


@OPEN.entry_with(NoMemory)
def open_always(state, facts, cycles, plan, memory):
    """For schedulers that choose in every cycle."""
    return 1


@MEASURE.entry_with(NoMemory)
def measure_nothing(state, facts, cycles, progress, memory, out):
    """For schedulers without metrics of their own."""
    return 0


Draws = Literal["nothing", "last", "all"]  # nothing; whether it is the last action; which of all actions


class ExpectingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an environment in which jobs are expected to run for other times than their walltimes."""

    estimate: Literal["walltime", "last2", "regression", "given", "quantiles"] = "walltime"  # as of policies
    correction: Literal["walltime", "increments", "doubling"] = "walltime"  # of jobs that outlive it, as of policies

    @property
    def outlook(self) -> OutlookSettings | None:
        """What these mean; None for walltimes."""
        if self.estimate == "walltime":
            return None
        return OutlookSettings(Estimator[self.estimate.upper()], Correction[self.correction.upper()])


class Episodes(msgspec.Struct, frozen=True, kw_only=True):
    """What begins and ends an episode.

    It begins on an idle cluster, and terminates when `jobs` jobs have been placed, unless that is a `horizon`, or they
    must be over (`ends_with_jobs`). All else cuts it off (truncates): it could have gone on.

    A day terminates when nothing can happen any more: all jobs are over, and all servers asleep. A random one is
    of one of the groups that there are (`decision.model.dates.sequential_groups`), and then any of its days.
    """

    jobs: int | None = 1000  # to be placed; None: all of the workload
    online: bool = True  # whether jobs go on to arrive, the trace beginning again at its end; if not, only `jobs` come
    horizon: bool = False  # whether it is cut off, too, when `jobs` jobs have been placed: others wait, and could go on
    rows: tuple[int, ...] | None = None  # of the trace: with whose arrival an episode may begin; None: any
    begins: tuple[float, ...] | None = None  # seconds: when the clock begins, for each of `rows`; None: as they arrive
    seconds: float = np.inf  # after which it is cut off
    steps: int | None = None  # choices after which it is cut off; None: as many as can be
    steps_end: bool = False  # whether it terminates then, which is part of what is learned, and is not cut off
    ends_with_jobs: bool = False  # whether it terminates when all of its jobs are over, not when they were placed
    days: tuple[BusyDay, ...] | None = None  # each an episode of its own, as `decision.model.dates.of_day` has it


def jobs_in_a_row(jobs: int, workload: Workload) -> Episodes:
    """So many jobs or all, from any at which so many are left, until they are over."""
    jobs = min(jobs, len(workload.jobs))
    rows = tuple(range(len(workload.jobs) - jobs + 1))
    return Episodes(jobs=jobs, online=False, rows=rows, ends_with_jobs=True)


class Scheduler:
    """What can be learned. Instances are records: they have no state.

    The docstring of a subclass that has an `env_id` is that of its environment, with tables of observation, actions and
    reward.
    """

    name: ClassVar[str]  # as in ``decision train NAME``
    summary: ClassVar[str]  # one line, for ``decision policies``
    paper: ClassVar[str] = ""
    Settings: ClassVar[type[msgspec.Struct]]  # of the environment: section ``env`` of a preset
    presets: ClassVar[tuple[str | Path, ...]]  # names of those that ship, or files; the first one is the default
    algorithms: ClassVar[tuple[str, ...]]  # that learn it, by the tag of their config
    networks: ClassVar[tuple[str, ...]] = ()  # kinds that fit; the first one is the default; none: it has none
    curves: ClassVar[tuple[str, ...]] = (  # metrics that a training shows
        *("waiting_time", "queue_length", "utilization", "job_load", "bounded_slowdown"),
    )
    metrics: ClassVar[tuple[str, ...]] = ()  # its own, besides `decision.rl.envs.EPISODE_METRICS`
    validated: ClassVar[tuple[str, ...]] = ("waiting_time", "bounded_slowdown")  # metrics of validations
    energy: ClassVar[bool] = False  # whether its environments simulate energy, and hosts that sleep
    for_utilization: ClassVar[bool] = False  # whether gates ask for little idle room, not for short waits
    options: ClassVar[tuple[OptionLine, ...]] = ()  # of the policy that was learned
    former_settings: ClassVar[Mapping[str, Any]] = {}  # of checkpoints up to format 2, which did not say them
    model_summary: ClassVar[str] = ""  # the line of a model that ships; names of settings in braces

    @property
    def default_preset(self) -> str:
        """Its name: that of its file."""
        return Path(self.presets[0]).name.removesuffix(".toml")

    @property
    def file_name(self) -> str:
        """Of its checkpoints, without .ckpt."""
        return self.name

    def check(self, settings: Any, where: str) -> None:
        """Refuse settings that fit their types and make no sense. Raises ConfigError."""

    def episodes(self, settings: Any, workload: Workload) -> Episodes:
        """What begins and ends an episode."""
        return Episodes(jobs=settings.jobs, online=getattr(settings, "online", False))


class ChoosingScheduler(Scheduler):
    """One that looks at the cluster and chooses an action, again and again: it learns in a Gymnasium environment."""

    algorithms: ClassVar[tuple[str, ...]] = ("ppo", "bc", "crr", "sac")
    networks: ClassVar[tuple[str, ...]] = ("mlp",)
    env_id: ClassVar[str]  # the environment is decision/ID-v0
    env_options: ClassVar[Mapping[str, Any]] = {}  # of the environment, where they are not the defaults of Settings
    observations: ClassVar[Mapping[str, Mapping[str, Any]]]  # name of each encoder, and settings that it stands for
    encoder_type: ClassVar[type[Encoder]]
    needs_value: ClassVar[bool] = False  # whether jobs must say their value
    needs_qos: ClassVar[bool] = False  # and their quality of service
    draws: ClassVar[Draws] = "nothing"  # what it draws, and does not take the best of (`decision.rl.learning.acting`)
    baseline_action: ClassVar[int] = -1  # an episode's BASELINE_SLOWDOWN is that of taking it always; -1: none
    choices_per_job: ClassVar[int] = 2  # cycles that a job can begin: at its arrival, its end, and when it asks for one
    calls: ClassVar[bool] = False  # whether it asks for cycles (`decision_points.call_at`)
    most_calls: ClassVar[int | None] = None  # asked for and not yet made at a time; None: as many as there are cycles
    opens_first: ClassVar[bool] = False  # whether a run begins with a cycle, before any job comes

    begin: ClassVar[Entry] = forget_nothing
    open: ClassVar[Entry] = open_always
    act: ClassVar[Entry]
    observe: ClassVar[Entry]
    reward: ClassVar[Entry]
    measure: ClassVar[Entry] = measure_nothing
    follow: ClassVar[Entry | None] = None  # how schedules become choices to learn from; None: they cannot

    @property
    def entries(self) -> tuple[Entry, ...]:
        """As `kernels`, to be compiled."""
        return tuple(getattr(self, name) for name in SchedulerKernels._fields)

    def kernels(self) -> SchedulerKernels:
        """Addresses of the entries, compiled now unless they were before."""
        return SchedulerKernels(*(entry.address for entry in self.entries))

    def encoder_fields(self, settings: Any, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings and the number of hosts."""
        raise NotImplementedError

    def make_encoder(self, settings: Any, cores: int, workloads: Sequence[Workload], **options: Any) -> Encoder:
        """The encoder for a cluster and its jobs; `options` are those of `read_options` that are no settings."""
        raise NotImplementedError

    def new_memory(self, settings: Any, encoder: Encoder, state: ClusterState) -> Bundle:
        """The memory of the kernels in an environment; that of a deployed policy is the encoder's."""
        return encoder.new_memory(state)

    def draws_of(self, settings: Any) -> Draws:
        """What a policy draws that was learned with these settings."""
        return self.draws

    def reward_parameters(self, settings: Any) -> tuple[float, ...]:
        """Numbers for the kernel `reward`: `EpisodeProgress.parameters`."""
        return ()

    def layout(self, encoder: Any) -> Layouts | None:
        """Where the cluster and the jobs are in an observation, for networks that want to know."""
        return None

    def outlook(self, settings: Any, encoder: Encoder) -> OutlookSettings | None:
        """How long jobs are expected to run; None: for their walltimes."""
        return settings.outlook if isinstance(settings, ExpectingSettings) else None

    def supply(self, settings: Any) -> SupplySettings | None:
        """What happens beyond a supply of power and after deadlines; None: neither counts in its environments."""
        return None

    def read_options(self, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Settings, and what of the options of an environment is none.

        Raises:
            ConfigError: for a value that does not fit.
        """
        known = self.Settings.__struct_fields__
        given = {name: value for name, value in options.items() if name in known}
        return convert_settings(self, given), {name: value for name, value in options.items() if name not in known}


Measured = Mapping[str, NDArray[np.float64]]  # of each of `decision.rl.envs.EPISODE_METRICS`, (sequences,)


class ParametricScheduler(Scheduler):
    """A compiled policy with numbers to be learned, judged by whole schedules."""

    algorithms = ("cma-es",)
    observation: ClassVar[str] = "packing"  # of environments that judge: these know utilization to the last end, too
    sees: ClassVar[Mapping[str, Any]]  # for checkpoints: name and version of what the numbers mean
    weights: ClassVar[tuple[int, ...]]  # shape of the numbers
    added: ClassVar[int] = 0  # so many of them, the last ones, are not in older checkpoints, where they count as 0

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """The numbers at which learning begins."""
        raise NotImplementedError

    def policy(self, weights: NDArray[np.float64], name: str) -> CompiledPolicy:
        """The policy that the numbers make."""
        raise NotImplementedError

    def references(self) -> list[NDArray[np.float64]]:
        """Weights of policies that candidates are compared with."""
        return []

    def cost(self, settings: Any, own: Measured, references: Sequence[Measured], done: float) -> float:
        """What is minimised: of a candidate's scores, with those of the references.

        Args:
            settings: of the environment.
            own: of a candidate.
            references: of each of the references.
            done: share of the training that is over.
        """
        raise NotImplementedError


def convert_settings(scheduler: Scheduler, given: Mapping[str, Any]) -> Any:
    """Settings of a scheduler from what a file or a caller gives.

    Raises:
        ConfigError: for a name that it does not have, or a value that does not fit.
    """
    # names first: msgspec's own message would not say which there are
    known = scheduler.Settings.__struct_fields__
    for name in given:
        if name not in known:
            has = f"{scheduler.name} has {', '.join(known)}"
            raise ConfigError(f"there is no env.{name}{nearest(name, known)} ({has})")
    try:
        return msgspec.convert(dict(given), scheduler.Settings)
    except msgspec.ValidationError as error:
        message, _, key = str(error).partition(" - at `$.")
        raise ConfigError(f"env.{key.rstrip('`')}: {message[0].lower()}{message[1:]}") from None


# --- The registry of schedulers, and of their observations by name ---------------------------------------------------

_ENTRY_POINTS = "decision.schedulers"  # group of installed packages' entry points: each is a `Scheduler`

_S = TypeVar("_S", bound=Scheduler)
_RECORDS: dict[str, Scheduler] = {}
# What else knows the records (Gymnasium's registry) hears of later ones, too
_LISTENERS: list[Callable[[Scheduler], None]] = []


def register(scheduler: _S) -> _S:
    """Let a scheduler be trained, evaluated, deployed and listed like those of this package."""
    _RECORDS[scheduler.name] = scheduler
    for listener in _LISTENERS:
        listener(scheduler)
    return scheduler


def for_each_record(listener: Callable[[Scheduler], None]) -> None:
    """Call `listener` with each record, also with those that are registered later."""
    for scheduler in records().values():
        listener(scheduler)
    _LISTENERS.append(listener)


def records() -> Mapping[str, Scheduler]:
    """All schedulers by name; installed packages' ones (entry points) are loaded at the first call."""
    _load_installed()
    return _RECORDS


@functools.cache
def _load_installed() -> None:
    """Once: to look through what is installed takes ten milliseconds."""
    from importlib.metadata import entry_points  # 10 ms of a start

    for point in entry_points(group=_ENTRY_POINTS):
        if point.name not in _RECORDS:
            register(point.load())


def find_scheduler(name: str) -> Scheduler:
    """The scheduler of a name; ``./mine.py:MyScheduler`` and ``module:MyScheduler`` are an `Environment`'s class.

    Raises:
        ConfigError: if there is none.
    """
    known = records()
    if name not in known:
        if ":" in name:
            from .own_record import named_record  # it is a loop over the records, too

            return named_record(name)
        raise ConfigError(f"there is no scheduler {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return known[name]


def choosing() -> list[ChoosingScheduler]:
    """The schedulers that choose, and so have environments."""
    return [scheduler for scheduler in records().values() if isinstance(scheduler, ChoosingScheduler)]


def find_observation(name: str) -> tuple[ChoosingScheduler, Mapping[str, Any]]:
    """The scheduler whose observation has this name, and the settings that the name stands for.

    Raises:
        ConfigError: if there is none.
    """
    if ":" in name and isinstance(own := find_scheduler(name), ChoosingScheduler):
        return own, {}
    known = {encoder: scheduler for scheduler in choosing() for encoder in scheduler.observations}
    if name not in known:
        raise ConfigError(f"there is no encoder {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return known[name], known[name].observations[name]


def make_encoder(cores: int, workloads: Sequence[Workload], *, name: str = "dbf", **options: Any) -> Encoder:
    """An encoder for a cluster and its jobs.

    Args:
        cores: hosts of the cluster.
        workloads: jobs, all with a walltime.
        name: of the observation: ``dbf`` (one number per core), ``dbf-pools``, ``rlscheduler``, ``inspector`` or
            another scheduler's.
        options: settings of its scheduler; ``max_runtime`` (seconds, by default the longest walltime of the
            workloads) and ``max_wait`` (seconds that count as 1); and ``pools`` with ``dbf-pools``.

    Raises:
        ConfigError: for a number or name that makes no sense.
    """
    scheduler, fixed = find_observation(name)
    settings, rest = scheduler.read_options({**scheduler.env_options, **options, **fixed})
    return scheduler.make_encoder(settings, cores, workloads, **rest)


def read_encoder(fields: Mapping[str, Any]) -> Encoder:
    """The encoder whose fields (`msgspec.to_builtins`) a checkpoint has.

    Raises:
        ConfigError: if a field is missing or unknown, or the version is another.
    """
    kind = find_observation(str(fields.get("name", "")))[0].encoder_type
    try:
        return msgspec.convert(dict(fields), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the encoder of the checkpoint cannot be read: {error}") from error


def encoder_of_format_1(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an encoder as checkpoints of format 1 have them, in the present form.

    Then all encoders had the same fields, most of which meant nothing to most.
    """
    former = ("cores", "cluster", "head", "tail", "base")
    kinds = {name: scheduler.encoder_type for scheduler in choosing() for name in scheduler.observations}
    kind = kinds.get(str(fields.get("name", "")))
    known = kind.__struct_fields__ if kind else former
    return {name: value for name, value in fields.items() if name in known or name not in former}
