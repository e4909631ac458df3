"""When hosts sleep and wake.

Both slots ask one question: how many hosts will be awake and unreserved at a time? The profile says how many are
free of running jobs and reservations, hosts asleep being free from ``now + wake_time`` on. Where it says fewer
than are asleep, the missing ones must be awake by then: they are woken now or, by a call, in time. Hosts that stay
unreserved for as long as it takes to fall asleep and wake may sleep: with idle-timeout those that have been idle
for so long, with keep-awake all but so many; keep-awake also wakes hosts up to its number.

Hosts with the same property ``server`` are one machine: it sleeps when all of them may, and wakes as a whole.

Conservative backfilling has reservations for all jobs. For the other rules the jobs that could start once the
sleeping hosts are awake get one here, and so does the first job that could not (except with first-fit, which
protects none).
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import has_host, insert_interval, next_in, remove_interval
from decision.state.cluster import COMPUTING, IDLE, PSTATE_COMPUTING, SLEEPING, SWITCHING_OFF, SWITCHING_ON
from decision.state.plan_arrays import SET_PSTATE, START, add, add_interval

from .easy import is_in
from .options import Backfill, Power
from .profile import TOLERANCE, add_free, earliest, fill_capacity, free_at, least_free, step_at


@kernel
def manage_power(state, facts, memory, plan, queue, length, chosen, guarded):
    """Add to the plan which hosts sleep and wake; returns when (seconds) to be asked again, inf for never."""
    # With conservative backfilling the profile has all reservations already.
    if memory.backfill != Backfill.CONSERVATIVE:
        _reserve_what_counts(state, facts, memory, queue, length, chosen, guarded)
    soon = _awake_from(state, memory)
    # How many to wake: those that reservations need by then, and up to the number to keep awake. Waking comes first:
    # what is woken is no longer asleep for the questions after it.
    asleep, wakes = np.int64(state.nb_in_state[SLEEPING]), np.int64(0)
    if asleep > 0:
        # The profile counts sleeping hosts as free from `soon` on: fewer free than asleep means that some are needed.
        unreserved = np.int64(least_free(memory, soon, soon + TOLERANCE))
        wakes = max(asleep - unreserved, 0)
        if memory.power == Power.KEEP_AWAKE:
            wakes += max(memory.keep_awake - (unreserved - asleep + wakes), 0)
        wakes = min(wakes, asleep)
        asleep -= wakes
    # How many may sleep: awake and unreserved until they could be awake again. A host that falls asleep cannot be woken
    # before it sleeps: it is lost until doze and wake are over, so it must be unreserved for as long.
    later = np.int64(least_free(memory, soon, soon + memory.doze_time + TOLERANCE)) - asleep
    sleeps = min(np.int64(least_free(memory, state.now, soon)), later)
    if memory.power == Power.KEEP_AWAKE:
        sleeps -= memory.keep_awake
    # When to wake hosts for a reservation that is not near yet.
    call, at = np.inf, step_at(memory, soon + TOLERANCE) + 1
    while at < memory.end_step and memory.step_free[at] >= asleep:
        at += 1
    if asleep > 0 and at < memory.end_step:
        call = memory.step_time[at] - memory.wake_time
    if wakes > 0:
        wake_lowest(state, facts, plan, wakes)
    if sleeps > 0:
        call = min(call, _put_to_sleep(state, facts, memory, plan, sleeps))
    return call


@kernel
def _awake_from(state, config):
    """When (seconds) a host that is woken now is awake."""
    return max(state.now + config.wake_time, state.now + TOLERANCE)


@kernel
def _reserve_what_counts(state, facts, memory, queue, length, chosen, guarded):
    """Fill the profile: capacity, the jobs about to start, and the reservations that the power slot respects.

    The first `guarded` jobs of the state's queue have reservations; where one of them waits, it is the first that does.
    """
    # `soon` is the first moment at which a host that is woken now can be used: jobs that could start then are worth
    # waking for.
    soon = _awake_from(state, memory)
    fill_capacity(state, facts, memory)
    for i in range(chosen):
        _reserve(state, memory, memory.chosen[i], state.now)
    passed, first, protects = 0, 0, memory.backfill != Backfill.FIRST_FIT
    if guarded > 0:
        waits = False
        for i in range(guarded):
            begin = memory.reserved[state.queue[i]]
            waits |= begin > state.now
            if state.now < begin < np.inf:
                _reserve(state, memory, state.queue[i], begin)
        while passed < chosen and memory.chosen[passed] < memory.nb_guarded:
            passed += 1
        first, protects = memory.nb_guarded, protects and not waits
        if waits and memory.backfill == Backfill.NONE:
            return
    for i in range(length):
        job = queue[i]
        if job < first or (memory.backfill_order >= 0 and is_in(memory.chosen, chosen, job)):
            continue
        if passed < chosen and memory.chosen[passed] == job:
            passed += 1
            continue
        # Nothing is left for anybody by then, and no reservation is to be made.
        if not protects and free_at(memory, soon) == 0:
            return
        begin = earliest(memory, state.size[job], state.expected_runtime[job])
        if begin <= soon or (protects and begin < np.inf):
            _reserve(state, memory, job, begin)
        # The first job that must wait longer is the head; behind it nobody is protected.
        if begin > soon:
            protects = False
            if memory.backfill == Backfill.NONE:
                return


@kernel
def _reserve(state, memory, job, begin):
    """A job has its hosts in the profile from `begin` (seconds) on."""
    add_free(memory, begin, begin + state.expected_runtime[job], -state.size[job])


@kernel
def _put_to_sleep(state, facts, config, plan, sleeps):
    """Put at most `sleeps` hosts of idle servers to sleep, from the highest; when (seconds) the next is due, or inf."""
    wanted, next_due = np.zeros(len(plan.free), np.uint64), np.inf
    timeout = config.idle_timeout if config.power == Power.IDLE_TIMEOUT else 0.0
    host = len(state.host_state)
    while host > 0 and sleeps > 0:
        host -= 1
        server = facts.server[host]
        end = facts.server_begin[server + 1]
        hosts = end - facts.server_begin[server]
        if facts.server_host[end - 1] != host or hosts > sleeps:  # each server once, at its highest host
            continue
        due = sleepy_from(state, facts, plan, server, timeout)
        if due <= state.now + TOLERANCE:
            sleeps -= hosts
            for i in range(end - hosts, end):
                insert_interval(wanted, facts.server_host[i], facts.server_host[i])
        else:
            next_due = min(next_due, due)
    switch_off(state, facts, plan, wanted)
    return next_due if sleeps > 0 else np.inf


# Switching servers: hosts with the same property ``server`` sleep and wake together; any other is its own server.


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
    # Batsim cannot wake a host while it falls asleep, and a server is switched as a whole.
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
    # Batsim's SET_RESOURCE_STATE names one pstate for many hosts: one action for each target keeps messages short.
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
        # Idle as a server since its last host became idle.
        due = max(due, state.host_since[host] + timeout)
    return due


@kernel
def see_servers(state, facts, plan):
    """What servers do once the plan is carried out: how many are idle, watts that serve nobody, and switches.

    A server is idle where all of its hosts are awake and none computes. Those watts are of idle servers and of servers
    that wake or fall asleep. Switches are the servers that the plan asks to wake or to sleep.
    """
    # The plan is not carried out yet: play it on a copy.
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
        activity, asleep = doing[host], facts.sleep_pstate[host]
        if activity == COMPUTING:
            return 0, 0.0
        if activity == IDLE:
            watts += facts.idle[host, state.pstate[host]]
        else:
            idle = 0
            if activity == SWITCHING_ON:
                watts += facts.full[host, facts.switch_on[host, asleep]]
            elif activity == SWITCHING_OFF:
                watts += facts.full[host, facts.switch_off[host, asleep]]
    return idle, watts
