"""Any policy with predicted run times: it decides on the cluster as its `outlook` shows it."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from decision.bundle import Bundle
from decision.model.platform import Platform
from decision.model.record import PredictionTable
from decision.state.cluster import ClusterState
from decision.state.view import ClusterView

from .around import AroundPolicy, layers
from .memory import Memory
from .outlook import Estimator, Outlook, OutlookSettings, grown_outlook, look_ahead, new_outlook, seen_through
from .policy import Plan, Policy
from .traits import Traits


class EstimatedPolicy(AroundPolicy):
    """Another policy, which expects run times that were predicted instead of walltimes.

    Args:
        policy: any.
        settings: who predicts, and how predictions are corrected.
        name: for messages.
    """

    def __init__(self, policy: Policy, settings: OutlookSettings, name: str = "") -> None:
        super().__init__(policy, name)
        self.settings = settings
        self.outlook: Outlook | None = None  # of the present run, or the last one
        self.memory: Bundle | None = None  # that the policy has in it

    @property
    def traits(self) -> Traits:
        """Who predicts says what jobs must say."""
        who = self.settings.estimate
        return super().traits._replace(needs_estimate=who == Estimator.GIVEN, needs_users=who == Estimator.LAST2)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        self.policy.reset(platform, seed)
        self.outlook = self.memory = None

    def look(self, state: ClusterState) -> ClusterState:
        """The state as the policy sees it from now on; the outlook has room for all of it, and is not up to date."""
        self.outlook = new_outlook(state, self.settings) if self.outlook is None else grown_outlook(self.outlook, state)
        return seen_through(state, self.outlook)

    def predictions(self, numbers: NDArray[np.integer]) -> PredictionTable:
        """What was expected in the last run of the jobs of these numbers, in the order of submission."""
        outlook = cast(Outlook, self.outlook)
        promised = np.full(len(numbers), np.nan)
        if isinstance(self.memory, Memory) and len(self.memory.promised):
            promised = self.memory.promised[numbers]
        return PredictionTable(
            predicted=outlook.predicted[numbers], corrections=outlook.corrections[numbers], promised=promised
        )

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan, for callers that have a `ClusterView`."""
        seen = self.look(cluster.arrays)
        look_ahead(cluster.arrays, self.outlook)
        self.policy.decide(ClusterView(seen, cluster.facts, cluster.names), plan)

    def __repr__(self) -> str:
        return f"<policy {self.name}, estimate={self.settings.estimate.name.lower()}>"


def predictions_of(policy: Policy, numbers: NDArray[np.integer]) -> PredictionTable | None:
    """What a policy expected in the last run of the jobs of these numbers; None where it expects walltimes."""
    expects = next((layer for layer in layers(policy) if isinstance(layer, EstimatedPolicy)), None)
    return expects.predictions(numbers) if expects is not None and expects.outlook is not None else None
