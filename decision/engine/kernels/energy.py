"""Energy: what each host draws, and the rows of Batsim's traces (SimGrid's host energy model).

A host draws ``idle`` watts of its pstate without load and ``epsilon + load * (full - epsilon)`` under a load of so many
cores, ``full`` being what one core draws. A delay puts no load on its hosts. A switch is full load in its virtual
pstate, and so is anything in a pstate of speed 0. SimGrid takes a host to be in pstate 0 until it first looks at it, in
whatever pstate it begins: when time has passed, when the pstate changes, or when a task begins on this host alone.
"""

from decision.compiling.jit import kernel
from decision.engine.rules import END_ROW, PSTATE_ROW, START_ROW
from decision.model.errors import InternalError
from decision.state.cluster import N_HOST_STATES

ROW_START, ROW_END, ROW_PSTATE = ord(START_ROW), ord(END_ROW), ord(PSTATE_ROW)


@kernel
def _watts_at(facts, host, pstate, flops):
    """Watts that `host` draws in a pstate where `flops` flop/s are computed on it."""
    speed = facts.speed[host, pstate]
    # In cores: `full` is what the host draws where one of them is used.
    load = min(flops / speed, 1.0 * facts.cores[host]) if speed > 0.0 else 1.0
    if load <= 0.0:
        return facts.idle[host, pstate]
    return facts.epsilon[host, pstate] + load * (facts.full[host, pstate] - facts.epsilon[host, pstate])


@kernel
def put_load(world, host, flops):
    """`flops` flop/s are computed on `host` from when it was last measured."""
    sim = world.sim
    sim.host_watts[host] = _watts_at(world.facts, host, world.state.pstate[host], flops)
    # Not looked at yet: should time pass before that, SimGrid charges it in pstate 0.
    if sim.first_watts[host] >= 0.0:
        sim.first_watts[host] = _watts_at(world.facts, host, 0, flops)


@kernel
def set_load(world, host, flops):
    """`flops` flop/s are computed on `host` from now on."""
    if world.sim.energy_on == 0:
        return
    measure_host(world, host)
    put_load(world, host, flops)


@kernel
def measure_host(world, host):
    """Bring a host's joules up to now."""
    sim = world.sim
    now = sim.now
    # Not twice in an instant: each time adds a rounding error, and only SimGrid's own belong here.
    if sim.host_joules_at[host] < now:
        watts = sim.host_watts[host]
        # The first look: until now the host was taken to be in pstate 0, from now on it is in its own.
        if sim.first_watts[host] >= 0.0:
            watts = sim.first_watts[host]
            sim.first_watts[host] = -1.0
        sim.host_joules[host] += watts * (now - sim.host_joules_at[host])
        sim.host_joules_at[host] = now


@kernel
def look_at(world, host):
    """SimGrid looks at a host, also where no time has passed."""
    if world.sim.energy_on:
        measure_host(world, host)
        world.sim.first_watts[host] = -1.0


@kernel
def note_pstate_change(world, host, old, load):
    """Bring the totals up to a host's new pstate, at a load of 0 or 1; `old` is the one before."""
    epsilon, pstate = world.facts.epsilon, world.state.pstate[host]
    world.sim.watts_min += epsilon[host, pstate] - epsilon[host, old]
    # SimGrid looks at a host when its pstate changes, also where no time has passed, and charges it at the old load.
    if world.sim.energy_on:
        look_at(world, host)
        put_load(world, host, load * world.facts.speed[host, pstate])


@kernel
def total_joules(world):
    """Joules of all hosts up to now. What does not fit into the sum is kept in `Sim.total_rest`: Batsim adds up in long
    double, and shows differences between rows that are nanoseconds apart."""
    sim, total, rest = world.sim, 0.0, 0.0
    for host in range(len(sim.host_joules)):
        measure_host(world, host)
        more = sim.host_joules[host]
        larger = total + more
        part = larger - total
        rest += (total - (larger - part)) + (more - part)  # exactly what the sum above has lost (Knuth's two-sum)
        total = larger
    sim.total_joules = total
    sim.total_rest = rest
    return total


@kernel
def joules_now(world):
    """Joules of all hosts up to now; unlike `total_joules` it leaves the measurements as they are."""
    sim, total = world.sim, 0.0
    for host in range(len(sim.host_joules)):
        total += sim.host_joules[host] + sim.host_watts[host] * (sim.now - sim.host_joules_at[host])
    return total


@kernel
def joules_of(world, job):
    """Joules that the hosts of `job` have used since the beginning."""
    state, total = world.state, 0.0
    # Host by host in ascending order: another order gives another last digit.
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            measure_host(world, host)
            total += world.sim.host_joules[host]
    return total


@kernel
def begin_energy(world):
    """Set each host's power at time 0."""
    # The least load's watts are a column of Batsim's energy trace, added up host by host as pstates change.
    for host in range(len(world.state.pstate)):
        world.sim.watts_min += world.facts.epsilon[host, world.state.pstate[host]]
        set_load(world, host, 0.0)


@kernel
def note_first_submission(world):
    """Batsim's total counts from the first submission."""
    sim = world.sim
    if sim.energy_on and sim.first_submitted == 0:
        sim.first_submitted = 1
        sim.first_joules = total_joules(world)


@kernel
def energy_row(world, kind):
    """One row of the energy trace; an end of a job also moves Batsim's total."""
    sim, rows = world.sim, world.rows
    if sim.energy_on == 0:
        return
    at = sim.nb_energy_rows
    if at >= len(rows.energy_time):
        raise InternalError("the energy trace has no room for another row")
    sim.nb_energy_rows = at + 1
    joules = total_joules(world)
    rows.energy_time[at] = sim.now
    rows.energy_joules[at] = joules
    rows.energy_rest[at] = sim.total_rest
    rows.energy_kind[at] = kind
    rows.energy_wattmin[at] = sim.watts_min
    # Batsim's total energy is that of the last end of a job, not of the simulation's end.
    if kind == ROW_END:
        sim.last_joules = joules


@kernel
def pstate_row(world, request, value):
    """One row of the pstate trace: the hosts of a switch request go to `value`."""
    sim, rows = world.sim, world.rows
    at = sim.nb_pstate_rows
    if at >= len(rows.pstate_time):
        raise InternalError("the pstate trace has no room for another row")
    sim.nb_pstate_rows = at + 1
    rows.pstate_time[at] = sim.now
    rows.pstate_switch[at] = request
    rows.pstate_value[at] = value


@kernel
def enter(world, host, new):
    """`host` is in another HostState; the policy may hear of it later."""
    sim, old = world.sim, world.sim.host_state[host]
    # Host-seconds are added up when a state ends, as Batsim does, so that both round alike.
    if old != new:
        now = sim.now
        sim.in_state[old] -= 1
        sim.in_state[new] += 1
        sim.time_in_state[old] += now - sim.host_since[host]
        sim.host_state[host] = new
        sim.host_since[host] = now


@kernel
def host_row(world):
    """One row of the host-state trace."""
    sim, rows = world.sim, world.rows
    if sim.trace_on == 0:
        return
    at = sim.nb_host_rows
    if at >= len(rows.host_time):
        raise InternalError("the host-state trace has no room for another row")
    sim.nb_host_rows = at + 1
    rows.host_time[at] = sim.now
    for i in range(N_HOST_STATES):
        if rows.host_counts[i, at] != sim.in_state[i]:  # memory that is only read stays unused
            rows.host_counts[i, at] = sim.in_state[i]
