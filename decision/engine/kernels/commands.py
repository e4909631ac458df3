"""What the decision process asks for: whether it is possible now, the server's part of it, and what it sets going.

A command is an action of the plan. Its kind is one of `decision.state.plan_arrays`, or one of those below, which
only a decision process that talks in messages has.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.engine.constants import SHORTEST_CALL
from decision.model.errors import InternalError
from decision.model.record import FinalState
from decision.state import transitions
from decision.state.cluster import QUEUED, RUNNING
from decision.state.plan_arrays import CALL_AT, KILL, REJECT, SET_PSTATE, START, SUSPEND, put_first
from decision.state.rules import FINE, interval_fault, start_fault, switch_fault

from . import arrays as a
from .clock import begin_sleep, log, put, six_decimals, whole_milliseconds
from .energy import total_joules
from .jobs import begin_job, delay_of, is_one_delay
from .switches import request_switch

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
    """Whether command `at` makes sense now. Why it does not is said in Python (`decision.engine.refusals`)."""
    state, plan = world.state, world.plan
    kind, job = plan.kind[at], plan.job[at]
    if kind == START:
        return state.job_state[job] == QUEUED and _can_start(world, at, job)
    if kind == REJECT or (kind == END_ELSEWHERE and plan.value[at] == _REJECTED):
        return state.job_state[job] == QUEUED
    if kind == KILL:
        return first_unkillable(world, at) < 0 and first_uncuttable(world, at) < 0
    if kind == CALL_AT:
        return plan.time[at] > world.sim.real[a.SIM_NOW] or world.sim.number[a.CALLS_IN_MS] == 1
    if kind == SET_PSTATE:
        return world.sim.number[a.SWITCHES_ON] == 1 and _can_switch_all(world, at)
    if kind == START_ELSEWHERE:
        return state.job_state[job] == QUEUED
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
def _can_start(world, at, job):
    """Whether the hosts of a start exist, are free, and are as many as the job needs."""
    state, plan, truth = world.state, world.plan, world.truth
    reason, hosts = start_fault(state, state.free, plan.first, plan.last, plan.begin[at], plan.end[at])
    if reason != FINE:
        return False
    return hosts == state.size[job] or (hosts > 0 and truth.moldable[truth.profile[world.sim.truth_of[job]]] == 1)


@kernel
def _can_switch_all(world, at):
    state, plan, previous = world.state, world.plan, -1
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
    if kind == REJECT or (kind == END_ELSEWHERE and plan.value[at] == _REJECTED):
        transitions.reject(state, job)
        transitions.drop_started(state)
        note_end(world, job)
    elif kind == KILL:
        _note_kills(world, at)
    elif kind == CALL_AT:
        sim.number[a.N_CALLS] += 1
    elif kind == SET_PSTATE:
        _as_decided(world, True)
        request_switch(world, at)
        _as_decided(world, False)
    elif kind == REGISTER:
        sim.number[a.N_SUBMITTED] += 1
        if sim.number[a.ACKNOWLEDGE]:
            log(world, a.LOG_SUBMITTED, job, 0.0)
    elif kind == QUERY_ENERGY:
        log(world, a.LOG_ENERGY, 0, total_joules(world))
    elif kind == SET_REGISTRATION:
        sim.number[a.REGISTRATION_OPEN] = plan.value[at]
    elif kind == END_ELSEWHERE:
        sim.end_time[job] = sim.real[a.SIM_NOW]
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
        sim.start_time[job] = sim.real[a.SIM_NOW]
        sim.energy[job] = -1.0
        transitions.start(state, job, plan.first, plan.last, 0, 0)
        transitions.drop_started(state)
    elif kind == CALL_AT:
        time = plan.time[at]
        if sim.number[a.CALLS_IN_MS]:
            time = whole_milliseconds(time)
        elif sim.number[a.POLICY_WATCHES]:  # it is not written into a message, in which it would be short
            time = six_decimals(time)
        if time > sim.real[a.SIM_NOW]:
            begin_sleep(world, max(time - sim.real[a.SIM_NOW], SHORTEST_CALL), a.pack(a.CALL_IS_DUE, plan.value[at]))
        else:
            put(world, a.pack(a.MSG_CALL, plan.value[at]))


@kernel
def _as_decided(world, begin):
    """Let a policy's state have the time of the decision, and then the present one again.

    To a policy its jobs start, and its hosts switch, when it decides so: Batsim does not tell it when they do. Where
    messages take time, that is later.
    """
    if world.sim.number[a.POLICY_WATCHES]:
        time = world.sim.real[a.REPLY_NOW] if begin else world.sim.real[a.SIM_NOW]
        transitions.tick(world.state, six_decimals(time))


@kernel
def take_suspensions(world):
    """The plan's suspensions are kills, after whose end `queue_rests` submits what is left."""
    plan = world.plan
    for at in range(plan.nb_actions):
        if plan.kind[at] == SUSPEND:
            plan.kind[at] = KILL
            transitions.begin_suspension(world.state, plan.job[at], plan.value[at])
            plan.value[at] = 0
            world.sim.number[a.N_SUSPENDING] += 1


@kernel
def queue_rests(world, request):
    """What is left of the jobs that a kill request suspended waits from now on."""
    state, sim, number = world.state, world.sim, world.sim.number
    for i in range(sim.kill_begin[request], sim.kill_end[request]):
        job = sim.kill_job[i]
        if state.suspended[job] == 0:
            continue
        number[a.N_SUSPENDING] -= 1
        if sim.kill_state[job] == a.KILL_DONE:  # else it ended by itself
            ran, paid = transitions.progress(state, job, sim.real[a.RESTART], sim.real[a.EVERY])
            rest = transitions.resubmit(state, job, sim.real[a.RESTART], sim.real[a.EVERY])
            sim.truth_of[rest] = sim.truth_of[job]
            sim.rest[rest] = transitions.rest_of(six_decimals(delay_of(world, job)), ran, paid, sim.real[a.RESTART])
            number[a.N_UNREGISTERED] += 1
            number[a.N_RESTS] += 1


@kernel
def register_rests(world):
    """Put two commands for each of the new rests before the plan's, as a decision process does that talks in
    messages: its profile, and the job itself."""
    number, last = world.sim.number, world.state.nb_jobs
    rests = np.zeros(2 * number[a.N_UNREGISTERED], np.int32)
    at = len(rests)
    while at > 0:
        last -= 1
        if world.state.nth_rest[last] > 0:
            at -= 2
            rests[at : at + 2] = last
    put_first(world.plan, REGISTER, rests)
    world.plan.kind[: len(rests) : 2] = NO_ACTION
    number[a.N_UNREGISTERED] = 0


@kernel
def note_end(world, job):
    """The server knows that a job is over."""
    sim = world.sim
    if sim.number[a.N_FINISHED] >= len(sim.finished):
        raise InternalError("the engine has no room for another job that ended")
    sim.finished[sim.number[a.N_FINISHED]] = job
    sim.number[a.N_FINISHED] += 1


@kernel
def _note_kills(world, at):
    """Gather the kills that belong together into one request; they are merged into the first."""
    sim, plan, number = world.sim, world.plan, world.sim.number
    request = number[a.N_KILLS]
    if request >= len(sim.kill_begin):
        raise InternalError("the engine has no room for another kill request")
    sim.kill_begin[request] = number[a.N_KILL_JOBS]
    for i in range(at, _end_of_kill(world, at)):
        job = plan.job[i]
        if sim.kill_state[job] == a.NOT_KILLED:
            if number[a.N_KILL_JOBS] >= len(sim.kill_job):
                raise InternalError("the engine has no room for another job to kill")
            sim.kill_state[job] = a.KILL_ASKED
            sim.kill_job[number[a.N_KILL_JOBS]] = job
            number[a.N_KILL_JOBS] += 1
        if i > at:
            plan.kind[i] = MERGED
    sim.kill_end[request] = number[a.N_KILL_JOBS]
    if sim.kill_end[request] == sim.kill_begin[request]:  # all are being killed already: Batsim ignores the request
        plan.kind[at] = MERGED
        return
    number[a.N_KILLS] += 1
    number[a.N_KILLERS] += 1
