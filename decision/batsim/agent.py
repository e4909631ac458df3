"""Our decision process without I/O: one of Batsim's messages in, the reply out.

`Agent` follows the cluster (`follower`), asks the policy, and checks its plan against the state before it becomes
Batsim's commands. An impossible decision becomes a `PolicyError` and is never sent. `make_agent` makes the agent
of a policy's name: one of ours, or a pybatsim scheduler.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import astuple

from decision.compiling.bundle import Bundle
from decision.compiling.jit import compile_ahead
from decision.engine.rules import deadlock
from decision.model.demand import read_estimate, read_worth, usable_estimate
from decision.model.errors import ConfigError, DecisionError
from decision.model.platform import Platform
from decision.model.record import PredictionTable
from decision.model.workload import Worth
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
from decision.protocol import messages as m
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import ClusterState, PlatformFacts, nb_hosts, new_state, platform_facts, with_room
from decision.state.plan_arrays import PlanArrays

from .dynamic_jobs import ClosedLoop, Suspensions, check_config
from .follower import (
    FAULTY,
    FOLLOWED,
    Follower,
    announced_platform,
    ask_now,
    hello,
    in_announced_order,
    job_arrives,
    job_is_worth,
    registered_all,
)


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


_WORTH = frozenset(Worth.__struct_fields__)


class Agent(Follower):
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
        super().__init__(settings_of(self._policy))
        self._traits = traits_of(self._policy)
        self._platform, self._seed, self._decide_limit = platform, seed, decide_limit
        self._may_suspend = suspends or options.get(BEYOND) == "suspend"
        self._loop = loop
        self._users: dict[str, int] = {}
        self._misfits = Misfits()

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
        asked = *FOLLOWED, ask_now
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
        commands = self.hear(question)
        if self.asked:
            if self._loop is not None:
                # jobs of a closed loop that are due come before the decision, so that the policy sees them
                submissions, registration = self._loop.send(self.now)
                commands += registration
                for event in submissions:
                    self._submit(event, commands)
            self._carry_out(self._decider.decide(self._state, self._plan, self.now), commands)
            if self._loop is not None:
                # what it rejects is over, which may set off others, so that the next call is known after it
                for command in commands:
                    if isinstance(command, m.RejectJob):
                        self._loop.ended(command.data.job_id, self.now)
                time = self._loop.next_call(self.now)
                if time is not None:
                    commands.append(m.CallMeLater(self.now, self._call(time)))
            if self._loop is None or not self._loop.is_open:
                self._end_registration(commands)
        return self.say(commands)

    def deadlock(self) -> DecisionError:
        """The error of a simulation that cannot go on: what waits, and whether for want of power."""
        state = self._state
        waiting = [self._names[job] for job in state.queue[: state.nb_queued].tolist()]
        return deadlock(self.now, waiting, self._registers, nb_hosts(state) - int(state.supply))

    # --- Batsim's events ----------------------------------------------------------------------------------------

    def _greet(self, event: m.Init, commands: list[m.DecisionEvent]) -> None:
        registers = self._may_suspend or may_suspend(self._policy, ()) or self._loop is not None
        commands.append(m.Hello(self.now, hello(self._traits.name, registers)))

    def _end(self, event: m.SimulationEnds, commands: list[m.DecisionEvent]) -> None:
        self._misfits.tell(nb_hosts(self._state))
        if self._traits.needs_users and not self._users:
            warn_of_no_users()

    def _complete(self, event: m.JobCompleted, commands: list[m.DecisionEvent]) -> None:
        super()._complete(event, commands)
        if self._loop is not None:
            self._loop.ended(event.data.job_id, event.timestamp)

    def _begin(self, event: m.SimulationBegins, commands: list[m.DecisionEvent]) -> None:
        announced = announced_platform(event.data.compute_resources)
        platform = in_announced_order(self._platform, announced) if self._platform else announced
        self._facts, pstates = platform_facts(platform, energy=True)
        self._state = new_state(self._facts, pstates, shares=event.data.allow_compute_sharing)
        reset_policy(self._policy, platform, self._seed)
        self._plan = p.new_plan(self._state)
        self._decider = CheckedPolicy(self._policy, self._facts, self._names, self._decide_limit)
        self._begun = True
        config, settings, suspends = event.data.config, self._supply, may_suspend(self._policy, ())
        # power is limited from the beginning on; how that changes comes with events
        if (cap := host_cap(self._policy, platform)) is not None:
            if len(cap.hosts) > 1 and not config.forward_unknown_events:
                advice = "start Batsim with --forward-unknown-events and the events that decision workload supply makes"
                mistake = f"cap={settings.cap} changes by time; {advice} of it"
                raise ConfigError(f"policy {self._traits.name}: {mistake}")
            transitions.set_supply(self._state, int(cap.hosts[0]), np.zeros(0, np.int32))
        check_config(self._traits.name, suspends, config)
        self._dynamic = config.dynamic_jobs_enabled
        needs = suspends or self._loop is not None or (settings.suspends_beyond and config.forward_unknown_events)
        is_compiled = isinstance(innermost(self._policy), CompiledPolicy)  # a policy in Python may suspend at any time
        self._registers = self._dynamic and (needs or not is_compiled)
        profiles = event.data.profiles if self._registers else {}
        self._suspensions = Suspensions(profiles, settings.restart, settings.every)
        if self._dynamic and not self._registers:  # Batsim waits for it
            commands.append(registered_all(self.now))

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
        job_number = job_arrives.from_python(
            self._state.address, event.timestamp, job.res, job.walltime, number, float(usable_estimate(estimate))
        )
        self._remember(job_id, job_number)
        if self._loop is not None:
            self._loop.came(job_id, event.timestamp)
        if self._traits.needs_value or self._traits.needs_qos or not _WORTH.isdisjoint(job.fields):
            try:
                worth = read_worth(job.fields, job.subtime)
            except ConfigError as error:
                raise ConfigError(f"Batsim's workload: job {job_id}, {error}") from None
            check_worth(self._traits, job_id, worth, "Batsim's workload")
            known = (0.0 if math.isnan(quantity) else quantity for quantity in astuple(worth))
            job_is_worth.from_python(self._state.address, job_number, *known)
        if self._registers:
            self._suspensions.note(job_number, job_id, str(job.fields.get("profile", "")), event.data.profile)
        hosts = nb_hosts(self._state)
        if not 1 <= job.res <= hosts:  # it could never start, and would keep the simulation from ending
            self._misfits.add(job_id, job.res)
            commands.append(m.RejectJob(self.now, m.RejectJobData(job_id)))
            transitions.reject(self._state, job_number)
            transitions.drop_started(self._state)

    def _change_supply(self, event: m.Notify) -> None:
        super()._change_supply(event)
        refuse_booking(self._policy)

    def _grow(self) -> None:
        jobs = 2 * len(self._state.size)
        # a plan has room for an action on each job, so that it grows with the state
        self._state = with_room(self._state, jobs, 0)
        self._plan = p.new_plan(self._state)


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
