"""``decision experiment``: a published or recorded result, and what we get in its place."""

from pathlib import Path
from typing import Annotated

import typer

from .options import ProcessesOption


def experiment(
    name: Annotated[str | None, typer.Argument(help="The experiment; lists them if none is named.")] = None,
    data: Annotated[
        Path, typer.Option("--data", help="The folder that the experiment's inputs are in.", metavar="FOLDER")
    ] = Path(),
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the finished parts of a long one.", metavar="FOLDER")
    ] = Path("out/experiment"),
    jobs: ProcessesOption = None,
) -> None:
    """Repeat a named experiment and print its tables.

    The inputs are other people's data, which are not shipped. A long experiment
    keeps its finished parts in FOLDER/NAME and goes on from there.

    Examples:

      decision experiment

      decision experiment grid5000-2016 --data data/grid5000-2016

      decision experiment rlscheduler-table --data data
    """
    from decision.cores import available_cores
    from decision.experiments import EXPERIMENTS, Means, find_experiment

    from .progress import announce_compilation, counting
    from .tables import print_experiments, print_outcome

    if name is None:
        print_experiments(EXPERIMENTS)
        return
    chosen = find_experiment(name)
    announce_compilation()
    with counting("parts") as show:
        outcome = chosen.run(data, Means(kept=output / name, processes=jobs or available_cores(), progress=show))
    print_outcome(outcome)
