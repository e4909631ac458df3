"""Timetable: which jobs get the hosts of each step to come, by value, deadline and what power is expected.

A job is worth something only if it ends in time, and it may be suspended and go on later. So at each decision all jobs,
those that run and those that wait, are laid into a timetable of the steps of the forecast, from the highest score on:
each needs as many steps before its deadline as it still runs, in which there is power for its hosts, and takes the last
ones that there are; one that finds too few is left out. A second score is the logarithm of what a host-second of a job
is worth now: it is higher for jobs that are in the timetable, and for those of them that need the present step. Those
run that are worth most together (a knapsack, solved exactly, of the jobs with the highest scores). Jobs that run and
are not among them are suspended where others need their hosts, which start in the next decision, at the same instant.

The first score is linear in a few numbers of a job, the second has a few units a / (1 + |a|) (softsign) more; how far
forecasts are trusted is learned, too. Learning begins with the value per host-second left as both: `first_weights`.
"""

import math
from collections.abc import Sequence
from enum import IntEnum

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, I8, Bundle, Float, I1x2, bundle_at
from decision.compiling.jit import kernel
from decision.model.workload import Workload
from decision.policies.allocation import take_lowest
from decision.policies.order import sort_by_key
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.policies.profile import TOLERANCE
from decision.state.cluster import QUEUED, ClusterState, nb_hosts
from decision.state.plan_arrays import CALL_AT, START, SUSPEND, add, clear
from decision.state.transitions import spare_power

from .base import Episodes, Measured, ParametricScheduler, jobs_in_a_row, register
from .window import Count


class TableNumber(IntEnum):
    """Numbers of a job that scores are linear in."""

    DENSITY = 0  # logarithm of its value per host-second left
    LEFT = 1  # logarithm of the steps that it still runs
    SIZE = 2  # logarithm of its share of the hosts that have power
    LAXITY = 3  # steps that it can still wait, from 0 to 1
    URGENT = 4  # 1 where it can wait for less than a step
    RUNS = 5  # 1 where it runs
    DONE = 6  # share that is done
    POWER = 7  # mean power in the steps that it needs next, of the present


NB_TABLE_SEEN = len(TableNumber)


class TableWeight(IntEnum):
    """Where which weights begin; first are those of the first score, one for each number."""

    SECOND = NB_TABLE_SEEN  # score: one for each number
    TRUST = 2 * NB_TABLE_SEEN  # how much of the power that is expected is not counted on, by step
    PLACED = TRUST + 1  # second score of jobs that are in the timetable
    PRESENT = PLACED + 1  # second score of those that need the present step
    STAYS = PRESENT + 1  # second score of jobs that run
    UNITS = STAYS + 1  # of the second score: weights of each number, a constant, and the unit's own


NB_TABLE_UNITS = 3
NB_TABLE_UNIT = NB_TABLE_SEEN + 2  # weights of a unit
NB_TABLE_WEIGHTS = TableWeight.UNITS + NB_TABLE_UNITS * NB_TABLE_UNIT
_STEP = 60.0  # seconds: of Launchpad's environment, and of its forecasts
TABLE_STEPS = 24  # of the timetable
MOST_TABLE_JOBS = 128  # jobs of the knapsack, those of the highest second scores: it takes time by jobs times hosts


class TimetableMemory(Bundle):
    """The weights, and room for a decision. J jobs."""

    weights: F8  # (NB_TABLE_WEIGHTS,)
    since: Float = -np.inf  # seconds: when jobs were last suspended; once an instant is enough
    power: F8  # (TABLE_STEPS,) hosts that are left in each step
    seen: F8  # (NB_TABLE_SEEN,)
    jobs: I4  # (J,) those that run and wait
    spare: I4  # (J,) scratch
    key: F8  # (J,) minus the score, by job
    second: F8  # (J,) minus the second score, by job
    chosen: I8  # (J,) 1 where the job is to run now
    best_value: F8  # (H + 1,) the highest value of jobs on so many hosts together
    taken: I1x2  # (MOST_TABLE_JOBS, H + 1) whether the job is among those that have it


_memory_at = bundle_at(TimetableMemory)


@DECIDE.entry
def decide_by_timetable(state, facts, memory, plan):
    """Decide by the timetable, always with a plan."""
    clear(plan, state)
    own = _memory_at(memory)
    # suspensions of this instant first: Batsim frees the hosts, and asks again
    for i in range(state.nb_running):
        if state.suspended[state.running[i]]:
            return DECIDED  # their hosts are not free yet
    if state.nb_queued == 0:
        return DECIDED
    jobs = 0
    for i in range(state.nb_running):
        own.jobs[jobs] = state.running[i]
        jobs += 1
    for i in range(state.nb_queued):
        own.jobs[jobs] = state.queue[i]
        jobs += 1
    # how many hosts have power in each step
    known, trust = state.nb_forecast, abs(own.weights[TableWeight.TRUST])
    own.power[0] = state.supply
    for step in range(1, TABLE_STEPS):
        hosts = state.supply if known == 0 else np.int64(state.forecast[min(step, known) - 1])
        # a forecast says less the further ahead it looks: what is not counted on grows as a random walk spreads
        own.power[step] = hosts * (1.0 - min(trust * math.sqrt(step), 1.0))
    _score_all(state, own, jobs)
    sort_by_key(own.jobs, own.spare, own.key, 1, jobs)
    # first the timetable, by the first score: it raises the second score of those that it has room for
    for i in range(jobs):
        _enter(state, own, own.jobs[i])
    # then who runs, by the second
    sort_by_key(own.jobs, own.spare, own.second, 1, jobs)
    _choose(state, own, jobs)
    _carry_out(state, plan, own, jobs)
    # each step is a decision point; one in the next second would only be this one again, by rounding
    due = (np.floor((state.now + TOLERANCE) / _STEP) + 1.0) * _STEP
    plan.time[add(plan, CALL_AT, -1)] = max(due, state.now + 1.0)
    return DECIDED


@kernel
def _steps_of(seconds):
    """Steps that so many seconds take."""
    return max(np.int64(np.ceil(seconds / _STEP - 1e-6)), 1)  # not one more by rounding


@kernel
def _left_of(state, job):
    """Seconds that a job is expected to run on."""
    expected = state.expected[job] if state.expected[job] > 0.0 else state.walltime[job]
    if state.job_state[job] != QUEUED:
        expected -= state.now - state.start_time[job]
    return max(expected, 1.0)


@kernel
def _steps_until_deadline(state, job):
    """Steps that are left before the deadline, as many as the timetable has at most."""
    if state.deadline[job] == 0.0:
        return TABLE_STEPS
    left = (state.deadline[job] - state.now) / _STEP
    return np.int64(max(min(np.floor(left + 1e-6), TABLE_STEPS), 0))


@kernel
def _score_all(state, memory, jobs):
    """Minus both scores of each job; without what the timetable adds to the second."""
    weights = memory.weights
    for i in range(jobs):
        job = memory.jobs[i]
        _see(state, memory, job)
        # the first score is linear: a ranking needs no more; the second is compared with itself, and has units, too
        first = second = 0.0
        for k in range(NB_TABLE_SEEN):
            first += weights[k] * memory.seen[k]
            second += weights[TableWeight.SECOND + k] * memory.seen[k]
        memory.key[job] = -first
        for begin in range(TableWeight.UNITS, NB_TABLE_WEIGHTS, NB_TABLE_UNIT):
            unit = weights[begin + NB_TABLE_SEEN]
            for k in range(NB_TABLE_SEEN):
                unit += weights[begin + k] * memory.seen[k]
            second += weights[begin + NB_TABLE_SEEN + 1] * unit / (1.0 + abs(unit))
        memory.second[job] = -second - abs(weights[TableWeight.STAYS]) * memory.seen[TableNumber.RUNS]
        memory.chosen[job] = 0


@kernel
def _see(state, memory, job):
    """Write the numbers that a job's scores are computed from."""
    seen, left = memory.seen, _left_of(state, job)
    steps, until = _steps_of(left), _steps_until_deadline(state, job)
    # what is left of a suspended job is a job of its own; the whole one is the one that it came from
    first = state.origin[job] if state.nth_rest[job] > 0 else job
    whole = state.expected[first] if state.expected[first] > 0.0 else state.walltime[first]
    power = 0.0
    for step in range(min(steps, TABLE_STEPS)):
        power += memory.power[step]
    seen[TableNumber.DENSITY] = math.log(max(state.value[job], 1e-9) / (state.size[job] * left))
    seen[TableNumber.LEFT] = math.log(steps)
    seen[TableNumber.SIZE] = math.log(state.size[job] / max(memory.power[0], 1.0))
    seen[TableNumber.LAXITY] = max(until - steps, 0) / TABLE_STEPS
    seen[TableNumber.URGENT] = until <= steps
    seen[TableNumber.RUNS] = state.job_state[job] != QUEUED
    seen[TableNumber.DONE] = max(1.0 - left / whole, 0.0)
    seen[TableNumber.POWER] = power / min(steps, TABLE_STEPS) / max(memory.power[0], 1.0)


@kernel
def _enter(state, memory, job):
    """Lay a job into the last steps before its deadline that have power for it."""
    power, size, steps = memory.power, state.size[job], _steps_of(_left_of(state, job))
    until = max(_steps_until_deadline(state, job), min(steps, TABLE_STEPS))
    need, powered = min(steps, TABLE_STEPS), 0
    for step in range(until):
        powered += power[step] >= size
    if powered < need:
        return  # it cannot end in time: it is worth nothing, and takes no power from others
    # the last steps, so that the early ones stay free for jobs that cannot wait
    step = until - 1
    while need > 0:
        if power[step] >= size:
            power[step] -= size
            need -= 1
        step -= 1
    memory.second[job] -= abs(memory.weights[TableWeight.PLACED])
    if step < 0:  # it goes down to the present step: it cannot wait
        memory.second[job] -= abs(memory.weights[TableWeight.PRESENT])


@kernel
def _choose(state, memory, jobs):
    """Let those run now that are worth most together, of those that there is power for."""
    left, best, taken, count = state.supply, memory.best_value, memory.taken, min(jobs, MOST_TABLE_JOBS)
    # a knapsack by hosts, job after job: the best value of the jobs so far on at most so many hosts
    best[: left + 1] = 0.0
    for i in range(count):
        job = memory.jobs[i]
        # exp of +-30 is as good as none or all, and finite whatever the weights are
        size, gain = state.size[job], state.size[job] * math.exp(min(max(-memory.second[job], -30.0), 30.0))
        taken[i, : left + 1] = 0
        for hosts in range(left, size - 1, -1):  # downwards: each job is taken once
            if best[hosts - size] + gain > best[hosts]:
                best[hosts] = best[hosts - size] + gain
                taken[i, hosts] = 1
    # and back from the last job: who is among those that have the best value
    for i in range(count - 1, -1, -1):
        job = memory.jobs[i]
        if taken[i, left]:
            memory.chosen[job] = 1
            left -= state.size[job]


@kernel
def _carry_out(state, plan, memory, jobs):
    """Start chosen jobs that wait; where hosts are missing, suspend those first that run and are not chosen."""
    free, wanted = min(np.int64(state.nb_free), spare_power(state)), 0
    for i in range(jobs):
        job = memory.jobs[i]
        if memory.chosen[job] and state.job_state[job] == QUEUED:
            wanted += state.size[job]
    # from the lowest second score on, and once an instant: the next decision, at this instant, sees their hosts free
    if wanted > free and memory.since != state.now:
        i = jobs - 1
        while i >= 0 and wanted > free:
            job = memory.jobs[i]
            if memory.chosen[job] == 0 and state.job_state[job] != QUEUED:
                add(plan, SUSPEND, job)
                free += state.size[job]
                memory.since = state.now
            i -= 1
        if plan.nb_actions > 0:
            return
    for i in range(jobs):
        job = memory.jobs[i]
        if memory.chosen[job] and state.job_state[job] == QUEUED and state.size[job] <= free:
            take_lowest(plan, add(plan, START, job), state.size[job])
            free -= state.size[job]


# --- The record ----------------------------------------------------------------------------------------------------


class TimetablePolicy(CompiledPolicy):
    """Schedules by a timetable.

    Args:
        weights: (NB_TABLE_WEIGHTS,)
        name: for messages.
    """

    entry = decide_by_timetable
    suspends = True
    needs_value = True

    def __init__(self, weights: NDArray[np.float64], name: str = "timetable") -> None:
        self.weights, self.name = np.ascontiguousarray(weights, np.float64), name

    def memory_for(self, state: ClusterState, memory: TimetableMemory | None = None) -> TimetableMemory:
        """`memory` with room for every job of `state`."""
        jobs = len(state.size)
        if memory is not None and len(memory.key) >= jobs:
            return memory
        return TimetableMemory(
            weights=self.weights,
            since=-np.inf if memory is None else memory.since,
            power=np.zeros(TABLE_STEPS),
            seen=np.zeros(NB_TABLE_SEEN),
            jobs=np.zeros(jobs, np.int32),
            spare=np.zeros(jobs, np.int32),
            key=np.zeros(jobs),
            second=np.zeros(jobs),
            chosen=np.zeros(jobs, np.int64),
            best_value=np.zeros(nb_hosts(state) + 1),
            taken=np.zeros((MOST_TABLE_JOBS, nb_hosts(state) + 1), np.int8),
        )


class TimetableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that timetables are judged by."""

    jobs: Count = 200  # of a sequence, under the supply of power of its time


class Timetable(ParametricScheduler):
    """Jobs laid into the steps to come by learned scores; what is minimised is minus the share of value."""

    name = "timetable"
    summary = "jobs laid into the steps to come by learned scores, and suspended, as power comes and goes"
    paper = "Venkataswamy et al. 2024"
    Settings = TimetableSettings
    presets = ("timetable",)
    curves = ("value_share", "suspensions", "utilization")
    validated = ("value_share", "violated_share")
    observation = "green"  # in whose environments schedules are made, and measured
    sees = {"name": "timetable", "version": 1}  # raised whenever a number changes its meaning
    weights = (NB_TABLE_WEIGHTS,)
    model_summary = "learned timetable of starts and suspensions under a supply of power; for jobs with values"

    def episodes(self, settings: TimetableSettings, workload: Workload) -> Episodes:
        """As many jobs in a row, from any at which so many are left."""
        return jobs_in_a_row(settings.jobs, workload)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """By the value per host-second left; units see something and do nothing yet."""
        weights = np.zeros(NB_TABLE_WEIGHTS)
        weights[TableWeight.UNITS :] = rng.standard_normal(NB_TABLE_UNITS * NB_TABLE_UNIT)
        weights[TableWeight.UNITS + NB_TABLE_UNIT - 1 :: NB_TABLE_UNIT] = 0.0
        weights[[TableNumber.DENSITY, TableWeight.SECOND + TableNumber.DENSITY]] = 1.0
        return weights

    def policy(self, weights: NDArray[np.float64], name: str = "timetable") -> TimetablePolicy:
        """The policy that the weights make."""
        return TimetablePolicy(weights, name)

    def cost(self, settings: TimetableSettings, own: Measured, references: Sequence[Measured], done: float) -> float:
        """Minus the mean share of value."""
        return -float(own["value_share"].mean())


register(Timetable())
