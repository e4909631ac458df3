"""Launchpad: a green datacenter, where power comes and goes and jobs have values and deadlines.

Venkataswamy, Grigsby, Grimshaw and Qi, Launchpad: Learning to Schedule Using Offline and Online RL Methods, JSSPP 2024,
arXiv 2212.00639. Shapes, the number of ready jobs, what happens to jobs beyond the supply and to late ones, and when
time passes are not in the paper; they are ours, as are the compact observation and the density of a suspension.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.model.demand import EXPECTED, VALUE, sizes, walltimes, worths
from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.policies.checks import check_worths
from decision.policies.options import Suspend
from decision.policies.traits import SupplySettings, Traits
from decision.state.cluster import ClusterState

from . import launchpad_kernels as kernels
from .base import ChoosingScheduler, Encoder, Episodes, Image, Pool, jobs_in_a_row
from .launchpad_kernels import LaunchpadMemory
from .packing import MOST_NODES
from .registry import register
from .window import MOST_SLOTS, Count, check_scale

COMPACT, IMAGE = "green", "green-image"  # observations, by the names that checkpoints have
Weight = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86400)]
Suspensions = Literal["never", "value", "density"]


class LaunchpadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What Launchpad's environment can be set to."""

    observation: Literal["compact", "image"] = "compact"  # numbers about jobs, or the paper's
    pool: Annotated[int, msgspec.Meta(ge=1, le=MOST_SLOTS)] = 10  # ready jobs: the first ones of the queue
    step: Annotated[float, msgspec.Meta(ge=1, le=86400)] = 60.0  # seconds
    suspend: Suspensions = "value"  # by what a running job is worth less than a ready one
    late: Literal["reject", "keep"] = "reject"  # jobs that cannot end in time
    beyond: Literal["suspend", "grid"] = "suspend"  # jobs beyond the supply
    restart: Seconds = 0.0  # that what is left of a suspended job takes before it goes on
    violation_cost: Weight = 0.0  # of the value that was violated
    jobs: Count = 200  # of an episode


class LaunchpadEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster and the ready jobs, or the image and these; and when there is something to choose."""

    name: str = COMPACT
    hosts: int  # of the image; 0 for any number
    pool: int  # ready jobs
    step: float  # seconds
    suspend: Suspensions
    max_value: float  # of a job
    max_density: float  # value per host-second
    max_runtime: float  # seconds: the longest that a job is expected to run

    def __post_init__(self) -> None:
        super().__post_init__()
        for scale in ("step", "max_runtime"):
            check_scale(scale, getattr(self, scale))
        for scale in ("max_value", "max_density"):
            if not 0 < getattr(self, scale) < np.inf:
                raise ConfigError(f"{scale}: must be positive and finite; found {getattr(self, scale)}")
        if not 1 <= self.pool <= MOST_SLOTS:
            raise ConfigError(f"pool: must be 1 to {MOST_SLOTS:,} jobs; found {self.pool}")
        if not (self.hosts == 0 if self.name == COMPACT else 1 <= self.hosts <= MOST_NODES):
            wanted = "0" if self.name == COMPACT else f"1 to {MOST_NODES:,}"
            raise ConfigError(f"encoder {self.name}: hosts must be {wanted}; found {self.hosts}")

    @property
    def actions(self) -> int:
        """A: starts, suspend, and no_op."""
        return self.pool + kernels.EXTRA_ACTIONS

    @property
    def shape(self) -> tuple[int]:
        """(D,): the cluster or the image, then the ready jobs."""
        return (self.width_on(self.hosts),)

    def width_on(self, cores: int) -> int:
        """Numbers of the image on so many hosts, or about any cluster, and about the ready jkernels."""
        if self.name == COMPACT:
            return kernels.CLUSTER + kernels.COMPACT_FEATURES * self.pool
        return 2 * kernels.ROWS * cores + kernels.IMAGE_FEATURES * self.pool + 1

    @property
    def window(self) -> int:
        """Jobs of the queue that are seen."""
        return self.pool

    @property
    def flags(self) -> int:
        """The cells of the image."""
        return 2 * kernels.ROWS * self.hosts

    @property
    def suspends(self) -> bool:
        """Whether running jobs may be suspended for others."""
        return self.suspend != "never"

    def new_memory(self, state: ClusterState) -> LaunchpadMemory:
        """The encoder as numbers for the kernels; nobody was suspended."""
        return LaunchpadMemory(
            pool=self.pool,
            suspends=Suspend[self.suspend.upper()],
            image=self.name == IMAGE,
            step_length=self.step,
            longest_runtime=self.max_runtime,
            most_value=self.max_value,
            most_density=self.max_density,
        )

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform of another size than the image. Raises ConfigError."""
        if self.hosts not in (0, cores):
            raise ConfigError(
                f"{where} has {cores} hosts, but the policy's image has {self.hosts}; run it on {self.hosts} hosts, or "
                "train one with env.observation=compact, which takes any number"
            )


class Green(ChoosingScheduler):
    """Launchpad: which ready job starts, or takes the hosts of one that is worth less, while power comes and goes.

    Venkataswamy, Grigsby, Grimshaw and Qi, JSSPP 2024. Jobs have a value, a QoS and a deadline; at most as many hosts
    compute as a supply of power says (events of type ``power_supply``). The `pool` first jobs of the queue are ready.

    Observation ``green``, version 1, all in [0, 1], f32 (17 + 11 n,), n = `pool`, H hosts::

        0 .. 2            hosts that are free, have power, and compute, / H
        3 .. 7            hosts that are expected to have power in 1, 2, 5, 10 and 20 steps / H
        8 .. 12           hosts whose jobs are expected to run on then / H
        13                jobs beyond the pool / n
        14 .. 16          of the job that `suspend` is about: value / highest value, hosts / H, time left / longest
        17 + 11 k         of the k-th ready job: value / highest value
        17 + 11 k + 1         QoS
        17 + 11 k + 2         hosts / H
        17 + 11 k + 3         time that it is expected to run on for / longest
        17 + 11 k + 4         steps to the deadline / 20, from -1 to 1, as 0 to 1
        17 + 11 k + 5         steps since its first submission / 20
        17 + 11 k + 6         share that is done
        17 + 11 k + 7         1
        17 + 11 k + 8         value per host-second / the highest
        17 + 11 k + 9         1 where it fits
        17 + 11 k + 10        1 where `suspend` would start it

    Observation ``green-image``, version 1, f32 (40 H + 8 n + 1,)::

        H r + h           1 where the job of host h is expected to run in r steps, r = 0 .. 19
        20 H + H r + h    1 where h is less than the hosts that are expected to have power in r steps
        40 H + 8 k        the first eight numbers of the k-th ready job
        40 H + 8 n        jobs beyond the pool / n

    Actions: k < n, the k-th ready job starts, on the lowest hosts; n, suspend: of the ready jobs that do not fit the
    one that is worth most takes the hosts of the running one that is worth least of those that are worth less and have
    enough; n + 1, no_op. With ``suspend="density"`` value per host-second left counts there. No time passes by a start
    or a suspension. No_op lets time pass, as do a job that does not fit, and a suspension where there is none. What is
    left of a suspended job joins the end of the queue.

    Decision points: each instant at which something happens, and each multiple of `step` while jobs are ready. Where
    nothing but no_op is valid, no choice is asked for.

    Reward: the value of the jobs that ended, minus `violation_cost` times the value of those that ended after their
    deadlines or left because they could not end before (``late="reject"``).

    Episode: `jobs` jobs in a row of the workload, on an idle cluster, under the supply of that time. It terminates when
    all of them are over, and is truncated where jobs were suspended far too often.

    Masks: ``info["action_mask"]`` i8 (n + 2,), `action_masks()`, and in the observation with `dict_observation`: jobs
    that fit; suspend where there are two such jobs; no_op.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names, and ``value`` of the jobs that
    ended, ``value_share`` and ``violated_share`` of the value of all jobs, and ``suspensions``.
    """

    name = "green"
    summary = "a network chooses which job starts, or is suspended for which, as power comes and goes"
    paper = "Venkataswamy et al. 2024"
    Settings = LaunchpadSettings
    presets = ("green", "green-bc", "green-crr", "green-sac", "green-offline-online", "green-paper")
    networks = ("jobs", "mlp", "image")
    curves = ("utilization", "queue_length")
    env_id = "Green"
    observations = {COMPACT: {"observation": "compact"}, IMAGE: {"observation": "image"}}
    encoder_type = LaunchpadEncoder
    metrics = ("value", "value_share", "violated_share", "suspensions")
    validated = ("value_share", "violated_share")
    choices_per_job = 60
    calls = True
    most_calls = 256  # one by itself, and those by which jobs that are too late leave an idle cluster
    needs_value = needs_qos = True
    begin, open, act, observe = (
        kernels.launchpad_begin,
        kernels.launchpad_look,
        kernels.launchpad_choose,
        kernels.launchpad_observe,
    )
    reward, measure, follow = kernels.launchpad_reward, kernels.launchpad_measure, kernels.launchpad_follow
    model_summary = "learned starts and suspensions, pool {pool}"

    def episodes(self, settings: LaunchpadSettings, workload: Workload) -> Episodes:
        """As many jobs in a row, from any at which so many are left."""
        return jobs_in_a_row(settings.jobs, workload)

    def supply(self, settings: LaunchpadSettings) -> SupplySettings:
        """Late jobs leave, jobs beyond the supply are suspended, and restarts cost time, as the settings say."""
        return SupplySettings(settings.late == "reject", settings.beyond == "suspend", settings.restart)

    def encoder_fields(self, settings: LaunchpadSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings and the number of hosts."""
        image = settings.observation == "image"
        return {
            "name": IMAGE if image else COMPACT,
            "hosts": cores if image else 0,
            "pool": settings.pool,
            "step": settings.step,
            "suspend": settings.suspend,
        }

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: LaunchpadSettings,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_value: float | None = None,
        max_density: float | None = None,
        max_runtime: float | None = None,
    ) -> LaunchpadEncoder:
        """The encoder for a cluster and its jkernels.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime and a value.
            max_value: of a job; by default the highest of the workloads.
            max_density: value per host-second, likewise.
            max_runtime: seconds that a job is expected to run, likewise.

        Raises:
            ConfigError: if a job does not say its value or QoS.
        """
        check_worths(Traits(self.name, needs_value=self.needs_value, needs_qos=self.needs_qos), workloads)
        highest = np.max([_highest(workload) for workload in workloads], axis=0)
        asked = (max_value, max_density, max_runtime)
        value, density, runtime = (float(h if a is None else a) for a, h in zip(asked, highest, strict=True))
        fields = self.encoder_fields(settings, cores)
        return LaunchpadEncoder(**fields, max_value=value, max_density=density, max_runtime=runtime)

    def reward_parameters(self, settings: LaunchpadSettings) -> tuple[float, ...]:
        """What a violated value costs, over what a completed one earns."""
        return (settings.violation_cost,)

    def layout(self, encoder: LaunchpadEncoder) -> Pool | Image:
        """The cluster, then the pool."""
        if encoder.name == IMAGE:
            return Image((2, kernels.ROWS, encoder.hosts), kernels.IMAGE_FEATURES * encoder.pool + 1)
        return Pool(kernels.CLUSTER, encoder.pool, kernels.COMPACT_FEATURES, kernels.EXTRA_ACTIONS)


def _highest(workload: Workload) -> tuple[float, float, float]:
    """Value, value per host-second, and seconds that jobs are expected to run."""
    rows = worths(workload)
    assert rows is not None
    run = np.where(rows[:, EXPECTED] > 0, rows[:, EXPECTED], walltimes(workload))
    return float(rows[:, VALUE].max()), float((rows[:, VALUE] / (sizes(workload) * run)).max()), float(run.max())


register(Green())
