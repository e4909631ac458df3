"""Options of ``decision train`` alone: what is trained, from which settings, seeds, days and recorded choices."""

from pathlib import Path
from typing import Annotated

import typer

_LEARNING = "Learning"


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
    typer.Option(
        "--preset",
        help="Settings: [bold]dbf-compact[/bold] (the default of dbf), [bold]dbf-paper[/bold], "
        "[bold]rlscheduler[/bold], [bold]inspector[/bold], [bold]ranking[/bold], [bold]deepscheduling-compact[/bold], "
        "[bold]deepscheduling-paper[/bold], or a file.toml of the same form.",
        metavar="NAME",
        rich_help_panel=_LEARNING,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Setting that replaces the preset's; may be repeated. Several values, KEY=A,B, are a training each.",
        metavar="KEY=VALUE",
        rich_help_panel=_LEARNING,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps",
        help="Number of environment steps; for ranking, prices and joint, of jobs that are placed; for bc and crr, of "
        "updates.",
        min=1,
        rich_help_panel=_LEARNING,
    ),
]
LearnedDays = Annotated[
    str | None,
    typer.Option(
        "--days",
        help="Learn from these days alone, deepscheduling and joint: A to B - 1 of those with two submissions or more.",
        metavar="A:B",
        rich_help_panel=_LEARNING,
    ),
]
TrainingSeed = Annotated[
    int, typer.Option("--seed", help="Random seed.", min=0, max=2**32 - 1, rich_help_panel=_LEARNING)
]
TrainingSeeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        help="A training for each random seed from A to B - 1, and for each value of --set.",
        metavar="A:B",
        rich_help_panel=_LEARNING,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Recorded choices, made by decision collect, for learn.method=bc, crr or sac.",
        metavar="FILE.choices",
        rich_help_panel=_LEARNING,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Resume the training in FOLDER; a larger --steps extends it.", rich_help_panel=_LEARNING
    ),
]
