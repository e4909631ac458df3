"""Any policy, but no job starts between two and four o'clock: what stands around another policy, and all of it."""

from decision.compiling.jit import kernel
from decision.policies import find_policy
from decision.policies.prepared import DECIDE, DECIDED, NO_PLAN
from decision.policies.wrappers import AroundPolicy, ask_inner
from decision.state.plan_arrays import CALL_AT, START, add, keep_only

DAY, BEGIN, END = 86400.0, 7200.0, 14400.0  # seconds


@DECIDE.entry
def _decide_quietly(state, facts, memory, plan):
    if not ask_inner(memory, facts, plan):
        return NO_PLAN
    if BEGIN <= state.now % DAY < END:
        put_off(plan, state.now - state.now % DAY + END)
    return DECIDED


@kernel
def put_off(plan, until):
    """Start nothing before that time (seconds), and ask again then.

    Calls before are left out, too: a guard asks for one after the other where what is due does not start.
    """
    count = plan.nb_actions
    keep_only(plan, (plan.kind[:count] != START) & ((plan.kind[:count] != CALL_AT) | (plan.time[:count] >= until)))
    plan.time[add(plan, CALL_AT, -1)] = until


class QuietHours(AroundPolicy):
    """Another policy, whose starts between two and four o'clock are left out."""

    entry = _decide_quietly

    def __init__(self, policy: str) -> None:
        super().__init__(find_policy(policy))
