"""What Launchpad's environment can be set to, and its observations as numbers."""

from typing import Annotated, Literal

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.policies.config import Suspend
from decision.state.cluster import ClusterState

from . import green_seen as obs
from .encoder import Encoder
from .green_seen import GreenMemory
from .packing import MOST_NODES
from .window import MOST_SLOTS, Count, check_scale

GREEN_COMPACT, GREEN_IMAGE = "green", "green-image"  # observations
Weight = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86400)]
Suspensions = Literal["never", "value", "density"]


class GreenSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment of Launchpad."""

    observation: Literal["compact", "image"] = "compact"  # numbers about jobs, or the paper's
    pool: Annotated[int, msgspec.Meta(ge=1, le=MOST_SLOTS)] = 10  # ready jobs: the first ones of the queue
    step: Annotated[float, msgspec.Meta(ge=1, le=86400)] = 60.0  # seconds
    suspend: Suspensions = "value"  # by what a running job is worth less than a ready one
    late: Literal["reject", "keep"] = "reject"  # jobs that cannot end in time
    beyond: Literal["suspend", "grid"] = "suspend"  # jobs beyond the supply
    restart: Seconds = 0.0  # that what is left of a suspended job takes before it goes on
    violation_cost: Weight = 0.0  # of the value that was violated
    jobs: Count = 200  # of an episode


class GreenEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster and the ready jobs, or the image and these; and when there is something to choose."""

    name: str = GREEN_COMPACT
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
        if not (self.hosts == 0 if self.name == GREEN_COMPACT else 1 <= self.hosts <= MOST_NODES):
            wanted = "0" if self.name == GREEN_COMPACT else f"1 to {MOST_NODES:,}"
            raise ConfigError(f"encoder {self.name}: hosts must be {wanted}; found {self.hosts}")

    @property
    def actions(self) -> int:
        """A: starts, suspend, and no_op."""
        return self.pool + obs.EXTRA_ACTIONS

    @property
    def shape(self) -> tuple[int]:
        """(D,)"""
        return (self.width_on(self.hosts),)

    def width_on(self, cores: int) -> int:
        """Numbers of the image on so many hosts, or about any cluster, and about the ready jobs."""
        if self.name == GREEN_COMPACT:
            return obs.CLUSTER + obs.COMPACT_FEATURES * self.pool
        return 2 * obs.ROWS * cores + obs.IMAGE_FEATURES * self.pool + 1

    @property
    def window(self) -> int:
        """Jobs of the queue that are seen."""
        return self.pool

    @property
    def flags(self) -> int:
        """The cells of the image."""
        return 2 * obs.ROWS * self.hosts

    @property
    def suspends(self) -> bool:
        """Whether running jobs may be suspended for others."""
        return self.suspend != "never"

    def new_memory(self, state: ClusterState) -> GreenMemory:
        """The encoder as numbers for the kernels; nobody was suspended."""
        return GreenMemory(
            pool=self.pool,
            suspends=Suspend[self.suspend.upper()],
            image=self.name == GREEN_IMAGE,
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
