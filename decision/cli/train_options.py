"""Options of ``decision train`` alone: what is trained, from which settings, seeds, days and recorded choices."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

_learning_option = partial(typer.Option, rich_help_panel="Learning")


Learned = Annotated[
    str,
    typer.Argument(
        help="Scheduler to train: dbf, rlscheduler, inspector, ranking, repair, packing, prices, deepscheduling, green "
        "or your own; or one of its presets.",
        metavar="SCHEDULER",
    ),
]
Preset = Annotated[
    str | None,
    _learning_option(
        "--preset",
        help="Settings: [bold]dbf-compact[/bold] (the default of dbf), [bold]dbf-paper[/bold], "
        "[bold]rlscheduler[/bold], [bold]inspector[/bold], [bold]ranking[/bold], [bold]deepscheduling-compact[/bold], "
        "[bold]deepscheduling-paper[/bold], or a file.toml of the same form.",
        metavar="NAME",
    ),
]
Changes = Annotated[
    list[str] | None,
    _learning_option(
        "--set",
        help="Setting that replaces the preset's; may be repeated. Several values, KEY=A,B, are a training each.",
        metavar="KEY=VALUE",
    ),
]
Steps = Annotated[
    int | None,
    _learning_option(
        "--steps",
        help="Number of environment steps; for ranking, prices and joint, of jobs that are placed; for bc and crr, of "
        "updates.",
        min=1,
    ),
]
LearnedDays = Annotated[
    str | None,
    _learning_option(
        "--days",
        help="Learn from these days alone, deepscheduling and joint: A to B - 1 of those with two submissions or more.",
        metavar="A:B",
    ),
]
TrainingSeed = Annotated[int, _learning_option("--seed", help="Random seed.", min=0, max=2**32 - 1)]
TrainingSeeds = Annotated[
    str | None,
    _learning_option(
        "--seeds", help="A training for each random seed from A to B - 1, and for each value of --set.", metavar="A:B"
    ),
]
Data = Annotated[
    Path | None,
    _learning_option(
        "--data",
        help="Recorded choices, made by decision collect, for learn.method=bc, crr or sac.",
        metavar="FILE.choices",
    ),
]
Resume = Annotated[
    bool, _learning_option("--resume", help="Resume the training in FOLDER; a larger --steps extends it.")
]
