"""A job of the reference engine: what it is, what it does, and how far it is."""

from dataclasses import dataclass, field

import numpy as np

from decision.engine.profiles import LeafKind, LeafTask, amounts, sendings
from decision.engine.refusals import JobPhase
from decision.model.hosts import format_hosts
from decision.model.record import NULL_RUNTIME, FinalState
from decision.model.workload import Job

from .activities import ParallelTask, SimActor
from .machines import HostMachine


@dataclass(slots=True, eq=False)
class SimJob:
    """A job, and all that Batsim remembers of it."""

    facts: Job
    leaves: tuple[LeafTask, ...]
    moldable: bool  # whether it may get another number of hosts than it requests
    phase: JobPhase = JobPhase.UNKNOWN
    final: FinalState | None = None
    machines: list[HostMachine] = field(default_factory=list)  # its allocation, ascending
    executors: list[HostMachine] = field(
        default_factory=list
    )  # one machine per executor; without a mapping, `machines`
    actor: SimActor | None = None
    leaf: LeafTask | None = None  # the present one
    leaf_begin: float = 0.0  # seconds
    task: ParallelTask | None = None  # of the present leaf, where it computes
    start: float = 0.0  # seconds
    runtime: float = 0.0  # seconds
    joules: float | np.longdouble = -1.0  # on its hosts while it ran, where energy is simulated
    return_code: int = -1
    kill_asked: bool = False
    metadata: str = ""

    @property
    def id(self) -> str:
        """The full id."""
        return self.facts.id

    @property
    def allocation(self) -> str:
        """Its hosts as Batsim writes them."""
        return format_hosts(machine.id for machine in self.machines)

    def end(self, state: FinalState, now: float) -> None:
        """Note that the job ends now. Batsim writes no runtime of 0."""
        self.phase, self.final = JobPhase.ENDED, state
        self.runtime = (now - self.start) or NULL_RUNTIME

    def work(self, leaf: LeafTask) -> dict[HostMachine, float]:
        """Flop of the leaf on each machine; executors on one machine add up."""
        work = dict.fromkeys(self.executors, 0.0)
        for machine, flops in zip(self.executors, amounts(leaf, len(self.executors)), strict=True):
            work[machine] += flops
        return work

    def sent(self, leaf: LeafTask) -> dict[tuple[HostMachine, HostMachine], float]:
        """Bytes of the leaf from machine to machine; those of executors on the same machines add up."""
        sent: dict[tuple[HostMachine, HostMachine], float] = {}
        if leaf.sent > 0:
            for i, j, amount in sendings(leaf, len(self.executors)):
                pair = self.executors[i], self.executors[j]
                sent[pair] = sent.get(pair, 0.0) + amount
        return sent

    def progress(self, now: float) -> float:
        """Share of the present leaf that is done."""
        assert self.leaf is not None
        if self.leaf.kind is LeafKind.DELAY:
            return (now - self.leaf_begin) / self.leaf.amount
        return 1.0 - self.task.remains if self.task else 0.0
