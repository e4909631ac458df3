"""How long jobs would have waited so far under FCFS with EASY: a simulation of counts, besides the one that runs.

The shadow gets the same jobs at the same times on the same number of hosts. It is simulated twice. The first simulation
goes only as far as all run times are known that it needs: a job's run time is known once the job has really ended, and
of one that runs it is known that it is longer than it has run so far. So each of its waits is one that EASY makes. The
second goes on from there to the present; jobs whose run time is unknown run there for their walltime times the share of
walltimes that is used, over the jobs (weighted by hosts) that have ended in the first. Of these, one that has not begun
though it waits for so many times the longest wait of the first (`EXCUSE`) takes no time there: else the waits behind
it, which nobody has to bear, would say for how long it may wait. It begins again when so many jobs have ended that
going on from the first costs no more than a few times what both cost anyway.

Each instant of the shadow is one EASY decision (Mu'alem and Feitelson, TPDS 2001) over counts of hosts, in time linear
in the shadow's queue where jobs ended, and constant where one arrived.
"""

import numpy as np

from decision.compiling.bundle import Bundle, F8x2, I4x2, I8x2
from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.state.cluster import ENDED, RUNNING, UNAVAILABLE

KNOWN_PAST, PRESENT = range(2)  # the simulations

# Shadow.shadow_count
_ARRIVED = 0  # jobs numbered below this have arrived in the shadow
_WAITING = 1  # length of shadow_queue
_RUNNING = 2  # length of shadow_running
_USED = 3  # hosts
_EXTRA = 4  # hosts that the head's reservation leaves over
_BEGUN_AT = 5  # of the second: jobs that had really ended when it began again; -1 before it first did
_COST = 6  # instants that it took to come to the present then
N_SHADOW_COUNTS = 7

# Shadow.shadow_time
_NOW = 0  # seconds: the shadow's last instant
_LONGEST = 1  # seconds: the longest wait of a job that has started
_RESERVED = 2  # seconds: when the head's reservation begins
_RAN = 3  # host-seconds that the jobs ran which have ended
_ASKED = 4  # host-seconds that they asked for
EXCUSE = 5  # times the longest wait in the first: who waits for more takes no time in the second; inf: all do
N_SHADOW_TIMES = 6

# A trade of time against truth: the oftener the second simulation begins again, the closer it is to what really ran. So
# each ended job pays for a few instants of it, and the cost stays linear.
_CHEAP = 4  # instants by job that has ended: so many the second may cost
_EXCUSE = 1.25  # the most that a guard of 1.5 times lets jobs wait by what the first knows (`guard`)
# Too little has ended at first to say how much of their walltimes jobs use: until then it is nearly all. A larger
# number lets the guard of a young run be laxer for longer.
_FULL_USE = 1800.0  # seconds on each host: as if jobs of so much had used all of their walltimes before the first one


class Shadow(Bundle):
    """Two simulations of FCFS with EASY; empty arrays where none is wanted. J jobs, H hosts."""

    shadow_count: I8x2  # (2, N_SHADOW_COUNTS)
    shadow_time: F8x2  # (2, N_SHADOW_TIMES)
    shadow_start: F8x2  # (2, J) seconds: when a job started there
    shadow_queue: I4x2  # (2, J) jobs that wait there, in order of submission
    shadow_running: I4x2  # (2, H) jobs that run there, by start + walltime


def new_shadow(hosts: int) -> dict[str, np.ndarray]:
    """The fields of an empty shadow without room for jobs."""
    counts = np.zeros((2, N_SHADOW_COUNTS), np.int64)
    counts[PRESENT, _BEGUN_AT] = -1
    times = np.zeros((2, N_SHADOW_TIMES))
    times[:, EXCUSE] = _EXCUSE
    return {
        "shadow_count": counts,
        "shadow_time": times,
        "shadow_start": np.zeros((2, 0)),
        "shadow_queue": np.zeros((2, 0), np.int32),
        "shadow_running": np.zeros((2, hosts), np.int32),
    }


def grown_shadow(shadow: Shadow, jobs: int) -> dict[str, np.ndarray]:
    """The fields that have room for so many jobs, where they had not."""
    changed = {}
    for name in ("shadow_start", "shadow_queue"):
        array = getattr(shadow, name)
        if array.shape[1] < jobs:
            changed[name] = np.zeros((2, jobs), array.dtype)
            changed[name][:, : array.shape[1]] = array
    return changed


@kernel
def longest_known(shadow):
    """The longest wait (seconds) of jobs that are known to have started in the shadow, at most `longest_wait`."""
    return shadow.shadow_time[KNOWN_PAST, _LONGEST]


@kernel
def longest_wait(state, shadow):
    """The longest wait (seconds) in the shadow up to now, that of jobs that still wait included."""
    count = shadow.shadow_count[PRESENT]
    # First as far as truth goes; what follows needs its sums, and may begin again from it.
    _go_on(state, shadow, KNOWN_PAST)
    ended = state.nb_jobs - state.nb_queued - state.nb_running
    if count[_BEGUN_AT] < 0 or _CHEAP * (ended - count[_BEGUN_AT]) >= count[_COST]:
        _begin_again(shadow)
        count[_BEGUN_AT], count[_COST] = ended, _go_on(state, shadow, PRESENT)
    else:
        _go_on(state, shadow, PRESENT)
    longest = shadow.shadow_time[PRESENT, _LONGEST]
    if count[_WAITING] == 0:
        return longest
    return max(longest, state.now - state.submit_time[shadow.shadow_queue[PRESENT, 0]])


@kernel
def _begin_again(shadow):
    """Let the second simulation be where the first is."""
    shadow.shadow_time[PRESENT] = shadow.shadow_time[KNOWN_PAST]
    shadow.shadow_count[PRESENT] = shadow.shadow_count[KNOWN_PAST]
    queue, running, start = shadow.shadow_queue, shadow.shadow_running, shadow.shadow_start
    for i in range(shadow.shadow_count[PRESENT, _WAITING]):
        queue[PRESENT, i] = queue[KNOWN_PAST, i]
    for i in range(shadow.shadow_count[PRESENT, _RUNNING]):
        job = running[KNOWN_PAST, i]
        running[PRESENT, i] = job
        start[PRESENT, job] = start[KNOWN_PAST, job]


@kernel
def _go_on(state, shadow, which):
    """Simulate up to now, or as far as run times are known; returns how many instants."""
    now, count, time, instants = state.now, shadow.shadow_count[which], shadow.shadow_time[which], 0
    while True:
        end, known = _next_end(state, shadow, which)
        arrival = state.submit_time[count[_ARRIVED]] if count[_ARRIVED] < state.nb_jobs else np.inf
        # Nothing is simulated whose outcome is not known: a job that runs in truth could still end the shadow's state
        # earlier.
        if min(end, arrival) > now or min(end, arrival) >= known:
            return instants
        instants += 1
        time[_NOW] = max(time[_NOW], min(end, arrival))
        # Hosts came free: a decision about the whole queue. Else only the arrivals can start, since nothing has changed
        # for those that wait.
        if end <= time[_NOW]:
            _take_ends(state, shadow, which)
            _take_arrivals(state, shadow, which)
            _start_all(state, shadow, which)
            continue
        before = _take_arrivals(state, shadow, which)
        if before == 0:
            _start_all(state, shadow, which)
        else:
            _start_harmless(state, shadow, which, before)


@kernel
def _end_of(state, shadow, which, job):
    """When (seconds) a job that runs in the shadow ends there; inf where the first simulation cannot know."""
    begin, walltime = shadow.shadow_start[which, job], state.walltime[job]
    if state.job_state[job] >= ENDED:
        runtime = state.end_time[job] - state.start_time[job]
        return begin + (runtime if runtime >= 0.0 else 0.0)  # nan: it was rejected
    # The first simulation takes only ends that have happened.
    if which == KNOWN_PAST:
        return np.inf
    time = shadow.shadow_time[KNOWN_PAST]
    waited = state.now - state.submit_time[job]
    # A policy that holds a job back would lengthen the shadow's waits, and thereby its own bound: such a job takes no
    # time.
    if time[EXCUSE] < np.inf and state.job_state[job] != RUNNING and waited > time[EXCUSE] * time[_LONGEST]:
        return begin
    # The share of walltimes that is used, weighted by hosts, and never less than what the job has really run.
    full = _FULL_USE * len(state.host_state)
    use = (time[_RAN] + full) / (time[_ASKED] + full)
    return begin + min(walltime, max(use * walltime, _ran(state, job)))


@kernel
def _ran(state, job):
    """Seconds that a job has really run so far."""
    return state.now - state.start_time[job] if state.job_state[job] == RUNNING else 0.0


@kernel
def _next_end(state, shadow, which):
    """When the next job ends in the shadow, and until when (seconds) nothing can happen there that is not known."""
    end, known = np.inf, np.inf
    for i in range(shadow.shadow_count[which, _RUNNING]):
        job = shadow.shadow_running[which, i]
        if which == KNOWN_PAST and state.job_state[job] < ENDED:
            known = min(known, shadow.shadow_start[which, job] + _ran(state, job))
        else:
            end = min(end, _end_of(state, shadow, which, job))
    return end, known


@kernel
def _take_ends(state, shadow, which):
    count, time, running, kept = shadow.shadow_count[which], shadow.shadow_time[which], shadow.shadow_running[which], 0
    for i in range(count[_RUNNING]):
        job = running[i]
        end = _end_of(state, shadow, which, job)
        if end <= time[_NOW]:
            count[_USED] -= state.size[job]
            time[_RAN] += state.size[job] * (end - shadow.shadow_start[which, job])
            time[_ASKED] += state.size[job] * state.walltime[job]
        else:
            running[kept] = job
            kept += 1
    count[_RUNNING] = kept


@kernel
def _take_arrivals(state, shadow, which):
    """Let all jobs wait that have come by now and can ever run; returns how many waited before."""
    count, hosts = shadow.shadow_count[which], len(state.host_state)
    before, now = count[_WAITING], shadow.shadow_time[which, _NOW]
    while count[_ARRIVED] < state.nb_jobs and state.submit_time[count[_ARRIVED]] <= now:
        job = count[_ARRIVED]
        # Jobs that are larger than the cluster are rejected, and would block this queue for ever.
        if state.size[job] <= hosts:
            shadow.shadow_queue[which, count[_WAITING]] = job
            count[_WAITING] += 1
        count[_ARRIVED] += 1
    return before


@kernel
def _free(state, shadow, which):
    return len(state.host_state) - state.nb_in_state[UNAVAILABLE] - shadow.shadow_count[which, _USED]


@kernel
def _start_all(state, shadow, which):
    """A decision about the whole queue."""
    count, queue, started = shadow.shadow_count[which], shadow.shadow_queue[which], 0
    while started < count[_WAITING] and state.size[queue[started]] <= _free(state, shadow, which):
        _start(state, shadow, which, queue[started])
        started += 1
    for i in range(started, count[_WAITING]):
        queue[i - started] = queue[i]
    count[_WAITING] -= started
    if count[_WAITING] > 0:
        _reserve_head(state, shadow, which)
        _start_harmless(state, shadow, which, 1)


@kernel
def _start_harmless(state, shadow, which, begin):
    """Start what fits from queue[begin] on and leaves the head's reservation alone."""
    count, time, queue = shadow.shadow_count[which], shadow.shadow_time[which], shadow.shadow_queue[which]
    free, kept = _free(state, shadow, which), begin
    for i in range(begin, count[_WAITING]):
        job = queue[i]
        late = time[_NOW] + state.walltime[job] > time[_RESERVED]
        if state.size[job] <= free and (not late or state.size[job] <= count[_EXTRA]):
            count[_EXTRA] -= state.size[job] if late else 0
            free -= state.size[job]
            _start(state, shadow, which, job)
        else:
            queue[kept] = job
            kept += 1
    count[_WAITING] = kept


@kernel
def _start(state, shadow, which, job):
    count, running, start = shadow.shadow_count[which], shadow.shadow_running[which], shadow.shadow_start[which]
    at, now = count[_RUNNING], shadow.shadow_time[which, _NOW]
    if at >= len(running):
        raise InternalError("the shadow has no room for another running job")
    end = now + state.walltime[job]
    # In order of start + walltime, as the reservation of a head walks through them.
    while at > 0 and start[running[at - 1]] + state.walltime[running[at - 1]] > end:
        running[at] = running[at - 1]
        at -= 1
    running[at] = job
    start[job] = now
    count[_RUNNING] += 1
    count[_USED] += state.size[job]
    time = shadow.shadow_time[which]
    time[_LONGEST] = max(time[_LONGEST], now - state.submit_time[job])


@kernel
def _reserve_head(state, shadow, which):
    """When the first job of the queue can start if all run to their walltime, and what is left over then."""
    running, start = shadow.shadow_running[which], shadow.shadow_start[which]
    wanted = state.size[shadow.shadow_queue[which, 0]]
    begin, free = np.inf, _free(state, shadow, which)
    for i in range(shadow.shadow_count[which, _RUNNING]):
        end = start[running[i]] + state.walltime[running[i]]
        if end > begin:
            break
        free += state.size[running[i]]
        if free >= wanted:
            begin = end
    shadow.shadow_time[which, _RESERVED] = begin
    shadow.shadow_count[which, _EXTRA] = max(free - wanted, 0)
