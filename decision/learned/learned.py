"""Learned order: list scheduling by a score, for any number of hosts, whose few numbers were learned by evolution.

Waiting jobs are looked at from the highest score to the lowest, and what fits starts. Hosts are kept, as EASY keeps
them for the first job of the queue, for the first job that does not fit and would have waited for long when it begins,
by the walltimes of the jobs that run; a job that would then still run on hosts it needs does not start. What is long is
measured by the longest wait so far that the same jobs would have under FCFS with EASY (`decision.policies.shadow`); it
is later where users ask for too much time, because such a reservation keeps hosts idle. A job that has waited for so
many times that longest wait comes first, with all that were submitted before it, in order of submission, and hosts are
kept for the first that does not fit: they are served as FCFS with EASY serves a queue. Where the queue is short this
begins sooner, for it costs little there, and at once on a nearly idle machine. Nothing else is ever held back. What
would start so is one of several sets of jobs, and the one starts that rollouts find best (`decision.learned.rollouts`).

The score of a job is

    3 log(wait / p + e^OFFSET) - RUNTIME log(p) - WALLTIME log(walltime) - SIZE log(hosts)
        + AGE a + URGENCY max(a + d - 1, 0)

where p is its run time as predicted when it came (`decision.estimates.regression`), a is its wait and d the time until
its hosts are free at the latest, both in units of that longest wait (an hour at least). WFP3 (Tang et al., Cluster
2009) is nearly among these orders, and so are SJF and SAF. Where AGE is large, jobs are in order of a deadline: that of
a job which takes e times as long is later by a fixed share of the longest wait.
"""

import math
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, bundle_at
from decision.compiling.jit import kernel
from decision.compiling.ordered import insert_in_order
from decision.estimates.habits import shared_habits
from decision.estimates.regression import RegressionMemory, learn_end, new_regression, predict
from decision.model.dates import DAY
from decision.model.errors import InternalError
from decision.model.record import SHORTEST_RUNTIME
from decision.model.workload import Workload
from decision.policies.allocation import take_lowest
from decision.policies.backfill import take
from decision.policies.capacity import TOLERANCE
from decision.policies.config import AUTO, Backfill, Order, PolicyConfig
from decision.policies.guard import note_guarded
from decision.policies.memory import GUARDED, N_SORTED, ORDERED, Memory, grown_memory, new_memory
from decision.policies.order import drop_gone, sort_by_key
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.policies.shadow import EXCUSE, longest_wait
from decision.state.cluster import N_ENDED, N_FREE, N_JOBS, N_QUEUED, N_RUNNING, QUEUED, ClusterState
from decision.state.plan_arrays import START, add, clear

from .base import Episodes, ParametricScheduler
from .registry import register
from .releases import enough_at, free_hosts_at, smallest_waiting
from .rollouts import (
    EXPONENT,
    LATE,
    MARGIN,
    NB_JUDGE,
    SLOWNESS,
    TRUST,
    Rollouts,
    best_start,
    new_rollouts,
    note_job_end,
)
from .window import Count

# The weights
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
SHORT_GUARD = JUDGE + NB_JUDGE  # GUARD_AFTER of a short queue; 0: that is in order of arrival, without rollouts
NB_WEIGHTS = SHORT_GUARD + 1

_FIRST = {  # where learning begins; all others are 0
    **{RUNTIME: 1.2, WALLTIME: 1.4, SIZE: -0.3, OFFSET: -2.4, AGE: 24.0, URGENCY: -1.1},
    **{RESERVE_AFTER: 3.0, GUARD_AFTER: 1.38, SHORT: 5.0, SHORT_GUARD: 0.8},
    **{JUDGE + MARGIN: 0.03, JUDGE + TRUST: 0.46, JUDGE + LATE: 5.8, JUDGE + EXPONENT: 5.6, JUDGE + SLOWNESS: 1.1},
}
_ROOM = PolicyConfig(order=int(Order.WFP3), backfill=int(Backfill.EASY), guard=AUTO)  # what a memory needs room for
# by what evolution multiplies each weight's changes
SCALE = np.array([0.5, 0.5, 0.5, 1.0, 5.0, 1.5, 0.5, 0.3, 0.1, 0.3, 2.0, 0.02, 0.3, 2.0, 2.0, 0.5, 0.2])
_IDLE = 0.02  # of the hosts' time but for a week: a machine of which less was used is nearly idle
_LEAST_SHORT = 3.0  # jobs: a machine that is nearly idle is to serve as FCFS does, without SHORT_GUARD
_LIMITS = {  # the longest wait is to stay below 1.5 units
    **{GUARD_AFTER: (1.0, 1.45), SHORT_GUARD: (0.0, 0.85), FORESIGHT: (0.0, 1.0), SHORT: (_LEAST_SHORT, np.inf)},
    **{JUDGE + MARGIN: (0.0, 1.0), JUDGE + TRUST: (0.0, 1.0)},
    **{JUDGE + EXPONENT: (1.0, 16.0), JUDGE + SLOWNESS: (0.0, 9.0)},
}
_SLOWDOWN = 3.0  # the scale of all scores
_LEAST_UNIT = 3600.0  # seconds
_HABITS = 1 << 14  # rows, which users and their requests share: so many when the weights were learned
_FEW = 10  # jobs without doubt, as it were, that ended before the first one

# LearnedMemory.doubt, over the jobs that have ended
_SUM = 0  # of the logarithm of walltime over run time
_ENDED = 1  # jobs
_USED = 2  # host-seconds


class LearnedMemory(Memory, RegressionMemory, Rollouts):
    """The guard's and the predictor's memory, and what is known of each job."""

    weights: F8  # (P,)
    doubt: F8  # (3,)
    predicted: F8  # (J,) seconds: run times
    fixed: F8  # (J,) what of a score does not change
    freed: I4  # (2H + 1,) hosts that are free from each expected end on


_memory_at = bundle_at(LearnedMemory)


@DECIDE.entry
def _decide_learned(state, facts, memory, plan):
    _decide(state, facts, _memory_at(memory), plan)
    return DECIDED


class LearnedOrderPolicy(CompiledPolicy):
    """Schedules by the score.

    Args:
        weights: (P,).
        name: for messages.
    """

    needs_walltime = True
    entry = _decide_learned

    def __init__(self, weights: NDArray[np.float64], name: str = "learned") -> None:
        self.weights, self.name = np.array(weights, np.float64), name
        for weight, limits in _LIMITS.items():
            self.weights[weight] = np.clip(self.weights[weight], *limits)

    def memory_for(self, state: ClusterState, memory: LearnedMemory | None = None) -> LearnedMemory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        if memory is None:
            rollouts = new_rollouts(state, self.weights[JUDGE:SHORT_GUARD])
            parts = new_memory(state, _ROOM), new_regression(shared_habits(_HABITS)), rollouts
            memory = LearnedMemory(
                **{name: getattr(part, name) for part in parts for name in part._fields},
                weights=self.weights,
                doubt=np.zeros(3),
                predicted=np.zeros(0),
                fixed=np.zeros(0),
                freed=np.zeros_like(parts[0].release_hosts),
            )
            memory.shadow_time[:, EXCUSE] = np.inf  # as when the weights were learned
        grown = cast(LearnedMemory, grown_memory(memory, state, _ROOM))
        jobs, known = len(state.size), len(grown.fixed)
        if known >= jobs:
            return grown
        columns = {"predicted": np.zeros(jobs), "fixed": np.zeros(jobs)}
        for name, column in columns.items():
            column[:known] = getattr(grown, name)
        return grown._replace(**columns)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


@kernel
def _decide(state, facts, memory, plan):
    clear(plan, state)
    _note_ends(state, memory)
    _note_arrivals(state, memory)
    longest = longest_wait(state, memory)
    if state.count[N_FREE] < smallest_waiting(state):
        return
    running, unit = _list_running(state, memory), max(longest, _LEAST_UNIT)
    drained = _add_up_releases(state, memory, running)
    guarded = _count_guarded(state, memory, running, drained, _guarded_after(state, memory, longest, unit))
    length = _sort(state, memory, running, drained, guarded, unit)
    chosen = _choose(state, memory, length, running, guarded, unit)
    if not _by_arrival(state, memory):
        running = _list_running(state, memory)  # without those that are chosen
        chosen = best_start(state, memory, length, chosen, running, guarded, unit)
    for i in range(chosen):
        job = memory.chosen[i]
        take_lowest(plan, add(plan, START, job), state.size[job])


# --- What the score is made of -------------------------------------------------------------------------------------


@kernel
def _note_ends(state, memory):
    """Learn from the jobs that have ended how long jobs run, and how much users ask for too much."""
    for i in range(state.count[N_ENDED]):
        job = state.ended[i]
        walltime, runtime = state.walltime[job], state.end_time[job] - state.start_time[job]
        learn_end(memory, state.user[job], state.size[job], walltime, state.submit_time[job], runtime)
        memory.doubt[_SUM] += max(math.log(walltime / max(runtime, SHORTEST_RUNTIME)), 0.0)
        memory.doubt[_ENDED] += 1.0
        memory.doubt[_USED] += runtime * state.size[job]
        note_job_end(state, memory, job)


@kernel
def _note_arrivals(state, memory):
    """Predict the run times of the jobs that have come."""
    weights, length = memory.weights, memory.counts[N_SORTED]
    for job in range(memory.counts[ORDERED], state.count[N_JOBS]):
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
    memory.counts[ORDERED] = state.count[N_JOBS]
    memory.counts[N_SORTED] = length


@kernel
def _guarded_after(state, memory, longest, unit):
    """For how long (seconds) jobs wait before they are guarded: less in a short queue, where that costs little."""
    limit = memory.weights[GUARD_AFTER] * longest
    if memory.weights[SHORT_GUARD] > 0.0 and _is_short(state, memory):
        early = 0.0 if _is_nearly_idle(state, memory) else memory.weights[SHORT_GUARD] * unit
        return min(limit, early)
    return limit


@kernel
def _is_nearly_idle(state, memory):
    """Whether so little was used that FCFS with EASY keeps nobody waiting who need not."""
    return memory.doubt[_USED] < _IDLE * len(state.host_state) * (state.now[0] - 7 * DAY)


@kernel
def _is_short(state, memory):
    return state.count[N_QUEUED] <= memory.weights[SHORT]


@kernel
def _by_arrival(state, memory):
    return memory.weights[SHORT_GUARD] == 0.0 and _is_short(state, memory)


@kernel
def _count_guarded(state, memory, running, drained, limit):
    """How many jobs are guarded, which are the first of the queue: those that wait for `limit` seconds."""
    share, count, now, queue = memory.weights[FORESIGHT], 0, state.now[0], state.queue
    for i in range(state.count[N_QUEUED]):
        job = queue[i]
        wait = now - state.submit_time[job]
        if job >= memory.counts[GUARDED] and wait + share * drained < limit - TOLERANCE:
            break
        delay = min(_delay(state, memory, running, state.size[job]), drained)
        if job < memory.counts[GUARDED] or wait + share * delay >= limit - TOLERANCE:
            count = i + 1
    return note_guarded(memory, queue, count)


@kernel
def _doubt(memory):
    return memory.doubt[_SUM] / (memory.doubt[_ENDED] + _FEW)


@kernel
def _sort(state, memory, running, drained, guarded, unit):
    """Bring ``memory.sorted`` up to date, guarded jobs first, then the highest score, ties by arrival; its length."""
    length = drop_gone(memory.sorted, memory.counts[N_SORTED], state.job_state)
    memory.counts[N_SORTED] = length
    _score_all(state, memory, length, running, drained, unit)
    for i in range(guarded):
        memory.key[state.queue[i]] = -np.inf
    sort_by_key(memory.sorted, memory.spare, memory.key, 1, length)
    return length


@kernel
def _score_all(state, memory, length, running, drained, unit):
    """Minus the score of each waiting job into ``memory.key``."""
    now, weights, by_arrival = state.now[0], memory.weights, _by_arrival(state, memory)
    offset = math.exp(weights[OFFSET])
    for i in range(length):
        job = memory.sorted[i]
        wait = now - state.submit_time[job]
        score = _SLOWDOWN * math.log(wait / memory.predicted[job] + offset) + weights[AGE] * wait / unit
        score -= memory.fixed[job]
        if wait + drained > unit:
            begin = _delay(state, memory, running, state.size[job])
            score += weights[URGENCY] * max((wait + min(begin, drained)) / unit - 1.0, 0.0)
        memory.key[job] = job if by_arrival else -score


@kernel
def _add_up_releases(state, memory, running):
    """How many hosts are free from each expected end on, into ``memory.freed``; seconds until the last of them."""
    free = state.count[N_FREE]
    for i in range(running):
        free += memory.release_hosts[i]
        memory.freed[i] = free
    return max(memory.release_time[running - 1] - state.now[0], 0.0) if running > 0 else 0.0


@kernel
def _delay(state, memory, running, size):
    """Seconds until so many hosts are free at the latest, if nothing else starts; inf if never."""
    if size <= state.count[N_FREE]:
        return 0.0
    low, high = 0, running
    while low < high:
        middle = (low + high) >> 1
        if memory.freed[middle] >= size:
            high = middle
        else:
            low = middle + 1
    return max(memory.release_time[low] - state.now[0], 0.0) if low < running else np.inf


# --- Who starts ----------------------------------------------------------------------------------------------------


@kernel
def _choose(state, memory, length, running, guarded, unit):
    """Put the jobs that start now into ``memory.chosen``; returns how many."""
    now, free, chosen = state.now[0], state.count[N_FREE], 0
    kept, shadow, extra, ends, sizes = False, np.inf, 0, memory.release_time, memory.release_hosts
    for i in range(length):
        job = memory.sorted[i]
        size, end = state.size[job], now + state.expected_runtime[job]
        if size > free:
            begin = np.inf if kept else max(enough_at(ends, sizes, running, free, size), now)
            if not kept and (i < guarded or _is_reserved(state, memory, job, begin, unit)):
                kept, shadow = True, begin
                extra = free_hosts_at(ends, sizes, running, free, shadow) - size
            continue
        if kept and end > shadow:
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


@kernel
def _is_reserved(state, memory, job, begin, unit):
    """Whether hosts are kept for a job that could begin at `begin` (seconds)."""
    least = memory.weights[RESERVE_AFTER] + memory.weights[RESERVE_DOUBT] * _doubt(memory)
    return begin - state.submit_time[job] >= least * unit


@kernel
def _list_running(state, memory):
    """Write ends and sizes of the jobs that run, by expected end; returns how many there are."""
    count = state.count[N_RUNNING]
    if count + state.count[N_FREE] > len(memory.release_time):
        raise InternalError("the policy's memory has no room for the jobs that run")
    for i in range(count):
        memory.release_time[i] = state.expected_end[i]
        memory.release_hosts[i] = state.size[state.running[i]]
    return count


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
    model_summary = (
        "learned order, guarded, rollouts; for any number of hosts; keeps one job waiting up to "
        "2.01 times as long as EASY on a small cluster (grid5000), with guard=1.5x 1.4 times"
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

    def policy(self, weights: NDArray[np.float64], name: str = "learned") -> LearnedOrderPolicy:
        """The policy that the weights make."""
        return LearnedOrderPolicy(weights, name)

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
