"""``decision reproduce topology`` and ``decision reproduce hpcschedule``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from decision.cli.command import with_groups
from decision.cli.options import JsonOption, Spread
from decision.papers.command import Data, PartsFolder, parts_in, reproduce


@with_groups
def topology_command(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Folder of the authors' hpcschedule_jobs.txt, which is not shipped.", metavar="FOLDER"
        ),
    ] = None,
    budget: Annotated[
        Literal["smoke", "standard", "full"], typer.Option("--budget", help="Number of runs: seconds, an hour or days.")
    ] = "smoke",
    output: PartsFolder = None,
    *,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Claims on topology-aware allocation: networks, searches, exact windows, run times.

    Each is held or refuted on two trees, that of the authors' program and that
    of their text. A second run goes on where the first was stopped. Without
    --data, jobs of the authors' generator take the place of their list. A
    program named batsim, where there is one, runs jobs that communicate, too.

    Example:

      decision reproduce topology --data data --budget standard -o out/topology
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .claims import reproduce_topology

    reproduce(
        "parts",
        lambda how, progress: reproduce_topology(parts_in(output, "topology", how, progress), budget, data),
        as_json,
        spread,
    )


def hpcschedule_command(data: Data = Path(), as_json: JsonOption = False) -> None:
    """The paper on topology-aware allocation by neural simulated annealing.

    FCFS and backfilling to the digit, better hosts without windows, and solvers
    of windows: the published search, one that undoes rejected moves, and exact.

    The list of jobs is hpcschedule_jobs.txt.

    Example:

      decision reproduce hpcschedule --data data
    """
    from .windows import reproduce_hpcschedule

    reproduce("parts", lambda progress: reproduce_hpcschedule(data, progress=progress), as_json)
