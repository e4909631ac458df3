"""A workload without end: its jobs come again and again, so that an episode may begin at any of them.

The trace is repeated as often as an episode can need. Between its last job and its first there is as much time as
between any two of its jobs on average. Times stay those of the workload.
"""

import msgspec
import numpy as np

from decision.engine.arrays import DELAY, Truth
from decision.engine.truth import build_truth
from decision.model.platform import Platform
from decision.model.workload import Workload


class Trace(msgspec.Struct, frozen=True):
    """Jobs in the order of their submission, repeated."""

    truth: Truth
    runtime: np.ndarray  # (R,) seconds that each job runs, nan where it does more than wait
    jobs: int  # T: rows of the workload; row t is job t % T of it
    ids: list[str]  # (T,) of the workload's jobs


def make_trace(workload: Workload, platform: Platform, arrivals: int) -> Trace:
    """The trace, long enough for episodes of so many arrivals from any of its jobs on.

    Raises:
        ConfigError: if the engine cannot simulate the workload.
    """
    truth, names = build_truth([workload], [])
    jobs = len(names.jobs)
    row = np.arange(jobs + arrivals)
    again = {name: getattr(truth, name)[row % jobs] for name in ("size", "walltime", "user", "moldable")}
    again |= {name: getattr(truth, name)[row % jobs] for name in ("leaf_first", "leaf_count")}
    submit = truth.submit_time[row % jobs] + _period(truth.submit_time) * (row // jobs)
    delays = [all(leaf.kind == DELAY for leaf in leaves) for leaves in names.leaves]
    runs = [sum(leaf.amount for leaf in leaves) for leaves in names.leaves]
    runtime = np.minimum(np.where(delays, runs, np.nan), truth.walltime)
    return Trace(
        truth=truth._replace(submit_time=submit, **again),
        runtime=runtime[row % jobs],
        jobs=jobs,
        ids=[job.id for job in names.jobs],
    )


def _period(submit_time: np.ndarray) -> float:
    """Seconds from a job to the same job in the next repetition."""
    span = float(submit_time[-1] - submit_time[0])
    return max(span + span / max(len(submit_time) - 1, 1), 1.0)
