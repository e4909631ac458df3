"""The compiled engine without any messages: its arrays, and the steps of a simulation on them.

Loops that ask a compiled policy use this much (`decision.simulation`); `decision.engine.batsim4` adds Batsim's
messages. Kernels do the work. Here arrays grow, what kernels return becomes errors for people, and a run that is over
becomes a `RunRecord`.
"""

import mmap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from decision.compiling.bundle import I4, I8
from decision.engine.kernels import arrays as a
from decision.engine.kernels import commands as c
from decision.engine.kernels import links
from decision.engine.kernels.network import flows
from decision.engine.kernels.server import ADVANCE, BEGIN_RUN, COUNT_JOBS, REPLY, engine
from decision.model.columns import HostSets, Texts
from decision.model.computer import forget_rows
from decision.model.errors import ConfigError, PolicyError
from decision.model.hosts import format_hosts, format_intervals
from decision.model.platform import Platform
from decision.model.record import (
    NULL_RUNTIME,
    EnergyTable,
    FinalState,
    HostState,
    HostTable,
    JobTable,
    PstateTable,
    RunRecord,
)
from decision.model.workload import Job, MachineEvent, Workload, rest_name
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import (
    ENDED,
    INTERVALS,
    QUEUED,
    REJECTED,
    RUNNING,
    ClusterState,
    PlatformFacts,
    new_state,
    platform_facts,
    with_room,
)
from decision.state.plan_arrays import cannot_be_cut

from . import rules
from .rules import EngineOptions, HostNow, JobPhase, check_inputs, events_in_order
from .truth import LeafTask, build_truth, with_job, with_leaves

# What a long run makes and nobody reads before its end: it waits in files.
#
# Of the memory that ten million jobs need, the trace of the hosts and the allocations of jobs that are over would be
# two fifths.

HOST_ROWS = 1 << 18  # rows of the hosts' trace that stay in memory

_HOST_ROW = np.dtype([("time", np.float64), ("counts", np.int32, len(HostState))])
_INTERVAL = np.dtype([("first", np.int32), ("last", np.int32)])
_MANY = 1 << 16  # jobs whose memory is given back at once


class Spool:
    """Rows of a type in a file without a name, in the folder for temporary files."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._kind = kind
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self.length = 0  # rows

    def put(self, rows: NDArray[Any]) -> None:
        """Add rows.

        Raises:
            ConfigError: if the file cannot be written.
        """
        try:
            self._file = self._file or TemporaryFile()  # noqa: SIM115 - as long as the run
            self._file.write(rows.data)
            self._file.flush()
        except OSError as error:
            raise ConfigError(
                f"a temporary file of a long run cannot be written ({error.strerror}); free space, or let TMPDIR name "
                "another folder"
            ) from None
        self.length += len(rows)

    def rows(self) -> NDArray[Any]:
        """All rows, once all are there."""
        if self._map is None and self._file is not None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.zeros(0, self._kind) if self._map is None else np.frombuffer(self._map, self._kind)

    def take(self, which: I8) -> NDArray[Any]:
        """These rows, once all are there; what was read of the file does not stay in memory."""
        # A map of the file: the system reads what is asked for, and may forget it again.
        rows = self.rows()
        taken = rows[which]
        if self._map is not None:
            forget_rows(rows, 0, len(rows))
        return taken


class HostRows:
    """The trace of the hosts: the rows that no longer fit into `Rows`, and then all."""

    def __init__(self) -> None:
        self._spool = Spool(_HOST_ROW)

    @property
    def is_aside(self) -> bool:
        """Whether some rows are in a file."""
        return self._spool.length > 0

    def put_aside(self, world: a.World) -> None:
        """Take the rows out of `Rows`, which begins again. Raises ConfigError if no file can be written."""
        count, rows = world.sim.nb_host_rows, world.rows
        packed = np.empty(count, _HOST_ROW)
        packed["time"], packed["counts"] = rows.host_time[:count], rows.host_counts[:, :count].T
        self._spool.put(packed)
        world.sim.nb_host_rows = 0

    def table(self, world: a.World) -> HostTable:
        """All rows of a run that is over."""
        count, rows = world.sim.nb_host_rows, world.rows
        if not self._spool.length:
            return HostTable(time=rows.host_time[:count], counts=rows.host_counts[:, :count].T)
        if count:
            self.put_aside(world)
        table = self._spool.rows()
        return HostTable(time=table["time"], counts=table["counts"], in_file=True)


class Allocations:
    """The hosts of jobs that are over, as intervals, where nobody asks for them before the run's end."""

    def __init__(self) -> None:
        self.unasked = False  # whether nobody does
        self._spool = Spool(_INTERVAL)

    @property
    def is_aside(self) -> bool:
        """Whether some intervals are in a file."""
        return self._spool.length > 0

    def put_aside(self, world: a.World) -> None:
        """Take those out of the state of which nothing is to come. Raises ConfigError if no file can be written."""
        over = world.state.job_state >= ENDED
        over[[job for job in _named(world) if job < len(over)]] = False
        self._put(world.state, over)

    def intervals(self, state: ClusterState, jobs: I4) -> tuple[I4, I4, I4]:
        """Of jobs (n,) of a run that is over: first and last hosts of all intervals, job by job; each job's number."""
        if self._spool.length:
            self._put(state, np.ones(len(state.job_state), bool))
        begin, count = state.alloc_first[jobs], state.alloc_count[jobs]
        # Below -1 is the place in the file, as `transitions.put_aside` left it.
        begin = np.where(begin < -1, -2 - begin, begin)
        end = np.cumsum(count)
        which = np.arange(end[-1] if len(end) else 0) + np.repeat(begin - (end - count), count)
        if not self._spool.length:
            return state.interval_first[which], state.interval_last[which], count
        taken = self._spool.take(which)
        return taken["first"], taken["last"], count

    def _put(self, state: ClusterState, over: NDArray[np.bool_]) -> None:
        held = state.nb_intervals
        if held:
            first, last = np.empty((2, held), np.int32)
            taken = transitions.put_aside(state, over, first, last, self._spool.length)
            packed = np.empty(taken, _INTERVAL)
            packed["first"], packed["last"] = first[:taken], last[:taken]
            self._spool.put(packed)


def _named(world: a.World) -> Iterable[int]:
    """Jobs of which the policy or the engine may still ask, and some more: whatever a code could be about."""
    state, sim = world.state, world.sim
    yield from state.ended[: state.nb_ended].tolist()
    waiting = np.arange(world.sim.mail_head, world.sim.mail_tail)
    codes = (
        sim.code[: world.sim.nb_activities],
        sim.instant[: world.sim.nb_instant],
        sim.actor[: world.sim.nb_actors],
        sim.mail[waiting & (len(sim.mail) - 1)],
    )
    for code in np.concatenate(codes).tolist():
        yield from (code >> 4, code >> 8)  # a message on its way is a code of which the rest is a code


# What is as long as the jobs are many and no record needs: of `Sim`, and of `ClusterState`
_NOT_RECORDED = ("leaf", "leaf_start", "walltime_left", "rate", "exit_code", "progress")
_RECORDED = ("start_time", "end_time", "energy", "rest", "over", "kill_state")  # of `Sim`: copied into the record
_OF_THE_POLICY = ("submit_time", "walltime", "estimate", "size", "user", "start_time", "end_time")

_PHASES = {QUEUED: JobPhase.SUBMITTED, RUNNING: JobPhase.RUNNING}


class CompiledEngine:
    """Simulates one run, step by step.

    Args:
        platform: the hosts.
        workloads: jobs and profiles; their submitters begin in this order.
        events: what happens to the platform from outside.
        options: Batsim's options.

    Raises:
        ConfigError: if the engine cannot simulate it; one line that says what to do.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        events: Sequence[MachineEvent] = (),
        options: EngineOptions = EngineOptions(),  # noqa: B008 - immutable
    ) -> None:
        check_inputs(platform, workloads, events, options)
        lists = self._event_lists(events)
        self.platform, self.options, self.events = platform, options, [event for listed in lists for event in listed]
        rules.check_events(self.events, len(platform.hosts))
        truth, self.names = build_truth(workloads, lists, rules.network_refusal(platform))
        self.world = _new_world(platform, options, truth, len(self.names))
        self._network = links.NO_NETWORK
        if options.may_register or options.shares_hosts or truth.leaf_bytes.any():
            self._lay_network()
        self.host_rows, self.allocations = HostRows(), Allocations()
        self._over = False
        self._oldest = self._nb_released = 0
        self._ask(BEGIN_RUN)

    def _lay_network(self) -> None:
        """Let jobs communicate and share hosts."""
        network = links.new_network(self.platform)
        self._network = links.with_flows(network, len(self.state.size)) if self.options.shares_hosts else network
        self.world.sim.network, self.world.sim.flows = self._network.address, flows.address

    def _event_lists(self, events: Sequence[MachineEvent]) -> list[list[MachineEvent]]:
        """The events by who tells of them: one does of all."""
        return [events_in_order(events)] if events else []

    @property
    def state(self) -> ClusterState:
        """What a scheduler may know, to be read only; another object after arrays have grown."""
        return self.world.state

    @property
    def facts(self) -> PlatformFacts:
        """What is known of the hosts and never changes."""
        return self.world.facts

    @property
    def plan(self) -> p.PlanArrays:
        """Where a decision is written; another object after arrays have grown."""
        return self.world.plan

    @property
    def has_network(self) -> bool:
        """Whether jobs may communicate, so that the engine's state is not in `world` alone."""
        return self._network is not links.NO_NETWORK

    def _ask(self, operation: int, now: float = 0.0) -> int:
        """What `engine` does, and returns."""
        return int(engine.from_python(*a.addresses(self.world), operation, now))

    # --- Steps --------------------------------------------------------------------------------------------------

    def advance(self) -> int:
        """Go on until the next question (ASK) or the end (DONE).

        Raises:
            PolicyError: if a command of the last reply is impossible.
            DeadlockError: if nothing can happen any more.
        """
        return self.resume(self._ask(ADVANCE))

    def resume(self, code: int) -> int:
        """Deal with what `advance` returned, until it is ASK or DONE."""
        # Only GROW goes on, with room; all else ends the run.
        while code not in (a.ASK, a.DONE):
            if code == a.DEADLOCK:
                waiting = [self.job(int(j)).id for j in self.state.queue[: self.state.nb_queued]]
                dark = len(self.state.host_state) - int(self.state.supply)
                raise rules.deadlock(self.now, waiting, bool(self.world.sim.registration_open), dark)
            if code == a.BAD_COMMAND:
                raise self.refuse(self._why_not(self.world.sim.refused_command))
            self.grow()
            code = self._ask(ADVANCE)
        self._over = code == a.DONE
        if self._over and self.world.sim.changed_away:
            rules.warn_of_change_away(int(self.world.sim.changed_away) - 1, float(self.world.sim.changed_away_at))
        return code

    def reply(self, now: float) -> None:
        """Carry out the plan, as the reply of a decision process whose time is `now` seconds."""
        while not self._ask(REPLY, now):
            self.grow()

    def release(self, recorded: bool = False) -> None:
        """Once all is over: give back the memory of what the record does not need, or of what it has copied."""
        seen = () if self.world.sim.nb_rests else (*_OF_THE_POLICY, "queue")
        of_sim, of_state = (_RECORDED, ()) if recorded else (_NOT_RECORDED, seen)
        for bundle, names in ((self.world.sim, of_sim), (self.world.state, of_state)):
            for name in names:
                delattr(bundle, name)

    def release_ended(self, recalled: bool) -> None:
        """Give back the memory of what nobody asks any more about jobs that ended, where the policy is in this process.

        A job of ten million takes 190 bytes while it waits and runs, and half of that in the record.

        Args:
            recalled: whether the policy may ask about jobs that ended before its last decision.
        """
        state, sim = self.world.state, self.world.sim
        present = np.concatenate([state.queue[: state.nb_queued], state.running[: state.nb_running]])
        # A job that ended since the last call may still be told to the policy.
        until, self._oldest = self._oldest, int(present.min(initial=state.nb_jobs))
        if until - self._nb_released < _MANY or sim.nb_rests or sim.nb_killers:
            return
        for bundle, names in ((sim, _NOT_RECORDED), (state, () if recalled else _OF_THE_POLICY)):
            for name in names:
                forget_rows(getattr(bundle, name), self._nb_released, until)
        self._nb_released = until

    # --- Room in the arrays -------------------------------------------------------------------------------------

    def grow(self) -> None:
        """Make room for the plan's commands and all else that can happen before a kernel asks for room again."""
        state, sim, rows, plan = self.world.state, self.world.sim, self.world.rows, self.world.plan
        planned = plan.nb_actions + plan.nb_intervals
        under_way = int(sim.nb_activities + sim.mail_tail - sim.mail_head) + planned
        at_once = len(state.size) + len(self.world.truth.event_time)
        # At least twice what `server._has_room` asks for, which has the same terms: so a call is followed by many
        # instants before the next.
        room = 2 * (2 * under_way + 4 * len(self.platform.hosts) + 128)
        intervals = state.nb_intervals + room
        # Rows that a run of millions of jobs makes go to a file rather than into longer arrays.
        if HOST_ROWS <= len(rows.host_time) < sim.nb_host_rows + 2 * room:
            self.host_rows.put_aside(self.world)
        if self.allocations.unasked and INTERVALS <= len(state.interval_first) < intervals:
            self.allocations.put_aside(self.world)
            intervals = 2 * state.nb_intervals + room  # half of them, or they are put aside all the time
        if sim.rates_changed and self._network.nb_flows:
            self._network = links.grow_network(self._network)
        running = int(state.nb_ended + state.nb_running) + planned
        if sim.nb_suspending and (jobs := self._ask(COUNT_JOBS)) > len(state.size):
            state = with_room(state, jobs, 0)
            self.world = self.world._replace(state=state, plan=p.grown_plan(plan, state))
        if self.options.shares_hosts:  # any number of jobs may compute
            self._network = links.with_flows(self._network, len(state.size))
        sim.network = self._network.address
        self.world = self.world._replace(
            sim=a.grow_sim(sim, len(state.size), room, at_once),
            rows=a.grow_rows(rows, sim, 2 * room),
            state=with_room(state, 0, int(intervals), running),
        )

    def make_room(self, commands: int, intervals: int) -> None:
        """Make room for a reply of so many commands, on so many intervals of hosts, and for the jobs it registers."""
        state, sim, plan = self.world.state, self.world.sim, self.world.plan
        jobs = state.nb_jobs + commands + len(self.world.truth.size)
        if self.options.may_register and jobs > len(state.size):
            state = with_room(state, jobs, 0)
            sim, plan = a.grow_sim(sim, len(state.size), 0), p.new_plan(state)
            if self.options.shares_hosts:
                self._network = links.with_flows(self._network, len(state.size))
                sim.network = self._network.address
        short = commands > len(plan.kind) or intervals > len(plan.first)
        if short or len(sim.command_time) < len(plan.kind):
            plan = p.new_plan(state, commands, intervals)
            sim = sim._replace(command_time=np.zeros(len(plan.kind)))
        self.world = self.world._replace(state=state, sim=sim, plan=plan)

    # --- Jobs and hosts -----------------------------------------------------------------------------------------

    def job(self, number: int) -> Job:
        """The job of a number of the state."""
        job, nth = self.names.job(int(self.world.sim.truth_of[number])), int(self.state.nth_rest[number])
        if nth == 0:
            return job
        return replace(  # what was left when it was suspended for the nth time
            job,
            id=rest_name(job.id, nth),
            profile=rest_name(job.name, nth),
            submit_time=float(self.state.submit_time[number]),
            walltime=float(self.state.walltime[number]),
        )

    def leaves(self, number: int) -> tuple[LeafTask, ...]:
        """The leaf tasks of the job of a number of the state."""
        return self.names.leaves(int(self.world.sim.truth_of[number]))

    def add_job(self, job: Job, leaves: tuple[LeafTask, ...], moldable: bool) -> int:
        """Take a dynamic job in; returns its index in the truth."""
        self.world = self.world._replace(truth=with_job(self.world.truth, self.names, job, leaves, moldable))
        return len(self.names) - 1

    def set_leaves(self, number: int, leaves: tuple[LeafTask, ...]) -> None:
        """Let job `number` do `leaves`, on one host each of its allocation, instead of its profile."""
        if not self.has_network and any(leaf.executors for leaf in leaves):
            self._lay_network()
        at = int(self.world.sim.truth_of[number])
        self.names.set_leaves(at, leaves)
        self.world = self.world._replace(truth=with_leaves(self.world.truth, at, leaves, moldable=True))

    def allocation(self, number: int) -> str:
        """The hosts of a job as Batsim writes them."""
        state = self.state
        first = int(state.alloc_first[number])
        span = slice(first, first + int(state.alloc_count[number]))
        return format_intervals(zip(state.interval_first[span], state.interval_last[span], strict=True))

    def switched_hosts(self, request: int) -> str:
        """The hosts of a switch request."""
        sim = self.world.sim
        span = slice(int(sim.switch_begin[request]), int(sim.switch_end[request]))
        return format_intervals(zip(sim.switch_first[span], sim.switch_last[span], strict=True))

    # --- Errors -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Simulated time, in seconds, not rounded."""
        return float(self.world.sim.now)

    def refuse(self, reason: str) -> PolicyError:
        """The error of an impossible command."""
        return PolicyError(f"t={self.now:.12g} s: {reason}")

    def _why_not(self, at: int) -> str:
        """Why command `at` of the plan is impossible now."""
        plan = self.plan
        kind, job = int(plan.kind[at]), int(plan.job[at])
        if kind == p.CALL_AT:
            return rules.call_refusal(float(plan.time[at]))
        if kind == p.SET_PSTATE:
            pstate = int(plan.value[at])
            reason = rules.switch_refusal([self._host(host) for host in self._hosts_of(at)], pstate)
            return reason or f"pstate {pstate}: no hosts given, or one of them twice"
        if kind == p.START:
            facts, hosts = self.job(job), self._hosts_of(at)
            span = slice(int(plan.begin[at]), int(plan.end[at]))
            alloc = format_intervals(zip(plan.first[span], plan.last[span], strict=True))
            truth = self.world.truth
            moldable = bool(truth.moldable[truth.profile[self.world.sim.truth_of[job]]])
            return (
                rules.phase_refusal(facts.id, "start", self._phase(job))
                or rules.size_refusal(facts.id, facts.size, moldable, len(hosts))
                or rules.start_refusal(facts.id, alloc, [self._host(host) for host in hosts], self.options)
                or f"{facts.id} cannot start on hosts {alloc}: a host is named twice"
            )
        if kind == p.REJECT:
            return rules.phase_refusal(self.job(job).id, "be rejected", self._phase(job))
        if kind == p.KILL and (uncut := c.first_uncuttable(self.world, at)) >= 0:
            return cannot_be_cut(self.job(uncut).id, self.job(uncut).profile)
        if kind == p.KILL:
            return rules.never_executed(self.job(c.first_unkillable(self.world, at)).id)
        wanted = "RUNNING" if kind == c.START_ELSEWHERE else FinalState(int(plan.value[at])).name
        return self.why_not_become(job, wanted)

    def why_not_become(self, job: int, wanted: str) -> str:
        """Why CHANGE_JOB_STATE to `wanted` is impossible for a job."""
        return rules.become_refusal(self.job(job).id, wanted, self._phase(job), self.allocation(job))

    def _hosts_of(self, action: int) -> list[int]:
        """The hosts of an action of the plan."""
        plan = self.plan
        intervals = range(plan.begin[action], plan.end[action])
        return [host for i in intervals for host in range(plan.first[i], plan.last[i] + 1)]

    def _host(self, host: int) -> HostNow:
        state, job = self.state, int(self.state.host_job[host])
        doing = (self.job(job).id,) if job >= 0 else ()
        return HostNow(self.platform.hosts[host], HostState(state.host_state[host]), doing, int(state.pstate[host]))

    def _phase(self, job: int) -> JobPhase:
        return _PHASES.get(int(self.state.job_state[job]), JobPhase.ENDED)


def _new_world(platform: Platform, options: EngineOptions, truth: a.Truth, nb_jobs: int) -> a.World:
    """The arrays of a simulation that has not begun."""
    hosts = len(platform.hosts)
    facts, pstates = platform_facts(platform, options.energy or options.rules.switches_without_energy)
    state = new_state(facts, pstates, max(nb_jobs, 64), options.shares_hosts)
    sim = a.new_sim(truth, hosts, len(platform.storage), len(state.size), platform.routes)
    sim.root = engine.address
    sim.energy_on = options.energy
    sim.switches_on = options.energy or options.rules.switches_without_energy
    sim.changes_once = options.rules.tells_switches_apart
    sim.calls_in_ms = options.rules.calls_in_ms or options.calls == "ms"
    sim.trace_on = options.trace
    sim.stays_computing = not options.rules.frees_hosts
    sim.acknowledges = options.acknowledge_dynamic_jobs
    sim.registration_open = options.dynamic_jobs
    if options.energy:
        for host in (*platform.hosts, *platform.storage):
            sim.first_watts[host.id] = host.pstates[0].idle_watts if host.initial_pstate else -1.0
        for host in platform.storage:
            power = host.pstates[host.initial_pstate]
            sim.host_watts[host.id] = power.idle_watts
            sim.watts_min += power.epsilon
    nb_rows = 2 * nb_jobs + 16 * hosts + 1024
    rows = a.new_rows(min(nb_rows, HOST_ROWS + 16 * hosts), nb_rows if sim.switches_on else 0)
    return a.World(state, facts, truth, sim, rows, p.new_plan(state))


# --- The record of a run that is over ------------------------------------------------------------------------------


def run_record(engine: CompiledEngine, metadata: Mapping[int, str]) -> RunRecord:
    """Everything that Batsim would write about a run that is over; `metadata` is by job."""
    rows, sim, energy, pstates = engine.world.rows, engine.world.sim, None, None
    if engine.options.energy:
        n = sim.nb_energy_rows
        # A sum and what did not fit into it: as wide as Batsim's long double.
        energy = EnergyTable(
            time=rows.energy_time[:n].copy(),
            energy=rows.energy_joules[:n].astype(np.longdouble) + rows.energy_rest[:n],
            event=[chr(kind) for kind in rows.energy_kind[:n]],
            wattmin=rows.energy_wattmin[:n].copy(),
        )
    if sim.switches_on:
        n, hosts = sim.nb_pstate_rows, (*engine.platform.hosts, *engine.platform.storage)
        at_start = sorted({host.initial_pstate for host in hosts})
        first = [format_hosts(host.id for host in hosts if host.initial_pstate == pstate) for pstate in at_start]
        pstates = PstateTable(
            time=np.concatenate([np.zeros(len(first)), rows.pstate_time[:n]]),
            hosts=first + [engine.switched_hosts(int(request)) for request in rows.pstate_switch[:n]],
            pstate=np.concatenate([at_start, rows.pstate_value[:n]]).astype(np.int64),
        )
    # Host-seconds in each HostState; hosts are idle where they are nothing else.
    seconds = sim.time_in_state.copy()
    seconds[HostState.IDLE] = 0.0
    seconds[HostState.IDLE] = sim.host_since.sum() - seconds.sum()
    return RunRecord(
        nb_hosts=len(engine.platform.hosts) + len(engine.platform.storage),
        jobs=_job_table(engine, metadata),
        host_states=engine.host_rows.table(engine.world),
        energy=energy,
        pstates=pstates,
        time_in_state=seconds,
        joules=float(sim.last_joules - sim.first_joules),
        nb_switches=sim.nb_switched_hosts,
        nb_grouped_switches=sim.nb_switches,
    )


def _job_table(engine: CompiledEngine, metadata: Mapping[int, str]) -> JobTable:
    state, sim, truth = engine.state, engine.world.sim, engine.world.truth
    ended = sim.finished[: sim.nb_finished]
    truths = sim.truth_of[ended]
    rejected = state.job_state[ended] == REJECTED
    runtime = sim.end_time[ended] - sim.start_time[ended]
    # Batsim writes no runtime of 0, and of a rejected job neither start nor runtime.
    runtime[runtime == 0.0] = NULL_RUNTIME
    runtime[rejected] = np.nan
    start_time = sim.start_time[ended]
    start_time[rejected] = np.nan
    rests, submit_time, walltime = state.nth_rest[ended] > 0, truth.submit_time[truths], truth.walltime[truths]
    if rests.any():
        submit_time = np.where(rests, state.submit_time[ended], submit_time)
        walltime = np.where(rests, state.walltime[ended], walltime)
    no_energy = np.broadcast_to(-1.0, len(ended))
    return JobTable(
        id=Texts(partial(_texts, engine, "id"), ended),
        profile=Texts(partial(_texts, engine, "profile"), ended),
        submit_time=submit_time,
        size=truth.size[truths],
        walltime=walltime,
        final_state=state.job_state[ended] - np.int8(ENDED),
        start_time=start_time,
        runtime=runtime,
        allocation=HostSets(partial(engine.allocations.intervals, state), ended),
        energy=np.where(rejected, -1.0, sim.energy[ended]) if engine.options.energy else no_energy,
        metadata=Texts(lambda jobs: [metadata.get(job, "") for job in jobs.tolist()], ended),
    )


def _texts(engine: CompiledEngine, field: str, jobs: I4) -> list[str]:
    """The ``id`` or ``profile`` of jobs (n,), those of rests with their number."""
    texts = engine.names.texts(field, engine.world.sim.truth_of[jobs])
    for row in np.flatnonzero(engine.state.nth_rest[jobs]).tolist():
        texts[row] = getattr(engine.job(int(jobs[row])), field)
    return texts
