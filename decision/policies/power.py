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
from decision.state.bitmap import insert_interval
from decision.state.cluster import SLEEPING

from .easy import is_in
from .options import Backfill, Power
from .profile import TOLERANCE, add_free, earliest, fill_capacity, free_at, least_free, step_at
from .servers import sleepy_from, switch_off, wake_lowest


@kernel
def manage_power(state, facts, memory, plan, queue, length, chosen, guarded):
    """Add to the plan which hosts sleep and wake; returns when (seconds) to be asked again, inf for never."""
    if memory.backfill != Backfill.CONSERVATIVE:
        _reserve_what_counts(state, facts, memory, queue, length, chosen, guarded)
    wakes = _count_wakes(state, memory)
    asleep = state.nb_in_state[SLEEPING] - wakes
    sleeps = _count_sleeps(state, memory, asleep)
    call = _next_need(state, memory, asleep)
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
    soon = _awake_from(state, memory)
    _begin_profile(state, facts, memory, chosen)
    passed, first, protects = 0, 0, memory.backfill != Backfill.FIRST_FIT
    if guarded > 0:
        passed, waits = _reserve_guarded(state, memory, chosen, guarded)
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
        if not protects and free_at(memory, soon) == 0:
            return
        begin = earliest(memory, state.size[job], state.expected_runtime[job])
        if begin <= soon or (protects and begin < np.inf):
            _reserve(state, memory, job, begin)
        if begin > soon:
            protects = False
            if memory.backfill == Backfill.NONE:
                return


@kernel
def _begin_profile(state, facts, memory, chosen):
    """Fill the profile with the capacity, and the jobs about to start."""
    fill_capacity(state, facts, memory)
    for i in range(chosen):
        _reserve(state, memory, memory.chosen[i], state.now)


@kernel
def _reserve(state, memory, job, begin):
    """A job has its hosts in the profile from `begin` (seconds) on."""
    add_free(memory, begin, begin + state.expected_runtime[job], -state.size[job])


@kernel
def _reserve_guarded(state, memory, chosen, guarded):
    """Put the reservations of guarded jobs that wait into the profile; how many start, and whether any waits."""
    waits = False
    for i in range(guarded):
        job = state.queue[i]
        begin = memory.reserved[job]
        if begin > state.now:
            waits = True
            if begin < np.inf:
                _reserve(state, memory, job, begin)
    passed = 0
    while passed < chosen and memory.chosen[passed] < memory.nb_guarded:
        passed += 1
    return passed, waits


@kernel
def _count_wakes(state, memory):
    """How many hosts to wake now: those that reservations need by then, and up to the number to keep awake."""
    asleep, soon = state.nb_in_state[SLEEPING], _awake_from(state, memory)
    if asleep == 0:
        return 0
    unreserved = np.int64(least_free(memory, soon, soon + TOLERANCE))
    wakes = max(asleep - unreserved, 0)
    if memory.power == Power.KEEP_AWAKE:
        wakes += max(memory.keep_awake - (unreserved - asleep + wakes), 0)
    return min(wakes, asleep)


@kernel
def _count_sleeps(state, memory, asleep):
    """How many hosts may sleep: awake and unreserved until they could be awake again."""
    now, soon = state.now, _awake_from(state, memory)
    unreserved = np.int64(least_free(memory, now, soon))
    later = np.int64(least_free(memory, soon, soon + memory.doze_time + TOLERANCE)) - asleep
    sleeps = min(unreserved, later)
    return sleeps - memory.keep_awake if memory.power == Power.KEEP_AWAKE else sleeps


@kernel
def _next_need(state, memory, asleep):
    """When (seconds) to wake hosts for a reservation that is not near yet; inf for never."""
    if asleep == 0:
        return np.inf
    for i in range(step_at(memory, _awake_from(state, memory) + TOLERANCE) + 1, memory.end_step):
        if memory.step_free[i] < asleep:
            return memory.step_time[i] - memory.wake_time
    return np.inf


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
