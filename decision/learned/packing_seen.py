"""Packing's memory in compiled code, and what a policy sees."""

from decision.compiling.bundle import F8, Bundle, Float, Int
from decision.compiling.jit import kernel

from .dbf_kernels import see_pools
from .kernel_interfaces import OBSERVE
from .window import JOB_FEATURES

FAILURES = 4  # in a row, after which time passes

# EpisodeProgress.parameters
FINAL = 0  # 1 where the reward comes at the end only


class PackingMemory(Bundle):
    """The encoder as numbers, and when the next decision is due. H hosts."""

    window: Int  # jobs that are seen
    pools: Int  # 0 for one number per node
    masked: Int  # 1 where only jobs that fit can be chosen
    doubles: Int  # 1 where the gap doubles while nothing comes or ends
    longest: Float  # seconds: longest walltime
    tick: Float  # seconds, 0 for none
    paid: Float  # idle node-seconds that were paid for
    nb_failed_choices: Int  # in a row
    gap: Int = 1  # ticks until the next look, if nothing comes or ends
    last_decision: Int = -1  # tick of the last decision, -1 for none
    any_change: Int  # 1 once a job came or ended, or nodes came or went, since that
    known_jobs: Int  # jobs that have come
    changes_seen: Int  # changes of capacity so far
    requested: F8  # (H,) seconds: when the job there ends by its walltime; empty where that is not seen apart


@OBSERVE.entry_with(PackingMemory)
def packing_observe(state, facts, cycles, plan, memory, observation, mask):
    """The cluster, then the window."""
    longest, now = memory.longest, state.now
    shown, until = min(cycles.nb_queued, memory.window), cycles.until
    if memory.pools > 0:
        width = see_pools(state, cycles, plan, memory.pools, longest, observation)
        _see_slots(state, cycles, shown, longest, observation[width:])
    else:
        width, both = len(until), len(memory.requested) > 0
        _see_nodes(memory.requested if both else until, now, longest, observation)
        if both:
            _see_nodes(until, now, longest, observation[width:])
            width *= 2
        _see_vectors(state, cycles, shown, memory.window, longest, both, observation[width:])
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
    if memory.masked == 0:
        mask[:] = 1
        return
    free, some = cycles.nb_free, False
    mask[:] = 0
    for slot in range(shown):
        fits = state.size[cycles.queue[slot]] <= free
        mask[slot] = fits
        some |= fits
    mask[len(mask) - 1] = cycles.nb_running > 0 or not some
