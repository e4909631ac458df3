"""From a decision to the next question of an episode: the plan is carried out, and time passes."""

from decision.compiling.jit import kernel
from decision.engine.kernels.arrays import ASK, BAD_COMMAND, DEADLOCK, DONE, GROW, UNCARRIED
from decision.engine.kernels.energy import joules_now
from decision.engine.kernels.server import CARRY_OUT, ask_engine
from decision.engine.kernels.switches import forget_requests
from decision.learned.cycles import begin_decision
from decision.learned.progress import end_episode
from decision.model.errors import InternalError
from decision.policies.around.supply_kernels import is_any_late, make_way, runs_beyond, too_late
from decision.policies.capacity import TOLERANCE
from decision.policies.outlook import look_ahead
from decision.policies.outlook_settings import Estimator
from decision.policies.servers import see_servers
from decision.state.plan_arrays import CALL_AT, REJECT, add, clear
from decision.state.transitions import set_aside

from .environment import world_of
from .metrics import add_time, add_worth, leave_late


@kernel
def to_next_question(env, rules, window, supplied):
    """Carry the plan out and let time pass; False where the episode is cut off, or nothing can happen any more.

    `supplied` is whether jobs beyond the supply of power make way, and those that are too late are hidden, as a policy
    does by itself that is one under a supply (`decision.policies.around.supplied`).
    """
    before, idle, watts, switched = env.state.now, 0, 0.0, 0
    _end_in_time(env)
    if rules.energy:
        forget_requests(world_of(env))
        idle, watts, switched = see_servers(env.state, env.facts, env.plan)
    code = _carry_out(env, rules)
    if supplied and rules.suspends_beyond:
        code = _keep_to_supply(env, rules, code)
    clear(env.plan, env.state)
    if code == ASK:
        _prepare_question(env, rules, supplied)
    add_time(env, window, env.state.now - before)
    if rules.energy:
        env.progress.joules = joules_now(world_of(env))
        _count_servers(env.progress, before, env.state.now, idle, watts, switched)
    if _has_ended(env, rules, code):
        _note_end(env, rules, code)
        return False
    return True


@kernel
def _end_in_time(env):
    """Have the engine ask at the very instant at which the episode ends."""
    if env.progress.timed == 0:
        env.progress.timed = 1
        env.plan.time[add(env.plan, CALL_AT, -1)] = env.progress.ends_at


@kernel
def _keep_to_supply(env, rules, code):
    """Let jobs beyond the supply of power make way until none is; returns the last code of `_carry_out`."""
    while code == ASK and runs_beyond(env.state, 0):
        clear(env.plan, env.state)
        make_way(env.state, env.plan, 0)
        code = _carry_out(env, rules)
    return code


@kernel
def _prepare_question(env, rules, supplied):
    """Hide jobs that are too late, and predict."""
    if supplied and rules.rejects_late and is_any_late(env.state):
        env.progress.nb_hidden = set_aside(env.state, too_late(env.state))
    if env.outlook.settings[0] != Estimator.WALLTIME:
        look_ahead(env.state, env.outlook)


@kernel
def _has_ended(env, rules, code):
    """Whether no other question comes: the engine has none, the time is over, or all jobs are, which may end it."""
    if code != ASK or env.state.now >= env.progress.ends_at - TOLERANCE:
        return True
    return rules.ends_with_jobs == 1 and _all_are_over(world_of(env))


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
    for i in range(plan.nb_actions if rules.worth else 0):
        if plan.kind[i] == REJECT:
            leave_late(env, plan.job[i])
    code = ask_engine(world, CARRY_OUT, state.now)
    if code == UNCARRIED:
        code = GROW
    if code == GROW and world.sim.nb_rests + world.sim.nb_suspending == 0:
        raise InternalError("an environment has no room for what happens next")
    if rules.worth:
        add_worth(env)
    return code


@kernel
def _all_are_over(world):
    """Whether all jobs have come, and none waits or runs; those that leave now because they are late count as over."""
    sim = world.sim
    return world.state.nb_queued + world.state.nb_running == 0 and sim.workload_at[0] == world.truth.workload_end[0]


@kernel
def _count_servers(progress, begin, end, idle, watts, switched):
    """Add up what servers did between two times (seconds), from when on it counts."""
    counted = progress.counted_from
    seconds = max(end - max(begin, counted), 0.0)
    progress.idle_servers += idle * seconds
    progress.wasted += watts * seconds
    if begin >= counted:
        progress.nb_switched += switched
