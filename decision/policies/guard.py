"""A bound on waiting: a job that has waited for long gets a reservation that nothing may delay.

A job is guarded from the first decision on at which it has waited for as long as the limit, until it starts. Guarded
jobs have reservations as conservative backfilling makes them (`backfill`), among themselves, in order of
submission: each begins as early as running jobs and the guarded jobs before it allow, and never moves to a later time,
as long as jobs end by their walltime and hosts stay. Any other job starts only where it delays none of them.

Jobs wait in order of submission, so the guarded ones are the first of the queue. That none is guarded is seen by a look
at one job. A decision at which a job becomes guarded is asked for only where the job would fit: else nothing could
start before the next event anyway.

The limit is a number of seconds. Or the guard says how many times the longest wait so far under FCFS with EASY
(`shadow`) a job may wait: then a job is guarded before its start could come later (`count_late`), and from its
submission on each waiting job keeps its right to hosts in time (`watch`), after slack-based backfilling (Talby and
Feitelson, IPPS 1999). What is guaranteed: where no older job waits, a job starts by 29/30 of what it may wait, or by
the earliest time at which running jobs leave it its hosts if they run to their walltime, whichever is later. That all
together keep the bound is not guaranteed: it was seen.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.state.cluster import platform_facts
from decision.state.plan_arrays import CALL_AT, add

from .backfill import keep_reservations, next_call, take, take_due
from .memory import MOST_WATCHED, longest_known, longest_wait, note_decision
from .options import AUTO, Backfill, Power
from .profile import TOLERANCE, add_free, are_free, earliest, hosts_given_back

OPTION = "guard"  # its name, for every policy
_SOON = TOLERANCE  # seconds: no call is asked for sooner, because it must reach a peer, whose clock may round, in time
# Tuned together with three orders (sjf+easy, saf+first-fit, wfp3+easy) on copies of COARE, grid5000, Theta and two
# made logs. Guarding earlier keeps the bound better and costs mean wait: from 0.4 of what a job may wait on COARE's
# waits rise by 15 to 20 %, from 5/8 grid5000 misses the bound (1.68 in the median). A limit of LARGEST alone, without
# promises, costs less (COARE -6 to +2 %) and misses it as well (1.81). _LATE is 1.45 where 1.5 times EASY's longest
# wait may be waited. All tries: presets/README.md in `decision.rl.learning`.
_AIM = 0.9  # of what a job may wait: the latest promise
LEAST = 0.55  # of what it may wait: it is not guarded before
LARGEST = 5 / 6  # of what it may wait: then it is guarded in any case
_MOST = 256  # jobs are promised something, those that have waited longest; others are guarded by their waits alone
_LATE = 29 / 30  # of what a job may wait: by then it is to start


class GuardLimit(NamedTuple):
    """How long jobs may wait; the fields are those of `PolicyConfig`."""

    guard: float = math.inf  # seconds
    guard_times: float = 0.0  # or so many times the longest wait so far under FCFS with EASY; 0: seconds say it


def read_guard(policy: str, value: Any) -> GuardLimit:
    """What the option says: seconds, ``auto``, or ``1.5x``.

    Raises:
        ConfigError: naming the policy and the value.
    """
    if value == "auto":
        return GuardLimit(guard_times=AUTO)
    relative = isinstance(value, str) and value.endswith("x")
    try:
        number = float(value[:-1] if relative else value)
    except (TypeError, ValueError):
        number = math.nan
    # EASY itself could not keep a bound below its own longest wait.
    if not (1 if relative else 0) <= number < math.inf:
        accepted = "auto, times EASY's longest wait such as 1.5x (1x at least), or seconds, finite and not negative"
        raise ConfigError(f"policy {policy}: option guard={value} must be {accepted}")
    return GuardLimit(guard_times=number) if relative else GuardLimit(guard=number)


def switch_times(platform: Platform, unknown: float) -> tuple[float, float]:
    """Seconds that the slowest host takes to wake and to fall asleep; `unknown` for waking where it is not said."""
    facts, _ = platform_facts(platform, energy=True)
    sleeps = facts.sleep_pstate >= 0
    if not sleeps.any():
        return 0.0, 0.0
    wake, doze = facts.on_time[sleeps], facts.off_time[sleeps]
    return float(np.where(np.isnan(wake), unknown, wake).max()), float(np.nan_to_num(doze, nan=0.0).max())


@kernel
def is_guarded(memory):
    """Whether there is a limit."""
    return memory.guard < np.inf or memory.guard_times > 0.0


@kernel
def follow_guard(state, memory):
    """Find out who is guarded now; returns how many, which are the first of the queue."""
    if memory.guard_times > 0.0:
        memory.nb_watched = 0
        if state.nb_queued == 0:
            return note_guarded(memory, state.queue, 0)
        # A cheap lower bound first: the waits that the shadow knows for sure. While the oldest job is far below what
        # these allow, the dear simulation to the present cannot change the answer.
        first, most = state.queue[0], memory.guard_times * longest_known(memory)
        waited = state.now - state.submit_time[first]
        sure = first >= memory.nb_guarded and waited < LEAST * most - TOLERANCE and nobody_is_late(state, most)
        if not sure:
            most = memory.guard_times * longest_wait(state, memory)
            watch(state, memory, most)
        memory.guarded_after = LARGEST * most
        return note_guarded(memory, state.queue, 0 if sure else count_late(state, memory, most))
    # Seconds: jobs wait in order of submission, so that the guarded ones are a prefix of the queue. Who was guarded
    # once stays so.
    limit, count, length, queue = memory.guard, 0, state.nb_queued, state.queue
    memory.guarded_after = limit
    while count < length and (
        queue[count] < memory.nb_guarded or state.now - state.submit_time[queue[count]] >= limit - TOLERANCE
    ):
        count += 1
    return note_guarded(memory, queue, count)


@kernel
def note_guarded(memory, queue, count):
    """Let the first so many jobs of the queue be guarded from now on; returns how many."""
    if count > 0:
        memory.nb_guarded = max(memory.nb_guarded, queue[count - 1] + 1)
    else:
        # Nobody is guarded: the profile is no longer followed, and is made again when it is needed.
        memory.kept = 0
    return count


@kernel
def choose_guarded(state, facts, memory, queue, length, guarded):
    """As `backfill.choose_starts`, where the first so many jobs of the state's queue are guarded; one at least.

    They come first in any order: so nothing else starts where the rule is strict and one of them goes on waiting, and
    for EASY one of them is the first that waits.
    """
    # First those whose reservation begins now, whatever the order says; then the others, beside all reservations.
    reserve_guarded(state, facts, memory, guarded)
    chosen = take_due(state, memory, state.queue, guarded)
    waits = chosen < guarded
    if not (waits and memory.backfill == Backfill.NONE):
        chosen = _take_others(state, memory, chosen, queue, length, waits)
    note_decision(state, memory, chosen)
    memory.head = -1
    # A power slot fills the profile for a question of its own (`power.manage_power`): then it is made again each time.
    memory.kept = waits and memory.power == Power.NEVER
    return chosen


@kernel
def reserve_guarded(state, facts, memory, guarded):
    """Bring the reservations of the first so many jobs of the queue up to date."""
    if memory.kept == 0:
        memory.next_start = -np.inf  # so that the profile is made again
    keep_reservations(state, facts, memory, state.queue, guarded, memory.nb_guarded, True)


@kernel
def is_harmless(state, memory, job):
    """Whether the reservations leave a job hosts if it starts now."""
    now = state.now
    return are_free(memory, state.size[job], now, now + max(state.expected_runtime[job], TOLERANCE))


@kernel
def _take_others(state, memory, chosen, queue, length, protected):
    """Jobs that are not guarded, in order; `protected` is whether a job that waits has its reservation already."""
    now, free, small, short = state.now, state.nb_free, len(state.host_state) + 1, np.inf
    for i in range(chosen):
        free -= state.size[memory.chosen[i]]
        watch_start(state, memory, memory.chosen[i])
    for i in range(length):
        job = queue[i]
        if free == 0:
            break
        # The queue may be in any order, and guarded jobs anywhere in it: they have been dealt with.
        if job < memory.nb_guarded or harms_watched(state, memory, job):
            continue
        size, walltime = state.size[job], state.expected_runtime[job]
        # What is no smaller and no shorter than one that did not fit is not tried: each try walks through the profile.
        if size <= free and not (size >= small and walltime >= short):
            if is_harmless(state, memory, job):
                chosen = take(memory.chosen, chosen, job)
                watch_start(state, memory, job)
                add_free(memory, now, now + walltime, -size)
                free -= size
                continue
            small, short = size, walltime  # what is no smaller and no shorter fits no better, for hosts become fewer
        if memory.backfill == Backfill.NONE:
            break
        # EASY protects one job; where no guarded one waits it is the first that did not start, as without a guard.
        if memory.backfill == Backfill.EASY and not protected:
            begin = earliest(memory, size, walltime)
            add_free(memory, begin, begin + walltime, -size)
            protected = True
    return chosen


@kernel
def guard_call(state, memory, guarded, chosen, free):
    """When (seconds) to be called: for a reservation, or because a job that fits into `free` hosts becomes guarded."""
    call = next_call(state, memory, chosen) if memory.kept else np.inf
    if free == 0 or memory.guarded_after == np.inf:
        return call
    # The oldest that would fit becomes guarded first. One that does not fit waits for an event in any case.
    for i in range(guarded, state.nb_queued):
        job = state.queue[i]
        if state.size[job] <= free and memory.reserved[job] == np.inf:
            return min(call, state.submit_time[job] + memory.guarded_after)
    return call


@kernel
def ask_for_call(state, memory, plan, time):
    """Ask to be called at `time` (seconds), but once for each time: a peer keeps every request.

    Nothing is asked where a call is pending that comes no later.
    """
    # A request cannot be taken back from Batsim: each one more is an event of its own.
    pending = memory.next_call
    if pending <= state.now + TOLERANCE:
        pending = np.inf
    time = max(time, state.now + _SOON)
    if time < pending:
        plan.time[add(plan, CALL_AT, -1)] = time
        pending = time
    memory.next_call = pending


# By when waiting jobs would start if they were guarded now: who would start too late is guarded before that.
#
# A guard that is relative to FCFS with EASY leaves a job alone for as long as its promise is early enough:
# the start that it would have if it and all that were submitted before it got reservations now, each as early as
# running jobs and those before it allow, if all run to their walltime. As long as nothing is guarded, jobs that came
# later may delay it; once it is guarded nothing moves its start beyond the promise. So the guard comes as late as it
# can, for each job by itself: late where hosts come free soon, early where many wait before it (slack-based
# backfilling, Talby and Feitelson, IPPS 1999).
#
# Jobs that have waited for less than a share of what they may wait are left alone also where their promise is too late:
# then EASY lets jobs wait for as long, mostly, and what they may wait will grow.


@kernel
def count_late(state, memory, most):
    """How many jobs, the first of the queue, are to be guarded so that none waits for more than `most` seconds."""
    queue, now, runs, length = state.queue, state.now, state.nb_running, 0
    # Who is guarded, or has waited for long enough to be.
    while length < state.nb_queued and (
        queue[length] < memory.nb_guarded or now - state.submit_time[queue[length]] >= LEAST * most - TOLERANCE
    ):
        length += 1
    if length == 0 or queue[length - 1] < memory.nb_guarded:
        return length
    count, promised = 0, min(length, _MOST)
    # Give every old job, in order, the reservation that it would get now; all up to the last one whose start is too
    # late are guarded, since its promise counts on theirs.
    # Free hosts from each of `times` on, if running jobs run to their walltime.
    times, free = np.empty(runs + 1 + promised), np.empty(runs + 1 + promised, np.int64)
    times[0], free[0] = now, state.nb_free
    for i in range(runs):
        times[i + 1] = max(times[i], state.expected_end[i])
        free[i + 1] = free[i] + hosts_given_back(state, state.running[i])
    last = runs + 1
    for i in range(promised):
        job = queue[i]
        at = find_earliest(times, free, last, state.size[job], state.expected_runtime[job])
        promise = times[at] if at < last else np.inf
        if promise - state.submit_time[job] >= _AIM * most - TOLERANCE or _is_due(state, memory, job, most):
            count = i + 1
        if at < last:
            last = note_reservation(times, free, last, at, state.size[job], promise + state.expected_runtime[job])
    # Those beyond _MOST have no promise, and are guarded by how long they have waited.
    while count < length and _is_due(state, memory, queue[count], most):
        count += 1
    return count


@kernel
def _is_due(state, memory, job, most):
    """Whether a job is guarded already, or has waited for so long that it is in any case."""
    return job < memory.nb_guarded or state.now - state.submit_time[job] >= LARGEST * most - TOLERANCE


@kernel
def find_earliest(times, free, last, size, runtime):
    """From which of the first `last` times on so many hosts are free for so long (seconds); `last` for none."""
    # One pass: `begin` is the first time from which all so far have had enough hosts.
    begin = 0
    for at in range(last):
        if begin < at and times[at] >= times[begin] + runtime:
            break
        if free[at] < size:
            begin = at + 1
    return begin


@kernel
def note_reservation(times, free, last, begin, size, end):
    """Take hosts from `times[begin]` to `end` (seconds); returns how many times there are now."""
    # A new step where the job ends, in order of time; then the hosts are gone from all steps that it covers.
    at = last
    while times[at - 1] > end:
        times[at], free[at] = times[at - 1], free[at - 1]
        at -= 1
    times[at], free[at] = end, free[at - 1]
    for i in range(begin, at):
        free[i] -= size
    return last + 1


# Watched jobs: each keeps its right to hosts by a time of its own, which no start takes away.
#
# With a guard that is relative to FCFS with EASY, each waiting job has a time of its own: the end of what it
# may wait (nearly: `_LATE`), or, where that is later, the earliest time at which its hosts are free if running jobs run
# to their walltime and no other job starts. A job that is not guarded starts only where it leaves each job that was
# submitted before it its hosts at that time: it ends by then, or takes hosts that are left over. So its start does not
# move the time at which hosts are free for an older job beyond that one's own time. Each waiting job is looked at by
# itself; where several want the same hosts, they are served in order of submission once they are guarded.
#
# Of jobs that wait in order of submission, those count that want more hosts than all before them: hosts that are there
# for such a one are there for the others, which may wait longer. And only those count whose time comes before a waiting
# job that starts now would end.


@kernel
def _longest_runtime(state):
    """Of the waiting jobs, as expected (seconds)."""
    longest = 0.0
    for i in range(state.nb_queued):
        longest = max(longest, state.expected_runtime[state.queue[i]])
    return longest


@kernel
def nobody_is_late(state, most):
    """Whether nothing that starts now could be in the way of a waiting job, where each may wait for `most` seconds."""
    return state.now + _longest_runtime(state) < state.submit_time[state.queue[0]] + _LATE * most - TOLERANCE


@kernel
def watch(state, memory, most):
    """Find out who is watched, where a job may wait for `most` seconds."""
    now, count, largest, longest = state.now, 0, 0, _longest_runtime(state)
    for i in range(state.nb_queued):
        job = state.queue[i]
        if now + longest < state.submit_time[job] + _LATE * most - TOLERANCE or count == MOST_WATCHED:
            break
        # Hosts that are there in time for a larger, older job are there for this one as well.
        if state.size[job] <= largest:
            continue
        largest = state.size[job]
        time, free = _right_of(state, job, max(now, state.submit_time[job] + _LATE * most))
        memory.watch_job[count] = job
        memory.watch_time[count] = time
        memory.watch_extra[count] = free - largest
        count += 1
    memory.nb_watched = count


@kernel
def _right_of(state, job, time):
    """When the job is to have its hosts, at `time` (seconds) or as soon as there are enough; and how many there are."""
    free = state.nb_free
    # Running jobs are in order of their expected ends, so the first time with enough hosts is the earliest.
    for i in range(state.nb_running):
        end = state.expected_end[i]
        if end > time:
            if free >= state.size[job]:
                break
            time = end
        free += hosts_given_back(state, state.running[i])
    return (time, free) if free >= state.size[job] else (np.inf, free)


@kernel
def harms_watched(state, memory, job):
    """Whether a watched job that was submitted before would not have its hosts in time if this one starts now."""
    end = state.now + state.expected_runtime[job]
    for i in range(memory.nb_watched):
        if memory.watch_job[i] >= job:
            break
        if end > memory.watch_time[i] + TOLERANCE and state.size[job] > memory.watch_extra[i]:
            return True
    return False


@kernel
def watch_start(state, memory, job):
    """A job starts now: what it takes of the hosts that watched jobs leave over."""
    end = state.now + state.expected_runtime[job]
    for i in range(memory.nb_watched):
        if end > memory.watch_time[i] + TOLERANCE and memory.watch_job[i] != job:
            memory.watch_extra[i] -= state.size[job]
