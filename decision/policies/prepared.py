"""How loops ask a policy: one protocol for policies that are compiled and policies in Python.

Design
------
A loop, compiled itself, asks a policy through the address of an entry of `DECIDE`, and gives it the address of its
memory. A compiled policy (`CompiledPolicy`) has such an entry; for any other, `prepare` makes a callback into Python.
So one loop runs them all: no loop knows which policies there are, a new policy compiles no loop again, and a policy in
Python runs wherever a compiled one does.

What a policy in Python plans is checked before it is carried out, and what it raises waits in `PreparedPolicy.error`,
because nothing can be raised through a kernel. The error names the line in the user's file (`failures`), and a decision
may have a limit (`deadline`). Compiled policies keep the rules; tests see to that.
"""

import time
from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np

from decision.bundle import I8, Bundle, bundle_at
from decision.entry import Entry, Interface
from decision.jit import kernel
from decision.model.errors import DecideTimeoutError, DecisionError, InternalError, PolicyError
from decision.model.interrupts import raise_interruption
from decision.model.platform import Platform
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays, clear
from decision.state.transitions import set_aside
from decision.state.view import ClusterView

from .battery import BatteryState, ask_when_empty, follow_battery
from .deadline import Deadline, TookTooLong
from .estimated import EstimatedPolicy
from .failures import failure, name_of, source_line
from .guarded import GuardedPolicy, guard_plan
from .memory import Memory, memory_at
from .outlook import Outlook, look_ahead
from .plan_check import FINE, first_fault, refusal
from .policy import Plan, Policy
from .supplied import SuppliedPolicy, ask_when_late, let_fail, reject_hidden, runs_beyond, some_failed, too_late
from .suspension import make_way

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
    _memory: Bundle | None = None

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform; whatever was remembered of an earlier one is forgotten."""
        self._memory, self.raised = None, None

    def memory_for(self, state: ClusterState, memory: Any = None) -> Bundle:
        """`memory` with room for all of `state`: the same bundle where it has; an empty one where there is none yet."""
        raise NotImplementedError

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan, for callers that have a `ClusterView`; such as policies made of others."""
        self._memory = self.memory_for(cluster.arrays, self._memory)
        ask(self.entry.address, cluster.arrays, cluster.facts, self._memory.address, plan.arrays)
        if self.raised:
            raise self.raised


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
    if isinstance(policy, SuppliedPolicy):
        return _Supplied(policy, prepare(policy.policy, facts, names, decide_limit))
    if isinstance(policy, GuardedPolicy):
        return _Guarded(policy, prepare(policy.policy, facts, names, decide_limit))
    if isinstance(policy, EstimatedPolicy):
        return _Estimated(policy, prepare(policy.policy, facts, names, decide_limit))
    if hasattr(policy, "entry"):
        return _Compiled(cast(CompiledPolicy, policy), facts, names)
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


class _GuardedMemory(Bundle):
    """Whom to ask, and what to remember."""

    addresses: I8  # (3,) of the policy's entry, of its memory, and of the guard's


_guarded_at = bundle_at(_GuardedMemory)


@DECIDE.entry
def _decide_guarded(state, facts, memory, plan):
    addresses = _guarded_at(memory).addresses
    outcome = call_policy(addresses[0], (state, facts, addresses[1], plan))
    if outcome == NO_PLAN or (outcome == UNCHECKED and first_fault(state, facts, plan)[1] != FINE):
        return NO_PLAN
    guard_plan(state, facts, memory_at(addresses[2]), plan)
    return DECIDED


class _Guarded:
    """A prepared policy under a guard."""

    def __init__(self, policy: GuardedPolicy, asked: PreparedPolicy) -> None:
        self._policy, self._asked = policy, asked
        self.address, self.looks_back = _decide_guarded.address, asked.looks_back
        self._memories: tuple[Bundle, Memory] | tuple[None, None] = (None, None)

    @property
    def seconds(self) -> float:
        return self._asked.seconds

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        own, guard = self._memories if memory is not None else (None, None)
        own = self._asked.memory_for(state, plan, own)
        guard = self._policy.memory_for(state, guard)
        self._memories = own, guard
        return _GuardedMemory(addresses=np.array([self._asked.address, own.address, guard.address]))

    def error(self) -> BaseException:
        return self._asked.error()


class _SuppliedMemory(Bundle):
    """Whom to ask, and what the options say."""

    addresses: I8  # (2,) of the policy's entry and of its memory
    rules: I8  # (3,) whether late jobs are rejected, whether jobs beyond the supply are suspended, and `Failed`
    battery: I8  # (1,) the address of its battery


_supplied_at, _battery_at = bundle_at(_SuppliedMemory), bundle_at(BatteryState)


@DECIDE.entry
def _decide_supplied(state, facts, memory, plan):
    own = _supplied_at(memory)
    battery = _battery_at(own.battery[0])
    lent = follow_battery(state, battery)
    if own.rules[2] and some_failed(state):
        clear(plan, state)
        if let_fail(state, plan, own.rules[2]):
            return DECIDED
    if own.rules[1] and runs_beyond(state, lent):
        clear(plan, state)
        make_way(state, plan, lent)
        return DECIDED
    nb_hidden = set_aside(state, too_late(state)) if own.rules[0] else 0
    outcome = call_policy(own.addresses[0], (state, facts, own.addresses[1], plan))
    if outcome == NO_PLAN or (outcome == UNCHECKED and first_fault(state, facts, plan)[1] != FINE):
        return NO_PLAN  # the jobs that are too late stay hidden, so that the fault is found again
    reject_hidden(state, plan, nb_hidden)
    if own.rules[0]:
        ask_when_late(state, plan, nb_hidden)
    ask_when_empty(state, plan, battery, lent)
    return DECIDED


class _Supplied:
    """A prepared policy under a supply and deadlines."""

    def __init__(self, policy: SuppliedPolicy, asked: PreparedPolicy) -> None:
        settings, self._policy = policy.settings, policy
        self._rules = np.array([settings.rejects_late, settings.suspends_beyond, settings.failed], np.int64)
        self._asked, self._own = asked, cast(Bundle | None, None)
        self.address, self.looks_back = _decide_supplied.address, asked.looks_back

    @property
    def seconds(self) -> float:
        return self._asked.seconds

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        self._own = self._asked.memory_for(state, plan, None if memory is None else self._own)
        return _SuppliedMemory(
            addresses=np.array([self._asked.address, self._own.address]),
            rules=self._rules,
            battery=np.array([self._policy.battery.address]),
        )

    def error(self) -> BaseException:
        return self._asked.error()


class _EstimatedMemory(Bundle):
    """Whom to ask, and what it sees."""

    addresses: I8  # (4,) of the policy's entry, of its memory, of the outlook, and of the state seen through it


_estimated_at, _outlook_at, _state_at = bundle_at(_EstimatedMemory), bundle_at(Outlook), bundle_at(ClusterState)


@DECIDE.entry
def _decide_estimated(state, facts, memory, plan):
    addresses = _estimated_at(memory).addresses
    look_ahead(state, _outlook_at(addresses[2]))
    return call_policy(addresses[0], (_state_at(addresses[3]), facts, addresses[1], plan))


class _Estimated:
    """A prepared policy with an outlook."""

    def __init__(self, policy: EstimatedPolicy, asked: PreparedPolicy) -> None:
        self._policy, self._asked = policy, asked
        self.address, self.looks_back = _decide_estimated.address, asked.looks_back
        self._own: Bundle | None = None
        self._seen: ClusterState

    @property
    def seconds(self) -> float:
        return self._asked.seconds

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        if memory is None:
            self._policy.outlook = None
        self._seen = self._policy.look(state)
        self._own = self._asked.memory_for(self._seen, plan, None if memory is None else self._own)
        outlook, self._policy.memory = cast(Outlook, self._policy.outlook), self._own
        return _EstimatedMemory(
            addresses=np.array([self._asked.address, self._own.address, outlook.address, self._seen.address])
        )

    def error(self) -> BaseException:
        return self._asked.error()


class _Nothing(Bundle):
    """The memory of a policy in Python, which remembers in itself what it likes."""


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
        return _Nothing() if memory is None else memory

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
            where = source_line(error)
            raise type(error)(f"{error} ({where})" if where else str(error), field=error.field) from error
        except DecisionError:
            raise
        except KeyboardInterrupt as stop:
            stop.add_note(f"in decide of {name_of(self._policy)}: {source_line(stop)}")
            raise
        except (Exception, SystemExit) as error:
            raise failure(self._policy, "decide", error, f"t={state.now[0]:.12g} s: ") from error

    def _ask_in_time(self, deadline: Deadline, view: ClusterView, plan: Plan) -> None:
        late: BaseException | None = None
        try:
            try:
                deadline.begin()
                self._policy.decide(view, plan)
            finally:
                deadline.end()
        except (TookTooLong, KeyboardInterrupt) as error:
            deadline.end()  # it may have arrived before the end above
            if not deadline.over:
                raise
            late = error
        if deadline.over:
            took = f"policy {name_of(self._policy)}: decide took longer than {deadline.seconds:g} s"
            where = f" ({deadline.where})" if deadline.where else ""
            raise DecideTimeoutError(f"t={view.now:.12g} s: {took}{where}", field="decide_limit") from late
