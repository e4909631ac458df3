"""``decision experiment``: a published or recorded result, and what we get in its place."""

from pathlib import Path
from typing import Annotated

import typer


def experiment(
    name: Annotated[str | None, typer.Argument(help="The experiment; lists them if none is named.")] = None,
    data: Annotated[
        Path, typer.Option("--data", help="The folder that the experiment's inputs are in.", metavar="FOLDER")
    ] = Path(),
) -> None:
    """Repeat a named experiment and print its tables.

    The inputs are other people's data, which are not shipped.

    Examples:

      decision experiment

      decision experiment grid5000-2016 --data data/grid5000-2016
    """
    from decision.experiments import EXPERIMENTS, find_experiment

    from .progress import announce_compilation, working
    from .tables import print_experiments, print_outcome

    if name is None:
        print_experiments(EXPERIMENTS)
        return
    run = find_experiment(name).load()
    announce_compilation()
    with working(name):
        outcome = run(data)
    print_outcome(outcome)
