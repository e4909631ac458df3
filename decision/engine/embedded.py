"""The compiled engine: Batsim's side of the conversation, on arrays.

`EmbeddedEngine` takes questions and answers like `decision.engine.reference.ReferenceEngine`, and must not differ from
it. Its parts are also run without any messages, in one compiled loop with a compiled policy (`decision.simulation`).
"""

from collections.abc import Sequence

import numpy as np

from decision.model.errors import ConfigError, DeadlockError, LocalProtocolError, PolicyError
from decision.model.hosts import format_intervals
from decision.model.platform import Platform
from decision.model.record import HostState, RunRecord
from decision.model.workload import Job, MachineEvent, Workload
from decision.policies.plan import PlanArrays, new_plan
from decision.protocol import Message
from decision.state.cluster import (
    N_ENDED,
    N_INTERVALS,
    N_JOBS,
    N_QUEUED,
    N_RUNNING,
    new_state,
    platform_facts,
    with_room,
)

from . import arrays as a
from .checks import check_platform
from .options import EngineOptions
from .profiles import Leaf
from .questions import question
from .refusals import why_not
from .replies import forget_ended, load
from .result import run_record
from .server import advance, begin, load_reply
from .truth import build_truth, check_events, events_in_order, with_job, with_leaves

_NAMED = 5  # jobs that an error names


class EmbeddedEngine:
    """Simulates one run.

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
        check_platform(platform, options)
        check_events(events, len(platform.hosts), options.forward_unknown_events)
        self.platform, self.options = platform, options
        self.workloads = {workload.name: workload for workload in workloads}
        if len(self.workloads) < len(workloads):
            raise ConfigError("two workloads have the same name; give each its own")
        self.events = events_in_order(events)
        self.truth, self.names = build_truth(workloads, [self.events] if events else [])
        self._make_arrays(len(self.names.jobs))
        self.number: dict[str, int] = {}  # of the jobs that the decision process knows
        self.metadata: dict[int, str] = {}
        self.forgotten: set[int] = set()  # jobs that had ended at the last question; no command can name them
        self.forgotten_profiles: set[tuple[str, str]] = set()  # (workload, profile)
        self.registering = options.dynamic_jobs  # as the commands that were read so far leave it
        self.reads_at = 0.0  # seconds: time of the command that is read
        self._waits = False  # for an answer
        self._begun = False
        self._over = False

    def _make_arrays(self, nb_jobs: int) -> None:
        hosts = len(self.platform.hosts)
        self.facts, pstates = platform_facts(self.platform, self.options.energy)
        self.state = new_state(self.facts, pstates, max(nb_jobs, 64))
        self.sim = a.new_sim(self.truth, hosts, len(self.platform.storage), len(self.state.size))
        self.rows = a.new_rows(2 * nb_jobs + 16 * hosts + 1024, self.options.energy)
        self.plan: PlanArrays = new_plan(self.state)
        flag = self.sim.flag
        flag[a.ENERGY_ON] = self.options.energy
        flag[a.TRACE_ON] = self.options.trace
        flag[a.ACKNOWLEDGE] = self.options.acknowledge_dynamic_jobs
        flag[a.REGISTRATION] = self.options.dynamic_jobs
        flag[a.BAD_EVENT] = -1
        self.sim.real[[a.FIRST_JOULES, a.LAST_JOULES]] = -1.0  # as Batsim has it before there are any
        if self.options.energy:
            for host in self.platform.storage:
                power = host.pstates[host.initial_pstate]
                self.sim.real[a.STORAGE_WATTS] += power.idle
                self.sim.real[a.WATTS_MIN] += power.epsilon
        begin(self.state, self.facts, self.truth, self.sim)

    # --- The conversation -----------------------------------------------------------------------------------

    def ask(self) -> Message | None:
        """Run until the decision process must be asked.

        Returns:
            The question, or None once the decision process has heard of the simulation's end.

        Raises:
            PolicyError: if a command of the last reply is impossible.
            DeadlockError: if nothing can happen any more.
            LocalProtocolError: if the last question has no answer yet.
        """
        if self._waits:
            raise LocalProtocolError("the engine was asked again before its last question was answered")
        if self._begun and self.advance() == a.DONE:
            return None
        self._begun = self._waits = True
        asked = question(self)
        forget_ended(self)
        return asked

    def answer(self, message: Message) -> None:
        """Take the decision process's reply; `ask` carries it out.

        Raises:
            PolicyError: if a command names what does not exist or needs what no engine can do.
            LocalProtocolError: if there was no question.
        """
        if not self._waits:
            raise LocalProtocolError("the engine was answered without having asked")
        if message.events and self.sim.flag[a.ENDS_SENT]:
            raise self.refuse("the reply to SIMULATION_ENDS has commands; it must have none")
        load(self, message)
        self.reply(message.now)
        self._waits = False

    def record(self) -> RunRecord:
        """Everything that Batsim would write about the run, once it is over."""
        if not self._over:
            raise LocalProtocolError("the run is not over: ask and answer until there is no further question")
        return run_record(self)

    # --- Steps, also for loops without messages ----------------------------------------------------------------

    def advance(self) -> int:
        """Go on until the next question (ASK) or the end (DONE).

        Raises:
            PolicyError, DeadlockError: as `ask`.
        """
        return self.resume(advance(self.state, self.facts, self.truth, self.sim, self.rows, self.plan))

    def resume(self, code: int) -> int:
        """Deal with what `advance` returned, until it is ASK or DONE."""
        while code not in (a.ASK, a.DONE):
            if code == a.DEADLOCK:
                raise self.deadlock()
            if code == a.REFUSED:
                raise why_not(self, int(self.sim.flag[a.BAD_COMMAND]))
            if code == a.MISPLACED:
                raise self.misplaced(self.events[self.sim.flag[a.BAD_EVENT]])
            self.grow()
            code = advance(self.state, self.facts, self.truth, self.sim, self.rows, self.plan)
        self._over = code == a.DONE
        return code

    def reply(self, now: float) -> None:
        """Carry out the plan, as the reply of a decision process whose time is `now` seconds."""
        while not load_reply(self.state, self.truth, self.sim, self.rows, self.plan, now):
            self.grow()

    def grow(self) -> None:
        """Make room in all arrays for the plan's commands and whatever else can happen before the next look."""
        flag, count = self.sim.flag, self.state.count
        under_way = int(flag[a.ACTIVITIES] + flag[a.MAIL_TAIL] - flag[a.MAIL_HEAD] + self.plan.count.sum())
        at_once = len(self.state.size) + len(self.truth.event_time)
        room = 2 * (2 * under_way + 4 * len(self.platform.hosts) + at_once + 128)
        self.sim = a.grow_sim(self.sim, len(self.state.size), room)
        self.rows = a.grow_rows(self.rows, flag, 2 * room)
        running = int(count[N_ENDED] + count[N_RUNNING] + self.plan.count.sum())
        self.state = with_room(self.state, 0, int(count[N_INTERVALS]) + room, running)

    def make_room_for(self, reply: Message) -> None:
        """Make room in the plan and for new jobs, before a reply is read."""
        commands = sum(1 + len(getattr(event.data, "job_ids", ())) for event in reply.events)
        jobs = int(self.state.count[N_JOBS]) + commands + len(self.truth.size)
        if self.options.dynamic_jobs and jobs > len(self.state.size):
            self.state = with_room(self.state, jobs, 0)
            self.sim = a.grow_sim(self.sim, len(self.state.size), 0)
            self.plan = new_plan(self.state)
        texts = (getattr(e.data, "alloc", "") or getattr(e.data, "resources", "") for e in reply.events)
        intervals = sum(len(text) // 2 + 1 for text in texts)
        short = commands > len(self.plan.kind) or intervals > len(self.plan.first)
        if short or len(self.sim.command_time) < len(self.plan.kind):
            self.plan = new_plan(self.state, commands, intervals)
            self.sim = self.sim._replace(command_time=np.zeros(len(self.plan.kind)))

    def set_command_times(self, times: list[float]) -> None:
        """When the reply sends each command of the plan, in seconds."""
        self.sim.command_time[: len(times)] = times
        self.sim.flag[a.TIMED_COMMANDS] = 1

    # --- Jobs ---------------------------------------------------------------------------------------------------

    def job(self, number: int) -> Job:
        """What job `number` is."""
        return self.names.jobs[self.sim.truth_of[number]]

    def register(self, job: Job) -> int:
        """Take a dynamic job in; returns its index in the truth."""
        self.truth = with_job(self.truth, self.names, job, self.workloads[job.workload])
        return len(self.names.jobs) - 1

    def set_leaves(self, number: int, leaves: tuple[Leaf, ...]) -> None:
        """Let job `number` do `leaves`, on one host each of its allocation, instead of its profile."""
        at = int(self.sim.truth_of[number])
        self.names.leaves[at] = leaves
        self.truth = with_leaves(self.truth, at, leaves)
        self.truth.moldable[at] = 1

    def allocation(self, number: int) -> str:
        """The hosts of a job as Batsim writes them."""
        first = int(self.state.alloc_first[number])
        span = slice(first, first + int(self.state.alloc_count[number]))
        return format_intervals(zip(self.state.interval_first[span], self.state.interval_last[span], strict=True))

    def switched_hosts(self, request: int) -> str:
        """The hosts of a switch request."""
        span = slice(int(self.sim.group_begin[request]), int(self.sim.group_end[request]))
        return format_intervals(zip(self.sim.group_first[span], self.sim.group_last[span], strict=True))

    def hosts_of(self, action: int) -> str:
        """The hosts of an action of the plan."""
        span = slice(int(self.plan.begin[action]), int(self.plan.end[action]))
        return format_intervals(zip(self.plan.first[span], self.plan.last[span], strict=True))

    # --- Errors -------------------------------------------------------------------------------------------------

    def refuse(self, reason: str) -> PolicyError:
        """The error of an impossible command."""
        time = max(float(self.sim.real[a.CLOCK]), self.reads_at)
        return PolicyError(f"t={time:.12g} s: {reason}")

    def misplaced(self, event: MachineEvent) -> ConfigError:
        """The error of an external event that brings back a host which is here."""
        host = next(host for host in sorted(event.hosts) if self.state.host_state[host] != HostState.UNAVAILABLE)
        doing = HostState(self.state.host_state[host]).name.lower()
        where = f"external event {event.type} at t={event.timestamp:.12g} s"
        return ConfigError(f"{where}: host {host} is not unavailable but {doing}; correct the events")

    def deadlock(self) -> DeadlockError:
        """Nothing can happen any more: who waits, and what to do."""
        waiting = [self.job(int(j)).id for j in self.state.queue[: self.state.count[N_QUEUED]]]
        if waiting:
            more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
            advice = f"{', '.join(waiting[:_NAMED])}{more} wait; start or reject them, or ask to be called later"
        elif self.sim.flag[a.REGISTRATION]:
            advice = "end the registration of jobs with NOTIFY registration_finished"
        else:
            advice = "jobs that were set to RUNNING must be set to a final state"
        return DeadlockError(f"t={self.sim.real[a.CLOCK]:.12g} s: nothing can happen any more: {advice}")
