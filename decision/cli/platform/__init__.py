"""``decision platform ...``: one module per command."""

import typer

from .check import check
from .dragonfly import dragonfly
from .fat_tree import fat_tree
from .flat import flat
from .grid5000 import grid5000
from .show import show
from .torus import torus

app = typer.Typer(no_args_is_help=True, help="Make, check and look at SimGrid platforms.")
app.command()(grid5000)
app.command()(fat_tree)
app.command()(torus)
app.command()(dragonfly)
app.command()(flat)
app.command()(check)
app.command()(show)
