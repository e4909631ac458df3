"""A whole run: platform, workloads and a policy in, a `RunRecord` out."""

import time
from collections.abc import Mapping, Sequence

from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.workload import MachineEvent, Workload
from decision.policies.base import Policy
from decision.policies.check import check_walltime
from decision.policies.composed import ComposedPolicy
from decision.policies.registry import find_policy

from .compiled import run_compiled
from .progress import Progress
from .python_loop import run_python


def simulate(
    platform: Platform,
    workloads: Sequence[Workload],
    policy: str | Policy,
    options: Mapping[str, str] | None = None,
    *,
    events: Sequence[MachineEvent] = (),
    engine_options: EngineOptions = EngineOptions(),  # noqa: B008 - immutable
    seed: int = 0,
    progress: Progress | None = None,
) -> RunRecord:
    """Run `policy` over the workloads on the embedded engine.

    Args:
        platform: the hosts.
        workloads: what is submitted.
        policy: a preset's name, ``module:Class`` or ``./file.py:Class``; or the policy itself.
        options: the named policy's own options, as texts.
        events: what happens to the platform from outside.
        engine_options: Batsim's options.
        seed: of the policy.
        progress: is told how far the run is, every now and then.

    Raises:
        ConfigError: if the inputs do not fit together.
        PolicyError: if the policy decides something impossible, or waits for ever.
    """
    began = time.perf_counter()
    engine = EmbeddedEngine(platform, workloads, events, engine_options)
    chosen = find_policy(policy, options) if isinstance(policy, str) else policy
    _check_jobs(platform, workloads, chosen)
    chosen.reset(platform, seed)
    if isinstance(chosen, ComposedPolicy):
        run_compiled(engine, chosen, progress)
        deciding = float("nan")
    else:
        deciding = run_python(engine, chosen, progress)
    record = engine.record()
    record.scheduling_time = deciding
    record.simulation_time = time.perf_counter() - began
    return record


def _check_jobs(platform: Platform, workloads: Sequence[Workload], policy: Policy) -> None:
    """Refuse jobs that could never start, or that the policy cannot deal with."""
    for workload in workloads:
        where = workload.path or f"workload {workload.name}"
        for job in workload.jobs:
            if job.size > len(platform.hosts):
                has = f"{platform.path or 'the platform'} has {len(platform.hosts)}"
                raise ConfigError(f"{where}: job {job.id}: 'res' is {job.size} hosts, but {has}")
            check_walltime(policy, job.id, job.walltime, where)
