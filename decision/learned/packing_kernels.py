"""Packing in compiled code: when there is something to choose, what is seen, and what is paid."""

import numpy as np

from decision.compiling.bundle import F8, I8, Bundle
from decision.compiling.jit import kernel
from decision.policies.capacity import TOLERANCE
from decision.state.cluster import N_CAPACITY_CHANGES, N_ENDED, N_JOBS, N_QUEUED

from .cycles import FREE_HOSTS, LENGTH, NEXT_SHOWN, RUNNING_JOBS, call_at, start_at
from .dbf_kernels import see_pools
from .kernel_interfaces import ACT, BEGIN, FOLLOW, MEASURE, OBSERVE, OPEN, REWARD, STEP_ENDS
from .progress import BEGAN, FIRST_ROW, LAST_END, LAST_ROW, PLACED, STEPS, USED, WORK, is_over
from .window import JOB_FEATURES, slot_begun

FAILURES = 4  # in a row, after which time passes
_PATIENCE = 60.0  # seconds until an idle cluster is looked at again, where there are no ticks

# PackingMemory.number
WINDOW = 0
POOLS = 1  # 0 for one number per node
MASKED = 2  # 1 where only jobs that fit can be chosen
DOUBLES = 3  # 1 where the gap doubles while nothing comes or ends
_FAILED = 4  # choices in a row
GAP = 5  # ticks until the next look, if nothing comes or ends
LAST_DECISION = 6  # tick of the last decision, -1 for none
_CHANGED = 7  # 1 once a job came or ended, or nodes came or went, since that
_KNOWN = 8  # jobs that have come
SWITCHES = 9  # N_CAPACITY_CHANGES so far
N_PACKING_NUMBERS = 10
_LONGEST_GAP = 1024  # ticks

# PackingMemory.seconds
LONGEST, TICK, PAID = 0, 1, 2  # longest walltime; tick, 0 for none; idle node-seconds that were paid for

# EpisodeProgress.parameters
FINAL = 0  # 1 where the reward comes at the end only


class PackingMemory(Bundle):
    """The encoder as numbers, and when the next decision is due. H hosts."""

    number: I8  # (N_PACKING_NUMBERS,)
    seconds: F8  # (3,)
    requested: F8  # (H,) seconds: when the job there ends by its walltime; empty where that is not seen apart


# --- When there is something to choose -----------------------------------------------------------------------------


@BEGIN.entry_with(PackingMemory)
def packing_begin(state, facts, memory):
    """Nothing was decided, and nothing paid for."""
    number = memory.number
    number[_FAILED] = number[_CHANGED] = number[_KNOWN] = number[SWITCHES] = 0
    number[GAP], number[LAST_DECISION] = 1, -1
    memory.seconds[PAID] = 0.0
    return 0


@OPEN.entry_with(PackingMemory)
def packing_look(state, facts, cycles, plan, memory):
    """See all that comes at one instant together, at a tick if there are ticks."""
    number, count = memory.number, state.count
    if cycles.number[NEXT_SHOWN] < count[N_QUEUED]:
        return 0
    if count[N_ENDED] > 0 or number[_KNOWN] != count[N_JOBS] or number[SWITCHES] != count[N_CAPACITY_CHANGES]:
        number[_CHANGED] = 1
        number[_KNOWN], number[SWITCHES] = count[N_JOBS], count[N_CAPACITY_CHANGES]
    if cycles.number[LENGTH] == 0 or not _is_due(state, cycles, plan, memory):
        return 0
    number[_FAILED] = 0
    _look_at_nodes(state, cycles, memory)
    return number[MASKED] == 0 or _some_fit(state, cycles, memory)


@kernel
def _look_at_nodes(state, cycles, memory):
    """When jobs end by their walltimes."""
    for host in range(len(memory.requested)):
        job = state.host_job[host]
        memory.requested[host] = state.start_time[job] + state.walltime[job] if job >= 0 else cycles.until[host]


@kernel
def _is_due(state, cycles, plan, memory):
    """Whether this is the instant of a decision; between two ticks the next one is asked for."""
    number, tick = memory.number, memory.seconds[TICK]
    if tick == 0.0:
        return True
    since = state.now[0] - state.submit_time[0]
    index = np.int64((since + TOLERANCE) / tick)
    if index == number[LAST_DECISION] or since > index * tick + TOLERANCE:
        _call_at_tick(state, cycles, plan, memory, index + 1)
        return False
    number[LAST_DECISION] = index
    if number[_CHANGED]:
        number[_CHANGED], number[GAP] = 0, 1
    return True


@kernel
def _call_at_tick(state, cycles, plan, memory, index):
    """Ask for a tick, unless an earlier one was asked for."""
    time = state.submit_time[0] + index * memory.seconds[TICK]
    if cycles.call[0] > time + TOLERANCE:
        call_at(cycles, plan, time)


@kernel
def _some_fit(state, cycles, memory):
    """Whether a job of the window could start now."""
    smallest = len(cycles.until) + 1
    for at in range(min(cycles.number[LENGTH], memory.number[WINDOW])):
        smallest = min(smallest, state.size[cycles.queue[at]])
    return smallest <= cycles.number[FREE_HOSTS]


@kernel
def _let_time_pass(state, cycles, plan, memory):
    """Jobs that wait beside free nodes are looked at again at a tick; and on an idle cluster, where nothing ends."""
    number = memory.number
    if cycles.number[LENGTH] == 0:
        return
    if memory.seconds[TICK] == 0.0:
        if cycles.number[RUNNING_JOBS] == 0:
            call_at(cycles, plan, state.now[0] + _PATIENCE)
        return
    if cycles.number[FREE_HOSTS] > 0 and (number[MASKED] == 0 or _some_fit(state, cycles, memory)):
        _call_at_tick(state, cycles, plan, memory, number[LAST_DECISION] + number[GAP])
        if number[DOUBLES]:
            number[GAP] = min(2 * number[GAP], _LONGEST_GAP)


@ACT.entry_with(PackingMemory)
def packing_act(state, facts, cycles, plan, memory, action):
    """Start a job of the window if it fits; X, an empty slot, and a failure too many let time pass."""
    number, goes_on = memory.number, False
    if 0 <= action < min(cycles.number[LENGTH], number[WINDOW]):
        if state.size[cycles.queue[action]] <= cycles.number[FREE_HOSTS]:
            number[_FAILED] = 0
            _start(state, cycles, plan, memory, action)
            goes_on = cycles.number[LENGTH] > 0 and (number[MASKED] == 0 or _some_fit(state, cycles, memory))
        else:
            number[_FAILED] += 1
            goes_on = number[_FAILED] < FAILURES
    if not goes_on:
        _let_time_pass(state, cycles, plan, memory)
    return goes_on


@kernel
def _start(state, cycles, plan, memory, at):
    job, action, now = cycles.queue[at], plan.count[0], state.now[0]
    start_at(state, cycles, plan, at)
    for i in range(plan.begin[action], plan.end[action]):
        if len(memory.requested) > 0:
            memory.requested[plan.first[i] : plan.last[i] + 1] = now + state.walltime[job]


# --- What is seen, and paid ----------------------------------------------------------------------------------------


@FOLLOW.entry_with(PackingMemory)
def packing_follow(state, cycles, memory, starts):
    """The slot of a job that began by now; X where none fits."""
    window = memory.number[WINDOW]
    slot = slot_begun(state, cycles, window, 0, starts, state.now[0] + TOLERANCE, cycles.number[FREE_HOSTS])
    return slot if slot >= 0 else window


@OBSERVE.entry_with(PackingMemory)
def packing_observe(state, facts, cycles, plan, memory, observation, mask):
    """The cluster, then the window."""
    number, longest, now = memory.number, memory.seconds[LONGEST], state.now[0]
    shown, until = min(cycles.number[LENGTH], number[WINDOW]), cycles.until
    if number[POOLS] > 0:
        width = see_pools(state, cycles, plan, number[POOLS], longest, observation)
        _see_slots(state, cycles, shown, longest, observation[width:])
    else:
        width, both = len(until), len(memory.requested) > 0
        _see_nodes(memory.requested if both else until, now, longest, observation)
        if both:
            _see_nodes(until, now, longest, observation[width:])
            width *= 2
        _see_vectors(state, cycles, shown, number[WINDOW], longest, both, observation[width:])
    _write_mask(state, cycles, memory, shown, mask)
    return 0


@kernel
def _see_nodes(until, now, longest, out):
    """Remaining times, 0 where a node is free."""
    scale = 1.0 / longest
    for host in range(len(until)):
        left = (until[host] - now) * scale
        left = left if left > 0.0 else 0.0
        out[host] = left if left < 1.0 else 1.0


@kernel
def _see_vectors(state, cycles, shown, window, longest, both, out):
    """Nodes, requested times, and predicted ones, of all jobs."""
    nodes, scale = len(cycles.until), 1.0 / longest
    out[:] = 0.0
    for slot in range(shown):
        job = cycles.queue[slot]
        out[slot] = state.size[job] / nodes
        out[window + slot] = min(state.walltime[job] * scale, 1.0)
        if both:
            out[2 * window + slot] = min(state.expected_runtime[job] * scale, 1.0)


@kernel
def _see_slots(state, cycles, shown, longest, out):
    """Nodes, requested time, predicted time, and 1, job by job."""
    nodes, scale = len(cycles.until), 1.0 / longest
    out[:] = 0.0
    for slot in range(shown):
        job, begin = cycles.queue[slot], JOB_FEATURES * slot
        out[begin] = state.size[job] / nodes
        out[begin + 1] = min(state.walltime[job] * scale, 1.0)
        out[begin + 2] = min(state.expected_runtime[job] * scale, 1.0)
        out[begin + 3] = 1.0


@kernel
def _write_mask(state, cycles, memory, shown, mask):
    """All may be chosen, or only jobs that fit; and then X, unless nothing that ends could be waited for."""
    if memory.number[MASKED] == 0:
        mask[:] = 1
        return
    free, some = cycles.number[FREE_HOSTS], False
    mask[:] = 0
    for slot in range(shown):
        fits = state.size[cycles.queue[slot]] <= free
        mask[slot] = fits
        some |= fits
    mask[len(mask) - 1] = cycles.number[RUNNING_JOBS] > 0 or not some


@REWARD.entry_with(PackingMemory)
def packing_reward(state, facts, cycles, progress, memory, moment):
    """The sum of the three shares at the end; or else minus the idle node-time of each step, up to the last end."""
    if moment != STEP_ENDS:
        return 0.0
    over, total, nodes = is_over(progress), progress.total, len(cycles.until)
    if progress.parameters[FINAL]:
        return _share_started(progress) + _utilization(progress, nodes) + _share_left(progress) if over else 0.0
    if over:
        idle = nodes * max(total[LAST_END] - total[BEGAN], 0.0) - total[WORK]
    else:
        idle = nodes * (state.now[0] - total[BEGAN]) - total[USED]
    owed = idle - memory.seconds[PAID]
    memory.seconds[PAID] = idle
    return -owed / (nodes * memory.seconds[LONGEST])


@MEASURE.entry_with(PackingMemory)
def packing_measure(state, facts, cycles, progress, memory, out):
    """The three parts of the reward."""
    out[0] = _share_started(progress)
    out[1] = _utilization(progress, len(cycles.until))
    out[2] = _share_left(progress)
    return 0


@kernel
def _share_started(progress):
    number = progress.number
    return number[PLACED] / (number[LAST_ROW] - number[FIRST_ROW])


@kernel
def _utilization(progress, nodes):
    """Node-time of all jobs that have started, up to the last end of them."""
    seconds = progress.total[LAST_END] - progress.total[BEGAN]
    return progress.total[WORK] / (nodes * seconds) if seconds > 0.0 else 0.0


@kernel
def _share_left(progress):
    return 1.0 - progress.number[STEPS] / len(progress.actions)
