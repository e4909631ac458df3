"""The page of a forecast of starts: a bar for each job that waits, on one axis of time."""

import html
import math
from pathlib import Path
from typing import TYPE_CHECKING

from decision.files.text import write_files
from decision.forecasts.words import clock_words, span

from .pages import Cell, bullets, page, section, table

if TYPE_CHECKING:
    from decision.forecasts.answer import JobStart, Starts

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
    made = page(title, _parts(starts, zero), command)
    if again:
        made = made.replace(b"<head>", f'<head>\n<meta http-equiv="refresh" content="{_EACH}">'.encode(), 1)
    write_files({path: [made]})


def _parts(starts: "Starts", zero: float | None) -> list[str]:
    if not starts.jobs:
        return [f'<p class="lead">{html.escape("; ".join(starts.notes))}</p>']
    shares = [f"{100 * share:g} %" for share in starts.jobs[0].by]
    lead = (
        f"{len(starts.jobs)} jobs wait. A bar goes from the time by which a job has started in {shares[0]} of the "
        f"cases to that of {shares[-1]}; its mark is the middle."
    )
    by = f"{starts.calibrated_by:,} forecasts of earlier moments" if starts.calibrated_by else "forecasts of other logs"
    notes = [f"{starts.futures} futures, calibrated by {by}", *starts.notes]
    return [
        f'<p class="lead">{html.escape(lead)}</p>',
        section("jobs", "Jobs", _table(starts, zero)),
        section("unknown", "What this does not know", bullets(notes, "caveats")),
    ]


def _table(starts: "Starts", zero: float | None) -> str:
    longest = max((t - starts.at for job in starts.jobs for t in job.by.values() if math.isfinite(t)), default=3600.0)
    marks = [mark for mark in _MARKS if mark <= longest] or [0.0]
    chance = [] if starts.before is None else [f"before {html.escape(clock_words(starts.before, starts.at, zero))}"]
    held = any(job.held_by for job in starts.jobs)
    headers = [
        "job",
        "size",
        "limit",
        "waited",
        _axis(marks, longest),
        "middle",
        *chance,
        *(["held by"] if held else []),
    ]
    headers.append("not known")
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
    """On one line."""
    return text.replace(" ", "\u00a0")


def _place(seconds: float, longest: float) -> float:
    """Pixels from the left, where times are stretched less and less."""
    return _WIDTH * math.asinh(max(0.0, seconds) / _STRETCHED) / math.asinh(max(longest, 1.0) / _STRETCHED)


def _axis(marks: list[float], longest: float) -> str:
    texts, last = list[str](), -100.0
    for mark in marks:
        at = _place(mark, longest)
        if not texts or (at - last >= 52 and at <= _WIDTH - 20):
            words = "now" if mark == 0 else f"+{span(mark)}"
            texts.append(f'<text x="{at:.0f}" y="12" font-size="11" fill="currentColor">{words}</text>')
            last = at
    return f'<svg width="{_WIDTH}" height="16" role="img" aria-label="time">{"".join(texts)}</svg>'


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
