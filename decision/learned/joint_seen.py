"""The joint policy's memory in compiled code, and what it sees."""

import math

import numpy as np

from decision.compiling.bundle import F8, I4, I8, Float
from decision.compiling.jit import kernel
from decision.policies.booking import WAKING, Booking, is_booked
from decision.policies.order import sort_by_key
from decision.state.bitmap import count_hosts, next_in
from decision.state.cluster import COMPUTING, SLEEPING

from . import joint_numbers as n
from .confidence import Confidence, confidence_in
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
    next_call: Float = np.inf  # seconds: when the policy will be called on its own request, inf if it will not
    per_server: Float  # servers per host
    until: F8  # (H,) seconds: when the jobs of a server are expected to be over, by server
    vacant: I8  # (H,) hosts that are awake and free, by server
    ends: F8  # (R,) seconds, ascending: expected ends of the jobs that run
    sizes: I8  # (R,) their hosts
    ranked: I4  # (J,) jobs that wait, in order
    spare: I4  # (J,) scratch
    key: F8  # (J,) of each job


@kernel
def on_log_scale(seconds):
    """From 0, for none or less, to about 2."""
    return math.log1p(min(max(seconds, 0.0), _FAR) / _MINUTE) / 3.0


@kernel
def _since(state, jobs):
    """In which time (seconds) so many jobs have come; extrapolated where there were fewer."""
    count = state.nb_jobs
    last = min(count, jobs)
    return (state.now - state.submit_time[count - last]) * jobs / last if last > 0 else _FAR


@kernel
def see_all_servers(state, facts, memory, plan):
    """The numbers that are not a job's or a server's own; and what each server has vacant."""
    seen, hosts, servers = memory.seen, len(memory.rank), len(facts.server_begin) - 1
    _count_vacant(facts, memory, plan)
    idle, wanted = 0, 0
    for server in range(servers):
        idle += memory.vacant[server] == facts.server_begin[server + 1] - facts.server_begin[server]
    for i in range(state.nb_queued):
        if not is_booked(memory, state.queue[i]):
            wanted += state.size[state.queue[i]]
    seen[n.CALM], seen[n.CALM_8] = on_log_scale(_since(state, 1)), on_log_scale(_since(state, _LAST))
    seen[n.WANTED] = math.log1p(wanted * servers / hosts)
    seen[n.SHARE_ASLEEP], seen[n.SHARE_BUSY] = state.nb_in_state[SLEEPING] / hosts, state.nb_in_state[COMPUTING] / hosts
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
    return max(walltime - (state.now - state.start_time[job]), 0.0) * confidence_in(state, memory, job)


@kernel
def expect_ends(state, facts, memory):
    """When each server's jobs are expected to be over, and the ends of the jobs that run, in order."""
    now, running = state.now, state.nb_running
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
def see_request(state, memory, job):
    """The numbers that ORDER sees."""
    seen, walltime = memory.seen, state.walltime[job]
    seen[n.WALLTIME_OF_JOB] = on_log_scale(walltime)
    seen[n.EXPECTED_RUNTIME] = on_log_scale(walltime * confidence_in(state, memory, job))
    seen[n.SERVERS_OF_JOB] = math.log1p(state.size[job] * memory.per_server)
    seen[n.WAITED_SO_FAR] = on_log_scale(state.now - state.submit_time[job])


@kernel
def see_waking(state, facts, memory, plan, job):
    """The other numbers of a job, for which too few hosts are awake."""
    seen, size, free, now = memory.seen, state.size[job], count_hosts(plan.free), state.now
    ready = free
    for host in range(len(memory.rank)):
        if memory.booked_by[host] < 0 and memory.rank[host] >= WAKING:
            ready += memory.rank[host] == WAKING or memory.woken[facts.server[host]] == 1
    seen[n.MISSING_HOSTS] = (size - free) / size
    seen[n.WOKEN] = math.log1p(max(size - ready, 0) * memory.per_server)
    running = state.nb_running
    seen[n.SOON] = on_log_scale(enough_at(memory.ends, memory.sizes, running, free, size) - now)
    seen[n.SOON_BY_WALLTIMES] = on_log_scale(_when_at_latest(state, running, size - free) - now)


@kernel
def _when_at_latest(state, running, missing):
    """When (seconds) so many hosts have come free."""
    for i in range(running):
        missing -= state.size[state.running[i]]
        if missing <= 0:
            return state.expected_end[i]
    return np.inf


@kernel
def weighted_sum(weights, at, numbers, first, count):
    answer = 0.0
    for k in range(count):
        answer += weights[at + k] * numbers[first + k]
    return answer


@kernel
def in_seconds(answer):
    return math.expm1(min(max(answer, 0.0), _LONGEST)) * _MINUTE
