"""Pictures of schedules: Gantt chart, load, waiting times, slowdowns, reservations, host states and power."""

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from decision.model.hosts import parse_intervals
from decision.model.platform import Platform
from decision.model.record import Floats, HostState, Ints, JobTable

from ..energy import energy_over_time
from ..metrics import bounded_slowdowns, only_ran, utilization, waiting_times
from ..runs import PIECES, NamedRun, Steps, averaged, last_end, queue_over_time, utilization_over_time
from .figures import clock, new_figure, save, side_by_side, time_unit

_JOB_COLORS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")
_CROWD = 500  # rectangles from which on outlines would hide the narrow ones
_BUSY, _MEAN, _WAITING = "#4477aa", "#222222", "#cc6677"


def draw_schedule(jobs: JobTable, nb_hosts: int, path: Path, title: str) -> None:
    """Write the picture of a schedule; as `schedule_figure`.

    Raises:
        ConfigError: if the file cannot be written.
    """
    save(schedule_figure(jobs, nb_hosts, title), path)


def schedule_figure(jobs: JobTable, nb_hosts: int, title: str) -> Figure:
    """Draw three views over one clock: which host ran what, how many were busy, how many jobs waited.

    Args:
        jobs: the run's jobs; rejected ones are left out.
        nb_hosts: compute hosts.
        title: the picture's title; what it shows is added.
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
    return figure


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


RUN_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
LOOKS = tuple(product(("-", "--", ":"), RUN_COLORS))  # other styles when the colours are used up
# From which on, in seconds, and what it is called
_LENGTHS = ((0.0, "< 1 min"), (60.0, "1-10 min"), (600.0, "10-60 min"), (3600.0, "1-6 h"), (21_600.0, "> 6 h"))
_SLOWDOWNS = ((1.0, "1-1.1"), (1.1, "1.1-2"), (2.0, "2-10"), (10.0, "10-100"), (100.0, "100-1000"), (1000.0, "> 1000"))
_DURATIONS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_LEAST_WAIT = 1.0  # seconds: where the colours of waiting times begin


def load_over_time(runs: Sequence[NamedRun]) -> Figure:
    """Utilization and queue of all runs on one clock."""
    figure = new_figure(11, 6)
    top, bottom = figure.subplots(2, 1, sharex=True)
    unit, unit_name = clock(runs)
    for run, (style, color) in zip(runs, cycle(LOOKS), strict=False):
        looks: dict[str, Any] = {"color": color, "linestyle": style, "label": run.name}
        _draw_steps(top, averaged(utilization_over_time(run.jobs, run.record.nb_hosts)), unit, looks)
        _draw_steps(bottom, queue_over_time(run.jobs), unit, looks)
    top.set_ylim(0, 1.05)
    top.set_ylabel("utilization")
    top.set_title("share of the hosts that run jobs, averaged over 200ths of the time", loc="left", fontsize=10)
    bottom.set_ylim(bottom=0)
    bottom.set_ylabel("waiting jobs")
    bottom.set_title("queue", loc="left", fontsize=10)
    bottom.set_xlabel(f"simulated time ({unit_name})")
    bottom.set_xlim(left=0)
    figure.legend(*top.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return figure


def _draw_steps(axes: Axes, steps: Steps, unit: float, looks: dict[str, Any]) -> None:
    axes.step(steps.times / unit, steps.values, where="post", linewidth=1.2, **looks)


def waits_by_size_and_length(runs: Sequence[NamedRun]) -> Figure:
    """Mean waiting time by hosts and runtime, a map for each run on one scale of colours."""
    largest = max(int(run.jobs.size.max()) for run in runs)
    nb_sizes = int(np.ceil(np.log2(largest))) + 1
    cells = [_wait_cells(run.jobs, nb_sizes) for run in runs]
    top = max(_LEAST_WAIT * 10, *(float(np.nanmax(means, initial=0.0)) for means, _ in cells))
    figure, panels = side_by_side(len(runs), 4.2)
    for (axes,), run, (means, counts) in zip(panels, runs, cells, strict=True):
        image = axes.imshow(
            np.maximum(means, _LEAST_WAIT), origin="lower", aspect="auto", cmap="YlOrRd", norm=LogNorm(_LEAST_WAIT, top)
        )
        _write_cells(axes, means, counts, top)
        axes.set_xticks(range(nb_sizes), [_size_range(i) for i in range(nb_sizes)], rotation=45, fontsize=8)
        axes.set_yticks(range(len(_LENGTHS)), [name for _, name in _LENGTHS])
        axes.set_xlabel("hosts")
        axes.set_ylabel("runtime")
        axes.set_title(run.name, fontsize=11)
    figure.colorbar(image, ax=[axes for (axes,) in panels], label="mean waiting time (s)", fraction=0.03, aspect=40)
    return figure


def _wait_cells(jobs: JobTable, nb_sizes: int) -> tuple[Floats, Ints]:
    """Mean waiting time (seconds, nan where no job is) and number of jobs by runtime and hosts."""
    row = _bucket(jobs.runtime, _LENGTHS)
    column = np.ceil(np.log2(jobs.size)).astype(np.int64)
    cell, shape = row * nb_sizes + column, (len(_LENGTHS), nb_sizes)
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    sums = np.bincount(cell, weights=waiting_times(jobs), minlength=len(counts))
    means = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means.reshape(shape), counts.reshape(shape)


def _bucket(values: Floats, buckets: Sequence[tuple[float, str]]) -> Ints:
    """The number of the last bucket that begins at or below each value."""
    return np.maximum(np.searchsorted([least for least, _ in buckets], values, side="right") - 1, 0)


def _size_range(power: int) -> str:
    low, high = 2**power // 2 + 1, 2**power
    return str(high) if low >= high else f"{low}-{high}"


def _write_cells(axes: Axes, means: Floats, counts: Ints, top: float) -> None:
    for row, column in zip(*np.nonzero(counts), strict=True):
        mean = means[row, column]
        dark = mean > top**0.6
        text = f"{short_duration(mean)}\n{counts[row, column]:,}"
        axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "#222222")


def short_duration(seconds: float) -> str:
    """A duration with two digits or so: ``0 s``, ``4.2 min``, ``13 h``."""
    unit, name = next(((unit, name) for unit, name in _DURATIONS if seconds >= unit), (1.0, "s"))
    value = seconds / unit
    return f"{value:.1f} {name}" if 0 < value < 9.95 else f"{value:.0f} {name}"


def slowdown_buckets(runs: Sequence[NamedRun]) -> Figure:
    """The share of jobs in each range of bounded slowdowns (10 s), a bar for each run."""
    figure = new_figure(11, 4)
    axes = figure.subplots()
    width = 0.8 / len(runs)
    for at, (run, color) in enumerate(zip(runs, cycle(RUN_COLORS), strict=False)):
        found = np.bincount(_bucket(bounded_slowdowns(run.jobs), _SLOWDOWNS), minlength=len(_SLOWDOWNS))
        share = 100 * found / max(1, found.sum())
        left = np.arange(len(_SLOWDOWNS)) + (at - (len(runs) - 1) / 2) * width
        axes.bar(left, share, width * 0.95, color=color, label=run.name)
    axes.set_xticks(range(len(_SLOWDOWNS)), [name for _, name in _SLOWDOWNS])
    axes.set_xlabel("bounded slowdown (runtimes under 10 s count as 10 s)")
    axes.set_ylabel("jobs (%)")
    axes.legend(frameon=False)
    return figure


PICTURES: dict[str, Callable[[Sequence[NamedRun]], Figure]] = {
    "load": load_over_time,
    "waits": waits_by_size_and_length,
    "slowdowns": slowdown_buckets,
}


STATE_COLORS = {
    HostState.COMPUTING: "#4477aa",
    HostState.IDLE: "#ccbb44",
    HostState.SWITCHING_ON: "#ee6677",
    HostState.SWITCHING_OFF: "#aa3377",
    HostState.SLEEPING: "#bbbbbb",
    HostState.UNAVAILABLE: "#222222",
}
_WAITED, _RAN, _LEFT = "#ddaa33", "#4477aa", "#cfdcec"
_TOTAL = "#777777"  # power of all hosts, whatever they do


def reservation_timeline(runs: Sequence[NamedRun]) -> Figure:
    """Each job's wait, run and what its walltime would have left it, in order of submission."""
    figure, panels = side_by_side(len(runs), 6)
    unit, unit_name = clock(runs)
    for (axes,), run in zip(panels, runs, strict=True):
        jobs = run.jobs.take(np.argsort(run.jobs.submit_time, kind="stable"))
        end = jobs.start_time + jobs.runtime
        planned = np.where(np.isfinite(jobs.walltime), jobs.start_time + jobs.walltime, end)
        spans = ((jobs.submit_time, jobs.start_time, _WAITED), (jobs.start_time, end, _RAN), (end, planned, _LEFT))
        for begin, until, color in spans:
            _draw_bars(axes, begin / unit, until / unit, color)
        axes.set_ylim(len(jobs.id) - 0.5, -0.5)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlim(0, 1.01 * last_end(runs) / unit)
        axes.set_xlabel(f"simulated time ({unit_name})")
        axes.set_ylabel("job, in order of submission")
        axes.set_title(run.name, fontsize=11)
    names = ((_WAITED, "waits"), (_RAN, "runs"), (_LEFT, "reserved by its walltime, not used"))
    handles = [Patch(color=color, label=name) for color, name in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_bars(axes: Axes, begin: Floats, end: Floats, color: str) -> None:
    """A horizontal bar for each job, one above the other; one collection, so that thousands are fast."""
    low = np.arange(len(begin)) - 0.5
    x, y = np.stack([begin, end, end, begin], axis=1), np.stack([low, low, low + 1, low + 1], axis=1)
    axes.add_collection(PolyCollection(list(np.stack([x, y], axis=2)), facecolors=color, linewidths=0))


def hosts_and_power(runs: Sequence[NamedRun], platform: Platform | None) -> Figure:
    """Hosts by state and the power of all hosts over time, averaged over 200ths of it.

    Args:
        runs: in which energy was simulated.
        platform: what hosts draw; splits the power by state where it is known.
    """
    figure, panels = side_by_side(len(runs), 5.5, stacked=2)
    unit, unit_name = clock(runs)
    for (top, bottom), run in zip(panels, runs, strict=True):
        table = run.record.host_states
        counts = [averaged(Steps(table.time, table.counts[:, state].astype(float))) for state in STATE_COLORS]
        _stack(top, counts[0].times / unit, [count.values for count in counts], list(STATE_COLORS.values()))
        edges = np.linspace(0.0, float(table.time[-1]), PIECES + 1)
        power = _kilowatts(run, platform, edges)
        _stack(bottom, edges[:-1] / unit, power, list(STATE_COLORS.values()) if len(power) > 1 else [_TOTAL])
        top.set_ylim(0, run.record.nb_hosts)
        top.yaxis.set_major_locator(MaxNLocator(integer=True))
        top.set_ylabel("hosts")
        top.set_title(f"{run.name}: {run.record.joules / 1e6:,.0f} MJ", fontsize=11)
        bottom.set_xlim(0, last_end(runs) / unit)
        bottom.set_xlabel(f"simulated time ({unit_name})")
        bottom.set_ylabel("power (kW)")
    handles = [Patch(color=color, label=state.name.lower().replace("_", " ")) for state, color in STATE_COLORS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles) if len(runs) > 1 else 3, fontsize=8)
    return figure


def _kilowatts(run: NamedRun, platform: Platform | None, edges: Floats) -> list[Floats]:
    """Mean power between the edges (seconds): by state as in the colours, or only of all where no platform is known."""
    energy = run.record.energy
    if platform is not None:
        joules = energy_over_time(run.record, platform, edges)[:, list(STATE_COLORS)]
    elif energy is not None:
        joules = np.interp(edges, energy.time, np.asarray(energy.energy, float), left=0.0)[:, np.newaxis]
    else:
        joules = np.zeros((len(edges), 1))
    return list(np.diff(joules, axis=0).T / np.diff(edges) / 1e3)


def _stack(axes: Axes, times: Floats, layers: Sequence[Floats], colors: Sequence[str]) -> None:
    axes.stackplot(times, *layers, colors=colors, step="post", linewidth=0)
