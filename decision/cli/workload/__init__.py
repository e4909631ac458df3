"""``decision workload ...``: one module per command."""

import typer

app = typer.Typer(no_args_is_help=True, help="Make, convert and describe workloads.")
