"""What a composed policy remembers from call to call, and what has changed since it last decided."""

from typing import Any

import numpy as np

from decision.compiling.bundle import F8, I1, I4, I8, Bundle, F8x2, Float, I4x2, Int, bundle_at
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.state.cluster import ENDED, RUNNING, UNAVAILABLE, ClusterState, PlatformFacts, nb_hosts
from decision.state.plan_arrays import PlanArrays

from .options import Backfill, Order, PolicyConfig, StartHosts
from .profile import Profile

# How long jobs would have waited so far under FCFS with EASY: a simulation of counts, besides the one that runs.
#
# The shadow gets the same jobs at the same times on the same number of hosts. It is simulated twice. The first
# simulation goes only as far as all run times are known that it needs: a job's run time is known once the job has
# really ended, and of one that runs it is known that it is longer than it has run so far. So each of its waits is one
# that EASY makes. The second goes on from there to the present; jobs whose run time is unknown run there for their
# walltime times the share of walltimes that is used, over the jobs (weighted by hosts) that have ended in the first. Of
# these, one that has not begun though it waits for so many times the longest wait of the first (`excuse`) takes no time
# there: else the waits behind it, which nobody has to bear, would say for how long it may wait. It begins again when so
# many jobs have ended that going on from the first costs no more than a few times what both cost anyway.
#
# Each instant of the shadow is one EASY decision (Mu'alem and Feitelson, TPDS 2001) over counts of hosts, in time
# linear in the shadow's queue where jobs ended, and constant where one arrived.

KNOWN_PAST, PRESENT = range(2)  # the simulations

# A trade of time against truth: the oftener the second simulation begins again, the closer it is to what really ran. So
# each ended job pays for a few instants of it, and the cost stays linear.
_CHEAP = 4  # instants by job that has ended: so many the second may cost
# Too little has ended at first to say how much of their walltimes jobs use: until then it is nearly all. A larger
# number lets the guard of a young run be laxer for longer.
_FULL_USE = 1800.0  # seconds on each host: as if jobs of so much had used all of their walltimes before the first one


class Shadow(Bundle):
    """Two simulations of FCFS with EASY; empty arrays where none is wanted. J jobs, H hosts."""

    # of each simulation
    shadow_arrived: I8  # (2,) jobs numbered below this have arrived there
    shadow_waiting: I8  # (2,) length of shadow_queue
    shadow_runs: I8  # (2,) length of shadow_running
    shadow_used: I8  # (2,) hosts
    shadow_extra: I8  # (2,) hosts that the head's reservation leaves over
    shadow_now: F8  # (2,) seconds: the last instant
    shadow_longest: F8  # (2,) seconds: the longest wait of a job that has started
    shadow_reserved: F8  # (2,) seconds: when the head's reservation begins
    shadow_ran: F8  # (2,) host-seconds that the jobs ran which have ended
    shadow_asked: F8  # (2,) host-seconds that they asked for
    shadow_start: F8x2  # (2, J) seconds: when a job started there
    shadow_queue: I4x2  # (2, J) jobs that wait there, in order of submission
    shadow_running: I4x2  # (2, H) jobs that run there, by start + walltime
    # of the second
    shadow_ended: Int = -1  # jobs that had really ended when it began again; -1 before it first did
    shadow_cost: Int  # instants that it took to come to the present then
    # 1.25 is the most that a guard of 1.5 times lets jobs wait by what the first knows (`guard`).
    excuse: Float = 1.25  # times the longest wait in the first: who waits for more takes no time; inf: all do


def new_shadow(hosts: int) -> dict[str, np.ndarray]:
    """The fields of an empty shadow without room for jobs."""
    counts = ("arrived", "waiting", "runs", "used", "extra")
    times = ("now", "longest", "reserved", "ran", "asked")
    return {
        **{f"shadow_{name}": np.zeros(2, np.int64) for name in counts},
        **{f"shadow_{name}": np.zeros(2) for name in times},
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
    return shadow.shadow_longest[KNOWN_PAST]


@kernel
def longest_wait(state, shadow):
    """The longest wait (seconds) in the shadow up to now, that of jobs that still wait included."""
    # First as far as truth goes; what follows needs its sums, and may begin again from it.
    _go_on(state, shadow, KNOWN_PAST)
    ended = state.nb_jobs - state.nb_queued - state.nb_running
    if shadow.shadow_ended < 0 or _CHEAP * (ended - shadow.shadow_ended) >= shadow.shadow_cost:
        _begin_again(shadow)
        shadow.shadow_ended, shadow.shadow_cost = ended, _go_on(state, shadow, PRESENT)
    else:
        _go_on(state, shadow, PRESENT)
    longest = shadow.shadow_longest[PRESENT]
    if shadow.shadow_waiting[PRESENT] == 0:
        return longest
    return max(longest, state.now - state.submit_time[shadow.shadow_queue[PRESENT, 0]])


@kernel
def _begin_again(shadow):
    """Let the second simulation be where the first is."""
    counts = (shadow.shadow_arrived, shadow.shadow_waiting, shadow.shadow_runs, shadow.shadow_used, shadow.shadow_extra)
    for count in counts:
        count[PRESENT] = count[KNOWN_PAST]
    times = (shadow.shadow_now, shadow.shadow_longest, shadow.shadow_reserved, shadow.shadow_ran, shadow.shadow_asked)
    for time in times:
        time[PRESENT] = time[KNOWN_PAST]
    queue, running, start = shadow.shadow_queue, shadow.shadow_running, shadow.shadow_start
    for i in range(shadow.shadow_waiting[PRESENT]):
        queue[PRESENT, i] = queue[KNOWN_PAST, i]
    for i in range(shadow.shadow_runs[PRESENT]):
        job = running[KNOWN_PAST, i]
        running[PRESENT, i] = job
        start[PRESENT, job] = start[KNOWN_PAST, job]


@kernel
def _go_on(state, shadow, which):
    """Simulate up to now, or as far as run times are known; returns how many instants."""
    now, arrived, instants = state.now, shadow.shadow_arrived, 0
    while True:
        # When the next job ends there, and until when nothing can happen that is not known.
        end, known = np.inf, np.inf
        for i in range(shadow.shadow_runs[which]):
            job = shadow.shadow_running[which, i]
            if which == KNOWN_PAST and state.job_state[job] < ENDED:
                known = min(known, shadow.shadow_start[which, job] + _ran(state, job))
            else:
                end = min(end, _end_of(state, shadow, which, job))
        arrival = state.submit_time[arrived[which]] if arrived[which] < state.nb_jobs else np.inf
        # Nothing is simulated whose outcome is not known: a job that runs in truth could still end the shadow's state
        # earlier.
        if min(end, arrival) > now or min(end, arrival) >= known:
            return instants
        instants += 1
        shadow.shadow_now[which] = max(shadow.shadow_now[which], min(end, arrival))
        # Hosts came free: a decision about the whole queue. Else only the arrivals can start, since nothing has changed
        # for those that wait.
        if end <= shadow.shadow_now[which]:
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
    waited, most = state.now - state.submit_time[job], shadow.excuse * shadow.shadow_longest[KNOWN_PAST]
    # A policy that holds a job back would lengthen the shadow's waits, and thereby its own bound: such a job takes no
    # time.
    if shadow.excuse < np.inf and state.job_state[job] != RUNNING and waited > most:
        return begin
    # The share of walltimes that is used, weighted by hosts, and never less than what the job has really run.
    full = _FULL_USE * len(state.host_state)
    use = (shadow.shadow_ran[KNOWN_PAST] + full) / (shadow.shadow_asked[KNOWN_PAST] + full)
    return begin + min(walltime, max(use * walltime, _ran(state, job)))


@kernel
def _ran(state, job):
    """Seconds that a job has really run so far."""
    return state.now - state.start_time[job] if state.job_state[job] == RUNNING else 0.0


@kernel
def _take_ends(state, shadow, which):
    running, kept = shadow.shadow_running[which], 0
    for i in range(shadow.shadow_runs[which]):
        job = running[i]
        end = _end_of(state, shadow, which, job)
        if end <= shadow.shadow_now[which]:
            shadow.shadow_used[which] -= state.size[job]
            shadow.shadow_ran[which] += state.size[job] * (end - shadow.shadow_start[which, job])
            shadow.shadow_asked[which] += state.size[job] * state.walltime[job]
        else:
            running[kept] = job
            kept += 1
    shadow.shadow_runs[which] = kept


@kernel
def _take_arrivals(state, shadow, which):
    """Let all jobs wait that have come by now and can ever run; returns how many waited before."""
    arrived, waiting, hosts = shadow.shadow_arrived, shadow.shadow_waiting, len(state.host_state)
    before, now = waiting[which], shadow.shadow_now[which]
    while arrived[which] < state.nb_jobs and state.submit_time[arrived[which]] <= now:
        job = arrived[which]
        # Jobs that are larger than the cluster are rejected, and would block this queue for ever.
        if state.size[job] <= hosts:
            shadow.shadow_queue[which, waiting[which]] = job
            waiting[which] += 1
        arrived[which] += 1
    return before


@kernel
def _free(state, shadow, which):
    return len(state.host_state) - state.nb_in_state[UNAVAILABLE] - shadow.shadow_used[which]


@kernel
def _start_all(state, shadow, which):
    """A decision about the whole queue."""
    waiting, queue, started = shadow.shadow_waiting, shadow.shadow_queue[which], 0
    while started < waiting[which] and state.size[queue[started]] <= _free(state, shadow, which):
        _start(state, shadow, which, queue[started])
        started += 1
    for i in range(started, waiting[which]):
        queue[i - started] = queue[i]
    waiting[which] -= started
    if waiting[which] > 0:
        _reserve_head(state, shadow, which)
        _start_harmless(state, shadow, which, 1)


@kernel
def _start_harmless(state, shadow, which, begin):
    """Start what fits from queue[begin] on and leaves the head's reservation alone."""
    queue, extra, free, kept = shadow.shadow_queue[which], shadow.shadow_extra, _free(state, shadow, which), begin
    for i in range(begin, shadow.shadow_waiting[which]):
        job = queue[i]
        late = shadow.shadow_now[which] + state.walltime[job] > shadow.shadow_reserved[which]
        if state.size[job] <= free and (not late or state.size[job] <= extra[which]):
            extra[which] -= state.size[job] if late else 0
            free -= state.size[job]
            _start(state, shadow, which, job)
        else:
            queue[kept] = job
            kept += 1
    shadow.shadow_waiting[which] = kept


@kernel
def _start(state, shadow, which, job):
    running, start = shadow.shadow_running[which], shadow.shadow_start[which]
    at, now = shadow.shadow_runs[which], shadow.shadow_now[which]
    if at >= len(running):
        raise InternalError("the shadow has no room for another running job")
    end = now + state.walltime[job]
    # In order of start + walltime, as the reservation of a head walks through them.
    while at > 0 and start[running[at - 1]] + state.walltime[running[at - 1]] > end:
        running[at] = running[at - 1]
        at -= 1
    running[at] = job
    start[job] = now
    shadow.shadow_runs[which] += 1
    shadow.shadow_used[which] += state.size[job]
    shadow.shadow_longest[which] = max(shadow.shadow_longest[which], now - state.submit_time[job])


@kernel
def _reserve_head(state, shadow, which):
    """When the first job of the queue can start if all run to their walltime, and what is left over then."""
    running, start = shadow.shadow_running[which], shadow.shadow_start[which]
    wanted = state.size[shadow.shadow_queue[which, 0]]
    begin, free = np.inf, _free(state, shadow, which)
    for i in range(shadow.shadow_runs[which]):
        end = start[running[i]] + state.walltime[running[i]]
        if end > begin:
            break
        free += state.size[running[i]]
        if free >= wanted:
            begin = end
    shadow.shadow_reserved[which] = begin
    shadow.shadow_extra[which] = max(free - wanted, 0)


# So that the regions that matter to a job are one word of bits (`backfill._find_earlier`).
FREED_ROOM = 64  # bits of a word
# Each start looks at all of them (`guard.harms_watched`).
MOST_WATCHED = 64  # jobs are watched by a guard, those that have waited longest
_LEVELS = 32  # powers of two up to the largest size of a job


class Watch(Bundle):
    """The jobs whose right to hosts a guard watches (`guard.watch`)."""

    nb_watched: Int
    watch_job: I4  # (MOST_WATCHED,) their numbers
    watch_time: F8  # (MOST_WATCHED,) seconds: by when each is to have its hosts
    watch_extra: I4  # (MOST_WATCHED,) hosts that are left over then


class Booking(Bundle):
    """Who has booked what, kept next to the state from decision to decision."""

    booked_by: I4  # (H,) the job that has booked a host, or that a plan started on it since `forget_gone`; -1 for none
    booked: I4  # (H,) those jobs in the order in which they booked hosts; booked[:nb_booked]
    nb_booked: Int
    rank: I1  # (H,) when a host could compute: AWAKE to DOZING, or -1
    woken: I1  # (H,) by number of the server: whether a host of it is booked


class Memory(Profile, Shadow, Watch, Booking):
    """What a composed policy is and remembers from call to call, its availability profile included.

    Arrays that its slots do not use are empty.
    """

    # its config
    order: Int  # Order
    backfill: Int  # Backfill
    allocation: Int  # Allocation
    power: Int  # Power
    seed: Int
    keep_awake: Int  # hosts
    start: Int  # StartHosts
    promises: Int  # 1 to remember when EASY first promises each head to start
    backfill_order: Int  # the Order of the jobs that EASY looks at behind its head; -1: that of the queue
    suspend: Int  # Suspend
    age_weight: Float
    size_weight: Float
    max_age: Float  # seconds at which age counts in full
    idle_timeout: Float  # seconds
    wake_time: Float  # seconds to wake a host
    doze_time: Float  # seconds to put a host to sleep
    guard: Float  # seconds after which a waiting job is guarded; inf where no seconds say it
    guard_times: Float  # or so many times the longest wait so far under FCFS with EASY; 0: seconds say it
    patience: Float  # seconds that a job waits before a server is woken for it
    # how far it is
    nb_ordered: Int  # jobs numbered below this have been put into `sorted`
    nb_sorted: Int  # length of sorted
    nb_considered: Int  # jobs numbered below this have been put into `candidates`
    nb_candidates: Int  # length of candidates
    nb_guarded: Int  # jobs numbered below this are guarded, if they wait
    nb_known: Int  # jobs numbered below this have a reservation, if they are of those that get one
    nb_heirs: Int  # length of heirs
    nb_freed: Int  # freed regions
    serial: Int  # of the last change to the freed regions
    troubled: Int  # 1: the last reservations were made while the profile was in doubt
    kept: Int  # 1: the profile was kept up to date by the last decision, for guarded jobs
    # as it was after the last plan was carried out
    seen_jobs: Int  # jobs submitted
    seen_running: Int  # jobs that ran
    seen_over: Int  # jobs that neither waited nor ran any more
    seen_free: Int  # free hosts
    seen_changes: Int = -1  # changes of capacity that no job caused
    seen_revisions: Int  # of what is expected
    head: Int = -1  # the job that blocked the queue then, -1 for none
    extra: Int  # hosts that its reservation left over
    head_start: Float  # seconds: when its reservation begins
    # times
    next_start: Float = np.inf  # seconds: no reservation begins earlier
    next_call: Float = np.inf  # seconds: when the policy will be called on its own request, inf if it will not
    last_now: Float  # seconds: time of the last decision
    guarded_after: Float  # seconds: a job that has waited for so long is guarded in any case
    # addresses of entries of `SLOT`, of what few policies do, compiled for those alone; 0 where the policy does not
    network_slot: Int  # gives an action hosts by the network that connects them
    booked_slot: Int  # jobs book hosts before they start
    suspension_slot: Int  # suspends jobs for others
    prices: F8x2  # (L - 1, N_FEATURES) hops: weights of `placement.windows`; empty where hosts have no price
    chosen: I4  # (H,) jobs to start now
    release_time: F8  # (2H + 1,) seconds, ascending: when hosts come free besides the ends of running jobs
    release_hosts: I4  # (2H + 1,) how many
    sorted: I4  # (J,) waiting jobs in order; not with FCFS, unless jobs are suspended
    spare: I4  # (J,) scratch
    key: F8  # (J,) rank of each job, the lowest first
    heirs: I4  # (H,) jobs that others were suspended for, which start next
    candidates: I4  # (J,) waiting jobs in the order for backfilling, where that is another
    candidate_key: F8  # (J,) rank of each job in it
    promised: F8  # (J,) seconds: when each job was to start when it first was the head of an EASY queue, nan for others
    reserved: F8  # (J,) seconds: when each job's reservation begins, inf before it has one
    examined: I8  # (J,) serial at which a job's reservation was last known to be as early as possible
    freed_begin: F8  # (FREED_ROOM,) seconds: regions of the profile in which hosts came free
    freed_end: F8  # (FREED_ROOM,) seconds
    freed_most: I4  # (FREED_ROOM,) the most free hosts in it then
    freed_serial: I8  # (FREED_ROOM,) when that was
    spell_length: F8x2  # (FREED_ROOM, _LEVELS) seconds: the longest spell of 2 ** level free hosts that touches it
    spell_end: F8x2  # (FREED_ROOM, _LEVELS) seconds: the latest end of such a spell, -1 where not yet measured


memory_at = bundle_at(Memory)

SLOT = Interface(float, ClusterState, PlatformFacts, Memory, PlanArrays, int)  # the number: see each
call_slot = SLOT.caller()


@kernel
def note_decision(state, memory, chosen):
    """Remember the state as it will be once the plan is carried out, which starts the first so many chosen jobs."""
    memory.seen_jobs = state.nb_jobs
    memory.seen_running = state.nb_running + chosen
    memory.seen_over = state.nb_jobs - state.nb_queued - state.nb_running
    memory.seen_changes = state.nb_capacity_changes
    memory.seen_revisions = state.revisions[0]


@kernel
def ends_since(state, memory):
    """How many jobs have ended since the last decision; -1 where more happened than arrivals, its starts, and ends.

    A job that is expected to end at another time is more.
    """
    # The three counts of jobs and those of changes tell apart all that can happen between two decisions; nothing need
    # be compared job by job.
    ended = state.nb_jobs - state.nb_queued - state.nb_running - memory.seen_over
    as_planned = (
        state.nb_running + ended == memory.seen_running
        and state.nb_capacity_changes == memory.seen_changes
        and state.revisions[0] == memory.seen_revisions
    )
    return ended if as_planned else -1


def new_memory(state: ClusterState, config: PolicyConfig, prices: F8x2 | None = None, **slots: int) -> Memory:
    """An empty memory with room for every job and host of `state`; prices of allocations, addresses of slots."""
    hosts = nb_hosts(state)
    memory = Memory(
        **config._asdict() | slots,
        prices=np.zeros((0, 0)) if prices is None else prices,
        chosen=np.zeros(hosts, np.int32),
        release_time=np.zeros(2 * hosts + 1),
        release_hosts=np.zeros(2 * hosts + 1, np.int32),
        sorted=np.zeros(0, np.int32),
        spare=np.zeros(0, np.int32),
        key=np.zeros(0),
        heirs=np.zeros(hosts if config.suspend else 0, np.int32),
        candidates=np.zeros(0, np.int32),
        candidate_key=np.zeros(0),
        step_time=np.zeros(0),
        step_free=np.zeros(0, np.int32),
        promised=np.zeros(0),
        reserved=np.zeros(0),
        examined=np.zeros(0, np.int64),
        freed_begin=np.zeros(FREED_ROOM),
        freed_end=np.zeros(FREED_ROOM),
        freed_most=np.zeros(FREED_ROOM, np.int32),
        freed_serial=np.zeros(FREED_ROOM, np.int64),
        spell_length=np.zeros((FREED_ROOM, _LEVELS)),
        spell_end=np.zeros((FREED_ROOM, _LEVELS)),
        **new_shadow(hosts),
        **new_watch(),
        **new_booking(hosts if config.start == StartHosts.BOOKED else 0),
    )
    return grown_memory(memory, state, config)


def new_watch() -> dict[str, np.ndarray]:
    """The fields of a watch over nobody."""
    return {
        "watch_job": np.zeros(MOST_WATCHED, np.int32),
        "watch_time": np.zeros(MOST_WATCHED),
        "watch_extra": np.zeros(MOST_WATCHED, np.int32),
    }


def new_booking(hosts: int) -> dict[str, I1 | I4]:
    """The arrays of a `Booking` of so many hosts, none of them booked."""
    return {
        "booked_by": np.full(hosts, -1, np.int32),
        "booked": np.zeros(hosts, np.int32),
        "rank": np.zeros(hosts, np.int8),
        "woken": np.zeros(hosts, np.int8),
    }


def grown_memory(memory: Memory, state: ClusterState, config: PolicyConfig) -> Memory:
    """The same memory with room for every job of `state`: the same arrays where they are long enough."""
    # Arrays are made only for the slots that use them: a policy in strict FCFS remembers no job at all.
    jobs, hosts = len(state.size), nb_hosts(state)
    changed: dict[str, Any] = {}
    if (config.order != Order.FCFS or config.suspend) and len(memory.key) < jobs:
        changed |= {name: _longer(getattr(memory, name), jobs, 0) for name in ("sorted", "spare", "key")}
    if config.backfill_order >= 0 and len(memory.candidates) < jobs:
        changed |= {name: _longer(getattr(memory, name), jobs, 0) for name in ("candidates", "spare", "candidate_key")}
    if config.guard_times > 0:
        changed |= grown_shadow(memory, jobs)
    if _reserves(config) and len(memory.reserved) < jobs:
        changed["reserved"] = _longer(memory.reserved, jobs, np.inf)
        changed["examined"] = _longer(memory.examined, jobs, 0)
    if config.promises and len(memory.promised) < jobs:
        changed["promised"] = _longer(memory.promised, jobs, np.nan)
    # Each job that waits or runs and each sleeping host makes two steps at most. With a power slot every waiting job
    # can have a reservation, whatever the backfilling: as many short jobs as fit behind one another into the time that
    # a host takes to wake.
    steps = 2 * (jobs + 2 * hosts) + 8
    if (_reserves(config) or config.power) and len(memory.step_time) < steps:
        changed["step_time"] = _longer(memory.step_time, steps, 0)
        changed["step_free"] = _longer(memory.step_free, steps, 0)
    return memory._replace(**changed) if changed else memory


def _reserves(config: PolicyConfig) -> bool:
    """Whether jobs can have reservations that are remembered."""
    return config.backfill == Backfill.CONSERVATIVE or config.is_guarded


def _longer(array: np.ndarray, length: int, fill: float) -> np.ndarray:
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer
