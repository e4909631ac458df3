"""Metrics of episodes, and the sums that they and the rewards are computed from."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.learned.progress import end_episode, is_over
from decision.model.record import SHORTEST_RUNTIME, FinalState
from decision.policies.capacity import TOLERANCE
from decision.state.cluster import ENDED
from decision.state.plan_arrays import START

from .environment import Environment

MEANINGS = {  # of the metrics that every environment has; the words of a paper are DBF's
    "return": "sum of the rewards",
    "length": "choices",
    "utilization": "the paper's: cores in use over all cores, average over time",
    "waiting_time": "the paper's: seconds in the queue per job that has arrived",
    "queue_length": "the paper's: jobs, average over time",
    "job_load": "the paper's: core-seconds of requested work in the queue, average over time",
    "placed_waiting_time": "seconds, mean of the jobs that were placed",
    "bounded_slowdown": "mean of the jobs that were placed, with their real run times",
    "unseen_jobs": "jobs in the queue and outside of the window, average over time",
    "partial_time": "share of the time in which there were any",
    "duration": "seconds",
    "arrived": "jobs",
}
EPISODE_METRICS = tuple(MEANINGS)
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
    seconds = env.state.now - env.progress.began
    out[_RETURN] = env.progress.total_reward
    out[_LENGTH] = env.progress.nb_steps
    out[_UTILIZATION] = env.progress.used / (seconds * len(env.cycles.until))
    out[_WAITING_TIME] = env.progress.waited / env.progress.nb_arrived
    out[_QUEUE_LENGTH] = env.progress.waited / seconds
    out[_JOB_LOAD] = env.progress.loaded / seconds
    out[_PLACED_WAITING_TIME] = env.progress.placed_wait / env.progress.nb_placed
    out[_BOUNDED_SLOWDOWN] = env.progress.slowdown / env.progress.nb_placed
    out[_UNSEEN_JOBS] = env.progress.unseen / seconds
    out[_PARTIAL_TIME] = env.progress.partial / seconds
    out[_DURATION] = seconds
    out[_ARRIVED] = env.progress.nb_arrived


@kernel
def add_time(env, window, seconds):
    """Add up what stayed the same for so long."""
    queued = env.cycles.nb_queued
    env.progress.used += seconds * env.cycles.nb_busy
    env.progress.waited += seconds * queued
    env.progress.waiting += seconds * queued
    env.progress.loaded += seconds * env.progress.load
    env.progress.unseen += seconds * max(queued - window, 0)
    env.progress.partial += seconds * (queued > window)


@kernel
def add_worth(env):
    """Add up what the jobs were worth that have just ended."""
    state = env.state
    for i in range(state.nb_ended):
        job = state.ended[i]
        if state.job_state[job] != _SUCCESS:
            continue
        env.progress.earned += state.value[job]
        if state.deadline[job] > 0.0 and state.now > state.deadline[job] + TOLERANCE:
            env.progress.violated += state.value[job]


@kernel
def leave_late(env, job):
    """A job leaves because it cannot end in time."""
    state = env.state
    env.progress.violated += state.value[job]
    env.progress.waiting -= state.now - state.submit_time[job]
    env.progress.load -= state.size[job] * state.walltime[job]


@kernel
def note_longest(env):
    """A cycle begins: the running maxima."""
    env.progress.most_queued = max(env.progress.most_queued, env.cycles.nb_queued)
    env.progress.most_waiting = max(env.progress.most_waiting, env.progress.waiting)


@kernel
def place_planned(env, rules, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on, up to the last of the episode."""
    for i in range(begin, env.plan.nb_actions):
        if env.plan.kind[i] == START and not is_over(env.progress):
            _place(env, rules, env.plan.job[i])


@kernel
def _place(env, rules, job):
    state = env.state
    waited = state.now - state.submit_time[job]
    if state.nth_rest[job] == 0:  # what is left of a suspended job was placed before
        run = env.progress.runtime[env.sim.truth_of[job]]
        env.progress.placed_wait += waited
        env.progress.work += state.size[job] * run
        env.progress.last_end = max(env.progress.last_end, state.now + run)
        env.progress.slowdown += max(1.0, (waited + run) / max(run, SHORTEST_RUNTIME))
        env.progress.nb_placed += 1
    if env.cycles.nb_queued == 0:  # what is left of the sums is rounding
        env.progress.waiting = 0.0
        env.progress.load = 0.0
    else:
        env.progress.waiting -= waited
        env.progress.load -= state.size[job] * state.walltime[job]
    if env.progress.nb_placed == rules.jobs and rules.ends_with_jobs == 0:
        end_episode(env.progress, not rules.horizon)


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
    start[last[whole[last]][: env.progress.nb_placed - np.isfinite(start[whole]).sum()]] = state.now
    return start


class Begun(NamedTuple):
    """When the n jobs of an episode began, in the order of their submission, and what was left of suspended ones."""

    start: NDArray[np.float64]  # (n,) seconds; not finite where it did not
    rests: NDArray[np.float64]  # (m, 3) of each rest: of which of these jobs, which one of it, and seconds likewise


def begun_in(env: Environment) -> Begun:
    """Of an environment whose episode is over and no other has begun."""
    start = start_times(env)
    nth, row = env.state.nth_rest[: len(start)], env.sim.truth_of[: len(start)] - env.progress.first_row
    rest = nth > 0
    return Begun(start[~rest], np.column_stack([row[rest], nth[rest], start[rest]]))
