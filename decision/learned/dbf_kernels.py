"""What DBF sees, does and is paid for, compiled."""

import math

from decision.compiling.bundle import F8, I8, Bundle
from decision.compiling.jit import kernel
from decision.policies.capacity import TOLERANCE
from decision.state.plan_arrays import START

from .cycles import start_at
from .kernel_interfaces import ACT, CYCLE_ENDS, FOLLOW, OBSERVE, REWARD
from .window import place_of, see_window, slot_begun

BY_CORE, BY_POOL = "dbf", "dbf-pools"  # observations
CLIPPED, ENDLESS, UNMASKED = 1, 2, 3  # their versions: how waits are seen; clipped ones, and no choice is masked


class DbfMemory(Bundle):
    """The encoder as numbers; nothing is remembered."""

    number: I8  # (5,) head, tail, pools (0 for one number per core), version, whether an idle cluster must start a job
    seconds: F8  # (2,) max_runtime, max_wait


@ACT.entry_with(DbfMemory)
def dbf_act(state, facts, cycles, plan, memory, action):
    """Start the job of a slot; anything else ends the cycle."""
    at = place_of(cycles, memory.number[0], memory.number[1], action)
    if at < 0 or state.size[cycles.queue[at]] > cycles.nb_free:
        return 0
    start_at(state, cycles, plan, at)
    return 1


@FOLLOW.entry_with(DbfMemory)
def dbf_follow(state, cycles, memory, starts):
    """The slot of a job that began by now; Fwd where none fits."""
    head, tail = memory.number[0], memory.number[1]
    slot = slot_begun(state, cycles, head, tail, starts, state.now + TOLERANCE, cycles.nb_free)
    return slot if slot >= 0 else head + tail


@OBSERVE.entry_with(DbfMemory)
def dbf_observe(state, facts, cycles, plan, memory, observation, mask):
    """The cluster, then the window."""
    head, tail, pools, endless = memory.number[0], memory.number[1], memory.number[2], memory.number[3] == ENDLESS
    max_runtime = memory.seconds[0]
    if pools == 0:
        width = _see_cores(state, cycles, max_runtime, observation)
    else:
        width = see_pools(state, cycles, plan, pools, max_runtime, observation)
    window = observation[width:]
    some = see_window(state, cycles, head, tail, max_runtime, memory.seconds[1], endless, True, window, mask)
    idle = cycles.nb_free == len(cycles.until)
    mask[len(mask) - 1] = not (some and (_all_fit(state, cycles) if endless else idle))
    if memory.number[3] == UNMASKED and not (memory.number[4] and some and idle):
        mask[:] = 1
    return 0


@kernel
def _all_fit(state, cycles):
    """Whether the cluster is idle, or all jobs that wait could start now: then waiting for anything is of no use."""
    free = cycles.nb_free
    if free == len(cycles.until):
        return True
    for at in range(cycles.nb_queued):
        free -= state.size[cycles.queue[at]]
        if free < 0:
            return False
    return True


@REWARD.entry_with(DbfMemory)
def dbf_reward(state, facts, cycles, progress, memory, moment):
    """R(t), the paper's equation 2, at the end of each cycle."""
    if moment != CYCLE_ENDS:
        return 0.0
    weight = progress.parameters
    idle = cycles.nb_free / len(cycles.until)
    queued = cycles.nb_queued / progress.most_queued if progress.most_queued > 0.0 else 0.0
    waiting = progress.waiting / progress.most_waiting if progress.most_waiting > 0.0 else 0.0
    return -(weight[0] * idle + weight[1] * queued + weight[2] * waiting)


@kernel
def _see_cores(state, cycles, max_runtime, out):
    until, now, scale = cycles.until, state.now, 1.0 / max_runtime
    for host in range(len(until)):
        left = (until[host] - now) * scale
        left = left if left > 0.0 else 0.0
        out[host] = left if left < 1.0 else 1.0
    return len(until)


@kernel
def see_pools(state, cycles, plan, pools, max_runtime, out):
    """Count the cores of each pool, and divide by all: sums of whole numbers are exact. Returns how many pools."""
    hosts = len(cycles.until)
    now, scale = state.now, 1.0 / max_runtime
    out[:pools] = 0.0
    out[0] = cycles.nb_free
    away = hosts - cycles.nb_free
    for i in range(state.nb_running):
        size = state.size[state.running[i]]
        out[_pool(pools, (state.expected_end[i] - now) * scale)] += size
        away -= size
    for at in range(plan.nb_actions):
        if plan.kind[at] == START:
            size = state.size[plan.job[at]]
            out[_pool(pools, state.expected_runtime[plan.job[at]] * scale)] += size
            away -= size
    out[pools - 1] += away
    for k in range(pools):
        out[k] /= hosts
    return pools


@kernel
def _pool(pools, left):
    """Pool k >= 1 ends at 2 ** (k - pools + 1) of the longest runtime, and begins where the one before it ends."""
    if not left < 1.0:  # NaN, too: its exponent could be any
        return pools - 1
    if left <= 0.0:
        return 1
    fraction, exponent = math.frexp(left)
    return max(1, pools - 1 + exponent - (fraction == 0.5))
