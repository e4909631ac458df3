"""A plan's effect on the state that a decision process keeps: what it sends to Batsim it also applies here."""

from decision.jit import kernel
from decision.policies.plan_arrays import REJECT, SET_PSTATE, START
from decision.state import transitions
from decision.state.cluster import PSTATE_COMPUTING


@kernel
def carry_out(state, facts, plan):
    """Start, reject and switch as the plan says; kills and calls show in later messages only."""
    for at in range(plan.count[0]):
        kind = plan.kind[at]
        if kind == START:
            transitions.start(state, plan.job[at], plan.first, plan.last, plan.begin[at], plan.end[at])
        elif kind == REJECT:
            transitions.reject(state, plan.job[at])
        elif kind == SET_PSTATE:
            _switch(state, facts, plan, at)
    transitions.drop_started(state)


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
