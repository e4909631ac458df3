"""The picture of a comparison in one metric on one workload."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .comparison import Row, Verdict
from .plots import new_figure
from .statistics import Estimate

COLORS: dict[Verdict, str] = {"better": "#228833", "worse": "#cc3311", "open": "#777777", "baseline": "#222222"}
_BAND = "#eef2f7"  # behind the baseline
_WIDE = 30.0  # the largest bound over the smallest, from which on a scale is logarithmic
_LONGEST = 34  # letters of a policy's name in a line


def draw_rows(rows: Sequence[Row], unit: str) -> Figure:
    """The rows' scores on the left, their probabilities of improvement on the right: dots, with intervals as bars.

    Args:
        rows: one for each policy, of the same metric and workload.
        unit: of the scores, may be empty.
    """
    figure = new_figure(11, 1.3 + 0.36 * len(rows))
    scores, chances = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    for at, row in enumerate(rows):
        _draw(scores, at, row.score, row.verdict)
        if row.verdict == "baseline":
            _mark_baseline(scores, chances, at, row)
        else:
            _draw(chances, at, row.improvement, row.verdict)
    scores.set_yticks(range(len(rows)), [_wrapped(row.contender) for row in rows])
    scores.set_ylim(len(rows) - 0.5, -0.5)
    if _is_wide(rows):
        scores.set_xscale("log")
    scores.set_xlabel(f"interquartile mean ({unit})" if unit else "interquartile mean")
    chances.set_xlim(-0.03, 1.03)
    chances.set_xlabel("probability that a run is better than the baseline's")
    for axes in (scores, chances):
        axes.grid(axis="x", color="#e8e8e8")
        axes.set_axisbelow(True)
        axes.tick_params(left=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def _wrapped(name: str) -> str:
    return "\n".join(textwrap.wrap(name.replace(",", ", "), _LONGEST, break_on_hyphens=False))


def _draw(axes: Axes, at: int, estimate: Estimate, verdict: Verdict) -> None:
    color = COLORS[verdict]
    axes.plot([estimate.low, estimate.high], [at, at], color=color, linewidth=5, alpha=0.35, solid_capstyle="butt")
    axes.plot([estimate.value], [at], "o", color=color, markersize=6)


def _mark_baseline(scores: Axes, chances: Axes, at: int, row: Row) -> None:
    """A band behind it, and a line at what the others are compared with."""
    for axes, middle in ((scores, row.score.value), (chances, 0.5)):
        axes.axhspan(at - 0.5, at + 0.5, color=_BAND, zorder=0)
        axes.axvline(middle, color=COLORS["baseline"], linewidth=1, linestyle="--", zorder=1)
    chances.text(0.52, at, "baseline", va="center", fontsize=9, color=COLORS["baseline"])


def _is_wide(rows: Sequence[Row]) -> bool:
    bounds = np.array([row.score for row in rows])
    return bool((bounds > 0).all() and bounds.max() > _WIDE * bounds.min())
