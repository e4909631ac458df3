"""Schedule cycling: the instants at which a learned scheduler looks at the cluster, and what it sees then.

DBF (Wang, Harwood and Rodriguez, Deep Back-Filling, HPCC 2022, section III-B): a cycle begins at each arrival and each
completion. Batsim tells all of an instant at once, so the cycles of one decision are: one where jobs have ended, with
the queue as it was before the arrivals, and then one for each arrival, with no later arrival in sight. Ours is only
that hosts which come or go begin a cycle as a completion does, and the instant that was asked for.

What a decision starts is in its plan and not yet in the state; `Cycles` is the cluster as if it were.
"""

import numpy as np

from decision.compiling.bundle import F8, I4, U8, Bundle, Float, Int, begin_again
from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.policies.allocation import take_lowest
from decision.policies.profile import TOLERANCE
from decision.state.bitmap import remove_interval
from decision.state.cluster import COMPUTING, PSTATE_COMPUTING, ClusterState, nb_hosts
from decision.state.plan_arrays import CALL_AT, SET_PSTATE, START, add, add_interval


class Cycles(Bundle):
    """What a scheduler that decides in cycles sees. H hosts, J jobs of capacity."""

    nb_shown: Int  # jobs numbered below this came with earlier decisions, or with this one
    nb_queued: Int  # length of the queue as it is seen
    next_shown: Int  # where in the state's queue the next arrival to be shown is
    nb_free: Int  # hosts that this decision leaves free so far
    nb_running: Int = -1  # jobs that run once the last decision is carried out, -1 before the first one
    nb_busy: Int  # hosts that compute once this decision is carried out
    changes_seen: Int = -1  # nb_capacity_changes of the state when `until` was last computed for all hosts
    revisions_seen: Int  # revisions of the state then
    queue: I4  # (J,) numbers of the jobs that wait, in order of submission; queue[:nb_queued]
    until: F8  # (H,) seconds: expected end of the job there; -inf where the host is free, inf where it is away
    call: Float = np.inf  # seconds: when a cycle was asked for, inf where none was


def new_cycles(state: ClusterState) -> Cycles:
    """Before the first decision about this state."""
    return Cycles(queue=np.zeros(len(state.size), np.int32), until=np.zeros(nb_hosts(state)))


def grow_cycles(cycles: Cycles, state: ClusterState) -> Cycles:
    """The same cycles, between two decisions, with room for every job of `state`."""
    if len(cycles.queue) >= len(state.size):
        return cycles
    return cycles._replace(queue=np.zeros(len(state.size), np.int32))


@kernel
def forget(cycles):
    """As `new_cycles`, for another run."""
    begin_again(cycles)


@kernel
def begin_decision(state, cycles):
    """Look at the state after all transitions of an instant; returns whether there is a cycle before any arrival."""
    moved = cycles.changes_seen != state.nb_capacity_changes and cycles.changes_seen >= 0
    called = state.now > cycles.call - TOLERANCE
    if called:
        cycles.call = np.inf
    _follow_hosts(state, cycles)
    old = state.nb_queued
    while old > 0 and state.queue[old - 1] >= cycles.nb_shown:
        old -= 1
    if state.nb_jobs > len(cycles.queue):
        raise InternalError("the cycles have no room for all jobs that wait")
    for i in range(old):
        cycles.queue[i] = state.queue[i]
    cycles.nb_shown = state.nb_jobs
    cycles.nb_queued = old
    cycles.next_shown = old
    cycles.nb_free = state.nb_free
    cycles.nb_busy = state.nb_in_state[COMPUTING]
    cycles.nb_running = state.nb_running
    return state.nb_ended > 0 or moved or called


@kernel
def show_arrival(state, cycles):
    """Let the next arrival of this instant be seen, which begins a cycle; returns its number, -1 if there is none."""
    if cycles.next_shown == state.nb_queued:
        return -1
    job = state.queue[cycles.next_shown]
    cycles.queue[cycles.nb_queued] = job
    cycles.nb_queued += 1
    cycles.next_shown += 1
    return job


@kernel
def start_at(state, cycles, plan, at):
    """Plan to start the job at a place of the queue, which fits, on the free hosts with the lowest ids."""
    job = cycles.queue[at]
    action = add(plan, START, job)
    take_lowest(plan, action, state.size[job])
    note_start(state, cycles, plan, at, action)


@kernel
def place_in_queue(cycles, job):
    """Where a job is in the queue."""
    for at in range(cycles.nb_queued):
        if cycles.queue[at] == job:
            return at
    raise InternalError("a job is to start that is not in the queue")


@kernel
def note_start(state, cycles, plan, at, action):
    """The job at a place of the queue leaves it: this action of the plan starts it on hosts."""
    job = cycles.queue[at]
    end = state.now + state.expected_runtime[job]
    for i in range(plan.begin[action], plan.end[action]):
        cycles.until[plan.first[i] : plan.last[i] + 1] = end
    cycles.nb_free -= state.size[job]
    cycles.nb_busy += state.size[job]
    cycles.nb_running += 1
    cycles.nb_queued -= 1
    for i in range(at, cycles.nb_queued):
        cycles.queue[i] = cycles.queue[i + 1]


@kernel
def call_at(cycles, plan, time):
    """Let a cycle begin at `time` (seconds); only the last time asked for counts."""
    cycles.call = time
    plan.time[add(plan, CALL_AT, -1)] = time


@kernel
def sleep_at(facts, cycles, plan, host):
    """Plan to put a free host to sleep. A cycle begins when it has fallen asleep."""
    _plan_switch(plan, host, facts.sleep_pstate[host])
    remove_interval(plan.free, host, host)
    cycles.until[host] = np.inf
    cycles.nb_free -= 1


@kernel
def wake_at(facts, plan, host):
    """Plan to wake a host that sleeps, into its first computing pstate. A cycle begins when it is awake."""
    pstate = 0
    while facts.pstate_kind[host, pstate] != PSTATE_COMPUTING:
        pstate += 1
    _plan_switch(plan, host, pstate)


@kernel
def _plan_switch(plan, host, pstate):
    action = add(plan, SET_PSTATE, -1)
    plan.value[action] = pstate
    add_interval(plan, action, host, host)


@kernel
def _follow_hosts(state, cycles):
    """Bring `until` up to date: where jobs ended; everywhere, if more than ends changed it.

    That is where hosts came or went, a start was not carried out, or an outlook was corrected.
    """
    as_planned = cycles.nb_running in (-1, state.nb_running + state.nb_ended)
    as_planned = as_planned and cycles.revisions_seen == state.revisions[0]
    if cycles.changes_seen != state.nb_capacity_changes or not as_planned:
        cycles.changes_seen = state.nb_capacity_changes
        cycles.revisions_seen = state.revisions[0]
        for host in range(len(cycles.until)):
            cycles.until[host] = _until(state, host)
        return
    for k in range(state.nb_ended):
        job = state.ended[k]
        for i in range(state.alloc_first[job], state.alloc_first[job] + state.alloc_count[job]):
            for host in range(state.interval_first[i], state.interval_last[i] + 1):
                cycles.until[host] = _until(state, host)


@kernel
def _until(state, host):
    job = state.host_job[host]
    if job >= 0:
        return state.start_time[job] + state.expected_runtime[job]
    free = state.free[host >> 6] >> np.uint64(host & 63) & np.uint64(1)
    return -np.inf if free else np.inf


# `EpisodeProgress`: what has happened in an episode so far, which rewards and metrics are computed from.


class EpisodeProgress(Bundle):
    """One environment's progress. S steps at most, R rows of the trace, P parameters of the reward."""

    first_row: Int  # row of the trace with which the episode began
    nb_arrived: Int  # jobs so far
    nb_placed: Int  # jobs started so far
    nb_steps: Int  # choices so far
    terminated: Int  # 1 once enough jobs were placed, and nothing is to come
    truncated: Int  # 1 once it was cut off: by time, steps, arrivals, a horizon, or because nothing can happen any more
    last_row: Int  # one past the last row of the trace that may come
    timed: Int  # 1 once the engine was asked to stop at ends_at
    refused_plan: Int  # 1 once a plan could not be carried out
    nb_switched: Int  # servers that were asked to wake or to sleep since counted_from
    nb_hidden: Int  # jobs that are too late to end in time, and leave with this decision
    total_reward: Float  # sum of rewards
    began: Float  # seconds: when the episode began
    used: Float  # core-seconds in use
    waited: Float  # job-seconds in the queue
    loaded: Float  # core-seconds of requested work in the queue, times seconds
    unseen: Float  # job-seconds in the queue and outside of the window
    partial: Float  # seconds in which some job was outside of the window
    placed_wait: Float  # seconds waited by the jobs that were placed
    slowdown: Float  # sum of their bounded slowdowns
    joules: Float  # of all hosts since the episode began; 0 where energy is not simulated
    # and of the present instant
    load: Float  # core-seconds of requested work in the queue
    waiting: Float  # seconds waited so far by the jobs in the queue
    most_queued: Float  # jobs: the longest queue so far
    most_waiting: Float  # seconds: the largest waiting so far
    # and of the episode
    baseline_slowdown: Float  # mean bounded slowdown, had the scheduler's baseline action been taken always
    ends_at: Float  # seconds: when the episode is cut off, inf where it is not
    # and of the jobs that were placed
    work: Float  # core-seconds that they really run
    last_end: Float  # seconds: when the last of them ends
    # and of servers, where energy is simulated
    counted_from: Float  # seconds: from when on they are counted
    idle_servers: Float  # server-seconds in which all of a server was awake and nothing ran on it
    wasted: Float  # joules of these, and of servers that woke or fell asleep
    # and of jobs, where it counts what they are worth
    earned: Float  # of the jobs that ended
    violated: (
        Float  # value of the jobs that ended after their deadlines, or left because they could not end before them
    )
    word: U8  # (1,) the next word of its random numbers
    actions: I4  # (S,) choices so far
    runtime: F8  # (R,) seconds that each job of the trace really runs
    parameters: F8  # (P,) `ChoosingScheduler.reward_parameters`


@kernel
def is_over(progress):
    """Whether the episode has ended."""
    return progress.terminated == 1 or progress.truncated == 1


@kernel
def end_episode(progress, terminates):
    """The episode ends: it terminates, or is cut off."""
    if terminates:
        progress.terminated = 1
    else:
        progress.truncated = 1


@kernel
def mean_slowdown(progress):
    """Mean bounded slowdown of the jobs that were placed."""
    return progress.slowdown / max(progress.nb_placed, 1)
