"""When hosts sleep and wake, and jobs that book hosts which are not awake yet.

Both slots ask one question: how many hosts will be awake and unreserved at a time? The profile says how many are
free of running jobs and reservations, hosts asleep being free from ``now + wake_time`` on. Where it says fewer
than are asleep, the missing ones must be awake by then: they are woken now or, by a call, in time. Hosts that stay
unreserved for as long as it takes to fall asleep and wake may sleep: with idle-timeout those that have been idle
for so long, with keep-awake all but so many; keep-awake also wakes hosts up to its number.

Hosts with the same property ``server`` are one machine: it sleeps when all of them may, and wakes as a whole.

Conservative backfilling has reservations for all jobs. For the other rules the jobs that could start once the
sleeping hosts are awake get one here, and so does the first job that could not (except with first-fit, which
protects none).

Booking
-------
Jobs that book hosts before they can start: at once, awake or not; they start when the last host is awake.

So do Casagrande et al., DeepScheduling (AINA 2020), and their program. What happens at one instant, in this order:

1. jobs whose booked hosts are all awake start (`start_due`);
2. servers that have been idle and not booked for the timeout fall asleep (`sleep_due`), before anybody may choose them;
3. jobs book hosts: those that are awake, waking, asleep, and falling asleep, in this order, then by id (`pick`,
   `book`); where all are awake the job starts;
4. servers that sleep and have a booked host wake (`wake_booked`); those that fall asleep do so once they sleep.

`forget_gone` begins an instant. A job stays in the state's queue while it has booked hosts. It loses its
hosts where one of them leaves.

Which jobs book follows the rules of EASY (`decide_booked`), but a host that sleeps counts as one that is free. With
`patience` a job that has waited for less wakes no server. The head's reservation under EASY is at the shadow time, when
enough hosts will be free, asleep or not; where it only waits for its patience to end, at that time.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host, insert_interval, next_in, remove_interval
from decision.state.cluster import (
    COMPUTING,
    IDLE,
    PSTATE_COMPUTING,
    QUEUED,
    SLEEPING,
    SWITCHING_OFF,
    SWITCHING_ON,
    UNAVAILABLE,
)
from decision.state.plan_arrays import SET_PSTATE, START, add, add_interval

from .allocation import pick_fullest
from .backfill import add_release, find_shadow, is_in
from .options import Allocation, Backfill, Power
from .profile import TOLERANCE, add_free, awake_at, earliest, fill_capacity, free_at, least_free, step_at


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


# --- Booking --------------------------------------------------------------------------------------------------------

# Booking.rank
AWAKE, WAKING, ASLEEP, DOZING = range(4)
_NEVER = -1  # computes, left, or cannot be woken


@kernel
def decide_booked(state, facts, memory, plan, queue, length):
    """Fill the empty plan for this instant; returns when (seconds) to be asked again, inf for never."""
    # The order is that of DeepScheduling's program: starts free nothing for others, and what falls asleep now cannot be
    # chosen now.
    forget_gone(state, memory)
    start_due(state, memory, plan)
    sleep_due(state, facts, memory, plan, memory.idle_timeout)
    call = _bind_jobs(state, facts, memory, plan, queue, length)
    wake_booked(state, facts, memory, plan)
    return min(call, next_timeout(state, facts, plan, memory.idle_timeout))


@kernel
def _bind_jobs(state, facts, memory, plan, queue, length):
    """Bind what the rule lets start, in order; returns when the patience of a job ends that could start then."""
    call, headless, available = np.inf, True, count_available(memory)
    picked = np.zeros(len(plan.free), np.uint64)
    for i in range(length):
        job = queue[i]
        # Strict order ends at the first job that does not get its hosts.
        if available == 0 or (not headless and memory.backfill == Backfill.NONE):
            break
        if is_booked(memory, job):
            continue
        size, patient = state.size[job], state.submit_time[job] + memory.patience
        picked[:] = 0
        # Only a job that has waited for its patience may wake a server; younger ones take what is awake, or will be
        # anyway.
        wakes = patient <= state.now + TOLERANCE
        if size <= available and pick(facts, memory, plan, size, memory.allocation == Allocation.PACK, wakes, picked):
            if not headless and memory.backfill == Backfill.EASY:
                # It starts when the last of its hosts is awake. By the shadow time it must be over, or take of the
                # hosts that the head's reservation leaves over.
                begin = state.now
                for host in range(len(memory.rank)):
                    if has_host(picked, host):
                        begin = max(begin, ready_at(state, facts, memory, host))
                if begin + state.expected_runtime[job] > memory.head_start:
                    if size > memory.extra:
                        continue
                    memory.extra -= size
            book(facts, memory, plan, job, picked)
            available -= size
            continue
        if size <= available:
            call = min(call, patient)
        # The first job that gets no hosts now is the head, whose reservation the later ones must leave alone.
        if headless and memory.backfill == Backfill.EASY:
            _reserve_booked_head(state, facts, memory, size, available, patient)
        headless = False
    return call


@kernel
def _reserve_booked_head(state, facts, memory, size, available, patient):
    """Set the shadow time and the extra hosts of the head, which needs `size` of the hosts that are available."""
    # There are hosts, and it only waits for the right to wake them.
    if size <= available:
        memory.head_start = patient
        memory.extra = available - size
        return
    released = 0
    for i in range(memory.nb_booked):
        job, begin = memory.booked[i], state.now
        for host in range(len(memory.booked_by)):
            if memory.booked_by[host] == job:
                begin = max(begin, ready_at(state, facts, memory, host))
        released = add_release(memory, released, begin + state.expected_runtime[job], state.size[job])
    find_shadow(state, memory, released, size, available)


@kernel
def forget_gone(state, booking):
    """Forget the jobs that no longer wait, and those that lost a host."""
    lost = state.nb_in_state[UNAVAILABLE] > 0
    if lost:
        for host in range(len(booking.booked_by)):
            if booking.booked_by[host] >= 0 and state.host_state[host] == UNAVAILABLE:
                # The job loses its other hosts, too.
                booking.booked_by[booking.booked_by == booking.booked_by[host]] = -1
    kept = 0
    for i in range(booking.nb_booked):
        job = booking.booked[i]
        if state.job_state[job] == QUEUED and not (lost and not np.any(booking.booked_by == job)):
            booking.booked[kept] = job
            kept += 1
    if kept < booking.nb_booked:
        for host in range(len(booking.booked_by)):
            if booking.booked_by[host] >= 0 and state.job_state[booking.booked_by[host]] != QUEUED:
                booking.booked_by[host] = -1
    booking.nb_booked = kept


@kernel
def is_booked(booking, job):
    """Whether a job has its hosts."""
    booked = False
    for i in range(booking.nb_booked):
        booked |= booking.booked[i] == job
    return booked


@kernel
def start_due(state, booking, plan):
    """Start the jobs whose booked hosts are all awake; hosts that are booked are not free in the plan."""
    for i in range(booking.nb_booked):
        ready = True
        for host in range(len(booking.booked_by)):
            if booking.booked_by[host] == booking.booked[i]:
                ready &= has_host(state.free, host)
        if ready:
            _start(booking, plan, booking.booked[i])
    for host in range(len(booking.booked_by)):
        if booking.booked_by[host] >= 0:
            remove_interval(plan.free, host, host)


@kernel
def _start(booking, plan, job):
    action = add(plan, START, job)
    for host in range(len(booking.booked_by)):
        if booking.booked_by[host] == job:
            add_interval(plan, action, host, host)


@kernel
def sleep_due(state, facts, booking, plan, timeout):
    """Put the servers to sleep that have been idle and unbooked for `timeout` seconds; returns how many hosts.

    Ranks all hosts.
    """
    wanted = np.zeros(len(plan.free), np.uint64)
    for server in range(len(facts.server_begin) - 1):
        if sleepy_from(state, facts, plan, server, timeout) <= state.now + TOLERANCE:
            for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
                insert_interval(wanted, facts.server_host[i], facts.server_host[i])
    switch_off(state, facts, plan, wanted)
    rank_hosts(state, facts, booking, wanted)
    return count_hosts(wanted)


@kernel
def rank_hosts(state, facts, booking, dozing):
    """Say when each host could compute, and which servers are woken; the plan puts the hosts of a bitmap to sleep."""
    # A server wakes as a whole: hosts beside a booked one cost nothing more, so who may wake nothing may take them.
    booking.woken[:] = 0
    for host in range(len(booking.rank)):
        activity, rank = state.host_state[host], _NEVER
        if has_host(state.free, host):
            rank = DOZING if has_host(dozing, host) else AWAKE
        elif facts.sleep_pstate[host] >= 0:
            if activity == SWITCHING_ON:
                rank = WAKING
            elif activity == SLEEPING:
                rank = ASLEEP
            elif activity == SWITCHING_OFF:
                rank = DOZING
        booking.rank[host] = rank
        if booking.booked_by[host] >= 0:
            booking.woken[facts.server[host]] = 1


@kernel
def next_timeout(state, facts, plan, timeout):
    """When (seconds) the next server will have been idle and unbooked for `timeout`; inf for never."""
    due = np.inf
    for server in range(len(facts.server_begin) - 1):
        due = min(due, sleepy_from(state, facts, plan, server, timeout))
    return due


@kernel
def count_available(booking):
    """How many hosts a job can book."""
    hosts = 0
    for host in range(len(booking.rank)):
        hosts += booking.rank[host] >= 0 and booking.booked_by[host] < 0
    return hosts


@kernel
def pick(facts, booking, plan, size, packs, wakes, picked):
    """Put `size` hosts for a job into the empty bitmap; whether there are so many.

    `packs` is whether the fullest servers go first among those that are awake, `wakes` whether the job may wake
    servers that no other job wakes.
    """
    free = count_hosts(plan.free)
    if packs:
        pick_fullest(facts, plan.free, min(size, free), picked)
    else:
        host = -1
        for _ in range(min(size, free)):  # the lowest
            host = next_in(plan.free, host + 1)
            insert_interval(picked, host, host)
    return pick_asleep(facts, booking, size - min(size, free), wakes, picked)


@kernel
def pick_asleep(facts, booking, left, wakes, picked):
    """Put `left` more hosts into the bitmap that are not awake: `pick` after those that are; whether that many."""
    # Soonest first: hosts that wake already, then those asleep; those that fall asleep must do so before they can wake.
    for rank in range(WAKING, DOZING + 1):
        for host in range(len(booking.rank)):
            is_one = booking.rank[host] == rank and booking.booked_by[host] < 0
            if left > 0 and is_one and (rank == WAKING or wakes or booking.woken[facts.server[host]]):
                insert_interval(picked, host, host)
                left -= 1
    return left == 0


@kernel
def book(facts, booking, plan, job, picked):
    """Bind a job to the hosts of the bitmap; where all are awake it starts."""
    host, hosts, ready = next_in(picked, 0), len(booking.booked_by), True
    while host < hosts:
        booking.booked_by[host] = job
        booking.woken[facts.server[host]] = 1
        ready &= booking.rank[host] == AWAKE
        remove_interval(plan.free, host, host)
        host = next_in(picked, host + 1)
    booking.booked[booking.nb_booked] = job
    booking.nb_booked += 1
    if ready:
        _start(booking, plan, job)


@kernel
def ready_at(state, facts, memory, host):
    """When (seconds) a host is awake that is booked now."""
    if memory.rank[host] == AWAKE:
        return state.now
    if has_host(state.free, host):  # the plan puts it to sleep
        return state.now + memory.doze_time + memory.wake_time
    return awake_at(state, facts, memory, host)


@kernel
def wake_booked(state, facts, booking, plan):
    """Wake the servers that sleep and have a booked host."""
    wanted = np.zeros(len(plan.free), np.uint64)
    for server in range(len(facts.server_begin) - 1):
        if booking.woken[server]:
            add_sleepers(state, facts, server, wanted)
    switch_on(state, facts, plan, wanted)
