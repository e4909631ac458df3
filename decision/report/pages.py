"""HTML pages of runs and of comparisons: their parts, zoomable Gantt charts, pictures, and whole folders of them."""

import base64
import datetime
import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.experiments.comparison import ALL, PolicyComparison, Row
from decision.experiments.metric_list import Summary, definition, metric_named, symbols
from decision.experiments.metrics import SHOWN_GROUPS, GroupFigures, folded, mean_figures
from decision.experiments.results import (
    CURVES,
    JOBS_FILE,
    LearningCurve,
    NamedRun,
    SearchTrial,
    best_trial,
    folders_with,
    judged_by,
    runs_in,
    summaries_of,
    table_rows,
)
from decision.files.outputs_read import campaign_of, what_a_campaign_has
from decision.files.text import json_bytes, utf8, write_files
from decision.model.dates import date_text
from decision.model.errors import InputError
from decision.model.hosts import parse_intervals, without_folders
from decision.model.platform import Platform
from decision.model.record import SHORTEST_RUNTIME, Floats
from decision.model.table import csv_text
from decision.report.plots.figures import JOB_COLORS, Picture, drawn, job_color, wait_unit
from decision.report.plots.results import draw_rows, learning_curves, slowdown_buckets, waits_by_size_and_length
from decision.report.plots.schedules import draw_schedule, hosts_and_power, load_over_time, reservation_timeline
from decision.report.plots.search import search_picture
from decision.report.plots.workloads import power_over_time
from decision.rl.learning.config import Space

from .comparison import at_a_glance, cells, headers, heading, notes, read_comparison, row_values, tables
from .plots import paper

# Pages in HTML, and what they are made of: sections, tables, lists, pictures.
#
# A page is one file and needs no network, which its content security policy enforces: pictures, script and style are
# in it.

_SIZES = {"wide": 14, "more": 10, "many": 7}  # columns, above which a table is printed smaller; a wide one's page lies
_MEDIA = {".png": "image/png", ".svg": "image/svg+xml"}


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    best: bool = False  # of its column
    markup: str = ""  # HTML in place of the text


Values = Iterable[Mapping[str, object]]  # rows of a table for programs


def page(title: str, parts: Iterable[str], command: str = "", date: str = "") -> bytes:
    """A page of parts in HTML, one below the other, under a title and what made it.

    Args:
        title: what it says, or is of.
        parts: in HTML.
        command: what the user typed, if it was a command.
        date: of the results; today if empty.
    """
    shell = Template(template("page.html"))
    made = [f"decision {__version__}", date or f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"]
    typed = f"<code>{html.escape(without_folders(command))}</code>" if command else ""
    text = shell.substitute(
        title=html.escape(title),
        style=template("page.css"),
        parts="\n".join(parts),
        made=" &middot; ".join([*made, *filter(None, [typed])]),
    )
    return utf8(text)


def template(name: str) -> str:
    """A file of the folder ``templates``."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def section(name: str, title: str, content: str) -> str:
    """A part with a title; `name` is its anchor, `content` is HTML."""
    return f'<section id="{name}">\n<h2>{html.escape(title)}</h2>\n{content}\n</section>'


def table(
    headers: Sequence[str], rows: Iterable[Sequence[Cell | str]], name: str, kind: str = "figures", values: Values = ()
) -> str:
    """A table in HTML that scrolls where it has no room, and below it a link that saves it as CSV.

    Args:
        headers: HTML.
        rows: of cells; plain texts are cells, too.
        name: of the CSV file, without its ending.
        kind: ``figures`` or ``words``.
        values: what the CSV has, in place of the cells' texts.
    """
    given = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    head = "".join(f"<th>{header}</th>" for header in headers)
    best = ' class="best"'
    texts = [[f"<td{best * cell.best}>{cell.markup or html.escape(cell.text)}</td>" for cell in row] for row in given]
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in texts)
    names = [html.unescape(re.sub(r"<[^>]*>", " ", header)) for header in headers] or ["name", "value"]
    found = list(values) or [dict(zip(names, (cell.text for cell in row), strict=True)) for row in given]
    size = next((f" {name}" for name, most in _SIZES.items() if len(headers) > most), "")
    content = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'
    # A link saves the text as a CSV file: the text is in the link, so that no script and no network is needed
    data = base64.b64encode(csv_text(found).encode()).decode()
    link = f'download="{file_name(name)}.csv" href="data:text/csv;charset=utf-8;base64,{data}"'
    return f'<div class="data{size}"><div class="scroll">{content}</div><a class="save" {link}>save as CSV</a></div>'


def file_name(name: str) -> str:
    """A name of anything as a part of a file's name."""
    return re.sub(r"[^\w.,+=@-]+", "-", name).strip("-")


def bullets(lines: Sequence[str], kind: str = "note") -> str:
    """Lines of text as a list; its `kind` is ``note``, or ``caveats`` that nobody should miss."""
    return f'<ul class="{kind}">' + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def embedded(shown: Picture, suffix: str) -> str:
    """A picture that stands in the page itself, ``.png`` or ``.svg``, with its caption; narrow windows scroll it."""
    data = base64.b64encode(shown.drawn(suffix)).decode()
    width = shown.figure.get_figwidth()  # inches, in which its type has the size that was asked for
    size = f"min-width: {0.93 * width:g}in; max-width: {1.5 * width:g}in"
    image = f'<img alt="{html.escape(shown.alt)}" style="{size}" src="data:{_MEDIA[suffix]};base64,{data}">'
    return f'<figure><div class="scroll">{image}</div><figcaption>{html.escape(shown.caption)}</figcaption></figure>'


def prose(text: str) -> str:
    """A docstring's text as HTML: what stands in backticks is code."""
    return re.sub(r"(`{1,2})([^`]+)\1", r"<code>\2</code>", html.escape(" ".join(text.split()), quote=False))


REPORT = "report.html"


def group_sections(runs: Mapping[str, Sequence[GroupFigures]], workload: str = "") -> Iterator[str]:
    """A part for each kind of groups: their jobs, host-hours and waits, the largest of the first run.

    Args:
        runs: by name, of the same jobs.
        workload: of which they are, where a page has several.
    """
    main: Sequence[GroupFigures] = next((groups for groups in runs.values() if groups), ())
    for kind in dict.fromkeys(row.by for row in main):
        rows_by_run = {name: [row for row in rows if row.by == kind] for name, rows in runs.items() if rows}
        first = [row.name for row in next(iter(rows_by_run.values()))]
        names = first if len(first) <= SHOWN_GROUPS + 1 else first[:SHOWN_GROUPS]
        shown = {name: {row.name: row for row in folded(rows, names)} for name, rows in rows_by_run.items()}
        unit, unit_name = wait_unit(max(row.mean_wait for groups in shown.values() for row in groups.values()))
        # Policies' names are broken behind their signs where there is little room
        broken = [re.sub(r"([,+=/_])", r"\1<wbr>", html.escape(name)) for name in shown]
        of = [f"<br>{name}" if len(shown) > 1 else "" for name in broken]
        heads = [f"{measure}, {unit_name}{name}" for name in of for measure in ("mean wait", "longest wait")]
        rows = []
        for name, row in next(iter(shown.values())).items():
            texts = [name, f"{row.jobs:,.0f}", f"{row.host_seconds / 3600:,.0f}"]
            for own in (groups.get(name) for groups in shown.values()):
                waits = () if own is None else (own.mean_wait / unit, own.max_wait / unit)
                texts += [f"{wait:,.{0 if wait < 0.05 or wait >= 100 else 1}f}" for wait in waits] or ["-", "-"]
            rows.append(texts)
        values = [{"run": name} | msgspec.structs.asdict(row) for name, groups in rows_by_run.items() for row in groups]
        listed = table([kind, "jobs", "host-hours", *heads], rows, f"by-{kind}", values=values)
        title = f"By {kind} on {workload}" if workload else f"By {kind}"
        yield section(f"by-{kind}{workload and '-'}{workload}", title, listed)


def fact_table(facts: Iterable[tuple[str, str]], name: str) -> str:
    """A table of names and what they are; `name` is that of its CSV file."""
    return table((), [[without_folders(text) for text in fact] for fact in facts], name, kind="words")


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
    """The page, in pieces for `decision.files.text.write_files`.

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
    parts = []
    if runs:
        parts.append(section("summary", "Summary", f"{_summary(summaries_of(runs, platform))}\n{_SUMMARY_NOTE}"))
        parts.append(section("gantt", "Jobs on hosts", template("gantt.html")))
    suffix = ".png" if paper().suffix == ".png" else ".svg"
    parts.append(section("pictures", "Pictures", "\n".join(embedded(shown, suffix) for shown in pictures)))
    parts += group_sections({run.name: run.groups for run in runs})
    parts += [
        section(f"setup-{number}", f"How {run.name} was run", fact_table(_setup(run).items(), f"setup-{run.name}"))
        for number, run in enumerate(runs)
        if run.facts is not None
    ]
    parts.append(f'<data id="files" value="{html.escape(" ".join(files))}" hidden></data>')
    if runs:  # the Gantt charts' data, in which no text may end the script element, and the script that draws them
        charts = json_bytes({"colors": JOB_COLORS, "runs": [_charted(run) for run in runs]}).decode()
        charts = charts.replace("<", "\\u003c")
        data = f'<script type="application/json" id="data">{charts}</script>'
        parts.append(f"{data}\n<script>\n{template('gantt.js')}</script>")
    yield page(title, parts, command)


_SUMMARY_NOTE = (
    '<p class="note">Makespan: from the first submission to the last end. Late starts: after the last arrival. '
    f"Bounded slowdown: mean; runtimes under {SHORTEST_RUNTIME:g} s count as {SHORTEST_RUNTIME:g} s. "
    "Best values are bold.</p>"
)


def _summary(summaries: Mapping[str, Summary]) -> str:
    shown = [column for column in _COLUMNS if not all(math.isnan(column.value(s)) for s in summaries.values())]
    columns: list[list[Cell]] = []
    for column in shown:  # the best are marked where not all are
        of_runs = [column.value(summary) for summary in summaries.values()]
        texts = ["-" if math.isnan(value) else f"{value:,.{column.digits}f}" for value in of_runs]
        losses = [math.inf if math.isnan(value) else column.sign * value for value in of_runs]
        best, marked = texts[losses.index(min(losses))], column.sign != 0 and len(set(texts)) > 1
        columns.append([Cell(text, marked and text == best) for text in texts])
    rows = ([name, *cells] for name, *cells in zip(summaries, *columns, strict=True))
    values = [
        {"run": name} | {column.header.replace("<br>", " "): column.value(found) for column in shown}
        for name, found in summaries.items()
    ]
    return table(["run", *(column.header for column in shown)], rows, "summary", values=values)


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


def split(places: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Separate places of runs from folders of trainings; a folder of folders means all of either kind in it.

    Raises:
        InputError: if a folder has neither.
    """
    trainings = [folder for place in places for folder in folders_with(CURVES, place)]
    runs = [place for place in places if not folders_with(CURVES, place) or runs_in(place)]
    for place in runs:
        if place.is_dir() and not runs_in(place):
            for folder in (place, *sorted(each for each in place.iterdir() if each.is_dir())):
                if (campaign := campaign_of(folder)) is not None:
                    raise InputError(f"{campaign}: {what_a_campaign_has(campaign)}")
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
    report = folder / REPORT
    listed = re.search(r'<data id="files" value="([^"]*)"', report.read_text("utf-8")) if report.is_file() else None
    older = set() if listed is None else set(html.unescape(listed[1]).split())  # files beside an older report
    pictures: dict[str, Picture] = {}
    if runs:
        pictures = {
            "load": load_over_time(runs),
            "waits": waits_by_size_and_length(runs),
            "slowdowns": slowdown_buckets(runs),
            "reservations": reservation_timeline(runs),
        }
    if supplied := [run for run in runs if run.record.supply is not None]:
        pictures["power"] = power_over_time(supplied)
    if powered := [run for run in runs if run.record.energy is not None and len(run.record.host_states.time)]:
        pictures["energy"] = hosts_and_power(powered, platform)
    if trainings:
        pictures["learning"] = learning_curves(trainings)
    suffix = paper().suffix
    common = {folder / f"{name}{suffix}": shown for name, shown in pictures.items()}
    write_files({path: [shown.drawn(suffix)] for path, shown in common.items()})
    charts = [folder / f"schedule-{file_name(run.name)}{suffix}" for run in runs]
    for run, path in zip(runs, charts, strict=True):
        draw_schedule(run.record.jobs, run.record.nb_hosts, path, run.name, run.first, run.clock)
    names = [training.name for training in trainings]
    files = [path.name for path in (*common, *charts)]
    write_files({folder / REPORT: write_report(runs, list(common.values()), names, files, platform, command)})
    for name in older.difference(files):
        (folder / Path(name).name).unlink(missing_ok=True)
    return [*common, *charts, folder / REPORT]


# The page of a search for settings.

_OF_A_SEARCH = (
    "The trials were judged by jobs that they were learned from: what the best one is worth, decision evaluate and "
    "decision gates say on others.",
    "A training's result depends on its seed, too: train the best settings again with --seeds before you trust them.",
)


def write_search_report(folder: Path, trials: Sequence[SearchTrial], space: Space, command: str = "") -> Path:
    """Write ``report.html`` and the picture ``search`` of the trials below a folder.

    Raises:
        ConfigError: if a file cannot be written, or no trial is finished.
    """
    best, shown = best_trial(trials), search_picture(trials, space)
    value = f"{judged_by(trials).replace('_', ' ')} {best.judged[judged_by(trials)]:,.6g}"
    lead = f"Best: trial {best.number} of {len(trials)}, {value}: <code>{html.escape(best.changes)}</code>"
    suffix = ".png" if paper().suffix == ".png" else ".svg"
    rows = table_rows(trials)
    refused = any(row["reason"] for row in rows)
    names = [name for name in rows[0] if name != "folders" and (refused or name != "reason")]  # all are in the CSV
    cells: list[list[Cell | str]] = []
    for row in rows:
        texts = []
        for name in names:
            each = row[name]
            if isinstance(each, float):
                texts.append(Cell("-" if math.isnan(each) else f"{each:,.6g}", row["trial"] == best.number))
            else:
                texts.append(Cell(f"{each:,}" if name == "steps" else str(each)))
        cells.append([*texts])
    headers = [html.escape(name).replace("validation_", "validation<br>").replace("_", " ") for name in names]
    parts = [
        f'<p class="lead">{lead}</p>',
        section("search", "Trials", embedded(shown, suffix)),
        section("table", "Each trial", table(headers, cells, "search", values=rows)),
        section("notes", "What this does not say", bullets(_OF_A_SEARCH, "caveats")),
    ]
    title = f"A search of {len(trials)} trials"
    picture = folder / f"search{paper().suffix}"
    write_files({picture: [shown.drawn(paper().suffix)], folder / REPORT: [page(title, parts, command)]})
    return folder / REPORT


# The page of a comparison, and its pictures as files.


def write_comparison_report(folder: Path) -> Path:
    """Write ``report.html`` of the comparison in a folder, to the same folder.

    Raises:
        InputError: if the folder has no comparison.
        ConfigError: if the page cannot be written.
    """
    comparison = read_comparison(folder)
    # with files in the names of policies without their folders, if that tells all apart
    names = {row.contender: without_folders(row.contender) for row in comparison.rows}
    if len(set(names.values())) == len(names):
        rows, outcomes = (
            [replace(each, contender=names.get(each.contender, each.contender)) for each in some]
            for some in (comparison.rows, comparison.outcomes)
        )
        baseline = names.get(comparison.baseline, comparison.baseline)
        comparison = replace(comparison, rows=rows, outcomes=outcomes, baseline=baseline)
    setup, number = comparison.setup, len({row.contender for row in comparison.rows})
    title = f"{number} policies compared, baseline {comparison.baseline}"
    made = page(title, _parts(comparison), setup.get("command", ""), setup.get("date", ""))
    write_files({folder / REPORT: [made]})
    return folder / REPORT


def write_comparison_pictures(folder: Path) -> list[Path]:
    """Write the page's pictures as files, ``METRIC-WORKLOAD`` in the paper's format, to the same folder.

    Raises:
        InputError: if the folder has no comparison.
        ConfigError: if a file cannot be written.
    """
    suffix = paper().suffix
    figures = {
        folder / f"{metric}-{workload.replace('/', '-')}{suffix}": draw_rows(rows, _unit(metric, workload)).figure
        for metric, workload, rows in drawn_tables(read_comparison(folder))
    }
    write_files({path: [drawn(figure, suffix)] for path, figure in figures.items()})
    return list(figures)


def _unit(metric: str, workload: str) -> str:
    return "multiple of the baseline's" if workload == ALL else metric_named(metric).unit


def drawn_tables(comparison: PolicyComparison) -> list[tuple[str, str, list[Row]]]:
    """The tables that are drawn: none of single runs, which have no intervals."""
    return [] if comparison.single else tables(comparison)


def _parts(comparison: PolicyComparison) -> Iterator[str]:
    for workload, names, texts in at_a_glance(comparison) if comparison.judged or comparison.single else ():
        heads = ["policy", *(f"{name.replace('_', ' ')} {metric_named(name).unit}".strip() for name in names)]
        found: dict[str, dict[str, object]] = {}  # the scores of each policy, for programs
        for row in comparison.rows:
            if row.workload == workload:
                found.setdefault(row.contender, {"policy": row.contender})[row.metric] = row.score.value
        known = dict.fromkeys(name for scores in found.values() for name in scores)
        values = [{name: scores.get(name, "") for name in known} for scores in found.values()]
        yield section(f"all-{workload}", workload, table(heads, texts, workload, values=values))
    for number, (metric, workload, rows) in enumerate(drawn_tables(comparison)):
        picture = embedded(draw_rows(rows, _unit(metric, workload)), ".svg")
        columns = [name.removeprefix(">") for name in headers(rows)]
        listed = table(columns, map(cells, rows), f"{metric}-{workload}", values=map(row_values, rows))
        yield section(f"table-{number}", heading(metric, workload), f"{picture}\n{listed}")
    policies = dict.fromkeys(row.contender for row in comparison.rows)
    for workload in dict.fromkeys(run.workload for run in comparison.outcomes):
        runs = [run for run in comparison.outcomes if run.workload == workload and run.groups]
        groups = {each: mean_figures([run.groups for run in runs if run.contender == each]) for each in policies}
        yield from group_sections(groups, workload)
    yield section("reading", "How to read it", bullets(notes(comparison)))
    yield section("setup", "How it was run", fact_table(comparison.setup.items(), "setup"))
    defined: list[list[Cell | str]] = []
    for measured in map(metric_named, dict.fromkeys(row.metric for row in comparison.rows)):
        text = definition(measured.name)
        defined.append([measured.name, measured.unit, measured.summary, Cell(text, markup=prose(text))])
    listed = table(("metric", "unit", "what it is", "definition"), defined, "metrics", kind="words")
    yield section("metrics", "What the metrics are", f'{listed}\n<p class="note">{prose(symbols())}</p>')
