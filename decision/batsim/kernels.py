"""What Batsim's messages and our plans do to the agent's copy of the cluster's state, and how a policy is asked.

They are entries, called with addresses: a message needs about three calls, and numba's own way into a kernel takes
longer than most decisions. Batsim 5 prints times with the rounding errors of SimGrid's clock; the state has
them as Batsim 4 prints them, so that no decision depends on the last digit.
"""

from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.engine.kernels.clock import six_decimals
from decision.policies.prepared import ask_and_check
from decision.state import transitions
from decision.state.cluster import PSTATE_COMPUTING, ClusterState, PlatformFacts
from decision.state.plan_arrays import REJECT, SET_PSTATE, START, SUSPEND, PlanArrays

FAULTY = -1  # what `ask_now` returns where the plan cannot be carried out


@Interface(int, ClusterState, float).entry
def time_is(state, now):
    """It is `now` seconds, as a message says."""
    transitions.tick(state, six_decimals(now))
    return 0


@Interface(int, ClusterState, float, int, float, int, float).entry
def job_arrives(state, now, size, walltime, user, estimate):
    """A job arrives at `now` seconds, as `transitions.submit`; its number."""
    transitions.tick(state, six_decimals(now))
    return transitions.submit(state, size, walltime, user, estimate)


@Interface(int, ClusterState, int, float, float, float, float).entry
def job_is_worth(state, job, value, qos, deadline, expected):
    """A job says what it is worth, as `transitions.appraise`."""
    transitions.appraise(state, job, value, qos, deadline, expected)
    return 0


@Interface(int, ClusterState, float, int, float, float).entry
def job_returns(state, now, job, restart, every):
    """What is left of a job that was suspended or failed arrives, as `transitions.resubmit`; its number."""
    transitions.tick(state, six_decimals(now))
    return transitions.resubmit(state, job, restart, every)


@Interface(int, ClusterState, PlatformFacts, float, int, int).entry
def job_ends(state, facts, now, job, final_state):
    """A job ends at `now` seconds."""
    transitions.tick(state, six_decimals(now))
    transitions.end(state, facts, job, final_state)
    return 0


@Interface(int, int, ClusterState, PlatformFacts, int, PlanArrays, float).entry
def ask_now(policy, state, facts, memory, plan, now):
    """Let the policy at an address fill the plan for `now` seconds, and check it; the number of actions, or FAULTY."""
    transitions.tick(state, six_decimals(now))
    if not ask_and_check(policy, state, facts, memory, plan):
        return FAULTY
    if plan.nb_actions == 0:
        transitions.take_ends(state)
    return plan.nb_actions


@Interface(int, ClusterState, PlatformFacts, PlanArrays).entry
def carry_out(state, facts, plan):
    """Start, reject and switch as the plan says; kills and calls show in later messages only."""
    for at in range(plan.nb_actions):
        kind = plan.kind[at]
        if kind == START:
            transitions.start(state, plan.job[at], plan.first, plan.last, plan.begin[at], plan.end[at])
        elif kind == REJECT:
            transitions.reject(state, plan.job[at])
        elif kind == SUSPEND:
            transitions.begin_suspension(state, plan.job[at], plan.value[at])
        elif kind == SET_PSTATE:
            _switch(state, facts, plan, at)
    transitions.drop_started(state)
    transitions.take_ends(state)
    return 0


@kernel
def _switch(state, facts, plan, at):
    """Hosts begin to sleep or wake; a change between computing pstates takes effect when Batsim reports it."""
    pstate = plan.value[at]
    for i in range(plan.begin[at], plan.end[at]):
        for host in range(plan.first[i], plan.last[i] + 1):
            old = state.pstate[host]
            wakes = facts.pstate_kind[host, pstate] == PSTATE_COMPUTING
            if not (wakes and facts.pstate_kind[host, old] == PSTATE_COMPUTING):
                virtual = facts.switch_on[host, old] if wakes else facts.switch_off[host, pstate]
                transitions.begin_switch(state, facts, host, virtual, wakes)
