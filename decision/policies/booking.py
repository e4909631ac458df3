"""Jobs that book hosts before they can start: at once, awake or not; they start when the last host is awake.

So do Casagrande et al., DeepScheduling (AINA 2020), and their program. What happens at one instant, in this order:

1. jobs whose booked hosts are all awake start (`start_due`);
2. servers that have been idle and not booked for the timeout fall asleep (`sleep_due`), before anybody may choose them;
3. jobs book hosts: those that are awake, waking, asleep, and falling asleep, in this order, then by id (`pick`,
   `book`); where all are awake the job starts;
4. servers that sleep and have a booked host wake (`wake_booked`); those that fall asleep do so once they sleep.

`forget_gone` begins an instant. A job stays in the state's queue while it has booked hosts. It loses its
hosts where one of them leaves.

Which jobs book follows the rules of `easy` (`decide_booked`), but a host that sleeps counts as one that is free. With
`patience` a job that has waited for less wakes no server. The head's reservation under EASY is at the shadow time, when
enough hosts will be free, asleep or not; where it only waits for its patience to end, at that time.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.bitmap import count_hosts, has_host, insert_interval, next_in, remove_interval
from decision.state.cluster import QUEUED, SLEEPING, SWITCHING_OFF, SWITCHING_ON, UNAVAILABLE
from decision.state.plan_arrays import START, add, add_interval

from .allocation import pick_fullest
from .easy import add_release, find_shadow
from .options import Allocation, Backfill
from .power import add_sleepers, sleepy_from, switch_off, switch_on
from .profile import TOLERANCE, awake_at

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
