"""Days under rules that see what DeepScheduling's agent sees: First-Fit, EASY and SAF, as its authors have them.

They choose in the agent's own environment: from the first 20 jobs that wait without hosts, every minute. EASY books the
first job while there are cores, and behind it in order of arrival jobs that end before it may start; SAF (smallest
area first) looks at these by walltime times cores. Both leave alone what cores the first job's start would leave over.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import bundle_at
from decision.compiling.jit import kernel
from decision.model.record import Floats
from decision.rl.envs import Outputs, Setup
from decision.rl.envs.batch import Batch
from decision.rl.envs.environment import environment_at
from decision.rl.schedulers import deepscheduling as obs
from decision.rl.schedulers.decision_points import is_over
from decision.rl.schedulers.deepscheduling import DeepSchedulingMemory, fits
from decision.state.bitmap import count_hosts
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import START

SIMPLE_RULES = {"First-Fit": 0, "EASY": 1, "SAF": 2}
_FIRST_FIT, _EASY, _SAF = SIMPLE_RULES.values()
_TOGETHER = 64  # days that are played side by side

ChooseIn = Callable[[Batch, Outputs], NDArray[np.int64]]
_memory_at = bundle_at(DeepSchedulingMemory)


class Days(NamedTuple):
    """What became of D days of N jobs in all."""

    jobs: NDArray[np.int64]  # (D,) of each day
    waste: Floats  # (D,) joules of idle and switching servers
    switches: Floats  # (D,)
    joules: Floats  # (D,) of all servers, from an hour before midnight on
    used: Floats  # (D,) core-seconds in which jobs ran
    bound: Floats  # (D,) joules: the least waste of any shutdown with the same starts, where that was asked for
    wait: Floats  # (N,) seconds of each job, day by day


def play_days(setup: Setup, rows: Sequence[int], choose: ChooseIn) -> Days:
    """Play the days that begin with these rows of the trace."""
    chunks = [rows[at : at + _TOGETHER] for at in range(0, len(rows), _TOGETHER)]
    played = [_play_together(setup, np.array(chunk, np.int64), choose) for chunk in chunks]
    return Days(*(np.concatenate(column) for column in zip(*played, strict=True)))


def _play_together(setup: Setup, rows: NDArray[np.int64], choose: ChooseIn) -> Days:
    batch = Batch(setup, len(rows), 1)
    out = batch.new_outputs()
    batch.reset(rows, out)
    while not (out.terminated | out.truncated).all():
        batch.step(choose(batch, out), False, out)
    jobs = setup.beginnings.last - setup.beginnings.row
    jobs = jobs[np.searchsorted(setup.beginnings.row, rows)]
    every = [env.progress for env in batch.envs]
    total = np.array([[progress.wasted, progress.joules, progress.used] for progress in every])
    switches = np.array([float(progress.nb_switched) for progress in every])
    waits = [_waits(env.state, number) for env, number in zip(batch.envs, jobs.tolist(), strict=True)]
    return Days(jobs, total[:, 0], switches, total[:, 1], total[:, 2], np.zeros(len(rows)), np.concatenate(waits))


def _waits(state: ClusterState, number: int) -> Floats:
    """Of a day's jobs; one that was never started waits until the day is cut off."""
    start = state.start_time[:number]
    return np.asarray(np.where(np.isfinite(start), start, state.now) - state.submit_time[:number])


def rule(name: str) -> ChooseIn:
    """What chooses for a batch of environments by one of `SIMPLE_RULES`."""

    def choose(batch: Batch, out: Outputs) -> NDArray[np.int64]:
        actions = np.zeros(len(batch.envs), np.int64)
        _choose_all(batch.addresses, SIMPLE_RULES[name], actions)
        return actions

    return choose


@kernel
def _choose_all(addresses, which, actions):
    for i in range(len(actions)):
        env = environment_at(addresses[i])
        memory = _memory_at(env.memory)
        if not is_over(env.progress):
            actions[i] = _choose(env.state, env.facts, env.plan, memory, which)


@kernel
def _choose(state, facts, plan, memory, which):
    """The next job that the rule books hosts for; void where there is none."""
    shown = memory.nb_shown
    if shown == 0:
        return obs.VOID
    if which == _FIRST_FIT or fits(state, memory, memory.window[0]):
        for i in range(shown):
            if fits(state, memory, memory.window[i]):
                return i + 1
        return obs.VOID
    shadow, best, least = _shadow(state, facts, plan, memory), obs.VOID, np.inf
    for i in range(1, shown):
        job = memory.window[i]
        rank = state.walltime[job] * state.size[job] if which == _SAF else i
        if rank < least and fits(state, memory, job):
            awake = state.size[job] <= count_hosts(plan.free)
            begin = state.now if awake else state.now + facts.on_time[0]
            if begin + state.walltime[job] <= shadow:
                best, least = i + 1, rank
    return best


@kernel
def _shadow(state, facts, plan, memory):
    """When (seconds) the first job may start, by the walltimes of jobs that run or have booked hosts."""
    running, booked = state.nb_running, memory.nb_booked
    end, size = np.empty(running + booked), np.empty(running + booked, np.int64)
    for i in range(running):
        end[i] = state.start_time[state.running[i]] + state.walltime[state.running[i]]
        size[i] = state.size[state.running[i]]
    for i in range(booked):
        job = memory.booked[i]
        begin = state.now if _starts(plan, job) else state.now + facts.on_time[0]
        end[running + i], size[running + i] = begin + state.walltime[job], state.size[job]
    missing, shadow = state.size[memory.window[0]] - memory.nb_available, state.now
    for i in np.argsort(end):
        if missing <= 0:
            break
        missing -= size[i]
        shadow = end[i]
    return shadow


@kernel
def _starts(plan, job):
    found = False
    for action in range(plan.nb_actions):
        found |= plan.kind[action] == START and plan.job[action] == job
    return found
