"""Pictures of where runs differ: waiting times by kind of job, and slowdowns by range."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm

from decision.model.record import Floats, Ints, JobTable

from ..metrics import bounded_slowdowns, mean, waiting_times
from ..runs import NamedRun
from .figures import (
    DARK,
    explain,
    headline,
    looks,
    name_panel,
    new_figure,
    panels_in_row,
    short_duration,
    side_by_side,
    styled,
    wrapped,
)
from .paper import paper
from .pictures import Picture, facts_of, listed

# From which on, in seconds, and what it is called
_LENGTHS = ((0.0, "< 1 min"), (60.0, "1-10 min"), (600.0, "10-60 min"), (3600.0, "1-6 h"), (21_600.0, "> 6 h"))
_SLOWDOWNS = ((1.0, "1-1.1"), (1.1, "1.1-2"), (2.0, "2-10"), (10.0, "10-100"), (100.0, "100-1000"), (1000.0, "> 1000"))
_SHADES = 1000.0  # the longest mean wait over the one where the colours begin, at most
_COLORS = "YlOrRd"  # from light to dark, in grey too
_TICKS = (1, 10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)  # seconds
_DARK_SHARE = 0.6  # of the colours: darker ones have white texts


@styled
def waits_by_size_and_length(runs: Sequence[NamedRun]) -> Picture:
    """Mean waiting time by hosts and runtime, a map for each run on one scale of colours."""
    largest = max(int(run.jobs.size.max()) for run in runs)
    nb_sizes = int(np.ceil(np.log2(largest))) + 1
    cells = [_wait_cells(run.jobs, nb_sizes) for run in runs]
    low, top = _shades([means for means, _ in cells])
    norm = LogNorm(low, top)
    least = max(16, 7 + 2.7 * nb_sizes)
    figure, panels = side_by_side(len(runs), least, 16)
    across = panels_in_row(len(runs), least)
    for at, ((axes,), run, (means, counts)) in enumerate(zip(panels, runs, cells, strict=True)):
        axes.imshow(np.maximum(means, low), origin="lower", aspect="auto", cmap=_COLORS, norm=norm)
        _write_cells(axes, means, counts, norm)
        axes.set_xticks(
            range(nb_sizes), [_size_range(i) for i in range(nb_sizes)], rotation=45, rotation_mode="anchor", ha="right"
        )
        axes.set_yticks(range(len(_LENGTHS)), [name for _, name in _LENGTHS] if at % across == 0 else [])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        if at % across == 0:
            axes.set_ylabel("runtime")
        axes.tick_params(labelbottom=at + across >= len(runs))
        if at + across >= len(runs):
            axes.set_xlabel("hosts")
        name_panel(axes, run.name, across, 6.0)
    bar = figure.colorbar(
        ScalarMappable(norm, _COLORS),
        ax=[axes for (axes,) in panels],
        label="mean waiting time",
        location="bottom",
        fraction=0.02,
        aspect=60,
        shrink=0.7,
        extend="min" if any((means < low).any() for means, _ in cells) else "neither",
    )
    ticks = [seconds for seconds in _TICKS if low <= seconds <= top]
    bar.set_ticks(ticks, labels=[short_duration(seconds) for seconds in ticks])
    bar.minorticks_off()
    explain(figure, "in each cell: mean waiting time, and below it the number of jobs")
    return Picture(
        figure,
        "Mean waiting time of jobs by their number of hosts and their runtime, on one scale of colours for all runs. "
        "In each cell stand the mean and below it the number of jobs; an empty cell has no job.",
        f"Maps of mean waiting times of {listed([run.name for run in runs])} by size and runtime. "
        + facts_of("Over all jobs", {run.name: short_duration(mean(waiting_times(run.jobs))) for run in runs}),
    )


def _shades(maps: Sequence[Floats]) -> tuple[float, float]:
    """Where the scale of colours begins and ends, seconds: at the positive means, at most `_SHADES` apart."""
    means = np.concatenate([found[found > 0] for found in maps])
    top = max(10.0, float(means.max(initial=0.0)))
    return min(max(float(means.min(initial=top)), top / _SHADES, 1.0), top / 10), top


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


def _write_cells(axes: Axes, means: Floats, counts: Ints, norm: LogNorm) -> None:
    for row, column in zip(*np.nonzero(counts), strict=True):
        wait = means[row, column]
        dark = float(norm(wait)) > _DARK_SHARE if wait > 0 else False
        shown = f"{wait / 60:.0f} min" if 60 <= wait < 3570 else short_duration(wait)  # "7.4 min" is wider than a cell
        text = f"{shown}\n{counts[row, column]:,}"
        axes.text(column, row, text, ha="center", va="center", fontsize="x-small", color="white" if dark else DARK)


@styled
def slowdown_buckets(runs: Sequence[NamedRun]) -> Picture:
    """The share of jobs in each range of bounded slowdowns (10 s): a panel for each range, a bar for each run."""
    shares = np.array([_slowdown_shares(run.jobs) for run in runs])
    across = panels_in_row(len(_SLOWDOWNS), 9)
    down = -(-len(_SLOWDOWNS) // across)
    names = [wrapped(run.name, min(16.0, 0.3 * paper().columns), "small") for run in runs]
    figure = new_figure(6 + down * (4 + 1.6 * sum(1 + 0.5 * name.count("\n") for name in names)))
    every = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for at, (axes, (_, title)) in enumerate(zip(every, _SLOWDOWNS, strict=False)):
        for row, look in zip(range(len(runs)), looks(), strict=False):
            bar = {"facecolor": look.color, "hatch": look.hatch, "edgecolor": "white", "linewidth": 0}
            axes.barh(row, shares[row, at], 0.72, label=runs[row].name, **bar)
            axes.annotate(
                f"{shares[row, at]:.1f}",
                (shares[row, at], row),
                (2, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        axes.set_title(title)
        axes.tick_params(axis="y", length=0)
    every[0].set_yticks(range(len(runs)), names)
    every[0].set_ylim(len(runs) - 0.4, -0.6)
    every[0].set_xlim(0, 1.35 * shares.max())
    explain(figure, "jobs (%)")
    headline(figure, "jobs by bounded slowdown (runtimes under 10 s count as 10 s)")
    fair = {run.name: f"{share[:2].sum():.0f} %" for run, share in zip(runs, shares, strict=True)}
    return Picture(
        figure,
        "Share of the jobs in each range of bounded slowdowns, in percent; runtimes under 10 s count as 10 s. The bars "
        "of a run add up to 100 %.",
        facts_of(f"Bounded slowdowns of {listed([run.name for run in runs])}. Jobs with a slowdown below 2", fair),
    )


def _slowdown_shares(jobs: JobTable) -> Floats:
    """Percent of the jobs in each range."""
    found = np.bincount(_bucket(bounded_slowdowns(jobs), _SLOWDOWNS), minlength=len(_SLOWDOWNS))
    return 100 * found / max(1, found.sum())
