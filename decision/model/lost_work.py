"""Work that was done in vain: by jobs that were cut, killed or begun again."""

from collections.abc import Sequence

import numpy as np

from .columns import JobColumns
from .record import FinalState, JobTable
from .workload import Delay, Workload

_OVER = (FinalState.COMPLETED_SUCCESSFULLY, FinalState.COMPLETED_FAILED, FinalState.COMPLETED_WALLTIME_REACHED)


def lost_work(jobs: JobTable, workloads: Sequence[Workload]) -> float:
    """``sum over jobs of q * (sum of the run times of all parts - min(own run time, walltime))``, in host-seconds.

    Of jobs that were killed, or suspended and submitted again, or whose hosts failed. What ended in the end was worth
    the time that it takes without all this; what never ended was worth nothing.

    Args:
        jobs: of a run, all parts of each.
        workloads: that were submitted.
    """
    killed = np.flatnonzero(np.asarray(jobs.final_state) == FinalState.COMPLETED_KILLED)
    cut = {_origin(jobs.id[row]) for row in killed.tolist()}
    if not cut:
        return 0.0
    total = useful = 0.0
    for row, job_id in enumerate(jobs.id):
        origin = _origin(job_id)
        if origin in cut and jobs.final_state[row] != FinalState.REJECTED:
            total += float(jobs.size[row] * jobs.runtime[row])
    over = {_origin(jobs.id[row]) for row in np.flatnonzero(np.isin(jobs.final_state, _OVER)).tolist()}
    for workload in workloads:
        ids = workload.jobs.id if isinstance(workload.jobs, JobColumns) else [job.id for job in workload.jobs]
        for row in (row for row, job_id in enumerate(ids) if job_id in cut and job_id in over):
            job = workload.jobs[row]
            profile = workload.profiles[job.profile]
            if isinstance(profile, Delay):  # only these are cut and go on
                useful += job.size * min(profile.duration, job.walltime)
    return total - useful


def _origin(job_id: str) -> str:
    """The id of the job that was submitted, of which this is what was left."""
    origin, mark, part = job_id.rpartition("#")
    return origin if mark and part.isdigit() else job_id
