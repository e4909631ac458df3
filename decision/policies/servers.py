"""Switching servers: hosts with the same property ``server`` sleep and wake together; any other is its own server."""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host, insert_interval, next_in, remove_interval
from decision.state.cluster import COMPUTING, IDLE, PSTATE_COMPUTING, SLEEPING, SWITCHING_OFF, SWITCHING_ON
from decision.state.plan_arrays import SET_PSTATE, START, add, add_interval


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
    """Wake the hosts of the bitmap."""
    _switch(state, facts, plan, wanted, True)


@kernel
def switch_off(state, facts, plan, wanted):
    """Put the hosts of the bitmap to sleep; they are no longer free in the plan."""
    _switch(state, facts, plan, wanted, False)


@kernel
def _switch(state, facts, plan, wanted, wakes):
    """Switch the hosts of the bitmap, those of one target pstate in one action."""
    end = len(state.host_state)
    for pstate in range(facts.pstate_kind.shape[1]):
        action = -1
        host = next_in(wanted, 0)
        while host < end:
            if (_first_computing(facts, host) if wakes else facts.sleep_pstate[host]) == pstate:
                if action < 0:
                    action = add(plan, SET_PSTATE, -1)
                    plan.value[action] = pstate
                add_interval(plan, action, host, host)
                if not wakes:
                    remove_interval(plan.free, host, host)
            host = next_in(wanted, host + 1)


@kernel
def _first_computing(facts, host):
    for pstate in range(facts.pstate_kind.shape[1]):
        if facts.pstate_kind[host, pstate] == PSTATE_COMPUTING:
            return pstate
    return -1


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


@kernel
def see_servers(state, facts, plan):
    """What servers do once the plan is carried out: how many are idle, watts that serve nobody, and switches.

    A server is idle where all of its hosts are awake and none computes. Those watts are of idle servers and of servers
    that wake or fall asleep. Switches are the servers that the plan asks to wake or to sleep.
    """
    doing, switches = state.host_state.copy(), 0
    for at in range(plan.nb_actions):
        for i in range(plan.begin[at], plan.end[at]):
            if plan.kind[at] == START:
                doing[plan.first[i] : plan.last[i] + 1] = COMPUTING
            elif plan.kind[at] == SET_PSTATE:
                for host in range(plan.first[i], plan.last[i] + 1):
                    sleeps = facts.pstate_kind[host, plan.value[at]] != PSTATE_COMPUTING
                    doing[host] = SWITCHING_OFF if sleeps else SWITCHING_ON
                    switches += facts.server_host[facts.server_begin[facts.server[host]]] == host
    idle, watts = 0, 0.0
    for server in range(len(facts.server_begin) - 1):
        awake, drawn = _see_server(state, facts, doing, server)
        idle += awake
        watts += drawn
    return idle, watts, switches


@kernel
def _see_server(state, facts, doing, server):
    """Whether it is idle, and watts that serve nobody."""
    idle, watts = 1, 0.0
    for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
        host = facts.server_host[i]
        what, asleep = doing[host], facts.sleep_pstate[host]
        if what == COMPUTING:
            return 0, 0.0
        if what == IDLE:
            watts += facts.idle[host, state.pstate[host]]
        else:
            idle = 0
            if what == SWITCHING_ON:
                watts += facts.full[host, facts.switch_on[host, asleep]]
            elif what == SWITCHING_OFF:
                watts += facts.full[host, facts.switch_off[host, asleep]]
    return idle, watts
