"""``decision run``: one policy over a workload on a platform, from files to files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    DEFAULT_TIMEOUT,
    EnergyOption,
    EventsOption,
    OutputOption,
    PlatformOption,
    PolicyOption,
    PolicySettings,
    SeedOption,
    TimeoutOption,
    WorkloadOption,
    read_range,
    read_settings,
)

SWF = "Logs in the Standard Workload Format"


class EngineName(StrEnum):
    """Who simulates."""

    EMBEDDED = "embedded"
    REFERENCE = "reference"
    BATSIM = "batsim"
    DOCKER = "docker"


class WalltimeName(StrEnum):
    """Where the walltimes of a log's jobs come from."""

    REQUESTED = "requested"
    RUNTIME = "runtime"
    NONE = "none"


Engine = Annotated[EngineName, typer.Option("--engine", help="Who simulates.")]
Batsim = Annotated[str, typer.Option("--batsim", help="Batsim's command, for --engine batsim.", metavar="PATH")]
Image = Annotated[str, typer.Option("--image", help="Batsim's Docker image, for --engine docker.", metavar="NAME:TAG")]
Jobs = Annotated[
    str | None, typer.Option("--jobs", help="Keep these of the log's jobs only.", metavar="A:B", rich_help_panel=SWF)
]
Nodes = Annotated[
    int | None, typer.Option("--nodes", help="Leave out jobs larger than this.", min=1, rich_help_panel=SWF)
]
Walltime = Annotated[WalltimeName, typer.Option("--walltime", help="What a job's walltime is.", rich_help_panel=SWF)]
Plot = Annotated[bool, typer.Option("--plot", help="Draw the schedule, FOLDER/schedule.png.")]


def run(
    platform: PlatformOption,
    workload: WorkloadOption,
    policy: PolicyOption,
    option: PolicySettings = None,
    engine: Engine = EngineName.EMBEDDED,
    batsim: Batsim = "batsim",
    image: Image = "oarteam/batsim:latest",
    energy: EnergyOption = False,
    events: EventsOption = None,
    jobs: Jobs = None,
    nodes: Nodes = None,
    walltime: Walltime = WalltimeName.REQUESTED,
    seed: SeedOption = 0,
    output: OutputOption = Path("out"),
    plot: Plot = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Run one policy over a workload on a platform.

    Prints what came of it and writes Batsim's output files, out_jobs.csv and
    its companions, to FOLDER. With --engine batsim it starts Batsim itself on
    a free port, with --engine docker it starts a published image of Batsim;
    the other engines need nothing installed.

    Examples:

      decision run -p platforms/taurus.xml -w workloads/taurus_week_flops.json \\
          --policy easy --energy

      decision run -p cluster.xml -w log.swf --jobs 0:1000 --policy saf+easy

      decision run -p cluster.xml -w work.json --policy ./mine.py:Mine \\
          --engine batsim --batsim /opt/bin/batsim
    """
    from decision.drivers.inputs import Choice, Inputs, SwfOptions, load
    from decision.drivers.whole_run import run_here, run_there

    from .progress import announce_compilation, working
    from .tables import print_dropped, print_summaries

    inputs = Inputs(
        platform=platform,
        workloads=tuple(workload),
        events=tuple(events or ()),
        energy=energy,
        swf=SwfOptions(jobs=read_range(jobs), nodes=nodes, walltime=walltime.value),
    )
    choice = Choice(policy=policy, settings=read_settings(option), seed=seed)
    case = load(inputs)
    print_dropped(case.workloads)
    announce_compilation()
    with working(policy) as show:
        if engine in (EngineName.BATSIM, EngineName.DOCKER):
            container = image if engine is EngineName.DOCKER else None
            summary = run_there(case, choice, output, batsim, image=container, plot=plot, timeout=timeout)
        else:
            reference = engine is EngineName.REFERENCE
            summary = run_here(case, choice, output, plot=plot, reference=reference, progress=show)
    print_summaries({policy: summary})
