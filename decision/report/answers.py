"""Pages that answer one question: which policy suits a log, and when waiting jobs start."""

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decision.experiments.comparison import rounded
from decision.experiments.metric_list import METRICS
from decision.experiments.statistics import Estimate
from decision.files.text import write_files
from decision.forecasts.words import clock_words, span
from decision.report.plots.results import advice_pictures, unit_of

from .pages import Cell, bullets, embedded, fact_table, group_sections, page, section, table

if TYPE_CHECKING:
    from decision.forecasts.answer import JobStart, Starts

ADVICE_PAGE = "advice.html"
_TITLES = {"plane": "What was tried", "classes": "Who waits", "weeks": "Waits over time", "load": "The log's load"}


def write_advice_page(
    folder: Path, advice: Any, title: str, metrics: Sequence[str], standings: Sequence[str], command: str = ""
) -> Path:
    """Write ``advice.html``, a page that works without a network.

    Args:
        folder: where.
        advice: a `decision.experiments.advise.Advice`.
        title: what to do.
        metrics: the names of those in the table.
        standings: of each row of the advice, how it stands: advised, or above the bound.
        command: what the user typed, if it was a command.

    Raises:
        ConfigError: if it cannot be written.
    """
    path = folder / ADVICE_PAGE
    parts = [f'<p class="lead">{html.escape(advice.sentence)}</p>']
    parts.append(section("policies", "Policies", _policies(advice, metrics, standings)))
    if lines := [*(each.text() for each in advice.not_simulated), *filter(None, [advice.better])]:
        left_out = bullets(lines, "caveats")
        parts.append(section("not-simulated", "What the log has and was not simulated", left_out))
    parts.append(section("cannot", "What this log cannot say", bullets(advice.cannot, "caveats")))
    for name, shown in advice_pictures(advice).items():
        parts.append(section(name, _TITLES[name], embedded(shown, ".svg")))
    parts += group_sections(advice.groups)
    facts = []
    for name, value in advice.log.items():
        number = value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        if value:
            facts.append((_NAMES.get(name, name.replace("_", " ")), number))
    parts.append(section("log", "The log", fact_table(facts, "log")))
    write_files({path: [page(title, parts, command)]})
    return path


_NAMES = {  # of what is known of the log
    "begin": "first submission, by the machine's clock",
    "counted": "jobs that count",
    "not_counted": "jobs that do not count",
    "shake": "submissions move by up to, s",
    "blocks": "blocks of time",
}


def _policies(advice: Any, metrics: Sequence[str], standings: Sequence[str]) -> str:
    unit, unit_name = unit_of(advice)
    scales = {
        name: (1 / unit, unit_name) if METRICS[name].unit == "s" else (1.0, METRICS[name].unit) for name in metrics
    }
    heads = [f"{name.replace('_', ' ')}<br>{scales[name][1]}".removesuffix("<br>") for name in metrics]
    rows, values = [], []
    for row, standing in zip(advice.rows, standings, strict=True):
        texts = [
            rounded(Estimate(*(scales[name][0] * each for each in row.metrics[name])))[0]
            if name in row.metrics
            else "-"
            for name in metrics
        ]
        advised = row.policy == advice.policy
        rows.append([Cell(text, advised) for text in (row.policy, *texts, f"{max(row.longest_wait):.2f}", standing)])
        found: dict[str, object] = {"policy": row.policy}  # for programs, in each metric's own unit
        for name in metrics:
            found |= dict(zip((name, f"{name}_low", f"{name}_high"), row.metrics.get(name, ("", "", "")), strict=True))
        values.append(found | {"longest_wait_times": max(row.longest_wait), "standing": standing})
    headers = ["policy", *heads, "longest wait,<br>times at most", ""]
    return table(headers, rows, "policies", values=values)


# The page of a forecast of starts: a bar for each job that waits, on one axis of time.

_WIDTH, _HEIGHT = 420, 18  # of a bar's place, in pixels
_STRETCHED = 600.0  # seconds: later times are drawn closer together
_MARKS = (0.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 3 * 86_400.0, 7 * 86_400.0, 28 * 86_400.0)
_EACH = 60  # seconds after which a page that is watched is loaded again


def write_starts_page(path: Path, starts: "Starts", zero: float | None, command: str = "", again: bool = False) -> None:
    """Write a page that works without a network.

    Args:
        path: the file.
        starts: the forecast.
        zero: seconds since 1970 when the log began; None where that is unknown.
        command: what the user typed, if it was a command.
        again: whether the page is written again and again, and is to be loaded so.

    Raises:
        ConfigError: if it cannot be written.
    """
    title = f"When jobs start, as seen at {clock_words(starts.at, None, zero)}"
    parts = [f'<p class="lead">{html.escape("; ".join(starts.notes))}</p>']
    if starts.jobs:
        shares = [f"{100 * share:g} %" for share in starts.jobs[0].by]
        lead = (
            f"{len(starts.jobs)} jobs wait. A bar goes from the time by which a job has started in {shares[0]} of the "
            f"cases to that of {shares[-1]}; its mark is the middle."
        )
        by = f"{starts.calibrated_by:,} forecasts of earlier moments"
        by = by if starts.calibrated_by else "forecasts of other logs"
        notes = [f"{starts.futures} futures, calibrated by {by}", *starts.notes]
        parts = [
            f'<p class="lead">{html.escape(lead)}</p>',
            section("jobs", "Jobs", _jobs(starts, zero)),
            section("unknown", "What this does not know", bullets(notes, "caveats")),
        ]
    made = page(title, parts, command)
    if again:
        made = made.replace(b"<head>", f'<head>\n<meta http-equiv="refresh" content="{_EACH}">'.encode(), 1)
    write_files({path: [made]})


def _jobs(starts: "Starts", zero: float | None) -> str:
    longest = max((t - starts.at for job in starts.jobs for t in job.by.values() if math.isfinite(t)), default=3600.0)
    marks = [mark for mark in _MARKS if mark <= longest] or [0.0]
    chance = [] if starts.before is None else [f"before {html.escape(clock_words(starts.before, starts.at, zero))}"]
    held = any(job.held_by for job in starts.jobs)
    texts, last = list[str](), -100.0  # of the axis
    for mark in marks:
        at = _place(mark, longest)
        if not texts or (at - last >= 52 and at <= _WIDTH - 20):
            words = "now" if mark == 0 else f"+{span(mark)}"
            texts.append(f'<text x="{at:.0f}" y="12" font-size="11" fill="currentColor">{words}</text>')
            last = at
    axis = f'<svg width="{_WIDTH}" height="16" role="img" aria-label="time">{"".join(texts)}</svg>'
    headers = ["job", "size", "limit", "waited", axis, "middle", *chance, *(["held by"] if held else []), "not known"]
    rows = []
    for job in starts.jobs:
        middle = min(job.by, key=lambda share: abs(share - 0.5))
        row: list[Cell | str] = [job.id.partition("!")[2] or job.id, f"{job.size:,}", _together(span(job.limit))]
        row += [_together(span(starts.at - job.submit)), Cell("", markup=_bar(job, starts.at, longest, marks, zero))]
        row.append(_together(clock_words(job.by[middle], starts.at, zero)))
        row += [] if job.chance is None else [f"{100 * job.chance:.0f} %"]
        rows.append([*row, *([job.held_by] if held else []), "; ".join(job.unknown)])
    return table(headers, rows, "starts", kind="words")


def _together(text: str) -> str:
    """The texts on one line."""
    return text.replace(" ", "\u00a0")


def _place(seconds: float, longest: float) -> float:
    """Pixels from the left, where times are stretched less and less."""
    return _WIDTH * math.asinh(max(0.0, seconds) / _STRETCHED) / math.asinh(max(longest, 1.0) / _STRETCHED)


def _bar(job: "JobStart", at: float, longest: float, marks: list[float], zero: float | None) -> str:
    times = list(job.by.values())
    ends = [_place(min(t - at, longest), longest) for t in (times[0], times[-1])]
    middle = job.by[min(job.by, key=lambda share: abs(share - 0.5))]
    words = ", ".join(f"{100 * share:g} % by {clock_words(t, at, zero)}" for share, t in job.by.items())
    lines = "".join(
        f'<line x1="{_place(m, longest):.1f}" x2="{_place(m, longest):.1f}" y1="0" y2="{_HEIGHT}" stroke="#8884"/>'
        for m in marks
    )
    bar = f'<rect x="{ends[0]:.1f}" y="4" width="{max(2.0, ends[1] - ends[0]):.1f}" height="10" rx="2" fill="#7fb2dd"/>'
    mark = ""
    if math.isfinite(middle):
        x = min(_place(middle - at, longest), _WIDTH - 2)
        mark = f'<rect x="{x - 1:.1f}" y="2" width="3" height="14" fill="#1f4e79"/>'
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{html.escape(words)}">'
        f"<title>{html.escape(words)}</title>{lines}{bar}{mark}</svg>"
    )
