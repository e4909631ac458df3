"""Options of ``decision compare`` alone: what is compared, and the runs of each."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from decision.runs import Engine

from .command import read_config

_runs_option = partial(typer.Option, rich_help_panel="Runs")

Policies = Annotated[
    list[str],
    typer.Option(
        "--policy",
        help="Policy to compare, as for decision run; recorded: what really happened; heuristics: every order and "
        "backfilling, with and without a bound on waiting; shipped: what the package learned. May be repeated.",
        metavar="POLICY",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="Policy that the others are compared with; the first if absent.", metavar="POLICY"),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help="Metric named above; may be repeated.",
        metavar="METRIC",
        show_default="the first eight; of whole workloads all of them but utilization",
    ),
]
Engines = Annotated[
    list[Engine] | None,
    typer.Option("--engine", help="Simulator, all but docker; may be repeated.", show_default="embedded"),
]
Windows = Annotated[int, _runs_option("--windows", help="Number of random sequences of each workload's jobs.", min=0)]
Whole = Annotated[bool, _runs_option("--whole", help="Run each workload once, as it is, and count all jobs.")]
Length = Annotated[int, _runs_option("--length", help="Jobs in a sequence.", min=1)]
Draw = Annotated[int, _runs_option("--draw", help="Random seed of the sequences and the bootstrap.", min=0)]
Seeds = Annotated[
    int, _runs_option("--seeds", help="Number of policy seeds, for policies that use random numbers.", min=1)
]
PlotRows = Annotated[
    bool, typer.Option("--plot", help="Also write the report's pictures to FOLDER, one file per metric and workload.")
]

WorthOption = Annotated[
    bool,
    _runs_option(
        "--worth",
        help="Compare each policy with itself by walltimes and by perfect predictions, too; writes FOLDER/worth.csv.",
    ),
]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with options: their long names without dashes, and values, lists where they may be repeated. "
        "What is typed goes first.",
        metavar="FILE",
        callback=read_config,
        is_eager=True,
    ),
]
