"""``decision platform ...``: one module per command."""

import typer

from .grid5000 import grid5000

app = typer.Typer(no_args_is_help=True, help="Make, check and look at SimGrid platforms.")
app.command()(grid5000)
