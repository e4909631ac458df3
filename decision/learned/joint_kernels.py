"""The joint policy in compiled code: four linear functions answer what starts, where, what wakes, and what sleeps.

Jobs book hosts before these are awake (`decision.policies.booking`), but here servers fall asleep after the
choices of an instant, so that none does that a job takes at once. All that waits is looked at in the order of ORDER.
A job takes hosts that are awake, by PLACE; where these are too few it takes those that wake, and wakes others once it
has waited for its PATIENCE. A server that is idle for LINGER sleeps.
"""

import math

import numpy as np

from decision.compiling.jit import kernel
from decision.policies.booking import (
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
from decision.state.bitmap import has_host, insert_interval, next_in
from decision.state.plan_arrays import clear

from . import joint_numbers as n
from .confidence import confidence_in, learn_from
from .joint_seen import expect_ends, in_seconds, on_log_scale, see_all_servers, see_request, see_waking, weighted_sum


@kernel
def plan_jointly(state, facts, memory, plan):
    """Fill the plan for this instant."""
    clear(plan, state)
    for i in range(state.nb_ended):
        learn_from(state, memory, state.ended[i])
    forget_gone(state, memory)
    start_due(state, memory, plan)
    rank_hosts(state, facts, memory, np.zeros(len(plan.free), np.uint64))
    see_all_servers(state, facts, memory, plan)
    call = _bind_jobs(state, facts, memory, plan)
    call = min(call, _let_sleep(state, facts, memory, plan))
    wake_booked(state, facts, memory, plan)
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


# --- What is decided -----------------------------------------------------------------------------------------------


@kernel
def _bind_jobs(state, facts, memory, plan):
    """Bind what may start, in order; returns when the patience of a job ends that could start then."""
    call, queued, available = np.inf, state.nb_queued, count_available(memory)
    if queued == memory.nb_booked or available == 0:
        return call
    expect_ends(state, facts, memory)
    for i in range(queued):
        job = state.queue[i]
        see_request(state, memory, job)
        memory.ranked[i], memory.key[job] = (
            job,
            weighted_sum(memory.weights, n.ORDER_WEIGHTS, memory.seen, n.WALLTIME_OF_JOB, n.PATIENCE - n.ORDER_WEIGHTS),
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
            if not pick_asleep(facts, memory, left, patient <= state.now + TOLERANCE, picked):
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
    see_request(state, memory, job)
    see_waking(state, facts, memory, plan, job)
    weights, seen = memory.weights, memory.seen
    answer = weights[n.PATIENCE] + weighted_sum(weights, n.PATIENCE + 1, seen, n.CALM, n.RANK)
    answer += weighted_sum(weights, n.PATIENCE + 1 + n.RANK, seen, n.WALLTIME_OF_JOB, n.N_SEEN - n.WALLTIME_OF_JOB)
    return state.submit_time[job] + in_seconds(answer)


@kernel
def _book(state, facts, memory, plan, job, picked):
    end = state.now + state.walltime[job] * confidence_in(state, memory, job)
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
            score[server] = weighted_sum(memory.weights, n.PLACE, memory.fit, 0, n.N_FIT)
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
    longer = state.now + state.walltime[job] * confidence_in(state, memory, job) - memory.until[server]
    fit[n.FREE_CORES] = memory.vacant[server] / hosts
    fit[n.EMPTY] = memory.vacant[server] == hosts
    fit[n.OUTLASTS], fit[n.OUTLASTED] = on_log_scale(longer), on_log_scale(-longer)
    fit[n.HOLDS] = memory.vacant[server] >= state.size[job]


@kernel
def _let_sleep(state, facts, memory, plan):
    """Put servers to sleep that were idle for long enough; returns when (seconds) the next one will have been."""
    due, wanted, before = np.inf, np.zeros(len(plan.free), np.uint64), 0
    see_all_servers(state, facts, memory, plan)
    weights, seen, now = memory.weights, memory.seen, state.now
    for server in range(len(facts.server_begin) - 1):
        if sleepy_from(state, facts, plan, server, 0.0) == np.inf:
            continue
        seen[n.RANK] = math.log1p(before)
        before += 1
        answer = weights[n.LINGER] + weighted_sum(weights, n.LINGER + 1, seen, n.CALM, n.RANK + 1)
        at = sleepy_from(state, facts, plan, server, in_seconds(answer))
        if at > now + TOLERANCE:
            due = min(due, at)
            continue
        for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
            insert_interval(wanted, facts.server_host[i], facts.server_host[i])
    switch_off(state, facts, plan, wanted)
    return due
