"""The log: what the next question to the decision process will say."""

from decision.jit import kernel

from .arrays import LOG_ASKED, LOG_N


@kernel
def log(state, sim, kind, arg, value):
    """Something happened now that the decision process is told with the next question."""
    if sim.flag[LOG_ASKED]:
        sim.flag[LOG_ASKED] = 0
        sim.flag[LOG_N] = 0
    at = sim.flag[LOG_N]
    sim.flag[LOG_N] = at + 1
    sim.log_kind[at] = kind
    sim.log_time[at] = state.now[0]
    sim.log_arg[at] = arg
    sim.log_value[at] = value
