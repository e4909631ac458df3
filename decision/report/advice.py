"""The page of an advice: what to do, how policies stand, and what the log cannot say."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from decision.experiments.comparison import rounded
from decision.experiments.metric_list import METRICS
from decision.experiments.statistics import Estimate
from decision.files.text import write_files
from decision.report.plots.results import advice_pictures, unit_of

from .pages import Cell, bullets, embedded, fact_table, group_sections, page, section, table

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
    write_files({path: [page(title, _parts(advice, metrics, standings), command)]})
    return path


def _parts(advice: Any, metrics: Sequence[str], standings: Sequence[str]) -> list[str]:
    parts = [f'<p class="lead">{html.escape(advice.sentence)}</p>']
    parts.append(section("policies", "Policies", _table(advice, metrics, standings)))
    if lines := [*(each.text() for each in advice.not_simulated), *filter(None, [advice.better])]:
        left_out = bullets(lines, "caveats")
        parts.append(section("not-simulated", "What the log has and was not simulated", left_out))
    parts.append(section("cannot", "What this log cannot say", bullets(advice.cannot, "caveats")))
    for name, shown in advice_pictures(advice).items():
        parts.append(section(name, _TITLES[name], embedded(shown, ".svg")))
    parts += group_sections(advice.groups)
    parts.append(section("log", "The log", fact_table(_facts(advice.log), "log")))
    return parts


def _table(advice: Any, metrics: Sequence[str], standings: Sequence[str]) -> str:
    unit, unit_name = unit_of(advice)
    scales = {
        name: (1 / unit, unit_name) if METRICS[name].unit == "s" else (1.0, METRICS[name].unit) for name in metrics
    }
    heads = [f"{name.replace('_', ' ')}<br>{scales[name][1]}".removesuffix("<br>") for name in metrics]
    rows = []
    for row, standing in zip(advice.rows, standings, strict=True):
        texts = [
            rounded(Estimate(*(scales[name][0] * each for each in row.metrics[name])))[0]
            if name in row.metrics
            else "-"
            for name in metrics
        ]
        advised = row.policy == advice.policy
        rows.append([Cell(text, advised) for text in (row.policy, *texts, f"{max(row.longest_wait):.2f}", standing)])
    values = [_values(row, metrics, standing) for row, standing in zip(advice.rows, standings, strict=True)]
    headers = ["policy", *heads, "longest wait,<br>times at most", ""]
    return table(headers, rows, "policies", values=values)


def _values(row: Any, metrics: Sequence[str], standing: str) -> dict[str, object]:
    """A row for programs, in each metric's own unit."""
    found: dict[str, object] = {"policy": row.policy}
    for name in metrics:
        each = row.metrics.get(name)
        three = ("", "", "") if each is None else each
        found |= dict(zip((name, f"{name}_low", f"{name}_high"), three, strict=True))
    return found | {"longest_wait_times": max(row.longest_wait), "standing": standing}


def _facts(log: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known of the log, a line each."""
    names = {
        "begin": "first submission, by the machine's clock",
        "counted": "jobs that count",
        "not_counted": "jobs that do not count",
        "shake": "submissions move by up to, s",
        "blocks": "blocks of time",
    }
    return [
        (
            names.get(name, name.replace("_", " ")),
            value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}",
        )
        for name, value in log.items()
        if value
    ]
