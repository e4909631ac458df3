"""Whether jobs say what a policy must know of them."""

import math
from collections.abc import Sequence

import numpy as np

from decision.compiling.jit import kernel
from decision.model.demand import QOS, VALUE, estimates, has_users, sizes, walltimes, worths
from decision.model.errors import ConfigError, warn_once
from decision.model.platform import Platform
from decision.model.workload import Workload, Worth
from decision.state.plan_arrays import REJECT, put_first
from decision.state.transitions import bring_back, set_aside

from .policy import Policy
from .prepared import ask
from .traits import Traits, traits_of


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
    for field, amount, is_needed in (("value", worth.value, traits.needs_value), ("qos", worth.qos, traits.needs_qos)):
        if is_needed and math.isnan(amount):
            advice = "give each job one (decision workload preset green makes such jobs), or choose another policy"
            raise ConfigError(f"{where}: job {job_id} has no {field!r}, and policy {traits.name} needs one; {advice}")


def check_estimates(workload: Workload) -> None:
    """Refuse a workload with a job that does not say how long it will run.

    Raises:
        ConfigError: as `check_estimate`, of the first such job.
    """
    seconds = estimates(workload)
    for row in np.flatnonzero(~(seconds > 0))[:1].tolist():
        check_estimate(workload.jobs[row].id, float(seconds[row]), workload.path or f"workload {workload.name}")


def check_estimate(job_id: str, estimate: float, where: str) -> None:
    """Refuse a job that does not say how long it will run (nan), or that says nonsense.

    Raises:
        ConfigError: naming place, job and field.
    """
    if not estimate > 0:
        problem = "has no 'estimate'" if math.isnan(estimate) else f"has the 'estimate' {estimate:g}, not above 0"
        advice = "decision workload predict FILE --predictor P -o OUT adds it"
        raise ConfigError(f"{where}: job {job_id} {problem}, and estimate=given needs one; {advice}")


# Jobs that no policy can start, because they ask for more hosts than there are, or for none.
#
# Batsim sends such jobs as it does others, so they are rejected as soon as they come, before a policy sees them, in
# each place where one of our policies decides, and with one line for all of them.


class Misfits:
    """Counts the jobs of a run that do not fit its platform."""

    def __init__(self) -> None:
        self._count, self._first = 0, ""

    def add(self, job_id: str, size: int) -> None:
        """Count one more job that does not fit."""
        self._first = self._first or f"{job_id} with {size}"
        self._count += 1

    def tell(self, nb_hosts: int) -> None:
        """Warn of all of them, if any."""
        if self._count:
            jobs = "1 job that does not fit" if self._count == 1 else f"{self._count:,} jobs that do not fit"
            hosts = f"{nb_hosts:,} host{'s' * (nb_hosts != 1)}"
            warn_once(f"rejected {jobs} the platform of {hosts}, the first is {self._first}")


@kernel
def ask_about_others(policy, state, facts, memory, plan):
    """As `ask`, but jobs that are larger than the cluster are rejected first, and the policy does not see them."""
    nb_hidden = set_aside(state, state.size[state.queue[: state.nb_queued]] > len(state.host_state))
    if not ask(policy, state, facts, memory, plan):
        return False
    bring_back(state, nb_hidden)
    put_first(plan, REJECT, state.queue[state.nb_queued - nb_hidden : state.nb_queued])
    return True


# What is refused or warned of before jobs are simulated.


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
