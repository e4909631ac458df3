"""Pictures of what jobs got, for runs side by side: load over time, waiting times, slowdowns."""

from collections.abc import Callable, Sequence
from itertools import cycle, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from decision.model.record import Floats, Ints, JobTable

from .metrics import bounded_slowdowns, waiting_times
from .plots import clock, new_figure, side_by_side
from .runs import Run
from .series import Steps, averaged, queue_over_time, utilization_over_time

RUN_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
LOOKS = tuple(product(("-", "--", ":"), RUN_COLORS))  # other styles when the colours are used up
# From which on, in seconds, and what it is called
_LENGTHS = ((0.0, "< 1 min"), (60.0, "1-10 min"), (600.0, "10-60 min"), (3600.0, "1-6 h"), (21_600.0, "> 6 h"))
_SLOWDOWNS = ((1.0, "1-1.1"), (1.1, "1.1-2"), (2.0, "2-10"), (10.0, "10-100"), (100.0, "100-1000"), (1000.0, "> 1000"))
_DURATIONS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_LEAST_WAIT = 1.0  # seconds: where the colours of waiting times begin


def load_over_time(runs: Sequence[Run]) -> Figure:
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


def waits_by_size_and_length(runs: Sequence[Run]) -> Figure:
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


def slowdown_buckets(runs: Sequence[Run]) -> Figure:
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


PICTURES: dict[str, Callable[[Sequence[Run]], Figure]] = {
    "load": load_over_time,
    "waits": waits_by_size_and_length,
    "slowdowns": slowdown_buckets,
}
