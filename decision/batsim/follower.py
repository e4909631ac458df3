"""The cluster as Batsim reports it: its messages become transitions of a state, and plans become its commands.

A `Follower` decides nothing. `decision.batsim.agent` asks a policy between `hear` and `say`; in an environment whose
episodes run in a Batsim the kernels of a scheduler choose there (`decision.rl.envs.external`). So both see the same
cluster, and both say what they decide in the same words.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from decision.engine.rules import DECIMALS
from decision.files.events import read_forecast
from decision.model.errors import ConfigError, RemoteProtocolError
from decision.model.hosts import format_hosts, format_intervals, parse_hosts
from decision.model.record import FinalState
from decision.model.workload import POWER_SUPPLY
from decision.policies.traits import SupplySettings
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import PSTATE_COMPUTING, ClusterState, PlatformFacts, nb_hosts, with_room
from decision.state.plan_arrays import PlanArrays

from . import announced as edc
from . import kernels
from .dynamic_jobs import NEEDS_DYNAMIC_JOBS, Suspensions

_MOVES: dict[str, Callable[..., None]] = {
    "event_machine_unavailable": transitions.leave,
    "event_machine_available": transitions.come_back,
}
_FINISHED, _NO_MORE_JOBS = "registration_finished", "no_more_static_job_to_submit"
_KILLS = (p.KILL, p.SUSPEND)
_FINAL_STATES = {state.name: int(state) for state in FinalState}

FOLLOWED = kernels.job_arrives, kernels.job_ends, kernels.carry_out  # entries that every conversation needs


class Follower:
    """Keeps a state and writes plans; subclasses say who is greeted, how a run begins, and what a job is.

    Args:
        supply: what happens beyond a supply of power, and to jobs that are suspended.
    """

    def __init__(self, supply: SupplySettings) -> None:
        self._supply = supply
        self._connection = Connection(Role.DECISION)
        self._calls = 0  # that were made
        self._killing: set[int] = set()  # numbers of the jobs whose kill is under way
        self._names: list[str] = []  # of the jobs, by number
        self._number: dict[str, int] = {}
        self._registers = False  # whether what is left of suspended jobs may still be registered
        self._all_came = False  # whether all jobs of the workloads have been submitted
        self._dynamic = False  # whether Batsim takes jobs from us
        self._suspensions: Suspensions
        self._begun = False  # whether there are a state and a plan
        self._state: ClusterState
        self._facts: PlatformFacts
        self._plan: PlanArrays
        self.now = 0.0  # seconds
        self._handlers: dict[type, Callable[[Any, list[m.DecisionEvent]], None]] = {
            m.Init: self._greet,
            m.SimulationBegins: self._begin,
            m.JobSubmitted: self._submit,
            m.JobCompleted: self._complete,
            m.JobKilled: self._resubmit,
            m.ResourceStateChanged: self._change,
            m.Notify: self._notice,
            m.ExternalEvent: self._notice,
            m.SimulationEnds: self._end,
        }

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._connection.ended

    @property
    def asked(self) -> bool:
        """Whether the last message asks for a decision: it neither greets nor says that all is over."""
        return self._begun and not self._connection.ending

    def hear(self, question: bytes) -> list[m.DecisionEvent]:
        """Read one of Batsim's messages into the state; what is to be said, whatever is decided.

        Raises:
            RemoteProtocolError: if Batsim may not send that now.
            ConfigError: if the platform is not the one that was announced, or a job cannot be dealt with.
        """
        message = self._connection.receive(question)
        self.now = message.now
        commands: list[m.DecisionEvent] = []
        for event in message.events:
            handler = self._handlers.get(type(event))
            if handler is not None:
                handler(event, commands)
        return commands

    def say(self, commands: list[m.DecisionEvent]) -> bytes:
        """The reply to the message that was heard last."""
        return self._connection.send(Message(self.now, tuple(commands)))

    # --- Batsim's events ----------------------------------------------------------------------------------------

    def _greet(self, event: m.Init, commands: list[m.DecisionEvent]) -> None:
        """Say hello to a Batsim 5."""
        raise NotImplementedError

    def _begin(self, event: m.SimulationBegins, commands: list[m.DecisionEvent]) -> None:
        """Check the platform that is announced; then there are a state and a plan."""
        raise NotImplementedError

    def _submit(self, event: m.JobSubmitted, commands: list[m.DecisionEvent]) -> None:
        """A job arrives, and is known by its number from now on."""
        raise NotImplementedError

    def _end(self, event: m.SimulationEnds, commands: list[m.DecisionEvent]) -> None:
        """The simulation is over: nothing follows."""

    def _grow(self) -> None:
        """Make room for another job."""
        raise NotImplementedError

    def _complete(self, event: m.JobCompleted, commands: list[m.DecisionEvent]) -> None:
        job, final = self._number[event.data.job_id], _FINAL_STATES[event.data.job_state]
        kernels.job_ends.from_python(self._state.address, self._facts.address, event.timestamp, job, final)

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
            self._remember(rest_id, rest)
            commands += registration

    def _remember(self, job_id: str, number: int) -> None:
        """A job of this id is the next one of the state."""
        self._names.append(job_id)
        self._number[job_id] = number

    def _end_registration(self, commands: list[m.DecisionEvent]) -> None:
        """With the last job's end, say that no more will be registered: Batsim waits for it."""
        if self._registers and self._all_came and self._state.nb_queued == 0 and self._state.nb_running == 0:
            self._registers = False
            commands.append(registered_all(self.now))

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

    def _notice(self, told: m.Notify | m.ExternalEvent, commands: list[m.DecisionEvent]) -> None:
        event = edc.notification_of(told) if isinstance(told, m.ExternalEvent) else told
        if event is None:
            return
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
        transitions.tick(self._state, self._when(event))
        transitions.set_supply(self._state, supply, np.array(forecast, np.int32))

    def _hosts(self, text: str) -> list[int]:
        """The hosts that Batsim names."""
        try:
            return parse_hosts(text, nb_hosts(self._state))
        except ConfigError as error:
            raise RemoteProtocolError(f"Batsim names hosts that it does not have: {error}") from None

    # --- Plans ----------------------------------------------------------------------------------------------------

    def _carry_out(self, actions: int, commands: list[m.DecisionEvent]) -> None:
        """The plan of so many actions as commands, and what the state is by it."""
        if not actions:
            return
        state, plan, now, names = self._state, self._plan, self.now, self._names
        intervals = int(plan.nb_intervals)
        runs = list(zip(plan.first[:intervals].tolist(), plan.last[:intervals].tolist(), strict=True))
        columns = (plan.kind, plan.job, plan.begin, plan.end)
        for at, (kind, job, begin, end) in enumerate(zip(*(c[:actions].tolist() for c in columns), strict=True)):
            if kind == p.START:
                hosts = format_intervals(runs[begin:end])
                commands.append(m.ExecuteJob(now, m.ExecuteJobData(names[job], hosts)))
            elif kind == p.REJECT:
                commands.append(m.RejectJob(now, m.RejectJobData(names[job])))
            elif kind in _KILLS:
                if kind == p.SUSPEND and not self._registers:
                    advice = f"{NEEDS_DYNAMIC_JOBS}; decision run does where the policy's class has suspends = True"
                    raise ConfigError(f"t={now:.12g} s: {names[job]} is suspended: {advice}")
                if kind == p.SUSPEND:
                    self._suspensions.check(job, names[job])
                if job in self._killing and self._connection.version.kills_once:
                    continue
                # kills in a row are one request, as in the embedded engine
                before: tuple[str, ...] = ()
                if at and plan.kind[at - 1] in _KILLS and isinstance(commands[-1], m.KillJob):
                    before = commands.pop().data.job_ids  # type: ignore[union-attr]
                self._killing.add(job)
                commands.append(m.KillJob(now, m.KillJobData((*before, names[job]))))
            elif kind == p.SET_PSTATE:
                commands += self._switches(runs[begin:end], int(plan.value[at]))
            else:
                commands.append(m.CallMeLater(now, self._call(float(plan.time[at]))))
        room = int(state.nb_intervals) + intervals
        if room > len(state.interval_first):
            self._state = state = with_room(state, 0, room)
        kernels.carry_out.from_python(state.address, self._facts.address, plan.address)

    def _switches(self, runs: list[tuple[int, int]], pstate: int) -> list[m.DecisionEvent]:
        """The commands that let the hosts of these intervals change to a pstate."""
        if not self._connection.version.tells_switches_apart:
            data = m.SetResourceStateData(format_intervals(runs), str(pstate))
            return [m.SetResourceState(self.now, data)]
        hosts = [host for first, last in runs for host in range(first, last + 1)]
        groups = edc.switches(self._state, self._facts, hosts, pstate)
        changes = [m.SetResourceStateData(format_hosts(group), str(pstate), at_once) for group, at_once in groups]
        return [m.SetResourceState(self.now, change) for change in changes]

    def _call(self, time: float) -> m.CallMeLaterData:
        if not self._connection.version.names_calls:
            # to the microsecond: of numbers of more than 15 digits Batsim makes others than we do
            rounded = round(time, DECIMALS)
            return m.CallMeLaterData(rounded if rounded > self.now else time)
        self._calls += 1
        return m.CallMeLaterData(edc.milliseconds(time), f"call {self._calls}", "ms")


def registered_all(now: float) -> m.Notify:
    """The word that no more jobs will be registered, for which Batsim waits."""
    return m.Notify(now, m.NotifyData(type=_FINISHED))
