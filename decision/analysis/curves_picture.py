"""The picture of learning curves."""

from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from .curves import Training, on_common_steps
from .pictures import LOOKS
from .plots import new_figure

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


def learning_curves(trainings: Sequence[Training]) -> Figure:
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


def _has(training: Training, panel: _Panel) -> bool:
    return len(on_common_steps(training.seeds, panel.column)[0]) > 0


def _draw_panel(axes: Axes, panel: _Panel, trainings: Sequence[Training]) -> None:
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
