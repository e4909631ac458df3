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

from decision.engine.constants import DECIMALS
from decision.engine.refusals import deadlock
from decision.entry import Entry
from decision.formats.events import read_forecast
from decision.formats.simgrid import WATTAGE, parse_sleep_states, parse_wattage
from decision.jit import compile_ahead
from decision.model.demand import read_estimate, read_worth, told
from decision.model.errors import ConfigError, DecisionError, RemoteProtocolError
from decision.model.hosts import format_intervals, parse_hosts
from decision.model.platform import Host, Platform, PowerState
from decision.model.record import FinalState, PredictionTable
from decision.model.workload import POWER_SUPPLY, Worth
from decision.policies import plan_arrays as p
from decision.policies.around import innermost
from decision.policies.estimated import predictions_of
from decision.policies.failures import reset_policy
from decision.policies.plan_check import check_estimate, check_walltime, check_worth
from decision.policies.registry import MessageAgent, find_agent, find_policy
from decision.policies.supplied import may_suspend, refuse_bound, supplied
from decision.policies.window import window_gap
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m
from decision.protocol.messages import Resource
from decision.simulation.misfits import Misfits
from decision.simulation.simulate import warn_of_no_users
from decision.state import transitions
from decision.state.cluster import (
    N_INTERVALS,
    N_QUEUED,
    N_RUNNING,
    PSTATE_COMPUTING,
    ClusterState,
    nb_hosts,
    new_state,
    platform_facts,
    with_room,
)

from . import kernels
from .decider import CheckedPolicy
from .suspension import NEEDS_DYNAMIC_JOBS, Suspensions, check_config

_MOVES: dict[str, Callable[..., None]] = {
    "event_machine_unavailable": transitions.leave,
    "event_machine_available": transitions.come_back,
}
_FINISHED, _NO_MORE_JOBS = "registration_finished", "no_more_static_job_to_submit"
_KILLS = (p.KILL, p.SUSPEND)
_WORTH = frozenset(Worth.__struct_fields__)
_FINAL_STATES = {state.name: int(state) for state in FinalState}


def announced_platform(resources: Sequence[Resource]) -> Platform:
    """The compute hosts of SIMULATION_BEGINS. Speeds are nan: Batsim does not send them.

    Raises:
        RemoteProtocolError: if there are none, or they are not numbered from 0.
    """
    if not resources:
        raise RemoteProtocolError("Batsim announces no compute host, and a simulation needs one")
    if [resource.id for resource in resources] != list(range(len(resources))):
        raise RemoteProtocolError("Batsim announces compute hosts whose ids do not count up from 0")
    return Platform(hosts=tuple(_host(resource) for resource in resources))


def check_same(known: Platform, announced: Platform) -> None:
    """Refuse a platform that is not the one that Batsim simulates.

    Raises:
        ConfigError: if their hosts differ.
    """
    names, others = ([host.name for host in platform.hosts] for platform in (known, announced))
    if names != others:
        raise ConfigError(
            f"{known.path or 'platform'}: {len(names)} hosts, from {names[0]}, but Batsim simulates {len(others)}, "
            f"from {others[0]}; give both the same platform"
        )


def _host(resource: Resource) -> Host:
    properties = dict(resource.properties)
    wattage = next((properties[name] for name in WATTAGE if name in properties), None)
    watts = parse_wattage(wattage) if wattage else ((0.0, 0.0, 0.0),)
    triplets = properties.get("sleep_pstates")
    return Host(
        id=resource.id,
        name=resource.name,
        pstates=tuple(PowerState(math.nan, *three) for three in watts),
        sleep=parse_sleep_states(triplets, len(watts)) if triplets and wattage else (),
        has_power=wattage is not None,
        properties=properties,
        zone_properties=dict(resource.zone_properties),
    )


class Agent:
    """Decides with one of our policies.

    Args:
        policy: a preset's name, ``module:Class`` or ``./file.py:Class``.
        options: the policy's own options, as texts.
        platform: the hosts, where known; Batsim does not send their speeds, nor how long they take to wake up.
        seed: of the policy.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.

    Raises:
        ConfigError: if the policy is unknown or refuses the options.
    """

    def __init__(
        self,
        policy: str,
        options: Mapping[str, str],
        *,
        platform: Platform | None = None,
        seed: int = 0,
        decide_limit: float = 0.0,
    ) -> None:
        self._policy = supplied(find_policy(policy, dict(options)))
        self._plain = self._policy.policy  # asked about each job, without the detour
        self._needs_worth = any(getattr(self._plain, f"needs_{field}", False) for field in ("value", "qos"))
        self._platform, self._seed, self._decide_limit = platform, seed, decide_limit
        self._connection = Connection(Role.DECISION)
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
            m.SimulationBegins: self._begin,
            m.JobSubmitted: self._submit,
            m.JobCompleted: self._complete,
            m.JobKilled: self._resubmit,
            m.ResourceStateChanged: self._change,
            m.Notify: self._notice,
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
        policy = getattr(innermost(self._policy), "entry", None)
        compiled = [policy] if isinstance(policy, Entry) else []
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
        if not self._connection.ending:
            self._decide(commands)
            self._end_registration(commands)
        return self._connection.send(Message(message.now, tuple(commands)))

    def deadlock(self) -> DecisionError:
        """The error of a simulation that cannot go on: what waits, and whether for want of power."""
        state = self._state
        waiting = [self._names[job] for job in state.queue[: state.count[N_QUEUED]].tolist()]
        return deadlock(self.now, waiting, self._registers, nb_hosts(state) - int(state.supply[0]))

    # --- Batsim's events ----------------------------------------------------------------------------------------

    def _end(self, event: m.SimulationEnds, commands: list[m.DecisionEvent]) -> None:
        self._misfits.tell(nb_hosts(self._state))
        if getattr(self._policy, "needs_users", False) and not self._users:
            warn_of_no_users()

    def _complete(self, event: m.JobCompleted, commands: list[m.DecisionEvent]) -> None:
        job, final = self._number[event.data.job_id], _FINAL_STATES[event.data.job_state]
        kernels.job_ends.from_python(self._state.address, self._facts.address, event.timestamp, job, final)

    def _begin(self, event: m.SimulationBegins, commands: list[m.DecisionEvent]) -> None:
        announced = announced_platform(event.data.compute_resources)
        platform = self._platform or announced
        check_same(platform, announced)
        self._facts, pstates = platform_facts(platform, energy=True)
        self._state = new_state(self._facts, pstates)
        reset_policy(self._policy, platform, self._seed)
        self._plan = p.new_plan(self._state)
        self._decider = CheckedPolicy(self._policy, self._facts, self._names, self._decide_limit)
        self._begun = True
        self._prepare_suspensions(event.data, commands)

    def _prepare_suspensions(self, data: m.SimulationBeginsData, commands: list[m.DecisionEvent]) -> None:
        settings, config, suspends = self._policy.settings, data.config, may_suspend(self._policy, ())
        check_config(self._policy.name, suspends, config)
        self._dynamic = config.dynamic_jobs_enabled
        self._registers = self._dynamic and (
            suspends or (settings.suspends_beyond and config.forward_unknown_events) or not self._is_compiled()
        )
        self._suspensions = Suspensions(data.profiles if self._registers else {}, settings.restart)
        if self._dynamic and not self._registers:  # Batsim waits for it
            commands.append(m.Notify(self.now, m.NotifyData(type=_FINISHED)))

    def _is_compiled(self) -> bool:
        return hasattr(innermost(self._policy), "entry")

    def _submit(self, event: m.JobSubmitted, commands: list[m.DecisionEvent]) -> None:
        job, job_id = event.data.job, event.data.job_id
        if job_id in self._number:  # Batsim acknowledges a job that we have registered
            return
        if len(self._names) == len(self._state.size):
            self._grow()
        user = str(job.fields.get("user", ""))
        number = self._users.setdefault(user, len(self._users)) if user else -1
        estimate = read_estimate(job.fields.get("estimate"))
        check_walltime(self._plain, job_id, job.walltime, "Batsim's workload")
        if getattr(self._plain, "needs_estimate", False):
            check_estimate(job_id, estimate, "Batsim's workload")
        job_number = kernels.job_arrives.from_python(
            self._state.address, event.timestamp, job.res, job.walltime, number, float(told(estimate))
        )
        self._names.append(job_id)
        self._number[job_id] = job_number
        if self._needs_worth or not _WORTH.isdisjoint(job.fields):
            self._appraise(job, job_id, job_number)
        if self._registers:
            self._suspensions.note(job_number, str(job.fields.get("profile", "")))
        hosts = nb_hosts(self._state)
        if not 1 <= job.res <= hosts:
            self._misfits.add(job_id, job.res)
            commands.append(m.RejectJob(self.now, m.RejectJobData(job_id)))
            transitions.reject(self._state, job_number)
            transitions.drop_started(self._state)

    def _appraise(self, job: m.JobDescription, job_id: str, number: int) -> None:
        """What the job is worth, as it says itself."""
        try:
            worth = read_worth(job.fields, job.subtime)
        except ConfigError as error:
            raise ConfigError(f"Batsim's workload: job {job_id}, {error}") from None
        check_worth(self._plain, job_id, worth, "Batsim's workload")
        said = (0.0 if math.isnan(number) else number for number in astuple(worth))
        kernels.job_is_worth.from_python(self._state.address, number, *said)

    def _resubmit(self, event: m.JobKilled, commands: list[m.DecisionEvent]) -> None:
        """Register what is left of jobs that were suspended; those without progress had ended by themselves."""
        for job_id in event.data.job_ids:
            killed = self._number[job_id]
            if job_id not in event.data.job_progress or not self._state.suspended[killed]:
                continue
            if len(self._names) == len(self._state.size):
                self._grow()
            restart = self._suspensions.restart
            rest = kernels.job_returns.from_python(self._state.address, event.timestamp, killed, restart)
            rest_id, registration = self._suspensions.register(self._state, self._names, killed, rest, self.now)
            self._names.append(rest_id)
            self._number[rest_id] = rest
            commands += registration

    def _end_registration(self, commands: list[m.DecisionEvent]) -> None:
        """With the last job's end, say that no more will be registered: Batsim waits for it."""
        count = self._state.count
        if self._registers and self._all_came and count[N_QUEUED] == 0 and count[N_RUNNING] == 0:
            self._registers = False
            commands.append(m.Notify(self.now, m.NotifyData(type=_FINISHED)))

    def _grow(self) -> None:
        jobs = 2 * len(self._state.size)
        self._state = with_room(self._state, jobs, 0)
        self._plan = p.new_plan(self._state)

    def _change(self, event: m.ResourceStateChanged, commands: list[m.DecisionEvent]) -> None:
        state, pstates = event.data.state, self._facts.pstate_kind.shape[1]
        if state not in map(str, range(pstates)):
            has = f"but the hosts have pstates 0 to {pstates - 1}"
            raise RemoteProtocolError(f"Batsim names pstate {state[:40]!r}, {has}")
        pstate = int(state)
        transitions.tick(self._state, event.timestamp)
        for host in self._hosts(event.data.resources):
            wakes = bool(self._facts.pstate_kind[host, pstate] == PSTATE_COMPUTING)
            if wakes and self._facts.pstate_kind[host, self._state.pstate[host]] == PSTATE_COMPUTING:
                transitions.set_pstate(self._state, self._facts, host, pstate)
            else:
                transitions.end_switch(self._state, self._facts, host, pstate, wakes)

    def _notice(self, event: m.Notify, commands: list[m.DecisionEvent]) -> None:
        if event.data.type == POWER_SUPPLY:
            self._change_supply(event)
        self._all_came |= event.data.type == _NO_MORE_JOBS
        move = _MOVES.get(event.data.type)
        if move is not None:
            transitions.tick(self._state, event.timestamp)
            for host in self._hosts(event.data.resources):
                move(self._state, self._facts, host)

    def _change_supply(self, event: m.Notify) -> None:
        where = f"t={event.timestamp:.12g} s: Batsim's event {POWER_SUPPLY}"
        said, hosts = event.data.fields, nb_hosts(self._state)
        supply, *forecast = read_forecast(said.get("hosts"), said.get("forecast", ()), where)
        if supply > hosts:
            raise ConfigError(f"{where} has {supply} hosts, and the platform has {hosts}; correct the events")
        if self._policy.settings.suspends_beyond and not self._dynamic:
            raise ConfigError(f"{where} suspends jobs beyond it; {NEEDS_DYNAMIC_JOBS}, or choose beyond=grid")
        refuse_bound(self._policy)
        transitions.tick(self._state, event.timestamp)
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
        intervals = int(plan.count[1])
        self._write_commands(commands, actions, intervals)
        room = int(state.count[N_INTERVALS]) + intervals
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
                if kind == p.SUSPEND:
                    self._check_suspension(job)
                before = commands.pop().data.job_ids if at and plan.kind[at - 1] in _KILLS else ()  # type: ignore[union-attr]
                commands.append(m.KillJob(now, m.KillJobData((*before, names[job]))))
            elif kind == p.SET_PSTATE:
                hosts = format_intervals(runs[begin:end])
                commands.append(m.SetResourceState(now, m.SetResourceStateData(hosts, str(plan.value[at]))))
            else:
                commands.append(m.CallMeLater(now, m.CallMeLaterData(_short(float(plan.time[at]), now))))

    def _check_suspension(self, number: int) -> None:
        if not self._registers:
            advice = f"{NEEDS_DYNAMIC_JOBS}; decision run does where the policy's class has suspends = True"
            raise ConfigError(f"t={self.now:.12g} s: {self._names[number]} is suspended: {advice}")
        self._suspensions.check(number, self._names[number])


def _short(time: float, now: float) -> float:
    """A time after `now`, to the microsecond: of numbers of more than 15 digits Batsim makes others than we do."""
    rounded = round(time, DECIMALS)
    return rounded if rounded > now else time


def make_agent(
    policy: str,
    settings: Mapping[str, str],
    *,
    platform: Platform | None = None,
    seed: int = 0,
    decide_limit: float = 0.0,
) -> Agent | MessageAgent:
    """The agent of a policy's name: ours with that policy, or a scheduler that answers messages itself.

    Arguments are those of `Agent`.

    Raises:
        ConfigError: if the policy is unknown or refuses the settings.
    """
    found = find_agent(policy, settings)
    return found or Agent(policy, settings, platform=platform, seed=seed, decide_limit=decide_limit)
