"""``decision workload describe``: what a workload is like."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import FileArgument, SpeedOption, read_speed

if TYPE_CHECKING:
    from decision.model.demand import Floats
    from decision.model.workload import Workload

PlotOption = Annotated[
    Path | None, typer.Option("--plot", help="Draw it, as .png or .svg.", metavar="FILE", show_default=False)
]


def describe(file: FileArgument, speed: SpeedOption = None, plot: PlotOption = None) -> None:
    """Say what a workload is like: sizes, run times, estimates, arrivals, users.

    FILE is a log (.swf), an export of OAR as a table (.csv), or Batsim's JSON.

    The offered load is the host time that jobs would take, each at most its
    walltime, relative to what the machine has from the first submission to the
    last.

    Examples:

      decision workload describe log.swf

      decision workload describe week.json --speed 141.24Gf --plot week.png
    """
    from decision.analysis.workload_figures import figures
    from decision.drivers.conversion import load_any
    from decision.model.demand import runtimes
    from decision.model.reshape import check_jobs

    from ..tables import print_dropped
    from .description_tables import print_figures

    workload = load_any(file)
    check_jobs(workload)
    seconds = runtimes(workload, read_speed(speed))
    if plot is not None:
        _draw(workload, seconds, plot, file.name)
    print_dropped([workload])
    print_figures(workload, figures(workload, seconds))


def _draw(workload: "Workload", runtimes: "Floats", path: Path, title: str) -> None:
    from decision.analysis.extras import require_matplotlib

    require_matplotlib()
    from decision.analysis.workload_picture import draw_workload

    draw_workload(workload, runtimes, path, title)
