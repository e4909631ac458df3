"""Episodes in kernels: a cluster and its queue from one choice to the next.

The engine, the state, the cycles and the scheduler's kernels are those of a deployed policy; here is only the loop
around them. It knows no scheduler: it calls the kernels of one by their addresses.
"""

import numpy as np

from decision.compiling.bundle import begin_again
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import next_word, uniform
from decision.engine.kernels.arrays import ASK, BAD_COMMAND, DEADLOCK, DONE, GROW, UNCARRIED
from decision.engine.kernels.commands import forget_requests
from decision.engine.kernels.energy import joules_now
from decision.engine.kernels.server import CARRY_OUT, ask_engine, rewind
from decision.model.errors import InternalError
from decision.policies.power import see_servers
from decision.policies.prepared import ask
from decision.policies.profile import TOLERANCE
from decision.policies.traits import Estimator
from decision.policies.wrappers.prediction import forget_outlook, look_ahead
from decision.policies.wrappers.supply import ask_when_late, is_any_late, make_way, reject_hidden, runs_beyond, too_late
from decision.rl.schedulers.base import (
    CYCLE_ENDS,
    STEP_ENDS,
    call_act,
    call_begin,
    call_measure,
    call_observe,
    call_open,
    call_reward,
)
from decision.rl.schedulers.decision_points import (
    EpisodeProgress,
    begin_decision,
    end_episode,
    forget,
    is_over,
    mean_slowdown,
    show_arrival,
)
from decision.state.plan_arrays import CALL_AT, REJECT, START, add, clear
from decision.state.transitions import set_aside

from .environment import (
    EPISODE_METRICS,
    add_time,
    add_value,
    leave_late,
    measure_episode,
    note_longest,
    place_planned,
    world_of,
)
from .setup import Beginnings

_ALL = 2**62  # jobs that are seen by who sees the whole queue
_SHARED_METRICS = len(EPISODE_METRICS)


@kernel
def begin_episode(env, rules, kernels, beginning):
    """A new episode, up to its first choice. `beginning` is an index into `Beginnings`, or RANDOM (-1)."""
    if beginning < 0:
        word = env.progress.word
        beginning = _beginning_of(env.beginnings, word[0])
        word[0] = next_word(word[0])
    restart(env, rules, kernels, beginning)
    _to_first_choice(env, rules, kernels)
    # the same episode twice, where a reward compares it with what a fixed action would have made of it
    if rules.baseline_action >= 0:
        while not is_over(env.progress):
            step(env, rules, kernels, rules.baseline_action)
        baseline = mean_slowdown(env.progress)
        restart(env, rules, kernels, beginning)
        env.progress.baseline_slowdown = baseline
        _to_first_choice(env, rules, kernels)


@kernel
def _beginning_of(beginnings, word):
    """The beginning that a word of random numbers stands for."""
    # one random number for both: its whole part is the group, its fraction the place there
    group = beginnings.group
    place = uniform(word) * (len(group) - 1)
    which = np.int64(place)
    first, end = group[which], group[which + 1]
    return beginnings.member[first + np.int64((place - which) * (end - first))]


@Interface(int, Beginnings, EpisodeProgress).entry
def expected_beginning(beginnings, progress):
    """The beginning that is drawn next."""
    return _beginning_of(beginnings, progress.word[0])


@kernel
def _to_first_choice(env, rules, kernels):
    """From the beginning of an episode, where some schedulers choose before any job comes."""
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
    if env.outlook.estimate != Estimator.WALLTIME:
        forget_outlook(env.outlook)
    call_begin(kernels.begin, (env.seen, env.facts, env.memory))
    clear(env.plan, env.state)


@kernel
def step(env, rules, kernels, action):
    """Make a choice and go on to the next one; returns the reward."""
    progress = env.progress
    if progress.nb_steps >= len(progress.actions):
        raise InternalError("an episode has no room for another choice")
    # what does not fit is kept as -1; the kernel gets the action as it is
    progress.actions[progress.nb_steps] = action if 0 <= action < 2**31 else -1
    progress.nb_steps += 1
    planned, reward = env.plan.nb_actions, 0.0  # what the plan has from here on this choice has added
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
    """What the scheduler's kernel pays at this moment."""
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
        of_scheduler = out[_SHARED_METRICS:]
        call_measure(kernels.measure, (env.seen, env.facts, env.cycles, env.progress, env.memory, of_scheduler))


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
    while True:
        # the decision is made: jobs that were too late for it, and hidden, leave with it
        if rules.rejects_late:
            reject_hidden(env.state, env.plan, env.progress.nb_hidden)
            ask_when_late(env.state, env.plan, env.progress.nb_hidden)
            env.progress.nb_hidden = 0
        if not to_next_question(env, rules, rules.window, True):
            return False
        if begin_decision(env.seen, env.cycles):
            note_longest(env)
            return True
        if _show_arrival(env, rules):
            return True


@kernel
def run_policy(env, rules, kernels, policy, memory, beginning, out):
    """A whole episode under a policy, as `ask` has it, and its metrics; False where a plan cannot be carried out.

    The policy sees all arrivals of an instant at once. `kernels` are those of the environment's own scheduler, whose
    metrics are measured, too.
    """
    restart(env, rules, kernels, beginning)
    begin_decision(env.seen, env.cycles)
    # as the engine asks it in a run; cycles are kept up to date for the metrics alone
    while not is_over(env.progress):
        if not ask(policy, env.state, env.facts, memory, env.plan):
            return False
        env.progress.nb_steps += 1
        for i in range(env.plan.nb_actions):
            if env.plan.kind[i] in (START, REJECT):
                env.cycles.nb_queued -= 1
            if env.plan.kind[i] == START:
                env.cycles.nb_free -= env.state.size[env.plan.job[i]]
                env.cycles.nb_busy += env.state.size[env.plan.job[i]]
        place_planned(env, rules, 0)
        if not is_over(env.progress) and to_next_question(env, rules, _ALL, False):
            begin_decision(env.seen, env.cycles)
            while _show_arrival(env, rules):
                pass
    measure_all(env, kernels, out)
    return True


# --- From a decision to the next question: the plan is carried out, and time passes ----------------------------------


@kernel
def to_next_question(env, rules, window, supplied):
    """Carry the plan out and let time pass; False where the episode is cut off, or nothing can happen any more.

    `supplied` is whether jobs beyond the supply of power make way, and those that are too late are hidden, as a policy
    does by itself that is one under a supply (`decision.policies.wrappers.supply`).
    """
    before, idle, watts, switched = env.state.now, 0, 0.0, 0
    if env.progress.timed == 0:  # the engine is to ask at the very instant at which the episode ends
        env.progress.timed = 1
        env.plan.time[add(env.plan, CALL_AT, -1)] = env.progress.ends_at
    if rules.energy:  # what servers do until the next question they do from now on
        forget_requests(world_of(env))
        idle, watts, switched = see_servers(env.state, env.facts, env.plan)
    code = _carry_out(env, rules)
    if supplied and rules.suspends_beyond:
        # jobs beyond the supply of power make way, at the same instant, until none is
        while code == ASK and runs_beyond(env.state, 0):
            clear(env.plan, env.state)
            make_way(env.state, env.plan, 0)
            code = _carry_out(env, rules)
    clear(env.plan, env.state)
    # the next question sees what a policy under a supply and a prediction would: no jobs that are too late
    if code == ASK:
        if supplied and rules.rejects_late and is_any_late(env.state):
            env.progress.nb_hidden = set_aside(env.state, too_late(env.state))
        if env.outlook.estimate != Estimator.WALLTIME:
            look_ahead(env.state, env.outlook)
    add_time(env, window, env.state.now - before)
    if rules.energy:
        env.progress.joules = joules_now(world_of(env))
        seconds = max(env.state.now - max(before, env.progress.counted_from), 0.0)
        env.progress.idle_servers += idle * seconds
        env.progress.wasted += watts * seconds
        if before >= env.progress.counted_from:
            env.progress.nb_switched += switched
    # no other question comes: the engine has none, the time is over, or all jobs are, which may end an episode
    out_of_time = env.state.now >= env.progress.ends_at - TOLERANCE
    if code != ASK or out_of_time or (rules.ends_with_jobs == 1 and _all_are_over(world_of(env))):
        _note_end(env, rules, code)
        return False
    return True


@kernel
def _note_end(env, rules, code):
    """The episode is over: terminated where nothing is left to be done, else truncated."""
    state = env.state
    over = rules.ends_with_jobs == 1 and (code == DONE or (code == ASK and _all_are_over(world_of(env))))
    over |= rules.drains == 1 and code in (DONE, DEADLOCK)
    if code == ASK:
        begin_decision(env.seen, env.cycles)  # for the last observation
    env.progress.refused_plan = code == BAD_COMMAND
    for i in range(state.nb_queued, state.nb_queued + env.progress.nb_hidden):
        leave_late(env, state.queue[i])
    end_episode(env.progress, over)


@kernel
def _carry_out(env, rules):
    """Carry the plan out and let time pass; returns a code of `advance`, GROW where the episode must be cut off."""
    world, state, plan = world_of(env), env.state, env.plan
    for i in range(plan.nb_actions if rules.counts_value else 0):
        if plan.kind[i] == REJECT:
            leave_late(env, plan.job[i])
    code = ask_engine(world, CARRY_OUT, state.now)
    # no room is not an error where jobs are suspended: far too often then, and the episode is cut off
    if code == UNCARRIED:
        code = GROW
    if code == GROW and world.sim.nb_rests + world.sim.nb_suspending == 0:
        raise InternalError("an environment has no room for what happens next")
    if rules.counts_value:
        add_value(env)
    return code


@kernel
def _all_are_over(world):
    """Whether all jobs have come, and none waits or runs; those that leave now because they are late count as over."""
    sim = world.sim
    return world.state.nb_queued + world.state.nb_running == 0 and sim.workload_at[0] == world.truth.workload_end[0]


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
