"""Learned order: list scheduling by a score, for any number of hosts, whose few numbers were learned by evolution.

Waiting jobs are looked at from the highest score to the lowest, and what fits starts. Hosts are kept, as EASY keeps
them for the first job of the queue, for the first job that does not fit and whose begin is near the longest wait that
FCFS with EASY would have had so far (`decision.policies.shadow`); a job that would then still run on hosts it needs
does not start. Behind this stands a guard (`decision.policies.guard`): a job that has waited for so many times that
longest wait gets a reservation that nothing delays. Nothing else is ever held back, and a short queue
is served as FCFS with EASY serves it: so on a machine that is nearly idle nobody waits who would not wait there.

The score of a job is

    3 log(wait / walltime + e^OFFSET) - RUNTIME log(walltime) - SIZE log(hosts) + AGE a + URGENCY max(a + d - 1, 0)

where a is its wait and d the time until its hosts are free at the latest, both in units of that longest wait (an hour
at least). WFP3 (Tang et al., Cluster 2009) is among these orders, and SJF, SAF and slowdown first are nearly. RUNTIME
and RESERVE are linear in how much users ask for too much: the mean logarithm of walltime over run time of the jobs that
have ended.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.jit import kernel
from decision.model.errors import InternalError
from decision.model.record import SHORTEST_RUNTIME
from decision.model.workload import Workload
from decision.policies.allocation import take_lowest
from decision.policies.backfill import take
from decision.policies.config import Backfill, Order, PolicyConfig
from decision.policies.conservative import take_due
from decision.policies.guard import ask_for_call, follow_guard, guard_call, is_harmless, reserve_guarded
from decision.policies.memory import (
    DOUBT,
    GUARDED,
    KEPT,
    LIMIT,
    N_OVER,
    N_SORTED,
    ORDERED,
    Memory,
    config_in,
    grown_memory,
    memory_at,
    new_memory,
    note_decision,
)
from decision.policies.order import drop_gone, sort_by_key
from decision.policies.plan_arrays import START, add, clear
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.policies.profile import add_free, earliest
from decision.state.cluster import N_ENDED, N_FREE, N_JOBS, N_QUEUED, N_RUNNING, QUEUED, ClusterState

from .base import Episodes, ParametricScheduler
from .registry import register
from .window import Count

# The weights
(
    RUNTIME,
    RUNTIME_DOUBT,  # what each unit of doubt adds to RUNTIME
    SIZE,
    OFFSET,
    AGE,
    URGENCY,
    RESERVE,  # hosts are kept for a job that would have waited for so long, in units of the longest wait
    RESERVE_DOUBT,  # what each unit of doubt adds to RESERVE
    GUARD,  # a job that has waited for so long, in the same units, is guarded
    NB_WEIGHTS,
) = range(10)

_SLOWDOWN = 3.0  # the scale of all scores
_LEAST_UNIT = 3600.0  # seconds
_LEAST_GUARD, _MOST_GUARD = 1.0, 1.42  # the longest wait is to stay below 1.5 units
_SHORT = 8  # jobs: a queue that is no longer is served as FCFS with EASY serves it
_FEW = 10  # jobs without doubt, as it were, that ended before the first one


@DECIDE.entry
def _decide_learned(state, facts, memory, plan):
    _decide(state, facts, memory_at(memory), plan)
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
        self.weights[GUARD] = np.clip(self.weights[GUARD], _LEAST_GUARD, _MOST_GUARD)
        self._config = PolicyConfig(
            order=int(Order.WFP3), backfill=int(Backfill.EASY), guard=-float(self.weights[GUARD])
        )  # for the room that such a policy needs

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        if memory is not None:
            return grown_memory(memory, state, self._config)
        return new_memory(state, self._config)._replace(weights=self.weights)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


@kernel
def _decide(state, facts, memory, plan):
    config = config_in(memory)
    clear(plan, state)
    guarded = follow_guard(state, config, memory)
    _note_ends(state, memory)
    if guarded == 0 and state.count[N_FREE] < _smallest(state):
        return
    running, unit = _list_running(state, memory), max(memory.times[LIMIT] / -config.guard, _LEAST_UNIT)
    length = _sort(state, memory, running, unit)
    if guarded > 0:
        chosen = _choose_guarded(state, facts, config, memory, length, guarded, running, unit)
    else:
        chosen = _choose(state, memory, length, running, unit)
    free = state.count[N_FREE]
    for i in range(chosen):
        job = memory.chosen[i]
        memory.reserved[job] = state.now[0]
        take_lowest(plan, add(plan, START, job), state.size[job])
        free -= state.size[job]
    call = guard_call(state, memory, guarded, chosen, free)
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


# --- What the score is made of -------------------------------------------------------------------------------------


@kernel
def _note_ends(state, memory):
    """Learn from the jobs that have ended how much users ask for too much."""
    for i in range(state.count[N_ENDED]):
        job = state.ended[i]
        runtime = max(state.end_time[job] - state.start_time[job], SHORTEST_RUNTIME)
        memory.times[DOUBT] += max(math.log(state.walltime[job] / runtime), 0.0)
        memory.counts[N_OVER] += 1


@kernel
def _doubt(memory):
    return memory.times[DOUBT] / (memory.counts[N_OVER] + _FEW)


@kernel
def _smallest(state):
    """Hosts of the smallest waiting job; more than there are, if none waits."""
    smallest = len(state.host_state) + 1
    for i in range(state.count[N_QUEUED]):
        smallest = min(smallest, state.size[state.queue[i]])
    return smallest


@kernel
def _sort(state, memory, running, unit):
    """Bring ``memory.sorted`` up to date, the highest score first, ties by arrival; returns its length."""
    length = drop_gone(memory.sorted, memory.counts[N_SORTED], state.job_state)
    for job in range(memory.counts[ORDERED], state.count[N_JOBS]):
        if state.job_state[job] == QUEUED:
            memory.sorted[length] = job
            length += 1
    memory.counts[ORDERED] = state.count[N_JOBS]
    memory.counts[N_SORTED] = length
    _score_all(state, memory, length, running, unit)
    sort_by_key(memory.sorted, memory.spare, memory.key, 1, length)
    return length


@kernel
def _score_all(state, memory, length, running, unit):
    """Minus the score of each waiting job into ``memory.key``."""
    now, weights = state.now[0], memory.weights
    by_runtime = weights[RUNTIME] + weights[RUNTIME_DOUBT] * _doubt(memory)
    offset, drained = math.exp(weights[OFFSET]), _add_up_releases(state, memory, running)
    for i in range(length):
        job = memory.sorted[i]
        wait, size = now - state.submit_time[job], state.size[job]
        walltime = max(state.walltime[job], SHORTEST_RUNTIME)
        score = _SLOWDOWN * math.log(wait / walltime + offset) + weights[AGE] * wait / unit
        score -= by_runtime * math.log(walltime) + weights[SIZE] * math.log(size)
        if wait + drained > unit:
            begin = _delay(state, memory, running, size)
            score += weights[URGENCY] * max((wait + min(begin, drained)) / unit - 1.0, 0.0)
        memory.key[job] = -score if length > _SHORT else job


@kernel
def _add_up_releases(state, memory, running):
    """How many hosts are free from each expected end on, into ``memory.spare``; seconds until the last of them."""
    free = state.count[N_FREE]
    for i in range(running):
        free += memory.release_hosts[i]
        memory.spare[i] = free
    return memory.release_time[running - 1] - state.now[0] if running > 0 else 0.0


@kernel
def _delay(state, memory, running, size):
    """Seconds until so many hosts are free at the latest, if nothing else starts; inf if never."""
    if size <= state.count[N_FREE]:
        return 0.0
    low, high = 0, running
    while low < high:
        middle = (low + high) >> 1
        if memory.spare[middle] >= size:
            high = middle
        else:
            low = middle + 1
    return max(memory.release_time[low] - state.now[0], 0.0) if low < running else np.inf


# --- Who starts ----------------------------------------------------------------------------------------------------


@kernel
def _choose(state, memory, length, running, unit):
    """Put the jobs that start now into ``memory.chosen``, no job being guarded; returns how many."""
    now, free, chosen = state.now[0], state.count[N_FREE], 0
    kept, shadow, extra = False, np.inf, 0
    for i in range(length):
        job = memory.sorted[i]
        size, end = state.size[job], now + state.walltime[job]
        if size > free:
            begin = np.inf if kept else _begin(memory, running, free, size, now)
            if not kept and _is_reserved(state, memory, job, begin, unit):
                kept, shadow = True, begin
                extra = _free_at(memory, running, free, shadow) - size
            continue
        if kept and end > shadow:
            if size > extra:
                continue
            extra -= size
        chosen = take(memory.chosen, chosen, job)
        running = _note_start(memory, running, end, size)
        free -= size
        if free == 0:
            break
    return chosen


@kernel
def _choose_guarded(state, facts, config, memory, length, guarded, running, unit):
    """As `_choose`, where the first so many jobs of the state's queue are guarded; where one waits, it is the first."""
    reserve_guarded(state, facts, config, memory, guarded)
    chosen = take_due(state, memory, state.queue, guarded)
    kept = chosen < guarded
    memory.counts[KEPT] = kept
    now, free = state.now[0], state.count[N_FREE]
    for i in range(chosen):
        free -= state.size[memory.chosen[i]]
    for i in range(length):
        job = memory.sorted[i]
        if free == 0:
            break
        if job < memory.counts[GUARDED]:
            continue
        size, walltime = state.size[job], state.walltime[job]
        if size <= free and is_harmless(state, memory, job):
            chosen = take(memory.chosen, chosen, job)
            add_free(memory, now, now + walltime, -size)
            free -= size
        elif not kept and _is_reserved(state, memory, job, _begin(memory, running, free, size, now), unit):
            begin = earliest(memory, size, walltime)
            add_free(memory, begin, begin + walltime, -size)
            kept = True
    note_decision(state, memory, chosen)
    return chosen


@kernel
def _is_reserved(state, memory, job, begin, unit):
    """Whether hosts are kept for a job that could begin at `begin` (seconds)."""
    if state.count[N_QUEUED] <= _SHORT:
        return True
    least = memory.weights[RESERVE] + memory.weights[RESERVE_DOUBT] * _doubt(memory)
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


@kernel
def _note_start(memory, running, end, size):
    at = running
    while at > 0 and memory.release_time[at - 1] > end:
        memory.release_time[at] = memory.release_time[at - 1]
        memory.release_hosts[at] = memory.release_hosts[at - 1]
        at -= 1
    memory.release_time[at] = end
    memory.release_hosts[at] = size
    return running + 1


@kernel
def _begin(memory, running, free, size, now):
    """When (seconds) so many hosts are free at the latest, if nothing else starts; inf if never."""
    begin = now
    for i in range(running):
        if free >= size:
            break
        free += memory.release_hosts[i]
        begin = memory.release_time[i]
    return max(begin, now) if free >= size else np.inf


@kernel
def _free_at(memory, running, free, time):
    for i in range(running):
        if memory.release_time[i] > time:
            break
        free += memory.release_hosts[i]
    return free


# --- The record ----------------------------------------------------------------------------------------------------


class LearnedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that scores are judged by."""

    jobs: Count = 2500  # of a sequence; no others come


class Learned(ParametricScheduler):
    """List scheduling by a score, with late reservations and a guard.

    What is minimised is the mean of the logarithms of two ratios, of waiting times and of bounded slowdowns, to the
    better of WFP3's with EASY and with first-fit, under the guard ``auto``; what is worse counts three times.
    """

    name = "learned"
    summary = "list scheduling by a score, with late reservations and a guard, for any number of hosts"
    Settings = LearnedSettings
    presets = ("learned",)
    sees = {"name": "learned", "version": 1}  # raised whenever a number changes its meaning
    weights = (NB_WEIGHTS,)
    model_summary = "learned order, late reservations, guarded; for any number of hosts"

    def episodes(self, settings: LearnedSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=min(settings.jobs, len(workload.jobs)), online=False)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """WFP3 with EASY, but that age and urgency count a little."""
        weights = np.zeros(NB_WEIGHTS)
        weights[[SIZE, OFFSET, URGENCY, RESERVE, RESERVE_DOUBT, GUARD]] = -0.6, -2.5, 3.0, -0.4, 0.4, 1.25
        return weights

    def policy(self, weights: NDArray[np.float64], name: str = "learned") -> LearnedOrderPolicy:
        """The policy that the weights make."""
        return LearnedOrderPolicy(weights, name)

    def references(self) -> list[NDArray[np.float64]]:
        """WFP3 with EASY and with first-fit, guarded."""
        wfp3 = np.zeros(NB_WEIGHTS)
        wfp3[[SIZE, OFFSET, GUARD]] = -1.0, -9.0, 1.2
        references = [wfp3, wfp3.copy()]
        references[1][RESERVE] = 1e9
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
