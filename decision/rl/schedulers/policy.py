"""A function from observations to actions as a policy, on all engines."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import Bundle, Int, bundle_at
from decision.compiling.jit import compile_ahead, kernel
from decision.model.platform import Platform
from decision.policies.policy import Plan
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays
from decision.state.view import ClusterView

from .base import ChoosingScheduler, Encoder, call_act, call_observe, call_open, find_observation
from .decision_points import Cycles, begin_decision, grow_cycles, new_cycles, show_arrival
from .own import ChoiceView
from .own_record import Own, OwnEncoder, OwnMemory, OwnScheduler

Choose = Callable[[NDArray[np.float32], NDArray[np.int8]], int]

_BEGIN_DECISION = -1  # in place of an action


class ChoosingPolicy:
    """Does what `choose` chooses, cycle by cycle, as in the environments.

    Args:
        encoder: what `choose` reads.
        choose: from an observation (D,) f32 and the mask of valid actions (A,) i8 to an action. The arrays are the
            same from call to call. It is not asked where a single action is valid.
        name: for messages.
        scheduler: whose encoder it is; by default the one that is known by the encoder's name.
    """

    needs_walltime = True

    def __init__(
        self, encoder: Encoder, choose: Choose, name: str = "", scheduler: ChoosingScheduler | None = None
    ) -> None:
        self.encoder, self.choose = encoder, choose
        self.scheduler: ChoosingScheduler = scheduler or find_observation(encoder.name)[0]
        self.name = name or self.scheduler.name
        self.needs_value, self.needs_qos = self.scheduler.needs_value, self.scheduler.needs_qos
        self.suspends, self.switches_hosts = encoder.suspends, self.scheduler.energy
        self._observation = np.zeros(encoder.shape, np.float32)
        self._mask = np.zeros(encoder.actions, np.int8)
        self._asked = _Asked()
        self._kept: tuple[ClusterState, PlatformFacts, Cycles, Bundle, PlanArrays] | None = None
        self._own = Own(self.scheduler) if isinstance(self.scheduler, OwnScheduler) else None
        self._shipped = self._observation, self._mask  # what kernels write: the base's, where the class is one's own
        if isinstance(encoder, OwnEncoder):
            self._shipped = np.zeros(encoder.inner.shape, np.float32), np.zeros(encoder.inner.actions, np.int8)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins.

        Raises:
            ConfigError: if the platform is another than the encoder is for.
        """
        self.encoder.check_platform(platform)
        self._kept = None

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Go through the cycles of this instant."""
        self._use(cluster, plan)
        always = self._own is not None  # a class of one's own says itself what is valid
        wanted = next_choice(self._asked.address, _BEGIN_DECISION, always, *self._shipped)
        while wanted:
            wanted = next_choice(self._asked.address, self._chosen(), always, *self._shipped)

    def _chosen(self) -> int:
        """The action for what is seen."""
        if self._own is None:
            return int(self.choose(self._observation, self._mask))
        self._own.write(self._observation, self._mask)
        valid = np.flatnonzero(self._mask)
        action = int(valid[0]) if len(valid) == 1 else int(self.choose(self._observation, self._mask))
        self._own.act(action)
        return action

    def _use(self, cluster: ClusterView, planned: Plan) -> None:
        """Bring the addresses up to date, where the arrays have been replaced by longer ones."""
        state, facts, plan, kept = cluster.arrays, cluster.facts, planned.arrays, self._kept
        if kept and kept[0] is state and kept[1] is facts and kept[4] is plan:
            return
        inner = self.encoder.inner if isinstance(self.encoder, OwnEncoder) else self.encoder
        inner.check_arrays(len(state.host_state), *self._shipped)
        cycles = new_cycles(state) if kept is None else grow_cycles(kept[2], state)
        if kept is None and self.scheduler.opens_first:
            cycles.call = -np.inf
        memory = self._memory(state, kept and kept[3])
        self._kept = (state, facts, cycles, memory, plan)
        entries = self.scheduler.open, self.scheduler.act, self.scheduler.observe
        compile_ahead(*entries)
        asked = self._asked
        asked.state, asked.facts, asked.cycles = state.address, facts.address, cycles.address
        asked.memory, asked.plan = memory.address, plan.address
        asked.opens, asked.acts, asked.observes = (entry.address for entry in entries)
        if self._own is not None:
            assert isinstance(memory, OwnMemory)
            view = ChoiceView(state, facts, cluster.names, cycles, planned)
            view.observation, view.valid = self._shipped
            view.since = -np.inf if kept is None else self._own.view.since
            self._own.look(view, planned, memory)
            if kept is None:
                self._own.begin()

    def _memory(self, state: ClusterState, before: Bundle | None) -> Bundle:
        """The memory of the kernels: the one before, with room for every job of `state`, or a new one."""
        if isinstance(self.scheduler, OwnScheduler):
            assert isinstance(self.encoder, OwnEncoder)
            return self.scheduler.memory_in_a_run(self.encoder, state, before)
        return self.encoder.new_memory(state) if before is None else self.encoder.with_room(before, state)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


class _Asked(Bundle):
    """Addresses: passing one of a bundle of them costs less than passing bundles (`compiling.bundle`)."""

    state: Int
    facts: Int
    cycles: Int
    memory: Int
    plan: Int
    # of the scheduler's entries
    opens: Int
    acts: Int
    observes: Int


_asked_at = bundle_at(_Asked)
_state_at, _facts_at, _plan_at = bundle_at(ClusterState), bundle_at(PlatformFacts), bundle_at(PlanArrays)
_cycles_at = bundle_at(Cycles)


@kernel
def next_choice(address, action, always, observation, mask):
    """Make a choice, or begin a decision (-1), and go on to the next choice of this instant; False: there is none.

    `address` is that of an `_Asked`; `always` whether the caller is asked also where a single action is valid.
    """
    asked = _asked_at(address)
    state, facts = _state_at(asked.state), _facts_at(asked.facts)
    cycles, plan, memory = _cycles_at(asked.cycles), _plan_at(asked.plan), asked.memory
    if action == _BEGIN_DECISION:
        goes_on = begin_decision(state, cycles) and _open(asked, state, facts, cycles, plan, memory)
    else:
        goes_on = _act(asked, state, facts, cycles, plan, memory, action)
    while True:
        # choices of this cycle; where a single action is valid it is taken, and nobody is asked
        while goes_on:
            call_observe(asked.observes, (state, facts, cycles, plan, memory, observation, mask))
            only = _only_valid(mask)
            if only < 0 or always:  # this one is for the caller: its call with the action goes on from here
                return True
            goes_on = _act(asked, state, facts, cycles, plan, memory, only)
        # the next cycle, if another job has come at this instant
        if show_arrival(state, cycles) < 0:
            return False
        goes_on = _open(asked, state, facts, cycles, plan, memory)


@kernel
def _open(asked, state, facts, cycles, plan, memory):
    return call_open(asked.opens, (state, facts, cycles, plan, memory)) != 0


@kernel
def _act(asked, state, facts, cycles, plan, memory, action):
    return call_act(asked.acts, (state, facts, cycles, plan, memory, action)) != 0


@kernel
def _only_valid(mask):
    """The action that alone is valid, -1 where there are several."""
    only = -1
    for action in range(len(mask)):
        if mask[action]:
            if only >= 0:
                return -1
            only = action
    return only
