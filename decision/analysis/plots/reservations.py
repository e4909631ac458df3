"""The picture of reservations: each job's wait, run, and what its walltime would have left it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from decision.model.record import JobTable

from ..metrics import waiting_times
from ..runs import NamedRun, last_end
from .figures import explain, name_panel, outer_legend, panels_in_row, short_duration, side_by_side, styled
from .pictures import Picture, facts_of, listed
from .timelines import clock_of

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
    for what, begins, ends in ((_WAITS, submit, start), (_RESERVED, stop, limit), (_RUNS, start, stop)):
        first = np.clip(np.floor(begins / end * columns), 0, columns - 1).astype(int)
        final = np.clip(np.ceil(ends / end * columns), first + (what == _RUNS), columns).astype(int)
        for r, low, high, some in zip(
            row.tolist(), first.tolist(), final.tolist(), (ends > begins).tolist(), strict=True
        ):
            if some or what == _RUNS:
                image[r, low:high] = what
    return image
