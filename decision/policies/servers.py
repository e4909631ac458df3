"""Switching servers: hosts with the same property ``server`` sleep and wake together; any other is its own server."""

import numpy as np

from decision.jit import kernel
from decision.state.bitmap import has_host, insert_interval, next_in, remove_interval
from decision.state.cluster import PSTATE_COMPUTING, SLEEPING, SWITCHING_OFF

from .plan_arrays import SET_PSTATE, add, add_interval


@kernel
def wake_lowest(state, facts, plan, wakes):
    """Wake so many hosts: those of the servers with the lowest sleeping hosts, whole servers, so it may be more."""
    wanted = np.zeros(len(plan.free), np.uint64)
    host = -1
    while wakes > 0 and host + 1 < len(state.host_state):
        host += 1
        if state.host_state[host] == SLEEPING and not has_host(wanted, host):
            wakes -= add_sleepers(state, facts, facts.server[host], wanted)
    switch_on(state, facts, plan, wanted)


@kernel
def add_sleepers(state, facts, server, wanted):
    """Put the sleeping hosts of a server into the bitmap, unless others still fall asleep; returns how many."""
    added = 0
    for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
        if state.host_state[facts.server_host[i]] == SWITCHING_OFF:
            return 0
    for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
        host = facts.server_host[i]
        if state.host_state[host] == SLEEPING:
            insert_interval(wanted, host, host)
            added += 1
    return added


@kernel
def switch_on(state, facts, plan, wanted):
    """Wake the hosts of the bitmap, those of one target pstate in one action."""
    end = len(state.host_state)
    for pstate in range(facts.pstate_kind.shape[1]):
        action = -1
        host = next_in(wanted, 0)
        while host < end:
            if _first_computing(facts, host) == pstate:
                action = _switch(plan, action, pstate, host)
            host = next_in(wanted, host + 1)


@kernel
def switch_off(state, facts, plan, wanted):
    """Put the hosts of the bitmap to sleep, those of one sleep pstate in one action."""
    end = len(state.host_state)
    for pstate in range(facts.pstate_kind.shape[1]):
        action = -1
        host = next_in(wanted, 0)
        while host < end:
            if facts.sleep_pstate[host] == pstate:
                action = _switch(plan, action, pstate, host)
                remove_interval(plan.free, host, host)
            host = next_in(wanted, host + 1)


@kernel
def _first_computing(facts, host):
    for pstate in range(facts.pstate_kind.shape[1]):
        if facts.pstate_kind[host, pstate] == PSTATE_COMPUTING:
            return pstate
    return -1


@kernel
def _switch(plan, action, pstate, host):
    """Add the host to the action that switches to `pstate`, a new one where there is none yet (-1)."""
    if action < 0:
        action = add(plan, SET_PSTATE, -1)
        plan.value[action] = pstate
    add_interval(plan, action, host, host)
    return action


@kernel
def sleepy_from(state, facts, plan, server, timeout):
    """When (seconds) a server has been idle for `timeout`; inf where a host of it is not free or cannot sleep."""
    due = -np.inf
    for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
        host = facts.server_host[i]
        if facts.sleep_pstate[host] < 0 or next_in(plan.free, host) != host:
            return np.inf
        due = max(due, state.host_since[host] + timeout)
    return due
