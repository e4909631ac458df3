"""Options that several of these commands share."""

from typing import Annotated

import typer

SimgridOption = Annotated[
    str | None,
    typer.Option(
        "--simgrid",
        help="The SimGrid that will read the file, such as 3.24, 3.28 or 4.0; Batsim 4.2.1's, 3.32, if not given.",
        metavar="VERSION",
    ),
]
