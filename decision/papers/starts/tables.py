"""The table of forecasts, and a picture of twenty of them against what happened."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from decision.forecasts.judge import COVERED, MEDIAN, WAIT_CLASSES, Score, score_quantiles
from decision.forecasts.words import span
from decision.papers.campaign import ResultTable
from decision.report.plots.figures import BLUE, RED, Picture, new_figure, save, styled

from .runs import OURS, RAW, LogForecasts

_COLUMNS = ("forecast", "jobs", "50 %", "80 %", "95 %", "pinball loss, s", "median error, s", "width of 80 %, s")
_MARKS = (0, 5, 10, 30, 60, 120, 360, 1440, 4320, 10_080)  # minutes
_SHOWN = 20  # forecasts in the picture


def result_tables(results: Sequence[LogForecasts]) -> tuple[ResultTable, ...]:
    """A table of each log: who forecast it how well; the futures also by how long jobs still waited."""
    tables = []
    for log in results:
        rows = []
        for name, quantiles in log.quantiles.items():
            known = log.judged & np.isfinite(quantiles).all(1)
            if known.any():
                is_point = bool((quantiles[known][:, 0] == quantiles[known][:, -1]).all())
                rows.append(_row(name, score_quantiles(log.cases, quantiles, known), is_point))
        for kind in WAIT_CLASSES:
            among = log.judged & log.cases.among(kind)
            if among.any():
                rows.append(_row(f"{OURS}: {kind}", score_quantiles(log.cases, log.quantiles[OURS], among), False))
        tables.append(ResultTable(log.name, _COLUMNS, rows))
    return tuple(tables)


def _row(name: str, found: Score, is_point: bool) -> list[str]:
    covered = ["" if is_point else _with_ends(found.covered[each], 100, " %") for each in COVERED]
    losses = [_with_ends(each, 1, "") for each in (found.pinball, found.error)]
    return [name, f"{found.cases:,}", *covered, *losses, "" if is_point else f"{found.width:,.0f}"]


def _with_ends(found: tuple[float, float, float], scale: float, unit: str) -> str:
    value, low, high = (scale * each for each in found)
    return f"{value:,.0f}{unit} ({low:,.0f}-{high:,.0f})"


_GOALS = {80: 0.04, 95: 0.03}  # by percent: how far the share of intervals that hold may be off


def sentence(results: Sequence[LogForecasts]) -> str:
    """How the futures stand among all, over the logs."""
    held = agrees = lowest = 0
    for each in results:
        others = {name: q for name, q in each.quantiles.items() if name != RAW}
        known = each.judged & np.all([np.isfinite(q).all(1) | ~np.isfinite(q).any() for q in others.values()], axis=0)
        scores = {
            name: score_quantiles(each.cases, q, known) for name, q in others.items() if np.isfinite(q[known]).all()
        }
        covered = score_quantiles(each.cases, each.quantiles[OURS], each.judged).covered
        held += all(abs(covered[percent][0] - percent / 100) <= off for percent, off in _GOALS.items())
        agrees += all(covered[percent][1] <= percent / 100 <= covered[percent][2] for percent in _GOALS)
        lowest += scores[OURS].pinball[0] <= min(found.pinball[0] for found in scores.values())
    return (
        f"intervals of 80 % within 4 and of 95 % within 3 points on {held} of {len(results)} logs, and inside "
        f"the intervals of what was measured on {agrees}; the lowest pinball loss on {lowest}"
    )


def save_picture(results: LogForecasts, path: Path) -> None:
    """Twenty forecasts of a log against what happened."""
    save(twenty_forecasts(results).figure, path)


@styled
def twenty_forecasts(results: LogForecasts) -> Picture:
    """Twenty forecasts, spread evenly over the judged ones, against what happened."""
    rows = np.flatnonzero(results.judged)
    rows = rows[np.linspace(0, len(rows) - 1, min(_SHOWN, len(rows))).astype(int)]
    quantiles, left = results.quantiles[OURS][rows] / 60, results.cases.left[rows] / 60
    figure = new_figure(34)
    axes = figure.subplots()
    places = np.arange(len(rows))
    for (low, high), width in ((COVERED[95], 1.5), (COVERED[80], 5)):
        axes.hlines(places, quantiles[:, low], quantiles[:, high], color=BLUE, linewidth=width, alpha=0.55)
    axes.plot(quantiles[:, MEDIAN], places, "|", color=BLUE, markersize=9)
    axes.plot(left, places, "x", color=RED, markersize=6)
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(left=0)
    marks = [mark for mark in _MARKS if mark <= axes.get_xlim()[1]]
    axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axes.set_xlabel("minutes from the forecast to the start")
    axes.set_yticks(places, [f"{span(waited)}" for waited in results.cases.waited[rows].tolist()])
    axes.set_ylabel("waited so far")
    axes.invert_yaxis()
    held = int(((left >= quantiles[:, COVERED[80][0]]) & (left <= quantiles[:, COVERED[80][1]])).sum())
    caption = (
        f"Twenty forecasts of {results.name}, spread over all that were judged: lines are intervals of 95 %, bars of "
        f"80 %, marks the middle, crosses what happened. {held} of {len(rows)} crosses are on the bars."
    )
    alt = f"Bars from quantile 0.1 to 0.9 with crosses, {held} of {len(rows)} on the bars."
    return Picture(figure, caption, alt)
