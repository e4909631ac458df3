"""Episodes in kernels: a cluster and its queue from one choice to the next.

The engine, the state, the cycles and the scheduler's kernels are those of a deployed policy; here is only the loop
around them. It knows no scheduler: it calls the kernels of one by their addresses.
"""

import numpy as np

from decision.compiling.bundle import begin_again
from decision.compiling.draws import next_word, uniform
from decision.compiling.jit import kernel
from decision.engine.kernels.server import rewind
from decision.learned.cycles import begin_decision, forget, show_arrival
from decision.learned.kernel_interfaces import (
    CYCLE_ENDS,
    STEP_ENDS,
    call_act,
    call_begin,
    call_measure,
    call_observe,
    call_open,
    call_reward,
)
from decision.learned.progress import end_episode, is_over, mean_slowdown
from decision.model.errors import InternalError
from decision.policies.around.supply_kernels import ask_when_late, reject_hidden
from decision.policies.outlook import forget_outlook
from decision.policies.outlook_settings import Estimator
from decision.policies.prepared import ask
from decision.state.plan_arrays import REJECT, START, clear

from .environment import world_of
from .metrics import EPISODE_METRICS, measure_episode, note_longest, place_planned
from .questions import to_next_question

_ALL = 2**62  # jobs that are seen by who sees the whole queue
_SHARED_METRICS = len(EPISODE_METRICS)


@kernel
def begin_episode(env, rules, kernels, beginning):
    """A new episode, up to its first choice. `beginning` is an index into `Beginnings`, or RANDOM (-1)."""
    if beginning < 0:
        beginning = _draw_beginning(env)
    restart(env, rules, kernels, beginning)
    _to_first_choice(env, rules, kernels)
    if rules.baseline_action >= 0:
        while not is_over(env.progress):
            step(env, rules, kernels, rules.baseline_action)
        baseline = mean_slowdown(env.progress)
        restart(env, rules, kernels, beginning)
        env.progress.baseline_slowdown = baseline
        _to_first_choice(env, rules, kernels)


@kernel
def _draw_beginning(env):
    """Any of a group's beginnings, which is any of the groups."""
    group, word = env.beginnings.group, env.progress.word
    place = uniform(word[0]) * (len(group) - 1)
    word[0] = next_word(word[0])
    which = np.int64(place)
    first, end = group[which], group[which + 1]
    return env.beginnings.member[first + np.int64((place - which) * (end - first))]


@kernel
def _to_first_choice(env, rules, kernels):
    """From the beginning of an episode."""
    if rules.opens_first:
        env.cycles.call = -np.inf
        begin_decision(env.seen, env.cycles)
        if _open(env, rules, kernels):
            return
    _to_next_choice(env, rules, kernels)


@kernel
def restart(env, rules, kernels, beginning):
    """A new episode: an idle cluster just before the first arrival."""
    progress, beginnings = env.progress, env.beginnings
    clock = beginnings.clock[beginning]
    begin_again(progress)
    progress.first_row = beginnings.row[beginning]
    progress.last_row = beginnings.last[beginning]
    progress.began = clock
    progress.ends_at = beginnings.end[beginning]
    progress.counted_from = beginnings.counted[beginning]
    progress.timed = progress.ends_at == np.inf
    first, last = progress.first_row, progress.last_row
    rewind(world_of(env), beginnings.pstate, rules.energy, first, last, clock)
    forget(env.cycles)
    if env.outlook.settings[0] != Estimator.WALLTIME:
        forget_outlook(env.outlook)
    call_begin(kernels.begin, (env.seen, env.facts, env.memory))
    clear(env.plan, env.state)


@kernel
def step(env, rules, kernels, action):
    """Make a choice and go on to the next one; returns the reward."""
    progress = env.progress
    if progress.nb_steps >= len(progress.actions):
        raise InternalError("an episode has no room for another choice")
    progress.actions[progress.nb_steps] = action if 0 <= action < 2**31 else -1
    progress.nb_steps += 1
    planned, reward = env.plan.nb_actions, 0.0
    goes_on = call_act(kernels.act, (env.seen, env.facts, env.cycles, env.plan, env.memory, action)) != 0
    place_planned(env, rules, planned)
    if not goes_on and not is_over(progress):
        reward = _paid(env, kernels, CYCLE_ENDS)
        _to_next_choice(env, rules, kernels)
    if progress.nb_steps >= rules.steps and progress.terminated == 0:
        end_episode(progress, rules.steps_end)
    reward += _paid(env, kernels, STEP_ENDS)
    progress.total_reward += reward
    return reward


@kernel
def _paid(env, kernels, moment):
    return call_reward(kernels.reward, (env.seen, env.facts, env.cycles, env.progress, env.memory, moment))


@kernel
def see(env, kernels, observation, mask):
    """What the next choice is made from."""
    call_observe(kernels.observe, (env.seen, env.facts, env.cycles, env.plan, env.memory, observation, mask))


@kernel
def measure_all(env, kernels, out):
    """EPISODE_METRICS, then the scheduler's own."""
    measure_episode(env, out)
    if len(out) > _SHARED_METRICS:
        own = out[_SHARED_METRICS:]
        call_measure(kernels.measure, (env.seen, env.facts, env.cycles, env.progress, env.memory, own))


@kernel
def _to_next_choice(env, rules, kernels):
    """Go from cycle to cycle until there is something to choose, or the episode is over."""
    while _to_next_cycle(env, rules):
        if _open(env, rules, kernels) or is_over(env.progress):
            return


@kernel
def _open(env, rules, kernels):
    """Begin a cycle; whether there is something to choose in it."""
    planned = env.plan.nb_actions
    opened = call_open(kernels.open, (env.seen, env.facts, env.cycles, env.plan, env.memory)) != 0
    place_planned(env, rules, planned)
    return opened


@kernel
def _to_next_cycle(env, rules):
    """Show the next arrival of this instant, or let time pass; False where the episode is over."""
    if _show_arrival(env, rules):
        return True
    while _reject_late(env, rules) and to_next_question(env, rules, rules.window, True):
        if begin_decision(env.seen, env.cycles):
            note_longest(env)
            return True
        if _show_arrival(env, rules):
            return True
    return False


@kernel
def run_policy(env, rules, kernels, policy, memory, beginning, out):
    """A whole episode under a policy, as `ask` has it, and its metrics; False where a plan cannot be carried out.

    The policy sees all arrivals of an instant at once. `kernels` are those of the environment's own scheduler, whose
    metrics are measured, too.
    """
    restart(env, rules, kernels, beginning)
    begin_decision(env.seen, env.cycles)
    while not is_over(env.progress):
        if not ask(policy, env.state, env.facts, memory, env.plan):
            return False
        _to_next_decision(env, rules)
    measure_all(env, kernels, out)
    return True


@kernel
def _to_next_decision(env, rules):
    """Carry a decision out that the cycles know nothing of, and go on to the next one."""
    env.progress.nb_steps += 1
    for i in range(env.plan.nb_actions):
        if env.plan.kind[i] in (START, REJECT):
            env.cycles.nb_queued -= 1
        if env.plan.kind[i] == START:
            env.cycles.nb_free -= env.state.size[env.plan.job[i]]
            env.cycles.nb_busy += env.state.size[env.plan.job[i]]
    place_planned(env, rules, 0)
    if is_over(env.progress) or not to_next_question(env, rules, _ALL, False):
        return
    begin_decision(env.seen, env.cycles)
    while _show_arrival(env, rules):
        pass


@kernel
def _reject_late(env, rules):
    """A decision is made: jobs leave that were too late for it. True."""
    if rules.rejects_late:
        reject_hidden(env.state, env.plan, env.progress.nb_hidden)
        ask_when_late(env.state, env.plan, env.progress.nb_hidden)
        env.progress.nb_hidden = 0
    return True


@kernel
def _show_arrival(env, rules):
    """Take the next arrival of this instant in; False where there is none."""
    job = show_arrival(env.seen, env.cycles)
    if job < 0:
        return False
    env.progress.nb_arrived += env.state.nth_rest[job] == 0  # what is left of a suspended job came before
    if rules.gives_up and env.progress.nb_arrived == rules.arrivals:
        env.progress.truncated = 1
    env.progress.load += env.state.size[job] * env.state.walltime[job]
    note_longest(env)
    return True
