"""A function from observations to actions as a policy, wherever policies run."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from decision.model.platform import Platform
from decision.policies.base import Plan
from decision.state.cluster import ClusterState
from decision.state.view import ClusterView

from .choices import DBF, act, open_cycle
from .cycles import Cycles, begin_decision, new_cycles, show_arrival, with_room
from .encoder import Encoder
from .observe import observe

Choose = Callable[[NDArray[np.float32], NDArray[np.int8]], int]


class CyclePolicy:
    """Starts what `choose` chooses, cycle by cycle, as in the environments.

    Args:
        encoder: what `choose` reads.
        choose: from an observation (D,) f32 and the mask of valid actions (A,) i8 to an action. The arrays are the
            same from call to call. It is not asked where DBF's only valid action is Fwd.
        name: for messages.
    """

    needs_walltime = True

    def __init__(self, encoder: Encoder, choose: Choose, name: str = "dbf") -> None:
        self.encoder, self.choose, self.name = encoder, choose, name
        self._encoding = encoder.encoding
        self._observation = np.zeros(encoder.shape, np.float32)
        self._mask = np.zeros(encoder.actions, np.int8)
        self._cycles: Cycles | None = None
        self._state: ClusterState | None = None

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins.

        Raises:
            ConfigError: if the platform is of another size than the encoder.
        """
        self.encoder.check_cores(len(platform.hosts), platform.path or "the platform")
        self._cycles = self._state = None

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Go through the cycles of this instant."""
        state = cluster.arrays
        if state is not self._state or self._cycles is None:
            self._cycles = new_cycles(state) if self._cycles is None else with_room(self._cycles, state)
            self._state = state
        cycles = self._cycles
        if begin_decision(state, cycles):
            self._cycle(state, cycles, plan)
        while show_arrival(state, cycles) >= 0:
            self._cycle(state, cycles, plan)

    def _cycle(self, state: ClusterState, cycles: Cycles, plan: Plan) -> None:
        goes_on = open_cycle(state, cycles, plan.arrays, self._encoding)
        while goes_on:
            observe(state, cycles, plan.arrays, self._encoding, self._observation, self._mask)
            if self._encoding.kind == DBF and not self._mask[:-1].any():
                return
            action = int(self.choose(self._observation, self._mask))
            goes_on = act(state, cycles, plan.arrays, self._encoding, action)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"
