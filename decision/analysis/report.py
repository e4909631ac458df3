"""HTML pages of runs: summary, zoomable Gantt charts, pictures; `analyse` writes a whole folder."""

import html
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.formats.files import write_files
from decision.model.dates import date_text
from decision.model.errors import InputError
from decision.model.hosts import parse_intervals
from decision.model.platform import Platform
from decision.model.record import SHORTEST_RUNTIME, Floats

from .curves import CURVES, LearningCurve
from .pages import REPORT, Cell, embedded, fact_table, group_sections, page, section, table, template
from .plots.breakdowns import slowdown_buckets, waits_by_size_and_length
from .plots.figures import JOB_COLORS, job_color
from .plots.paper import paper
from .plots.pictures import Picture
from .plots.reservations import reservation_timeline
from .plots.results import learning_curves
from .plots.schedules import draw_schedule
from .plots.supplies import power_over_time
from .plots.timelines import hosts_and_power, load_over_time
from .runs import JOBS_FILE, NamedRun, folders_with, runs_in, summaries_of
from .summary import Summary


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
    _Column("mean wait<br>s", lambda s: s.wait, 0, 1),
    _Column("95 % wait<br>at most s", lambda s: s.p95_wait, 0, 1),
    _Column("99 % wait<br>at most s", lambda s: s.p99_wait, 0, 1),
    _Column("max wait<br>s", lambda s: s.max_wait, 0, 1),
    _Column("bounded<br>slowdown", lambda s: s.bounded_slowdown, 2, 1),
    _Column("late starts<br>jobs", lambda s: s.late_starts, 0, 1),
    _Column("utilization<br>%", lambda s: 100 * s.utilization, 1, -1),
    _Column("until last<br>arrival, %", lambda s: 100 * s.arrival_utilization, 1, -1),
    _Column("value", lambda s: s.value, 0, -1),
    _Column("value<br>% of submitted", lambda s: 100 * s.value_share, 1, -1),
    _Column("deadlines<br>missed", lambda s: s.violations, 0, 1),
    _Column("grid power<br>host-h", lambda s: s.grid / 3600, 1, 1),
    _Column("energy<br>MJ", lambda s: s.energy / 1e6, 1, 1),
    _Column("energy waste<br>MJ", lambda s: s.energy_waste / 1e6, 2, 1),
    _Column("waste bound<br>MJ", lambda s: s.waste_bound / 1e6, 2, 1),
)


def write_report(
    runs: Sequence[NamedRun],
    pictures: Sequence[Picture],
    trainings: Sequence[str] = (),
    files: Sequence[str] = (),
    platform: Platform | None = None,
    command: str = "",
) -> Iterator[bytes]:
    """The page, in pieces for `decision.formats.files.write_files`.

    Args:
        runs: side by side on one clock; may be none.
        pictures: what is put into the page, as PNG where that is the paper's format, else as SVG.
        trainings: what else is on the pictures.
        files: names of those that are written next to it, for `analyse` to know again.
        platform: says what was wasted, where it is known.
        command: what the user typed, if it was a command.
    """
    names = [*(run.name for run in runs), *trainings]
    title = " and ".join(names) if len(names) < 3 else f"{len(names)} {'runs' if runs else 'trainings'}"
    parts = [_summary(runs, platform), _gantt()] if runs else []
    suffix = ".png" if paper().suffix == ".png" else ".svg"
    parts.append(section("pictures", "Pictures", "\n".join(embedded(shown, suffix) for shown in pictures)))
    parts += group_sections({run.name: run.groups for run in runs})
    parts += [
        section(f"setup-{number}", f"How {run.name} was run", fact_table(_setup(run).items(), f"setup-{run.name}"))
        for number, run in enumerate(runs)
        if run.facts is not None
    ]
    parts.append(f'<data id="files" value="{html.escape(" ".join(files))}" hidden></data>')
    yield page(title, [*parts, _charts(runs)] if runs else parts, command)


def _summary(runs: Sequence[NamedRun], platform: Platform | None) -> str:
    bound = f"{SHORTEST_RUNTIME:g} s"
    note = (
        "Makespan: from the first submission to the last end. Late starts: after the last arrival. "
        f"Bounded slowdown: mean; runtimes under {bound} count as {bound}. Best values are bold."
    )
    return section("summary", "Summary", f'{_table(summaries_of(runs, platform))}\n<p class="note">{note}</p>')


def _setup(run: NamedRun) -> dict[str, str]:
    """What made a run, in words."""
    facts = run.facts
    if facts is None:
        return {}
    files = {"platform": [facts.platform], "workload": facts.workloads, "external events": facts.events}
    files["policy's file"] = [] if facts.policy_file is None else [facts.policy_file]
    words = {
        "command": facts.command,
        "policy": facts.name,
        "seed": str(facts.seed),
        "engine": facts.engine,
        "energy": "simulated" if facts.energy else "not simulated",
        **{kind: "; ".join(f"{file.name}, sha256 {file.sha256}" for file in some) for kind, some in files.items()},
        **{name.replace("_", " "): text for name, text in facts.selection.texts().items()},
        "first submission": "" if run.clock is None else f"{date_text(run.clock)} on the machine's clock",
        "begin": f"{facts.begin:%Y-%m-%d %H:%M:%S} UTC",
        "package": f"decision {facts.decision}",
    }
    return {name: text for name, text in words.items() if text}


def _gantt() -> str:
    return section("gantt", "Jobs on hosts", template("gantt.html"))


def _charts(runs: Sequence[NamedRun]) -> str:
    """The Gantt charts' data, and the script that draws them."""
    data = _json({"colors": JOB_COLORS, "runs": [_charted(run) for run in runs]})
    return f'<script type="application/json" id="data">{data}</script>\n<script>\n{template("gantt.js")}</script>'


def _table(summaries: Mapping[str, Summary]) -> str:
    shown = [column for column in _COLUMNS if not all(math.isnan(column.value(s)) for s in summaries.values())]
    columns = [_cells(column, [column.value(summary) for summary in summaries.values()]) for column in shown]
    rows = ([name, *cells] for name, *cells in zip(summaries, *columns, strict=True))
    values = [
        {"run": name} | {column.header.replace("<br>", " "): column.value(found) for column in shown}
        for name, found in summaries.items()
    ]
    return table(["run", *(column.header for column in shown)], rows, "summary", values=values)


def _cells(column: _Column, values: Sequence[float]) -> list[Cell]:
    """A column's cells; the best are marked where not all are."""
    texts = ["-" if math.isnan(value) else f"{value:,.{column.digits}f}" for value in values]
    best = texts[values.index(min(values, key=lambda v: math.inf if math.isnan(v) else column.sign * v))]
    marked = column.sign != 0 and len(set(texts)) > 1
    return [Cell(text, marked and text == best) for text in texts]


def _charted(run: NamedRun) -> dict[str, Any]:
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
        "clock": run.clock,
        "id": jobs.id,
        "color": [job_color(name) for name in jobs.id],
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


def split(places: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Separate places of runs from folders of trainings; a folder of folders means all of either kind in it.

    Raises:
        InputError: if a folder has neither.
    """
    trainings = [folder for place in places for folder in folders_with(CURVES, place)]
    runs = [place for place in places if not folders_with(CURVES, place) or runs_in(place)]
    for place in runs:
        if place.is_dir() and not runs_in(place):
            raise InputError(
                f"{place}: no run ({JOBS_FILE}) and no training ({CURVES}) there; name folders that have one"
            )
    return runs, trainings


def analyse(
    runs: Sequence[NamedRun],
    trainings: Sequence[LearningCurve],
    folder: Path,
    platform: Platform | None,
    command: str = "",
) -> list[Path]:
    """Write pictures, in the paper's format, and ``report.html``, in the place of those that it wrote there before.

    Args:
        runs: side by side; their Gantt charts are one picture each.
        trainings: their learning curves are one picture.
        folder: where to.
        platform: splits power by state, where it is known.
        command: what the user typed, if it was a command.

    Returns:
        The files, the report last.

    Raises:
        ConfigError: if a file cannot be written.
    """
    older = _files_of(folder / REPORT)
    pictures = _pictures(runs, platform) if runs else {}
    if trainings:
        pictures["learning"] = learning_curves(trainings)
    suffix = paper().suffix
    common = {folder / f"{name}{suffix}": shown for name, shown in pictures.items()}
    write_files({path: [shown.drawn(suffix)] for path, shown in common.items()})
    charts = [folder / f"schedule-{_file_name(run.name)}{suffix}" for run in runs]
    for run, path in zip(runs, charts, strict=True):
        draw_schedule(run.record.jobs, run.record.nb_hosts, path, run.name, run.first, run.clock)
    names = [training.name for training in trainings]
    files = [path.name for path in (*common, *charts)]
    write_files({folder / REPORT: write_report(runs, list(common.values()), names, files, platform, command)})
    for name in older.difference(files):
        (folder / Path(name).name).unlink(missing_ok=True)
    return [*common, *charts, folder / REPORT]


def _files_of(report: Path) -> set[str]:
    """The names of the files that were written next to an older report."""
    found = re.search(r'<data id="files" value="([^"]*)"', report.read_text("utf-8")) if report.is_file() else None
    return set() if found is None else set(html.unescape(found[1]).split())


def _file_name(name: str) -> str:
    """A run's name as a part of a file's name."""
    return re.sub(r"[^\w.,+=@-]+", "-", name).strip("-")


def _pictures(runs: Sequence[NamedRun], platform: Platform | None) -> dict[str, Picture]:
    pictures = {
        "load": load_over_time(runs),
        "waits": waits_by_size_and_length(runs),
        "slowdowns": slowdown_buckets(runs),
        "reservations": reservation_timeline(runs),
    }
    supplied = [run for run in runs if run.record.supply is not None]
    if supplied:
        pictures["power"] = power_over_time(supplied)
    powered = [run for run in runs if run.record.energy is not None and len(run.record.host_states.time)]
    if powered:
        pictures["energy"] = hosts_and_power(powered, platform)
    return pictures
