"""Hosts that change their pstate: at once between computing pstates, through a virtual one to and from sleep."""

from decision.compiling.jit import kernel
from decision.engine.rules import SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP
from decision.model.errors import InternalError
from decision.state import transitions
from decision.state.cluster import IDLE, PSTATE_COMPUTING, PSTATE_SLEEP, SLEEPING, SWITCHING_OFF, SWITCHING_ON

from . import arrays as a
from .clock import begin_task, log
from .energy import ROW_PSTATE, energy_row, enter, host_row, note_pstate_change, pstate_row
from .jobs import speed_changed


@kernel
def request_switch(world, action):
    """The hosts of an action of the plan are to change to its pstate."""
    sim, plan = world.sim, world.plan
    request = _note_request(world, action)
    pstate = plan.value[action]
    # Batsim writes both rows when a request begins, the second with -1 or -2 for what the hosts are on their way to;
    # the last host of the request writes them again.
    energy_row(world, ROW_PSTATE)
    wakes = world.facts.pstate_kind[plan.first[plan.begin[action]], pstate] == PSTATE_COMPUTING
    pstate_row(world, request, SWITCHING_TO_COMPUTE if wakes else SWITCHING_TO_SLEEP)
    switching = sim.nb_switching
    for i in range(plan.begin[action], plan.end[action]):
        for host in range(plan.first[i], plan.last[i] + 1):
            sim.switch[host] = request
            sim.target[host] = pstate
            _switch(world, host, pstate)
    # Nor has Batsim 5 a row of states for a change that takes no time.
    if sim.changes_once == 0 or sim.nb_switching > switching:
        host_row(world)


@kernel
def _note_request(world, action):
    """Copy a request's hosts; returns its number."""
    sim, plan = world.sim, world.plan
    request, intervals = sim.nb_switches, plan.end[action] - plan.begin[action]
    if request >= len(sim.switch_left) or sim.nb_switch_intervals + intervals > len(sim.switch_first):
        raise InternalError("the engine has no room for another switch request")
    sim.nb_switches = request + 1
    sim.switch_begin[request] = sim.nb_switch_intervals
    hosts = 0
    for i in range(plan.begin[action], plan.end[action]):
        at = sim.nb_switch_intervals
        sim.nb_switch_intervals = at + 1
        sim.switch_first[at] = plan.first[i]
        sim.switch_last[at] = plan.last[i]
        hosts += plan.last[i] - plan.first[i] + 1
    sim.switch_end[request] = sim.nb_switch_intervals
    sim.switch_left[request] = hosts
    sim.switch_pstate[request] = plan.value[action]
    sim.nb_switched_hosts += hosts
    return request


@kernel
def _switch(world, host, pstate):
    state, facts = world.state, world.facts
    old = state.pstate[host]
    wakes = facts.pstate_kind[host, pstate] == PSTATE_COMPUTING
    # From one computing pstate to another: at once, and a job that runs there goes on at the new speed.
    if wakes and facts.pstate_kind[host, old] == PSTATE_COMPUTING:
        transitions.set_pstate(state, facts, host, pstate)
        note_pstate_change(world, host, old, 0.0)
        if state.shares:
            for i in range(state.nb_running):
                if transitions.has_allocated(state, state.running[i], host):
                    speed_changed(world, state.running[i])
        elif state.host_job[host] >= 0:
            speed_changed(world, state.host_job[host])
        if _is_last_of_request(world, host, False):
            log(world, a.LOG_CHANGED, world.sim.switch[host], 0.0)
        world.sim.switch[host] = -1
        return
    # To or from sleep: Batsim models the time as one flop in a virtual pstate, at that pstate's speed and power.
    virtual = facts.switch_on[host, old] if wakes else facts.switch_off[host, pstate]
    enter(world, host, SWITCHING_ON if wakes else SWITCHING_OFF)
    transitions.begin_switch(state, facts, host, virtual, wakes)
    note_pstate_change(world, host, old, 1.0)
    world.sim.nb_switching += 1
    begin_task(world, facts.speed[host, virtual], a.pack(a.SWITCH_ENDS, host))


@kernel
def set_target_pstate(world, host):
    """A host has fallen asleep or woken up: it leaves the virtual pstate."""
    # Its energy is charged up to here in the virtual pstate, a round before the host counts as asleep or awake.
    old = world.state.pstate[host]
    transitions.set_pstate(world.state, world.facts, host, world.sim.target[host])
    note_pstate_change(world, host, old, 0.0)


@kernel
def reach_pstate(world, host):
    """A host has fallen asleep or woken up: that is its state now. The server hears of it in a later round."""
    sleeps = world.facts.pstate_kind[host, world.sim.target[host]] == PSTATE_SLEEP
    enter(world, host, SLEEPING if sleeps else IDLE)
    if world.sim.policy_watches == 0:
        _end_switch(world, host)


@kernel
def _end_switch(world, host):
    facts, target = world.facts, world.sim.target[host]
    transitions.end_switch(world.state, facts, host, target, facts.pstate_kind[host, target] != PSTATE_SLEEP)


@kernel
def report_switched(world, host):
    """The server hears that a host has switched; with the request's last host the next question says so."""
    if _is_last_of_request(world, host, True):
        if world.sim.policy_watches:  # the policy hears of all at once, also of one that has left meanwhile
            for other in range(len(world.sim.switch)):
                if world.sim.switch[other] == world.sim.switch[host]:
                    _end_switch(world, other)
        host_row(world)
        log(world, a.LOG_CHANGED, world.sim.switch[host], 0.0)


@kernel
def _is_last_of_request(world, host, takes_time):
    """One host of a request is done; True with its last, which the traces show."""
    sim, request = world.sim, world.sim.switch[host]
    sim.switch_left[request] -= 1
    if sim.switch_left[request] > 0:
        return False
    pstate_row(world, request, sim.switch_pstate[request])
    # Batsim 5 has no second row for a change that takes no time.
    if sim.changes_once == 0 or takes_time:
        energy_row(world, ROW_PSTATE)
    return True


@kernel
def forget_requests(world):
    """Forget the rows of the energy traces and the switch requests that are over, so that a run of any length fits.

    For runs whose questions and traces nobody reads.
    """
    sim, left = world.sim, 0
    sim.nb_energy_rows = 0
    sim.nb_pstate_rows = 0
    # Open requests move to the front; their hosts follow them to the new number.
    for request in range(sim.nb_switches):
        is_open = sim.switch_left[request] > 0
        for host in range(len(sim.switch)):
            if sim.switch[host] == request:
                sim.switch[host] = left if is_open else -1
        if is_open:
            sim.switch_left[left] = sim.switch_left[request]
            sim.switch_pstate[left] = sim.switch_pstate[request]
            left += 1
    sim.nb_switches = left
    sim.nb_switch_intervals = 0
