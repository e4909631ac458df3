"""`Encoder`: which observation a scheduler reads, written down so that training and deployment have the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.policies.slots import Order, PolicyConfig

from .choices import DBF, INSPECT, PICK
from .observe import INSPECTED, JOB_FEATURES, Encoding

PER_CORE, PER_POOL, WINDOW, INSPECTOR = "dbf", "dbf-pools", "rlscheduler", "inspector"
VERSIONS = {PER_CORE: 1, PER_POOL: 1, WINDOW: 1, INSPECTOR: 1}  # to be raised whenever a meaning changes
KINDS = {PER_CORE: DBF, PER_POOL: DBF, WINDOW: PICK, INSPECTOR: INSPECT}
BASES = {"sjf": Order.SJF, "f1": Order.F1}  # orders that SchedInspector inspects
HALF_A_DAY = 12 * 3600.0  # seconds: what counts as 1 in a wait for RLScheduler and SchedInspector


class Encoder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Observations of a cluster and of a split window of its queue (`decision.features.observe` has their tables).

    Raises:
        ConfigError: for a number that makes no sense, or a name or version that this package does not have.
    """

    name: str = PER_CORE  # "dbf" has one number per core; the others are for clusters of any size
    version: int = 1
    cores: int  # of the cluster; 0 for any number
    cluster: int  # numbers before those of the window: as many as cores, or pools
    head: int  # window slots for the first jobs of the queue
    tail: int  # and for the last
    max_runtime: float  # seconds: the longest runtime that a job may request
    max_wait: float  # seconds that count as 1; longer waits do, too
    base: str = "sjf"  # the order that is inspected, "sjf" or "f1"; "inspector" only

    def __post_init__(self) -> None:
        if self.name not in VERSIONS:
            raise ConfigError(f"there is no encoder {self.name!r} (there are {', '.join(VERSIONS)})")
        if self.version != VERSIONS[self.name]:
            raise ConfigError(
                f"encoder {self.name} of version {self.version} was asked for, this package has version "
                f"{VERSIONS[self.name]}; use the package that made the checkpoint, or train again"
            )
        if self.head < 0 or self.tail < 0 or self.window < (self.name != INSPECTOR):
            raise ConfigError(f"window of {self.head} first and {self.tail} last jobs: it must have at least one slot")
        if self.name == PER_POOL and self.cluster < 2:
            raise ConfigError(f"{self.cluster} pools: there must be at least 2, for free cores and for others")
        if self.base not in BASES:
            raise ConfigError(f"there is no order {self.base!r} to inspect (there are {', '.join(BASES)})")
        for option in ("max_runtime", "max_wait"):
            if not 0 < getattr(self, option) < np.inf:
                raise ConfigError(f"{option}: must be positive and finite; found {getattr(self, option)}")

    @property
    def window(self) -> int:
        """Slots of the window, M."""
        return self.head + self.tail

    @property
    def actions(self) -> int:
        """A: the slots of the window, with DBF Fwd after them; to accept or to refuse for the inspector."""
        return {DBF: self.window + 1, PICK: self.window, INSPECT: 2}[KINDS[self.name]]

    @property
    def shape(self) -> tuple[int]:
        """(D,) of an observation: `cluster` numbers, then four for each slot."""
        return (self.cluster + JOB_FEATURES * self.window,)

    @property
    def encoding(self) -> Encoding:
        """The same for the kernels."""
        pools = self.cluster if self.name == PER_POOL else 0
        base = PolicyConfig(order=int(BASES[self.base]))
        return Encoding(self.head, self.tail, pools, self.max_runtime, self.max_wait, KINDS[self.name], base)

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
    base: str = "sjf",
) -> Encoder:
    """An encoder for a cluster and its jobs.

    Args:
        cores: hosts of the cluster.
        workloads: jobs, all with a walltime.
        name: ``dbf`` (one number per core), ``dbf-pools``, ``rlscheduler`` or ``inspector`` (without a window).
        head: window slots for the first jobs of the queue.
        tail: and for the last.
        pools: how many, with ``dbf-pools``.
        max_runtime: seconds; by default the longest walltime of the workloads.
        max_wait: seconds; by default as long as `max_runtime` with DBF, else 12 hours as in the others' papers.
        base: the order that is inspected, ``sjf`` or ``f1``.

    Raises:
        ConfigError: for a number or name that makes no sense.
    """
    if max_runtime is None:
        max_runtime = max(job.walltime for workload in workloads for job in workload.jobs)
    if max_wait is None:
        max_wait = HALF_A_DAY if name in (WINDOW, INSPECTOR) else max_runtime
    return Encoder(
        name=name,
        version=VERSIONS.get(name, 0),
        cores=cores if name == PER_CORE else 0,
        cluster={PER_CORE: cores, PER_POOL: pools, INSPECTOR: INSPECTED}.get(name, 0),
        head=0 if name == INSPECTOR else head,
        tail=0 if name in (WINDOW, INSPECTOR) else tail,
        max_runtime=float(max_runtime),
        max_wait=float(max_wait),
        base=base,
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
