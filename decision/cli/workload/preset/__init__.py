"""``decision workload preset ...``: the workloads of papers, one module per paper."""

import typer

from .green import green
from .grid5000_like import grid5000_like
from .predicted_runtimes import predicted_runtimes
from .topology import topology

app = typer.Typer(no_args_is_help=True)
for command in (predicted_runtimes, grid5000_like, green, topology):
    app.command()(command)
