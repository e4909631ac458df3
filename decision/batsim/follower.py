"""The cluster as Batsim reports it: its messages become transitions of a state, and plans become its commands.

A `Follower` decides nothing. `decision.batsim.agent` asks a policy between `hear` and `say`; in an environment whose
episodes run in a Batsim the kernels of a scheduler choose there (`decision.rl.envs.external`). So both see the same
cluster, and both say what they decide in the same words.

What messages and plans do to the state are entries, called with addresses: a message needs about three calls, and
numba's own way into a kernel takes longer than most decisions. Batsim 5 prints times with the rounding errors of
SimGrid's clock; the state has them as Batsim 4 prints them, so that no decision depends on the last digit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from decision import __version__
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.engine.kernels.clock import six_decimals
from decision.engine.rules import DECIMALS
from decision.files.events import read_forecast
from decision.files.simgrid.values import WATTAGE, parse_sleep_states, parse_wattage
from decision.model.errors import ConfigError, RemoteProtocolError
from decision.model.hosts import format_hosts, format_intervals, parse_hosts
from decision.model.platform import Host, Platform, PowerState
from decision.model.record import FinalState
from decision.model.workload import POWER_SUPPLY
from decision.policies.prepared import ask_and_check
from decision.policies.traits import SupplySettings
from decision.protocol import Connection, Message, Role
from decision.protocol import messages as m
from decision.protocol.messages import Resource
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import PSTATE_COMPUTING, ClusterState, PlatformFacts, nb_hosts, with_room
from decision.state.plan_arrays import REJECT, SET_PSTATE, START, SUSPEND, PlanArrays

from .dynamic_jobs import NEEDS_DYNAMIC_JOBS, Suspensions

# What messages and plans do to the state, and how a policy is asked: entries, called with addresses.

FAULTY = -1  # what `ask_now` returns where the plan cannot be carried out


@Interface(int, ClusterState, float).entry
def time_is(state, now):
    """It is `now` seconds, as a message says."""
    transitions.tick(state, six_decimals(now))
    return 0


@Interface(int, ClusterState, float, int, float, int, float).entry
def job_arrives(state, now, size, walltime, user, estimate):
    """A job arrives at `now` seconds, as `transitions.submit`; its number."""
    transitions.tick(state, six_decimals(now))
    return transitions.submit(state, size, walltime, user, estimate)


@Interface(int, ClusterState, int, float, float, float, float).entry
def job_is_worth(state, job, value, qos, deadline, expected):
    """A job says what it is worth, as `transitions.appraise`."""
    transitions.appraise(state, job, value, qos, deadline, expected)
    return 0


@Interface(int, ClusterState, float, int, float, float).entry
def job_returns(state, now, job, restart, every):
    """What is left of a job that was suspended or failed arrives, as `transitions.resubmit`; its number."""
    transitions.tick(state, six_decimals(now))
    return transitions.resubmit(state, job, restart, every)


@Interface(int, ClusterState, PlatformFacts, float, int, int).entry
def job_ends(state, facts, now, job, final_state):
    """A job ends at `now` seconds."""
    transitions.tick(state, six_decimals(now))
    transitions.end(state, facts, job, final_state)
    return 0


@Interface(int, int, ClusterState, PlatformFacts, int, PlanArrays, float).entry
def ask_now(policy, state, facts, memory, plan, now):
    """Let the policy at an address fill the plan for `now` seconds, and check it; the number of actions, or FAULTY."""
    transitions.tick(state, six_decimals(now))
    if not ask_and_check(policy, state, facts, memory, plan):
        return FAULTY
    if plan.nb_actions == 0:
        transitions.take_ends(state)
    return plan.nb_actions


@Interface(int, ClusterState, PlatformFacts, PlanArrays).entry
def carry_out(state, facts, plan):
    """Start, reject and switch as the plan says; kills and calls show in later messages only."""
    for at in range(plan.nb_actions):
        kind = plan.kind[at]
        if kind == START:
            transitions.start(state, plan.job[at], plan.first, plan.last, plan.begin[at], plan.end[at])
        elif kind == REJECT:
            transitions.reject(state, plan.job[at])
        elif kind == SUSPEND:
            transitions.begin_suspension(state, plan.job[at], plan.value[at])
        elif kind == SET_PSTATE:
            _switch(state, facts, plan, at)
    transitions.drop_started(state)
    transitions.take_ends(state)
    return 0


@kernel
def _switch(state, facts, plan, at):
    """Hosts begin to sleep or wake; a change between computing pstates takes effect when Batsim reports it."""
    pstate = plan.value[at]
    for i in range(plan.begin[at], plan.end[at]):
        for host in range(plan.first[i], plan.last[i] + 1):
            old = state.pstate[host]
            wakes = facts.pstate_kind[host, pstate] == PSTATE_COMPUTING
            if not (wakes and facts.pstate_kind[host, old] == PSTATE_COMPUTING):
                virtual = facts.switch_on[host, old] if wakes else facts.switch_off[host, pstate]
                transitions.begin_switch(state, facts, host, virtual, wakes)


# The state by messages, and messages by plans.

_MOVES: dict[str, Callable[..., None]] = {
    "event_machine_unavailable": transitions.leave,
    "event_machine_available": transitions.come_back,
}
_FINISHED, _NO_MORE_JOBS = "registration_finished", "no_more_static_job_to_submit"
_KILLS = (p.KILL, p.SUSPEND)
_FINAL_STATES = {state.name: int(state) for state in FinalState}

FOLLOWED = job_arrives, job_ends, carry_out  # entries that every conversation needs


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
        job_ends.from_python(self._state.address, self._facts.address, event.timestamp, job, final)

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
            rest = job_returns.from_python(self._state.address, event.timestamp, killed, *how)
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

    def _notice(self, given: m.Notify | m.ExternalEvent, commands: list[m.DecisionEvent]) -> None:
        event = notification_of(given) if isinstance(given, m.ExternalEvent) else given
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
        carry_out.from_python(state.address, self._facts.address, plan.address)

    def _switches(self, runs: list[tuple[int, int]], pstate: int) -> list[m.DecisionEvent]:
        """The commands that let the hosts of these intervals change to a pstate."""
        if not self._connection.version.tells_switches_apart:
            data = m.SetResourceStateData(format_intervals(runs), str(pstate))
            return [m.SetResourceState(self.now, data)]
        hosts = [host for first, last in runs for host in range(first, last + 1)]
        groups = switches(self._state, self._facts, hosts, pstate)
        changes = [m.SetResourceStateData(format_hosts(group), str(pstate), at_once) for group, at_once in groups]
        return [m.SetResourceState(self.now, change) for change in changes]

    def _call(self, time: float) -> m.CallMeLaterData:
        if not self._connection.version.names_calls:
            # to the microsecond: of numbers of more than 15 digits Batsim makes others than we do
            rounded = round(time, DECIMALS)
            return m.CallMeLaterData(rounded if rounded > self.now else time)
        self._calls += 1
        return m.CallMeLaterData(milliseconds(time), f"call {self._calls}", "ms")


def registered_all(now: float) -> m.Notify:
    """The word that no more jobs will be registered, for which Batsim waits."""
    return m.Notify(now, m.NotifyData(type=_FINISHED))


# The platform that SIMULATION_BEGINS announces, and what a Batsim 5 alone needs: a greeting, calls in milliseconds.


def announced_platform(resources: Sequence[Resource]) -> Platform:
    """The compute hosts of SIMULATION_BEGINS. Speeds are nan where Batsim does not send them, which only Batsim 5 does.

    Raises:
        RemoteProtocolError: if there are none, or they are not numbered from 0.
    """
    if not resources:
        raise RemoteProtocolError("Batsim announces no compute host, and a simulation needs one")
    if [resource.id for resource in resources] != list(range(len(resources))):
        raise RemoteProtocolError("Batsim announces compute hosts whose ids do not count up from 0")
    hosts = []
    for resource in resources:
        properties = dict(resource.properties)
        wattage = next((properties[name] for name in WATTAGE if name in properties), None)
        speeds = (math.nan,) if resource.speeds is UNSET else resource.speeds
        # of the speed of a switch, which takes 1 / speed, Batsim prints too few digits: with 12 decimals the time of a
        # minute is known to a nanosecond only, and calls are rounded up. It is one of whole microseconds, as all of
        # Batsim 4's are
        speeds = tuple(1.0 / round(1.0 / speed, 6) if 0.0 < speed < 1.0 else speed for speed in speeds)
        watts = parse_wattage(wattage) if wattage else ((0.0, 0.0, 0.0),) * len(speeds)
        speeds = speeds if len(speeds) == len(watts) else (math.nan,) * len(watts)
        triplets = properties.get("sleep_pstates")
        host = Host(
            id=resource.id,
            name=resource.name,
            pstates=tuple(PowerState(speed, *three) for speed, three in zip(speeds, watts, strict=True)),
            initial_pstate=0 if resource.pstate is UNSET else resource.pstate,
            sleep=parse_sleep_states(triplets, len(watts)) if triplets and wattage else (),
            has_power=wattage is not None,
            properties=properties,
            zone_properties=dict(resource.zone_properties),
        )
        hosts.append(host)
    return Platform(hosts=tuple(hosts))


def in_announced_order(known: Platform, announced: Platform) -> Platform:
    """A known platform with its hosts in the order in which Batsim announces them, which is another in Batsim 5.

    Raises:
        ConfigError: if it is not the one that Batsim simulates.
    """
    names, others = ([host.name for host in platform.hosts] for platform in (known, announced))
    if names == others:
        return known
    if sorted(names) != sorted(others):
        raise ConfigError(
            f"{known.path or 'platform'}: {len(names)} hosts, from {names[0]}, but Batsim simulates {len(others)}, "
            f"from {others[0]}; give both the same platform"
        )
    order = [names.index(name) for name in others]
    hosts = tuple(replace(known.hosts[old], id=new) for new, old in enumerate(order))
    places = tuple((known.places or range(len(order)))[old] for old in order)
    routes = known.routes and (*(known.routes[old] for old in order), *known.routes[len(order) :])
    return replace(known, hosts=hosts, places=places, routes=routes)


# --- What only a Batsim 5 needs of a decision process ---

_MACHINE_EVENTS = ("machine_available", "machine_unavailable")


def hello(policy: str, suspends: bool) -> m.HelloData:
    """Our answer to Batsim's first message, which asks for no more than the policy needs."""
    wanted = m.Features(
        dynamic_registration=suspends,
        profile_reuse=suspends,
        acknowledge_dynamic_jobs=suspends,
        forward_profiles_on_job_submission=suspends,
    )
    return m.HelloData(name=f"decision ({policy})", version=__version__, features=wanted)


def milliseconds(time: float) -> float:
    """A time in seconds, rounded up to whole milliseconds."""
    return math.ceil(round(time * 1e9) / 1e6) / 1e3  # as `decision.engine.kernels.clock.whole_milliseconds`


def notification_of(event: m.ExternalEvent) -> m.Notify | None:
    """The notification that Batsim 4 would have sent for an external event; None for one that means nothing to us."""
    try:
        fields = msgspec.json.decode(event.data.text)
    except (msgspec.DecodeError, RecursionError):
        return None
    kind = fields.get("type") if isinstance(fields, dict) else None
    if kind in _MACHINE_EVENTS:
        return _notify(event, type=f"event_{kind}", resources=fields.get("resources", ""))
    return _notify(event, **fields) if kind == POWER_SUPPLY else None


def _notify(event: m.ExternalEvent, **fields: Any) -> m.Notify:
    return m.Notify(event.timestamp, m.NotifyData(**fields))


def switches(state: ClusterState, facts: PlatformFacts, hosts: list[int], pstate: int) -> list[tuple[list[int], bool]]:
    """The hosts that are to change to a pstate, in groups of one command each, with whether the change is at once.

    From one computing pstate to another it is; hosts that are there already are in no group.
    """
    others = np.array([host for host in hosts if state.pstate[host] != pstate], np.int64)
    computes = facts.pstate_kind[others, state.pstate[others]] == PSTATE_COMPUTING
    at_once = computes & (facts.pstate_kind[others, pstate] == PSTATE_COMPUTING)
    groups = ((others[at_once].tolist(), True), (others[~at_once].tolist(), False))
    return [group for group in groups if group[0]]
