"""Asking to be called: once for each time, because a peer keeps every request."""

import numpy as np

from decision.jit import kernel

from .capacity import CLOCK
from .plan import CALL_AT, add
from .slots import CALL

SOON = 1e-6  # seconds: no call is asked for sooner, so that a peer whose clock rounds down comes on


@kernel
def ask_for_call(state, memory, plan, time):
    """Ask to be called at `time` (seconds; inf for never) unless a call is pending that comes no later."""
    pending = memory.times[CALL]
    if pending <= state.now[0] + CLOCK:
        pending = np.inf
    time = max(time, state.now[0] + SOON)
    if time < pending:
        plan.time[add(plan, CALL_AT, -1)] = time
        pending = time
    memory.times[CALL] = pending
