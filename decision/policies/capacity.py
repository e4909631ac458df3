"""What hosts there will be: free now, given back by running jobs, or woken from sleep.

A host that sleeps is capacity from ``now + wake_time`` on, one that wakes from the moment it is due, one that
is falling asleep after both. What is overdue is expected `TOLERANCE` from now.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.cluster import SLEEPING, SWITCHING_OFF, SWITCHING_ON, UNAVAILABLE
from decision.state.transitions import spare_power

from .config import Power
from .profile import add_free, begin_profile

TOLERANCE = 1e-3  # seconds: what is due within this is due now, since a peer's clock may round


@kernel
def has_sleepers(state, config):
    """Whether hosts sleep or switch that the policy can wake."""
    return (
        config.power != Power.NEVER
        and state.nb_in_state[SLEEPING] + state.nb_in_state[SWITCHING_ON] + state.nb_in_state[SWITCHING_OFF] > 0
    )


@kernel
def awake_at(state, facts, config, host):
    """When (seconds) a host that sleeps or switches can be awake; inf for any other."""
    now, what = state.now, state.host_state[host]
    if facts.sleep_pstate[host] < 0:
        return np.inf
    if what == SLEEPING:
        due = now + config.wake_time
    elif what == SWITCHING_ON:
        due = state.host_since[host] + config.wake_time
    elif what == SWITCHING_OFF:
        due = max(now, state.host_since[host] + config.doze_time) + config.wake_time
    else:
        return np.inf
    return max(due, now + TOLERANCE)


@kernel
def hosts_given_back(state, job):
    """How many hosts will be free again when a running job ends: all but those that left."""
    hosts = state.size[job]
    if state.nb_in_state[UNAVAILABLE] > 0:
        begin = state.alloc_first[job]
        for i in range(begin, begin + state.alloc_count[job]):
            for host in range(state.interval_first[i], state.interval_last[i] + 1):
                hosts -= state.host_state[host] == UNAVAILABLE
    return hosts


@kernel
def booked_end(state, memory, job):
    """When (seconds) a running job's hosts are planned to be free again, whether or not it started late."""
    if len(memory.reserved) > 0 and memory.reserved[job] < np.inf:
        return memory.reserved[job] + state.expected_runtime[job]
    return state.start_time[job] + state.expected_runtime[job]


@kernel
def fill_capacity(state, facts, memory):
    """Fill the profile from what is free, runs and sleeps; no reservations."""
    now = state.now
    free = state.nb_free
    if state.supply < len(state.host_state):  # the first hosts that are given back may have no power
        free += min(spare_power(state), 0)
    begin_profile(memory, now, free)
    for i in range(state.nb_running):
        job = state.running[i]
        due = booked_end(state, memory, job)
        if due <= now:
            due = now + TOLERANCE
        add_free(memory, due, np.inf, hosts_given_back(state, job))
    if has_sleepers(state, memory):
        _add_sleepers(state, facts, memory)


@kernel
def _add_sleepers(state, facts, memory):
    due, hosts = np.inf, 0
    for host in range(len(state.host_state)):
        at = awake_at(state, facts, memory, host)
        if at == np.inf:
            continue
        if at != due:
            add_free(memory, due, np.inf, hosts)
            due, hosts = at, 0
        hosts += 1
    add_free(memory, due, np.inf, hosts)
