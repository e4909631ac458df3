"""A job in the reference engine: what it is, how far it is, how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from msgspec import UNSET

from decision.model.hosts import format_hosts
from decision.model.record import FinalState
from decision.model.workload import Job
from decision.protocol import JobDescription, TaskProgress

from .profiles import Leaf, LeafKind
from .reference_kernel import Actor, Task
from .reference_machines import Machine


class Phase(Enum):
    """Where a job is in its life."""

    UNKNOWN = "not submitted"
    SUBMITTED = "submitted"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Entry:
    """A job, and all that Batsim remembers of it."""

    job: Job
    description: JobDescription  # as the decision process is told
    leaves: tuple[Leaf, ...]
    moldable: bool  # whether it may get another number of hosts than it requests
    phase: Phase = Phase.UNKNOWN
    final: FinalState | None = None
    forgotten: bool = False  # its end was told: commands can no longer name it
    machines: list[Machine] = field(default_factory=list)  # its allocation, ascending
    executors: list[Machine] = field(default_factory=list)  # one machine per executor; without a mapping, `machines`
    actor: Actor | None = None
    leaf: Leaf | None = None  # the present one
    leaf_begin: float = 0.0  # seconds
    task: Task | None = None  # of the present leaf, where it computes
    start: float = 0.0  # seconds
    runtime: float = 0.0  # seconds
    joules: float | np.longdouble = -1.0  # on its hosts while it ran, where energy is simulated
    return_code: int = -1
    kill_asked: bool = False
    metadata: str = ""

    @property
    def id(self) -> str:
        """The full id."""
        return self.job.id

    @property
    def allocation(self) -> str:
        """Its hosts as Batsim writes them."""
        return format_hosts(machine.id for machine in self.machines)

    def end(self, state: FinalState, now: float) -> None:
        """Note that the job ends now. Batsim turns a runtime of 0 into 1e-5 s."""
        self.phase, self.final = Phase.ENDED, state
        self.runtime = (now - self.start) or 1e-5

    def work(self, leaf: Leaf) -> dict[Machine, float]:
        """Flop of the leaf on each machine; executors on one machine add up."""
        work = dict.fromkeys(self.executors, 0.0)
        for machine, flops in zip(self.executors, _flops(leaf, len(self.executors)), strict=True):
            work[machine] += flops
        return work

    def progress(self, now: float) -> TaskProgress:
        """How far the present leaf is, within the composed profiles around it; Batsim writes six decimals."""
        assert self.leaf is not None
        progress = TaskProgress(self.leaf.profile, progress=round(self._share(self.leaf, now), 6))
        for profile, index in reversed(self.leaf.path):
            progress = TaskProgress(profile, UNSET, current_task_index=index, current_task=progress)
        return progress

    def _share(self, leaf: Leaf, now: float) -> float:
        if leaf.kind is LeafKind.DELAY:
            return (now - self.leaf_begin) / leaf.amount
        return 1.0 - self.task.remains if self.task else 0.0


def _flops(leaf: Leaf, executors: int) -> Sequence[float]:
    if leaf.kind is LeafKind.FLOPS_VECTOR:
        return leaf.flops
    share = leaf.amount / executors if leaf.kind is LeafKind.FLOPS_TOTAL else leaf.amount
    return [share] * executors
