"""What changes in a schedule with time: busy hosts, waiting jobs, waiting load, as step functions."""

from typing import NamedTuple

import numpy as np

from decision.model.record import Floats, Ints, JobTable

from .metrics import loads


class Steps(NamedTuple):
    """A step function: it has ``values[i]`` from ``times[i]`` until ``times[i + 1]``, and is 0 before the first."""

    times: Floats  # (n,) seconds, ascending
    values: Floats  # (n,)

    def average(self, begin: float, end: float) -> float:
        """``1 / (end - begin) * integral from begin to end``, times in seconds."""
        edges = np.clip(np.append(self.times, np.inf), begin, end)
        return float((self.values * np.diff(edges)).sum()) / (end - begin)


PIECES = 200  # of a run: thousands of jumps become a line that can be read


def averaged(steps: Steps) -> Steps:
    """Averages over `PIECES` equal pieces of the time between the first and the last jump."""
    edges = np.linspace(steps.times[0], steps.times[-1], PIECES + 1)
    areas = np.append(0.0, np.cumsum(steps.values[:-1] * np.diff(steps.times)))
    return Steps(edges[:-1], np.diff(np.interp(edges, steps.times, areas)) / np.diff(edges))


def utilization_over_time(jobs: JobTable, nb_hosts: int) -> Steps:
    """The share of the hosts that run jobs, in [0, 1]; `jobs` are those that ran, as below."""
    times, busy = _steps(jobs.start_time, jobs.start_time + jobs.runtime, jobs.size)
    return Steps(times, busy / nb_hosts)


def queue_over_time(jobs: JobTable) -> Steps:
    """How many jobs have been submitted and not started."""
    return _steps(jobs.submit_time, jobs.start_time, np.ones(len(jobs.id)))


def job_load_over_time(jobs: JobTable) -> Steps:
    """The load (`decision.analysis.metrics.loads`, host-seconds) of the jobs that wait."""
    return _steps(jobs.submit_time, jobs.start_time, loads(jobs))


def _steps(begin: Floats, end: Floats, amount: Floats | Ints) -> Steps:
    """The sum of the amounts whose times contain the present."""
    times, where = np.unique(np.concatenate([begin, end]), return_inverse=True)
    changes = np.bincount(where, weights=np.concatenate([amount, -amount]), minlength=len(times))
    return Steps(times, np.cumsum(changes))
