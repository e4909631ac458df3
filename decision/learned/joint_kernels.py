"""The joint policy in compiled code: four linear functions answer what starts, where, what wakes, and what sleeps.

Jobs book hosts before these are awake (`decision.policies.booking`), but here servers fall asleep after the
choices of an instant, so that none does that a job takes at once. All that waits is looked at in the order of ORDER.
A job takes hosts that are awake, by PLACE; where these are too few it takes those that wake, and wakes others once it
has waited for its PATIENCE. A server that is idle for LINGER sleeps.
"""

import math

import numpy as np

from decision.compiling.bundle import F8, I4, I8
from decision.compiling.jit import kernel
from decision.policies.booking import (
    WAKING,
    Booking,
    book,
    count_available,
    forget_gone,
    is_booked,
    pick_asleep,
    rank_hosts,
    start_due,
    wake_booked,
)
from decision.policies.capacity import TOLERANCE
from decision.policies.guard import ask_for_call
from decision.policies.order import sort_by_key
from decision.policies.servers import sleepy_from, switch_off
from decision.state.bitmap import count_hosts, has_host, insert_interval, next_in
from decision.state.cluster import N_COMPUTING, N_ENDED, N_JOBS, N_QUEUED, N_RUNNING, N_SLEEPING
from decision.state.plan_arrays import clear

from . import joint_numbers as n
from .confidence import Confidence, confidence_in, learn_from
from .releases import enough_at

_MINUTE = 60.0  # seconds
_LONGEST = math.log1p(120.0)  # two hours: no patience lasts longer, and no server lingers longer
_FAR = 1e7  # seconds
_LAST = 8  # jobs that came


class JointMemory(Booking, Confidence):
    """Weights, what is booked, what is known of users, and room for a decision. H hosts, J jobs, R of them run."""

    weights: F8  # (N_WEIGHTS,)
    seen: F8  # (N_SEEN,)
    fit: F8  # (N_FIT,)
    times: F8  # (3,) as `decision.policies.memory.Memory` has them
    per_server: F8  # (1,) servers per host
    until: F8  # (H,) seconds: when the jobs of a server are expected to be over, by server
    vacant: I8  # (H,) hosts that are awake and free, by server
    ends: F8  # (R,) seconds, ascending: expected ends of the jobs that run
    sizes: I8  # (R,) their hosts
    ranked: I4  # (J,) jobs that wait, in order
    spare: I4  # (J,) scratch
    key: F8  # (J,) of each job


@kernel
def plan_jointly(state, facts, memory, plan):
    """Fill the plan for this instant."""
    clear(plan, state)
    for i in range(state.count[N_ENDED]):
        learn_from(state, memory, state.ended[i])
    forget_gone(state, memory)
    start_due(state, memory, plan)
    rank_hosts(state, facts, memory, np.zeros(len(plan.free), np.uint64))
    _see_cluster(state, facts, memory, plan)
    call = _bind_jobs(state, facts, memory, plan)
    call = min(call, _let_sleep(state, facts, memory, plan))
    wake_booked(state, facts, memory, plan)
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


# --- What is seen --------------------------------------------------------------------------------------------------


@kernel
def _long(seconds):
    """From 0, for none or less, to about 2."""
    return math.log1p(min(max(seconds, 0.0), _FAR) / _MINUTE) / 3.0


@kernel
def _since(state, jobs):
    """In which time (seconds) so many jobs have come; extrapolated where there were fewer."""
    count = state.count[N_JOBS]
    last = min(count, jobs)
    return (state.now[0] - state.submit_time[count - last]) * jobs / last if last > 0 else _FAR


@kernel
def _see_cluster(state, facts, memory, plan):
    """The numbers that are not a job's or a server's own; and what each server has vacant."""
    seen, hosts, servers = memory.seen, len(memory.rank), len(facts.server_begin) - 1
    _count_vacant(facts, memory, plan)
    idle, wanted = 0, 0
    for server in range(servers):
        idle += memory.vacant[server] == facts.server_begin[server + 1] - facts.server_begin[server]
    for i in range(state.count[N_QUEUED]):
        if not is_booked(memory, state.queue[i]):
            wanted += state.size[state.queue[i]]
    seen[n.CALM], seen[n.CALM_8] = _long(_since(state, 1)), _long(_since(state, _LAST))
    seen[n.WANTED] = math.log1p(wanted * servers / hosts)
    seen[n.SHARE_ASLEEP], seen[n.SHARE_BUSY] = state.count[N_SLEEPING] / hosts, state.count[N_COMPUTING] / hosts
    seen[n.NB_IDLE] = math.log1p(idle)


@kernel
def _count_vacant(facts, memory, plan):
    memory.vacant[:] = 0
    host = next_in(plan.free, 0)
    while host < len(memory.rank):
        memory.vacant[facts.server[host]] += 1
        host = next_in(plan.free, host + 1)


@kernel
def _left(state, memory, job):
    """For how long (seconds) a job that runs is expected to go on."""
    walltime = state.walltime[job]
    return max(walltime - (state.now[0] - state.start_time[job]), 0.0) * confidence_in(state, memory, job)


@kernel
def _expect_ends(state, facts, memory):
    """When each server's jobs are expected to be over, and the ends of the jobs that run, in order."""
    now, running = state.now[0], state.count[N_RUNNING]
    memory.until[:] = now
    for i in range(running):
        job = state.running[i]
        memory.spare[i], memory.key[job] = job, now + _left(state, memory, job)
    for host in range(len(memory.rank)):
        if state.host_job[host] >= 0:
            server = facts.server[host]
            memory.until[server] = max(memory.until[server], memory.key[state.host_job[host]])
        elif memory.booked_by[host] >= 0:
            server, job = facts.server[host], memory.booked_by[host]
            length = state.walltime[job] * confidence_in(state, memory, job)
            memory.until[server] = max(memory.until[server], now + length)
    sort_by_key(memory.spare, memory.ranked, memory.key, 1, running)
    for i in range(running):
        memory.ends[i], memory.sizes[i] = memory.key[memory.spare[i]], state.size[memory.spare[i]]


@kernel
def _see_job(state, memory, job):
    """The numbers that ORDER sees."""
    seen, walltime = memory.seen, state.walltime[job]
    seen[n.WALLTIME_OF_JOB] = _long(walltime)
    seen[n.EXPECTED_RUNTIME] = _long(walltime * confidence_in(state, memory, job))
    seen[n.SERVERS_OF_JOB] = math.log1p(state.size[job] * memory.per_server[0])
    seen[n.WAITED_SO_FAR] = _long(state.now[0] - state.submit_time[job])


@kernel
def _see_waking(state, facts, memory, plan, job):
    """The other numbers of a job, for which too few hosts are awake."""
    seen, size, free, now = memory.seen, state.size[job], count_hosts(plan.free), state.now[0]
    ready = free
    for host in range(len(memory.rank)):
        if memory.booked_by[host] < 0 and memory.rank[host] >= WAKING:
            ready += memory.rank[host] == WAKING or memory.woken[facts.server[host]] == 1
    seen[n.MISSING_HOSTS] = (size - free) / size
    seen[n.WOKEN] = math.log1p(max(size - ready, 0) * memory.per_server[0])
    running = state.count[N_RUNNING]
    seen[n.SOON] = _long(enough_at(memory.ends, memory.sizes, running, free, size) - now)
    seen[n.SOON_BY_WALLTIMES] = _long(_when_at_latest(state, running, size - free) - now)


@kernel
def _when_at_latest(state, running, missing):
    """When (seconds) so many hosts have come free."""
    for i in range(running):
        missing -= state.size[state.running[i]]
        if missing <= 0:
            return state.expected_end[i]
    return np.inf


@kernel
def _sum(weights, at, numbers, first, count):
    answer = 0.0
    for k in range(count):
        answer += weights[at + k] * numbers[first + k]
    return answer


@kernel
def _seconds(answer):
    return math.expm1(min(max(answer, 0.0), _LONGEST)) * _MINUTE


# --- What is decided -----------------------------------------------------------------------------------------------


@kernel
def _bind_jobs(state, facts, memory, plan):
    """Bind what may start, in order; returns when the patience of a job ends that could start then."""
    call, queued, available = np.inf, state.count[N_QUEUED], count_available(memory)
    if queued == memory.booked_count[0] or available == 0:
        return call
    _expect_ends(state, facts, memory)
    for i in range(queued):
        job = state.queue[i]
        _see_job(state, memory, job)
        memory.ranked[i], memory.key[job] = (
            job,
            _sum(memory.weights, n.ORDER_WEIGHTS, memory.seen, n.WALLTIME_OF_JOB, n.PATIENCE - n.ORDER_WEIGHTS),
        )
    sort_by_key(memory.ranked, memory.spare, memory.key, 1, queued)
    for i in range(queued):
        job = memory.ranked[i]
        if state.size[job] > available or is_booked(memory, job):
            continue
        picked, size = np.zeros(len(plan.free), np.uint64), state.size[job]
        left = size - _pick_awake(state, facts, memory, plan, job, picked)
        if left > 0:
            patient = _patient_until(state, facts, memory, plan, job)
            if not pick_asleep(facts, memory, left, patient <= state.now[0] + TOLERANCE, picked):
                call = min(call, patient)
                continue
        _book(state, facts, memory, plan, job, picked)
        available -= size
        if available == 0:
            break
    return call


@kernel
def _patient_until(state, facts, memory, plan, job):
    """When (seconds) a job that has to wake servers may do so."""
    _see_job(state, memory, job)
    _see_waking(state, facts, memory, plan, job)
    weights, seen = memory.weights, memory.seen
    answer = weights[n.PATIENCE] + _sum(weights, n.PATIENCE + 1, seen, n.CALM, n.RANK)
    answer += _sum(weights, n.PATIENCE + 1 + n.RANK, seen, n.WALLTIME_OF_JOB, n.N_SEEN - n.WALLTIME_OF_JOB)
    return state.submit_time[job] + _seconds(answer)


@kernel
def _book(state, facts, memory, plan, job, picked):
    end = state.now[0] + state.walltime[job] * confidence_in(state, memory, job)
    host = next_in(picked, 0)
    while host < len(memory.rank):
        server = facts.server[host]
        memory.vacant[server] -= has_host(plan.free, host)
        memory.until[server] = max(memory.until[server], end)
        host = next_in(picked, host + 1)
    book(facts, memory, plan, job, picked)


@kernel
def _pick_awake(state, facts, memory, plan, job, picked):
    """Put hosts into the bitmap that are awake, those of the servers that PLACE likes best; returns how many."""
    size = state.size[job]
    left, servers = size, len(facts.server_begin) - 1
    score = np.full(servers, -np.inf)
    for server in range(servers):
        if memory.vacant[server] > 0:
            _see_fit(state, facts, memory, job, server)
            score[server] = _sum(memory.weights, n.PLACE, memory.fit, 0, n.N_FIT)
    while left > 0:
        best = np.argmax(score)
        if score[best] == -np.inf:
            break
        score[best] = -np.inf
        for i in range(facts.server_begin[best], facts.server_begin[best + 1]):
            host = facts.server_host[i]
            if left > 0 and has_host(plan.free, host):
                insert_interval(picked, host, host)
                left -= 1
    return size - left


@kernel
def _see_fit(state, facts, memory, job, server):
    """How a job fits a server."""
    fit, hosts = memory.fit, facts.server_begin[server + 1] - facts.server_begin[server]
    longer = state.now[0] + state.walltime[job] * confidence_in(state, memory, job) - memory.until[server]
    fit[n.FREE_CORES] = memory.vacant[server] / hosts
    fit[n.EMPTY] = memory.vacant[server] == hosts
    fit[n.OUTLASTS], fit[n.OUTLASTED] = _long(longer), _long(-longer)
    fit[n.HOLDS] = memory.vacant[server] >= state.size[job]


@kernel
def _let_sleep(state, facts, memory, plan):
    """Put servers to sleep that were idle for long enough; returns when (seconds) the next one will have been."""
    due, wanted, before = np.inf, np.zeros(len(plan.free), np.uint64), 0
    _see_cluster(state, facts, memory, plan)
    weights, seen, now = memory.weights, memory.seen, state.now[0]
    for server in range(len(facts.server_begin) - 1):
        if sleepy_from(state, facts, plan, server, 0.0) == np.inf:
            continue
        seen[n.RANK] = math.log1p(before)
        before += 1
        answer = weights[n.LINGER] + _sum(weights, n.LINGER + 1, seen, n.CALM, n.RANK + 1)
        at = sleepy_from(state, facts, plan, server, _seconds(answer))
        if at > now + TOLERANCE:
            due = min(due, at)
            continue
        for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
            insert_interval(wanted, facts.server_host[i], facts.server_host[i])
    switch_off(state, facts, plan, wanted)
    return due
