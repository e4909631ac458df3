"""Observations: from the state, as the cycles of a decision show it, to the numbers that a network reads.

All numbers are in [0, 1]. First comes the cluster. Version "dbf" has one number per core, the remaining requested time
of its job over the longest allowed runtime, 0 where it is free (the paper's; 1 where the host is away). Version
"dbf-pools" has shares of all cores by remaining time, whatever their number: those that are free, and then pools of
twice the time each, up to the longest allowed runtime. Then come four numbers for each slot of the window: cores over
all cores, requested runtime over the longest, time waited over the longest wait, and 1 where there is a job at all.

"rlscheduler" is the window alone, with 1 where the job could start now in place of the last number. "inspector" is of
the one job that is next: time waited, requested runtime, cores; then the share of free cores, 1 where it could start
now, how often it was refused, and what a refusal adds to the slowdowns of all jobs that wait.
"""

import math
from typing import NamedTuple

from decision.jit import kernel
from decision.policies.plan import START
from decision.policies.slots import PolicyConfig
from decision.state.cluster import N_RUNNING

from .choices import DBF, INSPECT, MOST_REFUSALS, PAUSE, PICK, first_in_order
from .cycles import FREE, LENGTH

JOB_FEATURES = 4
INSPECTED = 7  # numbers of "inspector"
SHORTEST = 10.0  # seconds: shorter jobs count as this long in a slowdown
MANY = 128  # jobs of a sequence, whose slowdowns count as 1


class Encoding(NamedTuple):
    """An encoder as numbers for the kernels."""

    head: int  # slots of the window for the first jobs of the queue
    tail: int  # and for the last
    pools: int  # 0 for one number per core
    max_runtime: float  # seconds
    max_wait: float  # seconds
    kind: int = DBF  # what choices do
    base: PolicyConfig = PolicyConfig()  # the order, with INSPECT


@kernel
def observe(state, cycles, plan, encoding, observation, mask):
    """Write the observation (D,) f32 and the mask of valid actions (A,) i8.

    With DBF Fwd is masked where nothing runs and a job could start: nothing but another arrival would end that wait.
    """
    if encoding.kind == INSPECT:
        _inspected(state, cycles, encoding, observation, mask)
        return
    if encoding.kind == PICK:
        _window(state, cycles, encoding, observation, mask)
        return
    if encoding.pools == 0:
        width = _cores(state, cycles, encoding, observation)
    else:
        width = _pools(state, cycles, plan, encoding, observation)
    some = _window(state, cycles, encoding, observation[width:], mask)
    mask[len(mask) - 1] = not (some and cycles.number[FREE] == len(cycles.until))


@kernel
def _cores(state, cycles, encoding, out):
    until, now, scale = cycles.until, state.now[0], 1.0 / encoding.max_runtime
    for host in range(len(until)):
        left = (until[host] - now) * scale
        left = left if left > 0.0 else 0.0
        out[host] = left if left < 1.0 else 1.0
    return len(until)


@kernel
def _pools(state, cycles, plan, encoding, out):
    """Count the cores of each pool, and divide by all: sums of whole numbers are exact."""
    pools, hosts = encoding.pools, len(cycles.until)
    now, scale = state.now[0], 1.0 / encoding.max_runtime
    out[:pools] = 0.0
    out[0] = cycles.number[FREE]
    away = hosts - cycles.number[FREE]
    for i in range(state.count[N_RUNNING]):
        size = state.size[state.running[i]]
        out[_pool(pools, (state.expected_end[i] - now) * scale)] += size
        away -= size
    for at in range(plan.count[0]):
        if plan.kind[at] == START:
            size = state.size[plan.job[at]]
            out[_pool(pools, state.walltime[plan.job[at]] * scale)] += size
            away -= size
    out[pools - 1] += away
    for k in range(pools):
        out[k] /= hosts
    return pools


@kernel
def _pool(pools, left):
    """Pool k >= 1 ends at 2 ** (k - pools + 1) of the longest runtime, and begins where the one before it ends."""
    if left >= 1.0:
        return pools - 1
    if left <= 0.0:
        return 1
    fraction, exponent = math.frexp(left)
    return max(1, pools - 1 + exponent - (fraction == 0.5))


@kernel
def _window(state, cycles, encoding, out, mask):
    """Four numbers per slot, and whether its job can start; returns whether any can."""
    length, head, tail = cycles.number[LENGTH], encoding.head, encoding.tail
    shown = min(length, head)
    some = False
    for slot in range(shown):
        some |= _slot(state, cycles, encoding, cycles.queue[slot], slot, out, mask)
    _empty_slots(shown, head, out, mask)
    shown = head + min(length - shown, tail)
    for slot in range(head, shown):
        some |= _slot(state, cycles, encoding, cycles.queue[length - 1 - (slot - head)], slot, out, mask)
    _empty_slots(shown, head + tail, out, mask)
    return some


@kernel
def _slot(state, cycles, encoding, job, slot, out, mask):
    begin, size = JOB_FEATURES * slot, state.size[job]
    can = size <= cycles.number[FREE]
    out[begin] = size / len(cycles.until)
    out[begin + 1] = min(state.walltime[job] / encoding.max_runtime, 1.0)
    out[begin + 2] = min((state.now[0] - state.submit_time[job]) / encoding.max_wait, 1.0)
    out[begin + 3] = can or encoding.kind == DBF
    mask[slot] = can or encoding.kind == PICK
    return can


@kernel
def _empty_slots(begin, end, out, mask):
    for i in range(JOB_FEATURES * begin, JOB_FEATURES * end):
        out[i] = 0.0
    for slot in range(begin, end):
        mask[slot] = 0


@kernel
def _inspected(state, cycles, encoding, out, mask):
    """The seven numbers of SchedInspector; all are 0 where no job waits."""
    out[:] = 0.0
    mask[:] = 1
    out[3] = cycles.number[FREE] / len(cycles.until)
    if cycles.number[LENGTH] == 0:
        return
    job, delay = cycles.queue[first_in_order(state, cycles, encoding)], 0.0
    for i in range(cycles.number[LENGTH]):
        delay += PAUSE / max(state.walltime[cycles.queue[i]], SHORTEST)
    out[0] = min((state.now[0] - state.submit_time[job]) / encoding.max_wait, 1.0)
    out[1] = min(state.walltime[job] / encoding.max_runtime, 1.0)
    out[2] = state.size[job] / len(cycles.until)
    out[4] = state.size[job] <= cycles.number[FREE]
    out[5] = cycles.refused[job] / MOST_REFUSALS
    out[6] = min(delay / (PAUSE / SHORTEST * MANY), 1.0)
    mask[1] = cycles.refused[job] < MOST_REFUSALS
