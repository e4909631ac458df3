"""A run by Batsim's messages: the scheduler that answers, Batsim's options, and the jobs that come by feedback."""

from typing import TYPE_CHECKING

from decision.engine.options import EngineOptions
from decision.model.errors import ConfigError
from decision.model.sessions import find_sessions, of_fixed
from decision.model.workload import Workload
from decision.policies.around.supplied import are_forwarded, check_suspensions, may_suspend, supplied
from decision.policies.registry import find_agent, find_policy
from decision.policies.source import MessageAgent
from decision.simulation.job_checks import check_jobs, check_sleep

from .inputs import LoadedInputs, PolicyChoice, one_speed

if TYPE_CHECKING:
    from decision.batsim.agent import Agent
    from decision.batsim.closed_loop import ClosedLoop


def options_by_messages(case: LoadedInputs, choice: PolicyChoice) -> EngineOptions:
    """What Batsim's command line must say for the policy and the events, which are checked.

    Raises:
        ConfigError: if they do not go together.
    """
    feedback, suspends = case.inputs.feedback, False
    if choice.own is not None or find_agent(choice.policy, choice.settings) is None:
        policy = supplied(find_policy(choice.policy, choice.settings) if choice.own is None else choice.own)
        check_jobs(case.platform, case.workloads, policy)
        check_suspensions(policy, case.workloads, case.events)
        check_sleep(policy, case.platform, case.inputs.energy)
        suspends = may_suspend(policy, case.events)
        if suspends and feedback:
            why = f"policy {choice.policy} may suspend jobs, whose users would not know when they end"
            raise ConfigError(f"{why}; leave feedback out, or choose another policy", field="feedback")
    return EngineOptions(
        energy=case.inputs.energy,
        calls=case.inputs.calls,
        dynamic_jobs=suspends or feedback,
        profile_reuse=feedback,
        forward_unknown_events=are_forwarded(case.events),
    )


def agent_of(
    case: LoadedInputs, choice: PolicyChoice, suspends: bool = False, loop: "ClosedLoop | None" = None
) -> "Agent | MessageAgent":
    """What answers: a policy's agent, or a scheduler that speaks Batsim's messages itself."""
    from decision.batsim.agent import make_agent

    return make_agent(
        choice.policy if choice.own is None else choice.own,
        choice.settings,
        platform=case.platform,
        seed=choice.seed,
        decide_limit=choice.decide_limit,
        suspends=suspends,
        loop=loop,
    )


def open_loop(case: LoadedInputs) -> "tuple[list[Workload], ClosedLoop | None]":
    """The jobs that come at their own times, and those that come when others have ended; None where none do.

    Raises:
        ConfigError: if think times are not known.
    """
    if not case.inputs.feedback:
        return case.workloads, None
    from decision.batsim.closed_loop import ClosedLoop

    speed = one_speed(case.platform)
    found = [(workload, find_sessions(workload, speed)) for workload in case.workloads]
    return [of_fixed(*each) for each in found], ClosedLoop(found)
