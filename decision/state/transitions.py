"""The only writers of `ClusterState`.

Each function is one thing that happens to the cluster, at ``state.now``. What a policy decides is checked before
(`decision.policies.prepared`), and so is what a peer says (`decision.protocol`, `decision.batsim.agent`). They only
check that the arrays have room, which their owner sees to: where one is full they raise `InternalError` and write
nothing beyond it.
"""

import numpy as np

from decision.compiling.bundle import begin_again
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import insert_in_order
from decision.model.errors import InternalError

from .bitmap import count_ones, has_host, remove_interval
from .cluster import (
    COMPUTING,
    ENDED,
    FAILED,
    FORECAST,
    IDLE,
    PSTATE_COMPUTING,
    QUEUED,
    REJECTED,
    RUNNING,
    SLEEPING,
    SWITCHING_OFF,
    SWITCHING_ON,
    UNAVAILABLE,
)


@kernel
def reset(state, facts, pstates, now):
    """An idle cluster at `now` seconds, to which nothing has happened; hosts are in the pstates (H,)."""
    begin_again(state)
    state.now = now
    state.nb_in_state[:] = 0
    state.nb_in_state[IDLE] = len(state.host_state)
    state.host_job[:] = -1
    state.host_state[:] = IDLE
    state.host_since[:] = now
    state.pstate[:] = pstates
    state.free[:] = 0
    state.supply = len(state.host_state)
    state.unpowered[:] = 0
    for host in range(len(state.host_state)):
        _refresh_free(state, facts, host)


@kernel
def tick(state, now):
    """Time has passed: it is `now` seconds."""
    state.now = now


@kernel
def take_ends(state):
    """A decision was made: the list of the jobs that ended since the last one begins again."""
    state.nb_ended = 0


@kernel
def submit(state, size, walltime, user, estimate=0.0):
    """A job arrives, which says that it will run `estimate` seconds (0: it does not say it); returns its number."""
    job = state.nb_jobs
    if job >= len(state.size):
        raise InternalError("the cluster's state has no room for another job")
    state.nb_jobs += 1
    state.submit_time[job] = state.now
    state.size[job] = size
    state.walltime[job] = walltime
    state.user[job] = user
    if state.estimate[job] != estimate:  # pages that nobody writes cost no memory
        state.estimate[job] = estimate
    if state.suspended[job] or state.nth_rest[job]:
        state.suspended[job] = 0
        state.nth_rest[job] = 0
    state.job_state[job] = QUEUED
    state.start_time[job] = np.nan
    state.end_time[job] = np.nan
    state.alloc_first[job] = -1
    state.alloc_count[job] = 0
    state.queue[state.nb_queued] = job
    state.nb_queued += 1
    return job


@kernel
def appraise(state, job, value, qos, deadline, expected):
    """A job that has arrived says what it is worth, and until when; 0 where it says nothing."""
    state.value[job] = value
    state.qos[job] = qos
    state.deadline[job] = deadline
    state.expected[job] = expected


@kernel
def begin_suspension(state, job, failed):
    """A running job was asked to give its hosts up, which it has until it ends; 1 in `failed`: since one has failed."""
    state.suspended[job] = 1 + failed


@kernel
def progress(state, job, restart, every):
    """How many seconds of its run an ended job need not do again, and how many of them were a restart.

    What a failure leaves is what was saved `every` so many seconds (0: never), counted from when the job went on.
    """
    ran, paid = state.end_time[job] - state.start_time[job], restart if state.nth_rest[job] > 0 else 0.0
    if state.suspended[job] == FAILED:
        ran = paid + (np.floor(max(ran - paid, 0.0) / every + 1e-9) * every if every > 0.0 else 0.0)
    return ran, paid


@kernel
def resubmit(state, job, restart, every):
    """The rest of a job that was suspended or failed arrives, with `restart` seconds more; returns its number."""
    nth = state.nth_rest[job] + 1
    origin = state.origin[job] if nth > 1 else job
    ran, paid = progress(state, job, restart, every)
    rest = submit(state, state.size[job], rest_of(state.walltime[job], ran, paid, restart), state.user[job], 0.0)
    if state.estimate[job] > 0.0:
        state.estimate[rest] = rest_of(state.estimate[job], ran, paid, restart)
    expected = rest_of(state.expected[job], ran, paid, restart) if state.expected[job] > 0.0 else 0.0
    appraise(state, rest, state.value[job], state.qos[job], state.deadline[job], expected)
    state.nth_rest[rest] = nth
    state.origin[rest] = origin
    return rest


@kernel
def rest_of(seconds, ran, paid, restart):
    """What is left of `seconds` after `ran` of them, to the microsecond, and `restart` seconds before it goes on.

    The first `paid` of them were a restart themselves: a job that is suspended before it went on has lost that only.
    """
    return np.rint((max(seconds - max(ran, paid), 1e-6) + restart) * 1e6) / 1e6


@kernel
def start(state, job, first, last, begin, end):
    """`job` starts on the intervals ``first[i] .. last[i]`` of hosts, begin <= i < end, ascending and disjoint.

    The hosts are free, or compute where jobs share hosts.

    The job stays in the queue until `drop_started` is called, once for all starts of an instant.
    """
    now = state.now
    if state.nb_intervals + end - begin > len(state.interval_first):
        raise InternalError("the cluster's state has no room for another allocation")
    state.job_state[job] = RUNNING
    state.start_time[job] = now
    state.alloc_first[job] = state.nb_intervals
    state.alloc_count[job] = end - begin
    if state.shares:
        _join(state, job, first, last, begin, end)
        return
    # Hosts are counted by interval, and the bitmap of free ones is changed by word.
    for i in range(begin, end):
        at = state.nb_intervals
        state.interval_first[at] = first[i]
        state.interval_last[at] = last[i]
        state.nb_intervals += 1
        for host in range(first[i], last[i] + 1):
            state.host_job[host] = job
            state.host_state[host] = COMPUTING
            state.host_since[host] = now
        state.nb_in_state[IDLE] -= last[i] - first[i] + 1
        state.nb_in_state[COMPUTING] += last[i] - first[i] + 1
        _clear_free(state, first[i], last[i])
    # In the order in which they are expected to end, which EASY and other policies go through.
    _insert_running(state, job, now + state.walltime[job])


@kernel
def _join(state, job, first, last, begin, end):
    """A job starts on hosts on which others may compute."""
    for i in range(begin, end):
        at = state.nb_intervals
        state.interval_first[at] = first[i]
        state.interval_last[at] = last[i]
        state.nb_intervals += 1
        for host in range(first[i], last[i] + 1):
            if state.host_job[host] < 0:
                _set_host_state(state, host, COMPUTING)
                _clear_free(state, host, host)
            state.host_job[host] = job
    _insert_running(state, job, state.now + state.walltime[job])


@kernel
def _leave(state, facts, job):
    """A job that is over gives its hosts up, which are idle where no other computes, or once they are back."""
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            state.host_job[host] = job_on(state, host)
            if state.host_job[host] < 0:
                if state.host_state[host] == UNAVAILABLE:
                    state.host_return[host] = IDLE
                else:
                    _set_host_state(state, host, IDLE)
                _refresh_free(state, facts, host)
    if state.supply < len(state.host_state):
        _share_power(state)


@kernel
def job_on(state, host):
    """The running job that has this host, of several the one that is expected to end first; -1 for none."""
    for i in range(state.nb_running):
        if has_allocated(state, state.running[i], host):
            return state.running[i]
    return -1


@kernel
def has_allocated(state, job, host):
    """Whether the host is one of the job's."""
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        if state.interval_first[i] <= host <= state.interval_last[i]:
            return True
    return False


@kernel
def drop_started(state):
    """Take the jobs that no longer wait out of the queue, keeping its order."""
    kept = 0
    for i in range(state.nb_queued):
        job = state.queue[i]
        if state.job_state[job] == QUEUED:
            state.queue[kept] = job
            kept += 1
    state.nb_queued = kept


@kernel
def end(state, facts, job, final_state):
    """A running job ends; its hosts are free again unless they left or are not in a computing pstate."""
    if state.job_state[job] != RUNNING or state.nb_ended >= len(state.ended):
        raise InternalError("a job that does not run ended, or more jobs than there is room for")
    state.job_state[job] = ENDED + final_state
    state.end_time[job] = state.now
    _remove_running(state, job)
    state.ended[state.nb_ended] = job
    state.nb_ended += 1
    if state.shares:
        _leave(state, facts, job)
        return
    now, here, free, begin = state.now, 0, 0, state.alloc_first[job]
    # A host that left while the job ran is idle once it is back; one that sleeps or switches cannot have run it.
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            state.host_job[host] = -1
            if state.host_state[host] != UNAVAILABLE:
                state.host_state[host] = IDLE
                state.host_since[host] = now
                here += 1
                if facts.pstate_kind[host, state.pstate[host]] == PSTATE_COMPUTING:
                    state.free[host >> 6] |= np.uint64(1) << np.uint64(host & 63)
                    free += 1
            else:
                state.host_return[host] = IDLE
    state.nb_in_state[COMPUTING] -= here
    state.nb_in_state[IDLE] += here
    state.nb_free += free
    if state.supply < len(state.host_state):
        _share_power(state)


@kernel
def set_supply(state, hosts, forecast):
    """So many hosts have power from now on, and by `forecast` (n,) so many in the steps to come.

    Free hosts without power, those with the highest ids, are as good as away; jobs that run go on.
    """
    state.supply = hosts
    steps = min(len(forecast), FORECAST)
    for step in range(steps):
        state.forecast[step] = forecast[step]
    state.nb_forecast = steps
    state.nb_capacity_changes += 1
    _share_power(state)


@kernel
def spare_power(state):
    """How many more hosts may compute than do; below 0 where more do than have power."""
    busy = 0
    for i in range(state.nb_running):
        busy += state.size[state.running[i]]
    return state.supply - busy


@kernel
def _share_power(state):
    """Let those be free, of the hosts that could be, that power is left for: the lowest."""
    left, free = max(spare_power(state), 0), 0
    for word in range(len(state.free)):
        kept = rest = state.free[word] | state.unpowered[word]
        if np.int64(count_ones(rest)) > left - free:
            kept = np.uint64(0)
            for _ in range(left - free):
                lowest = rest & (~rest + np.uint64(1))
                kept |= lowest
                rest ^= lowest
            state.unpowered[word] = rest
        else:
            state.unpowered[word] = np.uint64(0)
        state.free[word] = kept
        free += np.int64(count_ones(kept))
    state.nb_free = free


@kernel
def put_aside(state, over, first, last, position):
    """Take the intervals of the jobs that are `over` (J,) out of the state, which has room for others then.

    They go to the beginning of `first` and `last`. ``alloc_first`` of such a job becomes -2 - its place among all that
    were ever put aside, of which there are `position`. Returns how many intervals it took.
    """
    held = state.nb_intervals
    old_first, old_last = state.interval_first[:held].copy(), state.interval_last[:held].copy()
    kept = taken = 0
    for job in range(state.nb_jobs):
        begin = state.alloc_first[job]
        if begin < 0:
            continue
        state.alloc_first[job] = -2 - position - taken if over[job] else kept
        for i in range(begin, begin + state.alloc_count[job]):
            if over[job]:
                first[taken] = old_first[i]
                last[taken] = old_last[i]
                taken += 1
            else:
                state.interval_first[kept] = old_first[i]
                state.interval_last[kept] = old_last[i]
                kept += 1
    state.nb_intervals = kept
    return taken


@kernel
def reject(state, job):
    """A queued job is turned away; call `drop_started` after the last one."""
    state.job_state[job] = REJECTED
    state.end_time[job] = state.now


@kernel
def set_aside(state, hidden):
    """Hide queued jobs, as if they were rejected; `hidden` (n,) says which of the queue's. Returns how many.

    They stand after the end of the queue until `bring_back`.
    """
    waiting = state.queue[: state.nb_queued].copy()
    nb_hidden = 0
    # Marked as rejected, so that no policy starts one, and moved behind the queue, so that none sees one.
    for i in range(len(waiting)):
        if hidden[i]:
            state.job_state[waiting[i]] = REJECTED
            nb_hidden += 1
        else:
            state.queue[i - nb_hidden] = waiting[i]
    state.nb_queued -= nb_hidden
    state.queue[state.nb_queued : len(waiting)] = waiting[hidden]
    return nb_hidden


@kernel
def bring_back(state, nb_hidden):
    """Let the jobs that were set aside wait again, at the end of the queue."""
    for i in range(state.nb_queued, state.nb_queued + nb_hidden):
        state.job_state[state.queue[i]] = QUEUED
    state.nb_queued += nb_hidden


@kernel
def leave(state, facts, host):
    """A host becomes unavailable; a job that runs there goes on, and so does a switch to or from sleep."""
    if state.host_state[host] != UNAVAILABLE:
        state.host_return[host] = state.host_state[host]
        _move(state, facts, host, UNAVAILABLE)


@kernel
def come_back(state, facts, host):
    """An unavailable host is available again: it still sleeps, computes or switches, or is idle."""
    if state.host_state[host] == UNAVAILABLE:
        _move(state, facts, host, state.host_return[host])


@kernel
def begin_switch(state, facts, host, virtual_pstate, wakes):
    """A host begins to fall asleep or to wake; it is in `virtual_pstate` (-1 where unknown) meanwhile."""
    if virtual_pstate >= 0:
        state.pstate[host] = virtual_pstate
    _switch(state, facts, host, SWITCHING_ON if wakes else SWITCHING_OFF)


@kernel
def end_switch(state, facts, host, pstate, wakes):
    """A host has fallen asleep or woken up, and is in `pstate`."""
    state.pstate[host] = pstate
    _switch(state, facts, host, IDLE if wakes else SLEEPING)


@kernel
def set_pstate(state, facts, host, pstate):
    """A host goes from one computing pstate to another, at once."""
    state.pstate[host] = pstate
    _refresh_free(state, facts, host)


@kernel
def _switch(state, facts, host, new):
    """Change a host's state on its way to or from sleep; one that is away shows it once it is back."""
    if state.host_state[host] == UNAVAILABLE:
        state.host_return[host] = new
    else:
        _move(state, facts, host, new)


@kernel
def _move(state, facts, host, new):
    """Change a host's state for a reason other than a job."""
    _set_host_state(state, host, new)
    _refresh_free(state, facts, host)
    state.nb_capacity_changes += 1


@kernel
def _set_host_state(state, host, new):
    old = state.host_state[host]
    if old != new:
        state.nb_in_state[old] -= 1
        state.nb_in_state[new] += 1
        state.host_state[host] = new
        state.host_since[host] = state.now


@kernel
def _refresh_free(state, facts, host):
    """Recompute whether a host can be given a job: idle, no job, and in a pstate that computes."""
    can = (
        state.host_state[host] == IDLE
        and state.host_job[host] < 0
        and facts.pstate_kind[host, state.pstate[host]] == PSTATE_COMPUTING
    )
    was = has_host(state.free, host)
    word, bit = host >> 6, np.uint64(1) << np.uint64(host & 63)
    state.unpowered[word] &= ~bit
    if can and not was:
        state.free[word] |= bit
        state.nb_free += 1
    elif was and not can:
        state.free[word] &= ~bit
        state.nb_free -= 1
    # Another host may have this one's share of the power now.
    if state.supply < len(state.host_state):
        _share_power(state)


@kernel
def backdate(state, submit_time, start_time, walltime, running):
    """The first jobs came, and the first `running` of them began, before the simulation did: at these times."""
    state.submit_time[: len(submit_time)] = submit_time
    for job in range(running):
        state.start_time[job], state.walltime[job] = start_time[job], walltime[job]


@kernel
def _clear_free(state, first, last):
    """Hosts first..last, all free, are free no more."""
    remove_interval(state.free, first, last)
    state.nb_free -= last - first + 1


@kernel
def _insert_running(state, job, expected_end):
    at = state.nb_running
    if at >= len(state.running):
        raise InternalError("the cluster's state has no room for another running job")
    state.nb_running += 1
    insert_in_order(state.expected_end, state.running, at, expected_end, job)


@kernel
def _remove_running(state, job):
    count = state.nb_running
    at = 0
    while state.running[at] != job:
        at += 1
    for i in range(at, count - 1):
        state.running[i] = state.running[i + 1]
        state.expected_end[i] = state.expected_end[i + 1]
    state.nb_running = count - 1
