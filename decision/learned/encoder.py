"""Observations: which one a scheduler reads, how large it is, and what stands where in it."""

from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import Bundle
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.policies.prepared import NoMemory
from decision.state.cluster import ClusterState


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
        """(D,) of an observation."""
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
