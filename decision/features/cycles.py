"""Schedule cycling: the instants at which a learned scheduler looks at the cluster, and what it sees then.

DBF (Wang, Harwood and Rodriguez, Deep Back-Filling, HPCC 2022, section III-B): a cycle begins at each arrival and each
completion. Batsim tells all of an instant at once, so the cycles of one decision are: one where jobs have ended, with
the queue as it was before the arrivals, and then one for each arrival, with no later arrival in sight. Ours is only
that hosts which come or go begin a cycle as a completion does, and the instant that was asked for.

What a decision starts is in its plan and not yet in the state; `Cycles` is the cluster as if it were.
"""

import numpy as np

from decision.bundle import F8, I4, I8, Bundle
from decision.jit import kernel
from decision.policies.allocation import take_lowest
from decision.policies.plan import START, add
from decision.state.cluster import N_ENDED, N_FREE, N_JOBS, N_QUEUED, SWITCHES, ClusterState, nb_hosts

# Cycles.number
SHOWN = 0  # jobs numbered below this came with earlier decisions, or with this one
LENGTH = 1  # of the queue as it is seen
NEXT = 2  # where in the state's queue the next arrival to be shown is
FREE = 3  # hosts that this decision leaves free so far
LAST_SWITCHES = 4  # SWITCHES of the state when `until` was last made anew
COMMITTED = 5  # number of the job that starts next, whenever it fits; -1 where none was chosen
N_NUMBERS = 6

EARLY = 1e-3  # seconds: a call may come so much before its time, by rounding


class Cycles(Bundle):
    """What a scheduler that decides in cycles sees. H hosts, J jobs of capacity."""

    number: I8  # (N_NUMBERS,)
    queue: I4  # (J,) numbers of the jobs that wait, in order of submission; queue[: number[LENGTH]]
    until: F8  # (H,) seconds: expected end of the job there; -inf where the host is free, inf where it is away
    refused: I4  # (J,) how often each job's start was refused
    call: F8  # (1,) seconds: when a cycle was asked for, inf where none was


def new_cycles(state: ClusterState) -> Cycles:
    """Before the first decision about this state."""
    number = np.zeros(N_NUMBERS, np.int64)
    number[[LAST_SWITCHES, COMMITTED]] = -1
    return Cycles(
        number=number,
        queue=np.zeros(len(state.size), np.int32),
        until=np.zeros(nb_hosts(state)),
        refused=np.zeros(len(state.size), np.int32),
        call=np.full(1, np.inf),
    )


def with_room(cycles: Cycles, state: ClusterState) -> Cycles:
    """The same cycles, between two decisions, with room for every job of `state`."""
    if len(cycles.queue) >= len(state.size):
        return cycles
    refused = np.zeros(len(state.size), np.int32)
    refused[: len(cycles.refused)] = cycles.refused
    return cycles._replace(queue=np.zeros(len(state.size), np.int32), refused=refused)


@kernel
def forget(cycles):
    """As `new_cycles`, for another run."""
    cycles.number[:] = 0
    cycles.number[LAST_SWITCHES] = -1
    cycles.number[COMMITTED] = -1
    cycles.call[0] = np.inf


@kernel
def begin_decision(state, cycles):
    """Look at the state after all transitions of an instant; returns whether there is a cycle before any arrival."""
    number, count = cycles.number, state.count
    moved = number[LAST_SWITCHES] != count[SWITCHES] and number[LAST_SWITCHES] >= 0
    called = state.now[0] > cycles.call[0] - EARLY
    if called:
        cycles.call[0] = np.inf
    _follow_hosts(state, cycles)
    old = count[N_QUEUED]
    while old > 0 and state.queue[old - 1] >= number[SHOWN]:
        old -= 1
    for i in range(old):
        cycles.queue[i] = state.queue[i]
    number[SHOWN] = count[N_JOBS]
    number[LENGTH] = old
    number[NEXT] = old
    number[FREE] = count[N_FREE]
    return count[N_ENDED] > 0 or moved or called


@kernel
def show_arrival(state, cycles):
    """Let the next arrival of this instant be seen, which begins a cycle; returns its number, -1 if there is none."""
    number = cycles.number
    if number[NEXT] == state.count[N_QUEUED]:
        return -1
    job = state.queue[number[NEXT]]
    cycles.queue[number[LENGTH]] = job
    cycles.refused[job] = 0
    number[LENGTH] += 1
    number[NEXT] += 1
    return job


@kernel
def place_of(cycles, encoding, slot):
    """Where in the queue the job of a slot is; -1 where it is empty or there is no such slot.

    Slots 0 .. head - 1 of the window are the first jobs of the queue, the `tail` slots after them the last ones, the
    newest first. No job is in two slots.
    """
    head, length = encoding.head, cycles.number[LENGTH]
    if slot < 0 or slot >= head + encoding.tail:
        return -1
    if slot < head:
        return slot if slot < length else -1
    at = length - 1 - (slot - head)
    return at if at >= head else -1


@kernel
def start_at(state, cycles, plan, at):
    """Plan to start the job at a place of the queue, which fits, on the free hosts with the lowest ids."""
    number, job = cycles.number, cycles.queue[at]
    action = add(plan, START, job)
    take_lowest(plan, action, state.size[job])
    end = state.now[0] + state.walltime[job]
    for i in range(plan.begin[action], plan.end[action]):
        cycles.until[plan.first[i] : plan.last[i] + 1] = end
    number[FREE] -= state.size[job]
    number[LENGTH] -= 1
    for i in range(at, number[LENGTH]):
        cycles.queue[i] = cycles.queue[i + 1]


@kernel
def _follow_hosts(state, cycles):
    """Bring `until` up to date: where jobs ended, or everywhere if hosts came or went."""
    if cycles.number[LAST_SWITCHES] != state.count[SWITCHES]:
        cycles.number[LAST_SWITCHES] = state.count[SWITCHES]
        for host in range(len(cycles.until)):
            cycles.until[host] = _until(state, host)
        return
    for k in range(state.count[N_ENDED]):
        job = state.ended[k]
        for i in range(state.alloc_first[job], state.alloc_first[job] + state.alloc_count[job]):
            for host in range(state.interval_first[i], state.interval_last[i] + 1):
                cycles.until[host] = _until(state, host)


@kernel
def _until(state, host):
    job = state.host_job[host]
    if job >= 0:
        return state.start_time[job] + state.walltime[job]
    free = state.free[host >> 6] >> np.uint64(host & 63) & np.uint64(1)
    return -np.inf if free else np.inf
