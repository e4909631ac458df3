"""A workload's jobs as a table: a pandas DataFrame, and the small one that a notebook shows."""

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import columns_of
from .demand import runtimes
from .errors import ConfigError, how_to_install
from .table import Table
from .trace import of_jobs
from .workload import Workload

if TYPE_CHECKING:
    from pandas import DataFrame


_SHOWN = 5  # jobs
_SAID = ("partition", "account", "group", "qos")


def job_frame(workload: Workload, speed: float | None) -> "DataFrame":
    """The table of jobs that `Workload.to_frame` returns."""
    if find_spec("pandas") is None:
        raise ConfigError(f"tables of jobs need pandas, which is not installed: {how_to_install('analysis')}")
    import pandas

    jobs = columns_of(workload.jobs)
    columns: dict[str, Any] = {
        "id": [job.partition("!")[2] for job in jobs.id],
        "submit_time": jobs.submit_time,
        "size": jobs.size,
        "runtime": _runtimes(workload, speed),
        "walltime": jobs.walltime,
        "user": list(jobs.user),
        "profile": list(jobs.profile),
    }
    if workload.trace is not None:
        trace = of_jobs(workload.trace, workload.jobs)
        columns["recorded_wait"] = trace.wait
        columns |= {name: list(trace.texts("request", name)) for name in _SAID if name in trace.request}
    return pandas.DataFrame(columns)


def _runtimes(workload: Workload, speed: float | None) -> np.ndarray:
    try:
        return runtimes(workload, speed)
    except ConfigError:
        if speed is not None:
            raise
        return np.full(len(workload.jobs), math.nan)


def jobs_html(workload: Workload) -> str:
    """The first jobs, with how many there are."""
    rows = [
        (job.name, f"{job.submit_time:,.10g}", str(job.size), f"{job.walltime:,.10g}", job.profile, job.user)
        for job in workload.jobs[:_SHOWN]
    ]
    header = ("id", "submit_time", "size", "walltime", "profile", "user")
    return Table(f"{repr(workload).strip('<>')}; the first {len(rows)} of them", header, rows).html()
