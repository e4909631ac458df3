"""One page that holds everything about some runs: summary, Gantt charts that can be zoomed, pictures."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.formats.files import read_bytes
from decision.model.hosts import parse_intervals
from decision.model.record import Floats

from .metrics import BOUND, Summary, summarise
from .page import cell, page, picture, section, table, template
from .runs import Run


class _Column(NamedTuple):
    """A column of the summary."""

    header: str
    value: Callable[[Summary], float]
    digits: int
    sign: int  # 1 where less is better, -1 where more is, 0 where neither


_COLUMNS = (
    _Column("jobs", lambda s: s.jobs, 0, 0),
    _Column("rejected", lambda s: s.rejected, 0, 1),
    _Column("makespan<br>s", lambda s: s.makespan, 0, 1),
    _Column("mean wait<br>s", lambda s: s.mean_waiting_time, 0, 1),
    _Column("max wait<br>s", lambda s: s.max_waiting_time, 0, 1),
    _Column("bounded<br>slowdown", lambda s: s.mean_bounded_slowdown, 2, 1),
    _Column("utilization<br>%", lambda s: 100 * s.utilization, 1, -1),
    _Column("energy<br>MJ", lambda s: s.energy / 1e6, 1, 1),
)


def summaries_of(runs: Sequence[Run]) -> dict[str, Summary]:
    """What each run comes to, by name."""
    return {
        run.name: summarise(
            run.record.jobs, run.record.nb_hosts, math.nan if run.record.energy is None else run.record.joules
        )
        for run in runs
    }


def write_report(runs: Sequence[Run], pictures: Sequence[Path], trainings: Sequence[str] = ()) -> Iterator[bytes]:
    """The page, in pieces for `decision.formats.files.write_files`.

    Args:
        runs: side by side on one clock; may be none.
        pictures: PNG or SVG files that are put into the page.
        trainings: what else is on the pictures.
    """
    names = [*(run.name for run in runs), *trainings]
    title = " and ".join(names) if len(names) < 3 else f"{len(names)} {'runs' if runs else 'trainings'}"
    parts = [_summary(runs), _gantt()] if runs else []
    shown = "\n".join(picture(path.stem, path.suffix, read_bytes(path)) for path in pictures)
    parts.append(section("pictures", "Pictures", shown))
    yield page(title, [*parts, _charts(runs)] if runs else parts)


def _summary(runs: Sequence[Run]) -> str:
    note = f"Bounded slowdown: mean; runtimes under {BOUND:g} s count as {BOUND:g} s. Best values are bold."
    return section("summary", "Summary", f'{_table(summaries_of(runs))}\n<p class="note">{note}</p>')


def _gantt() -> str:
    return section("gantt", "Jobs on hosts", template("gantt.html"))


def _charts(runs: Sequence[Run]) -> str:
    """The Gantt charts' data, and the script that draws them."""
    data = _json([_charted(run) for run in runs])
    return f'<script type="application/json" id="data">{data}</script>\n<script>\n{template("gantt.js")}</script>'


def _table(summaries: Mapping[str, Summary]) -> str:
    shown = [column for column in _COLUMNS if not all(math.isnan(column.value(s)) for s in summaries.values())]
    columns = [_cells(column, [column.value(summary) for summary in summaries.values()]) for column in shown]
    rows = ([cell(name), *cells] for name, *cells in zip(summaries, *columns, strict=True))
    return table(["run", *(column.header for column in shown)], rows)


def _cells(column: _Column, values: Sequence[float]) -> list[str]:
    """A column's cells; the best are marked where not all are."""
    texts = ["-" if math.isnan(value) else f"{value:,.{column.digits}f}" for value in values]
    best = texts[values.index(min(values, key=lambda v: math.inf if math.isnan(v) else column.sign * v))]
    marked = column.sign != 0 and len(set(texts)) > 1
    return [cell(text, marked and text == best) for text in texts]


def _charted(run: Run) -> dict[str, Any]:
    """What the charts draw of a run: columns of its jobs in order of start, and its spans.

    A span is a job's number, the first and the last host of an interval; all spans stand in one list.
    """
    jobs = run.jobs.take(np.argsort(run.jobs.start_time, kind="stable"))
    spans = [
        number for job, text in enumerate(jobs.allocation) for pair in parse_intervals(text) for number in (job, *pair)
    ]
    return {
        "name": run.name,
        "hosts": run.record.nb_hosts,
        "id": jobs.id,
        "submit": _seconds(jobs.submit_time),
        "size": jobs.size.tolist(),
        "walltime": [seconds if math.isfinite(seconds) else None for seconds in _seconds(jobs.walltime)],
        "start": _seconds(jobs.start_time),
        "runtime": _seconds(jobs.runtime),
        "span": spans,
    }


def _seconds(column: Floats) -> list[float]:
    """To the millisecond, and without decimals where there are none: a third of the text."""
    return [int(value) if value.is_integer() else value for value in np.round(column, 3).tolist()]


def _json(data: Any) -> str:
    """JSON that may stand in a script element, whatever texts are in it."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")
