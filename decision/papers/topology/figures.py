"""Figures 4 to 6 of Lan et al., from our trainings, windows and schedules."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from decision.experiments.results import read_curves
from decision.experiments.statistics import Estimate
from decision.papers.campaign import counted
from decision.report.plots.figures import BLUE, CYAN, GREEN, GREY, RED, headline, new_figure, outer_legend, styled

_COLORS = (GREY, CYAN, GREEN, "#aa3377", BLUE, RED)  # of the networks, the paper's best last
_MARKERS = "sD^vXo"
_PARTS = 40  # of a training, over each of which rewards are averaged

ByTree = Mapping[str, Mapping[str, Sequence[Path]]]  # tree, network: progress.csv of each seed
Looks = Mapping[str, Mapping[str, Sequence[Estimate]]]  # tree, network: a value for each number of steps
ByPeriod = Mapping[str, Mapping[float, tuple[Estimate, Estimate]]]  # who, period: cost and wait
Schedules = Mapping[str, ByPeriod]  # by tree


@styled
def reward_curves(found: ByTree, paid: str) -> Figure:
    """Rewards while networks learn (figure 4): means over parts of a training and seeds, and the range of seeds."""
    figure, panels = _panels(found, sharey=False)
    for axes, networks in zip(panels, found.values(), strict=True):
        for (color, marker), files in zip(_looks(), networks.values(), strict=False):
            ends, courses = [], []  # of each seed, by part: steps at its end, and the mean reward of a step in it
            for path in files:
                columns = read_curves(path)
                learned = columns["steps"] > 0
                steps, reward = columns["steps"][learned], columns["reward"][learned]
                parts = np.array_split(np.arange(len(steps)), min(_PARTS, len(steps)))
                ends.append(np.array([steps[part[-1]] for part in parts]) / 1000)
                courses.append([reward[part].mean() for part in parts])
            rewards = np.array(courses)
            axes.plot(ends[0], rewards.mean(0), color=color, marker=marker, markersize=3, markevery=0.2)
            axes.fill_between(ends[0], rewards.min(0), rewards.max(0), color=color, alpha=0.15, linewidth=0)
        axes.set_xlabel("thousands of steps")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    panels[0].set_ylabel("reward of a step")
    seeds = counted(max(len(files) for networks in found.values() for files in networks.values()), "seed")
    return _finish(figure, f"rewards while networks learn (figure 4), paid by {paid}; mean and range of {seeds}", found)


@styled
def beside_annealing(
    found: Looks, steps: Sequence[int], published: Mapping[str, Sequence[float]], seeds: int
) -> Figure:
    """By how much networks cost less than twice as many steps of annealing (figure 5), with 95 % intervals."""
    figure, panels = _panels(found, sharey=True)
    at, width = np.arange(len(steps)), 0.8
    for axes, networks in zip(panels, found.values(), strict=True):
        axes.axhline(0, color="black", linewidth=0.8)
        for k, ((color, marker), (name, values)) in enumerate(zip(_looks(), networks.items(), strict=False)):
            x = at + (k + 0.5) * width / len(networks) - width / 2
            value, low, high = np.array(values).T
            reach = np.maximum([value - low, high - value], 0.0)
            axes.errorbar(x, value, reach, color=color, marker=marker, linestyle="", markersize=4, capsize=1.5)
            axes.plot(x, published[name], marker, color=color, markerfacecolor="white", markersize=4)
        axes.set_xticks(at, list(map(str, steps)))
        axes.set_xlabel("steps of NSA")
    panels[0].set_ylabel("less cost, %")
    title = (
        f"NSA against SA with twice the steps (figure 5); filled: here, {counted(seeds, 'seed')}, with 95 % intervals; "
        "white: published"
    )
    return _finish(figure, title, found)


@styled
def costs_and_waits(found: Schedules, schedules: int) -> Figure:
    """Cost of a job and wait by the length of windows (figure 6); without windows (period 0), a line across."""
    figure = new_figure(17 * len(found))
    rows = figure.subplots(len(found), 2, squeeze=False, sharex=True)
    names = list(dict.fromkeys(name for by_name in found.values() for name in by_name))
    colors = dict(zip(names, ("black", GREY, BLUE, GREEN, RED, CYAN), strict=False))
    for (tree, by_name), panels in zip(found.items(), rows, strict=True):
        for which, (axes, title) in enumerate(zip(panels, ("cost, thousandths of a hop", "wait, s"), strict=True)):
            _draw_searches(axes, by_name, which, colors)
            axes.set_title(f"{tree}: {title}")
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    periods = sorted({at for by_name in found.values() for values in by_name.values() for at in values if at})
    for axes in rows[-1]:
        axes.set_xticks(periods)
        axes.set_xlim(min(periods) - 5, max(periods) + 5)
        axes.set_xlabel("seconds from one window to the next")
    over = f"means over {counted(schedules, 'schedule')}, 95 % intervals"
    headline(figure, f"cost and wait by the length of windows (figure 6): {over}; dashed: FCFS without windows")
    dashed = {name for by_name in found.values() for name, by_period in by_name.items() if 0 in by_period}
    signs = [Line2D([], [], color=colors[n], linestyle="--" if n in dashed else "-", label=n) for n in names]
    outer_legend(figure, signs, below=True)
    return figure


def _draw_searches(axes: Axes, by_name: ByPeriod, which: int, colors: Mapping[str, str]) -> None:
    """One of the two values of each search, beside one another: waits are the same for all."""
    windows = [name for name, by_period in by_name.items() if 0 not in by_period]
    for name, by_period in by_name.items():
        aside = windows.index(name) - (len(windows) - 1) / 2 if name in windows else 0.0
        values = {at + aside: both[which] for at, both in by_period.items()}
        if 0 in values:  # the only value of what has no windows is a line
            axes.axhline(values[0].value, color=colors[name], linestyle="--", linewidth=1.2)
            continue
        value, low, high = np.array(list(values.values())).T
        reach = np.maximum([value - low, high - value], 0.0)
        axes.errorbar(list(values), value, reach, color=colors[name], marker="o", markersize=3, capsize=1.5)


def _looks() -> list[tuple[str, str]]:
    return list(zip(_COLORS, _MARKERS, strict=True))


def _panels(found: Mapping[str, object], sharey: bool) -> tuple[Figure, list[Axes]]:
    """A panel for each tree."""
    figure = new_figure(24)
    panels = figure.subplots(1, len(found), sharey=sharey, squeeze=False)[0]
    for axes, tree in zip(panels, found, strict=True):
        axes.set_title(f"tree of the {tree}")
    return figure, list(panels)


def _finish(figure: Figure, title: str, found: Mapping[str, Mapping[str, object]]) -> Figure:
    headline(figure, title)
    names = next(iter(found.values()))
    signs = [
        Line2D([], [], color=color, marker=marker, markersize=4, label=name)
        for (color, marker), name in zip(_looks(), names, strict=False)
    ]
    outer_legend(figure, signs, below=True)
    return figure
