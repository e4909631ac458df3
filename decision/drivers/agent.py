"""Our decision process without I/O: one of Batsim's messages in, the reply out.

The agent keeps the cluster's state as Batsim tells it, asks the policy, checks what it decided against the state, and
says it in Batsim's words. What is impossible becomes a `PolicyError` and never leaves.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import decision.learn  # noqa: F401 - makes *.ckpt the name of a policy
from decision.model.hosts import format_intervals, parse_hosts
from decision.model.platform import Platform
from decision.model.record import FinalState
from decision.policies import plan as p
from decision.policies.check import check_walltime
from decision.policies.registry import find_policy
from decision.protocol import Connection, Message, Phase, Role
from decision.protocol import messages as m
from decision.simulation.carry_out import carry_out
from decision.simulation.decider import make_decider
from decision.state import transitions
from decision.state.cluster import (
    N_ENDED,
    N_INTERVALS,
    N_JOBS,
    N_QUEUED,
    N_RUNNING,
    PSTATE_COMPUTING,
    ClusterState,
    new_state,
    platform_facts,
    with_room,
)

from .told import check_same, told_platform

log = logging.getLogger(__name__)


class Agent:
    """Decides as `policy` says.

    Args:
        policy: a preset's name, ``module:Class`` or ``./file.py:Class``.
        options: the policy's own options, as texts.
        platform: the hosts, where known; Batsim does not say how fast they are, nor how long they take to wake.
        seed: of the policy.

    Raises:
        ConfigError: if there is no such policy or it refuses the options.
    """

    def __init__(
        self, policy: str, options: Mapping[str, str], *, platform: Platform | None = None, seed: int = 0
    ) -> None:
        self._policy = find_policy(policy, dict(options))
        self._platform, self._seed = platform, seed
        self._connection = Connection(Role.DECISION)
        self._names: list[str] = []  # of the jobs, by number
        self._number: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._state: ClusterState
        self.now = 0.0  # seconds

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""
        return self._connection.ended

    @property
    def state(self) -> ClusterState | None:
        """The cluster as Batsim tells it, to be read only; None before the first message."""
        return self._state if hasattr(self, "_state") else None

    def summary(self) -> dict[str, float]:
        """How far the run is: time in seconds, jobs submitted, waiting and running."""
        if not self._names and not hasattr(self, "_facts"):
            return {"now": self.now}
        count = self._state.count
        known = {"submitted": N_JOBS, "waiting": N_QUEUED, "running": N_RUNNING}
        return {"now": self.now, **{name: int(count[index]) for name, index in known.items()}}

    def handle(self, question: bytes) -> bytes:
        """The reply to one of Batsim's messages.

        Raises:
            RemoteProtocolError: if Batsim may not say that.
            PolicyError: if the policy fails or decides something impossible.
            ConfigError: if the platform is not the one that was announced, or the policy cannot deal with a job.
        """
        message = self._connection.receive(question)
        self.now = message.now
        commands: list[m.DecisionEvent] = []
        for event in message.events:
            self._take(event, commands)
        if self._connection.phase is not Phase.ENDING:
            self._decide(commands)
        return self._connection.send(Message(message.now, tuple(commands)))

    # --- What Batsim says ---------------------------------------------------------------------------------------

    def _take(self, event: m.BatsimEvent, commands: list[m.DecisionEvent]) -> None:
        if isinstance(event, m.SimulationBegins):
            self._begin(event)
            return
        take = _TAKERS.get(type(event))
        if take is not None:
            self._state.now[0] = event.timestamp
            take(self, event, commands)

    def _complete(self, event: m.JobCompleted, commands: list[m.DecisionEvent]) -> None:
        final = _FINAL_STATES[event.data.job_state]
        transitions.end(self._state, self._facts, self._number[event.data.job_id], final)

    def _begin(self, event: m.SimulationBegins) -> None:
        told = told_platform(event.data.compute_resources)
        platform = self._platform or told
        check_same(platform, told)
        self._facts, pstates = platform_facts(platform, energy=True)
        self._state = new_state(self._facts, pstates)
        self._policy.reset(platform, self._seed)
        self._plan = p.new_plan(self._state)
        self._decider = make_decider(self._policy, self._facts, self._names)

    def _submit(self, event: m.JobSubmitted, commands: list[m.DecisionEvent]) -> None:
        job, job_id = event.data.job, event.data.job_id
        if len(self._names) == len(self._state.size):
            self._grow()
        user = str(job.fields.get("user", ""))
        number = self._users.setdefault(user, len(self._users)) if user else -1
        check_walltime(self._policy, job_id, job.walltime, "Batsim's workload")
        job_number = int(transitions.submit(self._state, job.res, job.walltime, number))
        self._names.append(job_id)
        self._number[job_id] = job_number
        if job.res > len(self._state.host_state):
            log.warning("%s needs %d hosts, more than there are: rejected", job_id, job.res)
            commands.append(m.RejectJob(self.now, m.RejectJobData(job_id)))
            transitions.reject(self._state, job_number)
            transitions.drop_started(self._state)

    def _grow(self) -> None:
        jobs = 2 * len(self._state.size)
        self._state = with_room(self._state, jobs, 0)
        self._plan = p.new_plan(self._state)

    def _change(self, event: m.ResourceStateChanged, commands: list[m.DecisionEvent]) -> None:
        pstate = int(event.data.state)
        for host in parse_hosts(event.data.resources):
            wakes = bool(self._facts.pstate_kind[host, pstate] == PSTATE_COMPUTING)
            if wakes and self._facts.pstate_kind[host, self._state.pstate[host]] == PSTATE_COMPUTING:
                transitions.set_pstate(self._state, self._facts, host, pstate)
            else:
                transitions.end_switch(self._state, self._facts, host, pstate, wakes)

    def _notice(self, event: m.Notify, commands: list[m.DecisionEvent]) -> None:
        move = _MOVES.get(event.data.type)
        if move is not None:
            for host in parse_hosts(event.data.resources):
                move(self._state, self._facts, host)

    # --- What the policy says -----------------------------------------------------------------------------------

    def _decide(self, commands: list[m.DecisionEvent]) -> None:
        state, plan = self._state, self._plan
        state.now[0] = self.now
        self._decider.decide(state, plan)
        actions, intervals = plan.count.tolist()
        if actions:
            self._say(commands, actions, intervals)
            room = int(state.count[N_INTERVALS]) + intervals
            if room > len(state.interval_first):
                self._state = state = with_room(state, 0, room)
            carry_out(state, self._facts, plan)
        state.count[N_ENDED] = 0

    def _say(self, commands: list[m.DecisionEvent], actions: int, intervals: int) -> None:
        """The plan in Batsim's words. Kills in a row are one request, as in the embedded engine."""
        plan, now, names = self._plan, self.now, self._names
        runs = list(zip(plan.first[:intervals].tolist(), plan.last[:intervals].tolist(), strict=True))
        columns = (plan.kind, plan.job, plan.begin, plan.end)
        for at, (kind, job, begin, end) in enumerate(zip(*(c[:actions].tolist() for c in columns), strict=True)):
            if kind == p.START:
                hosts = format_intervals(runs[begin:end])
                commands.append(m.ExecuteJob(now, m.ExecuteJobData(names[job], hosts)))
            elif kind == p.REJECT:
                commands.append(m.RejectJob(now, m.RejectJobData(names[job])))
            elif kind == p.KILL:
                before = commands.pop().data.job_ids if at and plan.kind[at - 1] == p.KILL else ()  # type: ignore[union-attr]
                commands.append(m.KillJob(now, m.KillJobData((*before, names[job]))))
            elif kind == p.SET_PSTATE:
                hosts = format_intervals(runs[begin:end])
                commands.append(m.SetResourceState(now, m.SetResourceStateData(hosts, str(plan.value[at]))))
            else:
                commands.append(m.CallMeLater(now, m.CallMeLaterData(float(plan.time[at]))))


_MOVES: dict[str, Callable[..., None]] = {
    "event_machine_unavailable": transitions.leave,
    "event_machine_available": transitions.come_back,
}
_TAKERS: dict[type, Callable[[Agent, Any, list[m.DecisionEvent]], None]] = {
    m.JobSubmitted: Agent._submit,
    m.JobCompleted: Agent._complete,
    m.ResourceStateChanged: Agent._change,
    m.Notify: Agent._notice,
}
_FINAL_STATES = {state.name: int(state) for state in FinalState}
