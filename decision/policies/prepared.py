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

import numpy as np

from decision.compiling.bundle import Bundle
from decision.compiling.entry import Entry, Interface
from decision.compiling.jit import kernel
from decision.model.errors import DecideTimeoutError, DecisionError, InternalError, PolicyError, raise_interruption
from decision.model.hosts import format_hosts
from decision.model.platform import Platform
from decision.model.record import HostState
from decision.state.bitmap import has_host, insert_interval, remove_interval
from decision.state.cluster import (
    IDLE,
    PSTATE_COMPUTING,
    PSTATE_SLEEP,
    QUEUED,
    RUNNING,
    SLEEPING,
    SWITCHING_OFF,
    UNAVAILABLE,
    ClusterState,
    PlatformFacts,
    server_name,
)
from decision.state.plan_arrays import (
    CALL_AT,
    FINE,
    KILL,
    NO_HOST,
    NO_PSTATE,
    NOT_FREE,
    REJECT,
    SAME_HOST,
    SET_PSTATE,
    START,
    SUSPEND,
    PlanArrays,
    changes_speed_only,
    interval_fault,
    start_fault,
    switch_fault,
)
from decision.state.view import ClusterView

from .loading import Deadline, TookTooLong, failure, name_of, source_line
from .policy import Plan, Policy, empty

# Whether a plan can be carried out; what is impossible is said in one line, before anybody else sees it.
#
# `first_fault` is compiled and looks at each action once; only where it finds a fault is the message put together.

# Why an action is impossible, in addition to the reasons of `decision.state.plan_arrays`
NO_JOB, NOT_WAITING, NOT_RUNNING, TWICE, _TAKEN, WRONG_NUMBER, PAST, PART_OF_SERVER = range(8, 16)


def check_plan(state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str]) -> None:
    """Refuse a plan with an impossible action; `names` are the jobs' ids by number.

    Raises:
        PolicyError: naming the time, the job and the hosts.
    """
    if plan.nb_actions == 0:
        return
    fault = first_fault(state, facts, plan)
    if fault[1] != FINE:
        raise refusal(state, facts, plan, names, fault)


def refusal(
    state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str], fault: tuple[int, int, int]
) -> PolicyError:
    """The error that says what `first_fault` found."""
    return PolicyError(f"t={state.now:.12g} s: {_explain(state, facts, plan, names, *fault)}")


@kernel
def first_fault(state, facts, plan):
    """The first impossible action: its index, the reason (FINE where there is none), and a host or number of hosts."""
    free = state.free.copy()  # hosts that no earlier action starts a job on or puts to sleep
    taken = np.zeros(len(free), np.uint64)  # hosts that earlier actions start jobs on, put to sleep or wake
    # In the plan's order, since each action changes what the next one may take, as in the engine.
    for at in range(plan.nb_actions):
        reason, host = _fault(state, facts, plan, at, free, taken)
        if reason != FINE:
            return at, reason, host
    # Servers last: whether one is switched as a whole is known of the whole plan only.
    return _server_fault(state, facts, plan)


@kernel
def _server_fault(state, facts, plan):
    """The first switch after which some hosts of a server sleep and others do not; those that left do not count."""
    # Each host is its own server.
    if len(facts.server_begin) > len(facts.server):
        return -1, FINE, -1
    target = np.full(len(facts.server), -1, np.int32)  # pstate that the plan switches each host to
    for at in range(plan.nb_actions):
        if plan.kind[at] == SET_PSTATE:
            for i in range(plan.begin[at], plan.end[at]):
                target[plan.first[i] : plan.last[i] + 1] = plan.value[at]
    for at in range(plan.nb_actions):
        for i in range(plan.begin[at], plan.end[at] if plan.kind[at] == SET_PSTATE else plan.begin[at]):
            for host in range(plan.first[i], plan.last[i] + 1):
                other = _other_way(state, facts, target, host)
                if other >= 0:
                    return at, PART_OF_SERVER, other
    return -1, FINE, -1


@kernel
def _other_way(state, facts, target, host):
    """The first host of a switched host's server that will sleep where it does not, or the other way round; or -1."""
    server, sleeps = facts.server[host], _will_sleep(state, facts, target, host)
    for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
        other = facts.server_host[i]
        # A host that left takes no part in switching, and cannot be asked to.
        away = state.host_state[other] == UNAVAILABLE and state.host_job[other] < 0
        if not away and _will_sleep(state, facts, target, other) != sleeps:
            return other
    return -1


@kernel
def _will_sleep(state, facts, target, host):
    """Whether a host sleeps, or is on its way to, once the plan is carried out."""
    if target[host] >= 0:
        return facts.pstate_kind[host, target[host]] != PSTATE_COMPUTING
    activity = state.host_state[host]
    asleep = facts.pstate_kind[host, state.pstate[host]] == PSTATE_SLEEP
    return activity in (SLEEPING, SWITCHING_OFF) or (activity == IDLE and asleep)


@kernel
def _fault(state, facts, plan, at, free, taken):
    kind, job = plan.kind[at], plan.job[at]
    # Not a job's action, so before any look at the job. Batsim refuses calls that are not after now.
    if kind == CALL_AT:
        return (FINE if state.now < plan.time[at] < np.inf else PAST), -1
    if kind == SET_PSTATE:
        return _switch_fault(state, facts, plan, at, free, taken)
    if job < 0 or job >= state.nb_jobs:
        return NO_JOB, -1
    if kind == KILL:
        return (FINE if state.job_state[job] == RUNNING else NOT_RUNNING), -1
    if kind == SUSPEND and (state.job_state[job] != RUNNING or state.suspended[job]):
        return NOT_RUNNING, -1
    if kind == SUSPEND:
        return (TWICE if _named_before(plan, at) else FINE), -1
    if state.job_state[job] != QUEUED:
        return NOT_WAITING, -1
    if _named_before(plan, at):
        return TWICE, -1
    if kind != START:
        return FINE, -1
    reason, host = start_fault(state, free, plan.first, plan.last, plan.begin[at], plan.end[at])
    # Free for the cluster, but not for this plan any more: another message.
    if reason == NOT_FREE and has_host(state.free, host):
        return _TAKEN, host
    if reason != FINE:
        return reason, host
    # Where jobs share hosts, the plan may start another one there.
    for i in range(plan.begin[at], plan.end[at] if state.shares == 0 else plan.begin[at]):
        remove_interval(free, plan.first[i], plan.last[i])
        insert_interval(taken, plan.first[i], plan.last[i])
    return (FINE if host == state.size[plan.job[at]] else WRONG_NUMBER), host


@kernel
def _named_before(plan, at):
    named = False
    for i in range(at):
        named |= plan.job[i] == plan.job[at]
    return named


@kernel
def _switch_fault(state, facts, plan, at, free, taken):
    previous, pstate = -1, plan.value[at]
    for i in range(plan.begin[at], plan.end[at]):
        reason, host = interval_fault(state, plan.first[i], plan.last[i], previous)
        if reason != FINE:
            return reason, host
        for host in range(plan.first[i], plan.last[i] + 1):
            reason = switch_fault(state, facts, host, pstate)
            # A change of speed leaves the host where it is, free or computing.
            if reason != NO_PSTATE and not changes_speed_only(state, facts, host, pstate):
                if has_host(taken, host):
                    return _TAKEN, host
                remove_interval(free, host, host)
                insert_interval(taken, host, host)
            if reason != FINE:
                return reason, host
        previous = plan.last[i]
    return (FINE if previous >= 0 else WRONG_NUMBER), 0


def _explain(
    state: ClusterState, facts: PlatformFacts, plan: PlanArrays, names: Sequence[str], at: int, reason: int, host: int
) -> str:
    kind, job = int(plan.kind[at]), int(plan.job[at])
    if kind == SET_PSTATE:
        pstate, starts = int(plan.value[at]), -1
        if reason == WRONG_NUMBER:
            return f"pstate {pstate} is set for no hosts"
        if reason in (_TAKEN, PART_OF_SERVER):  # perhaps by a job that the plan starts on the host
            actions = [i for i in range(plan.nb_actions) if plan.kind[i] == START and host in _hosts_of(plan, i)]
            starts = int(plan.job[actions[0]]) if actions else -1
        if starts >= 0 and _server_of(facts, host):
            why = f"{_host_text(facts, host)} is given to {names[starts]} by the plan"
        else:
            why = _explain_host(state, facts, names, reason, host)
        return f"hosts {format_hosts(_hosts_of(plan, at))} cannot go to pstate {pstate}: {why}"
    if reason == PAST:
        asked = f"asks to be called at t={plan.time[at]:.12g} s"
        return f"{asked}, which is past" if plan.time[at] <= state.now else f"{asked}, which is not a time"
    if reason == NO_JOB:
        return f"there is no job number {job}; {state.nb_jobs} were submitted"
    job_name = names[job]
    verb = {START: "start", REJECT: "be rejected", KILL: "be killed", SUSPEND: "be suspended"}[kind]
    if reason == TWICE:
        return f"{job_name} is named by two actions of one plan"
    if reason in (NOT_WAITING, NOT_RUNNING):
        doing = {QUEUED: "waiting", RUNNING: "running"}.get(int(state.job_state[job]), "over")
        doing = "being suspended" if kind == SUSPEND and doing == "running" else doing
        return f"{job_name} cannot {verb}: it is {doing}"
    hosts = format_hosts(_hosts_of(plan, at))
    if reason == WRONG_NUMBER:
        given = f"{host} given" if host == 0 else f"{host} given ({hosts})"
        return f"{job_name} needs {int(state.size[job])} hosts, {given}"
    return f"{job_name} cannot start on hosts {hosts}: {_explain_host(state, facts, names, reason, host)}"


def _explain_host(state: ClusterState, facts: PlatformFacts, names: Sequence[str], reason: int, host: int) -> str:
    if reason == NO_HOST:
        return f"there is no host {host}, the last one is {len(state.host_state) - 1}"
    host_name = _host_text(facts, host)
    if reason == NO_PSTATE:
        return f"{host_name} has no such pstate, or it only models a switch"
    if reason == SAME_HOST:
        return f"{host_name} is given twice"
    if reason == _TAKEN:
        return f"{host_name} is taken by an earlier action of the plan"
    job, activity = int(state.host_job[host]), int(state.host_state[host])
    if job >= 0:
        return f"{host_name} computes {names[job]}"
    text = f"{host_name} is {HostState(activity).name.lower().replace('_', ' ')}"
    return f"{text} and would stay so; a server is switched as a whole" if reason == PART_OF_SERVER else text


def _host_text(facts: PlatformFacts, host: int) -> str:
    server = _server_of(facts, host)
    return f"host {host} of server {server}" if server else f"host {host}"


def _server_of(facts: PlatformFacts, host: int) -> str:
    """The name of a host's server, empty where it has none."""
    return server_name(facts, int(facts.server[host]))


def _hosts_of(plan: PlanArrays, at: int) -> set[int]:
    pieces = zip(plan.first[plan.begin[at] : plan.end[at]], plan.last[plan.begin[at] : plan.end[at]], strict=True)
    return {host for first, last in pieces for host in range(first, last + 1)}


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
    recalls = True  # as `PreparedPolicy` has it
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
    recalls: bool  # whether it may ask for their times, sizes and users

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
        self.address, self.recalls = policy.entry.address, policy.recalls

    def memory_for(self, state: ClusterState, plan: PlanArrays, memory: Bundle | None = None) -> Bundle:
        self._use(state, plan)
        return self._policy.memory_for(state, memory)

    def error(self) -> BaseException:
        return self._policy.raised or super().error()


class NoMemory(Bundle):
    """The memory of what remembers nothing, or elsewhere, as a policy in Python does."""


class _InPython(_Prepared):
    looks_back = recalls = True

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
        empty.from_python(plan.address, state.address)
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
