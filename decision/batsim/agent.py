"""Our decision process without I/O: one of Batsim's messages in, the reply out.

`Agent` keeps the cluster's state as Batsim reports it, asks the policy, checks its plan against the state, and writes
it as Batsim's commands. An impossible decision becomes a `PolicyError` and is never sent. `make_agent` makes the agent
of a policy's name: one of ours, or a pybatsim scheduler.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import astuple

from decision.compiling.bundle import Bundle
from decision.compiling.jit import compile_ahead
from decision.engine.rules import DECIMALS, deadlock
from decision.files.events import read_forecast
from decision.model.demand import read_estimate, read_worth, told
from decision.model.errors import ConfigError, DecisionError, RemoteProtocolError
from decision.model.hosts import format_hosts, format_intervals, parse_hosts
from decision.model.platform import Platform
from decision.model.record import FinalState, PredictionTable
from decision.model.workload import POWER_SUPPLY, Worth
from decision.policies.checks import Misfits, check_estimate, check_walltime, check_worth, warn_of_no_users
from decision.policies.loading import MessageAgent, reset_policy
from decision.policies.policy import Policy
from decision.policies.prepared import CompiledPolicy, prepare
from decision.policies.registry import find_agent, find_policy
from decision.policies.traits import BEYOND, traits_of
from decision.policies.window import window_gap
from decision.policies.wrappers import entries_of, innermost
from decision.policies.wrappers.prediction import predictions_of
from decision.policies.wrappers.supply import host_cap, may_suspend, refuse_booking, settings_of, supplied
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import (
    PSTATE_COMPUTING,
    ClusterState,
    PlatformFacts,
    nb_hosts,
    new_state,
    platform_facts,
    with_room,
)
from decision.state.plan_arrays import PlanArrays

from . import announced as edc
from . import kernels
from .announced import announced_platform, in_announced_order
from .dynamic_jobs import NEEDS_DYNAMIC_JOBS, ClosedLoop, Suspensions, check_config
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


_MOVES: dict[str, Callable[..., None]] = {
    "event_machine_unavailable": transitions.leave,
    "event_machine_available": transitions.come_back,
}
_FINISHED, _NO_MORE_JOBS = "registration_finished", "no_more_static_job_to_submit"
_KILLS = (p.KILL, p.SUSPEND)
_WORTH = frozenset(Worth.__struct_fields__)
_FINAL_STATES = {state.name: int(state) for state in FinalState}


class Agent:
    """Decides with one of our policies.

    Args:
        policy: a preset's name, ``module:Class`` or ``./file.py:Class``; or the policy itself.
        options: the named policy's own options, as texts.
        platform: the hosts, where known; Batsim does not send their speeds, nor how long they take to wake up.
        seed: of the policy.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.
        suspends: whether jobs may be suspended although the options do not say so, as where a supply is known.
        loop: jobs that come when others have ended, and are registered then.

    Raises:
        ConfigError: if the policy is unknown or refuses the options.
    """

    def __init__(
        self,
        policy: str | Policy,
        options: Mapping[str, str],
        *,
        platform: Platform | None = None,
        seed: int = 0,
        decide_limit: float = 0.0,
        suspends: bool = False,
        loop: ClosedLoop | None = None,
    ) -> None:
        self._policy = supplied(find_policy(policy, dict(options)) if isinstance(policy, str) else policy)
        self._traits, self._supply = traits_of(self._policy), settings_of(self._policy)
        self._platform, self._seed, self._decide_limit = platform, seed, decide_limit
        self._may_suspend = suspends or options.get(BEYOND) == "suspend"
        self._loop = loop
        self._connection = Connection(Role.DECISION)
        self._calls = 0  # that were made
        self._killing: set[int] = set()  # numbers of the jobs whose kill is under way
        self._names: list[str] = []  # of the jobs, by number
        self._number: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._misfits = Misfits()
        self._registers = False  # whether what is left of suspended jobs may still be registered
        self._all_came = False  # whether all jobs of the workloads have been submitted
        self._dynamic = False  # whether Batsim takes jobs from us
        self._suspensions: Suspensions
        self._begun = False  # whether there is a state, a plan and a decider
        self._state: ClusterState
        self.now = 0.0  # seconds
        self._handlers: dict[type, Callable[[Any, list[m.DecisionEvent]], None]] = {
            m.Init: self._greet,
            m.SimulationBegins: self._begin,
            m.JobSubmitted: self._submit,
            m.JobCompleted: self._complete,
            m.JobKilled: self._resubmit,
            m.ResourceStateChanged: self._change,
            m.Notify: self._notice,
            m.ExternalEvent: self._notice_external,
            m.SimulationEnds: self._end,
        }

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._connection.ended

    @property
    def state(self) -> ClusterState | None:
        """The cluster as Batsim reports it, to be read only; None before the first message."""
        return self._state if self._begun else None

    def predictions(self, ids: Iterable[str]) -> PredictionTable | None:
        """What the policy expected of these jobs; None where it expects walltimes."""
        return predictions_of(self._policy, np.array([self._number[job] for job in ids], np.int32))

    @property
    def window_gap(self) -> float:
        """That of the policy (`decision.policies.window.window_gap`)."""
        return window_gap(self._policy)

    def get_ready(self) -> None:
        """Load the compiled functions that a run needs, which takes a third of a second."""
        asked = kernels.job_arrives, kernels.job_ends, kernels.carry_out, kernels.ask_now
        compiled = entries_of(self._policy)
        compile_ahead(*compiled, *asked)
        for entry in compiled:
            _ = entry.address
        for entry in asked:
            _ = entry.from_python

    def handle(self, question: bytes) -> bytes:
        """The reply to one of Batsim's messages.

        Raises:
            RemoteProtocolError: if Batsim may not send that now.
            PolicyError: if the policy fails or decides something impossible.
            ConfigError: if the platform is not the one that was announced, or the policy cannot deal with a job.
        """
        message = self._connection.receive(question)
        self.now = message.now
        commands: list[m.DecisionEvent] = []
        for event in message.events:
            handler = self._handlers.get(type(event))
            if handler is not None:
                handler(event, commands)
        if self._begun and not self._connection.ending:
            # jobs of a closed loop that are due come before the decision, so that the policy sees them; what it rejects
            # is over, which may set off others, so that the next call is known after it
            self._send_next(commands)
            self._decide(commands)
            self._call_for_next(commands)
            self._end_registration(commands)
        return self._connection.send(Message(message.now, tuple(commands)))

    def deadlock(self) -> DecisionError:
        """The error of a simulation that cannot go on: what waits, and whether for want of power."""
        state = self._state
        waiting = [self._names[job] for job in state.queue[: state.nb_queued].tolist()]
        return deadlock(self.now, waiting, self._registers, nb_hosts(state) - int(state.supply))

    # --- Batsim's events ----------------------------------------------------------------------------------------

    def _greet(self, event: m.Init, commands: list[m.DecisionEvent]) -> None:
        registers = self._may_suspend or may_suspend(self._policy, ()) or self._loop is not None
        commands.append(m.Hello(self.now, edc.hello(self._traits.name, registers)))

    def _end(self, event: m.SimulationEnds, commands: list[m.DecisionEvent]) -> None:
        self._misfits.tell(nb_hosts(self._state))
        if self._traits.needs_users and not self._users:
            warn_of_no_users()

    def _complete(self, event: m.JobCompleted, commands: list[m.DecisionEvent]) -> None:
        job, final = self._number[event.data.job_id], _FINAL_STATES[event.data.job_state]
        kernels.job_ends.from_python(self._state.address, self._facts.address, event.timestamp, job, final)
        if self._loop is not None:
            self._loop.ended(event.data.job_id, event.timestamp)

    def _begin(self, event: m.SimulationBegins, commands: list[m.DecisionEvent]) -> None:
        announced = announced_platform(event.data.compute_resources)
        platform = in_announced_order(self._platform, announced) if self._platform else announced
        self._facts, pstates = platform_facts(platform, energy=True)
        self._state = new_state(self._facts, pstates)
        reset_policy(self._policy, platform, self._seed)
        self._plan = p.new_plan(self._state)
        self._decider = CheckedPolicy(self._policy, self._facts, self._names, self._decide_limit)
        self._begun = True
        self._cap(platform, event.data.config)
        self._prepare_suspensions(event.data, commands)

    def _cap(self, platform: Platform, config: m.Config) -> None:
        """Power is limited from the beginning on; how that changes comes with events."""
        cap = host_cap(self._policy, platform)
        if cap is None:
            return
        if len(cap.hosts) > 1 and not config.forward_unknown_events:
            advice = (
                "start Batsim with --forward-unknown-events and the events that decision workload supply makes of it"
            )
            raise ConfigError(f"policy {self._traits.name}: cap={self._supply.cap} changes by time; {advice}")
        transitions.set_supply(self._state, int(cap.hosts[0]), np.zeros(0, np.int32))

    def _prepare_suspensions(self, data: m.SimulationBeginsData, commands: list[m.DecisionEvent]) -> None:
        settings, config, suspends = self._supply, data.config, may_suspend(self._policy, ())
        check_config(self._traits.name, suspends, config)
        self._dynamic = config.dynamic_jobs_enabled
        needs = suspends or self._loop is not None or (settings.suspends_beyond and config.forward_unknown_events)
        is_compiled = isinstance(innermost(self._policy), CompiledPolicy)  # a policy in Python may suspend at any time
        self._registers = self._dynamic and (needs or not is_compiled)
        self._suspensions = Suspensions(data.profiles if self._registers else {}, settings.restart, settings.every)
        if self._dynamic and not self._registers:  # Batsim waits for it
            commands.append(m.Notify(self.now, m.NotifyData(type=_FINISHED)))

    def _submit(self, event: m.JobSubmitted, commands: list[m.DecisionEvent]) -> None:
        job, job_id = event.data.job, event.data.job_id
        if job_id in self._number:  # Batsim acknowledges a job that we have registered
            return
        if len(self._names) == len(self._state.size):
            self._grow()
        user = str(job.fields.get("user", ""))
        number = self._users.setdefault(user, len(self._users)) if user else -1
        estimate = read_estimate(job.fields.get("estimate"))
        check_walltime(self._traits, job_id, job.walltime, "Batsim's workload")
        if self._traits.needs_estimate:
            check_estimate(job_id, estimate, "Batsim's workload")
        job_number = kernels.job_arrives.from_python(
            self._state.address, event.timestamp, job.res, job.walltime, number, float(told(estimate))
        )
        self._names.append(job_id)
        self._number[job_id] = job_number
        if self._loop is not None:
            self._loop.came(job_id, event.timestamp)
        if self._traits.needs_value or self._traits.needs_qos or not _WORTH.isdisjoint(job.fields):
            self._note_worth(job, job_id, job_number)
        if self._registers:
            self._suspensions.note(job_number, job_id, str(job.fields.get("profile", "")), event.data.profile)
        hosts = nb_hosts(self._state)
        if not 1 <= job.res <= hosts:  # it could never start, and would keep the simulation from ending
            self._misfits.add(job_id, job.res)
            commands.append(m.RejectJob(self.now, m.RejectJobData(job_id)))
            transitions.reject(self._state, job_number)
            transitions.drop_started(self._state)

    def _note_worth(self, job: m.JobDescription, job_id: str, number: int) -> None:
        """What the job is worth, as it says itself."""
        try:
            worth = read_worth(job.fields, job.subtime)
        except ConfigError as error:
            raise ConfigError(f"Batsim's workload: job {job_id}, {error}") from None
        check_worth(self._traits, job_id, worth, "Batsim's workload")
        known = (0.0 if math.isnan(quantity) else quantity for quantity in astuple(worth))
        kernels.job_is_worth.from_python(self._state.address, number, *known)

    def _resubmit(self, event: m.JobKilled, commands: list[m.DecisionEvent]) -> None:
        """Register what is left of jobs that were suspended; those without progress had ended by themselves."""
        for job_id in event.data.job_ids:
            killed = self._number[job_id]
            self._killing.discard(killed)
            if job_id not in event.data.job_progress or not self._state.suspended[killed]:
                continue
            if len(self._names) == len(self._state.size):
                self._grow()
            how = self._suspensions.restart, self._suspensions.every
            rest = kernels.job_returns.from_python(self._state.address, event.timestamp, killed, *how)
            rest_id, registration = self._suspensions.register(self._state, self._names, killed, rest, self.now)
            self._names.append(rest_id)
            self._number[rest_id] = rest
            commands += registration

    def _send_next(self, commands: list[m.DecisionEvent]) -> None:
        """Register the jobs that come now since others have ended."""
        if self._loop is not None:
            submissions, registration = self._loop.send(self.now)
            commands += registration
            for event in submissions:
                self._submit(event, commands)

    def _call_for_next(self, commands: list[m.DecisionEvent]) -> None:
        """Be called when the next of them comes; those that were rejected now are over."""
        if self._loop is not None:
            for command in commands:
                if isinstance(command, m.RejectJob):
                    self._loop.ended(command.data.job_id, self.now)
            time = self._loop.next_call(self.now)
            if time is not None:
                commands.append(m.CallMeLater(self.now, self._call(time)))

    def _end_registration(self, commands: list[m.DecisionEvent]) -> None:
        """With the last job's end, say that no more will be registered: Batsim waits for it."""
        if self._loop is not None and self._loop.is_open:
            return
        if self._registers and self._all_came and self._state.nb_queued == 0 and self._state.nb_running == 0:
            self._registers = False
            commands.append(m.Notify(self.now, m.NotifyData(type=_FINISHED)))

    def _grow(self) -> None:
        jobs = 2 * len(self._state.size)
        # a plan has room for an action on each job, so that it grows with the state
        self._state = with_room(self._state, jobs, 0)
        self._plan = p.new_plan(self._state)

    def _change(self, event: m.ResourceStateChanged, commands: list[m.DecisionEvent]) -> None:
        state, pstates = event.data.state, self._facts.pstate_kind.shape[1]
        if state not in map(str, range(pstates)):
            has = f"but the hosts have pstates 0 to {pstates - 1}"
            raise RemoteProtocolError(f"Batsim names pstate {state[:40]!r}, {has}")
        pstate = int(state)
        transitions.tick(self._state, self._when(event))
        for host in self._hosts(event.data.resources):
            wakes = bool(self._facts.pstate_kind[host, pstate] == PSTATE_COMPUTING)
            if wakes and self._facts.pstate_kind[host, self._state.pstate[host]] == PSTATE_COMPUTING:
                transitions.set_pstate(self._state, self._facts, host, pstate)
            else:
                transitions.end_switch(self._state, self._facts, host, pstate, wakes)

    def _when(self, event: m.Event) -> float:
        """The time of a switch or an external event, in seconds."""
        return round(event.timestamp if self._connection.version.stamps_all else self.now, DECIMALS)

    def _notice_external(self, event: m.ExternalEvent, commands: list[m.DecisionEvent]) -> None:
        if notification := edc.notification_of(event):
            self._notice(notification, commands)

    def _notice(self, event: m.Notify, commands: list[m.DecisionEvent]) -> None:
        if event.data.type == POWER_SUPPLY:
            self._change_supply(event)
        self._all_came |= event.data.type == _NO_MORE_JOBS
        move = _MOVES.get(event.data.type)
        if move is not None:
            transitions.tick(self._state, self._when(event))
            for host in self._hosts(event.data.resources):
                move(self._state, self._facts, host)

    def _change_supply(self, event: m.Notify) -> None:
        where = f"t={self._when(event):.12g} s: Batsim's event {POWER_SUPPLY}"
        fields, hosts = event.data.fields, nb_hosts(self._state)
        supply, *forecast = read_forecast(fields.get("hosts"), fields.get("forecast", ()), where)
        if supply > hosts:
            raise ConfigError(f"{where} has {supply} hosts, and the platform has {hosts}; correct the events")
        settings = self._supply
        falls = supply < self._state.supply or not settings.cap  # a cap that never falls suspends no job
        if settings.suspends_beyond and not self._dynamic and falls:
            asks = self._connection.version.begins_with_init
            advice = "give the policy the option beyond=suspend" if asks else NEEDS_DYNAMIC_JOBS
            raise ConfigError(f"{where} suspends jobs beyond it; {advice}, or choose beyond=grid")
        refuse_booking(self._policy)
        transitions.tick(self._state, self._when(event))
        transitions.set_supply(self._state, supply, np.array(forecast, np.int32))

    def _hosts(self, text: str) -> list[int]:
        """The hosts that Batsim names."""
        try:
            return parse_hosts(text, nb_hosts(self._state))
        except ConfigError as error:
            raise RemoteProtocolError(f"Batsim names hosts that it does not have: {error}") from None

    # --- The policy's plan --------------------------------------------------------------------------------------

    def _decide(self, commands: list[m.DecisionEvent]) -> None:
        state, plan = self._state, self._plan
        actions = self._decider.decide(state, plan, self.now)
        if not actions:
            return
        intervals = int(plan.nb_intervals)
        self._write_commands(commands, actions, intervals)
        room = int(state.nb_intervals) + intervals
        if room > len(state.interval_first):
            self._state = state = with_room(state, 0, room)
        kernels.carry_out.from_python(state.address, self._facts.address, plan.address)

    def _write_commands(self, commands: list[m.DecisionEvent], actions: int, intervals: int) -> None:
        """The plan as Batsim's commands. Kills in a row are one request, as in the embedded engine."""
        plan, now, names = self._plan, self.now, self._names
        runs = list(zip(plan.first[:intervals].tolist(), plan.last[:intervals].tolist(), strict=True))
        columns = (plan.kind, plan.job, plan.begin, plan.end)
        for at, (kind, job, begin, end) in enumerate(zip(*(c[:actions].tolist() for c in columns), strict=True)):
            if kind == p.START:
                hosts = format_intervals(runs[begin:end])
                commands.append(m.ExecuteJob(now, m.ExecuteJobData(names[job], hosts)))
            elif kind == p.REJECT:
                commands.append(m.RejectJob(now, m.RejectJobData(names[job])))
            elif kind in _KILLS:
                self._kill(commands, kind, job, bool(at) and plan.kind[at - 1] in _KILLS)
            elif kind == p.SET_PSTATE:
                self._switch(commands, runs[begin:end], int(plan.value[at]))
            else:
                commands.append(m.CallMeLater(now, self._call(float(plan.time[at]))))

    def _kill(self, commands: list[m.DecisionEvent], kind: int, job: int, follows: bool) -> None:
        """Kill a job, in one command with the kill before where this one follows it."""
        if kind == p.SUSPEND and not self._registers:
            advice = f"{NEEDS_DYNAMIC_JOBS}; decision run does where the policy's class has suspends = True"
            raise ConfigError(f"t={self.now:.12g} s: {self._names[job]} is suspended: {advice}")
        if kind == p.SUSPEND:
            self._suspensions.check(job, self._names[job])
        if job in self._killing and self._connection.version.kills_once:
            return
        before: tuple[str, ...] = ()
        if follows and isinstance(commands[-1], m.KillJob):
            before = commands.pop().data.job_ids  # type: ignore[union-attr]
        self._killing.add(job)
        commands.append(m.KillJob(self.now, m.KillJobData((*before, self._names[job]))))

    def _switch(self, commands: list[m.DecisionEvent], runs: list[tuple[int, int]], pstate: int) -> None:
        """Let the hosts of these intervals change to a pstate."""
        if not self._connection.version.tells_switches_apart:
            data = m.SetResourceStateData(format_intervals(runs), str(pstate))
            commands.append(m.SetResourceState(self.now, data))
            return
        hosts = [host for first, last in runs for host in range(first, last + 1)]
        for group, at_once in edc.switches(self._state, self._facts, hosts, pstate):
            data = m.SetResourceStateData(format_hosts(group), str(pstate), at_once)
            commands.append(m.SetResourceState(self.now, data))

    def _call(self, time: float) -> m.CallMeLaterData:
        if not self._connection.version.names_calls:
            return m.CallMeLaterData(_with_few_digits(time, self.now))
        self._calls += 1
        return m.CallMeLaterData(edc.milliseconds(time), f"call {self._calls}", "ms")


def _with_few_digits(time: float, now: float) -> float:
    """A time after `now`, to the microsecond: of numbers of more than 15 digits Batsim makes others than we do."""
    rounded = round(time, DECIMALS)
    return rounded if rounded > now else time


def make_agent(
    policy: str | Policy,
    settings: Mapping[str, str],
    *,
    platform: Platform | None = None,
    seed: int = 0,
    decide_limit: float = 0.0,
    suspends: bool = False,
    loop: ClosedLoop | None = None,
) -> Agent | MessageAgent:
    """The agent of a policy's name: ours with that policy, or a scheduler that answers messages itself.

    Arguments are those of `Agent`.

    Raises:
        ConfigError: if the policy is unknown or refuses the settings.
    """
    scheduler = find_agent(policy, settings) if isinstance(policy, str) else None
    if scheduler is None:
        return Agent(
            policy, settings, platform=platform, seed=seed, decide_limit=decide_limit, suspends=suspends, loop=loop
        )
    if loop is not None:
        raise ConfigError(
            f"policy {policy} answers messages itself, and jobs that come when others end need one that "
            "does not; leave feedback out"
        )
    return scheduler
