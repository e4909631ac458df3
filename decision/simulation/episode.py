"""The compiled loop: ask, decide, carry out."""

from decision.engine.arrays import ASK, TIMED_COMMANDS
from decision.engine.server import advance, load_reply
from decision.jit import kernel
from decision.policies.decide import decide

PAUSE = 16  # what `run_episode` returns beside the engine's codes: it has made its decisions
UNCARRIED = 17  # the plan could not be taken for lack of room: let arrays grow, then carry it out


@kernel
def run_episode(state, facts, truth, sim, rows, plan, config, memory, decisions):
    """Make at most `decisions` decisions; returns why it stopped: a code of `advance`, PAUSE or UNCARRIED.

    To be called when a question is open; after PAUSE again, after GROW `advance` must be called first.
    """
    sim.flag[TIMED_COMMANDS] = 0
    while decisions > 0:
        decide(state, facts, config, memory, plan)
        if not load_reply(state, truth, sim, rows, plan, state.now[0]):
            return UNCARRIED
        code = advance(state, facts, truth, sim, rows, plan)
        if code != ASK:
            return code
        decisions -= 1
    return PAUSE
