"""Any policy with predicted run times: it decides on the cluster as its `outlook` shows it."""

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import bundle_at
from decision.model.record import PredictionTable
from decision.policies.memory import Memory
from decision.policies.outlook import Outlook, grown_outlook, look_ahead, new_outlook, seen_through
from decision.policies.outlook_settings import Estimator, OutlookSettings
from decision.policies.policy import Policy
from decision.policies.prepared import DECIDE, DECIDED, NO_PLAN
from decision.policies.traits import Traits
from decision.state.cluster import ClusterState

from .base import AroundPolicy, ask_inner, layers, own_memory

_outlook_at = bundle_at(Outlook)


@DECIDE.entry
def _decide_estimated(state, facts, memory, plan):
    look_ahead(state, _outlook_at(own_memory(memory)))
    return DECIDED if ask_inner(memory, facts, plan) else NO_PLAN


class EstimatedPolicy(AroundPolicy):
    """Another policy, which expects run times that were predicted instead of walltimes.

    Args:
        policy: any.
        settings: who predicts, and how predictions are corrected.
        name: for messages.
    """

    entry = _decide_estimated

    def __init__(self, policy: Policy, settings: OutlookSettings, name: str = "") -> None:
        super().__init__(policy, name)
        self.settings = settings

    @property
    def traits(self) -> Traits:
        """Who predicts says what jobs must say."""
        who = self.settings.estimate
        return super().traits._replace(needs_estimate=who == Estimator.GIVEN, needs_users=who == Estimator.LAST2)

    @property
    def outlook(self) -> Outlook | None:
        """That of the present run, or of the last one."""
        return self.memory and self.memory.own  # type: ignore[return-value]

    def memory_for(self, state: ClusterState, memory: Outlook | None = None) -> Outlook:
        """An outlook with room for all of `state`, not up to date."""
        return new_outlook(state, self.settings) if memory is None else grown_outlook(memory, state)

    def seen(self, state: ClusterState, own: Outlook) -> ClusterState:
        """The state through the outlook."""
        return seen_through(state, own)

    def predictions(self, numbers: NDArray[np.integer]) -> PredictionTable | None:
        """What was expected in the last run of the jobs of these numbers, in the order of submission; None before."""
        outlook, promised = self.outlook, np.full(len(numbers), np.nan)
        if self.memory is None or outlook is None:
            return None
        if isinstance(self.memory.inner, Memory) and len(self.memory.inner.promised):
            promised = self.memory.inner.promised[numbers]
        return PredictionTable(
            predicted=outlook.predicted[numbers], corrections=outlook.corrections[numbers], promised=promised
        )

    def __repr__(self) -> str:
        return f"<policy {self.name}, estimate={self.settings.estimate.name.lower()}>"


def predictions_of(policy: Policy, numbers: NDArray[np.integer]) -> PredictionTable | None:
    """What a policy expected in the last run of the jobs of these numbers; None where it expects walltimes."""
    expects = next((layer for layer in layers(policy) if isinstance(layer, EstimatedPolicy)), None)
    return None if expects is None else expects.predictions(numbers)
