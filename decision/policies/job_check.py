"""Whether jobs say what a policy must know of them."""

import math
from collections.abc import Sequence

import numpy as np

from decision.model.demand import QOS, VALUE, estimates, worths
from decision.model.errors import ConfigError
from decision.model.workload import Workload, Worth

from .traits import Traits


def check_walltime(traits: Traits, job_id: str, walltime: float, where: str) -> None:
    """Refuse a job without walltime where the policy needs one; `where` it came from begins the message.

    Raises:
        ConfigError: naming place, job, field and policy.
    """
    if walltime == math.inf and traits.needs_walltime:
        advice = "give it one, or choose a policy that does without, such as fcfs or first-fit"
        raise ConfigError(f"{where}: job {job_id} has no 'walltime', and policy {traits.name} needs one; {advice}")


def check_worths(traits: Traits, workloads: Sequence[Workload]) -> None:
    """Refuse workloads with a job that does not say what it is worth, where the policy needs it.

    Raises:
        ConfigError: as `check_worth`, of the first such job.
    """
    for is_needed, column in ((traits.needs_value, VALUE), (traits.needs_qos, QOS)):
        if not is_needed:
            continue
        for workload in workloads:
            rows = worths(workload)
            silent = np.zeros(min(len(workload.jobs), 1)) if rows is None else np.flatnonzero(np.isnan(rows[:, column]))
            for row in silent[:1].astype(int).tolist():
                where = workload.path or f"workload {workload.name}"
                check_worth(traits, workload.jobs[row].id, workload.jobs[row].worth or Worth(), where)


def check_worth(traits: Traits, job_id: str, worth: Worth, where: str) -> None:
    """Refuse a job without the value or the quality of service that the policy needs.

    Raises:
        ConfigError: naming place, job, field and policy.
    """
    for field, said, is_needed in (("value", worth.value, traits.needs_value), ("qos", worth.qos, traits.needs_qos)):
        if is_needed and math.isnan(said):
            advice = "give each job one (decision workload preset green makes such jobs), or choose another policy"
            raise ConfigError(f"{where}: job {job_id} has no {field!r}, and policy {traits.name} needs one; {advice}")


def check_estimates(workload: Workload) -> None:
    """Refuse a workload with a job that does not say how long it will run.

    Raises:
        ConfigError: as `check_estimate`, of the first such job.
    """
    said = estimates(workload)
    for row in np.flatnonzero(~(said > 0))[:1].tolist():
        check_estimate(workload.jobs[row].id, float(said[row]), workload.path or f"workload {workload.name}")


def check_estimate(job_id: str, estimate: float, where: str) -> None:
    """Refuse a job that does not say how long it will run (nan), or that says nonsense.

    Raises:
        ConfigError: naming place, job and field.
    """
    if not estimate > 0:
        problem = "has no 'estimate'" if math.isnan(estimate) else f"has the 'estimate' {estimate:g}, not above 0"
        advice = "decision workload predict FILE --predictor P -o OUT adds it"
        raise ConfigError(f"{where}: job {job_id} {problem}, and estimate=given needs one; {advice}")
