"""``decision evaluate``: learned policies and heuristics over the same episodes."""

from pathlib import Path
from typing import Annotated

import typer

from .options import JobsOption, LogOption, NodesOption, PlatformOption, WalltimeName, WalltimeOption, read_range

EPISODES = "Episodes"

Policies = Annotated[
    list[str], typer.Argument(help="Checkpoints, or names that decision policies lists.", metavar="POLICY...")
]
Episodes = Annotated[int, typer.Option("--episodes", help="How many.", min=1, rich_help_panel=EPISODES)]
Placed = Annotated[int, typer.Option("--placed", help="Jobs that an episode places.", min=1, rich_help_panel=EPISODES)]
Seed = Annotated[int, typer.Option("--seed", help="Where in the log they begin.", min=0, rich_help_panel=EPISODES)]
Offline = Annotated[
    bool, typer.Option("--offline", help="No other jobs arrive than those placed.", rich_help_panel=EPISODES)
]
Table = Annotated[Path | None, typer.Option("--output", "-o", help="Each episode's metrics, CSV.", metavar="FILE")]


def evaluate(
    policies: Policies,
    platform: PlatformOption,
    workload: LogOption,
    episodes: Episodes = 100,
    placed: Placed = 1000,
    seed: Seed = 0,
    offline: Offline = False,
    output: Table = None,
    jobs: JobsOption = None,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
) -> None:
    """Compare learned policies with heuristics over the same episodes.

    An episode begins at a random job of the workload and ends when so many
    jobs have been placed; after the last job the first ones come again.
    Metrics are those of Wang, Harwood and Rodriguez (HPCC 2022), averages
    over time, and the mean bounded slowdown of the placed jobs.

    Examples:

      decision evaluate learned/dbf.ckpt easy sjf+easy \\
          -p cluster.xml -w log.swf --jobs 5000:

      decision evaluate fcfs easy -p cluster.xml -w work.json -o metrics.csv

      decision evaluate learned/inspector.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --placed 128 --offline
    """
    from decision.drivers.inputs import Inputs, SwfOptions, load
    from decision.learn import with_torch

    from .learning_tables import print_comparison, write_metrics
    from .progress import announce_compilation, working
    from .tables import print_dropped

    swf = SwfOptions(jobs=read_range(jobs), nodes=nodes, walltime=walltime.value)
    case = load(Inputs(platform=platform, workloads=(workload,), swf=swf))
    print_dropped(case.workloads)
    comparison = with_torch("schedulers").Comparison(
        case.platform, case.workloads[0], placed, episodes, seed, online=not offline
    )
    announce_compilation()
    metrics = {}
    for policy in policies:
        with working(policy):
            metrics[policy] = comparison.metrics(policy)
    if output is not None:
        write_metrics(output, metrics)
    print_comparison(metrics)
