"""``decision view``: a run in the terminal, now or while it goes."""

from pathlib import Path
from typing import Annotated

import typer

from decision.model.errors import ConfigError

PERIOD = 0.25  # seconds between two looks


def view(
    folder: Annotated[Path, typer.Argument(help="The folder that a run writes to.", metavar="FOLDER")],
    live: Annotated[bool, typer.Option("--live", help="Go on looking until the run ends.")] = False,
) -> None:
    """Show how far a run is: clock, queue, host map, power.

    Looks at the folder that decision run was given with -o, from another
    terminal. Of a run that is over it prints what came of it.

    Examples:

      decision view out

      decision view out --live
    """
    from decision.analysis.report import summaries_of
    from decision.analysis.runs import load_runs
    from decision.drivers.status import read_status

    from .live import frame
    from .tables import print_summaries
    from .terminal import stdout

    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such folder; give the one that decision run was given with -o")
    if live:
        _watch(folder)
    status = read_status(folder)
    if status is None:
        print_summaries(summaries_of(load_runs([folder])))
    else:
        stdout().print(frame(status, [status.waiting], stdout().width))


def _watch(folder: Path) -> None:
    """Show the run until it is over; waits for it where none has begun."""
    import time

    from rich.live import Live

    from decision.drivers.status import read_status

    from .live import frame
    from .terminal import stdout

    queue: list[int] = []
    with Live(f"waiting for a run in {folder}", console=stdout(), transient=True, auto_refresh=False) as screen:
        while (status := read_status(folder)) is not None or not any(folder.glob("*jobs.csv")):
            if status is not None:
                queue.append(status.waiting)
                screen.update(frame(status, queue, stdout().width), refresh=True)
            time.sleep(PERIOD)
