"""`Encoder`: which observation a scheduler reads, written down so that training and deployment have the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.model.workload import Workload

from .observe import JOB_FEATURES, Encoding

PER_CORE, PER_POOL = "dbf", "dbf-pools"
VERSIONS = {PER_CORE: 1, PER_POOL: 1}  # to be raised whenever an observation changes its meaning


class Encoder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Observations of a cluster and of a split window of its queue (`decision.features.observe` has their tables).

    Raises:
        ConfigError: for a number that makes no sense, or a name or version that this package does not have.
    """

    name: str = PER_CORE  # "dbf": one number per core; "dbf-pools": for clusters of any size
    version: int = 1
    cores: int  # of the cluster; 0 for any number
    cluster: int  # numbers that describe the cluster: as many as cores, or pools
    head: int  # window slots for the first jobs of the queue
    tail: int  # and for the last
    max_runtime: float  # seconds: the longest runtime that a job may request
    max_wait: float  # seconds that count as 1; longer waits do, too

    def __post_init__(self) -> None:
        if self.name not in VERSIONS:
            raise ConfigError(f"there is no encoder {self.name!r} (there are {', '.join(VERSIONS)})")
        if self.version != VERSIONS[self.name]:
            raise ConfigError(
                f"encoder {self.name} of version {self.version} was asked for, this package has version "
                f"{VERSIONS[self.name]}; use the package that made the checkpoint, or train again"
            )
        if self.head < 0 or self.tail < 0 or self.window < 1:
            raise ConfigError(f"window of {self.head} first and {self.tail} last jobs: it must have at least one slot")
        if self.cluster < 2 - bool(self.cores):
            raise ConfigError(f"{self.cluster} pools: there must be at least 2, for free cores and for others")
        for option in ("max_runtime", "max_wait"):
            if not 0 < getattr(self, option) < np.inf:
                raise ConfigError(f"{option}: must be positive and finite; found {getattr(self, option)}")

    @property
    def window(self) -> int:
        """Slots of the window, M."""
        return self.head + self.tail

    @property
    def actions(self) -> int:
        """A = M + 1: a slot of the window, or Fwd, which is the last."""
        return self.window + 1

    @property
    def shape(self) -> tuple[int]:
        """(D,) of an observation: `cluster` numbers, then four for each slot."""
        return (self.cluster + JOB_FEATURES * self.window,)

    @property
    def encoding(self) -> Encoding:
        """The same for the kernels."""
        pools = 0 if self.name == PER_CORE else self.cluster
        return Encoding(self.head, self.tail, pools, self.max_runtime, self.max_wait)

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform of another size than the observation is for.

        Raises:
            ConfigError: naming both sizes.
        """
        if self.cores not in (0, cores):
            raise ConfigError(
                f"{where} has {cores} hosts, but the policy's observations are of {self.cores}; run it on "
                f"{self.cores} hosts, or train one with the encoder {PER_POOL}, which takes any number"
            )


def make_encoder(
    cores: int,
    workloads: Sequence[Workload],
    *,
    name: str = PER_CORE,
    head: int = 20,
    tail: int = 0,
    pools: int = 20,
    max_runtime: float | None = None,
    max_wait: float | None = None,
) -> Encoder:
    """An encoder for a cluster and its jobs.

    Args:
        cores: hosts of the cluster.
        workloads: jobs, all with a walltime.
        name: ``dbf`` (one number per core) or ``dbf-pools``.
        head: window slots for the first jobs of the queue.
        tail: and for the last.
        pools: how many, with ``dbf-pools``.
        max_runtime: seconds; by default the longest walltime of the workloads.
        max_wait: seconds; by default as long as `max_runtime`.

    Raises:
        ConfigError: for a number or name that makes no sense.
    """
    if max_runtime is None:
        max_runtime = max(job.walltime for workload in workloads for job in workload.jobs)
    per_core = name == PER_CORE
    return Encoder(
        name=name,
        version=VERSIONS.get(name, 0),
        cores=cores if per_core else 0,
        cluster=cores if per_core else pools,
        head=head,
        tail=tail,
        max_runtime=float(max_runtime),
        max_wait=float(max_runtime if max_wait is None else max_wait),
    )


def read_encoder(fields: Mapping[str, Any]) -> Encoder:
    """The encoder whose fields (`msgspec.to_builtins`) a checkpoint has.

    Raises:
        ConfigError: if a field is missing or unknown, or the version is another.
    """
    try:
        return msgspec.convert(dict(fields), Encoder)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the encoder of the checkpoint cannot be read: {error}") from error
