"""The compiled engine in the place of a Batsim 5: its calls and probes, its forced stop, where it puts executors.

All that differs from Batsim 4 is here, and in `batsim_words` what it says otherwise; time is the same.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from decision.engine.kernels import arrays as a
from decision.engine.kernels.clock import takes_time
from decision.model.errors import ConfigError, DeadlockError, PolicyError
from decision.model.hosts import parse_hosts
from decision.model.platform import Platform
from decision.model.record import PstateTable, RunRecord
from decision.model.workload import Job, MachineEvent, Workload
from decision.protocol import Message
from decision.protocol import messages as m
from decision.protocol.messages import BatsimEvent, DecisionEvent
from decision.state import plan_arrays as p
from decision.state.cluster import PSTATE_COMPUTING, PSTATE_SLEEP

from . import batsim_words as words
from .batsim4 import EmbeddedEngine
from .batsim5_clock import Alarm, Calls, is_for_clock
from .commands import SetPstate, Start
from .compiled import CompiledEngine
from .rules import EngineOptions
from .truth import LeafKind, LeafTask, on_hosts

_STOP = 1 << 20  # above the numbers of calls; of the alarm that ends the simulation
# Calls in a row, after all jobs, that nobody reacts to: then they go on for ever.
_IDLE_QUESTIONS = 1000


class Batsim5Engine(EmbeddedEngine):
    """Simulates one run, in Batsim 5's messages. Further arguments are those of `EmbeddedEngine`.

    Args:
        lists: the names and files of the external events.
        facts: what it says about itself.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        events: Sequence[MachineEvent],
        options: EngineOptions,
        *,
        lists: Mapping[str, str],
        facts: m.BatsimFacts,
    ) -> None:
        self._lists, self._facts = lists, facts
        super().__init__(platform, workloads, events, options)
        self._nb_static = len(self.names)  # jobs of the workloads
        self._calls = Calls(self._joules, self._refuse_command)
        self._asked_at = 0.0  # seconds, of the last question
        self._stamp = 0.0  # seconds: when Batsim last noted a time for its next message
        self._stopped = False
        self._cut_short: set[str] = set()  # jobs that are killed at the instant of the stop
        self._unheeded = 0  # questions in a row with nothing but calls, and no reaction
        self._turns: list[float] = []  # seconds: when the clock still waits again within a reply, and when that ends
        self._at_once: set[int] = set()  # requests to switch that take no time
        self._nb_requests = 0  # to switch, so far

    # --- The conversation ---------------------------------------------------------------------------------------

    def greet(self, features: m.Features) -> None:
        """Take what the decision process wants, before the first question."""
        self.options = replace(
            self.options,
            dynamic_jobs=bool(features.dynamic_registration),
            acknowledge_dynamic_jobs=bool(features.acknowledge_dynamic_jobs),
            profile_reuse=bool(features.profile_reuse),
            forward_profiles=bool(features.forward_profiles_on_job_submission),
            forward_profiles_of_killed=bool(features.forward_profiles_on_jobs_killed),
            forward_all_profiles=bool(features.forward_profiles_on_simulation_begins),
        )
        if self.options.forward_all_profiles:
            # Batsim 5 has forgotten a profile that no job has, and crashes.
            for workload in self._reader.workloads.values():
                if unused := sorted({*workload.profile_sources} - {*workload.profiles}):
                    what = f"no job has profile {unused[0]!r} of {workload.name}: Batsim 5.0.0-rc2 crashes there"
                    way = "remove it, or ask for them with jobs"
                    raise PolicyError(f"forward_profiles_on_simulation_begins, and {what}; {way}")
        self._reader.set_options(self.options)
        self.world.sim.acknowledges = bool(features.acknowledge_dynamic_jobs)
        self.world.sim.registration_open = bool(features.dynamic_registration)

    def _event_lists(self, events: Sequence[MachineEvent]) -> list[list[MachineEvent]]:
        """One by file, in the order of the files, each in order of time; also one without events."""
        lists: dict[str, list[MachineEvent]] = {name: [] for name in self._lists}
        for event in sorted(events, key=lambda event: event.timestamp):
            name, _, _ = str(msgspec.json.decode(event.source)["id"]).rpartition("!")
            lists.setdefault(name, []).append(event)
        return [*lists.values()]

    def ask(self) -> Message | None:
        """The next question, as `EmbeddedEngine.ask`; strokes of the clock at which nothing is said are none."""
        if not self._begun:
            # The first question waits until all who submit have said hello, as Batsim 5 does. By then those before the
            # last one have submitted what is due at 0 s, and it is in that question, too.
            senders = self.world.sim.nb_submitters + self.world.sim.nb_event_lists
            if senders and not takes_time(self.world):
                self.world.sim.log_sent, self.world.sim.decision_waits = 0, 1
                self._begun = True
        if self._stopped:
            self._over = True
            return None
        while (question := super().ask()) is not None:
            # The engine asks at each stroke of the clock; what nobody would hear of is answered here.
            self._asked_at = question.now
            if self._stopped:
                # While a job computes, the cancelled task lets Batsim 5 abort. Delays end quietly.
                for number in self.state.running[: self.state.nb_running].tolist():
                    computes = self.leaves(number)[self.world.sim.leaf[number]].kind is not LeafKind.DELAY
                    if computes and self.job(number).id not in self._cut_short:
                        problem = f"ForceSimulationStop while {self.job(number).id} computes"
                        aborts = "at which Batsim 5.0.0-rc2 aborts; kill the job first, or stop after its end"
                        raise PolicyError(f"t={self.now:.12g} s: {problem}, {aborts}")
                return Message(question.now, (m.SimulationEnds(question.now),))
            if question.events:
                sim, calls = self.world.sim, m.RequestedCall | m.ProbeDataEmitted
                done = sim.nb_finished == sim.nb_submitted and not sim.nb_submitters + sim.nb_event_lists
                nothing_else = done and self._calls.endless and all(isinstance(e, calls) for e in question.events)
                self._unheeded = self._unheeded + 1 if nothing_else else 0
                if self._unheeded > _IDLE_QUESTIONS:
                    problem = "all jobs are over, and a periodic call or probe goes on for ever"
                    raise DeadlockError(f"t={self.now:.12g} s: {problem}, as it would in Batsim 5; let it be stopped")
                self._stamp = question.now
                return question
            super().answer(Message(question.now, ()))
        return None

    def answer(self, message: Message) -> None:
        """Take the reply, as `EmbeddedEngine.answer`."""
        if message.events:
            self._unheeded = 0
        stops = [at for at, event in enumerate(message.events) if isinstance(event, m.ForceStop)]
        if stops:  # at its time; what follows it is dropped, and kills at that instant come too late
            stop = message.events[stops[0]]
            before = message.events[: stops[0]]
            late = [e for e in before if isinstance(e, m.KillJob) and e.timestamp == stop.timestamp]
            self._cut_short = {job_id for kill in late for job_id in kill.data.job_ids}
            message = Message(stop.timestamp, (*(e for e in before if e not in late), stop))
        super().answer(message)

    def record(self) -> RunRecord:
        """Everything that Batsim would write about the run, once it is over."""
        record = super().record()
        if not self.options.energy:  # of jobs that were registered Batsim 5 writes 0 then, and -1 of others
            registered = self.world.sim.truth_of[self.finished()] >= self._nb_static
            record.jobs.energy = np.where(registered, 0.0, -1.0)
        if any("!" in name for workload in self._reader.workloads.values() for name in workload.profiles):
            jobs, workloads = [self.job(number) for number in self.finished().tolist()], self._reader.workloads
            record.jobs.profile = [words.full_name(job.profile, workloads[job.workload]) for job in jobs]
        return with_changes_at_once(record, self, self._at_once)

    # --- From the log to a question -----------------------------------------------------------------------------

    def _add_event(self, events: list[BatsimEvent], kind: int, time: float, arg: int, value: float) -> None:
        workloads = self._reader.workloads
        match kind:
            case a.LOG_CALLED if arg == _STOP:
                self._stopped = True
                return
            case a.LOG_CALLED:
                self._stamp = time  # also at a stroke at which nothing is said
                events.extend(self._calls.due(arg, time))
                return
            case a.LOG_SUBMITTED:
                job = self.job(arg)
                self._reader.submit(job.id, arg)
                events.append(words.job_submitted5(time, job, workloads[job.workload], self.options))
            case a.LOG_KILLED:
                sim = self.world.sim
                numbers = [int(job) for job in sim.kill_job[sim.kill_begin[arg] : sim.kill_end[arg]]]
                killed = sorted((self.job(n).id, n) for n in numbers if sim.kill_state[n] == a.KILL_DONE)
                progress = {job_id: self._progress(number) for job_id, number in killed}
                data = m.JobKilledData(tuple(self.job(number).id for number in numbers), progress)
                if self.options.forward_profiles_of_killed:
                    jobs = [self.job(number) for _, number in killed]
                    given = [(job.profile, workloads[job.workload]) for job in jobs]
                    names = {words.full_name(*profile): profile for profile in given}
                    profiles = {name: words.profile5(*names[name]) for name in sorted(names)}
                    data = m.JobKilledData(data.job_ids, progress, profiles)
                events.append(m.JobKilled(time, data))
            case a.LOG_CHANGED:
                pstate, at_once = str(int(self.world.sim.switch_pstate[arg])), arg in self._at_once
                changed = m.ResourceStateChangedData(self.switched_hosts(arg), pstate, at_once)
                events.append(m.ResourceStateChanged(time, changed))
            case a.LOG_EVENT:
                events.append(words.external_event5(time, self.events[arg]))
            case a.LOG_BEGINS:
                everything, begins = self.options.forward_all_profiles, words.simulation_begins5
                events.append(begins(self.platform, workloads.values(), self._lists, self._facts, everything))
            case _:
                super()._add_event(events, kind, time, arg, value)
        events[-1] = words.stamped(events[-1], self._stamp)
        self._stamp = events[-1].timestamp

    def _progress(self, number: int) -> m.TaskProgress:
        sim, workload = self.world.sim, self._reader.workloads[self.job(number).workload]
        return words.task_progress5(self.leaves(number)[sim.leaf[number]], float(sim.progress[number]), workload)

    def _joules(self, hosts: str, time: float) -> list[float]:
        """What hosts have used by a time in seconds."""
        sim, ids = self.world.sim, np.array(parse_hosts(hosts, len(self.platform.hosts)))
        watts = np.where(sim.first_watts[ids] >= 0, sim.first_watts[ids], sim.host_watts[ids])
        joules: list[float] = (sim.host_joules[ids] + watts * (time - sim.host_joules_at[ids])).tolist()
        return joules

    # --- From a reply to a plan ---------------------------------------------------------------------------------

    def _load(self, reply: Message, nb_own: int = 0) -> None:
        super()._load(reply, self._calls.nb_strokes(reply.now - self._asked_at, reply.events))

    def _take_all(self, reply: Message) -> list[float]:
        # Strokes of the clock come before the reply's commands, until the first at which it waits again.
        self._turns = [event.timestamp for event in reply.events if is_for_clock(event)] + [reply.now]
        self._calls.forget_stopped()
        sim = self.world.sim
        for number in self._calls.void(self._turns[0]) if len(self._turns) > 1 else ():
            end = sim.nb_activities
            for at in np.flatnonzero(sim.code[:end] == a.CALL_IS_DUE + 16 * number).tolist():  # as `a.pack` has it
                for column in (sim.left, sim.pace, sim.code):
                    column[at : end - 1] = column[at + 1 : end].copy()
                sim.nb_activities -= 1
                sim.nb_calls -= 1
        self._add_strokes(self._asked_at)
        nb_own = self.plan.nb_actions
        times = super()._take_all(reply)
        times[:nb_own] = [self._asked_at] * nb_own
        # Which hosts are measured at the next stroke, and when the one after it is.
        stroke, following = self._calls.awaited
        sim.stroke, sim.nb_probed, sim.next_stroke_time = stroke.number, 0, following.time
        sim.next_stroke = following.number
        if stroke.number:
            probed = list(dict.fromkeys(self._calls.probed(stroke)))
            sim.probed[: len(probed)], sim.nb_probed = probed, len(probed)
        return times

    def _add_strokes(self, since: float, heard: bool = False) -> None:
        """The strokes of the clock from an instant to that at which it waits again, or to the first after the reply."""
        until = self._turns.pop(0)
        for alarm in self._calls.strokes(since, until, not self._turns, heard):
            self._alarm(alarm)

    def _alarm(self, alarm: Alarm) -> None:
        self.plan.time[self._act(p.CALL_AT, value=alarm.number)] = alarm.time

    def _take(self, command: DecisionEvent) -> None:
        self._carry_out(command)
        if is_for_clock(command):  # the clock waits again whenever it hears of one, though it were for nothing
            self._add_strokes(command.timestamp, heard=True)

    def _carry_out(self, command: DecisionEvent) -> None:
        match command:
            case m.CallMeLater(data=data) if isinstance(data.periodic, m.Periodic):
                self._calls.repeat(str(data.call_id), data.periodic, command.timestamp)
            case m.CallMeLater(data=data):
                self._alarm(self._calls.once(str(data.call_id), data.timestamp))
            case m.StopCall(data=data):
                self._calls.stop(data.call_id, command.timestamp)
            case m.CreateProbe(data=data):
                if not self.options.energy:
                    raise self._refuse_command(f"probe {data.probe_id!r} needs the energy of hosts (--energy-host)")
                try:
                    parse_hosts(data.hosts, len(self.platform.hosts))
                except ConfigError as error:
                    raise self._refuse_command(f"probe {data.probe_id!r}: {error}") from None
                self._calls.repeat(data.probe_id, data.periodic, command.timestamp, data)
            case m.StopProbe(data=data):
                self._calls.stop(data.probe_id, command.timestamp, probe=True)
            case m.ForceStop():
                self._alarm(Alarm(_STOP, command.timestamp))
            case _:  # a command that Batsim 4 has, too
                read = self._reader.read(command)
                if isinstance(read, Start) and isinstance(command, m.ExecuteJob):
                    read = self._placed(read, command.data)
                if isinstance(read, SetPstate) and isinstance(command, m.SetResourceState):
                    self._check_switch(read, command.data.at_once is True)
                self._add(read)

    def _placed(self, start: Start[int], data: m.ExecuteJobData) -> Start[int]:
        """A start whose job has its amounts by host, where it has not one host for each executor."""
        leaves, cores = self.leaves(start.job), [host.cores for host in self.platform.hosts]
        tasks = [leaf for leaf in leaves if leaf.kind is not LeafKind.DELAY]  # delays need no executors
        if idle := [leaf for leaf in tasks if leaf.kind in _EVEN and not leaf.amount and not leaf.sent]:
            problem = f"profile {idle[0].profile!r} neither computes nor sends, at which Batsim 5.0.0-rc2 crashes"
            raise self._refuse_command(f"{data.job_id}: {problem}; give it an amount, or a delay")
        if data.mapping == {} and tasks:
            raise self._refuse_command(f"{data.job_id}: its mapping has no executors; give a host for each")
        try:
            placed = placed_leaves(self.job(start.job), leaves, data, start.hosts, cores)
        except ConfigError as error:
            raise self._refuse_command(f"{data.job_id}: {error}") from None
        if placed != leaves or len(start.hosts) != self.job(start.job).size:
            self.set_leaves(start.job, placed)
        return msgspec.structs.replace(start, places=[])

    def _check_switch(self, switch: SetPstate, at_once: bool) -> None:
        """Refuse what Batsim 5 stops at, and a switch to sleep that takes no time, which ours has not."""
        facts, state, pstate = self.facts, self.state, switch.pstate
        known = 0 <= pstate < facts.pstate_kind.shape[1]
        for host in switch.hosts:
            kind = facts.pstate_kind[host, pstate] if known else -1
            computes = facts.pstate_kind[host, state.pstate[host]] == PSTATE_COMPUTING
            if at_once and not (computes and kind == PSTATE_COMPUTING) and known:
                reason = "a change to or from sleep without a switch is not supported; turn the host on or off"
                raise self._refuse_command(f"host {host} cannot go to pstate {pstate} at once: {reason}")
            if not at_once and computes and kind == PSTATE_COMPUTING:
                raise self._refuse_command(f"host {host} cannot be turned on: it is in a computing pstate")
            if not at_once and not computes and kind == PSTATE_SLEEP:
                raise self._refuse_command(f"host {host} cannot be turned off: it does not compute")
        if at_once:
            self._at_once.add(self._nb_requests)
        self._nb_requests += 1


# --- Where executors run: on any number of hosts, by a strategy, by hand, or by part of a sequence -------------------
#
# A job has as many executors as it asks for hosts, unless a mapping by hand says otherwise. It may have other hosts
# than so many, and a part of a sequence some of them only.

_EVEN = (LeafKind.FLOPS_EACH, LeafKind.FLOPS_TOTAL)
_FILL = "FillOneHostCoresFirst"
_BY_HAND = "CustomExecutorToHostMapping"


class _Override(msgspec.Struct):
    """What a start says of one profile."""

    profile_id: str
    host_allocation: str
    executor_placement_type: str = ""
    executor_placement: dict[str, Any] = {}


def placed_leaves(
    job: Job, leaves: tuple[LeafTask, ...], data: m.ExecuteJobData, hosts: Sequence[int], cores: Sequence[int]
) -> tuple[LeafTask, ...]:
    """The leaves of a job with one amount for each of its hosts; the same where each executor has a host for itself.

    Args:
        job: that starts.
        leaves: what it does.
        data: the start.
        hosts: the job's, ascending.
        cores: of each host of the platform.

    Raises:
        ConfigError: where that cannot be; without the job's name.
    """
    others = _overrides(data)
    strategy = "" if data.strategy is UNSET else data.strategy
    mapping = None if data.mapping is UNSET else [int(data.mapping[str(i)]) for i in range(len(data.mapping))]
    cores_here = [cores[host] for host in hosts]

    def place(leaf: LeafTask) -> LeafTask:
        if leaf.kind is LeafKind.DELAY:  # which has no executors
            return leaf
        name = leaf.profile if leaf.profile.startswith(f"{job.workload}!") else f"{job.workload}!{leaf.profile}"
        chosen = others.get(name)
        if chosen is None:
            places = _places(job, strategy, mapping, cores_here)
        else:
            named = parse_hosts(chosen.host_allocation)
            if outside := {*named} - {*hosts}:
                problem = f"profile {name!r} is to run on host {min(outside)}, which the job does not have"
                raise ConfigError(f"{problem}: that is not supported; give the job all its hosts")
            at = [hosts.index(host) for host in named]
            placement = chosen.executor_placement
            by_hand = placement.get("mapping", []) if chosen.executor_placement_type == _BY_HAND else None
            local = _places(job, str(placement.get("strategy", "")), by_hand, [cores[hosts[k]] for k in at])
            places = [at[k] for k in local]
        if leaf.kind is LeafKind.FLOPS_VECTOR and len(leaf.flops) != len(places):
            raise ConfigError(
                f"profile {leaf.profile!r} is for {len(leaf.flops)} executors, and {len(places)} are placed"
            )
        return leaf if places == [*range(len(hosts))] else on_hosts(leaf, places, len(hosts))

    return tuple(map(place, leaves))


def _places(job: Job, strategy: str, mapping: Sequence[int] | None, cores: Sequence[int]) -> list[int]:
    """For each executor the index of its host, of which there is one for each of `cores`."""
    if mapping is not None:
        if not all(isinstance(place, int) and 0 <= place < len(cores) for place in mapping):
            raise ConfigError(f"a mapping must name hosts 0 to {len(cores) - 1} of its allocation; found {[*mapping]}")
        return [*mapping]
    slots = [host for host, some in enumerate(cores) for _ in range(some if strategy == _FILL else 1)]
    return [slots[executor % len(slots)] for executor in range(job.size)]


def _overrides(data: m.ExecuteJobData) -> Mapping[str, _Override]:
    """By the profile's full name."""
    if data.overrides is UNSET:
        return {}
    overrides: dict[str, _Override] = {}
    for fields in data.overrides:
        try:
            override = msgspec.convert(fields, _Override)
        except msgspec.ValidationError as error:
            raise ConfigError(f"profile_allocation_override: {error}") from None
        overrides[override.profile_id] = override
    return overrides


# --- What it writes of changes of pstate -----------------------------------------------------------------------------


def with_changes_at_once(record: RunRecord, engine: CompiledEngine, at_once: Collection[int]) -> RunRecord:
    """The record as Batsim 5 writes it; `at_once` are the numbers of requests to switch that took no time."""
    pstates = record.pstates
    if pstates is not None and at_once:  # such a change has one row
        number = engine.world.sim.nb_pstate_rows
        requests, values = engine.world.rows.pstate_switch[:number], engine.world.rows.pstate_value[:number]
        begun = np.isin(requests, list(at_once)) & (values < 0)
        keep = np.concatenate([np.ones(len(pstates.time) - number, bool), ~begun])
        hosts = [text for text, stays in zip(pstates.hosts, keep.tolist(), strict=True) if stays]
        pstates = PstateTable(time=pstates.time[keep], hosts=hosts, pstate=pstates.pstate[keep])
    return msgspec.structs.replace(
        record,
        pstates=pstates,
        nb_switches=record.nb_switches - sum(len(parse_hosts(engine.switched_hosts(r))) for r in at_once),
        nb_grouped_switches=record.nb_grouped_switches - len(at_once),
    )
