"""Figures 2 to 4 of DeepScheduling's paper, from our days: means over seeds, percentiles and extremes."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from decision.papers.campaign import counted
from decision.report.plots.figures import BLUE, CYAN, GREEN, GREY, RED, headline, new_figure, outer_legend, styled

from .claims import Days, Jobs, job_slowdowns, within_range

_COLORS = (BLUE, RED, GREEN, CYAN)
_GAPS = (None, (6.0, 2.0), (1.5, 1.5), (4.0, 1.5, 1.0, 1.5))  # what lies on another is seen through its gaps
_WIDTHS = (4.0, 2.4, 1.6, 1.6)  # points: the first drawn is the widest
_EDGES = (1.0, 1.0001, 5.0, 10.0, 50.0, np.inf)
_NAMES = ("1", "1 to 5", "5 to 10", "10 to 50", "above")
_BAND = (10, 90)  # percentiles over seeds

ByPolicy = Mapping[str, Sequence[Days]]  # by seed; one of what has no chance in it


@styled
def cumulative(cluster: str, found: ByPolicy, jobs: Jobs, learned_days: int) -> Figure:
    """Means up to each day, from the first on; a line where the days end that were learned from (figure 2).

    Of several seeds: their mean, in a band from the 10th to the 90th percentile; thin lines are the least and the most.
    """
    figure = new_figure(20)
    panels = figure.subplots(1, 3)
    titles = ("waste (W min a day)", "waiting time (min)", "slowdown per processor")
    for at, seeds in enumerate(found.values()):
        courses = []  # (seeds, panels, days): waste, wait in minutes, slowdown per processor
        for days in seeds:
            upto = np.arange(1, len(days.jobs) + 1)
            ratio = np.maximum(job_slowdowns(days, jobs) / jobs.size, 1.0)
            means = [np.bincount(jobs.day, each, len(days.jobs)) / days.jobs for each in (days.wait / 60, ratio)]
            courses.append([np.cumsum(each) / upto for each in (days.waste / 60, *means)])
        for axes, values in zip(panels, np.array(courses).transpose(1, 0, 2), strict=True):
            axes.plot(upto, values.mean(0), color=_COLORS[at], linestyle=_line(at), linewidth=_WIDTHS[at])
            if len(seeds) > 1:
                low, high = np.percentile(values, _BAND, axis=0)
                axes.fill_between(upto, low, high, color=_COLORS[at], alpha=0.25, linewidth=0)
                for extreme in (values.min(0), values.max(0)):
                    axes.plot(upto, extreme, color=_COLORS[at], linewidth=0.6)
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title)
        axes.axvline(learned_days, color=GREY, linestyle=":")
        axes.set_xlabel("days")
        axes.set_ylim(bottom=0)
    about = f"means up to each day (figure 2); {_spread(found)}; dotted: the days learned from end"
    headline(figure, f"{cluster}: {about}")
    signs = [
        Line2D([], [], color=_COLORS[at], linestyle=_line(at), linewidth=_WIDTHS[at], label=name)
        for at, name in enumerate(found)
    ]
    outer_legend(figure, signs, below=True)
    return figure


def _line(at: int) -> Literal["-"] | tuple[float, tuple[float, ...]]:
    gaps = _GAPS[at]
    return "-" if gaps is None else (0.0, gaps)


@styled
def slowdown_shares(cluster: str, found: ByPolicy, jobs: Jobs) -> Figure:
    """Shares of jobs by their slowdown (figure 3); of several seeds, the mean with the least and the most."""
    figure, width = new_figure(18), 0.8 / len(found)
    axes = figure.subplots()
    for k, (color, seeds) in enumerate(zip(_COLORS, found.values(), strict=False)):
        counts = np.array([np.histogram(job_slowdowns(days, jobs), _EDGES)[0] for days in seeds])
        shares = counts / counts.sum(axis=1, keepdims=True)
        mean = shares.mean(0)
        reach = np.maximum([mean - shares.min(0), shares.max(0) - mean], 0.0)
        at = np.arange(len(_NAMES)) + k * width
        axes.bar(at, mean, width, color=color, yerr=reach if len(seeds) > 1 else None, ecolor="black", capsize=1.5)
    axes.set_xticks(np.arange(len(_NAMES)) + 0.4 - width / 2, _NAMES)
    axes.set_xlabel("slowdown")
    axes.set_ylabel("share of jobs")
    headline(figure, f"{cluster}: jobs by slowdown, all days (figure 3); {_spread(found, 'mean, least and most')}")
    signs = [Patch(color=color, label=name) for color, name in zip(_COLORS, found, strict=False)]
    outer_legend(figure, signs, below=True)
    return figure


@styled
def sequential_slowdowns(cluster: str, found: ByPolicy, jobs: Jobs) -> Figure:
    """Slowdowns of sequential jobs, without outliers (figure 4), of all seeds together."""
    figure = new_figure(18)
    axes = figure.subplots()
    shown = []
    for seeds in found.values():
        every = [job_slowdowns(days, jobs) for days in seeds]
        shown.append(np.concatenate([each[within_range(each, jobs.sequential > 0)] for each in every]))
    axes.boxplot(shown, showfliers=False)
    axes.set_xticks(np.arange(len(found)) + 1, list(found))
    axes.set_ylabel("slowdown of sequential jobs")
    headline(figure, f"{cluster}: without outliers (figure 4); {_spread(found, 'jobs together')}")
    return figure


def _spread(found: ByPolicy, what: str = "mean, 10 to 90 %, least and most") -> str:
    """Over how many seeds, and what is shown of them."""
    seeds = max(map(len, found.values()))
    return f"{what} of {counted(seeds, 'seed')}" if seeds > 1 else counted(seeds, "seed")
