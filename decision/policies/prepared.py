"""How loops ask a policy: one protocol for policies that are compiled and policies in Python.

Design
------
A loop, compiled itself, asks a policy through the address of an entry of `DECIDE`, and gives it the address of its
memory. A compiled policy (`CompiledPolicy`) has such an entry, and so has what stands around another policy
(`decision.policies.wrappers`); for any other, `prepare` makes a callback into Python. So one loop runs them all: no
loop knows which policies there are, a new policy compiles no loop again, and a policy in Python runs in all places
where a compiled one does.

What a policy in Python plans is checked before it is carried out, and what it raises waits in `PreparedPolicy.error`,
because nothing can be raised through a kernel. The error names the line in the user's file (`loading.failure`), and a
decision may have a limit (`loading.Deadline`). Compiled policies keep the rules; tests see to that.
"""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from decision.compiling.bundle import Bundle
from decision.compiling.entry import Entry, Interface
from decision.compiling.jit import kernel
from decision.model.errors import DecideTimeoutError, DecisionError, InternalError, PolicyError, raise_interruption
from decision.model.platform import Platform
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays, clear
from decision.state.view import ClusterView

from .loading import Deadline, TookTooLong, failure, name_of, source_line
from .plan_check import FINE, first_fault, refusal
from .policy import Plan, Policy

DECIDE = Interface(int, ClusterState, PlatformFacts, int, PlanArrays)  # the integer: address of the policy's memory
call_policy = DECIDE.caller()

# What an entry of DECIDE returns
NO_PLAN = 0  # there is no plan; `PreparedPolicy.error` says why
DECIDED = 1  # the plan can be carried out
UNCHECKED = 2  # there is a plan, which may be impossible


@kernel
def ask(address, state, facts, memory, plan):
    """Let a policy fill the plan for this instant; whether the plan can be carried out.

    The policy reads `state` and never writes it. Where the plan cannot be carried out, `PreparedPolicy.error` says why.
    """
    outcome = call_policy(address, (state, facts, memory, plan))
    return outcome == DECIDED or (outcome == UNCHECKED and first_fault(state, facts, plan)[1] == FINE)


@kernel
def ask_and_check(address, state, facts, memory, plan):
    """As `ask`, but the plan of a compiled policy is checked too."""
    outcome = call_policy(address, (state, facts, memory, plan))
    return outcome != NO_PLAN and first_fault(state, facts, plan)[1] == FINE


class CompiledPolicy:
    """Base of policies that decide in compiled code, on arrays.

    A subclass sets `entry` and overrides `memory_for`, which is called after `reset`.
    """

    entry: Entry  # of DECIDE
    raised: BaseException | None = None  # by what a compiled decision called in Python; its outcome is NO_PLAN
    _asked: "tuple[PreparedPolicy, Bundle | None] | None" = None  # where it is asked by `decide`: with its memory

    @property
    def called(self) -> tuple[Entry, ...]:
        """What `entry` calls by address here, and most policies do not use."""
        return ()

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform; whatever was remembered of an earlier one is forgotten."""
        self._asked, self.raised = None, None

    def memory_for(self, state: ClusterState, memory: Any = None) -> Bundle:
        """`memory` with room for all of `state`: the same bundle where it has; an empty one where there is none yet."""
        raise NotImplementedError

    def prepared(self, facts: PlatformFacts, names: Sequence[str], decide_limit: float = 0.0) -> "PreparedPolicy":
        """The policy, ready to be asked throughout one run; arguments are those of `prepare`."""
        return _Compiled(self, facts, names)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan, for callers that have a `ClusterView`; such as policies made of others."""
        # Asked from Python, the policy keeps its own memory, as a loop would keep it for the policy.
        prepared, memory = self._asked or (self.prepared(cluster.facts, cluster.names), None)
        memory = prepared.memory_for(cluster.arrays, plan.arrays, memory)
        self._asked = prepared, memory
        if not ask(prepared.address, cluster.arrays, cluster.facts, memory.address, plan.arrays):
            raise prepared.error()


class PreparedPolicy(Protocol):
    """A policy that is ready to be asked throughout one run."""

    address: int  # of its entry of DECIDE
    looks_back: bool  # whether it may ask for the hosts of jobs that ended before its last decision

    @property
    def seconds(self) -> float:
        """Spent deciding so far; nan where nobody measures it, because it is compiled."""

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        """The memory to ask with, on these arrays.

        To be called before the first decision, and again whenever `state` or `plan` was replaced.

        Args:
            state: the cluster.
            plan: to be filled.
            memory: what this returned before, in the same run; a new run begins without.
        """

    def error(self) -> BaseException:
        """Why the last plan cannot be carried out: what the policy raised, or a `PolicyError`."""


def prepare(policy: Policy, facts: PlatformFacts, names: Sequence[str], decide_limit: float = 0.0) -> PreparedPolicy:
    """Make a policy ready that was reset.

    Args:
        policy: that is to be asked.
        facts: of the hosts.
        names: the jobs' ids by number; may grow.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.
    """
    if isinstance(policy, CompiledPolicy):
        return policy.prepared(facts, names, decide_limit)
    return _InPython(policy, facts, names, decide_limit)


class _Prepared:
    """What both kinds have in common: the arrays that they were prepared for."""

    def __init__(self, policy: Any, facts: PlatformFacts, names: Sequence[str]) -> None:
        self._policy, self._facts, self._names = policy, facts, names
        self._state: ClusterState
        self._plan: PlanArrays

    def _use(self, state: ClusterState, plan: PlanArrays) -> None:
        self._state, self._plan = state, plan

    def error(self) -> BaseException:
        fault = first_fault(self._state, self._facts, self._plan)
        return refusal(self._state, self._facts, self._plan, self._names, fault)


class _Compiled(_Prepared):
    seconds = float("nan")
    looks_back = False

    def __init__(self, policy: CompiledPolicy, facts: PlatformFacts, names: Sequence[str]) -> None:
        super().__init__(policy, facts, names)
        self.address = policy.entry.address

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        self._use(state, plan)
        return self._policy.memory_for(state, memory)

    def error(self) -> BaseException:
        return self._policy.raised or super().error()


class NoMemory(Bundle):
    """The memory of what remembers nothing, or elsewhere, as a policy in Python does."""


class _InPython(_Prepared):
    looks_back = True

    def __init__(self, policy: Policy, facts: PlatformFacts, names: Sequence[str], decide_limit: float) -> None:
        super().__init__(policy, facts, names)
        self.seconds = 0.0
        self._deadline = Deadline(decide_limit) if decide_limit else None
        self._callback = DECIDE.callback(self._decide)
        self.address = self._callback.address
        self._raised: BaseException | None = None

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        self._use(state, plan)
        return NoMemory() if memory is None else memory

    def error(self) -> BaseException:
        return self._raised or super().error()

    def _decide(self, *_addresses: int) -> int:
        began = time.perf_counter()
        try:
            raise_interruption()
            self._ask()
        except BaseException as error:  # an interruption, too, must not get lost in the kernel
            self._raised = error
            return NO_PLAN
        self.seconds += time.perf_counter() - began
        return UNCHECKED

    def _ask(self) -> None:
        state, plan = self._state, self._plan
        clear(plan, state)
        view, to_fill = ClusterView(state, self._facts, self._names), Plan(plan, state, self._facts)
        try:
            if self._deadline is None:
                self._policy.decide(view, to_fill)
            else:
                self._ask_in_time(self._deadline, view, to_fill)
        except (InternalError, DecideTimeoutError):
            raise
        except PolicyError as error:  # what `Plan` and `ClusterView` refuse
            if error.__cause__ is not None:  # a policy that this one asks has said it
                raise
            where = source_line(error)
            raise type(error)(f"{error} ({where})" if where else str(error), field=error.field) from error
        except DecisionError:
            raise
        except KeyboardInterrupt as stop:
            stop.add_note(f"in decide of {name_of(self._policy)}: {source_line(stop)}")
            raise
        except (Exception, SystemExit) as error:
            raise failure(self._policy, "decide", error, f"t={state.now:.12g} s: ") from error

    def _ask_in_time(self, deadline: Deadline, view: ClusterView, plan: Plan) -> None:
        late: BaseException | None = None
        try:
            try:
                deadline.begin()
                self._policy.decide(view, plan)
            finally:
                deadline.end()
        # The watching thread raises at any line of this thread, those of `finally` included.
        except (TookTooLong, KeyboardInterrupt) as error:
            deadline.end()  # it may have arrived before the end above
            if not deadline.over:
                raise
            late = error
        if deadline.over:
            took = f"policy {name_of(self._policy)}: decide took longer than {deadline.seconds:g} s"
            where = f" ({deadline.where})" if deadline.where else ""
            raise DecideTimeoutError(f"t={view.now:.12g} s: {took}{where}", field="decide_limit") from late
