"""Pictures of results: a comparison in one metric, learning curves, and where runs' waits and slowdowns differ."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from decision.experiments.comparison import Row, Verdict
from decision.experiments.metrics import bounded_slowdowns, mean, waiting_times
from decision.experiments.results import LearningCurve, NamedRun, on_common_steps
from decision.experiments.statistics import Estimate
from decision.model.dates import DAY
from decision.model.record import Floats, Ints, JobTable
from decision.report.comparison import figure as short
from decision.report.plots import paper

from .figures import (
    BLUE,
    DARK,
    GREY,
    PALE,
    PLAIN,
    RED,
    AxisClock,
    Picture,
    explain,
    facts_of,
    headline,
    listed,
    logarithmic,
    looks,
    name_panel,
    new_figure,
    outer_legend,
    panels_in_row,
    short_duration,
    side_by_side,
    styled,
    wait_unit,
    wrapped,
)

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
    if beside:
        figure = new_figure(6 + height)
        scores, chances = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    else:
        figure = new_figure(8 + 2 * height)
        scores, chances = figure.subplots(2, 1, sharey=True)
    for at, row in enumerate(rows):
        _draw(scores, at, row.score, row.verdict)
        change = row.change and Estimate(*(100 * share for share in row.change))  # percent
        beside_score = change if judged else row.improvement
        if row.verdict == "baseline":
            for axes, middle in ((scores, row.score.value), (chances, 0.0 if row.improvement is None else 0.5)):
                axes.axhspan(at - 0.5, at + 0.5, color=_BAND, zorder=0)
                axes.axvline(middle, color=COLORS["baseline"], linewidth=0.8, linestyle="--", zorder=1)
        elif row.verdict != _APART and beside_score is not None:
            _draw(chances, at, beside_score, row.verdict)
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
    signs = [Line2D([], [], color=COLORS[v], marker=MARKERS[v], linestyle="", label=_MEANINGS[v]) for v in shown]
    outer_legend(figure, signs)
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


def _draw(axes: Axes, at: int, estimate: Estimate, verdict: Verdict) -> None:
    color = COLORS[verdict]
    axes.plot([estimate.low, estimate.high], [at, at], color=color, linewidth=4, alpha=0.35, solid_capstyle="butt")
    axes.plot([estimate.value], [at], MARKERS[verdict], color=color, markersize=5)


def _scale_scores(axes: Axes, rows: Sequence[Row], unit: str) -> None:
    bounds = np.array([row.score for row in rows])
    if (bounds > 0).all() and bounds.max() > _WIDE * bounds.min():
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
        for training, look in zip(trainings, looks(), strict=False):
            steps, values = on_common_steps(training.seeds, panel.column)
            values = values * panel.scale
            style: dict[str, Any] = {"linestyle": look.line, "color": look.color, "marker": look.marker}
            each = 1 if len(steps) <= _FEW else len(steps) // _SPARSE
            axes.plot(steps, values.mean(axis=0), markevery=each, label=training.name, **style)
            if len(values) > 1:
                low, high = values.min(axis=0), values.max(axis=0)
                axes.fill_between(steps, low, high, color=look.color, alpha=0.2, linewidth=0)
        axes.set_title(panel.title)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_formatter(PLAIN)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0.02)
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
    last = {}
    for training in trainings:
        values = on_common_steps(training.seeds, shown)[1]
        last[training.name] = f"{float(values[:, -1].mean()) if values.size else float('nan'):.3g}"
    return Picture(
        figure,
        "Learning curves over environment steps." + (f" A line with a band is {note}." if several else ""),
        facts_of(f"Learning curves of {listed([training.name for training in trainings])}. Last {what}", last),
    )


def _has(training: LearningCurve, panel: _Panel) -> bool:
    return len(on_common_steps(training.seeds, panel.column)[0]) > 0


# Pictures of where runs differ: waiting times by kind of job, and slowdowns by range.

# From which on, in seconds, and what it is called
_LENGTHS = ((0.0, "< 1 min"), (60.0, "1-10 min"), (600.0, "10-60 min"), (3600.0, "1-6 h"), (21_600.0, "> 6 h"))
_SLOWDOWNS = ((1.0, "1-1.1"), (1.1, "1.1-2"), (2.0, "2-10"), (10.0, "10-100"), (100.0, "100-1000"), (1000.0, "> 1000"))
_SHADES = 1000.0  # the longest mean wait over the one where the colours begin, at most
_COLORS = "YlOrRd"  # from light to dark, in grey too
_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)  # seconds
_DARK_SHARE = 0.6  # of the colours: darker ones have white texts


@styled
def waits_by_size_and_length(runs: Sequence[NamedRun]) -> Picture:
    """Mean waiting time by hosts and runtime, a map for each run on one scale of colours."""
    largest = max(int(run.jobs.size.max()) for run in runs)
    nb_sizes = int(np.ceil(np.log2(largest))) + 1
    cells = [_wait_cells(run.jobs, nb_sizes) for run in runs]
    low, top = _shades([means for means, _ in cells])
    norm = LogNorm(low, top)
    least = max(16, 7 + 2.7 * nb_sizes)
    names = [_size_range(power) for power in range(nb_sizes)]
    figure, panels = side_by_side(len(runs), least, 16)
    across = panels_in_row(len(runs), least)
    for at, ((axes,), run, (means, counts)) in enumerate(zip(panels, runs, cells, strict=True)):
        axes.imshow(np.maximum(means, low), origin="lower", aspect="auto", cmap=_COLORS, norm=norm)
        for row, column in zip(*np.nonzero(counts), strict=True):
            wait = means[row, column]
            color = "white" if wait > 0 and float(norm(wait)) > _DARK_SHARE else DARK
            words = f"{wait / 60:.0f} min" if 60 <= wait < 3570 else short_duration(wait)  # "7.4 min" is too wide
            text = f"{words}\n{counts[row, column]:,}"
            axes.text(column, row, text, ha="center", va="center", fontsize="x-small", color=color)
        axes.set_xticks(range(nb_sizes), names, rotation=45, rotation_mode="anchor", ha="right")
        axes.set_yticks(range(len(_LENGTHS)), [name for _, name in _LENGTHS] if at % across == 0 else [])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        if at % across == 0:
            axes.set_ylabel("runtime")
        axes.tick_params(labelbottom=at + across >= len(runs))
        if at + across >= len(runs):
            axes.set_xlabel("hosts")
        name_panel(axes, run.name, across, 6.0)
    bar = figure.colorbar(
        ScalarMappable(norm, _COLORS),
        ax=[axes for (axes,) in panels],
        label="mean waiting time",
        location="bottom",
        fraction=0.02,
        aspect=60,
        shrink=0.7,
        extend="min" if any((means < low).any() for means, _ in cells) else "neither",
    )
    ticks = [seconds for seconds in _TICKS if low <= seconds <= top]
    bar.set_ticks(ticks, labels=[short_duration(seconds) for seconds in ticks])
    bar.minorticks_off()
    explain(figure, "in each cell: mean waiting time, and below it the number of jobs")
    return Picture(
        figure,
        "Mean waiting time of jobs by their number of hosts and their runtime, on one scale of colours for all runs. "
        "In each cell stand the mean and below it the number of jobs; an empty cell has no job.",
        f"Maps of mean waiting times of {listed([run.name for run in runs])} by size and runtime. "
        + facts_of("Over all jobs", {run.name: short_duration(mean(waiting_times(run.jobs))) for run in runs}),
    )


def _shades(maps: Sequence[Floats]) -> tuple[float, float]:
    """Where the scale of colours begins and ends, seconds: at the positive means, at most `_SHADES` apart."""
    means = np.concatenate([found[found > 0] for found in maps])
    top = max(10.0, float(means.max(initial=0.0)))
    return min(max(float(means.min(initial=top)), top / _SHADES, 1.0), top / 10), top


def _wait_cells(jobs: JobTable, nb_sizes: int) -> tuple[Floats, Ints]:
    """Mean waiting time (seconds, nan where no job is) and number of jobs by runtime and hosts."""
    row = _bucket(jobs.runtime, _LENGTHS)
    column = np.ceil(np.log2(jobs.size)).astype(np.int64)
    cell, shape = row * nb_sizes + column, (len(_LENGTHS), nb_sizes)
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    sums = np.bincount(cell, weights=waiting_times(jobs), minlength=len(counts))
    means = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means.reshape(shape), counts.reshape(shape)


def _size_range(power: int) -> str:
    low, high = 2**power // 2 + 1, 2**power
    return str(high) if low >= high else f"{low}-{high}"


def _bucket(values: Floats, buckets: Sequence[tuple[float, str]]) -> Ints:
    """The number of the last bucket that begins at or below each value."""
    return np.maximum(np.searchsorted([least for least, _ in buckets], values, side="right") - 1, 0)


@styled
def slowdown_buckets(runs: Sequence[NamedRun]) -> Picture:
    """The share of jobs in each range of bounded slowdowns (10 s): a panel for each range, a bar for each run."""
    which = [_bucket(bounded_slowdowns(run.jobs), _SLOWDOWNS) for run in runs]
    shares = np.array([100 * np.bincount(each, minlength=len(_SLOWDOWNS)) / max(1, len(each)) for each in which])
    across = panels_in_row(len(_SLOWDOWNS), 9)
    down = -(-len(_SLOWDOWNS) // across)
    names = [wrapped(run.name, min(16.0, 0.3 * paper().columns), "small") for run in runs]
    figure = new_figure(6 + down * (4 + 1.6 * sum(1 + 0.5 * name.count("\n") for name in names)))
    every = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for at, (axes, (_, title)) in enumerate(zip(every, _SLOWDOWNS, strict=False)):
        for row, look in zip(range(len(runs)), looks(), strict=False):
            bar = {"facecolor": look.color, "hatch": look.hatch, "edgecolor": "white", "linewidth": 0}
            axes.barh(row, shares[row, at], 0.72, label=runs[row].name, **bar)
            axes.annotate(
                f"{shares[row, at]:.1f}",
                (shares[row, at], row),
                (2, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        axes.set_title(title)
        axes.tick_params(axis="y", length=0)
    every[0].set_yticks(range(len(runs)), names)
    every[0].set_ylim(len(runs) - 0.4, -0.6)
    every[0].set_xlim(0, 1.35 * shares.max())
    explain(figure, "jobs (%)")
    headline(figure, "jobs by bounded slowdown (runtimes under 10 s count as 10 s)")
    fair = {run.name: f"{share[:2].sum():.0f} %" for run, share in zip(runs, shares, strict=True)}
    return Picture(
        figure,
        "Share of the jobs in each range of bounded slowdowns, in percent; runtimes under 10 s count as 10 s. The bars "
        "of a run add up to 100 %.",
        facts_of(f"Bounded slowdowns of {listed([run.name for run in runs])}. Jobs with a slowdown below 2", fair),
    )


# Pictures of an advice: the log's load, who waits, what was tried, and how waits go over time.

_LEAST = 1e-3  # of a unit: the shortest wait on logarithmic axes
_WIDTH = 0.4  # of a bar


def unit_of(advice: Any) -> tuple[float, str]:
    """The unit of all waits on the page of an advice, seconds, and its name.

    Args:
        advice: a `decision.experiments.advise.Advice`.
    """
    return wait_unit(max(row.metrics["wait"].value for row in advice.rows))


@styled
def advice_pictures(advice: Any) -> dict[str, Picture]:
    """The pictures by name: ``plane``, ``classes``, ``weeks``, ``load``.

    Args:
        advice: a `decision.experiments.advise.Advice`.
    """
    return {"plane": _plane(advice), "classes": _classes(advice), "weeks": _weeks(advice), "load": _load(advice)}


def _both(advice: Any) -> list[tuple[str, str, str, str]]:
    """Of what is compared: the key, the name, colour and hatching."""
    found = [("baseline", advice.baseline, GREY, "")]
    return found if advice.policy == advice.baseline else [*found, ("advised", advice.policy, BLUE, "////")]


def _plane(advice: Any) -> Picture:
    plane, (unit, name) = advice.pictures["plane"], unit_of(advice)
    shown = {policy: [max(wait / unit, _LEAST) for wait in waits] for policy, waits in plane.items()}
    figure = new_figure(30)
    axes = figure.subplots()
    logarithmic(axes, "x")
    logarithmic(axes, "y")
    named = [policy for _, policy, *_ in _both(advice)]
    others = np.array([waits for policy, waits in shown.items() if policy not in named]).reshape(-1, 2)
    axes.scatter(others[:, 0], others[:, 1], s=14, color=PALE, edgecolors=GREY, linewidths=0.6)
    signs = []
    for (_, policy, color, _), marker in zip(_both(advice), "Do", strict=False):
        sign: dict[str, Any] = {"color": color, "marker": marker, "markersize": 7, "linestyle": ""}
        axes.plot(*[[wait] for wait in shown[policy]], **sign)
        signs.append(Line2D([], [], label=policy, **sign))
    signs.append(Line2D([], [], marker="o", linestyle="", color=PALE, markeredgecolor=GREY, label="others"))
    times = advice.pictures["bound"]
    bound: dict[str, Any] = {"color": RED, "linewidth": 1.0, "linestyle": (0, (4, 2))}
    axes.axhline(times * shown[advice.baseline][1], **bound)
    signs.append(Line2D([], [], label=f"{times:g} times the longest wait under {advice.baseline}", **bound))
    axes.margins(0.08)
    axes.grid()
    axes.set(xlabel=f"mean wait ({name})", ylabel=f"longest wait ({name})")
    outer_legend(figure, signs)
    return Picture(
        figure,
        "Mean and longest wait of all policies that were tried. Better is below and on the left; those above the "
        "dashed line let somebody wait for too long.",
        facts_of("Mean wait", {policy: f"{shown[policy][0]:.3g} {name}" for policy in named}),
    )


def _classes(advice: Any) -> Picture:
    unit, name = unit_of(advice)
    names = [text.replace(" ", "\n") for text in advice.pictures["class_names"]]
    figure = new_figure(24)
    axes = figure.subplots()
    place, both = np.arange(len(names)), _both(advice)
    for at, (key, policy, color, hatch) in enumerate(both):
        waits = np.array(advice.pictures["classes"][key]) / unit
        left = place + (at - (len(both) - 1) / 2) * _WIDTH
        axes.bar(left, waits, _WIDTH, label=policy, color=color, hatch=hatch, edgecolor="white", linewidth=0)
    axes.set_xticks(place, names)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_ylabel(f"mean wait ({name})")
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    return Picture(
        figure,
        "Mean waits by size (small: up to 1/64 of the machine, middle-sized: 1/8) and run time (short: up to 10 min, "
        "middle-long: 2 h).",
        "Mean waits by size and run time of jobs.",
    )


def _weeks(advice: Any) -> Picture:
    unit, name = unit_of(advice)
    figure = new_figure(20)
    axes = figure.subplots()
    clock, edges = _blocks(advice)
    middle = (edges[:-1] + edges[1:]) / 2
    for (key, policy, color, _), marker in zip(_both(advice), "Do", strict=False):
        waits = np.array(advice.pictures["weeks"][key]) / unit
        axes.plot(middle, waits, label=policy, color=color, marker=marker, markersize=3)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_ylabel(f"mean wait ({name})")
    _show_time(axes, clock, edges)
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    caption = f"Mean wait of the jobs that are submitted in each {advice.log['block']}."
    return Picture(figure, caption, caption)


def _load(advice: Any) -> Picture:
    figure = new_figure(18)
    axes = figure.subplots()
    clock, edges = _blocks(advice)
    axes.bar(
        edges[:-1], advice.pictures["jobs"], np.diff(edges), align="edge", color=BLUE, edgecolor="white", linewidth=0.4
    )
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_ylabel("jobs submitted")
    _show_time(axes, clock, edges)
    caption = f"Jobs that are submitted in each {advice.log['block']}."
    return Picture(figure, caption, caption)


def _blocks(advice: Any) -> tuple[AxisClock, Floats]:
    """The clock, and where blocks of time begin and end on it: in days, or their numbers where there are no dates."""
    pictures = advice.pictures
    number, seconds, begin = len(pictures["jobs"]), pictures["block_seconds"], pictures["begin"]
    edges = np.arange(number + 1, dtype=np.float64)
    if begin is None or not np.isfinite(seconds):
        return AxisClock(seconds, advice.log["block"]), edges + 0.5
    return AxisClock(float(DAY), "time by the machine's clock", begin), edges * (seconds / DAY)


def _show_time(axes: Axes, clock: AxisClock, edges: Floats) -> None:
    axes.set_xlim(edges[0], edges[-1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    clock.show(axes)
    axes.set_xlabel(clock.label)
