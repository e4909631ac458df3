"""Hosts that change their pstate: at once between computing pstates, through a virtual one to and from sleep."""

from decision.jit import kernel
from decision.state import transitions
from decision.state.cluster import PSTATE_COMPUTING, PSTATE_SLEEP

from .activities import begin_task
from .arrays import (
    GROUP_INTERVALS,
    GROUP_N,
    LOG_CHANGED,
    NB_SWITCHES,
    SWITCH,
    SWITCHING,
)
from .jobs import speed_changed
from .log import log
from .power import energy_row, host_row, pstate_changed, pstate_row

TO_COMPUTING, TO_SLEEP = -1, -2  # what the pstate trace says while hosts switch
PSTATE_ROW = ord("p")


@kernel
def request_switch(state, facts, truth, sim, rows, plan, action):
    """The hosts of an action are to change to its pstate."""
    request = _remember(sim, plan, action)
    pstate = plan.value[action]
    energy_row(state, sim, rows, PSTATE_ROW)
    wakes = facts.pstate_kind[plan.first[plan.begin[action]], pstate] == PSTATE_COMPUTING
    pstate_row(state, sim, rows, request, TO_COMPUTING if wakes else TO_SLEEP)
    for i in range(plan.begin[action], plan.end[action]):
        for host in range(plan.first[i], plan.last[i] + 1):
            sim.group[host] = request
            sim.target[host] = pstate
            _switch(state, facts, truth, sim, rows, host, pstate)
    host_row(state, sim, rows)


@kernel
def _remember(sim, plan, action):
    """Copy a request's hosts; returns its number."""
    request = sim.flag[GROUP_N]
    sim.flag[GROUP_N] = request + 1
    sim.group_begin[request] = sim.flag[GROUP_INTERVALS]
    hosts = 0
    for i in range(plan.begin[action], plan.end[action]):
        at = sim.flag[GROUP_INTERVALS]
        sim.flag[GROUP_INTERVALS] = at + 1
        sim.group_first[at] = plan.first[i]
        sim.group_last[at] = plan.last[i]
        hosts += plan.last[i] - plan.first[i] + 1
    sim.group_end[request] = sim.flag[GROUP_INTERVALS]
    sim.group_left[request] = hosts
    sim.group_pstate[request] = plan.value[action]
    sim.flag[NB_SWITCHES] += hosts
    return request


@kernel
def _switch(state, facts, truth, sim, rows, host, pstate):
    old = state.pstate[host]
    wakes = facts.pstate_kind[host, pstate] == PSTATE_COMPUTING
    if wakes and facts.pstate_kind[host, old] == PSTATE_COMPUTING:
        transitions.set_pstate(state, facts, host, pstate)
        pstate_changed(state, facts, sim, host, old, 0.0)
        if state.host_job[host] >= 0:
            speed_changed(state, truth, sim, facts, state.host_job[host])
        if _one_less(state, sim, rows, host):
            log(state, sim, LOG_CHANGED, sim.group[host], 0.0)
        return
    virtual = facts.switch_on[host, old] if wakes else facts.switch_off[host, pstate]
    transitions.begin_switch(state, facts, host, virtual, wakes)
    pstate_changed(state, facts, sim, host, old, 1.0)
    sim.flag[SWITCHING] += 1
    begin_task(sim, facts.speed[host, virtual], SWITCH + 16 * host)


@kernel
def set_target_pstate(state, facts, sim, host):
    """A host has fallen asleep or woken up: it leaves the virtual pstate."""
    old = state.pstate[host]
    transitions.set_pstate(state, facts, host, sim.target[host])
    pstate_changed(state, facts, sim, host, old, 0.0)


@kernel
def switch_over(state, facts, sim, host):
    """A host has fallen asleep or woken up: that is its state now; the server is not told here."""
    target = sim.target[host]
    transitions.end_switch(state, facts, host, target, facts.pstate_kind[host, target] != PSTATE_SLEEP)


@kernel
def tell_switched(state, sim, rows, host):
    """The server hears that a host has switched; with the request's last host it tells the decision process."""
    if _one_less(state, sim, rows, host):
        host_row(state, sim, rows)
        log(state, sim, LOG_CHANGED, sim.group[host], 0.0)


@kernel
def _one_less(state, sim, rows, host):
    """One host of a request is done; True with its last, which the traces show."""
    request = sim.group[host]
    sim.group_left[request] -= 1
    if sim.group_left[request] > 0:
        return False
    pstate_row(state, sim, rows, request, sim.group_pstate[request])
    energy_row(state, sim, rows, PSTATE_ROW)
    return True
