"""Energy: what each host draws, and the rows of Batsim's energy traces (SimGrid's host energy model).

A host draws ``idle`` watts of its pstate without load and ``epsilon + load * (full - epsilon)`` under load. A delay
puts no load on its hosts. A switch is full load in its virtual pstate, and so is anything in a pstate of speed 0.
"""

from decision.jit import kernel
from decision.state.cluster import N_HOST_STATES, N_IN_STATE

from .arrays import (
    CLOCK,
    ENERGY_ON,
    ENERGY_ROWS,
    FIRST_JOULES,
    FIRST_SUBMITTED,
    HOST_ROWS,
    JOULES,
    JOULES_REST,
    LAST_JOULES,
    PSTATE_ROWS,
    STORAGE_WATTS,
    TRACE_ON,
    WATTS_MIN,
)


@kernel
def watts_under(state, facts, host, load):
    """Watts that `host` draws in its present pstate under a load from 0 to 1."""
    pstate = state.pstate[host]
    if facts.speed[host, pstate] <= 0.0:
        load = 1.0
    if load <= 0.0:
        return facts.idle[host, pstate]
    return facts.epsilon[host, pstate] + load * (facts.full[host, pstate] - facts.epsilon[host, pstate])


@kernel
def set_load(state, facts, sim, host, load):
    """`host` has this load from now on."""
    if sim.flag[ENERGY_ON] == 0:
        return
    measure(state, sim, host)
    sim.host_watts[host] = watts_under(state, facts, host, load)


@kernel
def measure(state, sim, host):
    """Bring a host's joules up to now; those of storage hosts grow steadily and are not kept."""
    now = sim.real[CLOCK]
    if sim.host_joules_at[host] < now:
        if host < len(sim.host_joules):
            sim.host_joules[host] += sim.host_watts[host] * (now - sim.host_joules_at[host])
        sim.host_joules_at[host] = now


@kernel
def pstate_changed(state, facts, sim, host, old, load):
    """Bring the totals up to a host's new pstate; `old` is the one before."""
    sim.real[WATTS_MIN] += facts.epsilon[host, state.pstate[host]] - facts.epsilon[host, old]
    set_load(state, facts, sim, host, load)


@kernel
def total_joules(state, sim):
    """Joules of all hosts up to now. What does not fit into the sum is kept in JOULES_REST: Batsim adds up in long
    double, and shows differences between rows that are nanoseconds apart."""
    total, rest = sim.real[STORAGE_WATTS] * sim.real[CLOCK], 0.0
    sim.host_joules_at[len(sim.host_joules) :] = sim.real[CLOCK]
    for host in range(len(sim.host_joules)):
        measure(state, sim, host)
        more = sim.host_joules[host]
        larger = total + more
        part = larger - total
        rest += (total - (larger - part)) + (more - part)
        total = larger
    sim.real[JOULES] = total
    sim.real[JOULES_REST] = rest
    return total


@kernel
def joules_of(state, sim, job):
    """Joules that the hosts of `job` have used since the beginning."""
    total = 0.0
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            measure(state, sim, host)
            total += sim.host_joules[host]
    return total


@kernel
def begin_energy(state, facts, sim):
    """Set each host's power at time 0."""
    for host in range(len(state.pstate)):
        sim.real[WATTS_MIN] += facts.epsilon[host, state.pstate[host]]
        set_load(state, facts, sim, host, 0.0)


@kernel
def note_first_submission(state, sim):
    """Batsim's total counts from the first submission."""
    if sim.flag[ENERGY_ON] and sim.flag[FIRST_SUBMITTED] == 0:
        sim.flag[FIRST_SUBMITTED] = 1
        sim.real[FIRST_JOULES] = total_joules(state, sim)


@kernel
def energy_row(state, sim, rows, kind):
    """One row of the energy trace; an end of a job also moves Batsim's total."""
    if sim.flag[ENERGY_ON] == 0:
        return
    at = sim.flag[ENERGY_ROWS]
    sim.flag[ENERGY_ROWS] = at + 1
    joules = total_joules(state, sim)
    rows.energy_time[at] = sim.real[CLOCK]
    rows.energy_joules[at] = joules
    rows.energy_rest[at] = sim.real[JOULES_REST]
    rows.energy_kind[at] = kind
    rows.energy_wattmin[at] = sim.real[WATTS_MIN]
    if kind == ord("e"):
        sim.real[LAST_JOULES] = joules


@kernel
def pstate_row(state, sim, rows, group, value):
    """One row of the pstate trace: the hosts of a switch request go to `value`."""
    at = sim.flag[PSTATE_ROWS]
    sim.flag[PSTATE_ROWS] = at + 1
    rows.pstate_time[at] = sim.real[CLOCK]
    rows.pstate_group[at] = group
    rows.pstate_value[at] = value


@kernel
def host_row(state, sim, rows):
    """One row of the host-state trace."""
    if sim.flag[TRACE_ON] == 0:
        return
    at = sim.flag[HOST_ROWS]
    sim.flag[HOST_ROWS] = at + 1
    rows.host_time[at] = sim.real[CLOCK]
    for i in range(N_HOST_STATES):
        rows.host_counts[at, i] = state.count[N_IN_STATE + i]
