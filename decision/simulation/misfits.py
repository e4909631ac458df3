"""Jobs that no policy can start, because they ask for more hosts than there are, or for none.

Batsim sends such jobs as it does others, so they are rejected as soon as they come, before a policy sees them, in
each place where one of our policies decides, and with one line for all of them.
"""

from decision.compiling.jit import kernel
from decision.model.notices import warn_once
from decision.policies.prepared import ask
from decision.state.plan_arrays import REJECT, put_first
from decision.state.transitions import bring_back, set_aside


class Misfits:
    """Counts the jobs of a run that do not fit its platform."""

    def __init__(self) -> None:
        self._count, self._first = 0, ""

    def add(self, job_id: str, size: int) -> None:
        """One more."""
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
