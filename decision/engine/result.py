"""From arrays to a `RunRecord`."""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

import numpy as np

from decision.compiling.bundle import I4
from decision.model.column import Texts
from decision.model.hosts import format_hosts, format_intervals
from decision.model.record import NULL_RUNTIME, EnergyTable, Floats, HostState, JobTable, PstateTable, RunRecord
from decision.state.cluster import ENDED, REJECTED, ClusterState

from .compiled import CompiledEngine
from .kernels import arrays as a
from .spool import Allocations


def run_record(engine: CompiledEngine, metadata: Mapping[int, str]) -> RunRecord:
    """Everything that Batsim would write about a run that is over; `metadata` is by job."""
    energy = engine.options.energy
    return RunRecord(
        nb_hosts=len(engine.platform.hosts) + len(engine.platform.storage),
        jobs=_job_table(engine, metadata),
        host_states=engine.host_rows.table(engine.world),
        energy=_energy_table(engine) if energy else None,
        pstates=_pstate_table(engine) if engine.world.sim.switches_on else None,
        time_in_state=_time_in_state(engine.world.sim),
        joules=float(engine.world.sim.last_joules - engine.world.sim.first_joules),
        nb_switches=int(engine.world.sim.nb_switched_hosts),
        nb_grouped_switches=int(engine.world.sim.nb_switches),
    )


def _time_in_state(sim: a.Sim) -> Floats:
    """Host-seconds in each HostState; hosts are idle where they are nothing else."""
    seconds = sim.time_in_state.copy()
    seconds[HostState.IDLE] = 0.0
    seconds[HostState.IDLE] = sim.host_since.sum() - seconds.sum()
    return seconds


def _job_table(engine: CompiledEngine, metadata: Mapping[int, str]) -> JobTable:
    state, sim, truth = engine.state, engine.world.sim, engine.world.truth
    ended = sim.finished[: sim.nb_finished]
    truths = sim.truth_of[ended]
    rejected = state.job_state[ended] == REJECTED
    runtime = sim.end_time[ended] - sim.start_time[ended]
    runtime[runtime == 0.0] = NULL_RUNTIME
    runtime[rejected] = np.nan
    start_time = sim.start_time[ended]
    start_time[rejected] = np.nan
    rests, submit_time, walltime = state.nth_rest[ended] > 0, truth.submit_time[truths], truth.walltime[truths]
    if rests.any():
        submit_time = np.where(rests, state.submit_time[ended], submit_time)
        walltime = np.where(rests, state.walltime[ended], walltime)
    no_energy = np.broadcast_to(-1.0, len(ended))
    return JobTable(
        id=Texts(partial(_texts, engine, "id"), ended),
        profile=Texts(partial(_texts, engine, "profile"), ended),
        submit_time=submit_time,
        size=truth.size[truths],
        walltime=walltime,
        final_state=state.job_state[ended] - np.int8(ENDED),
        start_time=start_time,
        runtime=runtime,
        allocation=Texts(partial(_allocations, engine.allocations, state), ended),
        energy=np.where(rejected, -1.0, sim.energy[ended]) if engine.options.energy else no_energy,
        metadata=Texts(partial(_metadata, metadata), ended),
    )


def _texts(engine: CompiledEngine, field: str, jobs: I4) -> list[str]:
    """The ``id`` or ``profile`` of jobs (n,), those of rests with their number."""
    texts = engine.names.texts(field, engine.world.sim.truth_of[jobs])
    for row in np.flatnonzero(engine.state.nth_rest[jobs]).tolist():
        texts[row] = getattr(engine.job(int(jobs[row])), field)
    return texts


def _allocations(allocations: Allocations, state: ClusterState, jobs: I4) -> list[str]:
    """The hosts of jobs (n,), as Batsim writes them."""
    first, last = allocations.intervals(state, jobs)
    runs, ends = list(zip(first.tolist(), last.tolist(), strict=True)), np.cumsum(state.alloc_count[jobs])
    return [format_intervals(runs[begin:end]) for begin, end in pairwise([0, *ends.tolist()])]


def _metadata(texts: Mapping[int, str], jobs: I4) -> list[str]:
    return [texts.get(job, "") for job in jobs.tolist()]


def _energy_table(engine: CompiledEngine) -> EnergyTable:
    rows, n = engine.world.rows, int(engine.world.sim.nb_energy_rows)
    return EnergyTable(
        time=rows.energy_time[:n].copy(),
        energy=rows.energy_joules[:n].astype(np.longdouble) + rows.energy_rest[:n],
        event=[chr(kind) for kind in rows.energy_kind[:n]],
        wattmin=rows.energy_wattmin[:n].copy(),
    )


def _pstate_table(engine: CompiledEngine) -> PstateTable:
    rows, n = engine.world.rows, int(engine.world.sim.nb_pstate_rows)
    hosts = (*engine.platform.hosts, *engine.platform.storage)
    at_start = sorted({host.initial_pstate for host in hosts})
    first = [format_hosts(host.id for host in hosts if host.initial_pstate == pstate) for pstate in at_start]
    return PstateTable(
        time=np.concatenate([np.zeros(len(first)), rows.pstate_time[:n]]),
        hosts=first + [engine.switched_hosts(int(request)) for request in rows.pstate_switch[:n]],
        pstate=np.concatenate([at_start, rows.pstate_value[:n]]).astype(np.int64),
    )
