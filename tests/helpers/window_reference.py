"""Slow plain-Python twin of the policy window with the solver sequential, written from its definition.

It is called at every multiple of the period while a job waits.
"""

import math

from decision.model.platform import Platform
from decision.policies import ClusterView, Plan
from decision.policies.profile import TOLERANCE


class PlainWindow:
    """Windows on hosts that are numbered along the tree; options as those of `Window`."""

    needs_walltime = False

    def __init__(self, period: float = 60.0, jobs: int = 5) -> None:
        self._period, self._jobs = period, jobs

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins."""
        self._last = self._called_for = -1

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Decide a window at its time, and ask for the next one."""
        index = math.floor((cluster.now + TOLERANCE) / self._period)
        if cluster.queue and index > self._last and cluster.now <= index * self._period + TOLERANCE:
            self._last = index
            self._decide_window(cluster, plan, index)
        if len(cluster.queue) > plan.arrays.nb_actions and self._called_for <= index:
            self._called_for = index + 1
            plan.call_at((index + 1) * self._period)

    def _decide_window(self, cluster: ClusterView, plan: Plan, index: int) -> None:
        def waited(submit: float) -> int:
            return index - math.ceil((submit - TOLERANCE) / self._period)

        taken, free = [], cluster.nb_free
        for job in sorted(cluster.queue, key=lambda job: (-waited(job.submit_time), job.size)):
            if job.size > free or (job.size > 1 and sum(other.size > 1 for other in taken) == self._jobs > 0):
                break
            taken.append(job)
            free -= job.size
        for job in [job for job in taken if job.size > 1] + [job for job in taken if job.size == 1]:
            plan.start(job, plan.free_hosts[: job.size])
