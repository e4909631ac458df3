"""``decision showcase``: the main job, five policies compared on what the package ships."""

from pathlib import Path
from typing import Annotated

import typer

from .options import OutputOption

POLICIES = ("fcfs", "easy", "conservative", "sjf+easy", "saf+easy")


def showcase(
    platform: Annotated[Path, typer.Option("--platform", "-p", help="SimGrid platform XML.", metavar="FILE")] = Path(
        "platforms/taurus.xml"
    ),
    workload: Annotated[Path, typer.Option("--workload", "-w", help="Batsim JSON or .swf.", metavar="FILE")] = Path(
        "workloads/taurus_week_flops.json"
    ),
    output: OutputOption = Path("out"),
) -> None:
    """Compare five policies on a cluster like Grid'5000's and a week of jobs.

    Prints one table and leaves, for each policy, Batsim's output files and a
    picture in FOLDER/POLICY.

    Examples:

      decision showcase

      decision showcase -p platforms/taurus.xml -w log.swf -o out/log
    """
    from decision.drivers.inputs import Choice, Inputs, load
    from decision.drivers.whole_run import run_here

    from .progress import announce_compilation, working
    from .tables import print_dropped, print_summaries
    from .terminal import stdout

    case = load(Inputs(platform=platform, workloads=(workload,), energy=True))
    print_dropped(case.workloads)
    announce_compilation()
    summaries = {}
    for policy in POLICIES:
        with working(policy) as show:
            summaries[policy] = run_here(case, Choice(policy=policy), output / policy, plot=True, show=show)
    stdout().print(f"{workload} on {platform}", highlight=False)
    print_summaries(summaries)
    stdout().print(f"Batsim's output files and schedule.png of each policy are in {output}/POLICY", highlight=False)
