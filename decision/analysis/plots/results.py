"""Pictures of results: a comparison in one metric on one workload, and learning curves."""

import textwrap
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from ..comparison import Row, Verdict
from ..curves import LearningCurve, on_common_steps
from ..statistics import Estimate
from .figures import new_figure
from .schedules import LOOKS

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


_ACROSS = 2  # panels in a row
_FEW = 30  # values up to which each has a dot


class _Panel(NamedTuple):
    """A column of the curves."""

    column: str
    title: str
    scale: float = 1.0


_PANELS = (
    _Panel("reward", "return: mean reward of a step"),
    _Panel("waiting_time", "mean waiting time (s)"),
    _Panel("queue_length", "queue (jobs, time average)"),
    _Panel("utilization", "utilization (%)", 100.0),
    _Panel("entropy", "entropy of the policy (nats)"),
)


def learning_curves(trainings: Sequence[LearningCurve]) -> Figure:
    """A panel for each quantity that some training has, over environment steps.

    Several seeds are one line, their mean, in a band from the lowest to the highest of them.
    """
    panels = [panel for panel in _PANELS if any(_has(training, panel) for training in trainings)]
    down = -(-len(panels) // _ACROSS)
    figure = new_figure(11, 0.8 + 2.6 * down)
    every = list(figure.subplots(down, _ACROSS, sharex=True, squeeze=False).flat)
    for axes, panel in zip(every, panels, strict=False):
        _draw_panel(axes, panel, trainings)
    for axes in every[len(panels) :]:
        axes.remove()
    for axes in every[: len(panels)][-_ACROSS:]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("environment steps")
    if any(len(training.seeds) > 1 for training in trainings):
        figure.suptitle("several seeds: mean, lowest and highest, as far as all of them got", fontsize=10)
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", frameon=False, ncols=3)
    return figure


def _has(training: LearningCurve, panel: _Panel) -> bool:
    return len(on_common_steps(training.seeds, panel.column)[0]) > 0


def _draw_panel(axes: Axes, panel: _Panel, trainings: Sequence[LearningCurve]) -> None:
    for training, (style, color) in zip(trainings, cycle(LOOKS), strict=False):
        steps, values = on_common_steps(training.seeds, panel.column)
        values = values * panel.scale
        marker = "." if len(steps) <= _FEW else ""
        axes.plot(
            steps, values.mean(axis=0), linestyle=style, color=color, marker=marker, linewidth=1.2, label=training.name
        )
        if len(values) > 1:
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2, linewidth=0)
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0.01)
