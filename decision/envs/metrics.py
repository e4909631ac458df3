"""Metrics of episodes, and the sums that they and the rewards are computed from."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.learned import progress as at
from decision.learned.cycles import BUSY_HOSTS, LENGTH
from decision.learned.progress import is_over
from decision.model.record import SHORTEST_RUNTIME, FinalState
from decision.policies.capacity import TOLERANCE
from decision.state.cluster import ENDED
from decision.state.plan_arrays import START

from .environment import Environment

EPISODE_METRICS = (
    "return",
    "length",
    "utilization",  # the paper's: cores in use over all cores, average over time
    "waiting_time",  # the paper's: seconds in the queue per job that has arrived
    "queue_length",  # the paper's: jobs, average over time
    "job_load",  # the paper's: core-seconds of requested work in the queue, average over time
    "placed_waiting_time",  # seconds, of the jobs that were placed
    "bounded_slowdown",  # of the jobs that were placed, with their real runtimes
    "unseen_jobs",  # jobs in the queue and outside of the window, average over time
    "partial_time",  # share of the time in which there were any
    "duration",  # seconds
    "arrived",  # jobs
)
RANGES = {"return": (-math.inf, math.inf), "utilization": (0.0, 1.0), "partial_time": (0.0, 1.0)}  # others: from 0 on
(
    _RETURN,
    _LENGTH,
    _UTILIZATION,
    _WAITING_TIME,
    _QUEUE_LENGTH,
    _JOB_LOAD,
    _PLACED_WAITING_TIME,
    _BOUNDED_SLOWDOWN,
    _UNSEEN_JOBS,
    _PARTIAL_TIME,
    _DURATION,
    _ARRIVED,
) = range(len(EPISODE_METRICS))

_SUCCESS = ENDED + int(FinalState.COMPLETED_SUCCESSFULLY)


@kernel
def measure_episode(env, out):
    """The EPISODE_METRICS of the episode so far (K,)."""
    number, total = env.progress.number, env.progress.total
    seconds = env.state.now - total[at.BEGAN]
    out[_RETURN] = total[at.RETURN]
    out[_LENGTH] = number[at.STEPS]
    out[_UTILIZATION] = total[at.USED] / (seconds * len(env.cycles.until))
    out[_WAITING_TIME] = total[at.WAITED] / number[at.ARRIVED]
    out[_QUEUE_LENGTH] = total[at.WAITED] / seconds
    out[_JOB_LOAD] = total[at.LOADED] / seconds
    out[_PLACED_WAITING_TIME] = total[at.PLACED_WAIT] / number[at.PLACED]
    out[_BOUNDED_SLOWDOWN] = total[at.SLOWDOWN] / number[at.PLACED]
    out[_UNSEEN_JOBS] = total[at.UNSEEN] / seconds
    out[_PARTIAL_TIME] = total[at.PARTIAL] / seconds
    out[_DURATION] = seconds
    out[_ARRIVED] = number[at.ARRIVED]


@kernel
def add_time(env, window, seconds):
    """Add up what stayed the same for so long."""
    number, total = env.cycles.number, env.progress.total
    queued = number[LENGTH]
    total[at.USED] += seconds * number[BUSY_HOSTS]
    total[at.WAITED] += seconds * queued
    total[at.WAITING] += seconds * queued
    total[at.LOADED] += seconds * total[at.LOAD]
    total[at.UNSEEN] += seconds * max(queued - window, 0)
    total[at.PARTIAL] += seconds * (queued > window)


@kernel
def add_worth(env):
    """Add up what the jobs were worth that have just ended."""
    state, total = env.state, env.progress.total
    for i in range(state.nb_ended):
        job = state.ended[i]
        if state.job_state[job] != _SUCCESS:
            continue
        total[at.EARNED] += state.value[job]
        if state.deadline[job] > 0.0 and state.now > state.deadline[job] + TOLERANCE:
            total[at.VIOLATED] += state.value[job]


@kernel
def leave_late(env, job):
    """A job leaves because it cannot end in time."""
    state, total = env.state, env.progress.total
    total[at.VIOLATED] += state.value[job]
    total[at.WAITING] -= state.now - state.submit_time[job]
    total[at.LOAD] -= state.size[job] * state.walltime[job]


@kernel
def note_longest(env):
    """A cycle begins: the running maxima."""
    total = env.progress.total
    total[at.MOST_QUEUED] = max(total[at.MOST_QUEUED], env.cycles.number[LENGTH])
    total[at.MOST_WAITING] = max(total[at.MOST_WAITING], total[at.WAITING])


@kernel
def place_planned(env, rules, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on, up to the last of the episode."""
    for i in range(begin, env.plan.nb_actions):
        if env.plan.kind[i] == START and not is_over(env.progress):
            _place(env, rules, env.plan.job[i])


@kernel
def _place(env, rules, job):
    state, number, total = env.state, env.progress.number, env.progress.total
    waited = state.now - state.submit_time[job]
    if state.nth_rest[job] == 0:  # what is left of a suspended job was placed before
        run = env.progress.runtime[env.sim.truth_of[job]]
        total[at.PLACED_WAIT] += waited
        total[at.WORK] += state.size[job] * run
        total[at.LAST_END] = max(total[at.LAST_END], state.now + run)
        total[at.SLOWDOWN] += max(1.0, (waited + run) / max(run, SHORTEST_RUNTIME))
        number[at.PLACED] += 1
    if env.cycles.number[LENGTH] == 0:  # what is left of the sums is rounding
        total[at.WAITING] = 0.0
        total[at.LOAD] = 0.0
    else:
        total[at.WAITING] -= waited
        total[at.LOAD] -= state.size[job] * state.walltime[job]
    if number[at.PLACED] == rules.jobs and rules.ends_with_jobs == 0:
        number[at.TRUNCATED if rules.horizon else at.TERMINATED] = 1


TAIL_METRICS = (  # as in `decision.analysis.metric_list`, where jobs that still wait count with their wait so far
    "p95_wait",
    "p99_wait",
    "max_wait",
    "late_starts",  # jobs that had not begun at the last arrival
    "arrival_utilization",
)


class PlacedJobs(NamedTuple):
    """The n jobs that an episode placed, in the order of their submission."""

    size: NDArray[np.int32]  # (n,) requested hosts
    walltime: NDArray[np.float64]  # (n,) seconds
    wait: NDArray[np.float64]  # (n,) seconds from submission to start


def placed_jobs(env: Environment) -> PlacedJobs:
    """Of an environment whose episode is over and no other has begun."""
    state, start = env.state, start_times(env)
    placed = np.flatnonzero(np.isfinite(start) & (state.nth_rest[: len(start)] == 0))
    return PlacedJobs(state.size[placed], state.walltime[placed], start[placed] - state.submit_time[placed])


def episode_tail(env: Environment) -> tuple[float, ...]:
    """The TAIL_METRICS of an environment whose episode is over and no other has begun."""
    begin = start_times(env)
    rows = np.flatnonzero(env.state.nth_rest[: len(begin)] == 0)
    begin, submit, size = begin[rows], env.state.submit_time[rows], env.state.size[rows]
    first, last = float(submit.min()), float(submit.max())
    waits = np.where(np.isfinite(begin), begin, env.state.now) - submit
    began = np.flatnonzero(begin <= last)
    run = env.progress.runtime[env.sim.truth_of[rows[began]]]
    used = float(np.sum(size[began] * np.minimum(run, last - begin[began])))
    room = len(env.cycles.until) * (last - first)
    percentiles = (float(value) for value in np.percentile(waits, (95, 99, 100)))
    return (*percentiles, float(len(begin) - len(began)), used / room if room else np.nan)


def start_times(env: Environment) -> NDArray[np.float64]:
    """When each job that has arrived, or was left of another, began, seconds; not finite where it still waits."""
    state, plan, planned = env.state, env.plan, env.plan.nb_actions
    start, whole = state.start_time[: state.nb_jobs].copy(), state.nth_rest[: state.nb_jobs] == 0
    last = plan.job[:planned][plan.kind[:planned] == START]  # is not carried out any more, and may be of more jobs
    start[last[whole[last]][: env.progress.number[at.PLACED] - np.isfinite(start[whole]).sum()]] = state.now
    return start


class Begun(NamedTuple):
    """When the n jobs of an episode began, in the order of their submission, and what was left of suspended ones."""

    start: NDArray[np.float64]  # (n,) seconds; not finite where it did not
    rests: NDArray[np.float64]  # (m, 3) of each rest: of which of these jobs, which one of it, and seconds likewise


def begun_in(env: Environment) -> Begun:
    """Of an environment whose episode is over and no other has begun."""
    start = start_times(env)
    nth, row = env.state.nth_rest[: len(start)], env.sim.truth_of[: len(start)] - env.progress.number[at.FIRST_ROW]
    rest = nth > 0
    return Begun(start[~rest], np.column_stack([row[rest], nth[rest], start[rest]]))
