"""From a policy's name to what decides."""

from collections.abc import Mapping

from decision.model.platform import Platform

from .agent import Agent
from .pybatsim import PREFIX, PybatsimAgent


def make_agent(
    policy: str, settings: Mapping[str, str], *, platform: Platform | None = None, seed: int = 0
) -> Agent | PybatsimAgent:
    """The agent that decides as `policy` says: one of ours, or a pybatsim scheduler.

    Raises:
        ConfigError: if there is no such policy, or it refuses the settings.
    """
    if policy.startswith(PREFIX):
        return PybatsimAgent(policy, dict(settings))
    return Agent(policy, dict(settings), platform=platform, seed=seed)
