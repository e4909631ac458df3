"""Who wakes at one instant, and in which order they act.

SimGrid goes in rounds: all actors that are awake go on to their next request, one after the other; then the requests
are met in the same order. So who makes more requests before he tells the server is later: who measures a host's energy
(one request each), who prepares a task (three), who changes a pstate. What is told here is what each one does in its
rounds. Without energy only tasks that begin are late, and one round is enough for all others.
"""

from decision.jit import kernel
from decision.state.cluster import RUNNING

from .arrays import (
    CALL,
    CALLED,
    CLOCK,
    COMPLETED,
    DELAY,
    ENERGY_ON,
    EXTERNAL,
    FIRST_SUBMITTED,
    LEAF,
    PTASK,
    REPLY,
    SUBMIT,
    SWITCH,
    SWITCHED,
    WALLTIME,
)
from .jobs import (
    END_ROW,
    begin_computing,
    begin_limit,
    begin_sleeping,
    leaf_over,
    next_host,
    present_leaf,
    put,
    unload_hosts,
    walltime_over,
)
from .power import energy_row, joules_of, measure, note_first_submission
from .submitters import send_due_events, submit_due
from .switches import set_target_pstate, switch_over

# What an actor has asked for in this round
NOTHING, MEASURE_OWN, MEASURE_ALL, ONE_MORE, BEGIN, LIMIT, SET_PSTATE = range(7)
PREPARE = 3  # requests of a task before it begins


@kernel
def wake(state, facts, truth, sim, rows):
    """Let all whose activities are over (`sim.due`) act until they wait again."""
    other_rounds(state, facts, truth, sim, rows, first_round(state, facts, truth, sim, rows))


@kernel
def first_round(state, facts, truth, sim, rows):
    """All whose activities are over go on to their first request; False where all wait then."""
    if sim.flag[ENERGY_ON]:
        _settle(state, facts, sim)
    awake, i = False, 0
    while sim.due[i] != -2:
        sim.asks[i] = NOTHING
        if sim.due[i] >= 0:
            _wakes(state, facts, truth, sim, rows, i, sim.due[i] & 15, sim.due[i] >> 4)
            awake |= sim.asks[i] != NOTHING
        i += 1
    return awake


@kernel
def other_rounds(state, facts, truth, sim, rows, awake):
    """Those who are `awake` after the first round go on until they wait again."""
    while awake:
        _meet_all(state, facts, truth, sim)
        awake = _next_round(state, facts, truth, sim, rows)
    sim.due[0] = -2


@kernel
def _settle(state, facts, sim):
    """What SimGrid measures when activities end: all hosts of a task, the first host of a job that slept."""
    i = 0
    while sim.due[i] != -2:
        kind, arg = sim.due[i] & 15, sim.due[i] >> 4
        if sim.due[i] < 0:
            pass
        elif kind == PTASK:
            unload_hosts(state, sim, facts, arg)
        elif kind == SWITCH:
            measure(state, sim, arg)
        elif kind in (LEAF, WALLTIME):
            measure(state, sim, state.interval_first[state.alloc_first[arg]])
        i += 1


@kernel
def _wakes(state, facts, truth, sim, rows, i, kind, arg):
    """The first round of one actor."""
    if kind in (LEAF, PTASK, WALLTIME):
        _job_wakes(state, facts, truth, sim, rows, i, kind, arg)
    elif sim.flag[ENERGY_ON] == 0:
        _tell(state, truth, sim, kind, arg)
    elif kind == SWITCH:
        sim.asks[i] = SET_PSTATE
    elif kind == SUBMIT and sim.flag[FIRST_SUBMITTED] == 0:
        sim.place[i] = 0
        _measures_all(state, sim, rows, i)
    else:
        sim.asks[i] = ONE_MORE
        sim.place[i] = 1


@kernel
def _job_wakes(state, facts, truth, sim, rows, i, kind, job):
    """A job goes on with its next leaf, or ends."""
    if kind == WALLTIME:
        walltime_over(state, sim, rows, facts, job)
    else:
        leaf_over(state, truth, sim, rows, facts, job)
    if state.job_state[job] != RUNNING:
        if sim.flag[ENERGY_ON]:
            sim.place[i] = 0
            _measures_own(state, facts, sim, rows, i)
        else:
            put(sim, COMPLETED + 16 * job)
    elif truth.leaf_kind[present_leaf(truth, sim, job)] == DELAY:
        begin_sleeping(truth, sim, job)
    else:
        sim.asks[i] = ONE_MORE
        sim.place[i] = PREPARE


@kernel
def _measures_own(state, facts, sim, rows, i):
    """A job that ended measures its hosts, one a round, and then all of them."""
    job = sim.due[i] >> 4
    host = next_host(state, job, sim.place[i])
    while host >= 0 and sim.host_joules_at[host] >= sim.real[CLOCK]:
        host = next_host(state, job, host + 1)
    if host >= 0:
        sim.asks[i] = MEASURE_OWN
        sim.place[i] = host
        return
    sim.energy[job] += joules_of(state, sim, job)
    if sim.due[i] & 15 == WALLTIME:
        unload_hosts(state, sim, facts, job)
    sim.place[i] = 0
    _measures_all(state, sim, rows, i)


@kernel
def _measures_all(state, sim, rows, i):
    """A job that ended, or the first submitter, measures all hosts, one a round, and writes the energy down."""
    host, hosts = sim.place[i], len(sim.host_joules_at)
    while host < hosts and sim.host_joules_at[host] >= sim.real[CLOCK]:
        host += 1
    if host < hosts:
        sim.asks[i] = MEASURE_ALL
        sim.place[i] = host
        return
    if sim.due[i] & 15 == SUBMIT:
        note_first_submission(state, sim)
    else:
        energy_row(state, sim, rows, END_ROW)
    sim.asks[i] = ONE_MORE
    sim.place[i] = 1


@kernel
def _meet_all(state, facts, truth, sim):
    """Meet the requests of a round."""
    i = 0
    while sim.due[i] != -2:
        asks, arg = sim.asks[i], sim.due[i] >> 4
        if asks in (MEASURE_OWN, MEASURE_ALL):
            measure(state, sim, sim.place[i])
        elif asks == BEGIN:
            begin_computing(state, truth, sim, facts, arg)
        elif asks == LIMIT:
            begin_limit(sim, arg)
        elif asks == SET_PSTATE:
            set_target_pstate(state, facts, sim, arg)
        i += 1


@kernel
def _next_round(state, facts, truth, sim, rows):
    """Those who are awake go on to their next request; False where all wait."""
    awake, i = False, 0
    while sim.due[i] != -2:
        if sim.asks[i] != NOTHING and sim.due[i] >= 0:
            _goes_on(state, facts, truth, sim, rows, i, sim.due[i] & 15, sim.due[i] >> 4)
            awake |= sim.asks[i] != NOTHING
        i += 1
    return awake


@kernel
def _goes_on(state, facts, truth, sim, rows, i, kind, arg):
    """What one actor asks for after its last request was met."""
    asks = sim.asks[i]
    if asks == MEASURE_OWN:
        _measures_own(state, facts, sim, rows, i)
    elif asks == MEASURE_ALL:
        _measures_all(state, sim, rows, i)
    elif asks == SET_PSTATE:
        switch_over(state, facts, sim, arg)
        sim.asks[i] = ONE_MORE
        sim.place[i] = 1
    elif asks == ONE_MORE and sim.place[i] > 1:
        sim.place[i] -= 1
    elif asks == ONE_MORE and kind in (LEAF, PTASK) and state.job_state[arg] == RUNNING:
        sim.asks[i] = BEGIN
    elif asks == ONE_MORE:
        _tell(state, truth, sim, kind, arg)
        sim.asks[i] = NOTHING
    elif asks == BEGIN and sim.allowed[arg] >= 0.0:
        sim.asks[i] = LIMIT
    else:
        sim.asks[i] = NOTHING


@kernel
def _tell(state, truth, sim, kind, arg):
    """One actor tells the server what happened."""
    if kind == SUBMIT:
        submit_due(state, truth, sim, arg)
    elif kind == EXTERNAL:
        send_due_events(truth, sim, arg)
    elif kind == CALL:
        put(sim, CALLED)
    elif kind == SWITCH:
        put(sim, SWITCHED + 16 * arg)
    elif kind == REPLY:
        put(sim, arg)
    else:
        put(sim, COMPLETED + 16 * arg)
