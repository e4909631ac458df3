"""Logs as forecasts of starts take them, of few jobs."""

import numpy as np

from decision.forecasts.history import KnownJobs


def known_jobs(*jobs: tuple[float, float, float, int, float]) -> KnownJobs:
    """From (submit, start, runtime, size, limit); of one user."""
    columns = [np.array(column, np.float64) for column in zip(*jobs, strict=True)]
    return KnownJobs(
        id=[f"w0!{number}" for number in range(len(jobs))],
        submit=columns[0],
        start=columns[1],
        runtime=columns[2],
        size=columns[3].astype(np.int64),
        limit=columns[4],
        user=np.zeros(len(jobs), np.int64),
    )
