"""A policy at work on a state, whoever changes that state: it is asked, and what it plans is checked."""

from collections.abc import Sequence
from typing import Protocol

from decision.jit import kernel
from decision.model.errors import DecisionError, PolicyError
from decision.policies.base import Plan, Policy
from decision.policies.check import FINE, check_plan, first_fault, refusal
from decision.policies.composed import ComposedPolicy
from decision.policies.decide import decide
from decision.policies.plan import PlanArrays, clear
from decision.policies.slots import Memory
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.view import ClusterView


class Decider(Protocol):
    """Fills a plan for the present state."""

    def decide(self, state: ClusterState, plan: PlanArrays) -> None:
        """Decide.

        Raises:
            PolicyError: if the policy fails, or decides something impossible.
        """


def make_decider(policy: Policy, facts: PlatformFacts, names: Sequence[str]) -> Decider:
    """The decider for a policy that was reset; `names` are the jobs' ids by number, and may grow."""
    if isinstance(policy, ComposedPolicy):
        return _Compiled(policy, facts, names)
    return _Python(policy, facts, names)


class _Compiled:
    def __init__(self, policy: ComposedPolicy, facts: PlatformFacts, names: Sequence[str]) -> None:
        self._policy, self._facts, self._names = policy, facts, names
        self._memory: Memory | None = None
        self._state: ClusterState | None = None

    def decide(self, state: ClusterState, plan: PlanArrays) -> None:
        if state is not self._state:
            self._memory = self._policy.memory_for(state, self._memory)
            self._state = state
        fault = _decide_and_check(state, self._facts, self._policy.config, self._memory, plan)
        if fault[1] != FINE:
            raise refusal(state, plan, self._names, fault)


@kernel
def _decide_and_check(state, facts, config, memory, plan):
    """One call for both: under Batsim the way into a kernel costs more than the decision."""
    decide(state, facts, config, memory, plan)
    return first_fault(state, facts, plan)


class _Python:
    def __init__(self, policy: Policy, facts: PlatformFacts, names: Sequence[str]) -> None:
        self._policy, self._facts, self._names = policy, facts, names

    def decide(self, state: ClusterState, plan: PlanArrays) -> None:
        clear(plan, state)
        try:
            self._policy.decide(ClusterView(state, self._facts, self._names), Plan(plan, state, self._facts))
        except DecisionError:
            raise
        except Exception as error:
            where = f"{type(self._policy).__module__}.{type(self._policy).__qualname__}"
            raise PolicyError(
                f"t={state.now[0]:.12g} s: policy {where} failed: {type(error).__name__}: {error}"
            ) from error
        check_plan(state, self._facts, plan, self._names)
