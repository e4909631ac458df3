"""The picture of one schedule: its Gantt chart, its utilization and its queue."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from decision.model.hosts import parse_intervals
from decision.model.record import Floats, JobTable

from ..metrics import only_ran, utilization
from ..runs import first_submission, later, queue_over_time, utilization_over_time
from .axes import clock
from .figures import BLUE, DARK, JOB_COLORS, RED, headline, job_color, new_figure, save, styled
from .paper import paper

_MOST = 5_000  # rectangles from which on SVG and PDF have them as pixels
_OUTLINED = 0.5  # ems: smaller rectangles have no white outline, which would hide them
_LEAST = 0.25  # points that a rectangle is wider and higher than its job, so that the shortest one can be seen


def draw_schedule(
    jobs: JobTable, nb_hosts: int, path: Path, title: str, first: float = 0.0, begin: float | None = None
) -> None:
    """Write the picture of a schedule; as `schedule_figure`.

    Raises:
        ConfigError: if the file cannot be written.
    """
    save(schedule_figure(jobs, nb_hosts, title, first, begin), path)


@styled
def schedule_figure(
    jobs: JobTable, nb_hosts: int, title: str, first: float = 0.0, begin: float | None = None
) -> Figure:
    """Draw three views over one clock: which host ran what, how many were busy, how many jobs waited.

    The clock begins at the first submission. Host 0 is at the top. A job has the colour that it has in the page's
    Gantt charts and in the schedules of other policies; colours only tell neighbours apart.

    Args:
        jobs: the run's jobs; rejected ones are left out.
        nb_hosts: compute hosts.
        title: the picture's title; what it shows is added.
        first: the simulated time from which the jobs' times are counted, seconds.
        begin: what the machine's clock showed then, seconds since 1970, where it is known.
    """
    submitted = first_submission(jobs)
    ran = only_ran(later(jobs, -submitted))
    ends = ran.start_time + ran.runtime
    last = float(ends.max(initial=1.0))  # seconds
    time = clock(last, None if begin is None else begin + submitted, submitted + first)
    unit = time.unit
    figure = new_figure(44)
    gantt, busy, waiting = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1, 1))
    rejected = len(jobs.id) - len(ran.id)
    shown = f"{len(ran.id):,} jobs on {nb_hosts:,} hosts" + (f", {rejected:,} rejected" if rejected else "")
    headline(figure, f"{title}: {shown}")
    waiting.set_xlim(0, last / unit)
    _draw_busy(busy, ran, nb_hosts, unit)
    _draw_waiting(waiting, ran, unit)
    waiting.set_xlabel(time.label)
    time.show(waiting)
    _draw_gantt(figure, gantt, ran, ends, nb_hosts, unit)
    return figure


def draw_gantt(axes: Axes, jobs: JobTable, nb_hosts: int, title: str) -> None:
    """Draw which host ran what into axes of somebody else's figure, in whose style it is.

    Args:
        axes: where.
        jobs: the run's jobs; rejected ones are left out.
        nb_hosts: compute hosts.
        title: of the axes.
    """
    begin = first_submission(jobs)
    ran = only_ran(later(jobs, -begin))
    ends = ran.start_time + ran.runtime
    last = float(ends.max(initial=1.0))  # seconds
    time = clock(last, None, begin)
    axes.set_xlim(0, last / time.unit)
    _draw_gantt(axes.figure.figure, axes, ran, ends, nb_hosts, time.unit)
    axes.set_title(title)
    axes.set_xlabel(time.label)
    time.show(axes)


def _draw_gantt(figure: Figure, axes: Axes, jobs: JobTable, ends: Floats, nb_hosts: int, unit: float) -> None:
    axes.set_ylim(nb_hosts - 0.5, -0.5)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("host")
    axes.set_title("jobs on hosts")
    spans = [(job, *pair) for job, text in enumerate(jobs.allocation) for pair in parse_intervals(text)]
    if not spans:
        return
    job, first, final = np.array(spans).T
    left, right, top, bottom = jobs.start_time[job] / unit, ends[job] / unit, first - 0.5, final + 0.5
    corners = np.stack(
        [np.column_stack(corner) for corner in ((left, top), (right, top), (right, bottom), (left, bottom))], axis=1
    )
    colors = np.array([JOB_COLORS[job_color(name)] for name in jobs.id])[job]
    outlined = _large(figure, axes, right - left, bottom - top)
    edges = np.where(outlined, "#ffffff", colors)
    boxes = PolyCollection(list(corners), facecolors=colors.tolist(), edgecolors=edges.tolist(), linewidths=_LEAST)
    boxes.set_rasterized(len(spans) > _MOST)
    boxes.set_snap(False)
    axes.add_collection(boxes)


def _large(figure: Figure, axes: Axes, widths: Floats, heights: Floats) -> np.ndarray:
    """Which boxes, in the axes' units, have room for an outline."""
    figure.draw_without_rendering()  # so that the axes have their place
    em = figure.dpi * paper().em
    x, y = axes.bbox.width / np.ptp(axes.get_xlim()), axes.bbox.height / np.ptp(axes.get_ylim())
    return (widths * x > _OUTLINED * em) & (heights * y > _OUTLINED * em)


def _draw_busy(axes: Axes, jobs: JobTable, nb_hosts: int, unit: float) -> None:
    times, share = utilization_over_time(jobs, nb_hosts)
    mean = utilization(jobs, nb_hosts)
    axes.fill_between(times / unit, share * nb_hosts, step="post", color=BLUE, alpha=0.7, linewidth=0)
    axes.axhline(mean * nb_hosts, color=DARK, linewidth=1, linestyle="--")
    axes.set_ylim(0, nb_hosts * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("busy hosts")
    axes.set_title(f"utilization (dashed: mean, {mean:.1%})")


def _draw_waiting(axes: Axes, jobs: JobTable, unit: float) -> None:
    times, waiting = queue_over_time(jobs)
    axes.fill_between(times / unit, waiting, step="post", color=RED, alpha=0.7, linewidth=0)
    axes.set_ylim(0, max(1, waiting.max(initial=0)) * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("waiting jobs")
    axes.set_title("queue")
