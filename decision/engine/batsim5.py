"""The compiled engine in the place of a Batsim 5: its own calls, probes, forced stop, and what it writes of hosts.

All that differs from Batsim 4 is here, in `calls`, `words5` and `busy_hosts`; time is the same.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.engine.kernels import arrays as a
from decision.engine.kernels.clock import takes_time
from decision.model.errors import ConfigError, DeadlockError, PolicyError
from decision.model.hosts import parse_hosts
from decision.model.platform import Platform
from decision.model.record import HostState, HostTable, PstateTable, RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.protocol import Message
from decision.protocol import messages as m
from decision.protocol.messages import BatsimEvent, DecisionEvent
from decision.state import plan_arrays as p
from decision.state.cluster import PSTATE_COMPUTING, PSTATE_SLEEP

from . import batsim5_words as words5
from .batsim4 import EmbeddedEngine
from .batsim5_words import Alarm, Calls, placed_leaves
from .commands import SetPstate, Start
from .compiled import CompiledEngine
from .refusals import EngineOptions
from .truth import LeafKind

# What Batsim 5.0.0-rc2 writes about the states of hosts: one that has computed counts as computing until it switches.
#
# Made from the rows of the engine's own trace, of which each is the start or the end of a job, or of a switch.

_SWITCHING = (HostState.SWITCHING_ON, HostState.SWITCHING_OFF)


class _Hosts:
    """The states of hosts, and how long they were in each."""

    def __init__(self, nb_hosts: int) -> None:
        self.state = np.full(nb_hosts, HostState.IDLE, np.int8)
        self.since = np.zeros(nb_hosts)
        self.seconds = np.zeros(len(HostState))
        self.counts = np.zeros(len(HostState), np.int64)
        self.counts[HostState.IDLE] = nb_hosts

    def enter(self, hosts: Sequence[int], state: HostState, time: float) -> None:
        for host in hosts:
            self.seconds[self.state[host]] += time - self.since[host]
            self.counts[self.state[host]] -= 1
            self.counts[state] += 1
            self.state[host], self.since[host] = state, time


def with_busy_hosts(
    record: RunRecord, engine: CompiledEngine, starts: Sequence[int], at_once: Collection[int]
) -> RunRecord:
    """The record as Batsim 5 writes it.

    Args:
        record: of a run that is over.
        engine: that made it.
        starts: the jobs that were started, in that order.
        at_once: the numbers of requests to switch that took no time.
    """
    hosts, table = _Hosts(len(engine.platform.hosts) + len(engine.platform.storage)), record.host_states
    switches = _switches(engine, at_once)
    jobs = iter(starts)
    before, counts = np.zeros(len(HostState)), np.zeros_like(table.counts)
    before[HostState.IDLE] = len(hosts.state)
    kept = np.ones(len(table.time), bool)
    for row, (time, now) in enumerate(zip(table.time.tolist(), table.counts, strict=True)):
        if now[HostState.COMPUTING] > before[HostState.COMPUTING]:
            hosts.enter(parse_hosts(engine.allocation(next(jobs))), HostState.COMPUTING, time)
        elif now[HostState.COMPUTING] == before[HostState.COMPUTING]:
            kept[row] = _switch(hosts, switches, time)
        counts[row], before = hosts.counts, now
    return msgspec.structs.replace(
        record,
        host_states=HostTable(time=table.time[kept], counts=counts[kept]),
        time_in_state=hosts.seconds,
        pstates=_pstates(record, engine, at_once),
        nb_switches=record.nb_switches - sum(len(parse_hosts(engine.switched_hosts(r))) for r in at_once),
        nb_grouped_switches=record.nb_grouped_switches - len(at_once),
    )


def _switches(engine: CompiledEngine, at_once: Collection[int]) -> list[tuple[float, list[int], HostState]]:
    """What hosts enter at which time by switches, in that order, latest first."""
    rows, sim = engine.world.rows, engine.world.sim
    found = []
    for row in range(sim.nb_pstate_rows):
        request, value = int(rows.pstate_switch[row]), int(rows.pstate_value[row])
        hosts = parse_hosts(engine.switched_hosts(request))
        sleeps = any(value in engine.platform.hosts[host].sleep_pstates for host in hosts)
        done = HostState.SLEEPING if sleeps else HostState.IDLE
        state = _SWITCHING[-value - 1] if value < 0 else done
        if request not in at_once:
            found.append((float(rows.pstate_time[row]), hosts, state))
    return found[::-1]


def _switch(hosts: _Hosts, switches: list[tuple[float, list[int], HostState]], time: float) -> bool:
    """Let the next switch begin or end, if there is one now; whether there is."""
    if not switches or switches[-1][0] > time:
        return False
    begin, which, state = switches.pop()
    hosts.enter(which, state, begin)
    return True


def _pstates(record: RunRecord, engine: CompiledEngine, at_once: Collection[int]) -> PstateTable | None:
    """The pstate trace, in which a change that takes no time has one row."""
    table = record.pstates
    if table is None or not at_once:
        return table
    number = int(engine.world.sim.nb_pstate_rows)
    requests, values = engine.world.rows.pstate_switch[:number], engine.world.rows.pstate_value[:number]
    begun = np.isin(requests, list(at_once)) & (values < 0)
    keep = np.concatenate([np.ones(len(table.time) - number, bool), ~begun])
    hosts = [text for text, stays in zip(table.hosts, keep.tolist(), strict=True) if stays]
    return PstateTable(time=table.time[keep], hosts=hosts, pstate=table.pstate[keep])


_STOP = 1 << 20  # above the numbers of calls; of the alarm that ends the simulation
_IDLE_QUESTIONS = 1000  # calls in a row that nobody reacts to, after all jobs: then they go on for ever


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
        self._stopped = False
        self._unheeded = 0  # questions in a row with nothing but calls, and no reaction
        self._starts: list[int] = []  # jobs, in the order in which they were started
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
            self._check_profiles()
        self._reader.set_options(self.options)
        self.world.sim.acknowledges = bool(features.acknowledge_dynamic_jobs)
        self.world.sim.registration_open = bool(features.dynamic_registration)

    def _event_lists(self, events: Sequence[MachineEvent]) -> list[list[MachineEvent]]:
        """One by file, in the order of the files, each in order of time; also one without events."""
        told: dict[str, list[MachineEvent]] = {name: [] for name in self._lists}
        for event in sorted(events, key=lambda event: event.timestamp):
            name, _, _ = str(msgspec.json.decode(event.source)["id"]).rpartition("!")
            told.setdefault(name, []).append(event)
        return [*told.values()]

    def _check_profiles(self) -> None:
        """Refuse to forward all profiles where a job has none of them: Batsim 5 has forgotten it, and crashes."""
        for workload in self._reader.workloads.values():
            if unused := sorted({*workload.profile_sources} - {*workload.profiles}):
                what = f"forward_profiles_on_simulation_begins, and no job has profile {unused[0]!r} of {workload.name}"
                raise PolicyError(f"{what}: Batsim 5.0.0-rc2 crashes there; remove it, or ask for them with jobs")

    def _hear_all(self) -> None:
        """Let the first question wait until all who submit have said hello, as Batsim 5 does.

        By then those before the last one have submitted what is due at 0 s, and it is in that question, too.
        """
        senders = self.world.sim.nb_submitters + self.world.sim.nb_event_lists
        if senders and not takes_time(self.world):
            self.world.sim.log_sent, self.world.sim.decision_waits = 0, 1
            self._begun = True

    def ask(self) -> Message | None:
        """The next question, as `EmbeddedEngine.ask`; strokes of the clock at which nothing is said are none."""
        if not self._begun:
            self._hear_all()
        if self._stopped:
            self._over = True
            return None
        while (question := super().ask()) is not None:
            before, self._asked_at = self._asked_at, question.now
            if self._stopped:
                self._check_stop()
                return Message(question.now, (m.SimulationEnds(question.now),))
            if question.events:
                self._check_endless(question)
                return Message(question.now, words5.stamped(question.events, before))
            super().answer(Message(question.now, ()))
        return None

    def answer(self, message: Message) -> None:
        """Take the reply, as `EmbeddedEngine.answer`."""
        if message.events:
            self._unheeded = 0
        super().answer(message)

    def _check_stop(self) -> None:
        """Refuse to stop while a job computes: the cancelled task lets Batsim 5 abort. Delays end quietly."""
        running = self.state.running[: self.state.nb_running]
        for number in running.tolist():
            if self.leaves(number)[self.world.sim.leaf[number]].kind is not LeafKind.DELAY:
                what = f"ForceSimulationStop while {self.job(number).id} computes, at which Batsim 5.0.0-rc2 aborts"
                raise PolicyError(f"t={self.now:.12g} s: {what}; kill the job first, or stop after its end")

    def _check_endless(self, question: Message) -> None:
        """Refuse to go on for ever."""
        sim = self.world.sim
        done = sim.nb_finished == sim.nb_submitted and not sim.nb_submitters + sim.nb_event_lists
        calls = all(isinstance(event, m.RequestedCall | m.ProbeDataEmitted) for event in question.events)
        self._unheeded = self._unheeded + 1 if calls and done and self._calls.endless else 0
        if self._unheeded > _IDLE_QUESTIONS:
            what = "all jobs are over, and a periodic call or probe goes on for ever"
            raise DeadlockError(f"t={self.now:.12g} s: {what}, as it would in Batsim 5; let it be stopped")

    def record(self) -> RunRecord:
        """Everything that Batsim would write about the run, once it is over."""
        record = super().record()
        if not self.options.energy:  # of jobs that were registered Batsim 5 writes 0 then, and -1 of others
            registered = self.world.sim.truth_of[self.finished()] >= self._nb_static
            record.jobs.energy = np.where(registered, 0.0, -1.0)
        return with_busy_hosts(record, self, self._starts, self._at_once)

    # --- From the log to a question -----------------------------------------------------------------------------

    def _tell(self, events: list[BatsimEvent], kind: int, time: float, arg: int, value: float) -> None:
        if kind != a.LOG_CALLED:
            super()._tell(events, kind, time, arg, value)
        elif arg == _STOP:
            self._stopped = True
        else:
            events.extend(self._calls.due(arg, time))

    def _begins(self, time: float, _arg: int, _value: float) -> BatsimEvent:
        workloads, everything = self._reader.workloads.values(), self.options.forward_all_profiles
        return words5.simulation_begins_message(self.platform, workloads, self._lists, self._facts, everything)

    def _submitted(self, time: float, number: int, _value: float) -> BatsimEvent:
        job = self.job(number)
        self._reader.submit(job.id, number)
        return words5.job_submitted_message(time, job, self._reader.workloads[job.workload], self.options)

    def _killed(self, time: float, request: int, _value: float) -> BatsimEvent:
        sim = self.world.sim
        numbers = [int(job) for job in sim.kill_job[sim.kill_begin[request] : sim.kill_end[request]]]
        killed = sorted((self.job(n).id, n) for n in numbers if sim.kill_state[n] == a.KILL_DONE)
        progress = {job_id: self._progress(number) for job_id, number in killed}
        data = m.JobKilledData(tuple(self.job(number).id for number in numbers), progress)
        if self.options.forward_profiles_of_killed:
            jobs = [self.job(number) for _, number in killed]
            workloads = [self._reader.workloads[job.workload] for job in jobs]
            names = {words5.full(j.profile, w): (j.profile, w) for j, w in zip(jobs, workloads, strict=True)}
            profiles = {name: words5.profile(*names[name]) for name in sorted(names)}
            data = m.JobKilledData(data.job_ids, progress, profiles)
        return m.JobKilled(time, data)

    def _progress(self, number: int) -> m.TaskProgress:
        sim, workload = self.world.sim, self._reader.workloads[self.job(number).workload]
        return words5.task_progress_message(
            self.leaves(number)[sim.leaf[number]], float(sim.progress[number]), workload
        )

    def _changed(self, time: float, request: int, _value: float) -> BatsimEvent:
        pstate, at_once = str(int(self.world.sim.switch_pstate[request])), request in self._at_once
        data = m.ResourceStateChangedData(self.switched_hosts(request), pstate, at_once)
        return m.ResourceStateChanged(time, data)

    def _happened(self, time: float, event: int, _value: float) -> BatsimEvent:
        return words5.external_event_message(time, self.events[event])

    def _joules(self, hosts: str, time: float) -> list[float]:
        """What hosts have used by a time in seconds."""
        sim, ids = self.world.sim, np.array(parse_hosts(hosts, len(self.platform.hosts)))
        watts = np.where(sim.first_watts[ids] >= 0, sim.first_watts[ids], sim.host_watts[ids])
        joules: list[float] = (sim.host_joules[ids] + watts * (time - sim.host_joules_at[ids])).tolist()
        return joules

    # --- From a reply to a plan ---------------------------------------------------------------------------------

    def _load(self, reply: Message) -> None:
        stops = [at for at, event in enumerate(reply.events) if isinstance(event, m.ForceStop)]
        if stops:  # what follows it is dropped
            reply = Message(reply.now, reply.events[: stops[0] + 1])
        super()._load(reply)

    def _nb_own(self, reply: Message) -> int:
        return self._calls.nb_strokes(reply.now - self._asked_at, reply.events)

    def _add_own_before(self, reply: Message, times: list[float]) -> None:
        alarms, _ = self._calls.strokes(self._asked_at, reply.now, nexts=False)
        for alarm in alarms:
            self._alarm(alarm)
            times.append(self._asked_at)

    def _add_own_after(self, reply: Message, times: list[float]) -> None:
        alarms, void = self._calls.strokes(self._asked_at, reply.now, nexts=True)
        for number in void:
            self._silence(number)
        for alarm in alarms:
            self._alarm(alarm)
            times.append(times[-1] if times else self._asked_at)

    def _alarm(self, alarm: Alarm) -> None:
        self.plan.time[self._act(p.CALL_AT, value=alarm.number)] = alarm.time

    def _silence(self, number: int) -> None:
        """Let an alarm be none, unless it rings already."""
        sim, end = self.world.sim, int(self.world.sim.nb_activities)
        for at in np.flatnonzero(sim.code[:end] == a.CALL_IS_DUE + 16 * number).tolist():  # as `a.pack` has it
            for column in (sim.left, sim.pace, sim.code):
                column[at : end - 1] = column[at + 1 : end].copy()
            sim.nb_activities -= 1
            sim.nb_calls -= 1

    def _take(self, command: DecisionEvent) -> None:
        match command:
            case m.CallMeLater(data=data) if isinstance(data.periodic, m.Periodic):
                self._calls.repeat(str(data.call_id), data.periodic, command.timestamp)
            case m.CallMeLater(data=data):
                self._alarm(self._calls.once(str(data.call_id), data.timestamp))
            case m.StopCall(data=data):
                self._calls.stop(data.call_id)
            case m.CreateProbe(data=data):
                self._check_probe(data)
                self._calls.repeat(data.probe_id, data.periodic, command.timestamp, data)
            case m.StopProbe(data=data):
                self._calls.stop(data.probe_id, probe=True)
            case m.ForceStop():
                self._alarm(Alarm(_STOP, command.timestamp))
            case _:
                self._take_old(command)

    def _take_old(self, command: DecisionEvent) -> None:
        """A command that Batsim 4 has, too."""
        read = self._reader.read(command)
        if isinstance(read, Start):
            self._check_mapping(read.job, command)
            self._starts.append(read.job)
            if isinstance(command, m.ExecuteJob):
                read = self._placed(read, command.data)
        if isinstance(read, SetPstate) and isinstance(command, m.SetResourceState):
            self._check_switch(read, command.data.at_once is True)
        self._add(read)

    def _placed(self, start: Start[int], data: m.ExecuteJobData) -> Start[int]:
        """A start whose job has its amounts by host, where it has not one host for each executor."""
        leaves, cores = self.leaves(start.job), [host.cores for host in self.platform.hosts]
        try:
            placed = placed_leaves(self.job(start.job), leaves, data, start.hosts, cores)
        except ConfigError as error:
            raise self._refuse_command(f"{data.job_id}: {error}") from None
        if placed != leaves or len(start.hosts) != self.job(start.job).size:
            self.set_leaves(start.job, placed)
        return msgspec.structs.replace(start, places=[])

    def _check_mapping(self, number: int, command: DecisionEvent) -> None:
        """Refuse a custom mapping without executors for a job that computes: delays need none."""
        computes = any(leaf.kind is not LeafKind.DELAY for leaf in self.leaves(number))
        if isinstance(command, m.ExecuteJob) and command.data.mapping == {} and computes:
            raise self._refuse_command(f"{command.data.job_id}: its mapping has no executors; give a host for each")

    def _check_probe(self, probe: m.CreateProbeData) -> None:
        if not self.options.energy:
            raise self._refuse_command(f"probe {probe.probe_id!r} needs the energy of hosts (--energy-host)")
        try:
            parse_hosts(probe.hosts, len(self.platform.hosts))
        except ConfigError as error:
            raise self._refuse_command(f"probe {probe.probe_id!r}: {error}") from None

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
