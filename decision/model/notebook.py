"""A small table in HTML: what a cell of a notebook shows that ends in an object of ours."""

import html
import math
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import columns_of
from .demand import runtimes
from .errors import ConfigError, how_to_install
from .trace import of_jobs
from .workload import Workload

if TYPE_CHECKING:
    from pandas import DataFrame


def rows_html(rows: Iterable[Sequence[object]], header: Sequence[str] = (), caption: str = "") -> str:
    """A table of these rows of texts.

    Args:
        rows: the cells.
        header: of the columns; none if empty.
        caption: above them.
    """
    title = f"<caption style='text-align:left'>{html.escape(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{_cells(header, 'th')}</tr></thead>" if header else ""
    body = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{title}{head}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object], kind: str) -> str:
    return "".join(f"<{kind} style='text-align:left'>{html.escape(str(cell))}</{kind}>" for cell in row)


# A workload's jobs as a table: a pandas DataFrame, and the small one that a notebook shows.

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
        (job.name, f"{job.submit_time:,.10g}", job.size, f"{job.walltime:,.10g}", job.profile, job.user)
        for job in workload.jobs[:_SHOWN]
    ]
    header = ("id", "submit_time", "size", "walltime", "profile", "user")
    return rows_html(rows, header, f"{repr(workload).strip('<>')}; the first {len(rows)} of them")
