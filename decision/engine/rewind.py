"""Back to the beginning: the same arrays simulate another run, and nothing is allocated."""

from decision.jit import kernel
from decision.state.cluster import IDLE, N_IDLE
from decision.state.transitions import refresh_free

from .activities import told
from .arrays import BAD_EVENT, CLOCK, FIRST_JOULES, LAST_JOULES
from .server import begin


@kernel
def rewind(state, facts, truth, sim, first, last, clock):
    """An idle cluster at `clock` seconds, to which jobs `first` <= t < `last` of the truth's only workload will come.

    For runs without energy, external events, traces and dynamic jobs. The first question is open then.
    """
    _empty_cluster(state, facts, told(clock))
    sim.flag[:] = 0
    sim.flag[BAD_EVENT] = -1
    sim.real[:] = 0.0
    sim.real[FIRST_JOULES] = -1.0
    sim.real[LAST_JOULES] = -1.0
    sim.real[CLOCK] = clock
    sim.due[0] = -2
    sim.workload_at[0] = first
    sim.workload_told[0] = first
    truth.workload_end[0] = last
    begin(state, facts, truth, sim)


@kernel
def _empty_cluster(state, facts, now):
    state.now[0] = now
    state.count[:] = 0
    state.count[N_IDLE] = len(state.host_state)
    state.time_in_state[:] = 0.0
    state.host_job[:] = -1
    state.host_state[:] = IDLE
    state.host_since[:] = now
    state.free[:] = 0
    for host in range(len(state.host_state)):
        refresh_free(state, facts, host)
