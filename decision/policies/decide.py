"""One decision of a composed policy, compiled."""

import numpy as np

from decision.jit import kernel
from decision.state.cluster import N_FREE, N_QUEUED

from .allocation import start_job
from .backfill import choose
from .calls import ask_for_call
from .conservative import choose_reserved, next_call
from .order import sort_queue
from .plan import clear
from .power import manage_power
from .slots import CONSERVATIVE, FCFS, NEVER


@kernel
def decide(state, facts, config, memory, plan):
    """Fill `plan` for this instant, after all transitions of it; reads `state` and never writes it."""
    clear(plan, state)
    if state.count[N_FREE] == 0 and config.backfill != CONSERVATIVE and config.power == NEVER:
        return
    if config.order == FCFS:
        queue, length = state.queue, state.count[N_QUEUED]
    else:
        queue, length = memory.sorted, sort_queue(state, config, memory)
    call = np.inf
    if config.backfill == CONSERVATIVE:
        chosen = choose_reserved(state, facts, config, memory, queue, length)
        call = next_call(state, memory, chosen)
    else:
        chosen = choose(state, facts, config, memory, queue, length)
    for i in range(chosen):
        start_job(plan, config, memory.chosen[i], state.size[memory.chosen[i]])
    if config.power != NEVER:
        call = min(call, manage_power(state, facts, config, memory, plan, queue, length, chosen))
    if call < np.inf:
        ask_for_call(state, memory, plan, call)
