"""Rollouts: which of several sets of waiting jobs to start now, judged by what would follow each of them.

A policy brings its order of the waiting jobs and the set that it would start. Other sets are made from the same order:
all that fits; what EASY starts; and for each of the first jobs that fit and are not in the own set, what EASY starts if
that job comes first. Guarded jobs, the first of the order, always stay the first, and hosts are kept for the first of
them that does not fit. What follows a set is simulated: EASY in that order, no jobs that come, run times between what
was asked for and what is predicted. A set counts as the sum, over the first jobs of the order, of

    wait / W + SLOWNESS s / S + e^LATE (wait / longest)^EXPONENT

where s is the job's bounded slowdown, W and S are the means over the jobs that have ended, and `longest` is the longest
wait that the policy measures by. Another set takes the place of the policy's own if it counts for less by a share of
MARGIN. Bertsekas, Tsitsiklis and Wu, Rollout algorithms for combinatorial optimization (Journal of Heuristics, 1997).
"""

import math

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, Bundle, Float, I1x2
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import insert_in_order
from decision.model.record import SHORTEST_RUNTIME
from decision.policies.backfill import take
from decision.policies.guard import find_earliest, note_guarded, note_reservation
from decision.policies.order import sort_by_key
from decision.policies.profile import TOLERANCE
from decision.state.cluster import ClusterState, nb_hosts

# Rollouts.judge
MARGIN, TRUST, LATE, EXPONENT, SLOWNESS, NB_JUDGE = range(6)  # TRUST: 0 is as asked for, 1 as predicted

_WINDOW = 200  # jobs of the order that are looked at; what a decision takes grows with it times the sets
_FIRST = 16  # jobs that come first in a set of their own, likewise
SETS = _FIRST + 3  # and the policy's own, all that fits, and what EASY starts
_LEAST_MEAN = 1.0  # seconds, of waiting time: while nobody has waited, nothing is divided by 0
_AGAIN = 0.5  # of the time that a job has run by when it should have ended: so long it still runs


class Rollouts(Bundle):
    """What rollouts know of the past, and what they work on; W is the length of the window."""

    judge: F8  # (NB_JUDGE,)
    ended_wait: Float  # seconds: sum over the jobs that have ended
    ended_slowdown: Float  # sum of their bounded slowdowns
    ended_jobs: Float  # how many
    window_size: I4  # (W,) hosts of the first waiting jobs, in order
    window_submit: F8  # (W,) seconds
    window_walltime: F8  # (W,) seconds
    window_runtime: F8  # (W,) seconds that they are planned to run
    starts: I1x2  # (SETS, W) whether each starts; the first set is the policy's own
    left: I4  # (W + 1,) of what still waits in a rollout: the first at 0, then behind each the next; from 1, 0: none
    ending: I4  # (H,) jobs that run, by planned end
    end: F8  # (H,) seconds, ascending: when the jobs that run are planned to end
    end_hosts: I4  # (H,)
    begun_end: F8  # (W + H,) seconds, ascending: likewise of jobs that begin in a rollout, or in a set
    begun_hosts: I4  # (W + H,)


def new_rollouts(state: ClusterState, judge: NDArray[np.float64]) -> Rollouts:
    """Room for the cluster's hosts; nothing has ended yet. ``judge`` is (NB_JUDGE,)."""
    hosts = nb_hosts(state)
    return Rollouts(
        judge=judge,
        window_size=np.zeros(_WINDOW, np.int32),
        window_submit=np.zeros(_WINDOW),
        window_walltime=np.zeros(_WINDOW),
        window_runtime=np.zeros(_WINDOW),
        starts=np.zeros((SETS, _WINDOW), np.int8),
        left=np.zeros(_WINDOW + 1, np.int32),
        ending=np.zeros(hosts, np.int32),
        end=np.zeros(hosts),
        end_hosts=np.zeros(hosts, np.int32),
        begun_end=np.zeros(_WINDOW + hosts),
        begun_hosts=np.zeros(_WINDOW + hosts, np.int32),
    )


@kernel
def note_job_end(state, memory, job):
    """Add an ended job to the means that waits and slowdowns are measured by."""
    wait, runtime = state.start_time[job] - state.submit_time[job], state.end_time[job] - state.start_time[job]
    memory.ended_wait += wait
    memory.ended_slowdown += slowdown_of(wait, runtime)
    memory.ended_jobs += 1.0


@kernel
def best_start(state, memory, length, chosen, running, guarded, longest):
    """Put the jobs of the best set into ``memory.chosen``; returns how many.

    Args:
        state: of the cluster.
        memory: with the waiting jobs in ``sorted``, the policy's own set in ``chosen``, and the ends of the jobs that
            run in ``release_time`` and ``release_hosts``; a predicted run time of each job, in seconds; and ``spare``
            and ``key``, of which those of waiting jobs stay.
        length: of the order.
        chosen: jobs in the own set.
        running: jobs that run.
        guarded: jobs that come first in every set.
        longest: seconds: the wait that `LATE` is counted by.
    """
    width = min(length, _WINDOW)
    if length < 2 or guarded >= width or memory.judge[MARGIN] >= 1.0:
        return chosen
    # the window's jobs side by side: rollouts read them again and again
    for at in range(width):
        job = memory.sorted[at]
        memory.window_size[at] = state.size[job]
        memory.window_submit[at] = state.submit_time[job]
        memory.window_walltime[at] = state.expected_runtime[job]
        memory.window_runtime[at] = planned(state, memory, job)
    inside = mark_own(memory, width, chosen)
    sets = make_sets(state, memory, width, running, guarded)
    if sets == 1:
        return chosen
    plan_ends(state, memory, running)
    # the policy's own set may start jobs behind the window, too; no other set does
    unchanged = follow(state, memory, 0, width, inside, chosen, running, longest, np.inf)
    best, least = 0, unchanged * (1.0 - memory.judge[MARGIN])
    for number in range(1, sets):
        count = follow(state, memory, number, width, inside, inside, running, longest, least)
        if count < least:
            best, least = number, count
    if best == 0:
        return chosen
    chosen = 0
    for at in range(width):
        if memory.starts[best, at]:
            chosen = take(memory.chosen, chosen, memory.sorted[at])
    return chosen


@kernel
def plan_ends(state, memory, running):
    """When the jobs that run are planned to end: not before they have run half as long again as they have."""
    now = state.now
    for i in range(running):
        job = state.running[i]
        began = state.start_time[job]
        # never beyond the walltime's end, at which it is killed
        end = max(began + planned(state, memory, job), now + max(_AGAIN * (now - began), SHORTEST_RUNTIME))
        memory.ending[i], memory.key[job] = job, min(end, state.expected_end[i])
    sort_by_key(memory.ending, memory.spare, memory.key, 1, running)
    for i in range(running):
        job = memory.ending[i]
        memory.end[i], memory.end_hosts[i] = memory.key[job], state.size[job]


@kernel
def planned(state, memory, job):
    """Seconds that a job is planned to run: the mean of what was asked for and predicted, of their logarithms."""
    asked, trust = max(state.expected_runtime[job], SHORTEST_RUNTIME), memory.judge[TRUST]
    return asked * math.exp(trust * math.log(max(memory.predicted[job], SHORTEST_RUNTIME) / asked))


# --- Which jobs would start now ------------------------------------------------------------------------------------


@kernel
def mark_own(memory, width, chosen):
    """The policy's own set, of which so many are in the window: the order is that of the window."""
    inside = 0
    for at in range(width):
        starts = inside < chosen and memory.chosen[inside] == memory.sorted[at]
        memory.starts[0, at] = starts
        inside += starts
    return inside


@kernel
def make_sets(state, memory, width, running, guarded):
    """All different sets; returns how many."""
    sets = 1
    # all that fits, and what EASY starts
    for keeps in range(2):
        _start(state, memory, sets, width, running, guarded, -1, keeps)
        sets += _is_new(memory, sets, width)
    tried = 0  # whether or not it makes a new set: a decision is to take bounded time
    for at in range(guarded, width):
        if tried == _FIRST:
            break
        if memory.window_size[at] <= state.nb_free:
            tried += 1
            if not memory.starts[0, at]:
                _start(state, memory, sets, width, running, guarded, at, True)
                sets += _is_new(memory, sets, width)
    return sets


@kernel
def _start(state, memory, number, width, running, guarded, first, keeps):
    """Make a set: the job at `first`, if it is not -1, comes first; `keeps`: hosts for the first that does not fit."""
    now, free, begun = state.now, state.nb_free, 0
    kept, shadow, extra = False, np.inf, 0
    memory.starts[number, :width] = 0
    for i in range(width):
        at = i  # in the order of the window, but that `first` comes right behind the guarded ones
        if first >= 0 and guarded <= i <= first:
            at = first if i == guarded else i - 1
        size, end = memory.window_size[at], now + memory.window_walltime[at]
        if size > free:
            if not kept and (keeps or at < guarded):
                kept = True
                shadow, extra = reserve_hosts(
                    memory, memory.release_time, memory.release_hosts, 0, running, 0, begun, free, size
                )
            continue
        if kept and end > shadow:
            if size > extra:
                continue
            extra -= size
        memory.starts[number, at] = 1
        insert_in_order(memory.begun_end, memory.begun_hosts, begun, end, size)
        begun += 1
        free -= size
        if free == 0:
            break


@kernel
def _is_new(memory, number, width):
    """Whether no set before is the same."""
    for other in range(number):
        if np.array_equal(memory.starts[other, :width], memory.starts[number, :width]):
            return False
    return True


@kernel
def reserve_hosts(memory, ends, hosts, first, running, first_begun, begun, free, size):
    """When so many hosts are free, and how many more are free then, by the ends of two lists of jobs."""
    time = np.inf
    while True:
        running_end = ends[first] if first < running else np.inf
        begun_end = memory.begun_end[first_begun] if first_begun < begun else np.inf
        end = min(running_end, begun_end)
        # one step more once enough are free: all that ends at the same time counts
        if end == np.inf or (free >= size and end > time):
            return time, free - size
        if running_end <= begun_end:
            free += hosts[first]
            first += 1
        else:
            free += memory.begun_hosts[first_begun]
            first_begun += 1
        if free >= size and time == np.inf:
            time = end


# --- What follows, by a simulation of counts of hosts --------------------------------------------------------------


@kernel
def follow(state, memory, number, width, inside, beyond, running, longest, bound):
    """What a set counts for, or any number from `bound` on; ``chosen[inside:beyond]`` start, too."""
    now, free, begun, total, left = state.now, state.nb_free, 0, 0.0, memory.left
    # what starts now counts now; the rest is a list linked by places, so that whoever starts leaves it in one step
    last, least = 0, len(state.host_state) + 1
    for at in range(width):
        if memory.starts[number, at]:
            total += _count(memory, at, now, longest)
            free, begun = _begin(memory, begun, free, now + memory.window_runtime[at], memory.window_size[at])
        else:
            left[last] = at + 1
            last = at + 1
            least = min(least, memory.window_size[at])
    left[last] = 0
    for i in range(inside, beyond):
        job = memory.chosen[i]
        free, begun = _begin(memory, begun, free, now + planned(state, memory, job), state.size[job])
    # from end to end, until all have begun or the set counts for more than the best one does
    first, first_begun, before, need, shadow, extra = 0, 0, 0, 0, np.inf, 0
    while left[0] > 0 and total < bound:
        time = memory.end[first] if first < running else np.inf
        time = min(time, memory.begun_end[first_begun] if first_begun < begun else np.inf)
        if time == np.inf:  # what is left needs hosts that are not there
            break
        while first < running and memory.end[first] <= time:
            free += memory.end_hosts[first]
            first += 1
        while first_begun < begun and memory.begun_end[first_begun] <= time:
            free += memory.begun_hosts[first_begun]
            first_begun += 1
        if free >= need:
            before = 0  # one that was looked at in vain could start now: look again from the first
        if free >= least and left[before] > 0:
            looked = before, need, shadow, extra
            ends = first, running, first_begun
            free, begun, total, looked = _begin_left(memory, time, least, looked, ends, begun, free, longest, total)
            before, need, shadow, extra = looked
    return total


@kernel
def _begin_left(memory, time, least, looked, ends, begun, free, longest, total):
    """Start what EASY starts at a time; returns free hosts, jobs that have begun, the sum, and what was looked at.

    The reservation of the first that is left is made when a job fits that may delay it, and stays as it is, since what
    starts leaves it alone. A job that would delay it now would delay it later, too. So jobs are looked at once, as long
    as it is the first and fewer than `need` hosts are free, which one of the others needs.

    Args:
        memory: with the jobs that are left.
        time: seconds.
        least: hosts; all that are left need as many.
        looked: behind which position to look, `need`, and when and with how many more hosts the first can start.
        ends: of the jobs that have not ended: the first of those that run now, their number, the first that has begun.
        begun: jobs that have begun.
        free: hosts.
        longest: seconds, as of `best_start`.
        total: the sum so far.
    """
    (before, need, shadow, extra), (first, running, first_begun), left = looked, ends, memory.left
    waits = memory.window_size[left[0] - 1]
    if waits <= free:  # the first starts now: there is no reservation yet
        waits, shadow = 0, np.inf
    reserved, at = shadow < np.inf, left[before]
    while at > 0 and free >= least:
        size, end = memory.window_size[at - 1], time + memory.window_runtime[at - 1]
        if size <= free and waits > 0 and not reserved:
            reserved = True
            shadow, extra = reserve_hosts(
                memory, memory.end, memory.end_hosts, first, running, first_begun, begun, free, waits
            )
        harmless = end <= shadow or size <= extra
        if size <= free and harmless:
            if end > shadow:
                extra -= size
            total += _count(memory, at - 1, time, longest)
            free, begun = _begin(memory, begun, free, end, size)
            left[before] = left[at]
        else:
            if before == 0:
                need = waits = size
            elif harmless:
                need = min(need, size)
            before = at
        at = left[at]
    return free, begun, total, (before, need, shadow, extra)


@kernel
def _begin(memory, begun, free, end, size):
    """A job begins; returns how many hosts are free then, and how many jobs have begun."""
    insert_in_order(memory.begun_end, memory.begun_hosts, begun, end, size)
    return free - size, begun + 1


@kernel
def _count(memory, at, time, longest):
    """What a job counts for that begins at a time."""
    judge, wait = memory.judge, max(time - memory.window_submit[at], 0.0)
    ended = max(memory.ended_jobs, 1.0)
    # waits and slowdowns in units of their means so far: the weights then mean the same on every log
    count = wait / max(memory.ended_wait / ended, _LEAST_MEAN)
    count += judge[SLOWNESS] * slowdown_of(wait, memory.window_runtime[at]) / max(memory.ended_slowdown / ended, 1.0)
    if wait > 0.0:
        count += math.exp(judge[LATE] + judge[EXPONENT] * math.log(wait / longest))
    return count


@kernel
def slowdown_of(wait, runtime):
    return max((wait + runtime) / max(runtime, SHORTEST_RUNTIME), 1.0)


# --- When hosts come free ------------------------------------------------------------------------------------------
#
# By lists of the jobs that run: their ends (seconds, ascending), and their hosts.


@kernel
def smallest_waiting(state):
    """Hosts of the smallest waiting job; more than there are, if none waits."""
    smallest = len(state.host_state) + 1
    for i in range(state.nb_queued):
        smallest = min(smallest, state.size[state.queue[i]])
    return smallest


@kernel
def enough_at(ends, sizes, running, free, size):
    """When so many hosts are free at the latest, if nothing else starts; -inf if they are, inf if never."""
    begin = -np.inf
    for i in range(running):
        if free >= size:
            break
        free += sizes[i]
        begin = ends[i]
    return begin if free >= size else np.inf


@kernel
def free_hosts_at(ends, sizes, running, free, time):
    """How many hosts are free at a time, if nothing else starts."""
    for i in range(running):
        if ends[i] > time:
            break
        free += sizes[i]
    return free


# Which waiting jobs would begin too late if they were guarded no sooner: the bound on the longest wait of `learned`.
#
# Jobs that want much of the machine are the ones that wait longest: from when they are guarded hosts are kept for them,
# and these come free one after the other. So such a job is guarded before its wait is what it may be (1.3 times the
# longest wait that FCFS with EASY has had so far, `decision.policies.memory`) by the time that this is likely to take,
# which is the larger of two. One is planned: each wide job that has waited for long gets, in order of submission, the
# earliest hosts that jobs which run and those before it leave, run times being planned as in rollouts. The other one
# was seen: how long jobs of its class of sizes took to begin once it had been time to guard them, the largest counting
# less with each that took less long. Where guarded jobs begin soon, nobody is guarded sooner than by the learned
# numbers.
#
# Others are as late where many are guarded; they fit in where wide ones do not, and are left to the learned guard.

# Chosen by hand with three shaken copies of twelve logs in sight: on grid5000 the longest wait is 1.31 in place of 1.88
# times EASY's, and on nine of the logs the mean wait is at most 5 % longer (presets/README.md, "A bound inside")
_AIM = 1.3  # times EASY's longest wait so far: by then a wide job is to begin
_LEAST = 0.7  # times it: no job is guarded before
_PLANNED = 0.6  # of the time that it is planned to take: it counts for less, since what is planned is often too long
_WIDE = 3  # a job is wide if so many of its size want more than the machine
_FORGOTTEN = 0.2  # of what was seen, with each job that begins sooner
_MOST = 256  # jobs are looked at, those that have waited longest
LATE_CLASSES = 2  # of sizes: more than half of the machine, and less


@kernel
def count_late_jobs(state, memory, running, longest, guarded):
    """How many jobs, the first of the queue, are guarded, where `guarded` are by the learned numbers.

    Args:
        state: of the cluster.
        memory: of the policy.
        running: jobs that run.
        longest: seconds: EASY's longest wait.
        guarded: jobs.
    """
    if len(memory.lag) == 0:  # the policy keeps no bound
        return guarded
    # the first jobs of the queue: those that are guarded, or have waited for long enough to be
    queue, length, count, now, most = state.queue, 0, 0, state.now, min(state.nb_queued, _MOST)
    while length < most and (
        queue[length] < memory.nb_guarded or now - state.submit_time[queue[length]] >= _LEAST * longest - TOLERANCE
    ):
        length += 1
    if length == 0:
        return guarded
    # free hosts from each of these times on, if running jobs run as planned; with room for reservations of those jobs
    plan_ends(state, memory, running)
    times, free = np.empty(running + 1 + length), np.empty(running + 1 + length, np.int64)
    times[0], free[0] = now, state.nb_free
    for i in range(running):
        times[i + 1] = max(times[i], memory.end[i])
        free[i + 1] = free[i] + memory.end_hosts[i]
    last = running + 1
    for i in range(length):
        job = queue[i]
        if _WIDE * state.size[job] <= len(state.host_state):
            continue
        wait, run = now - state.submit_time[job], planned(state, memory, job)
        # seconds from when it is time to guard a job to its start, as it was for others and is for itself so far
        lag = memory.lag[_class_of(state, job)]
        if memory.late_since[job] < np.inf:
            lag = max(lag, now - memory.late_since[job])
        at = find_earliest(times, free, last, state.size[job], run)
        # hosts are kept for it in the plan, as if it were guarded: the next ones begin later
        if at < last:
            begin = times[at]
            lag = max(lag, _PLANNED * (begin - now))
            last = note_reservation(times, free, last, at, state.size[job], begin + run)
        limit = max(_AIM * longest - lag, _LEAST * longest) - TOLERANCE
        # how long it then takes to begin is measured from here, and teaches `note_begin`
        if wait >= limit and memory.late_since[job] == np.inf:
            memory.late_since[job] = now
        # guarded jobs are the first of the queue: one that is late takes all before it with it
        if job < memory.nb_guarded or wait >= limit:
            count = i + 1
    return note_guarded(memory, queue, count) if count > guarded else guarded


@kernel
def note_begin(state, memory, job):
    """A job begins: how long that took since it had been time to guard it, if it had."""
    if len(memory.lag) > 0 and memory.late_since[job] < np.inf:
        at, lag = _class_of(state, job), state.now - memory.late_since[job]
        # up at once, down slowly: too early costs some utilization, too late breaks the bound
        memory.lag[at] = max(lag, memory.lag[at] + _FORGOTTEN * (lag - memory.lag[at]))


@kernel
def _class_of(state, job):
    """Which class of sizes a job is in."""
    return 0 if 2 * state.size[job] > len(state.host_state) else 1
