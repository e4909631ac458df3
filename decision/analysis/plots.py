"""Pictures of a schedule."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from decision.model.hosts import parse_intervals
from decision.model.record import Floats, JobTable

from .metrics import only_ran, utilization
from .picture_file import save
from .runs import Run, last_end
from .series import queue_over_time, utilization_over_time

_UNITS = ((2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "hours"), (0.0, 1.0, "seconds"))
_JOB_COLORS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")
_ACROSS = 3  # runs in a row
_CROWD = 500  # rectangles from which on outlines would hide the narrow ones
_BUSY, _MEAN, _WAITING = "#4477aa", "#222222", "#cc6677"


def draw_schedule(jobs: JobTable, nb_hosts: int, path: Path, title: str) -> None:
    """Write a picture with three views over one clock: which host ran what, how many were busy, how many jobs waited.

    Args:
        jobs: the run's jobs; rejected ones are left out.
        nb_hosts: compute hosts.
        path: the file.
        title: the picture's title; what it shows is added.

    Raises:
        ConfigError: if the file cannot be written.
    """
    ran = only_ran(jobs)
    ends = ran.start_time + ran.runtime
    last = float(ends.max(initial=1.0))  # seconds
    unit, unit_name = time_unit(last)
    figure = new_figure(11, 7.5)
    gantt, busy, waiting = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1, 1))
    figure.suptitle(f"{title}: {len(ran.id):,} jobs on {nb_hosts:,} hosts", fontsize=14)
    _draw_gantt(gantt, ran, ends, nb_hosts, unit)
    _draw_busy(busy, ran, nb_hosts, unit)
    _draw_waiting(waiting, ran, unit)
    waiting.set_xlim(0, 1.01 * last / unit)
    waiting.set_xlabel(f"simulated time ({unit_name})")
    save(figure, path)


def time_unit(longest: float) -> tuple[float, str]:
    """The unit in seconds, and its name, that gives numbers easy to read up to `longest` seconds."""
    return next((unit, name) for least, unit, name in _UNITS if longest >= least)


def clock(runs: Sequence[Run]) -> tuple[float, str]:
    """The unit of time, in seconds and by name, that suits all the runs."""
    return time_unit(last_end(runs))


def _draw_gantt(axes: Axes, jobs: JobTable, ends: Floats, nb_hosts: int, unit: float) -> None:
    corners = np.array(list(_rectangles(jobs, ends))).reshape(-1, 4, 2) / np.array([unit, 1.0])
    colors = [
        _JOB_COLORS[i % len(_JOB_COLORS)] for i, text in enumerate(jobs.allocation) for _ in parse_intervals(text)
    ]
    width = 0.3 if len(colors) < _CROWD else 0.0
    axes.add_collection(PolyCollection(corners, facecolors=colors, edgecolors="white", linewidths=width))
    axes.set_ylim(-0.5, nb_hosts - 0.5)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("host")
    axes.set_title("jobs on hosts", loc="left", fontsize=10)


def _rectangles(jobs: JobTable, ends: Floats) -> Iterator[list[tuple[float, float]]]:
    """The corners of each job's rectangles, one per interval of its hosts: seconds by hosts."""
    for text, start, end in zip(jobs.allocation, jobs.start_time.tolist(), ends.tolist(), strict=True):
        for first, last in parse_intervals(text):
            low, high = first - 0.5, last + 0.5
            yield [(start, low), (end, low), (end, high), (start, high)]


def _draw_busy(axes: Axes, jobs: JobTable, nb_hosts: int, unit: float) -> None:
    times, share = utilization_over_time(jobs, nb_hosts)
    mean = utilization(jobs, nb_hosts)
    axes.fill_between(times / unit, share * nb_hosts, step="post", color=_BUSY, alpha=0.7, linewidth=0)
    axes.axhline(mean * nb_hosts, color=_MEAN, linewidth=1, linestyle="--")
    axes.set_ylim(0, nb_hosts * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel("busy hosts")
    axes.set_title(f"utilization (dashed: mean, {mean:.1%})", loc="left", fontsize=10)


def _draw_waiting(axes: Axes, jobs: JobTable, unit: float) -> None:
    times, waiting = queue_over_time(jobs)
    axes.fill_between(times / unit, waiting, step="post", color=_WAITING, alpha=0.7, linewidth=0)
    axes.set_ylim(0, max(1, waiting.max(initial=0)) * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel("waiting jobs")
    axes.set_title("queue", loc="left", fontsize=10)


def new_figure(width: float, height: float) -> Figure:
    """An empty picture of a size in inches, drawn without any screen."""
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
