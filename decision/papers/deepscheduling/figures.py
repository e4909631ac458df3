"""Figures 2 to 4 of DeepScheduling's paper, from our days."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from decision.report.plots.figures import BLUE, CYAN, GREEN, GREY, RED, headline, new_figure, outer_legend, styled

from .claims import Days, Jobs, job_slowdowns, within_range

_COLORS = (BLUE, RED, GREEN, CYAN)
_EDGES = (1.0, 1.0001, 5.0, 10.0, 50.0, np.inf)
_NAMES = ("1", "1 to 5", "5 to 10", "10 to 50", "above")

ByPolicy = Mapping[str, Days]  # of one seed


@styled
def cumulative(cluster: str, found: ByPolicy, jobs: Jobs, learned_days: int) -> Figure:
    """Means up to each day, from the first on; a line where the days end that were learned from (figure 2)."""
    figure = new_figure(20)
    panels = figure.subplots(1, 3)
    titles = ("waste (W min a day)", "waiting time (min)", "slowdown per processor")
    for color, (_, days) in zip(_COLORS, found.items(), strict=False):
        upto = np.arange(1, len(days.jobs) + 1)
        ratio = np.maximum(job_slowdowns(days, jobs) / jobs.size, 1.0)
        means = [np.bincount(jobs.day, values, len(days.jobs)) / days.jobs for values in (days.wait / 60, ratio)]
        for axes, values in zip(panels, (days.waste / 60, *means), strict=True):
            axes.plot(upto, np.cumsum(values) / upto, color=color)
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
        axes.axvline(learned_days, color=GREY, linestyle="--")
        axes.set_xlabel("days")
        axes.set_ylim(bottom=0)
    return _finish(figure, cluster, found)


@styled
def slowdown_shares(cluster: str, found: ByPolicy, jobs: Jobs) -> Figure:
    """Shares of jobs by their slowdown (figure 3)."""
    figure, width = new_figure(18), 0.8 / len(found)
    axes = figure.subplots()
    for k, (color, days) in enumerate(zip(_COLORS, found.values(), strict=False)):
        counts, _ = np.histogram(job_slowdowns(days, jobs), _EDGES)
        axes.bar(np.arange(len(_NAMES)) + k * width, counts / counts.sum(), width, color=color)
    axes.set_xticks(np.arange(len(_NAMES)) + 0.4 - width / 2, _NAMES)
    axes.set_xlabel("slowdown")
    axes.set_ylabel("share of jobs")
    return _finish(figure, cluster, found)


@styled
def sequential_slowdowns(cluster: str, found: ByPolicy, jobs: Jobs) -> Figure:
    """Slowdowns of sequential jobs, without outliers (figure 4)."""
    figure = new_figure(18)
    axes = figure.subplots()
    values = []
    for days in found.values():
        each = job_slowdowns(days, jobs)
        values.append(each[within_range(each, jobs.sequential > 0)])
    axes.boxplot(values, showfliers=False)
    axes.set_xticks(np.arange(len(found)) + 1, list(found))
    axes.set_ylabel("slowdown of sequential jobs")
    headline(figure, cluster)
    return figure


def _finish(figure: Figure, cluster: str, found: ByPolicy) -> Figure:
    headline(figure, cluster)
    signs = [Line2D([], [], color=color, label=name) for color, name in zip(_COLORS, found, strict=False)]
    outer_legend(figure, signs, below=True)
    return figure
