"""What DeepScheduling's paper claims, each with its number, and intervals over seeds and days.

Days are drawn with replacement, the same of all that is compared, and seeds apart; an interval holds 95 % of the values
over these samples. On days of real clusters a twentieth of the days has most of the waiting, so that pooled means rest
on few of them: hence the interquartile mean over days beside them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import bundle_at
from decision.compiling.jit import kernel
from decision.experiments.statistics import Estimate
from decision.model.record import Floats, Ints
from decision.rl.envs import Outputs, Setup
from decision.rl.envs.batch import Batch
from decision.rl.envs.environment import environment_at
from decision.rl.schedulers import deepscheduling as obs
from decision.rl.schedulers.decision_points import is_over
from decision.rl.schedulers.deepscheduling import DeepSchedulingMemory, fits
from decision.state.bitmap import count_hosts
from decision.state.plan_arrays import START

# Days under rules that see what DeepScheduling's agent sees: First-Fit, EASY and SAF, as its authors have them.
#
# They choose in the agent's own environment: from the first 20 jobs that wait without hosts, every minute. EASY books
# the first job while there are cores, and behind it in order of arrival jobs that end before it may start; SAF
# (smallest area first) looks at these by walltime times cores. Both leave alone what cores the first job's start would
# leave over.

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
    played = []
    for at in range(0, len(rows), _TOGETHER):
        first = np.array(rows[at : at + _TOGETHER], np.int64)
        batch = Batch(setup, len(first), 1)
        out = batch.new_outputs()
        batch.reset(first, out)
        while not (out.terminated | out.truncated).all():
            batch.step(choose(batch, out), False, out)
        jobs = setup.beginnings.last - setup.beginnings.row
        jobs = jobs[np.searchsorted(setup.beginnings.row, first)]
        every = [env.progress for env in batch.envs]
        waste, joules, used = np.array([[each.wasted, each.joules, each.used] for each in every]).T
        switches, none = np.array([float(each.nb_switched) for each in every]), np.zeros(len(first))
        waits = []
        for env, number in zip(batch.envs, jobs.tolist(), strict=True):
            start = env.state.start_time[:number]  # a job that was never started waits until the day is cut off
            waits.append(np.where(np.isfinite(start), start, env.state.now) - env.state.submit_time[:number])
        played.append(Days(jobs, waste, switches, joules, used, none, np.concatenate(waits)))
    return Days(*(np.concatenate(column) for column in zip(*played, strict=True)))


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
        starts = False
        for action in range(plan.nb_actions):
            starts |= plan.kind[action] == START and plan.job[action] == job
        begin = state.now if starts else state.now + facts.on_time[0]
        end[running + i], size[running + i] = begin + state.walltime[job], state.size[job]
    missing, shadow = state.size[memory.window[0]] - memory.nb_available, state.now
    for i in np.argsort(end):
        if missing <= 0:
            break
        missing -= size[i]
        shadow = end[i]
    return shadow


SAMPLES = 400
_BUCKETS = (1.0, 5.0)  # slowdowns: of 1, above that to 5, above


class Jobs(NamedTuple):
    """The N jobs of D days, day by day."""

    day: Ints  # (N,)
    size: Floats  # (N,) cores
    run: Floats  # (N,) seconds
    sequential: Floats  # (N,) 1 where one came less than 5 minutes before, that day


class Change(Estimate):
    """A share by which something changes, and its interval."""

    def __str__(self) -> str:
        return f"{self.value:+z.1%} ({self.low:+z.1%} to {self.high:+z.1%})"


Statistic = Callable[[Days, Jobs, Floats], float]  # of days with weights (D,)


def compare_days(
    statistic: Statistic, own: Sequence[Days], other: Sequence[Days], jobs: Jobs, samples: int = SAMPLES
) -> Change:
    """How much larger the statistic is of `own` than of `other`: means over the seeds of each."""
    rng, days = np.random.default_rng(0), len(own[0].jobs)

    def ratio(weight: Floats, ours: Sequence[Days], theirs: Sequence[Days]) -> float:
        top, bottom = (float(np.mean([statistic(each, jobs, weight) for each in some])) for some in (ours, theirs))
        return top / bottom - 1 if bottom else float("nan")

    value = ratio(np.ones(days), own, other)
    drawn = []
    for _ in range(samples):
        weight = np.bincount(rng.integers(0, days, days), minlength=days).astype(float)
        ours, theirs = ([some[k] for k in rng.integers(0, len(some), len(some))] for some in (own, other))
        drawn.append(ratio(weight, ours, theirs))
    low, high = np.nanquantile(drawn, (0.025, 0.975)) if np.isfinite(drawn).any() else (np.nan, np.nan)
    return Change(value, float(low), float(high))


def waste(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Joules of idle and switching servers."""
    return float(days.waste @ weight)


def server_switches(days: Days, jobs: Jobs, weight: Floats) -> float:
    """How often servers are switched on or off, weighted by days."""
    return float(days.switches @ weight)


def pooled_wait(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean wait of all jobs together, weighted by days."""
    return float(days.wait @ weight[jobs.day] / weight[jobs.day].sum())


def trimmed_wait(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean of the jobs from the 10th to the 90th percentile of their waits."""
    return _trimmed(days.wait, weight[jobs.day])


def daily_wait(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Interquartile mean of the days' mean waits."""
    sums = np.bincount(jobs.day, days.wait, len(weight))
    order = np.argsort(mean := sums / days.jobs, kind="stable")
    return _between(mean[order], weight[order], 0.25)


def _trimmed(values: Floats, weight: Floats) -> float:
    order = np.argsort(values, kind="stable")
    return _between(values[order], weight[order], 0.1)


def _between(ascending: Floats, weight: Floats, cut: float) -> float:
    """Mean without a share `cut` of the weight at either end."""
    upto = np.cumsum(weight)
    inside = np.diff(np.clip(upto, cut * upto[-1], (1 - cut) * upto[-1]), prepend=cut * upto[-1])
    return float(inside @ ascending / inside.sum())


def job_slowdowns(days: Days, jobs: Jobs) -> Floats:
    """(N,) (wait + run time) / run time."""
    return (days.wait + jobs.run) / jobs.run


def per_processor(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean slowdown per processor, from the 10th to the 90th percentile."""
    return _trimmed(np.maximum(job_slowdowns(days, jobs) / jobs.size, 1.0), weight[jobs.day])


def share_slowed(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Share of jobs with a slowdown above 1 and at most 5."""
    found, each = job_slowdowns(days, jobs), weight[jobs.day]
    return float(((found > _BUCKETS[0]) & (found <= _BUCKETS[1])) @ each / each.sum())


def sequential_slowdown(days: Days, jobs: Jobs, weight: Floats) -> float:
    """Mean slowdown of sequential jobs without outliers: those within 1.5 times the interquartile range."""
    found = job_slowdowns(days, jobs)
    each = weight[jobs.day] * jobs.sequential
    kept = within_range(found, jobs.sequential > 0)
    return float(found[kept] @ each[kept] / each[kept].sum()) if each[kept].sum() else float("nan")


def within_range(values: Floats, which: np.ndarray) -> np.ndarray:
    """(N,) those of `which` that are within 1.5 times the interquartile range of these."""
    if not which.any():
        return which
    low, high = np.quantile(values[which], (0.25, 0.75))
    reach = 1.5 * (high - low)
    return which & (values >= low - reach) & (values <= high + reach)
