"""What the kernels of a scheduler are given and return, and those of schedulers that need none of their own.

All take the state, the facts of the platform and the scheduler's own memory, as `Encoder.new_memory` makes it.
"""

from typing import NamedTuple

from decision.compiling.bundle import F4, F8, I1, Bundle
from decision.compiling.entry import Interface
from decision.policies.prepared import NoMemory
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import PlanArrays
from decision.state.platform_facts import PlatformFacts

from .cycles import Cycles
from .progress import EpisodeProgress

BEGIN = Interface(int, ClusterState, PlatformFacts, Bundle)  # a run or an episode begins: forget all of the last one

# A cycle begins; returns 1 where there is something to choose in it, else 0
OPEN = Interface(int, ClusterState, PlatformFacts, Cycles, PlanArrays, Bundle)

# Make the choice of an action; what starts or switches is in the plan. Returns 1 where another choice follows in this
# cycle, else 0
ACT = Interface(int, ClusterState, PlatformFacts, Cycles, PlanArrays, Bundle, int)

# Write the observation (D,) and the mask of valid actions (A,), all of both
OBSERVE = Interface(int, ClusterState, PlatformFacts, Cycles, PlanArrays, Bundle, F4, I1)

# What is paid at this moment (CYCLE_ENDS or STEP_ENDS); only environments ask
REWARD = Interface(float, ClusterState, PlatformFacts, Cycles, EpisodeProgress, Bundle, int)
CYCLE_ENDS = 0  # the last choice of a cycle was made, and time passes next
STEP_ENDS = 1  # the next choice is open, or the episode is over (`progress.is_over`)

# Write the scheduler's own metrics (`ChoosingScheduler.metrics`) of an episode that is over
MEASURE = Interface(int, ClusterState, PlatformFacts, Cycles, EpisodeProgress, Bundle, F8)

# The action by which a recorded schedule goes on: job i began at starts[i] (seconds; nan where it did not)
FOLLOW = Interface(int, ClusterState, Cycles, Bundle, F8)

call_begin, call_open, call_act = BEGIN.caller(), OPEN.caller(), ACT.caller()
call_observe, call_reward, call_measure = OBSERVE.caller(), REWARD.caller(), MEASURE.caller()
call_follow = FOLLOW.caller()


class SchedulerKernels(NamedTuple):
    """Addresses of a scheduler's entries, as compiled loops take them."""

    begin: int
    open: int
    act: int
    observe: int
    reward: int
    measure: int


@BEGIN.entry_with(NoMemory)
def forget_nothing(state, facts, memory):
    """For schedulers that remember nothing."""
    return 0


@OPEN.entry_with(NoMemory)
def open_always(state, facts, cycles, plan, memory):
    """For schedulers that choose in every cycle."""
    return 1


@MEASURE.entry_with(NoMemory)
def measure_nothing(state, facts, cycles, progress, memory, out):
    """For schedulers without metrics of their own."""
    return 0
