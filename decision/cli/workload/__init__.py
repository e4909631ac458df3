"""``decision workload ...``: one module per command."""

import typer

from .lublin import lublin
from .predict import predict

app = typer.Typer(no_args_is_help=True, help="Make, convert and describe workloads.")
app.command()(lublin)
app.command()(predict)
