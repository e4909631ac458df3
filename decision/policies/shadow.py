"""How long jobs would have waited so far under FCFS with EASY: a simulation of counts, beside the one that is going on.

The shadow gets the same jobs at the same times on the same number of hosts. A job runs there for as long as it really
ran, once that is known, and until then for its walltime. What a decision cannot know is so corrected when it becomes
known: a job that the shadow still runs then ends there at once, at the earliest.

Each instant of the shadow is one EASY decision (Mu'alem and Feitelson, TPDS 2001) over counts of hosts, in time linear
in the shadow's queue where jobs ended, and constant where one arrived.
"""

import numpy as np

from decision.bundle import F8, I4, I8, Bundle
from decision.jit import kernel
from decision.model.errors import InternalError
from decision.state.cluster import ENDED, N_JOBS, N_UNAVAILABLE

# Shadow.shadow_count
_ARRIVED = 0  # jobs numbered below this have arrived in the shadow
_WAITING = 1  # length of shadow_queue
_RUNNING = 2  # length of shadow_running
_USED = 3  # hosts
_EXTRA = 4  # hosts that the head's reservation leaves over
N_SHADOW_COUNTS = 5

# Shadow.shadow_time
_NOW = 0  # seconds: the shadow's last instant
_LONGEST = 1  # seconds: the longest wait of a job that has started
_RESERVED = 2  # seconds: when the head's reservation begins
N_SHADOW_TIMES = 3


class Shadow(Bundle):
    """A simulation of FCFS with EASY; empty arrays where none is wanted. J jobs, H hosts."""

    shadow_count: I8  # (N_SHADOW_COUNTS,)
    shadow_time: F8  # (N_SHADOW_TIMES,)
    shadow_start: F8  # (J,) seconds: when a job started there
    shadow_queue: I4  # (J,) jobs that wait there, in order of submission
    shadow_running: I4  # (H,) jobs that run there, by start + walltime


@kernel
def longest_wait(state, shadow):
    """The longest wait (seconds) in the shadow up to now, that of jobs that still wait included."""
    now, count, time = state.now[0], shadow.shadow_count, shadow.shadow_time
    while True:
        end = _next_end(state, shadow)
        arrival = state.submit_time[count[_ARRIVED]] if count[_ARRIVED] < state.count[N_JOBS] else np.inf
        if min(end, arrival) > now:
            break
        time[_NOW] = max(time[_NOW], min(end, arrival))
        if end <= time[_NOW]:
            _take_ends(state, shadow)
            _take_arrivals(state, shadow)
            _start_all(state, shadow)
        else:
            _start_arrivals(state, shadow, _take_arrivals(state, shadow))
    if count[_WAITING] == 0:
        return time[_LONGEST]
    return max(time[_LONGEST], now - state.submit_time[shadow.shadow_queue[0]])


@kernel
def _end_of(state, shadow, job):
    """When (seconds) a job that runs in the shadow ends there, as far as anybody knows now."""
    runtime = state.walltime[job]
    if state.job_state[job] >= ENDED:
        runtime = state.end_time[job] - state.start_time[job]
        runtime = runtime if runtime >= 0.0 else 0.0  # nan: it was rejected
    return shadow.shadow_start[job] + runtime


@kernel
def _next_end(state, shadow):
    end = np.inf
    for i in range(shadow.shadow_count[_RUNNING]):
        end = min(end, _end_of(state, shadow, shadow.shadow_running[i]))
    return end


@kernel
def _take_ends(state, shadow):
    count, running, kept = shadow.shadow_count, shadow.shadow_running, 0
    for i in range(count[_RUNNING]):
        job = running[i]
        if _end_of(state, shadow, job) <= shadow.shadow_time[_NOW]:
            count[_USED] -= state.size[job]
        else:
            running[kept] = job
            kept += 1
    count[_RUNNING] = kept


@kernel
def _take_arrivals(state, shadow):
    """Let all jobs wait that have come by now and can ever run; returns how many waited before."""
    count, hosts = shadow.shadow_count, len(state.host_state)
    before = count[_WAITING]
    while count[_ARRIVED] < state.count[N_JOBS] and state.submit_time[count[_ARRIVED]] <= shadow.shadow_time[_NOW]:
        job = count[_ARRIVED]
        if state.size[job] <= hosts:
            shadow.shadow_queue[count[_WAITING]] = job
            count[_WAITING] += 1
        count[_ARRIVED] += 1
    return before


@kernel
def _free(state, shadow):
    return len(state.host_state) - state.count[N_UNAVAILABLE] - shadow.shadow_count[_USED]


@kernel
def _start_all(state, shadow):
    """A decision about the whole queue."""
    count, queue, started = shadow.shadow_count, shadow.shadow_queue, 0
    while started < count[_WAITING] and state.size[queue[started]] <= _free(state, shadow):
        _start(state, shadow, queue[started])
        started += 1
    for i in range(started, count[_WAITING]):
        queue[i - started] = queue[i]
    count[_WAITING] -= started
    if count[_WAITING] > 0:
        _reserve_head(state, shadow)
        _start_harmless(state, shadow, 1)


@kernel
def _start_arrivals(state, shadow, before):
    """A decision about the jobs behind the first `before`, none of which can start now."""
    if before == 0:
        _start_all(state, shadow)
    else:
        _start_harmless(state, shadow, before)


@kernel
def _start_harmless(state, shadow, begin):
    """Start what fits from queue[begin] on and leaves the head's reservation alone."""
    count, queue = shadow.shadow_count, shadow.shadow_queue
    free, kept = _free(state, shadow), begin
    for i in range(begin, count[_WAITING]):
        job = queue[i]
        late = shadow.shadow_time[_NOW] + state.walltime[job] > shadow.shadow_time[_RESERVED]
        if state.size[job] <= free and (not late or state.size[job] <= count[_EXTRA]):
            count[_EXTRA] -= state.size[job] if late else 0
            free -= state.size[job]
            _start(state, shadow, job)
        else:
            queue[kept] = job
            kept += 1
    count[_WAITING] = kept


@kernel
def _start(state, shadow, job):
    count, running = shadow.shadow_count, shadow.shadow_running
    at, now = count[_RUNNING], shadow.shadow_time[_NOW]
    if at >= len(running):
        raise InternalError("the shadow has no room for another running job")
    end = now + state.walltime[job]
    while at > 0 and shadow.shadow_start[running[at - 1]] + state.walltime[running[at - 1]] > end:
        running[at] = running[at - 1]
        at -= 1
    running[at] = job
    shadow.shadow_start[job] = now
    count[_RUNNING] += 1
    count[_USED] += state.size[job]
    shadow.shadow_time[_LONGEST] = max(shadow.shadow_time[_LONGEST], now - state.submit_time[job])


@kernel
def _reserve_head(state, shadow):
    """When the first job of the queue can start if all run to their walltime, and what is left over then."""
    running, wanted = shadow.shadow_running, state.size[shadow.shadow_queue[0]]
    begin, free = np.inf, _free(state, shadow)
    for i in range(shadow.shadow_count[_RUNNING]):
        end = shadow.shadow_start[running[i]] + state.walltime[running[i]]
        if end > begin:
            break
        free += state.size[running[i]]
        if free >= wanted:
            begin = end
    shadow.shadow_time[_RESERVED] = begin
    shadow.shadow_count[_EXTRA] = max(free - wanted, 0)
