"""``decision reproduce dbf``."""

from typing import Annotated, Literal

import typer

from decision.cli.command import with_groups
from decision.cli.options import (
    PAPER,
    DpiOption,
    FormatOption,
    JsonOption,
    PictureFormat,
    Spread,
    TypeSizeOption,
    WidthOption,
)
from decision.papers.command import Finished, Log, PartsFolder, parts_in, reproduce
from decision.report.plots.paper import Paper, drawn_for

Budget = Annotated[
    Literal["smoke", "standard", "splits", "full"],
    typer.Option("--budget", help="Number of runs: minutes, hours or days."),
]


@with_groups
def dbf_command(
    swf: Log,
    budget: Budget = "smoke",
    output: PartsFolder = None,
    *,
    finished: Finished = False,
    suffix: FormatOption = PictureFormat.PNG,
    width: WidthOption = PAPER.width,
    type_size: TypeSizeOption = PAPER.type_size,
    dpi: DpiOption = PAPER.dpi,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """DBF's paper: windows, splits and seeds, against heuristics and two other learned schedulers.

    Policies are trained on the first half of the log and compared on the second.
    Finished runs are cached; Ctrl-C loses at most a minute of training.

    Examples:

      decision reproduce dbf --swf lublin_256.swf

      decision reproduce dbf --swf lublin_256.swf --budget standard -o out/dbf
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .runs import reproduce_dbf

    with drawn_for(Paper(width, type_size, dpi, f".{suffix}")):
        reproduce(
            "runs",
            lambda how, progress: reproduce_dbf(
                swf, parts_in(output, "dbf", how, progress), budget, only_finished=finished
            ),
            as_json,
            spread,
        )
