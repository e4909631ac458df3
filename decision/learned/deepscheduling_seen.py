"""DeepScheduling's memory in compiled code, and what a policy sees."""

import math

from decision.compiling.bundle import F4, F8, I4, I8
from decision.compiling.jit import kernel
from decision.model.dates import DAY, DAY_LEAD
from decision.policies.booking import ASLEEP, Booking
from decision.state.cluster import COMPUTING, IDLE, SLEEPING, SWITCHING_OFF, SWITCHING_ON
from decision.state.plan_arrays import START

from .confidence import confidence_in
from .kernel_interfaces import OBSERVE

JOBS_SEEN = 20  # jobs of the queue, jobs that run, and snapshots
JOB_NUMBERS, SNAPSHOT_NUMBERS = 3, 8
WIDTH = (2 * JOB_NUMBERS + SNAPSHOT_NUMBERS) * JOBS_SEEN
VOID = 0  # action; action k is the k-th job
ONE_MINUTE = 60.0  # seconds
_LONGEST_QUEUE = 4500.0  # jobs that count as 1

# DeepSchedulingMemory.setting
LONGEST_WALLTIME = 0  # seconds: the longest walltime
TIMEOUT = 1  # seconds after which an idle server sleeps
ONLY_FITTING = 2  # 1 where only jobs that fit can be chosen
N_SETTINGS = 3

# DeepSchedulingMemory.counted
SHOWN = 0  # jobs in the window
AVAILABLE = 1  # cores that a job can book
PUT_TO_SLEEP = 2  # cores that this decision puts to sleep
_SNAPSHOTS = 3  # so far, JOBS_SEEN at most
N_COUNTED = 4

# DeepSchedulingMemory.at
NEXT = 0  # seconds: when the next choice is due; -inf where any event is
SUMMED_AT = 1  # seconds: when the sum below was last brought up to date
URGE_RATE = 2  # sum of 1 / walltime over the jobs of the window, since then
URGED = 3  # what it adds up to over time
PAID_SO_FAR = 4  # rewards so far
LAST = 5  # seconds: when time last began to pass by a choice, or for want of one
N_MOMENTS = 6


class DeepSchedulingMemory(Booking):
    """The encoder as numbers, who has booked, and what was seen. J jobs, K >= 2 J places for users, a power of two."""

    setting: F8  # (N_SETTINGS,)
    counted: I8  # (N_COUNTED,)
    at: F8  # (N_MOMENTS,)
    window: I4  # (JOBS_SEEN,) the first jobs of the queue that have no hosts yet
    agenda: I4  # (JOBS_SEEN,) scratch: jobs that run and end first
    agenda_end: F8  # (JOBS_SEEN,) seconds: when they do by their walltimes
    snapshot: F4  # (JOBS_SEEN * SNAPSHOT_NUMBERS,) the oldest first
    user: I4  # (K,) these four as in `decision.learned.confidence.Confidence`
    last: I4  # (K,)
    confidence: F8  # (K,)
    previous: I4  # (J,)


@kernel
def fits(state, memory, job):
    """Whether there are servers for a job, asleep or not."""
    return state.size[job] <= memory.counted[AVAILABLE]


@kernel
def _count_woken(facts, memory):
    """Cores of servers that sleep and are about to wake."""
    woken = 0
    for server in range(len(facts.server_begin) - 1):
        begin = facts.server_begin[server]
        if memory.woken[server] and memory.rank[facts.server_host[begin]] == ASLEEP:
            woken += facts.server_begin[server + 1] - begin
    return woken


@kernel
def take_snapshot(state, facts, cycles, memory):
    """Of the cluster as it is once the decision so far is carried out."""
    hosts, seen = len(cycles.until), memory.snapshot
    at = memory.counted[_SNAPSHOTS] * SNAPSHOT_NUMBERS
    if memory.counted[_SNAPSHOTS] == JOBS_SEEN:
        at -= SNAPSHOT_NUMBERS
        for i in range(at):
            seen[i] = seen[i + SNAPSHOT_NUMBERS]
    else:
        memory.counted[_SNAPSHOTS] += 1
    reserved = state.nb_in_state[COMPUTING]
    for i in range(memory.nb_booked):
        reserved += state.size[memory.booked[i]]
    waiting = cycles.nb_queued - memory.nb_booked + cycles.nb_running - state.nb_running
    started, dozing, woken = (
        cycles.nb_busy - state.nb_in_state[COMPUTING],
        memory.counted[PUT_TO_SLEEP],
        _count_woken(facts, memory),
    )
    seen[at] = reserved / hosts
    seen[at + 1] = min(math.log1p(waiting) / math.log1p(_LONGEST_QUEUE), 1.0)
    seen[at + 2] = (state.now - DAY_LEAD) % DAY / DAY
    seen[at + 3] = (state.nb_in_state[SLEEPING] - woken) / hosts
    seen[at + 4] = (state.nb_in_state[SWITCHING_ON] + woken) / hosts
    seen[at + 5] = (state.nb_in_state[SWITCHING_OFF] + dozing) / hosts
    seen[at + 6] = (state.nb_in_state[IDLE] - started - dozing) / hosts
    seen[at + 7] = cycles.nb_busy / hosts


@OBSERVE.entry_with(DeepSchedulingMemory)
def deepscheduling_observe(state, facts, cycles, plan, memory, out, mask):
    """Jobs that wait, jobs that run, and snapshots."""
    hosts, now, shown, only_fitting = (
        len(cycles.until),
        state.now,
        memory.counted[SHOWN],
        memory.setting[ONLY_FITTING],
    )
    scale = 1.0 / math.log1p(memory.setting[LONGEST_WALLTIME] / ONE_MINUTE)
    out[:] = 0.0
    mask[:] = only_fitting == 0.0
    mask[VOID] = 1
    for i in range(shown):
        job, at = memory.window[i], JOB_NUMBERS * i
        out[at] = state.size[job] / hosts
        out[at + 1] = _share(state.walltime[job], scale)
        out[at + 2] = confidence_in(state, memory, job)
        if only_fitting == 1.0:
            mask[1 + i] = fits(state, memory, job)
    for i in range(_first_to_end(state, plan, memory)):
        job, at = memory.agenda[i], JOB_NUMBERS * (JOBS_SEEN + i)
        left, walltime = memory.agenda_end[i] - now, state.walltime[job]
        out[at] = state.size[job] / hosts
        out[at + 1] = _share(left, scale)
        out[at + 2] = _share(left - walltime + confidence_in(state, memory, job) * walltime, scale)
    seen = memory.counted[_SNAPSHOTS] * SNAPSHOT_NUMBERS
    out[2 * JOB_NUMBERS * JOBS_SEEN : 2 * JOB_NUMBERS * JOBS_SEEN + seen] = memory.snapshot[:seen]
    return 0


@kernel
def _share(seconds, scale):
    """Minutes on a logarithmic scale."""
    return min(math.log1p(max(seconds, 0.0) / ONE_MINUTE) * scale, 1.0)


@kernel
def _first_to_end(state, plan, memory):
    """Put the jobs into the agenda that run, or that the plan starts, and end first; returns how many."""
    jobs, ends = memory.agenda, memory.agenda_end
    length = min(state.nb_running, JOBS_SEEN)
    for i in range(length):
        job = state.running[i]
        jobs[i], ends[i] = job, state.start_time[job] + state.walltime[job]
    for action in range(plan.nb_actions):
        if plan.kind[action] == START:
            job = plan.job[action]
            end = state.now + state.walltime[job]
            if length == JOBS_SEEN and end >= ends[JOBS_SEEN - 1]:
                continue
            at = min(length, JOBS_SEEN - 1)
            length = min(length + 1, JOBS_SEEN)
            while at > 0 and ends[at - 1] > end:
                jobs[at], ends[at] = jobs[at - 1], ends[at - 1]
                at -= 1
            jobs[at], ends[at] = job, end
    return length
