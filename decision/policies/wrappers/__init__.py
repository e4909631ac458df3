"""What stands around another policy, any one: a guard (`guard`), predicted run times (`prediction`), and a supply of
power with a cap, a battery, deadlines and failures (`supply`).

Design
------
What is around a policy is a compiled policy itself: it has an entry, which asks the policy in it (`ask_inner`) and
changes what that one sees or plans, and a memory of its own. So it stands around any other, compiled or in Python, in
any order, and is asked in one way everywhere: in the compiled loop, under messages, in environments and from Python.
What it changes of the needs of the policy in it, it says by `traits`.

To add one, subclass `AroundPolicy`: set `entry`, override `memory_for`. `tests/helpers/quiet_hours.py` is a
whole one: no job starts between two and four o'clock.

Rejected: two hooks, before and after, which the loop calls: each would have to say what happens where the policy is not
asked, or is asked about another state. A twin of each in Python, for callers that are not compiled: two that must do
the same, where one address serves both.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from decision.compiling.bundle import Bundle, Int, bundle_at
from decision.compiling.entry import Entry
from decision.compiling.jit import kernel
from decision.model.platform import Platform
from decision.policies.policy import Policy
from decision.policies.prepared import CompiledPolicy, NoMemory, PreparedPolicy, ask, prepare
from decision.policies.traits import Traits, traits_of
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays


class AroundMemory(Bundle):
    """What a policy around another one is asked with; it keeps alive what it names.

    Args:
        asked: address of the entry of the policy in it.
        inner: the memory of that policy.
        seen: the cluster as that policy sees it.
        own: what the one around remembers itself.
    """

    # addresses of these
    asked_at: Int
    inner_at: Int
    seen_at: Int
    own_at: Int

    def __init__(self, asked: int, inner: Bundle, seen: ClusterState, own: Bundle) -> None:
        # Addresses, because a kernel cannot hold a bundle whose class it does not know; the attributes keep them alive.
        super().__init__(asked_at=asked, inner_at=inner.address, seen_at=seen.address, own_at=own.address)
        self.inner, self.seen, self.own = inner, seen, own


_around_at, _state_at = bundle_at(AroundMemory), bundle_at(ClusterState)


@kernel
def ask_inner(memory, facts, plan):
    """Let the policy in it fill the plan; whether it can be carried out, else NO_PLAN is to be returned."""
    around = _around_at(memory)
    return ask(around.asked_at, _state_at(around.seen_at), facts, around.inner_at, plan)


@kernel
def own_memory(memory):
    """The address of what `AroundPolicy.memory_for` made."""
    return _around_at(memory).own_at


class AroundPolicy(CompiledPolicy):
    """What is around another policy, and needs of jobs what that one needs unless it says otherwise.

    A subclass sets `entry`, whose kernel gets the address of an `AroundMemory`.

    Args:
        policy: any.
        name: for messages; by default that of `policy`.
    """

    def __init__(self, policy: Policy, name: str = "") -> None:
        self.policy, self.name = policy, name or traits_of(policy).name
        self.memory: AroundMemory | None = None  # of the present run, or the last one

    @property
    def traits(self) -> Traits:
        """Those of the policy in it, which it changes."""
        return traits_of(self.policy)._replace(name=self.name)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        super().reset(platform, seed)
        self.policy.reset(platform, seed)
        self.memory = None

    def memory_for(self, state: ClusterState, memory: Any = None) -> Bundle:
        """What it remembers itself, with room for all of `state`: nothing."""
        return NoMemory() if memory is None else memory

    def seen(self, state: ClusterState, own: Any) -> ClusterState:
        """The cluster as the policy in it sees it from now on; `own` is what `memory_for` made."""
        return state

    def prepared(self, facts: PlatformFacts, names: Sequence[str], decide_limit: float = 0.0) -> PreparedPolicy:
        """Both, ready to be asked as one."""
        return _Around(self, prepare(self.policy, facts, names, decide_limit))


class _Around:
    """A prepared policy and what is around it."""

    def __init__(self, policy: AroundPolicy, asked: PreparedPolicy) -> None:
        self._policy, self._asked = policy, asked
        self.address, self.looks_back = policy.entry.address, asked.looks_back
        self.recalls = asked.recalls

    @property
    def seconds(self) -> float:
        return self._asked.seconds

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Any = None) -> Bundle:
        own = self._policy.memory_for(state, memory and memory.own)
        seen = self._policy.seen(state, own)
        inner = self._asked.memory_for(seen, plan, memory and memory.inner)
        self._policy.memory = AroundMemory(self._asked.address, inner, seen, own)
        return self._policy.memory

    def error(self) -> BaseException:
        return self._policy.raised or self._asked.error()


def layers(policy: Policy) -> Iterator[Policy]:
    """The policy and those in it, from the outermost to the one that decides."""
    yield policy
    while isinstance(policy, AroundPolicy):
        policy = policy.policy
        yield policy


def innermost(policy: Policy) -> Policy:
    """The policy that decides, without what is around it."""
    return list(layers(policy))[-1]


def entries_of(policy: Policy) -> list[Entry]:
    """The compiled functions that decide for a policy, to be compiled ahead."""
    compiled = [layer for layer in layers(policy) if isinstance(layer, CompiledPolicy)]
    return [entry for layer in compiled for entry in (layer.entry, *layer.called)]
