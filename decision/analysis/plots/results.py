"""Pictures of results: a comparison in one metric on one workload, and learning curves."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from ..comparison import Row, Verdict
from ..comparison_text import figure as short
from ..curves import LearningCurve, on_common_steps
from ..statistics import Estimate
from .axes import PLAIN, logarithmic
from .figures import DARK, GREY, Look, headline, looks, new_figure, outer_legend, panels_in_row, styled, wrapped
from .paper import paper
from .pictures import Picture, facts_of, listed

_APART: Verdict = "not comparable"
COLORS: dict[Verdict, str] = {"better": "#117733", "worse": "#cc3311", "open": GREY, "baseline": DARK, _APART: GREY}
MARKERS: dict[Verdict, str] = {"better": "^", "worse": "v", "open": "o", "baseline": "D", _APART: "x"}
_MEANINGS: dict[Verdict, str] = {
    "better": "better than the baseline",
    "worse": "worse",
    "open": "no significant difference",
    "baseline": "baseline",
    _APART: "not comparable",
}
_BAND = "#eef2f7"  # behind the baseline
_WIDE = 30.0  # the largest bound over the smallest, from which on a scale is logarithmic
_BESIDE = 40.0  # ems: the width from which on there are two panels in a row
_LONGEST = 20  # ems of a policy's name in a line
_MEGA = 1e6
_LEAST_CHANGE = 0.1  # percent, that an axis of changes is wide at least


@styled
def draw_rows(rows: Sequence[Row], unit: str) -> Picture:
    """The rows' scores on the left, on the right their probabilities of improvement or changes: dots, and intervals.

    Args:
        rows: one for each policy, of the same metric and workload.
        unit: of the scores, may be empty; joules are drawn in MJ.
    """
    names = [wrapped(row.contender, min(_LONGEST, 0.35 * paper().columns), "small") for row in rows]
    height = 5 + sum(1.4 + 0.9 * (1 + name.count("\n")) for name in names)
    judged, beside = rows[0].improvement is None, paper().columns >= _BESIDE
    first, second = ("Left", "Right") if beside else ("Above", "Below")
    figure, scores, chances = _two_panels(height, beside)
    for at, row in enumerate(rows):
        _draw_row(scores, chances, at, row, judged)
    for axes in (scores, chances):
        axes.set_yticks(range(len(rows)), names)
        axes.grid(axis="x")
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
    scores.set_ylim(len(rows) - 0.5, -0.5)
    _scale_scores(scores, rows, unit)
    if not judged:
        chances.set_xlim(-0.03, 1.03)
    low, high = chances.get_xlim()
    if judged and high - low < _LEAST_CHANGE:  # what differs by less than a copy's rounding is no change
        chances.set_xlim(-_LEAST_CHANGE / 2, _LEAST_CHANGE / 2)
    room = 0.28 if beside else 0.35
    left, right, beside_text = _WORDS[judged]
    chances.set_xlabel(wrapped(beside_text, paper().columns * room))
    shown = [verdict for verdict in _MEANINGS if any(row.verdict == verdict for row in rows)]
    outer_legend(figure, [_sign(verdict) for verdict in shown])
    return Picture(
        figure,
        f"{first}: {left}. {second}: {right}. Bars are 95 % intervals. A triangle that points up means better than "
        "the baseline, one that points down worse, a circle no significant difference; the diamond is the baseline."
        + (" The cross is what really happened, which is not comparable." if _APART in shown else ""),
        facts_of(
            ("Means" if judged else "Interquartile means") + (f" in {unit}" if unit else ""),
            {r.contender: f"{short(r.score.value)} ({r.verdict})" for r in rows},
        ),
    )


def draw_scores(axes: Axes, rows: Sequence[Row], unit: str) -> None:
    """Draw the rows' scores into axes of somebody else's figure, in whose style it is: dots, and 95 % intervals.

    Args:
        axes: where.
        rows: as of `draw_rows`.
        unit: likewise.
    """
    for at, row in enumerate(rows):
        _draw(axes, at, row.score, row.verdict)
        if row.verdict == "baseline":
            axes.axhspan(at - 0.5, at + 0.5, color=_BAND, zorder=0)
            axes.axvline(row.score.value, color=COLORS["baseline"], linewidth=0.8, linestyle="--", zorder=1)
    axes.set_yticks(range(len(rows)), [row.contender for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    _scale_scores(axes, rows, unit)


_WORDS = {  # of runs of a part, and of whole logs: what is on either side, and the second axis
    False: (
        "interquartile mean of the runs",
        "probability that a run is better than one of the baseline's",
        "probability that a run is better than the baseline's",
    ),
    True: ("mean over shaken copies of the log", "change against the baseline", "change against the baseline, %"),
}


def _two_panels(height: float, beside: bool) -> tuple[Figure, Axes, Axes]:
    """For the scores, and for what is beside or below them; `height` is that of the rows."""
    if beside:
        figure = new_figure(6 + height)
        return figure, *figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    figure = new_figure(8 + 2 * height)
    return figure, *figure.subplots(2, 1, sharey=True)


def _draw_row(scores: Axes, chances: Axes, at: int, row: Row, judged: bool) -> None:
    """What a row says, at a height."""
    _draw(scores, at, row.score, row.verdict)
    beside = _in_percent(row.change) if judged else row.improvement
    if row.verdict == "baseline":
        _mark_baseline(scores, chances, at, row)
    elif row.verdict != _APART and beside is not None:
        _draw(chances, at, beside, row.verdict)


def _in_percent(change: Estimate | None) -> Estimate | None:
    return None if change is None else Estimate(*(100 * each for each in change))


def _sign(verdict: Verdict) -> Line2D:
    return Line2D([], [], color=COLORS[verdict], marker=MARKERS[verdict], linestyle="", label=_MEANINGS[verdict])


def _draw(axes: Axes, at: int, estimate: Estimate, verdict: Verdict) -> None:
    color = COLORS[verdict]
    axes.plot([estimate.low, estimate.high], [at, at], color=color, linewidth=4, alpha=0.35, solid_capstyle="butt")
    axes.plot([estimate.value], [at], MARKERS[verdict], color=color, markersize=5)


def _mark_baseline(scores: Axes, chances: Axes, at: int, row: Row) -> None:
    """A band behind it, and a line at what the others are compared with."""
    for axes, middle in ((scores, row.score.value), (chances, 0.0 if row.improvement is None else 0.5)):
        axes.axhspan(at - 0.5, at + 0.5, color=_BAND, zorder=0)
        axes.axvline(middle, color=COLORS["baseline"], linewidth=0.8, linestyle="--", zorder=1)


def _scale_scores(axes: Axes, rows: Sequence[Row], unit: str) -> None:
    if _is_wide(rows):
        logarithmic(axes, "x")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    if unit == "J":
        unit = "MJ"
        axes.xaxis.set_major_formatter(FuncFormatter(lambda joules, _: f"{joules / _MEGA:,.10g}"))
    else:
        axes.xaxis.set_major_formatter(PLAIN)
    low, high = axes.get_xlim()
    if axes.get_xscale() == "linear" and low < high / 2 and min(row.score.low for row in rows) >= 0:
        axes.set_xlim(left=0)
    cut = axes.get_xscale() == "linear" and axes.get_xlim()[0] > 0
    metric = rows[0].metric.replace("_", " ")
    axes.set_xlabel(
        f"{metric}, {'mean' if rows[0].improvement is None else 'interquartile mean'}"
        + (f" ({unit})" if unit else "")
        + ("\nthe axis does not begin at 0" if cut else "")
    )


def _is_wide(rows: Sequence[Row]) -> bool:
    bounds = np.array([row.score for row in rows])
    return bool((bounds > 0).all() and bounds.max() > _WIDE * bounds.min())


_FEW = 30  # values up to which each has a marker
_SPARSE = 12  # markers on a longer curve


class _Panel(NamedTuple):
    """A column of the curves."""

    column: str
    title: str
    scale: float = 1.0


_PANELS = (
    _Panel("validation_waiting_time", "validation: mean waiting time (s)"),
    _Panel("validation_bounded_slowdown", "validation: mean bounded slowdown"),
    _Panel("reward", "return: mean reward of a step"),
    _Panel("waiting_time", "mean waiting time (s)"),
    _Panel("queue_length", "queue (jobs, time average)"),
    _Panel("utilization", "utilization (%)", 100.0),
    _Panel("entropy", "entropy of the policy (nats)"),
)
_LAST = ("validation_waiting_time", "mean waiting time of the validation, s")  # column, what it is called
_LAST_REWARD = ("reward", "mean reward of a step")  # of trainings by older versions
_BANDS = "several seeds: mean, lowest and highest, as far as all of them got"


@styled
def learning_curves(trainings: Sequence[LearningCurve], note: str = _BANDS) -> Picture:
    """A panel for each quantity that some training has, over environment steps.

    Several seeds are one line, their mean, in a band from the lowest to the highest of them.

    Args:
        trainings: with at least one value.
        note: what is said of several seeds.
    """
    panels = [panel for panel in _PANELS if any(_has(training, panel) for training in trainings)]
    across = panels_in_row(len(panels), 26)
    down = -(-len(panels) // across)
    figure = new_figure(6 + 15 * down + 0.6 * len(trainings))
    every = list(figure.subplots(down, across, sharex=True, squeeze=False).flat)
    for axes, panel in zip(every, panels, strict=False):
        _draw_panel(axes, panel, trainings)
    for axes in every[len(panels) :]:
        axes.remove()
    for axes in every[: len(panels)][-across:]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("environment steps")
    several = any(len(training.seeds) > 1 for training in trainings)
    if several:
        headline(figure, note)
    outer_legend(figure, every[0].get_legend_handles_labels()[0], below=True)
    shown, what = _LAST if any(_has(training, _PANELS[0]) for training in trainings) else _LAST_REWARD
    last = {training.name: f"{_last(training, shown):.3g}" for training in trainings}
    return Picture(
        figure,
        "Learning curves over environment steps." + (f" A line with a band is {note}." if several else ""),
        facts_of(f"Learning curves of {listed([training.name for training in trainings])}. Last {what}", last),
    )


def _last(training: LearningCurve, column: str) -> float:
    values = on_common_steps(training.seeds, column)[1]
    return float(values[:, -1].mean()) if values.size else float("nan")


def _has(training: LearningCurve, panel: _Panel) -> bool:
    return len(on_common_steps(training.seeds, panel.column)[0]) > 0


def _draw_panel(axes: Axes, panel: _Panel, trainings: Sequence[LearningCurve]) -> None:
    for training, look in zip(trainings, looks(), strict=False):
        steps, values = on_common_steps(training.seeds, panel.column)
        values = values * panel.scale
        _draw_curve(axes, steps, values.mean(axis=0), look, training.name)
        if len(values) > 1:
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=look.color, alpha=0.2, linewidth=0)
    axes.set_title(panel.title)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.yaxis.set_major_formatter(PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.02)


def _draw_curve(axes: Axes, steps: np.ndarray, values: np.ndarray, look: Look, name: str) -> None:
    every = 1 if len(steps) <= _FEW else len(steps) // _SPARSE
    axes.plot(steps, values, linestyle=look.line, color=look.color, marker=look.marker, markevery=every, label=name)
