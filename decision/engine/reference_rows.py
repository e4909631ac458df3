"""What the reference engine writes down while it runs, and the `RunRecord` it becomes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decision.model.hosts import format_hosts
from decision.model.record import EnergyTable, FinalState, HostState, HostTable, JobTable, PstateTable, RunRecord

from .reference_jobs import Entry
from .reference_machines import Machine

SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP = -1, -2  # what Batsim writes in place of a pstate


@dataclass(slots=True)
class Rows:
    """Rows of Batsim's output files, in the order in which Batsim writes them."""

    jobs: list[Entry] = field(default_factory=list)  # ended jobs
    hosts: list[tuple[float, list[int]]] = field(default_factory=list)  # seconds, hosts in each HostState
    energy: list[tuple[float, np.longdouble, str, float]] = field(default_factory=list)  # seconds, joules, kind, watts
    pstates: list[tuple[float, str, int]] = field(default_factory=list)  # seconds, hosts, pstate
    first_joules: float | np.longdouble = -1.0  # joules at the first submission
    last_joules: float | np.longdouble = -1.0  # joules at the last end of a job
    nb_switches: int = 0
    nb_grouped_switches: int = 0

    def begin_pstates(self, machines: Sequence[Machine]) -> None:
        """Write down the pstates of time 0, lowest first."""
        for pstate in sorted({machine.pstate for machine in machines}):
            hosts = format_hosts(machine.id for machine in machines if machine.pstate == pstate)
            self.pstates.append((0.0, hosts, pstate))

    def record(self, machines: Sequence[Machine], energy: bool) -> RunRecord:
        """Everything that Batsim would write about the run."""
        in_state = np.array([machine.time_in_state for machine in machines]).reshape(-1, len(HostState))
        return RunRecord(
            nb_hosts=len(machines),
            jobs=self._job_table(),
            host_states=HostTable(
                time=np.array([time for time, _ in self.hosts], np.float64),
                counts=np.array([counts for _, counts in self.hosts], np.int64).reshape(-1, len(HostState)),
            ),
            energy=self._energy_table() if energy else None,
            pstates=self._pstate_table() if energy else None,
            time_in_state=in_state.sum(axis=0),
            joules=float(self.last_joules - self.first_joules),
            nb_switches=self.nb_switches,
            nb_grouped_switches=self.nb_grouped_switches,
        )

    def _job_table(self) -> JobTable:
        return JobTable(
            id=[entry.job.id for entry in self.jobs],
            profile=[entry.job.profile for entry in self.jobs],
            submit_time=np.array([entry.job.submit_time for entry in self.jobs], np.float64),
            size=np.array([entry.job.size for entry in self.jobs], np.int64),
            walltime=np.array([entry.job.walltime for entry in self.jobs], np.float64),
            final_state=np.array([entry.final for entry in self.jobs], np.int64),
            start_time=np.array([_unless_rejected(entry, entry.start) for entry in self.jobs], np.float64),
            runtime=np.array([_unless_rejected(entry, entry.runtime) for entry in self.jobs], np.float64),
            allocation=[entry.allocation for entry in self.jobs],
            energy=np.array([entry.joules for entry in self.jobs], np.float64),
            metadata=[entry.metadata for entry in self.jobs],
        )

    def _energy_table(self) -> EnergyTable:
        return EnergyTable(
            time=np.array([row[0] for row in self.energy], np.float64),
            energy=np.array([row[1] for row in self.energy], np.longdouble),
            event=[row[2] for row in self.energy],
            wattmin=np.array([row[3] for row in self.energy], np.float64),
        )

    def _pstate_table(self) -> PstateTable:
        return PstateTable(
            time=np.array([row[0] for row in self.pstates], np.float64),
            hosts=[row[1] for row in self.pstates],
            pstate=np.array([row[2] for row in self.pstates], np.int64),
        )


def _unless_rejected(entry: Entry, value: float) -> float:
    return math.nan if entry.final is FinalState.REJECTED else value
