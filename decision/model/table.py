"""A table of texts, as it is written: Markdown, HTML, LaTeX and CSV; and a workload's jobs as one, or as a DataFrame.

`decision.cli.tables` prints it.
"""

import csv
import html
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .columns import columns_of
from .demand import runtimes
from .errors import ConfigError, how_to_install
from .trace import of_jobs
from .workload import Workload

if TYPE_CHECKING:
    from pandas import DataFrame

_SPECIAL = str.maketrans(
    {each: f"\\{each}" for each in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
)


class Table(NamedTuple):
    """A table of texts, the first column of which names the row.

    A name of a column that begins with ``>`` is one of figures, which stand at the right.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name.removeprefix(">") for name in self.columns]

    def as_data(self) -> dict[str, Any]:
        """Title, columns and rows, for a JSON document."""
        return {"title": self.title, "columns": self.names, "rows": self.rows}

    def markdown(self, level: int = 0) -> list[str]:
        """The lines of Markdown; with a level under the title, a heading of it, and with an empty line at the end."""
        lines = ["".join(f"| {cell} " for cell in row) + "|" for row in (self.names, *self.rows)]
        rule = "".join("|--:" if name.startswith(">") else "|---" for name in self.columns) + "|"
        table = [lines[0], rule, *lines[1:]]
        return [f"{'#' * level} {self.title}", "", *table, ""] if level else table

    def html(self) -> str:
        """As a cell of a notebook shows it, the title above; without a head where no column has a name."""
        title = f"<caption style='text-align:left'>{html.escape(self.title)}</caption>" if self.title else ""
        head = f"<thead><tr>{_cells(self.names, 'th')}</tr></thead>" if any(self.columns) else ""
        body = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in self.rows)
        return f"<table>{title}{head}<tbody>{body}</tbody></table>"

    def latex(self) -> list[str]:
        """The lines of LaTeX, by booktabs; the title is a comment."""
        places = "".join("r" if name.startswith(">") else "l" for name in self.columns)
        lines = [" & ".join(cell.translate(_SPECIAL) for cell in row) + r" \\" for row in (self.names, *self.rows)]
        head = [f"% {self.title}", f"\\begin{{tabular}}{{{places}}}", r"\toprule", lines[0], r"\midrule"]
        return [*head, *lines[1:], r"\bottomrule", r"\end{tabular}", ""]


def _cells(row: Sequence[str], kind: str) -> str:
    return "".join(f"<{kind} style='text-align:left'>{html.escape(cell)}</{kind}>" for cell in row)


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows of the same columns as CSV, under the columns' names."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


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
        (job.name, f"{job.submit_time:,.10g}", str(job.size), f"{job.walltime:,.10g}", job.profile, job.user)
        for job in workload.jobs[:_SHOWN]
    ]
    header = ("id", "submit_time", "size", "walltime", "profile", "user")
    return Table(f"{repr(workload).strip('<>')}; the first {len(rows)} of them", header, rows).html()
