"""What is shown of a training from its first minute on: metrics over sequences of jobs that stay the same.

They are some of the jobs that are learned from, so that no others have to be kept aside; what a policy is worth is said
by `decision evaluate` on jobs that it has not seen.
"""

import numpy as np

from decision.envs import Setup, evaluate, make_setup
from decision.envs.evaluation import ChooseAll
from decision.learned import Episodes
from decision.model.workload import Workload
from decision.policies.policy import Policy

PREFIX = "validation_"  # of the columns in the curves
_SEQUENCES = 16
_JOBS = 250  # of each; fewer where the workload has fewer


class Validation:
    """Sequences of jobs, evenly spread over a workload, after which none come; days, where these are learned from.

    What is shown are the metrics `Scheduler.validated`.

    Args:
        setup: of the environments that are learned in.
        workload: the jobs that are learned from.
    """

    def __init__(self, setup: Setup, workload: Workload) -> None:
        self._names = setup.scheduler.validated
        if setup.rules.drains or setup.rules.ends_with_jobs:
            rows = setup.beginnings.row
            self._first = rows[np.unique(np.linspace(0, len(rows) - 1, _SEQUENCES).astype(int))].tolist()
            self._setup = setup
            return
        jobs = min(_JOBS, len(workload.jobs))
        last = len(workload.jobs) - jobs
        self._first = np.unique(np.linspace(0, last, _SEQUENCES).astype(int)).tolist()
        episodes = Episodes(jobs=jobs, online=False)
        self._setup = make_setup(workload, setup.platform, encoder=setup.encoder, episodes=episodes)

    def __call__(self, policy: Policy | ChooseAll) -> dict[str, float]:
        """Means over all jobs of the sequences; the same for the same policy."""
        metrics = evaluate(policy, self._setup, first=self._first)
        return {f"{PREFIX}{name}": float(metrics[name].mean()) for name in self._names}
