"""One environment's progress: what an episode is, its sums, its rewards, and the paper's metrics."""

from typing import NamedTuple

from decision.bundle import F8, I4, I8, U8, Bundle
from decision.engine.arrays import Rows, Sim, Truth
from decision.features.choices import INSPECT
from decision.features.cycles import FREE, LENGTH, Cycles
from decision.jit import kernel
from decision.policies.plan import START, PlanArrays
from decision.state.cluster import ClusterState, PlatformFacts

BOUND = 10.0  # seconds: shorter jobs count as this long in the bounded slowdown

# Episode.number
FIRST = 0  # row of the trace with which the episode began
ARRIVED = 1  # jobs so far
PLACED = 2  # jobs started so far
STEPS = 3  # choices so far
TERMINATED = 4  # 1 once enough jobs were placed
TRUNCATED = 5  # 1 once too many jobs came, or nothing can happen any more
N_NUMBERS = 6

# Episode.total
RETURN = 0  # sum of rewards
BEGAN = 1  # seconds: when the episode began
USED = 2  # core-seconds in use
WAITED = 3  # job-seconds in the queue
LOADED = 4  # core-seconds of requested work in the queue, times seconds
UNSEEN = 5  # job-seconds in the queue and outside of the window
PARTIAL = 6  # seconds in which some job was outside of the window
PLACED_WAIT = 7  # seconds waited by the jobs that were placed
SLOWDOWN = 8  # sum of their bounded slowdowns
# and of the present instant
LOAD = 9  # core-seconds of requested work in the queue
WAITING = 10  # seconds waited so far by the jobs in the queue
MOST_QUEUED = 11  # jobs: the longest queue so far
MOST_WAITING = 12  # seconds: the largest WAITING so far
BASE = 13  # mean bounded slowdown of the inspected order, had nothing been refused
N_TOTALS = 14

METRICS = (
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


class Rules(NamedTuple):
    """What an episode is."""

    jobs: int  # placed at its end
    arrivals: int  # rows of the trace that may come
    online: int  # 1: truncated when they all have come; 0: they are the episode's jobs, and the trace stops
    trace_jobs: int  # rows to begin with, T
    idle_weight: float  # w1
    queue_weight: float  # w2
    waiting_weight: float  # w3


class Episode(Bundle):
    """One environment's progress. S steps at most, R rows of the trace."""

    number: I8  # (N_NUMBERS,)
    total: F8  # (N_TOTALS,)
    word: U8  # (1,) the next word of its random numbers
    actions: I4  # (S,) choices so far
    runtime: F8  # (R,) seconds that each job of the trace really runs


class World(NamedTuple):
    """One environment."""

    state: ClusterState
    facts: PlatformFacts
    truth: Truth
    sim: Sim
    rows: Rows
    plan: PlanArrays
    cycles: Cycles
    episode: Episode


@kernel
def is_over(world):
    """Whether the episode has ended."""
    return world.episode.number[TERMINATED] == 1 or world.episode.number[TRUNCATED] == 1


@kernel
def pass_time(world, window, seconds):
    """Add up what stayed the same for so long."""
    number, total = world.cycles.number, world.episode.total
    queued = number[LENGTH]
    total[USED] += seconds * (len(world.cycles.until) - number[FREE])
    total[WAITED] += seconds * queued
    total[WAITING] += seconds * queued
    total[LOADED] += seconds * total[LOAD]
    total[UNSEEN] += seconds * max(queued - window, 0)
    total[PARTIAL] += seconds * (queued > window)


@kernel
def note_queue(world):
    """A cycle begins: the running maxima."""
    total = world.episode.total
    total[MOST_QUEUED] = max(total[MOST_QUEUED], world.cycles.number[LENGTH])
    total[MOST_WAITING] = max(total[MOST_WAITING], total[WAITING])


@kernel
def place_planned(world, rules, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on, up to the last of the episode."""
    for at in range(begin, world.plan.count[0]):
        if world.plan.kind[at] == START and not is_over(world):
            _place(world, rules, world.plan.job[at])


@kernel
def _place(world, rules, job):
    state, number, total = world.state, world.episode.number, world.episode.total
    waited = state.now[0] - state.submit_time[job]
    run = world.episode.runtime[number[FIRST] + job]
    total[PLACED_WAIT] += waited
    total[SLOWDOWN] += max(1.0, (waited + run) / max(run, BOUND))
    if world.cycles.number[LENGTH] == 0:  # what is left of the sums is rounding
        total[WAITING] = 0.0
        total[LOAD] = 0.0
    else:
        total[WAITING] -= waited
        total[LOAD] -= state.size[job] * state.walltime[job]
    number[PLACED] += 1
    if number[PLACED] == rules.jobs:
        number[TERMINATED] = 1


@kernel
def penalty(world, rules):
    """-R(t), the paper's equation 2."""
    number, total = world.cycles.number, world.episode.total
    idle = number[FREE] / len(world.cycles.until)
    queued = number[LENGTH] / total[MOST_QUEUED] if total[MOST_QUEUED] > 0.0 else 0.0
    waiting = total[WAITING] / total[MOST_WAITING] if total[MOST_WAITING] > 0.0 else 0.0
    return rules.idle_weight * idle + rules.queue_weight * queued + rules.waiting_weight * waiting


@kernel
def score(world, encoding):
    """What RLScheduler is paid at the end: less slowdown; SchedInspector: less than the order that it inspects."""
    own, base = mean_slowdown(world), world.episode.total[BASE]
    return (base - own) / max(base, own, 1.0) if encoding.kind == INSPECT else -own


@kernel
def mean_slowdown(world):
    return world.episode.total[SLOWDOWN] / max(world.episode.number[PLACED], 1)


@kernel
def measure(world, out):
    """The METRICS of the episode so far (K,)."""
    number, total = world.episode.number, world.episode.total
    seconds = world.state.now[0] - total[BEGAN]
    out[0] = total[RETURN]
    out[1] = number[STEPS]
    out[2] = total[USED] / (seconds * len(world.cycles.until))
    out[3] = total[WAITED] / number[ARRIVED]
    out[4] = total[WAITED] / seconds
    out[5] = total[LOADED] / seconds
    out[6] = total[PLACED_WAIT] / number[PLACED]
    out[7] = total[SLOWDOWN] / number[PLACED]
    out[8] = total[UNSEEN] / seconds
    out[9] = total[PARTIAL] / seconds
    out[10] = seconds
    out[11] = number[ARRIVED]
