"""Figures 3 to 8 of Launchpad's paper, from our rollouts."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from decision.report.plots.figures import BLUE, CYAN, GREEN, GREY, RED, headline, new_figure, outer_legend, styled

from .claims import MeanDifference

_COLORS = (GREY, BLUE, RED, GREEN, CYAN, "black")
_WIDTH = 0.8  # of the bars of a size


@styled
def value_bars(title: str, values: Mapping[str, Mapping[int, MeanDifference]]) -> Figure:
    """Bars with intervals, by hosts and contender."""
    shown = {name: by_size for name, by_size in values.items() if by_size}
    sizes = sorted({size for by_size in shown.values() for size in by_size})
    figure, width = new_figure(24), _WIDTH / max(len(shown), 1)
    axes = figure.subplots()
    for k, (color, by_size) in enumerate(zip(_COLORS, shown.values(), strict=False)):
        at = np.array([sizes.index(size) + (k + 0.5) * width for size in by_size])
        value, low, high = (np.array([each[field] for each in by_size.values()]) for field in range(3))
        reach = np.maximum([value - low, high - value], 0.0)
        axes.bar(at, value, width, yerr=reach, color=color, ecolor="black", capsize=1.5)
    axes.set_xticks(np.arange(len(sizes)) + _WIDTH / 2, [str(size) for size in sizes])
    axes.set_xlabel("hosts")
    axes.set_ylabel("share of the submitted value")
    headline(figure, title)
    signs = [Line2D([], [], color=color, label=name) for color, name in zip(_COLORS, shown, strict=False)]
    outer_legend(figure, signs, below=True)
    return figure
