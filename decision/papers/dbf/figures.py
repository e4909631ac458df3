"""The figures of the paper on deep backfilling, from our runs; results are sorted by waiting time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from decision.experiments.results import CURVES, Columns, LearningCurve, read_curves
from decision.papers.campaign import counted
from decision.report.plots.figures import (
    BLUE,
    GREEN,
    GREY,
    RED,
    headline,
    logarithmic,
    looks,
    new_figure,
    outer_legend,
    panels_in_row,
    short_duration,
    styled,
    wrapped,
)
from decision.report.plots.results import learning_curves

from .claims import CHECKPOINT_METRICS, METRIC_COLUMNS, Checkpoints, Result, Results, Types, metric_estimate

_LEAST = 20  # ems: the width of a panel
_EPISODES = 1000  # of the paper's figure 7
_OBJECTIVES = (("utilization", 100.0), ("waiting_time", 1.0), ("queue_length", 1.0))
_MEANINGS = {name: title for name, title, _ in METRIC_COLUMNS}
_AREA = 900.0  # points squared per square inch of a panel's width: of a policy's circles together
_SHADES = 1000.0  # the longest waiting time over the one where the colours begin
_PARTS = 10  # of a training, which a learning curve has a value for


@styled
def comparison(results: Results) -> Figure:
    """All policies, the one whose jobs wait least at the top (the paper's figure 4)."""
    figure = new_figure(10 + 2 * len(results))
    panels = figure.subplots(1, len(METRIC_COLUMNS), sharey=True)
    for axes, column in zip(panels, METRIC_COLUMNS, strict=True):
        _draw_rows(axes, results, *column)
    headline(figure, f"policies sorted by waiting time (figure 4); {_over(results)}")
    kinds = dict.fromkeys(_kind(runs[0]) for runs in results.values())
    signs = [Line2D([], [], color=kind.color, marker=kind.marker, linestyle="", label=kind.name) for kind in kinds]
    outer_legend(figure, signs, below=True)
    return figure


@styled
def objectives(checkpoints: Mapping[str, Sequence[Checkpoints]], episodes: int) -> Figure:
    """What checkpoints of the trainings reach, evaluated (the paper's figure 3): means over seeds, deviations."""
    figure = new_figure(18 + len(checkpoints))
    panels = figure.subplots(1, len(_OBJECTIVES))
    for axes, (metric, scale) in zip(panels, _OBJECTIVES, strict=True):
        at = 2 * CHECKPOINT_METRICS.index(metric)
        for look, (policy, runs) in zip(looks(), checkpoints.items(), strict=False):
            steps = sorted(set.intersection(*map(set, runs)))
            value, deviation = scale * np.array([[run[k][at : at + 2] for k in steps] for run in runs]).mean(0).T
            axes.errorbar(
                np.array(steps) / 1e6, value, deviation, color=look.color, marker="o", markersize=3, label=policy
            )
        axes.set_title(_MEANINGS[metric])
        axes.set_xlabel("million steps")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,.10g}")
    seeds = counted(max(map(len, checkpoints.values())), "seed")
    headline(
        figure,
        f"checkpoints evaluated over {episodes:,} episodes (figure 3): means of {seeds}, bars: deviation of episodes",
    )
    outer_legend(figure, panels[0].get_legend_handles_labels()[0], below=True)
    return figure


def curves(trainings: Mapping[str, Sequence[Path]]) -> Figure:
    """The course of the trainings in these folders, by policy.

    Environments that began together end their episodes together, so that single iterations go up and down.
    """
    found = [
        LearningCurve(policy, [_in_parts(read_curves(folder / CURVES)) for folder in seeds])
        for policy, seeds in trainings.items()
    ]
    return learning_curves(found, f"means over {_PARTS} parts of the training; seeds: mean, lowest and highest").figure


def _in_parts(columns: Columns) -> Columns:
    """Means over the values of equal parts, nan where a part has none."""
    steps = columns["steps"]
    part = np.minimum((steps * _PARTS / (steps[-1] + 1)).astype(int), _PARTS - 1)
    found = {}
    for name, values in columns.items():
        known = [values[(part == k) & np.isfinite(values)] for k in np.unique(part)]
        found[name] = np.array([float(some.mean()) if len(some) else np.nan for some in known])
    return found


def _over(results: Results) -> str:
    """What a value is, over how many seeds."""
    seeds = max((len(runs) for runs in results.values() if runs[0].seed is not None), default=1)
    return f"interquartile mean over {counted(seeds, 'seed')}" + (", 95 % interval" if seeds > 1 else "")


def _draw_rows(axes: Axes, rows: Results, metric: str, title: str, scale: float) -> None:
    """A metric of each policy, from above, as a dot in its interval."""
    for at, runs in enumerate(rows.values()):
        found, kind = metric_estimate(runs, metric, scale), _kind(runs[0])
        axes.plot([found.low, found.high], [at, at], color=kind.color, linewidth=4, alpha=0.35, solid_capstyle="butt")
        axes.plot([found.value], [at], kind.marker, color=kind.color, markersize=5, clip_on=False)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(wrapped(title, 13))
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False)


class _Kind(NamedTuple):
    """How a kind of policy is drawn."""

    name: str
    color: str
    marker: str


_DBF, _LEARNED, _HEURISTIC = _Kind("DBF", BLUE, "o"), _Kind("learned, not DBF", RED, "s"), _Kind("heuristic", GREY, "D")


def _kind(run: Result) -> _Kind:
    if run.window:
        return _DBF
    return _HEURISTIC if run.seed is None else _LEARNED


@styled
def splits(results: Results) -> Figure:
    """Waiting time and queue by the tail's size, a panel for each size of the window (the paper's figure 5)."""
    windows = _by_window(results)
    figure, panels = _panels(len(windows), 18)
    across = panels_in_row(len(windows), _LEAST)
    for at, (axes, (slots, by_tail)) in enumerate(zip(panels, windows.items(), strict=True)):
        queue = axes.twinx()
        _draw_tails(axes, by_tail, "waiting_time", RED, "o")
        _draw_tails(queue, by_tail, "queue_length", GREEN, "X")
        axes.set_xticks(range(len(by_tail)), list(map(str, by_tail)))
        axes.set_xlim(-0.5, len(by_tail) - 0.5)
        queue.spines["right"].set_visible(True)
        axes.set_title(f"M = {slots}")
        axes.set_xlabel("jobs from the tail")
        if at % across == 0:
            axes.set_ylabel("mean waiting time (s): dots", color=RED)
        if at % across == across - 1 or at == len(windows) - 1:
            queue.set_ylabel("mean queue (jobs): crosses", color=GREEN)
    headline(figure, f"windows of M jobs by how many are from the tail (figure 5); {_over(results)}")
    return figure


def _by_window(results: Results) -> dict[int, dict[int, Sequence[Result]]]:
    """Learned policies by the size of their window and of its tail."""
    found: dict[int, dict[int, Sequence[Result]]] = {}
    learned = [(runs[0].window, runs) for runs in results.values() if runs[0].window]
    for (head, tail), runs in sorted(learned, key=lambda item: (sum(item[0]), item[0][1])):
        found.setdefault(head + tail, {})[tail] = runs
    return found


def _draw_tails(axes: Axes, by_tail: Mapping[int, Sequence[Result]], metric: str, color: str, marker: str) -> None:
    found = np.array([metric_estimate(runs, metric) for runs in by_tail.values()])
    aside = (-0.02 if marker == "o" else 0.02) * len(by_tail)  # so that none hides another
    spread = np.abs(found[:, 1:] - found[:, :1]).T
    axes.errorbar(np.arange(len(found)) + aside, found[:, 0], spread, fmt=marker, color=color, capsize=3)
    axes.set_ylim(0.0, 1.15 * found.max() or 1.0)
    axes.tick_params(axis="y", labelcolor=color)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter("{x:,.10g}")


@styled
def invisible_jobs(results: Results) -> Figure:
    """Jobs outside of the window, and how often there are any (the paper's figure 6)."""
    learned = [runs for tails in _by_window(results).values() for runs in tails.values()]
    rows = {runs[0].policy: runs for runs in learned}
    figure = new_figure(10 + 2 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_rows(left, rows, "unseen_jobs", "queued jobs outside of the window, mean", 1.0)
    _draw_rows(right, rows, "partial_time", "time with any, %", 100.0)
    left.set_xlim(left=0)
    right.set_xlim(left=0)
    headline(figure, f"jobs that policies do not see (figure 6), in the evaluation; {_over(results)}")
    return figure


@styled
def waits_by_type(types: Mapping[str, Types], episodes: int, seeds: int) -> Figure:
    """Waiting time of each type of job, a panel for each policy (the paper's figure 7)."""
    figure, panels = _panels(len(types), 24)
    longest = max(1.0, *(wait for found in types.values() for _, wait in found.values()))
    shortest = longest / _SHADES
    colors = LogNorm(shortest, longest)
    for axes, (policy, found) in zip(panels, types.items(), strict=True):
        (cores, seconds), (jobs, wait) = np.array(list(found)).T, np.array(list(found.values())).T
        size = _AREA * (panels[0].bbox.width / figure.dpi) ** 2 * jobs / jobs.sum()
        wait = np.maximum(wait, shortest)
        circles = axes.scatter(cores, seconds, size, wait, cmap="YlOrRd", norm=colors, edgecolors=GREY, linewidths=0.4)
        logarithmic(axes, "x")
        logarithmic(axes, "y")
        axes.margins(0.12)
        axes.set_xticks(sizes := np.unique(cores), [f"{size:g}" for size in sizes], fontsize="x-small")
        axes.set_yticks(
            lengths := np.unique(seconds), [short_duration(length) for length in lengths], fontsize="x-small"
        )
        axes.set_xlabel("requested cores, at most")
        axes.set_title(wrapped(policy, 16))
    panels[0].set_ylabel("requested time, at most")
    bar = figure.colorbar(circles, ax=panels, label="mean waiting time (s)", fraction=0.03, aspect=40, extend="min")
    bar.ax.yaxis.set_major_formatter("{x:,.0f}")
    bar.minorticks_off()
    over = f"{episodes:,} of the paper's {_EPISODES:,} episodes, {counted(seeds, 'seed')} together"
    headline(figure, f"types of jobs (figure 7), areas: share of the placed jobs; {over}")
    return figure


def _panels(number: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, each of a height in ems."""
    across = panels_in_row(number, _LEAST)
    down = -(-number // across)
    figure = new_figure(5 + height * down)
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in panels[number:]:
        unused.remove()
    return figure, panels[:number]
