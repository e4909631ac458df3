"""Figures of all plots: empty ones, rows of runs on one time axis, units of time, and files."""

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from decision.formats.files import write_files
from decision.model.errors import ConfigError

from ..runs import NamedRun, last_end

FORMATS = (".png", ".svg", ".pdf")


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format that the path's ending names, whole or not at all.

    Raises:
        ConfigError: if the file cannot be written or has an ending that is not in `FORMATS`.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"{path}: pictures are {', '.join(FORMATS)}; choose one of these endings")
    write_files({path: [drawn(figure, ending)]})


def drawn(figure: Figure, ending: str) -> bytes:
    """A picture in one of the `FORMATS`."""
    content = io.BytesIO()
    figure.savefig(content, format=ending[1:])
    return content.getvalue()


_UNITS = ((2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "hours"), (0.0, 1.0, "seconds"))


_ACROSS = 3  # runs in a row


def time_unit(longest: float) -> tuple[float, str]:
    """The unit in seconds, and its name, that gives numbers easy to read up to `longest` seconds."""
    return next((unit, name) for least, unit, name in _UNITS if longest >= least)


def clock(runs: Sequence[NamedRun]) -> tuple[float, str]:
    """The unit of time, in seconds and by name, that suits all the runs."""
    return time_unit(last_end(runs))


def new_figure(width: float, height: float) -> Figure:
    """An empty picture of a size in inches, drawn without a screen."""
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def side_by_side(count: int, height: float, stacked: int = 1) -> tuple[Figure, list[list[Axes]]]:
    """A figure with panels for `count` runs on one clock, three in a row, each as so many axes, one below the other.

    Args:
        count: runs, at least one.
        height: of a run's panels together, inches.
        stacked: axes of a run.
    """
    across = min(count, _ACROSS)
    down = -(-count // across)
    figure = new_figure(max(6.5, 5.2 * across), height * down)
    grid = figure.subplots(stacked * down, across, sharex=True, squeeze=False)
    panels = [[grid[stacked * (i // across) + row, i % across] for row in range(stacked)] for i in range(down * across)]
    for unused in panels[count:]:
        for axes in unused:
            axes.remove()
    for panel in panels[:count]:
        panel[-1].tick_params(labelbottom=True)
    return figure, panels[:count]
