"""A policy put through its paces on the embedded engine."""

from collections.abc import Mapping

from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.model.errors import ConfigError
from decision.model.record import RunRecord
from decision.policies import Policy, check_policy, find_policy
from decision.policies.check_policy import Trial
from decision.simulation.python_loop import run_python

from .pybatsim import PREFIX


def try_policy(spec: str, settings: Mapping[str, str]) -> list[str]:
    """One line for each rule that the policy breaks on small made workloads; none if it keeps them all.

    Raises:
        ConfigError: if there is no such policy, it refuses the settings, or it is a pybatsim scheduler.
    """
    if spec.startswith(PREFIX):
        raise ConfigError(f"policy {spec}: the rules are those of our own policies; try it with decision run")
    return check_policy(lambda: find_policy(spec, settings), _simulate)


def _simulate(trial: Trial, policy: Policy, seed: int) -> RunRecord:
    engine = EmbeddedEngine(trial.platform, [trial.workload], trial.events, EngineOptions(energy=trial.energy))
    policy.reset(trial.platform, seed)
    run_python(engine, policy, None)
    return engine.record()
