"""What is refused or warned of before jobs are simulated."""

import math
from collections.abc import Sequence

import numpy as np

from decision.model.demand import has_users, sizes, walltimes
from decision.model.notices import warn_once
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.job_check import check_estimates, check_walltime, check_worths
from decision.policies.policy import Policy
from decision.policies.traits import traits_of

from .misfits import Misfits


def check_predictable(workloads: Sequence[Workload], policy: Policy) -> None:
    """Refuse jobs that do not say their run time, and warn that they have no users, where the policy needs either.

    Raises:
        ConfigError: naming the first job.
    """
    traits = traits_of(policy)
    if traits.needs_estimate:
        for workload in workloads:
            check_estimates(workload)
    if traits.needs_users and not any(map(has_users, workloads)):
        warn_of_no_users()


def warn_of_no_users() -> None:
    """Say that nothing can be learned."""
    warn_once("no job has a user, so the run time that estimate=last2 expects is the walltime")


def check_sleep(policy: Policy, platform: Platform, energy: bool) -> None:
    """Warn that no host can sleep, where the policy puts hosts to sleep; `energy` is whether it is simulated."""
    traits = traits_of(policy)
    if traits.switches_hosts and not (energy and any(host.sleep for host in platform.hosts)):
        advice = "hosts sleep where the platform has sleep states and energy is simulated (-E)"
        warn_once(f"policy {traits.name} puts hosts to sleep, and none can: {advice}")


def check_jobs(platform: Platform, workloads: Sequence[Workload], policy: Policy) -> Misfits:
    """Refuse jobs that the policy cannot deal with, and count those that will be rejected.

    Raises:
        ConfigError: naming the workload, the job, what it lacks and the policy.
    """
    misfits, traits = Misfits(), traits_of(policy)
    for workload in workloads:
        where = workload.path or f"workload {workload.name}"
        worth_a_look = (sizes(workload) > len(platform.hosts)) | (walltimes(workload) == math.inf)
        for row in np.flatnonzero(worth_a_look).tolist():
            job = workload.jobs[row]
            if job.size > len(platform.hosts):
                misfits.add(job.id, job.size)
            check_walltime(traits, job.id, job.walltime, where)
    check_predictable(workloads, policy)
    check_worths(traits, workloads)
    return misfits
