"""A policy that is asked one decision at a time, about the state that Batsim's messages make."""

from collections.abc import Sequence

from decision.compiling.bundle import Bundle
from decision.policies.policy import Policy
from decision.policies.prepared import prepare
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import PlanArrays
from decision.state.platform_facts import PlatformFacts

from .kernels import FAULTY, ask_now


class CheckedPolicy:
    """Fills plans, and refuses those that cannot be carried out.

    Args:
        policy: that was reset.
        facts: of the hosts.
        names: the jobs' ids by number; may grow.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.
    """

    def __init__(self, policy: Policy, facts: PlatformFacts, names: Sequence[str], decide_limit: float = 0.0) -> None:
        self._prepared, self._facts = prepare(policy, facts, names, decide_limit), facts
        self._memory: Bundle | None = None
        self._state: ClusterState | None = None
        self._plan: PlanArrays | None = None
        self._ask = ask_now.from_python

    def decide(self, state: ClusterState, plan: PlanArrays, now: float) -> int:
        """Fill the plan for `now` seconds; returns the number of its actions.

        Raises:
            PolicyError: if the policy fails, or decides something impossible.
        """
        if state is not self._state or plan is not self._plan:
            self._memory = self._prepared.memory_for(state, plan, self._memory)
            self._state, self._plan = state, plan
            addresses = (bundle.address for bundle in (state, self._facts))
            self._arguments = (self._prepared.address, *addresses, self._memory.address, plan.address)
        actions: int = self._ask(*self._arguments, now)
        if actions == FAULTY:
            raise self._prepared.error()
        return actions
