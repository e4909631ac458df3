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

Where jobs used less than 60 % of the machine so far, and those that wait want at most twice its hosts, the queue is
over soon: age does not count there, and the smallest area comes first, hosts times the run time of rollouts.

So that the longest wait stays below 1.5 times EASY's, wide jobs are guarded before that where they would begin too late
(`late_jobs`), unless the option ``bound=false`` leaves that out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import bundle_at
from decision.compiling.jit import kernel
from decision.estimates.habits import shared_habits
from decision.estimates.regression import new_regression
from decision.model.errors import InternalError
from decision.model.workload import Workload
from decision.policies.allocation import take_lowest
from decision.policies.catalogue import OptionLine
from decision.policies.config import AUTO, Backfill, Order, PolicyConfig
from decision.policies.memory import grown_memory, new_memory
from decision.policies.options import read_value
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.policies.shadow import EXCUSE, longest_wait
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import START, add, clear

from .base import Episodes, ParametricScheduler
from .late_jobs import LATE_CLASSES, count_late_jobs, note_begin
from .learned_kernels import (
    AGE,
    FORESIGHT,
    GUARD_AFTER,
    JUDGE,
    NB_WEIGHTS,
    OFFSET,
    RESERVE_AFTER,
    RUNTIME,
    SHORT,
    SHORT_GUARD,
    SIZE,
    URGENCY,
    WALLTIME,
    LearnedMemory,
    add_up_releases,
    choose_by_score,
    count_guarded,
    guarded_after,
    is_by_arrival,
    note_arrivals,
    note_ends,
    sort_by_score,
)
from .registry import register
from .releases import smallest_waiting
from .rollout_outcomes import EXPONENT, LATE, MARGIN, SLOWNESS, TRUST
from .rollouts import best_start, new_rollouts
from .window import Count

_FIRST = {  # where learning begins; all others are 0
    **{RUNTIME: 1.2, WALLTIME: 1.4, SIZE: -0.3, OFFSET: -2.4, AGE: 24.0, URGENCY: -1.1},
    **{RESERVE_AFTER: 3.0, GUARD_AFTER: 1.38, SHORT: 5.0, SHORT_GUARD: 0.8},
    **{JUDGE + MARGIN: 0.03, JUDGE + TRUST: 0.46, JUDGE + LATE: 5.8, JUDGE + EXPONENT: 5.6, JUDGE + SLOWNESS: 1.1},
}
_ROOM = PolicyConfig(order=int(Order.WFP3), backfill=int(Backfill.EASY), guard=AUTO)  # what a memory needs room for
# by what evolution multiplies each weight's changes
SCALE = np.array([0.5, 0.5, 0.5, 1.0, 5.0, 1.5, 0.5, 0.3, 0.1, 0.3, 2.0, 0.02, 0.3, 2.0, 2.0, 0.5, 0.2])
_LEAST_SHORT = 3.0  # jobs: a machine that is nearly idle is to serve as FCFS does, without SHORT_GUARD
_LIMITS = {  # the longest wait is to stay below 1.5 units
    **{GUARD_AFTER: (1.0, 1.45), SHORT_GUARD: (0.0, 0.85), FORESIGHT: (0.0, 1.0), SHORT: (_LEAST_SHORT, np.inf)},
    **{JUDGE + MARGIN: (0.0, 1.0), JUDGE + TRUST: (0.0, 1.0)},
    **{JUDGE + EXPONENT: (1.0, 16.0), JUDGE + SLOWNESS: (0.0, 9.0)},
}
_LEAST_UNIT = 3600.0  # seconds
BOUND_OPTION = "bound"  # the option
_HABITS = 1 << 14  # rows, which users and their requests share: so many when the weights were learned


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
        bound: whether wide jobs are guarded so early that they keep the bound on the longest wait (`late_jobs`).
    """

    needs_walltime = True
    entry = _decide_learned

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
                doubt=np.zeros(3),
                predicted=np.zeros(0),
                fixed=np.zeros(0),
                freed=np.zeros_like(parts[0].release_hosts),
                lag=np.zeros(LATE_CLASSES if self.bound else 0),
                late_since=np.zeros(0),
            )
            if not self.bound:
                memory.shadow_time[:, EXCUSE] = np.inf  # as when the weights were learned
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


@kernel
def _decide(state, facts, memory, plan):
    clear(plan, state)
    note_ends(state, memory)
    note_arrivals(state, memory)
    longest = longest_wait(state, memory)
    if state.nb_free < smallest_waiting(state):
        return
    running, unit = _list_running(state, memory), max(longest, _LEAST_UNIT)
    drained = add_up_releases(state, memory, running)
    guarded = count_guarded(state, memory, running, drained, guarded_after(state, memory, longest, unit))
    guarded = count_late_jobs(state, memory, running, longest, guarded)
    length = sort_by_score(state, memory, running, drained, guarded, unit)
    chosen = choose_by_score(state, memory, length, running, guarded, unit)
    if not is_by_arrival(state, memory):
        running = _list_running(state, memory)  # without those that are chosen
        chosen = best_start(state, memory, length, chosen, running, guarded, unit)
    for i in range(chosen):
        job = memory.chosen[i]
        note_begin(state, memory, job)
        take_lowest(plan, add(plan, START, job), state.size[job])


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
