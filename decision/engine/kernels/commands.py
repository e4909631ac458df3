"""What the decision process asks for: whether it is possible now, the server's part of it, and what it sets going.

A command is an action of the plan. Its kind is one of `decision.state.plan_arrays`, or one of those below, which
only a decision process that talks in messages has.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.engine.rules import SHORTEST_CALL, SWITCHING_TO_COMPUTE, SWITCHING_TO_SLEEP
from decision.model.errors import InternalError
from decision.model.record import FinalState
from decision.state import transitions
from decision.state.cluster import (
    IDLE,
    PSTATE_COMPUTING,
    PSTATE_SLEEP,
    QUEUED,
    RUNNING,
    SLEEPING,
    SWITCHING_OFF,
    SWITCHING_ON,
)
from decision.state.plan_arrays import (
    CALL_AT,
    FINE,
    KILL,
    REJECT,
    SET_PSTATE,
    START,
    SUSPEND,
    interval_fault,
    put_first,
    start_fault,
    switch_fault,
)

from . import arrays as a
from .clock import begin_sleep, begin_task, log, put, six_decimals, whole_milliseconds
from .energy import ROW_PSTATE, energy_row, enter, host_row, note_pstate_change, pstate_row, total_joules
from .jobs import begin_job, delay_of, is_one_delay, speed_changed

REGISTER = 6  # `job` was registered by the decision process
QUERY_ENERGY = 7
SET_REGISTRATION = 8  # value 1: the decision process may register jobs; 0: it is done
START_ELSEWHERE = 9  # `job` runs outside of the simulation: no hosts, no timers
END_ELSEWHERE = 10  # `job`, which runs, ends as `value` (FinalState); one that waits is rejected
NO_ACTION = 11  # carried out when it was read: a profile, metadata, a message to a job
MERGED = -1  # belongs to the KILL before it
NEW_REQUEST = 2  # value of a KILL that does not belong to the KILL before it

_REJECTED = int(FinalState.REJECTED)


@kernel
def is_possible(world, at):
    """Whether command `at` makes sense now. Why it does not is said in Python (`decision.engine.rules`)."""
    state, plan = world.state, world.plan
    kind, job = plan.kind[at], plan.job[at]
    if kind == START:
        if state.job_state[job] != QUEUED:
            return False
        # Its hosts must exist, be free, and be as many as the job needs.
        truth = world.truth
        reason, hosts = start_fault(state, state.free, plan.first, plan.last, plan.begin[at], plan.end[at])
        is_right = hosts == state.size[job]
        if not is_right and hosts > 0:
            is_right = truth.moldable[truth.profile[world.sim.truth_of[job]]] == 1
        return reason == FINE and is_right
    if kind == REJECT or (kind == END_ELSEWHERE and plan.value[at] == _REJECTED):
        return state.job_state[job] == QUEUED
    if kind == KILL:
        return first_unkillable(world, at) < 0 and first_uncuttable(world, at) < 0
    # Batsim 4 refuses a call for a time that has passed; Batsim 5, whose calls are in milliseconds, makes it at once.
    if kind == CALL_AT:
        return plan.time[at] > world.sim.now or world.sim.calls_in_ms == 1
    # Without the energy simulation Batsim 4 switches no host.
    if kind == SET_PSTATE:
        return world.sim.switches_on == 1 and _can_switch_all(world, at)
    if kind == START_ELSEWHERE:
        return state.job_state[job] == QUEUED
    # A job without hosts was set to RUNNING by CHANGE_JOB_STATE, and only such a one may be ended so.
    if kind == END_ELSEWHERE:
        return state.job_state[job] == RUNNING and state.alloc_count[job] == 0
    return True


@kernel
def first_unkillable(world, at):
    """The first job of a kill request that was never executed, -1 where there is none."""
    for i in range(at, _end_of_kill(world, at)):
        if world.state.alloc_count[world.plan.job[i]] == 0:
            return world.plan.job[i]
    return -1


@kernel
def first_uncuttable(world, at):
    """The first job of a kill request that is to be suspended and cannot be cut, -1 where there is none."""
    for i in range(at, _end_of_kill(world, at)):
        job = world.plan.job[i]
        if world.state.suspended[job] and not is_one_delay(world, job):
            return job
    return -1


@kernel
def _end_of_kill(world, at):
    """One past the last KILL that belongs to the one at `at`."""
    plan, end = world.plan, at + 1
    while end < plan.nb_actions and plan.kind[end] == KILL and plan.value[end] != NEW_REQUEST:
        end += 1
    return end


@kernel
def _can_switch_all(world, at):
    state, plan, previous = world.state, world.plan, -1
    # All hosts are checked before any changes: a command is done whole or not at all.
    for i in range(plan.begin[at], plan.end[at]):
        if interval_fault(state, plan.first[i], plan.last[i], previous)[0] != FINE:
            return False
        for host in range(plan.first[i], plan.last[i] + 1):
            if switch_fault(state, world.facts, host, plan.value[at]) != FINE:
                return False
        previous = plan.last[i]
    return plan.end[at] > plan.begin[at]


@kernel
def handle_command(world, at):
    """The server's part of a command."""
    state, sim, plan = world.state, world.sim, world.plan
    kind, job = plan.kind[at], plan.job[at]
    # What the server does at once; what starts an actor comes in `begin_command`, once the sender has gone on.
    if kind == REJECT or (kind == END_ELSEWHERE and plan.value[at] == _REJECTED):
        transitions.reject(state, job)
        transitions.drop_started(state)
        note_end(world, job)
    elif kind == KILL:
        _note_kills(world, at)
    elif kind == CALL_AT:
        sim.nb_calls += 1
    elif kind == SET_PSTATE:
        # The hosts switch for the policy when it decided so, and for Batsim's traces now.
        _as_decided(world, True)
        request_switch(world, at)
        _as_decided(world, False)
    elif kind == REGISTER:
        sim.nb_submitted += 1
        if sim.acknowledges:
            log(world, a.LOG_SUBMITTED, job, 0.0)
    elif kind == QUERY_ENERGY:
        log(world, a.LOG_ENERGY, 0, total_joules(world))
    elif kind == SET_REGISTRATION:
        sim.registration_open = plan.value[at]
    elif kind == END_ELSEWHERE:
        sim.end_time[job] = sim.now
        transitions.end(state, world.facts, job, plan.value[at])
        note_end(world, job)


@kernel
def begin_command(world, at):
    """What a command sets going."""
    state, sim, plan = world.state, world.sim, world.plan
    kind, job = plan.kind[at], plan.job[at]
    if kind == START:
        _as_decided(world, True)
        begin_job(world, job, at)
        _as_decided(world, False)
        if at + 1 == plan.nb_actions or plan.kind[at + 1] != START:  # starts in a row leave the queue together
            transitions.drop_started(state)
    elif kind == START_ELSEWHERE:
        sim.start_time[job] = sim.now
        sim.energy[job] = -1.0
        transitions.start(state, job, plan.first, plan.last, 0, 0)
        transitions.drop_started(state)
    elif kind == CALL_AT:
        # Calls are rounded as the wire of the Batsim that is simulated would: Batsim 5 to milliseconds, upwards; Batsim
        # 4 to six decimals, which messages have already and a compiled policy's plan has not.
        time = plan.time[at]
        if sim.calls_in_ms:
            time = whole_milliseconds(time)
        elif sim.policy_watches:  # it is not written into a message, in which it would be short
            time = six_decimals(time)
        if time > sim.now:
            # Batsim's waiter sleeps for `SHORTEST_CALL` at least; a call for now is Batsim 5's alone and takes no
            # sleep.
            begin_sleep(world, max(time - sim.now, SHORTEST_CALL), a.pack(a.CALL_IS_DUE, plan.value[at]))
        else:
            put(world, a.pack(a.MSG_CALL, plan.value[at]))


@kernel
def _as_decided(world, begin):
    """Let a policy's state have the time of the decision, and then the present one again.

    To a policy its jobs start, and its hosts switch, when it decides so: Batsim does not tell it when they do. Where
    messages take time, that is later.
    """
    if world.sim.policy_watches:
        time = world.sim.reply_now if begin else world.sim.now
        transitions.tick(world.state, six_decimals(time))


@kernel
def take_suspensions(world):
    """The plan's suspensions are kills, after whose end `queue_rests` submits what is left."""
    plan = world.plan
    for at in range(plan.nb_actions):
        if plan.kind[at] == SUSPEND:
            # Batsim has no suspension: a decision process kills the job, and registers what is left of it as a new one.
            plan.kind[at] = KILL
            transitions.begin_suspension(world.state, plan.job[at], plan.value[at])
            plan.value[at] = 0
            world.sim.nb_suspending += 1


@kernel
def queue_rests(world, request):
    """What is left of the jobs that a kill request suspended waits from now on."""
    state, sim = world.state, world.sim
    for i in range(sim.kill_begin[request], sim.kill_end[request]):
        job = sim.kill_job[i]
        if state.suspended[job] == 0:
            continue
        sim.nb_suspending -= 1
        if sim.kill_state[job] == a.KILL_DONE:  # else it ended by itself
            # The rest is a job of the same profile, but its delay is shorter by what the job ran and longer by the
            # restart.
            ran, paid = transitions.progress(state, job, sim.restart, sim.checkpoint_every)
            rest = transitions.resubmit(state, job, sim.restart, sim.checkpoint_every)
            sim.truth_of[rest] = sim.truth_of[job]
            sim.rest[rest] = transitions.rest_of(six_decimals(delay_of(world, job)), ran, paid, sim.restart)
            sim.nb_unregistered += 1
            sim.nb_rests += 1


@kernel
def register_rests(world):
    """Put two commands for each of the new rests before the plan's, as a decision process does that talks in
    messages: its profile, and the job itself."""
    # They are among the last jobs of the state, between others that were submitted meanwhile: from the end backwards,
    # so that the oldest is registered first.
    last = world.state.nb_jobs
    rests = np.zeros(2 * world.sim.nb_unregistered, np.int32)
    at = len(rests)
    while at > 0:
        last -= 1
        if world.state.nth_rest[last] > 0:
            at -= 2
            rests[at : at + 2] = last
    put_first(world.plan, REGISTER, rests)
    # Of each two commands the first stands for the profile, which takes a round of the server and does nothing here.
    world.plan.kind[: len(rests) : 2] = NO_ACTION
    world.sim.nb_unregistered = 0


@kernel
def note_end(world, job):
    """The server knows that a job is over."""
    sim = world.sim
    if sim.nb_finished >= len(sim.finished):
        raise InternalError("the engine has no room for another job that ended")
    sim.finished[sim.nb_finished] = job
    sim.nb_finished += 1


@kernel
def _note_kills(world, at):
    """Gather the kills that belong together into one request; they are merged into the first."""
    sim, plan = world.sim, world.plan
    request = sim.nb_kills
    if request >= len(sim.kill_begin):
        raise InternalError("the engine has no room for another kill request")
    sim.kill_begin[request] = sim.nb_kill_jobs
    # A job that another request is killing already belongs to that one.
    for i in range(at, _end_of_kill(world, at)):
        job = plan.job[i]
        if sim.kill_state[job] == a.NOT_KILLED:
            if sim.nb_kill_jobs >= len(sim.kill_job):
                raise InternalError("the engine has no room for another job to kill")
            sim.kill_state[job] = a.KILL_ASKED
            sim.kill_job[sim.nb_kill_jobs] = job
            sim.nb_kill_jobs += 1
        # One message of Batsim's, though the plan has an action for each job.
        if i > at:
            plan.kind[i] = MERGED
    sim.kill_end[request] = sim.nb_kill_jobs
    if sim.kill_end[request] == sim.kill_begin[request]:  # all are being killed already: Batsim ignores the request
        plan.kind[at] = MERGED
        return
    sim.nb_kills += 1
    sim.nb_killers += 1


# --- Hosts that change their pstate: at once between computing pstates, through a virtual one to and from sleep -------


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
