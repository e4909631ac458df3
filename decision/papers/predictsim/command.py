"""``decision reproduce predictsim``."""

from pathlib import Path
from typing import Annotated

import typer

from decision.cli.command import with_groups
from decision.cli.options import JsonOption, Spread, TimeFieldOption
from decision.papers.command import PartsFolder, parts_in, reproduce


@with_groups
def predictsim_command(
    swf: Annotated[
        Path, typer.Option("--swf", help="Log in the Standard Workload Format, with walltimes.", metavar="FILE")
    ],
    name: Annotated[
        str,
        typer.Option(
            "--published",
            help="Log whose published figures are shown, where the file's name does not begin with it: KTH-SP2, "
            "CTC-SP2, SDSC-SP2 or SDSC-BLUE.",
            metavar="NAME",
        ),
    ] = "",
    time_field: TimeFieldOption = None,
    output: PartsFolder = None,
    *,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """EASY with predicted run times, beside what the simulator predictsim gave.

    Walltimes, perfect predictions and predictors, with candidates in order of
    arrival and shortest first. Finished runs are kept.

    Examples:

      decision reproduce predictsim --swf KTH-SP2-1996-2.1-cln.swf

      decision reproduce predictsim --swf theta_argonne.swf --time-field 6
    """
    from decision.files.swf import REQUESTED_TIME

    from .runs import reproduce_predictsim

    field = time_field or REQUESTED_TIME
    reproduce(
        "runs",
        lambda how, progress: reproduce_predictsim(swf, parts_in(output, "predictsim", how, progress), name, field),
        as_json,
        spread,
    )
