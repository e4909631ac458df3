"""Episodes in kernels: a cluster and its queue from one choice to the next.

The engine, the state and the cycles are those of a deployed policy; here is only the loop around them.
"""

import numpy as np

from decision.engine.arrays import ASK
from decision.engine.rewind import rewind
from decision.engine.server import advance, load_reply
from decision.features.choices import DBF, INSPECT, act, open_cycle
from decision.features.cycles import FREE, LENGTH, begin_decision, forget, show_arrival
from decision.features.observe import observe
from decision.jit import kernel
from decision.policies.decide import decide
from decision.policies.draws import next_word, uniform
from decision.policies.plan import START, clear
from decision.policies.ranking import plan_by_rank

from .tally import (
    ARRIVED,
    BASE,
    BEGAN,
    FIRST,
    LOAD,
    RETURN,
    STEPS,
    TRUNCATED,
    is_over,
    mean_slowdown,
    note_queue,
    pass_time,
    penalty,
    place_planned,
    score,
)


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
        base = mean_slowdown(world)
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
    place_planned(world, rules, planned)
    if not goes_on and not is_over(world):
        if encoding.kind == DBF:
            reward = -penalty(world, rules)
        _to_next_choice(world, rules, encoding)
    if is_over(world) and encoding.kind != DBF:
        reward = score(world, encoding)
    episode.total[RETURN] += reward
    return reward


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
        place_planned(world, rules, planned)
        if asks or is_over(world):
            return


@kernel
def _to_next_cycle(world, rules, window):
    """Show the next arrival of this instant, or let time pass; False where nothing can happen any more."""
    if _show_arrival(world, rules):
        return True
    while _to_next_question(world, window):
        if begin_decision(world.state, world.cycles):
            note_queue(world)
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
        decide(world.state, world.facts, config, memory, world.plan)
        _to_next_decision(world, rules)


@kernel
def run_ranking(world, rules, weights):
    """The same under `decision.policies.ranking` with these weights."""
    begin_decision(world.state, world.cycles)
    while not is_over(world):
        plan_by_rank(world.state, world.plan, weights)
        _to_next_decision(world, rules)


@kernel
def _to_next_decision(world, rules):
    """Carry a decision out that the cycles know nothing of, and go on to the next one."""
    world.episode.number[STEPS] += 1
    for at in range(world.plan.count[0]):
        if world.plan.kind[at] == START:
            world.cycles.number[LENGTH] -= 1
            world.cycles.number[FREE] -= world.state.size[world.plan.job[at]]
    place_planned(world, rules, 0)
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
    pass_time(world, window, state.now[0] - before)
    return code == ASK


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
    note_queue(world)
    return True
