"""A policy that is asked one decision at a time, about a state that somebody else changes."""

from collections.abc import Sequence

from decision.bundle import Bundle
from decision.policies.plan_arrays import PlanArrays
from decision.policies.policy import Policy
from decision.policies.prepared import ask_and_check, prepare
from decision.state.cluster import ClusterState, PlatformFacts


class CheckedPolicy:
    """Fills plans, and refuses those that cannot be carried out.

    Args:
        policy: that was reset.
        facts: of the hosts.
        names: the jobs' ids by number; may grow.
    """

    def __init__(self, policy: Policy, facts: PlatformFacts, names: Sequence[str]) -> None:
        self._prepared, self._facts = prepare(policy, facts, names), facts
        self._memory: Bundle | None = None
        self._arrays: tuple[ClusterState, PlanArrays] | None = None

    def decide(self, state: ClusterState, plan: PlanArrays) -> None:
        """Fill the plan for the present state.

        Raises:
            PolicyError: if the policy fails, or decides something impossible.
        """
        if self._memory is None or self._arrays != (state, plan):
            self._memory = self._prepared.memory_for(state, plan, self._memory)
            self._arrays = state, plan
        # one call for both: under Batsim the way into a kernel costs more than the decision
        if not ask_and_check(self._prepared.address, state, self._facts, self._memory.address, plan):
            raise self._prepared.error()
