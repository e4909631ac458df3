"""DeepScheduling in compiled code: jobs that book servers, minutes, and what is seen.

What happens at an instant is as in `decision.policies.booking`, whose bookings are part of the memory here: jobs whose
hosts are awake start, servers that are due fall asleep, and then there is a choice, if the minute is over. A job with
booked hosts waits in the queue of the cycles until it starts, but is no longer seen there.
"""

import math

import numpy as np

from decision.compiling.bundle import F4, F8, I4, I8
from decision.compiling.jit import kernel
from decision.model.dates import DAY, DAY_LEAD
from decision.policies.booking import (
    ASLEEP,
    Booking,
    book,
    count_available,
    forget_gone,
    is_booked,
    next_timeout,
    pick,
    sleep_due,
    start_due,
    wake_booked,
)
from decision.policies.capacity import TOLERANCE
from decision.state.cluster import (
    N_COMPUTING,
    N_ENDED,
    N_IDLE,
    N_JOBS,
    N_QUEUED,
    N_RUNNING,
    N_SLEEPING,
    N_SWITCHING_OFF,
    N_SWITCHING_ON,
)
from decision.state.plan_arrays import START

from .confidence import confidence_in, learn_from
from .cycles import BUSY_HOSTS, LENGTH, NEXT_SHOWN, RUNNING_JOBS, call_at, note_start
from .kernel_interfaces import ACT, BEGIN, MEASURE, OBSERVE, OPEN, REWARD, STEP_ENDS
from .progress import IDLE_SERVERS, SWITCHED, USED, WASTED

JOBS_SEEN = 20  # jobs of the queue, jobs that run, and snapshots
JOB_NUMBERS, SNAPSHOT_NUMBERS = 3, 8
WIDTH = (2 * JOB_NUMBERS + SNAPSHOT_NUMBERS) * JOBS_SEEN
VOID = 0  # action; action k is the k-th job
_MINUTE = 60.0  # seconds
_LONGEST_QUEUE = 4500.0  # jobs that count as 1

# DeepSchedulingMemory.setting
LONGEST_WALLTIME = 0  # seconds: the longest walltime
TIMEOUT = 1  # seconds after which an idle server sleeps
ONLY_FITTING = 2  # 1 where only jobs that fit can be chosen
N_SETTINGS = 3

# DeepSchedulingMemory.counted
SHOWN = 0  # jobs in the window
AVAILABLE = 1  # cores that a job can book
_DOZING = 2  # cores that this decision puts to sleep
_SNAPSHOTS = 3  # so far, JOBS_SEEN at most
N_COUNTED = 4

# DeepSchedulingMemory.at
NEXT = 0  # seconds: when the next choice is due; -inf where any event is
_SINCE = 1  # seconds: when the sum below was last brought up to date
_RATE = 2  # sum of 1 / walltime over the jobs of the window, since then
_URGED = 3  # what it adds up to over time
_PAID = 4  # rewards so far
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


@BEGIN.entry_with(DeepSchedulingMemory)
def deepscheduling_begin(state, facts, memory):
    """Nothing is booked, and nobody known."""
    memory.booked_by[:] = -1
    memory.booked_count[0] = 0
    memory.counted[:] = 0
    memory.at[:] = 0.0
    memory.at[NEXT] = memory.at[LAST] = -np.inf
    memory.user[:] = -1
    return 0


# --- What happens at an instant ------------------------------------------------------------------------------------


@OPEN.entry_with(DeepSchedulingMemory)
def deepscheduling_look(state, facts, cycles, plan, memory):
    """Do what is due, see all that comes at one instant together; whether there is something to choose."""
    if cycles.number[NEXT_SHOWN] < state.count[N_QUEUED]:
        return 0
    _add_up(state, memory)
    for i in range(state.count[N_ENDED]):
        learn_from(state, memory, state.ended[i])
    forget_gone(state, memory)
    planned = plan.count[0]
    start_due(state, memory, plan)
    _note_starts(state, cycles, plan, planned)
    memory.counted[_DOZING] = sleep_due(state, facts, memory, plan, memory.setting[TIMEOUT])
    memory.counted[AVAILABLE] = count_available(memory)
    _fill_window(cycles, memory)
    if _is_due(state, memory):
        if state.count[N_JOBS] > 0 and _offers(state, memory):
            _take_snapshot(state, facts, cycles, memory)
            return 1
        _set_next(state, memory)
    _let_time_pass(state, facts, cycles, plan, memory)
    return 0


@ACT.entry_with(DeepSchedulingMemory)
def deepscheduling_choose(state, facts, cycles, plan, memory, action):
    """Bind a job of the window, if it fits; anything else lets time pass."""
    job = memory.window[action - 1] if 1 <= action <= memory.counted[SHOWN] else -1
    if job >= 0 and fits(state, memory, job):
        picked, planned = np.zeros(len(plan.free), np.uint64), plan.count[0]
        pick(facts, memory, plan, state.size[job], False, True, picked)
        book(facts, memory, plan, job, picked)
        _note_starts(state, cycles, plan, planned)
        memory.counted[AVAILABLE] -= state.size[job]
        _fill_window(cycles, memory)
        if _offers(state, memory):
            _take_snapshot(state, facts, cycles, memory)
            return 1
    _set_next(state, memory)
    _let_time_pass(state, facts, cycles, plan, memory)
    return 0


@kernel
def _is_due(state, memory):
    """Whether the minute is over; where no job waits, an event must be later than the last choice."""
    now, at = state.now[0], memory.at
    return at[NEXT] <= now + TOLERANCE and (memory.counted[SHOWN] > 0 or now > at[LAST] + TOLERANCE)


@kernel
def fits(state, memory, job):
    """Whether there are servers for a job, asleep or not."""
    return state.size[job] <= memory.counted[AVAILABLE]


@kernel
def _offers(state, memory):
    """Whether there is a choice: with masks only where a job fits."""
    if memory.setting[ONLY_FITTING] == 0.0:
        return True
    found = False
    for i in range(memory.counted[SHOWN]):
        found |= fits(state, memory, memory.window[i])
    return found


@kernel
def _note_starts(state, cycles, plan, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on."""
    for action in range(begin, plan.count[0]):
        if plan.kind[action] == START:
            at = 0
            while cycles.queue[at] != plan.job[action]:
                at += 1
            note_start(state, cycles, plan, at, action)


@kernel
def _fill_window(cycles, memory):
    """The first jobs that have no hosts yet."""
    shown = at = 0
    while shown < JOBS_SEEN and at < cycles.number[LENGTH]:
        job = cycles.queue[at]
        if not is_booked(memory, job):
            memory.window[shown] = job
            shown += 1
        at += 1
    memory.counted[SHOWN] = shown


@kernel
def _set_next(state, memory):
    """A minute passes while jobs wait; else the next event is awaited."""
    memory.at[LAST] = state.now[0]
    memory.at[NEXT] = state.now[0] + _MINUTE if memory.counted[SHOWN] > 0 else -np.inf


@kernel
def _let_time_pass(state, facts, cycles, plan, memory):
    """Wake servers, and ask to be called for the next minute or timeout."""
    wake_booked(state, facts, memory, plan)
    urge = 0.0
    for i in range(memory.counted[SHOWN]):
        urge += 1.0 / state.walltime[memory.window[i]]
    memory.at[_RATE] = urge
    due = next_timeout(state, facts, plan, memory.setting[TIMEOUT])
    if memory.at[NEXT] > state.now[0]:
        due = min(due, memory.at[NEXT])
    if due < cycles.call[0] - TOLERANCE:
        call_at(cycles, plan, due)


@kernel
def _add_up(state, memory):
    at, now = memory.at, state.now[0]
    at[_URGED] += at[_RATE] * (now - at[_SINCE])
    at[_SINCE] = now


# --- What is seen, and paid ----------------------------------------------------------------------------------------


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
def _take_snapshot(state, facts, cycles, memory):
    """Of the cluster as it is once the decision so far is carried out."""
    count, number, hosts, seen = state.count, cycles.number, len(cycles.until), memory.snapshot
    at = memory.counted[_SNAPSHOTS] * SNAPSHOT_NUMBERS
    if memory.counted[_SNAPSHOTS] == JOBS_SEEN:
        at -= SNAPSHOT_NUMBERS
        for i in range(at):
            seen[i] = seen[i + SNAPSHOT_NUMBERS]
    else:
        memory.counted[_SNAPSHOTS] += 1
    reserved = count[N_COMPUTING]
    for i in range(memory.booked_count[0]):
        reserved += state.size[memory.booked[i]]
    waiting = number[LENGTH] - memory.booked_count[0] + number[RUNNING_JOBS] - count[N_RUNNING]
    started, dozing, woken = (
        number[BUSY_HOSTS] - count[N_COMPUTING],
        memory.counted[_DOZING],
        _count_woken(facts, memory),
    )
    seen[at] = reserved / hosts
    seen[at + 1] = min(math.log1p(waiting) / math.log1p(_LONGEST_QUEUE), 1.0)
    seen[at + 2] = (state.now[0] - DAY_LEAD) % DAY / DAY
    seen[at + 3] = (count[N_SLEEPING] - woken) / hosts
    seen[at + 4] = (count[N_SWITCHING_ON] + woken) / hosts
    seen[at + 5] = (count[N_SWITCHING_OFF] + dozing) / hosts
    seen[at + 6] = (count[N_IDLE] - started - dozing) / hosts
    seen[at + 7] = number[BUSY_HOSTS] / hosts


@OBSERVE.entry_with(DeepSchedulingMemory)
def deepscheduling_observe(state, facts, cycles, plan, memory, out, mask):
    """Jobs that wait, jobs that run, and snapshots."""
    hosts, now, shown, only_fitting = (
        len(cycles.until),
        state.now[0],
        memory.counted[SHOWN],
        memory.setting[ONLY_FITTING],
    )
    scale = 1.0 / math.log1p(memory.setting[LONGEST_WALLTIME] / _MINUTE)
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
    return min(math.log1p(max(seconds, 0.0) / _MINUTE) * scale, 1.0)


@kernel
def _first_to_end(state, plan, memory):
    """Put the jobs into the agenda that run, or that the plan starts, and end first; returns how many."""
    jobs, ends = memory.agenda, memory.agenda_end
    length = min(state.count[N_RUNNING], JOBS_SEEN)
    for i in range(length):
        job = state.running[i]
        jobs[i], ends[i] = job, state.start_time[job] + state.walltime[job]
    for action in range(plan.count[0]):
        if plan.kind[action] == START:
            job = plan.job[action]
            end = state.now[0] + state.walltime[job]
            if length == JOBS_SEEN and end >= ends[JOBS_SEEN - 1]:
                continue
            at = min(length, JOBS_SEEN - 1)
            length = min(length + 1, JOBS_SEEN)
            while at > 0 and ends[at - 1] > end:
                jobs[at], ends[at] = jobs[at - 1], ends[at - 1]
                at -= 1
            jobs[at], ends[at] = job, end
    return length


@REWARD.entry_with(DeepSchedulingMemory)
def deepscheduling_reward(state, facts, cycles, progress, memory, moment):
    """What the time since the last choice was worth, in minutes; `parameters` are the four weights of its parts."""
    if moment != STEP_ENDS:
        return 0.0
    _add_up(state, memory)
    weight, total = progress.parameters, progress.total
    shares = progress.parameters[3] == 0.0
    idle, used = total[IDLE_SERVERS] / _MINUTE, total[USED] / _MINUTE
    if shares:
        idle /= len(facts.server_begin) - 1
        used /= len(cycles.until)
    worth = weight[2] * used - weight[0] * idle - weight[1] * memory.at[_URGED]
    owed = worth - memory.at[_PAID]
    memory.at[_PAID] = worth
    return owed


@MEASURE.entry_with(DeepSchedulingMemory)
def deepscheduling_measure(state, facts, cycles, progress, memory, out):
    """Joules that served nobody, switches of servers, and jobs whose user is unknown."""
    unknown = 0
    for job in range(state.count[N_JOBS]):
        unknown += state.user[job] < 0
    out[0] = progress.total[WASTED]
    out[1] = progress.number[SWITCHED]
    out[2] = unknown
    return 0
