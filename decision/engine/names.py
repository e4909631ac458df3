"""What the numbers of `Truth` mean to people."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decision.model.columns import JobColumns
from decision.model.workload import Job, Workload

from .profiles import LeafTask, flatten


class Names:
    """What the numbers of `Truth` mean to people: jobs by truth, growing with dynamic jobs."""

    def __init__(self, no_network: str = "") -> None:
        self.no_network = no_network  # why jobs cannot communicate, where they cannot
        self.users: dict[str, int] = {}
        self.profiles: dict[tuple[tuple[LeafTask, ...], bool], int] = {}  # numbers of those of dynamic jobs
        self._parts: list[tuple[Workload, Sequence[Job]]] = []  # in order of submission
        self._added: list[Job] = []
        self._leaves: dict[int, tuple[LeafTask, ...]] = {}  # where they are not those of the job's profile
        self._flat: dict[tuple[str, str], tuple[LeafTask, ...]] = {}  # by workload and profile
        self._ids: set[str] | None = None  # of all jobs, once somebody asked

    def __len__(self) -> int:
        return sum(len(jobs) for jobs in self._lists())

    def __contains__(self, job_id: object) -> bool:
        if self._ids is None:
            self._ids = {job.id for jobs in self._lists() for job in jobs}
        return job_id in self._ids

    def job(self, truth: int) -> Job:
        """What a job is."""
        for jobs in self._lists():
            if truth < len(jobs):
                return jobs[truth]
            truth -= len(jobs)
        raise IndexError(truth)

    def texts(self, field: str, truths: NDArray[np.integer]) -> list[str]:
        """The ``id`` or ``profile`` of some jobs."""
        found, first = np.empty(len(truths), object), 0
        for jobs in self._lists():
            here = (truths >= first) & (truths < first + len(jobs))
            rows = truths[here] - first
            if isinstance(jobs, JobColumns):
                found[here] = getattr(jobs, field).take(rows).made()
            else:
                found[here] = [getattr(jobs[row], field) for row in rows.tolist()]
            first += len(jobs)
        return found.tolist()

    def leaves(self, truth: int) -> tuple[LeafTask, ...]:
        """What a job does."""
        if truth in self._leaves:
            return self._leaves[truth]
        row = truth
        for workload, jobs in self._parts:
            if row < len(jobs):
                return self.flat(jobs[row].profile, workload)
            row -= len(jobs)
        raise IndexError(truth)

    def flat(self, profile: str, workload: Workload) -> tuple[LeafTask, ...]:
        """The leaves of a profile; errors as `flatten`."""
        key = (workload.name, profile)
        if key not in self._flat:
            self._flat[key] = flatten(profile, workload, self.no_network)
        return self._flat[key]

    def set_leaves(self, truth: int, leaves: tuple[LeafTask, ...]) -> None:
        """Let a job do something else than its profile."""
        self._leaves[truth] = leaves

    def add_workload(self, workload: Workload, jobs: Sequence[Job]) -> None:
        """Add a workload's jobs, in order of submission."""
        self._parts.append((workload, jobs))
        self._ids = None

    def add_job(self, job: Job, leaves: tuple[LeafTask, ...]) -> int:
        """Add a dynamic job; returns its truth."""
        truth = len(self)
        self._added.append(job)
        self._leaves[truth] = leaves
        if self._ids is not None:
            self._ids.add(job.id)
        return truth

    def user(self, name: str) -> int:
        """The number of a user; -1 for none."""
        return self.users.setdefault(name, len(self.users)) if name else -1

    def _lists(self) -> list[Sequence[Job]]:
        return [*(jobs for _, jobs in self._parts), self._added]
