"""What a learned scheduler is: one record of all that is its own.

`ChoosingScheduler` is one that looks at the cluster and chooses, again and again; `ParametricScheduler` is a compiled
policy with numbers to be learned. `decision.learned` says how to add one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import Bundle
from decision.compiling.entry import Entry
from decision.model.dates import BusyDay
from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.workload import Workload
from decision.policies.catalogue import OptionLine
from decision.policies.outlook_settings import Correction, Estimator, OutlookSettings
from decision.policies.prepared import CompiledPolicy
from decision.policies.supply_settings import SupplySettings
from decision.state.cluster import ClusterState

from .encoder import Encoder, Layouts
from .kernel_interfaces import SchedulerKernels, forget_nothing, measure_nothing, open_always

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
    metrics: ClassVar[tuple[str, ...]] = ()  # its own, besides `decision.envs.EPISODE_METRICS`
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
    needs_value: ClassVar[bool] = False  # whether jobs must say what they are worth
    needs_qos: ClassVar[bool] = False  # and their quality of service
    draws: ClassVar[Draws] = "nothing"  # what it draws, and does not take the best of (`decision.learn.actor`)
    baseline_action: ClassVar[int] = -1  # an episode's BASELINE_SLOWDOWN is that of taking it always; -1: none
    choices_per_job: ClassVar[int] = 2  # cycles that a job can begin: at its arrival, its end, and when it asks for one
    calls: ClassVar[bool] = False  # whether it asks for cycles (`cycles.call_at`)
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


Measured = Mapping[str, NDArray[np.float64]]  # of each of `decision.envs.EPISODE_METRICS`, (sequences,)


class ParametricScheduler(Scheduler):
    """A compiled policy with numbers to be learned, judged by whole schedules."""

    algorithms = ("cma-es",)
    observation: ClassVar[str] = "packing"  # of environments that judge: these know utilization to the last end, too
    sees: ClassVar[Mapping[str, Any]]  # for checkpoints: name and version of what the numbers mean
    weights: ClassVar[tuple[int, ...]]  # shape of the numbers
    added: ClassVar[int] = 0  # so many of them, the last ones, are not in older checkpoints, where they count as 0

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Where learning begins."""
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
