"""Learned order: list scheduling by a score, for any number of hosts, whose few numbers were learned by evolution.

Waiting jobs are looked at from the highest score to the lowest, and what fits starts. Hosts are kept, as EASY keeps
them for the first job of the queue, for the first job that does not fit and would have waited for long when it begins,
by the walltimes of the jobs that run; a job that would then still run on hosts it needs does not start. What is long is
measured by the longest wait so far that the same jobs would have under FCFS with EASY
(`decision.policies.memory`); it is later where users ask for too much time, because such a reservation keeps
hosts idle. A job that has waited for so many times that longest wait comes first, with all that were submitted before
it, in order of submission, and hosts are kept for the first that does not fit: they are served as FCFS with EASY serves
a queue. Where the queue is short this begins sooner, for it costs little there, and at once on a nearly idle machine.
Nothing else is ever held back. What would start so is one of several sets of jobs, and the one starts that rollouts
find best (`decision.rl.schedulers.rollouts`).

The score of a job is

    3 log(wait / p + e^OFFSET) - RUNTIME log(p) - WALLTIME log(walltime) - SIZE log(hosts)
        + AGE a + URGENCY max(a + d - 1, 0)

where p is its run time as predicted when it came (`decision.policies.runtimes.kernels`), a is its wait and d the time
until its hosts are free at the latest, both in units of that longest wait (an hour at least). WFP3 (Tang et al.,
Cluster 2009) is nearly among these orders, and so are SJF and SAF. Where AGE is large, jobs are in order of a deadline:
that of a job which takes e times as long is later by a fixed share of the longest wait.

Where jobs used less than 60 % of the machine so far, and those that wait want at most twice its hosts, the queue is
over soon: age does not count there, and the smallest area comes first, hosts times the run time of rollouts.

So that the longest wait stays below 1.5 times EASY's, wide jobs are guarded before that where they would begin too late
(`late_jobs`), unless the option ``bound=false`` leaves that out.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, Float, bundle_at
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import insert_in_order
from decision.model.dates import DAY
from decision.model.errors import InternalError
from decision.model.record import SHORTEST_RUNTIME
from decision.model.workload import Workload
from decision.policies.allocation import take_lowest
from decision.policies.backfill import take
from decision.policies.guard import note_guarded
from decision.policies.memory import Memory, grown_memory, longest_wait, new_memory
from decision.policies.options import AUTO, Backfill, OptionLine, Order, PolicyConfig, read_value
from decision.policies.order import drop_gone, sort_by_key
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.policies.profile import TOLERANCE
from decision.policies.runtimes.kernels import RegressionMemory, learn_end, new_regression, predict, shared_habits
from decision.state.cluster import QUEUED, ClusterState
from decision.state.plan_arrays import START, add, clear

from .base import Episodes, ParametricScheduler, register
from .rollouts import (
    EXPONENT,
    LATE,
    LATE_CLASSES,
    MARGIN,
    NB_JUDGE,
    SLOWNESS,
    TRUST,
    Rollouts,
    best_start,
    count_late_jobs,
    enough_at,
    free_hosts_at,
    new_rollouts,
    note_begin,
    note_job_end,
    planned,
    smallest_waiting,
)
from .window import Count

# Positions of the weights
(
    RUNTIME,
    WALLTIME,
    SIZE,
    OFFSET,
    AGE,
    URGENCY,
    RESERVE_AFTER,  # hosts are kept for a job that would have waited for so long, in units of the longest wait
    RESERVE_DOUBT,  # what each unit of doubt adds to RESERVE_AFTER
    GUARD_AFTER,  # a job that would have waited for so long, in the same units, is guarded
    FORESIGHT,  # share of the time until a job's hosts are free that counts for that
    SHORT,  # jobs: a queue that is no longer is short
    JUDGE,  # the first of those that rollouts judge by
) = range(12)
SHORT_GUARD = JUDGE + NB_JUDGE  # GUARD_AFTER of a short queue; 0: it is in order of arrival, without rollouts; no areas
NB_WEIGHTS = SHORT_GUARD + 1
_NEARLY_IDLE = 0.02  # of the hosts' time: a machine of which jobs use less is nearly idle
# The next two were chosen on COARE: with 50 % nothing changes on Gaia, and without the second Curie breaks the bound
# on the longest wait (1.60 times EASY's; presets/README.md)
_OFTEN_IDLE = 0.6  # likewise: of one of which they use less queues are over soon, if they are not long already
_LONG = 2  # times all hosts: what jobs want that wait in a long queue
_SLOWDOWN = 3.0  # the scale of all scores, which WFP3's exponent sets: the other weights are relative to it
_FEW = 10  # jobs without doubt, as it were, that ended before the first one


_FIRST = {  # where learning begins; all others are 0
    **{RUNTIME: 1.2, WALLTIME: 1.4, SIZE: -0.3, OFFSET: -2.4, AGE: 24.0, URGENCY: -1.1},
    **{RESERVE_AFTER: 3.0, GUARD_AFTER: 1.38, SHORT: 5.0, SHORT_GUARD: 0.8},
    **{JUDGE + MARGIN: 0.03, JUDGE + TRUST: 0.46, JUDGE + LATE: 5.8, JUDGE + EXPONENT: 5.6, JUDGE + SLOWNESS: 1.1},
}
_ROOM = PolicyConfig(
    order=int(Order.WFP3), backfill=int(Backfill.EASY), guard_times=AUTO
)  # what a memory needs room for
# by what evolution multiplies each weight's changes
SCALE = np.array([0.5, 0.5, 0.5, 1.0, 5.0, 1.5, 0.5, 0.3, 0.1, 0.3, 2.0, 0.02, 0.3, 2.0, 2.0, 0.5, 0.2])
_LEAST_SHORT = 3.0  # jobs: a machine that is nearly idle is to serve as FCFS does, without SHORT_GUARD
_LIMITS = {  # the longest wait is to stay below 1.5 units
    **{GUARD_AFTER: (1.0, 1.45), SHORT_GUARD: (0.0, 0.85), FORESIGHT: (0.0, 1.0), SHORT: (_LEAST_SHORT, np.inf)},
    **{JUDGE + MARGIN: (0.0, 1.0), JUDGE + TRUST: (0.0, 1.0)},
    **{JUDGE + EXPONENT: (1.0, 16.0), JUDGE + SLOWNESS: (0.0, 9.0)},
}
_LEAST_UNIT = 3600.0  # seconds
BOUND_OPTION = "bound"  # name of the policy's option
_HABITS = 1 << 14  # rows, which users and their requests share: so many when the weights were learned


class LearnedMemory(Memory, RegressionMemory, Rollouts):
    """The guard's and the predictor's memory, and what is known of each job."""

    weights: F8  # (P,)
    overestimate: Float  # sum over the jobs that have ended of the logarithm of walltime over run time
    nb_over: Float  # jobs that have ended
    used: Float  # host-seconds of them
    predicted: F8  # (J,) seconds: run times
    fixed: F8  # (J,) what of a score does not change
    freed: I4  # (2H + 1,) hosts that are free from each expected end on
    lag: F8  # (LATE_CLASSES,) seconds that wide jobs took from when they were to be guarded; empty without a bound
    late_since: F8  # (J,) seconds: since when a job is to be guarded (`late_jobs`); inf before


_memory_at = bundle_at(LearnedMemory)


@DECIDE.entry
def decide_by_score(state, facts, memory, plan):
    """Decide by the learned score, always with a plan."""
    clear(plan, state)
    own = _memory_at(memory)
    note_ends(state, own)
    note_arrivals(state, own)
    longest = longest_wait(state, own)
    # nothing could start; what was learned above is kept
    if state.nb_free < smallest_waiting(state):
        return DECIDED
    running, unit = _list_running(state, own), max(longest, _LEAST_UNIT)
    drained = add_up_releases(state, own, running)
    guarded = count_guarded(state, own, running, drained, guarded_after(state, own, longest, unit))
    guarded = count_late_jobs(state, own, running, longest, guarded)
    length = sort_by_score(state, own, running, drained, guarded, unit)
    chosen = choose_by_score(state, own, length, running, guarded, unit)
    if not is_by_arrival(state, own):
        running = _list_running(state, own)  # without those that are chosen, which `choose_by_score` has put in
        chosen = best_start(state, own, length, chosen, running, guarded, unit)
    for i in range(chosen):  # on the lowest hosts: the order is about time, not about places
        job = own.chosen[i]
        note_begin(state, own, job)
        take_lowest(plan, add(plan, START, job), state.size[job])
    return DECIDED


@kernel
def note_ends(state, memory):
    """Learn from the jobs that have ended how long jobs run, and how much users ask for too much."""
    for i in range(state.nb_ended):
        job = state.ended[i]
        walltime, runtime = state.walltime[job], state.end_time[job] - state.start_time[job]
        learn_end(memory, state.user[job], state.size[job], walltime, state.submit_time[job], runtime)
        memory.overestimate += max(math.log(walltime / max(runtime, SHORTEST_RUNTIME)), 0.0)
        memory.nb_over += 1.0
        memory.used += runtime * state.size[job]
        note_job_end(state, memory, job)


@kernel
def note_arrivals(state, memory):
    """Predict the run times of the jobs that have come."""
    weights, length = memory.weights, memory.nb_sorted
    for job in range(memory.nb_ordered, state.nb_jobs):
        if state.job_state[job] != QUEUED:
            continue
        size, walltime = state.size[job], max(state.walltime[job], SHORTEST_RUNTIME)
        runtime = predict(memory, state.user[job], size, state.walltime[job], state.submit_time[job])
        memory.predicted[job] = max(runtime, SHORTEST_RUNTIME)
        memory.fixed[job] = (
            weights[RUNTIME] * math.log(memory.predicted[job])
            + weights[WALLTIME] * math.log(walltime)
            + weights[SIZE] * math.log(size)
        )
        memory.sorted[length] = job
        length += 1
    memory.nb_ordered = state.nb_jobs
    memory.nb_sorted = length


@kernel
def guarded_after(state, memory, longest, unit):
    """For how long (seconds) jobs wait before they are guarded: less in a short queue, where that costs little."""
    limit = memory.weights[GUARD_AFTER] * longest
    if memory.weights[SHORT_GUARD] > 0.0 and _is_short(state, memory):
        # where so little was used FCFS with EASY keeps nobody waiting who need not: all are guarded at once
        early = 0.0 if _uses_less(state, memory, _NEARLY_IDLE, 0.0) else memory.weights[SHORT_GUARD] * unit
        return min(limit, early)
    return limit


@kernel
def _uses_less(state, memory, share, since):
    """Whether jobs that have ended used less than a share of the hosts' time since then (seconds), but for a week."""
    return memory.used < share * len(state.host_state) * (state.now - since - 7 * DAY)


@kernel
def _is_short(state, memory):
    """Whether the queue is short."""
    return state.nb_queued <= memory.weights[SHORT]


@kernel
def is_by_arrival(state, memory):
    """Whether the order is that of arrival: in a short queue, by numbers that were learned before SHORT_GUARD was."""
    return memory.weights[SHORT_GUARD] == 0.0 and _is_short(state, memory)


@kernel
def count_guarded(state, memory, running, drained, limit):
    """How many jobs are guarded, which are the first of the queue: those that wait for `limit` seconds."""
    # guarded jobs are the first of the queue: whoever is guarded takes all that came before along, and stays guarded
    share, count, now, queue = memory.weights[FORESIGHT], 0, state.now, state.queue
    for i in range(state.nb_queued):
        job = queue[i]
        wait = now - state.submit_time[job]
        if job >= memory.nb_guarded and wait + share * drained < limit - TOLERANCE:
            break  # nobody behind it has waited for longer, and no delay is larger than `drained`
        delay = min(_delay(state, memory, running, state.size[job]), drained)
        if job < memory.nb_guarded or wait + share * delay >= limit - TOLERANCE:
            count = i + 1
    return note_guarded(memory, queue, count)


@kernel
def sort_by_score(state, memory, running, drained, guarded, unit):
    """Bring ``memory.sorted`` up to date, guarded jobs first, then the highest score, ties by arrival; its length."""
    length = drop_gone(memory.sorted, memory.nb_sorted, state.job_state)
    memory.nb_sorted = length
    _score_all(state, memory, length, running, drained, unit)
    for i in range(guarded):
        memory.key[state.queue[i]] = -np.inf  # the sort is stable: they come first, by arrival
    sort_by_key(memory.sorted, memory.spare, memory.key, 1, length)
    return length


@kernel
def _is_by_area(state, memory):
    """Whether the smallest area comes first: no job gets old on a machine that is often idle, in no long queue."""
    since_first = state.submit_time[0]
    if memory.weights[SHORT_GUARD] == 0.0 or not _uses_less(state, memory, _OFTEN_IDLE, since_first):
        return False
    wanted = 0
    for i in range(state.nb_queued):
        wanted += state.size[state.queue[i]]
    return wanted <= _LONG * len(state.host_state)


@kernel
def _score_all(state, memory, length, running, drained, unit):
    """Into ``memory.key`` what waiting jobs are in order of: minus the score, area or arrival."""
    if _is_by_area(state, memory):
        for i in range(length):
            job = memory.sorted[i]
            memory.key[job] = state.size[job] * planned(state, memory, job)
        return
    now, weights, by_arrival = state.now, memory.weights, is_by_arrival(state, memory)
    # what changes with time; the rest of a score was computed when the job came
    offset = math.exp(weights[OFFSET])
    for i in range(length):
        job = memory.sorted[i]
        wait = now - state.submit_time[job]
        score = _SLOWDOWN * math.log(wait / memory.predicted[job] + offset) + weights[AGE] * wait / unit
        score -= memory.fixed[job]
        if wait + drained > unit:  # else urgency is 0, whatever the delay is: that is not looked up
            begin = _delay(state, memory, running, state.size[job])
            score += weights[URGENCY] * max((wait + min(begin, drained)) / unit - 1.0, 0.0)
        memory.key[job] = job if by_arrival else -score


@kernel
def _list_running(state, memory):
    """Write ends and sizes of the jobs that run, by expected end; returns how many there are."""
    count = state.nb_running
    if count + state.nb_free > len(memory.release_time):
        raise InternalError("the policy's memory has no room for the jobs that run")
    for i in range(count):
        memory.release_time[i] = state.expected_end[i]
        memory.release_hosts[i] = state.size[state.running[i]]
    return count


@kernel
def add_up_releases(state, memory, running):
    """How many hosts are free from each expected end on, into ``memory.freed``; seconds until the last of them."""
    free = state.nb_free
    for i in range(running):
        free += memory.release_hosts[i]
        memory.freed[i] = free
    return max(memory.release_time[running - 1] - state.now, 0.0) if running > 0 else 0.0


@kernel
def _delay(state, memory, running, size):
    """Seconds until so many hosts are free at the latest, if nothing else starts; inf if never."""
    if size <= state.nb_free:
        return 0.0
    # by bisection: `freed` ascends
    low, high = 0, running
    while low < high:
        middle = (low + high) >> 1
        if memory.freed[middle] >= size:
            high = middle
        else:
            low = middle + 1
    return max(memory.release_time[low] - state.now, 0.0) if low < running else np.inf


@kernel
def choose_by_score(state, memory, length, running, guarded, unit):
    """Put the jobs that start now into ``memory.chosen``; returns how many."""
    now, free, chosen = state.now, state.nb_free, 0
    # hosts are kept for a job that would have waited so long when it begins. Doubt is the mean of log(walltime / run
    # time): where users ask for too much, a reservation keeps hosts idle for nothing
    doubt = memory.overestimate / (memory.nb_over + _FEW)
    least_wait = (memory.weights[RESERVE_AFTER] + memory.weights[RESERVE_DOUBT] * doubt) * unit
    kept, shadow, extra, ends, sizes = False, np.inf, 0, memory.release_time, memory.release_hosts
    for i in range(length):
        job = memory.sorted[i]
        size, end = state.size[job], now + state.expected_runtime[job]
        if size > free:
            # one reservation at most, as EASY: for the first guarded job, or the first that would begin too late
            begin = np.inf if kept else max(enough_at(ends, sizes, running, free, size), now)
            if not kept and (i < guarded or begin - state.submit_time[job] >= least_wait):
                kept, shadow = True, begin
                extra = free_hosts_at(ends, sizes, running, free, shadow) - size
            continue
        if kept and end > shadow:  # it would still run then: on hosts that the reservation leaves over, or not at all
            if size > extra:
                continue
            extra -= size
        chosen = take(memory.chosen, chosen, job)
        insert_in_order(ends, sizes, running, end, size)
        running += 1
        free -= size
        if free == 0:
            break
    return chosen


class LearnedOrderPolicy(CompiledPolicy):
    """Schedules by the score.

    Args:
        weights: (P,).
        name: for messages.
        bound: whether wide jobs are guarded so early that they keep the bound on the longest wait (`late_jobs`).
    """

    needs_walltime = True
    entry = decide_by_score

    def __init__(self, weights: NDArray[np.float64], name: str = "learned", bound: bool = True) -> None:
        self.weights, self.name, self.bound = np.array(weights, np.float64), name, bound
        for weight, limits in _LIMITS.items():
            self.weights[weight] = np.clip(self.weights[weight], *limits)

    def memory_for(self, state: ClusterState, memory: LearnedMemory | None = None) -> LearnedMemory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        if memory is None:
            rollouts = new_rollouts(state, self.weights[JUDGE:SHORT_GUARD])
            parts = new_memory(state, _ROOM), new_regression(shared_habits(_HABITS)), rollouts
            memory = LearnedMemory(
                **{name: array for part in parts for name, array in part.arrays().items()},
                weights=self.weights,
                predicted=np.zeros(0),
                fixed=np.zeros(0),
                freed=np.zeros_like(parts[0].release_hosts),
                lag=np.zeros(LATE_CLASSES if self.bound else 0),
                late_since=np.zeros(0),
            )
            if not self.bound:
                memory.excuse = np.inf  # as when the weights were learned
        grown = cast(LearnedMemory, grown_memory(memory, state, _ROOM))
        jobs, known = len(state.size), len(grown.fixed)
        if known >= jobs:
            return grown
        columns = {"predicted": np.zeros(jobs), "fixed": np.zeros(jobs), "late_since": np.full(jobs, np.inf)}
        for name, column in columns.items():
            column[:known] = getattr(grown, name)
        return grown._replace(**columns)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


# --- The record ----------------------------------------------------------------------------------------------------


class LearnedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that scores are judged by."""

    jobs: Count = 2500  # of a sequence; no others come


class Learned(ParametricScheduler):
    """List scheduling by a score, with late reservations, a guard and rollouts.

    What is minimised is the mean of the logarithms of two ratios, of waiting times and of bounded slowdowns, to the
    better of WFP3's with EASY and with first-fit, under the guard ``auto``; what is worse counts three times.
    """

    name = "learned"
    summary = "list scheduling by a score, with late reservations, a guard and rollouts, for any number of hosts"
    Settings = LearnedSettings
    presets = ("learned",)
    sees = {"name": "learned", "version": 3}  # raised whenever a number changes its meaning
    weights = (NB_WEIGHTS,)
    added = 1  # SHORT_GUARD
    options = (
        OptionLine(
            BOUND_OPTION,
            "true",
            "",
            "guards wide jobs so early that none waits much longer than under EASY; false: not so",
        ),
    )
    model_summary = (
        "learned order, guarded, rollouts; for any number of hosts; the longest wait is at most 1.31 times EASY's in "
        "the median of a log's copies and 1.34 on each, on 12 logs (bound=false: 1.88 and 1.93)"
    )

    def episodes(self, settings: LearnedSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=min(settings.jobs, len(workload.jobs)), online=False)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Near what an evolution by `decision.papers.own.learned` came to."""
        weights = np.zeros(NB_WEIGHTS)
        for weight, value in _FIRST.items():
            weights[weight] = value
        return weights

    def policy(self, weights: NDArray[np.float64], name: str = "learned", **options: Any) -> LearnedOrderPolicy:
        """The policy that the weights make; the option is whether it keeps the bound."""
        return LearnedOrderPolicy(weights, name, read_value(name, BOUND_OPTION, options.get(BOUND_OPTION, True), bool))

    def references(self) -> list[NDArray[np.float64]]:
        """WFP3 with EASY and with first-fit, guarded, and without rollouts."""
        wfp3 = np.zeros(NB_WEIGHTS)
        wfp3[[SIZE, OFFSET, GUARD_AFTER, JUDGE + MARGIN]] = -1.0, -9.0, 1.2, 1.0
        references = [wfp3, wfp3.copy()]
        references[1][RESERVE_AFTER] = 1e9
        return references

    def cost(
        self,
        settings: LearnedSettings,
        own: Mapping[str, NDArray[np.float64]],
        references: Sequence[Mapping[str, NDArray[np.float64]]],
        done: float,
    ) -> float:
        """The mean over sequences and both metrics of the logarithm of the ratio to the better reference."""
        total = 0.0
        for metric in ("waiting_time", "bounded_slowdown"):
            best = np.minimum(references[0][metric], references[1][metric])
            ratio = np.log((own[metric] + 1) / (best + 1))
            total += float(np.where(ratio > 0, 3 * ratio, ratio).mean())
        return total / 2


register(Learned())
