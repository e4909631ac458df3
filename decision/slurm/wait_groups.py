"""Waits of groups of jobs: by partition, QOS, account and size."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from decision.compiling.bundle import F8

from .case import Case
from .engine_inputs import engine_hosts, engine_size
from .jobs import SlurmJob

SHORTEST = 10.0  # seconds: a shorter job counts as so long in its slowdown


class WaitFigures(NamedTuple):
    """Of a group of jobs, seconds."""

    jobs: int
    mean: float
    median: float
    p90: float
    slowdown: float


def wait_figures(wait: F8, runtime: F8) -> WaitFigures:
    """Mean, median and p90 of waits, and the mean bounded slowdown."""
    slowdown = np.maximum(1.0, (wait + runtime) / np.maximum(runtime, SHORTEST))
    return WaitFigures(
        len(wait), float(wait.mean()), float(np.median(wait)), float(np.quantile(wait, 0.9)), float(slowdown.mean())
    )


def job_groups(case: Case, numbers: Sequence[int]) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Places of the compared jobs by group: all, and by partition, QOS, account and size where there are several."""
    labels = {
        "partition": [case.jobs[n].partition for n in numbers],
        "qos": [case.jobs[n].qos for n in numbers],
        "account": [case.jobs[n].account for n in numbers],
        "size": [_size_class(case, case.jobs[n]) for n in numbers],
    }
    groups = {"all": np.arange(len(numbers))}
    for kind, names in labels.items():
        if len(set(names)) > 1:
            column = np.array(names)
            groups |= {f"{kind}={name}": np.flatnonzero(column == name) for name in sorted(set(names))}
    return groups


def _size_class(case: Case, job: SlurmJob) -> str:
    share = engine_size(case, job) / len(engine_hosts(case))
    return "small" if share <= 1 / 16 else "middle" if share <= 1 / 4 else "large"
