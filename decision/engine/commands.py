"""What the decision process asks for: the server's part of each command, and what begins right after it."""

from decision.jit import kernel
from decision.model.record import FinalState
from decision.policies.plan import CALL_AT, KILL, REJECT, SET_PSTATE, START
from decision.state import transitions
from decision.state.cluster import RUNNING

from .activities import begin_sleep
from .arrays import (
    ACKNOWLEDGE,
    CALL,
    CLOCK,
    ENDED_N,
    KILL_JOBS,
    KILL_N,
    KILLED,
    KILLERS,
    LOG_ENERGY,
    LOG_SUBMITTED,
    REGISTRATION,
    SUBMITTED_N,
    WAITERS,
)
from .jobs import kill, put, start_job
from .log import log
from .power import total_joules
from .switches import request_switch

# Commands beyond a plan's actions; `job` and `value` as said
REGISTER = 5  # `job` was registered by the decision process
QUERY_ENERGY = 6
SET_REGISTRATION = 7  # value 1: the decision process may register jobs; 0: it is done
START_ELSEWHERE = 8  # `job` runs outside of the simulation: no hosts, no timers
END_ELSEWHERE = 9  # `job`, which runs, ends as `value` (FinalState); one that waits is rejected
NOTHING = 10  # carried out when it was read: a profile, metadata, a message to a job

SHORTEST_CALL = 1e-5  # seconds: Batsim's waiter never sleeps for less

FINALLY_REJECTED = int(FinalState.REJECTED)
NEW_REQUEST = 2  # value of a KILL that does not belong to the KILL before it


@kernel
def handle_command(state, facts, truth, sim, rows, plan, at):
    """The server's part of a command."""
    kind, job = plan.kind[at], plan.job[at]
    if kind == REJECT or (kind == END_ELSEWHERE and plan.value[at] == FINALLY_REJECTED):
        transitions.reject(state, job)
        transitions.drop_started(state)
        _count_end(sim, job)
    elif kind == KILL:
        _note_kills(sim, plan, at)
    elif kind == CALL_AT:
        sim.flag[WAITERS] += 1
    elif kind == SET_PSTATE:
        request_switch(state, facts, truth, sim, rows, plan, at)
    elif kind == REGISTER:
        sim.flag[SUBMITTED_N] += 1
        if sim.flag[ACKNOWLEDGE]:
            log(state, sim, LOG_SUBMITTED, job, 0.0)
    elif kind == QUERY_ENERGY:
        log(state, sim, LOG_ENERGY, 0, total_joules(state, sim))
    elif kind == SET_REGISTRATION:
        sim.flag[REGISTRATION] = plan.value[at]
    elif kind == END_ELSEWHERE:
        sim.over[job] = sim.real[CLOCK]
        transitions.end(state, facts, job, plan.value[at])
        _count_end(sim, job)


@kernel
def begin_command(state, facts, truth, sim, rows, plan, at):
    """What a command sets going."""
    kind, job = plan.kind[at], plan.job[at]
    if kind == START:
        start_job(state, truth, sim, rows, facts, job, plan.first, plan.last, plan.begin[at], plan.end[at])
        _drop_after_last_start(state, plan, at)
    elif kind == START_ELSEWHERE:
        sim.began[job] = sim.real[CLOCK]
        sim.energy[job] = -1.0
        transitions.start(state, job, plan.first, plan.last, 0, 0)
        transitions.drop_started(state)
    elif kind == CALL_AT:
        begin_sleep(sim, max(plan.time[at] - sim.real[CLOCK], SHORTEST_CALL), CALL)
    elif kind == KILL:
        put(sim, KILLED + 16 * (sim.flag[KILL_N] - 1))


@kernel
def _drop_after_last_start(state, plan, at):
    """Starts in a row leave the queue together."""
    if at + 1 == plan.count[0] or plan.kind[at + 1] != START:
        transitions.drop_started(state)


@kernel
def _count_end(sim, job):
    sim.ended[sim.flag[ENDED_N]] = job
    sim.flag[ENDED_N] += 1


@kernel
def _note_kills(sim, plan, at):
    """Gather the kills that belong together into one request; they are merged into the first."""
    request = sim.flag[KILL_N]
    sim.kill_begin[request] = sim.flag[KILL_JOBS]
    first = at
    while at < plan.count[0] and plan.kind[at] == KILL and (at == first or plan.value[at] != NEW_REQUEST):
        job = plan.job[at]
        if sim.kill_asked[job] == 0:
            sim.kill_asked[job] = 1
            sim.kill_job[sim.flag[KILL_JOBS]] = job
            sim.flag[KILL_JOBS] += 1
        if at > first:
            plan.kind[at] = -1
        at += 1
    sim.kill_end[request] = sim.flag[KILL_JOBS]
    if sim.kill_end[request] == sim.kill_begin[request]:
        plan.kind[first] = -1
        return
    sim.flag[KILL_N] += 1
    sim.flag[KILLERS] += 1


@kernel
def kill_noted(state, truth, sim, rows, facts):
    """The killer of the newest request ends its jobs; one that is over already stays as it ended."""
    request = sim.flag[KILL_N] - 1
    for i in range(sim.kill_begin[request], sim.kill_end[request]):
        job = sim.kill_job[i]
        if state.job_state[job] == RUNNING:
            kill(state, truth, sim, rows, facts, job)
            sim.kill_asked[job] = 2
