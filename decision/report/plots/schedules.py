"""Pictures of schedules: a Gantt chart with utilization and queue, runs side by side by time, and reservations."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from decision.experiments.energy import energy_over_time
from decision.experiments.metrics import only_ran, utilization, waiting_times
from decision.experiments.results import (
    PIECES,
    NamedRun,
    Steps,
    averaged,
    first_submission,
    last_end,
    later,
    queue_over_time,
    utilization_over_time,
)
from decision.model.hosts import parse_intervals
from decision.model.platform import Platform
from decision.model.record import Floats, HostState, JobTable
from decision.report.plots import paper

from .figures import (
    BLUE,
    DARK,
    GREY,
    JOB_COLORS,
    RED,
    AxisClock,
    Picture,
    clock,
    explain,
    facts_of,
    headline,
    job_color,
    listed,
    looks,
    name_panel,
    new_figure,
    outer_legend,
    panels_in_row,
    save,
    short_duration,
    side_by_side,
    styled,
)

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
    times, share = utilization_over_time(ran, nb_hosts)
    mean = utilization(ran, nb_hosts)
    busy.fill_between(times / unit, share * nb_hosts, step="post", color=BLUE, alpha=0.7, linewidth=0)
    busy.axhline(mean * nb_hosts, color=DARK, linewidth=1, linestyle="--")
    busy.set_ylim(0, nb_hosts * 1.05)
    busy.set_ylabel("busy hosts")
    busy.set_title(f"utilization (dashed: mean, {mean:.1%})")
    times, queue = queue_over_time(ran)
    waiting.fill_between(times / unit, queue, step="post", color=RED, alpha=0.7, linewidth=0)
    waiting.set_ylim(0, max(1, queue.max(initial=0)) * 1.05)
    waiting.set_ylabel("waiting jobs")
    waiting.set_title("queue")
    for axes in (busy, waiting):
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
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
    figure.draw_without_rendering()  # so that the axes have their place
    em = figure.dpi * paper().em
    x, y = axes.bbox.width / np.ptp(axes.get_xlim()), axes.bbox.height / np.ptp(axes.get_ylim())
    outlined = ((right - left) * x > _OUTLINED * em) & ((bottom - top) * y > _OUTLINED * em)
    edges = np.where(outlined, "#ffffff", colors)
    boxes = PolyCollection(list(corners), facecolors=colors.tolist(), edgecolors=edges.tolist(), linewidths=_LEAST)
    boxes.set_rasterized(len(spans) > _MOST)
    boxes.set_snap(False)
    axes.add_collection(boxes)


# Pictures of runs side by side over one clock: load, reservations, host states and power.

_LONG_QUEUE = 10.0  # the longest queue of all runs over that of one, from which on the scale is logarithmic


def clock_of(runs: Sequence[NamedRun]) -> AxisClock:
    """The clock that suits all runs; with dates where all began on the same."""
    begins, firsts = ({run.clock for run in runs}, {run.first for run in runs})
    return clock(last_end(runs), begins.pop() if len(begins) == 1 else None, firsts.pop() if len(firsts) == 1 else 0.0)


# --- Load -----------------------------------------------------------------------------------------------------------


@styled
def load_over_time(runs: Sequence[NamedRun]) -> Picture:
    """Utilization and queue, two panels for each run."""
    edges = np.linspace(0.0, last_end(runs), PIECES + 1)
    busy = [100 * averaged(utilization_over_time(run.jobs, run.record.nb_hosts), edges) for run in runs]
    queues = [queue_over_time(run.jobs) for run in runs]
    waiting = [averaged(queue, edges) for queue in queues]
    peaks = [int(queue.values.max(initial=0)) for queue in queues]
    most = max(1, *peaks)
    across = panels_in_row(len(runs), 28) if len(runs) > 4 else 1
    down = -(-len(runs) // across)
    figure = new_figure(6 + 8.5 * down)
    grid = figure.subplots(down, 2 * across, squeeze=False, sharex=True)
    time = clock_of(runs)
    unit, label = time.unit, time.label
    for at, (run, look) in enumerate(zip(runs, looks(), strict=False)):
        left, right = grid[at // across, 2 * (at % across) : 2 * (at % across) + 2]
        _draw_load(left, edges / unit, busy, at, look.color)
        _draw_load(right, edges / unit, waiting, at, look.color)
        time.show(left)
        left.set_ylim(0, 105)
        left.set_ylabel("busy hosts (%)", fontsize="small")
        right.set_ylabel("waiting jobs", fontsize="small")
        if most > _LONG_QUEUE * min(peaks):  # a linear scale would press some queues flat
            right.set_yscale("symlog", linthresh=1.0)
            decades = int(np.log10(most)) + 1
            right.set_yticks([0, *(10**power for power in range(0, decades, -(-decades // 3)))])
            right.yaxis.set_major_formatter("{x:,.0f}")
            right.minorticks_off()
            right.set_ylim(0, 1.5 * most)
        else:
            right.yaxis.set_major_locator(MaxNLocator(3, integer=True))
            right.set_ylim(0, 1.05 * most)
        name_panel(left, run.name, 2 * across)
        right.set_title(f"at most {peaks[at]:,} waiting", fontsize="small")
        if at + across >= len(runs):
            for axes in (left, right):
                axes.tick_params(labelbottom=True)
    for unused in grid.flat[2 * len(runs) :]:
        unused.remove()
    band = "; grey: from the lowest to the highest of all runs" if len(runs) > 1 else ""
    explain(figure, f"{label}\naverages over {PIECES}ths of the time{band}")
    return Picture(
        figure,
        f"Share of the hosts that run jobs and number of waiting jobs over the {label}, averaged over {PIECES}ths of "
        f"the time{band}. Above each queue stands its longest length.",
        f"Utilization and queue over time of {listed([run.name for run in runs])}. "
        + facts_of("Mean utilization", {run.name: f"{utilization(run.jobs, run.record.nb_hosts):.0%}" for run in runs})
        + " "
        + facts_of("Most waiting jobs", {run.name: f"{peak:,}" for run, peak in zip(runs, peaks, strict=True)}),
    )


def _draw_load(axes: Axes, edges: Floats, every: Sequence[Floats], own: int, color: str) -> None:
    """A run's averages between the edges, before the band of all runs."""
    if len(every) > 1:
        low, high = np.min(every, axis=0), np.max(every, axis=0)
        axes.fill_between(edges, _closed(low), _closed(high), step="post", color="#e2e2e2", linewidth=0)
    axes.stairs(every[own], edges, color=color, linewidth=0.8)
    axes.set_xlim(0, edges[-1])


def _closed(values: Floats) -> Floats:
    return np.append(values, values[-1])


# --- Host states and power ------------------------------------------------------------------------------------------

STATE_LOOKS = {
    HostState.COMPUTING: ("#4477aa", ""),
    HostState.IDLE: ("#f0e6b0", ""),
    HostState.SWITCHING_ON: ("#ee6677", "////"),
    HostState.SWITCHING_OFF: ("#aa3377", "\\\\\\\\"),
    HostState.SLEEPING: ("#b5b5b5", "...."),
    HostState.UNAVAILABLE: ("#222222", ""),
}


@styled
def hosts_and_power(runs: Sequence[NamedRun], platform: Platform | None) -> Picture:
    """Hosts by state and the power of all hosts over time, averaged over 200ths of it.

    Args:
        runs: in which energy was simulated.
        platform: what hosts draw; splits the power by state where it is known.
    """
    figure, panels = side_by_side(len(runs), 20, 26, stacked=2)
    across = panels_in_row(len(runs), 20)
    time = clock_of(runs)
    unit, label = time.unit, time.label
    edges = np.linspace(0.0, last_end(runs), PIECES + 1)
    for at, ((top, bottom), run) in enumerate(zip(panels, runs, strict=True)):
        table = run.record.host_states
        end = last_end([run])
        inside = np.append(edges[edges < end], end)  # a run ends with its last job
        counts = [averaged(Steps(table.time, table.counts[:, state].astype(float)), inside) for state in STATE_LOOKS]
        stack_layers(top, inside / unit, counts, list(STATE_LOOKS.values()))
        # Mean power between the edges: by state as in the looks, or only of all where no platform is known
        energy, joules = run.record.energy, np.zeros((len(inside), 1))
        if platform is not None:
            joules = energy_over_time(run.record, platform, inside)[:, list(STATE_LOOKS)]
        elif energy is not None:
            joules = np.interp(inside, energy.time, np.asarray(energy.energy, float), left=0.0)[:, np.newaxis]
        power = list(np.diff(joules, axis=0).T / np.diff(inside) / 1e3)  # kW
        stack_layers(bottom, inside / unit, power, list(STATE_LOOKS.values()) if len(power) > 1 else [(GREY, "")])
        top.set_ylim(0, run.record.nb_hosts)
        top.yaxis.set_major_locator(MaxNLocator(integer=True))
        name_panel(top, f"{run.name}: {run.record.joules / 1e6:,.0f} MJ", across)
        bottom.set_xlim(0, edges[-1] / unit)
        time.show(bottom)
        bottom.set_ylim(bottom=0)
        if at % across == 0:
            top.set_ylabel("hosts")
            bottom.set_ylabel("power (kW)")
    highest = max(bottom.get_ylim()[1] for _, bottom in panels)
    for _, bottom in panels:
        bottom.set_ylim(0, highest)
    explain(figure, f"{label}\naverages over {PIECES}ths of the time")
    split = platform is not None
    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white", label=state.name.lower().replace("_", " "))
        for state, (color, hatch) in STATE_LOOKS.items()
        if any(run.record.host_states.counts[:, state].any() for run in runs)
    ]
    outer_legend(figure, handles if split else [*handles, Patch(color=GREY, label="power of all hosts")])
    return Picture(
        figure,
        f"Hosts by what they do (above) and the power that they draw (below) over the {label}, averaged over "
        f"{PIECES}ths of the time. In the titles: the energy from the first submission to the last end.",
        facts_of("Host states and power over time. Energy", {r.name: f"{r.record.joules / 1e6:,.0f} MJ" for r in runs}),
    )


def stack_layers(axes: Axes, edges: Floats, layers: Sequence[Floats], looks: Sequence[tuple[str, str]]) -> None:
    """Layers between the edges, one upon the other; hatching shows in grey what colours show."""
    base = np.zeros(len(edges) - 1)
    for layer, (color, hatch) in zip(layers, looks, strict=True):
        over = base + layer
        axes.fill_between(
            edges,
            _closed(base),
            _closed(over),
            step="post",
            facecolor=color,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )
        base = over


# The picture of reservations: each job's wait, run, and what its walltime would have left it.

Pixels = NDArray[np.uint8]

_WAITS, _RESERVED, _RUNS = 1, 2, 3  # what a pixel of the raster says; a greater one hides a smaller one
_STEPS = {_WAITS: ("#f0d080", "waits"), _RESERVED: ("#8093b8", "reserved, not used"), _RUNS: ("#1f2f66", "runs")}


@styled
def reservation_timeline(runs: Sequence[NamedRun]) -> Picture:
    """Each job's wait, run and what its walltime would have left it, in order of submission."""
    across = panels_in_row(len(runs), 20)
    figure, panels = side_by_side(len(runs), 20, 21 if len(runs) > across else 34)
    time = clock_of(runs)
    unit, label = time.unit, time.label
    end = last_end(runs)
    for (axes,), run in zip(panels, runs, strict=True):
        axes.set_xlim(0, end / unit)
        time.show(axes)
        axes.set_ylim(len(run.jobs.id), 0)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_formatter("{x:,.0f}")
        name_panel(axes, run.name, across)
    for first, *_ in panels[::across]:
        first.set_ylabel("job, in order of submission")
    colors = ListedColormap(["white", *(color for color, _ in _STEPS.values())])
    outer_legend(figure, [Patch(color=color, label=name) for color, name in reversed(_STEPS.values())])
    explain(figure, f"{label}\n{_crowding(runs, 1)}")
    figure.draw_without_rendering()  # so that the axes have their place, and rows of pixels can be counted
    rows = max(1, min(int(axes.bbox.height) for (axes,) in panels) - 2)
    explain(figure, f"{label}\n{_crowding(runs, rows)}")
    for (axes,), run in zip(panels, runs, strict=True):
        jobs = len(run.jobs.id)
        image = raster(run.jobs, end, min(rows, jobs), max(1, int(axes.bbox.width) - 2))
        extent = (0.0, end / unit, float(jobs), 0.0)
        axes.imshow(image, colors, vmin=0, vmax=_RUNS, aspect="auto", interpolation="none", extent=extent)
    return Picture(
        figure,
        "When each job waited, ran, and would have had its hosts reserved by its walltime; jobs are in order of "
        f"submission, the first above, over the {label}. {_crowding(runs, rows).capitalize()}.",
        f"Waits and runs of every job of {listed([run.name for run in runs])}. "
        + facts_of("Longest wait", {run.name: short_duration(float(waiting_times(run.jobs).max())) for run in runs}),
    )


def _crowding(runs: Sequence[NamedRun], rows: int) -> str:
    """How many jobs share a row of pixels, and what is seen of them."""
    most = max(-(-len(run.jobs.id) // rows) for run in runs)
    if most == 1:
        return "each row of pixels is one job"
    shown = "running where any of them runs, else reserved where any is, else waiting where any waits"
    return f"a row of pixels is up to {most:,} jobs: {shown}"


def raster(jobs: JobTable, end: float, rows: int, columns: int) -> Pixels:
    """What the jobs do over time, in order of submission; every job has a pixel that runs.

    Args:
        jobs: those that ran.
        end: of the time that is shown, which begins at 0, seconds.
        rows: of pixels, at most one for each job; a row shows one job or several that follow each other.
        columns: of pixels.

    Returns:
        (rows, columns): 0, or the greatest of `_WAITS`, `_RESERVED` and `_RUNS` that holds for any of the row's jobs at
        some time in the pixel.
    """
    order = np.argsort(jobs.submit_time, kind="stable")
    submit, start = jobs.submit_time[order], jobs.start_time[order]
    stop = start + jobs.runtime[order]
    limit = np.where(np.isfinite(jobs.walltime[order]), np.maximum(start + jobs.walltime[order], stop), stop)
    row = np.arange(len(order)) * rows // max(1, len(order))
    image = np.zeros((rows, columns), np.uint8)
    for layer, begins, ends in ((_WAITS, submit, start), (_RESERVED, stop, limit), (_RUNS, start, stop)):
        first = np.clip(np.floor(begins / end * columns), 0, columns - 1).astype(int)
        final = np.clip(np.ceil(ends / end * columns), first + (layer == _RUNS), columns).astype(int)
        for r, low, high, some in zip(
            row.tolist(), first.tolist(), final.tolist(), (ends > begins).tolist(), strict=True
        ):
            if some or layer == _RUNS:
                image[r, low:high] = layer
    return image
