"""``decision run``: one policy over a workload on a platform, from files to files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    DEFAULT_TIMEOUT,
    EnergyOption,
    EventsOption,
    JobsOption,
    NodesOption,
    OutputOption,
    PlatformOption,
    PolicyOption,
    PolicySettings,
    SeedOption,
    TimeoutOption,
    WalltimeName,
    WalltimeOption,
    WorkloadOption,
    read_range,
    read_settings,
)


class EngineName(StrEnum):
    """Who simulates."""

    EMBEDDED = "embedded"
    REFERENCE = "reference"
    BATSIM = "batsim"
    DOCKER = "docker"


Engine = Annotated[EngineName, typer.Option("--engine", help="Who simulates.")]
Batsim = Annotated[str, typer.Option("--batsim", help="Batsim's command, for --engine batsim.", metavar="PATH")]
Image = Annotated[str, typer.Option("--image", help="Batsim's Docker image, for --engine docker.", metavar="NAME:TAG")]
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
    jobs: JobsOption = None,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
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
            summary = run_there(case, choice, output, batsim, image=container, plot=plot, timeout=timeout, show=show)
        else:
            reference = engine is EngineName.REFERENCE
            summary = run_here(case, choice, output, plot=plot, reference=reference, show=show)
    print_summaries({policy: summary})
