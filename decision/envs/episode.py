"""Episodes in kernels: a cluster and its queue from one choice to the next, rewards, and the paper's metrics.

The engine, the state and the cycles are those of a deployed policy; here are only the loop around them and the sums.
"""

from typing import NamedTuple

import numpy as np

from decision.bundle import F8, I4, I8, U8, Bundle
from decision.engine.arrays import ASK, Rows, Sim, Truth
from decision.engine.rewind import rewind
from decision.engine.server import advance, load_reply
from decision.features.choices import DBF, INSPECT, act, open_cycle
from decision.features.cycles import FREE, LENGTH, Cycles, begin_decision, forget, show_arrival
from decision.features.observe import observe
from decision.jit import kernel
from decision.policies.decide import decide
from decision.policies.draws import next_word, uniform
from decision.policies.plan import START, PlanArrays, clear
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
def begin_episode(world, rules, encoding, first):
    """A new episode from row `first` of the trace, or from a random one (-1), up to its first choice."""
    if first < 0:
        first = np.int64(uniform(world.episode.word[0]) * rules.trace_jobs)
        world.episode.word[0] = next_word(world.episode.word[0])
    restart(world, rules, first)
    _to_next_choice(world, rules, encoding)
    if encoding.kind == INSPECT:
        while not is_over(world):
            step(world, rules, encoding, 0)
        base = _mean_slowdown(world)
        restart(world, rules, first)
        world.episode.total[BASE] = base
        _to_next_choice(world, rules, encoding)


@kernel
def restart(world, rules, first):
    """A new episode from row `first` of the trace: an idle cluster just before the first arrival."""
    number, total = world.episode.number, world.episode.total
    number[:] = 0
    number[FIRST] = first
    total[:] = 0.0
    total[BEGAN] = world.truth.submit_time[first]
    rewind(world.state, world.facts, world.truth, world.sim, first, first + rules.arrivals, total[BEGAN])
    forget(world.cycles)
    clear(world.plan, world.state)


@kernel
def step(world, rules, encoding, action):
    """Make a choice and go on to the next one; returns the reward."""
    episode = world.episode
    episode.actions[episode.number[STEPS]] = action if 0 <= action < 2**31 else -1
    episode.number[STEPS] += 1
    planned, reward = world.plan.count[0], 0.0
    goes_on = act(world.state, world.cycles, world.plan, encoding, action)
    _place_planned(world, rules, planned)
    if not goes_on and not is_over(world):
        if encoding.kind == DBF:
            reward = -_penalty(world, rules)
        _to_next_choice(world, rules, encoding)
    if is_over(world) and encoding.kind != DBF:
        reward = _score(world, encoding)
    episode.total[RETURN] += reward
    return reward


@kernel
def is_over(world):
    """Whether the episode has ended."""
    return world.episode.number[TERMINATED] == 1 or world.episode.number[TRUNCATED] == 1


@kernel
def look(world, encoding, observation, mask):
    """What the next choice is made from."""
    observe(world.state, world.cycles, world.plan, encoding, observation, mask)


@kernel
def _to_next_choice(world, rules, encoding):
    """Go from cycle to cycle until there is something to choose, or the episode is over."""
    while _to_next_cycle(world, rules, encoding.head + encoding.tail):
        planned = world.plan.count[0]
        asks = open_cycle(world.state, world.cycles, world.plan, encoding)
        _place_planned(world, rules, planned)
        if asks or is_over(world):
            return


@kernel
def _to_next_cycle(world, rules, window):
    """Show the next arrival of this instant, or let time pass; False where nothing can happen any more."""
    if _show_arrival(world, rules):
        return True
    while _to_next_question(world, window):
        if begin_decision(world.state, world.cycles):
            _note_queue(world)
            return True
        if _show_arrival(world, rules):
            return True
    world.episode.number[TRUNCATED] = 1
    return False


@kernel
def run_composed(world, rules, config, memory):
    """A whole episode under a composed policy; it sees all arrivals of an instant at once."""
    begin_decision(world.state, world.cycles)
    while not is_over(world):
        world.episode.number[STEPS] += 1
        decide(world.state, world.facts, config, memory, world.plan)
        for at in range(world.plan.count[0]):
            if world.plan.kind[at] == START:
                world.cycles.number[LENGTH] -= 1
                world.cycles.number[FREE] -= world.state.size[world.plan.job[at]]
        _place_planned(world, rules, 0)
        if is_over(world):
            return
        if not _to_next_question(world, 2**62):
            world.episode.number[TRUNCATED] = 1
            return
        begin_decision(world.state, world.cycles)
        while _show_arrival(world, rules):
            pass


@kernel
def _to_next_question(world, window):
    """Carry the plan out and let time pass; False where nothing can happen any more."""
    state, plan = world.state, world.plan
    before = state.now[0]
    load_reply(state, world.truth, world.sim, world.rows, plan, before)
    code = advance(state, world.facts, world.truth, world.sim, world.rows, plan)
    clear(plan, state)
    _pass_time(world, window, state.now[0] - before)
    return code == ASK


@kernel
def _pass_time(world, window, seconds):
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
def _show_arrival(world, rules):
    """Take the next arrival of this instant in; False where there is none."""
    job = show_arrival(world.state, world.cycles)
    if job < 0:
        return False
    number = world.episode.number
    number[ARRIVED] += 1
    if rules.online and number[ARRIVED] == rules.arrivals:
        number[TRUNCATED] = 1
    world.episode.total[LOAD] += world.state.size[job] * world.state.walltime[job]
    _note_queue(world)
    return True


@kernel
def _note_queue(world):
    """A cycle begins: the running maxima."""
    total = world.episode.total
    total[MOST_QUEUED] = max(total[MOST_QUEUED], world.cycles.number[LENGTH])
    total[MOST_WAITING] = max(total[MOST_WAITING], total[WAITING])


@kernel
def _place_planned(world, rules, begin):
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
def _penalty(world, rules):
    """-R(t), the paper's equation 2."""
    number, total = world.cycles.number, world.episode.total
    idle = number[FREE] / len(world.cycles.until)
    queued = number[LENGTH] / total[MOST_QUEUED] if total[MOST_QUEUED] > 0.0 else 0.0
    waiting = total[WAITING] / total[MOST_WAITING] if total[MOST_WAITING] > 0.0 else 0.0
    return rules.idle_weight * idle + rules.queue_weight * queued + rules.waiting_weight * waiting


@kernel
def _score(world, encoding):
    """What RLScheduler is paid at the end: less slowdown; SchedInspector: less than the order that it inspects."""
    own, base = _mean_slowdown(world), world.episode.total[BASE]
    return (base - own) / max(base, own, 1.0) if encoding.kind == INSPECT else -own


@kernel
def _mean_slowdown(world):
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
