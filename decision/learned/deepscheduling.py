"""DeepScheduling: which job starts and which waits, so that servers may stay off.

Casagrande, Koslovski, Miers and Pillon, DeepScheduling: Grid Computing Job Scheduler based on Deep Reinforcement
Learning, AINA 2020. Where the paper contradicts itself or is silent the rules are those of the authors' program (shares
in the reward, 20 jobs), or ours: how numbers are scaled, and what a day is.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.compiling.bundle import Bundle
from decision.model.dates import chosen_days
from decision.model.errors import ConfigError
from decision.model.notices import warn_once
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.booking import new_booking
from decision.state.cluster import ClusterState, nb_hosts

from . import deepscheduling_kernels as kernels
from . import deepscheduling_seen as obs
from .base import ChoosingScheduler, Episodes
from .confidence import longer_confidence, new_confidence
from .deepscheduling_seen import DeepSchedulingMemory
from .encoder import Encoder, Sequences
from .registry import register
from .window import Count, check_scale, longest_walltime

NAME = "deepscheduling"

Weight = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Day = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)]


class DeepSchedulingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment of DeepScheduling."""

    days: Annotated[tuple[Day, ...], msgspec.Meta(max_length=2)] = ()  # (A,): from A on; (A, B): A to B - 1; (): all
    timeout: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 300.0  # seconds after which an idle server sleeps
    masked: bool = False  # whether only jobs that fit can be chosen, and no choice is asked for where none does
    reward: Literal["shares", "counts"] = "shares"  # of servers and cores, or how many, as printed
    idle_weight: Weight = 1.0  # rho of the reward
    queue_weight: Weight = 1.0  # sigma
    computing_weight: Weight = 0.2  # tau
    steps: Count = 20_000  # choices after which a day is cut off


class DeepSchedulingEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first jobs of the queue, jobs that run, and snapshots of the cluster; and when servers fall asleep."""

    name: str = NAME
    timeout: float  # seconds
    masked: Annotated[int, msgspec.Meta(ge=0, le=1)]  # 1 where only jobs that fit can be chosen
    max_runtime: float  # seconds: the longest walltime

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("max_runtime", self.max_runtime)
        if not 0 <= self.timeout < np.inf:
            raise ConfigError(f"timeout: must be finite and not negative; found {self.timeout}")

    @property
    def shape(self) -> tuple[int]:
        """(280,)"""
        return (obs.WIDTH,)

    @property
    def actions(self) -> int:
        """A: void, and the jobs that are seen."""
        return obs.JOBS_SEEN + 1

    @property
    def window(self) -> int:
        """Jobs of the queue that are seen."""
        return obs.JOBS_SEEN

    def check_platform(self, platform: Platform) -> None:
        """Refuse a platform whose hosts never sleep. Raises ConfigError."""
        if not any(host.sleep for host in platform.hosts):
            where = platform.path or "the platform"
            advice = "decision platform grid5000 --energy taurus makes such hosts, and decision run needs -E"
            raise ConfigError(f"{where}: no host has sleep states, and {NAME} needs some; {advice}", field="platform")

    def new_memory(self, state: ClusterState) -> DeepSchedulingMemory:
        """The encoder as numbers for the kernels; nothing is booked."""
        jobs, setting, at = len(state.size), np.zeros(obs.N_SETTINGS), np.zeros(obs.N_MOMENTS)
        setting[[obs.LONGEST_WALLTIME, obs.TIMEOUT, obs.ONLY_FITTING]] = (self.max_runtime, self.timeout, self.masked)
        at[[obs.NEXT, obs.LAST]] = -np.inf
        return DeepSchedulingMemory(
            **new_booking(nb_hosts(state)),
            setting=setting,
            counted=np.zeros(obs.N_COUNTED, np.int64),
            at=at,
            window=np.zeros(obs.JOBS_SEEN, np.int32),
            agenda=np.zeros(obs.JOBS_SEEN, np.int32),
            agenda_end=np.zeros(obs.JOBS_SEEN),
            snapshot=np.zeros(obs.JOBS_SEEN * obs.SNAPSHOT_NUMBERS, np.float32),
            **new_confidence(jobs),
        )

    def with_room(self, memory: Any, state: ClusterState) -> Bundle:
        """The same memory with room for every job of `state`."""
        if len(memory.previous) >= len(state.size):
            return memory
        return memory._replace(**longer_confidence(memory, len(state.size)))


class DeepScheduling(ChoosingScheduler):
    """DeepScheduling: which job starts and which waits, so that servers may stay off.

    Casagrande, Koslovski, Miers and Pillon, AINA 2020. Hosts with the same property ``server`` are one machine, and a
    host is a core. Servers sleep after `timeout` seconds in which no core of theirs runs or is booked.

    Observation, version 1, all in [0, 1], f32 (280,)::

        3 k               of the k-th of the first 20 jobs that wait without hosts: cores / all cores
        3 k + 1               log(1 + walltime) / log(1 + longest walltime), in minutes
        3 k + 2               confidence: the mean of run time / walltime of its user's last 20 jobs, 1 at first
        60 + 3 k          of the k-th of the 20 jobs that run and end first by their walltimes: cores / all cores
        60 + 3 k + 1          remaining time by its walltime, on the same scale
        60 + 3 k + 2          remaining time by confidence * walltime, 0 once that is over
        120 + 8 k         of the k-th of the last 20 snapshots, one for each choice: booked and busy cores / all cores
        120 + 8 k + 1         log(1 + jobs that wait without hosts) / log(1 + 4500)
        120 + 8 k + 2         time of the day
        120 + 8 k + 3 .. 7    cores that are off, wake, fall asleep, are idle, and compute, / all cores

    Zeros stand after the last entry. The time of the day is that of a run that begins an hour before midnight, as runs
    of days do.

    Actions: 0, void; k = 1 .. 20, the k-th of these jobs gets its cores at once, asleep or not: by state of the server
    (idle, waking, asleep, falling asleep), then by number. It starts when they are all awake. The clock stands still
    then. After void, and a job that is not there or does not fit, a minute passes; where no job waits without
    hosts, the time until the next event.

    Reward: 0 for a job that booked hosts, else the sum over the minutes that pass of R = -rho idle servers / servers
    - sigma (sum of 1 / walltime in minutes, over the jobs that are seen) + tau computing cores / cores. With
    ``reward="counts"`` servers and cores are counted, as the paper prints it.

    Episode: a day with two submissions or more. It begins an hour before midnight, so that all servers sleep when it
    comes, and terminates when all jobs are over and all servers sleep again; it is truncated after `steps` choices. The
    first choice is at the first submission. A random one is of one of five groups, by the share of submissions that
    come less than 5 minutes after the one before, and then any of its days.

    Masks: ``info["action_mask"]`` i8 (21,), `action_masks()`, and in the observation with `dict_observation`: all 1,
    but with `masked`: there only void and jobs that fit can be chosen, and where none fits no choice is asked for.

    At the end ``info["metrics"]`` has what `decision.envs.EPISODE_METRICS` names, and from midnight on
    ``energy_waste``, joules of idle servers and of switches, and ``switches`` of servers; and ``unknown_users``, jobs
    that do not say whose they are.
    """

    name = NAME
    summary = "a network chooses which job starts and which waits, so that servers may stay off"
    paper = "Casagrande et al. 2020"
    Settings = DeepSchedulingSettings
    presets = ("deepscheduling-compact", "deepscheduling-paper")
    networks = ("jobs", "gru", "mlp")
    curves = ("waiting_time", "bounded_slowdown", "utilization")
    env_id = "DeepScheduling"
    observations = {NAME: {}}
    encoder_type = DeepSchedulingEncoder
    metrics = ("energy_waste", "switches", "unknown_users")
    energy = True
    draws = "all"
    calls = True
    most_calls = 64  # minutes and timeouts, of which a later one is asked for only when the earlier one is over
    opens_first = True
    begin, open = kernels.deepscheduling_begin, kernels.deepscheduling_look
    act, observe = kernels.deepscheduling_choose, obs.deepscheduling_observe
    reward, measure = kernels.deepscheduling_reward, kernels.deepscheduling_measure
    model_summary = "learned starts of jobs on servers that sleep"

    def episodes(self, settings: DeepSchedulingSettings, workload: Workload) -> Episodes:
        """Days of the workload; warns of jobs without a user. Raises ConfigError if no day is left."""
        days = tuple(chosen_days(workload, day_range(settings.days)))
        if unknown := sum(not job.user for job in workload.jobs):
            warn_once(f"{unknown:,} of {len(workload.jobs):,} jobs do not say their user: the confidence in these is 1")
        return Episodes(jobs=None, online=False, days=days, steps=settings.steps)

    def encoder_fields(self, settings: DeepSchedulingSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        return {"name": NAME, "timeout": settings.timeout, "masked": int(settings.masked)}

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: DeepSchedulingSettings,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_runtime: float | None = None,
    ) -> DeepSchedulingEncoder:
        """The encoder for jobs.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime.
            max_runtime: seconds; by default the longest walltime of the workloads.
        """
        longest = longest_walltime(workloads) if max_runtime is None else max_runtime
        return DeepSchedulingEncoder(**self.encoder_fields(settings, cores), max_runtime=float(longest))

    def reward_parameters(self, settings: DeepSchedulingSettings) -> tuple[float, ...]:
        """rho, sigma, tau, and whether servers and cores are counted."""
        counts = float(settings.reward == "counts")
        return settings.idle_weight, settings.queue_weight, settings.computing_weight, counts

    def layout(self, encoder: Encoder) -> Sequences:
        """Jobs that wait, jobs that run, and snapshots."""
        return Sequences(
            (obs.JOBS_SEEN, obs.JOB_NUMBERS), (obs.JOBS_SEEN, obs.JOB_NUMBERS), (obs.JOBS_SEEN, obs.SNAPSHOT_NUMBERS)
        )


def day_range(days: tuple[int, ...]) -> slice:
    """Those that the setting `days` names."""
    return slice(days[0] if days else 0, days[1] if len(days) == 2 else None)


register(DeepScheduling())
