"""``decision analyse``: pictures and a page of runs that are over, and of trainings."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class PictureFormat(StrEnum):
    """How pictures are written."""

    PNG = "png"
    SVG = "svg"


def analyse(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folder or prefix of a run's files, or a training's folder; a folder of folders is all in it.",
            metavar="RUN",
        ),
    ],
    platform: Annotated[
        Path | None,
        typer.Option("--platform", "-p", help="Splits power by what hosts do.", metavar="FILE"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what is made.", metavar="FOLDER")] = Path(
        "report"
    ),
    pictures: Annotated[PictureFormat, typer.Option("--format", help="Of the pictures.")] = PictureFormat.PNG,
) -> None:
    """Draw runs or trainings side by side and make one page of them.

    Reads what decision run, decision showcase or Batsim (3 to 5) wrote. Writes
    pictures and report.html, one file with all of them, a table, and Gantt
    charts that can be zoomed; it needs no network.

    Of folders that decision train wrote it draws the learning curves: three or
    more trainings that differ in their seed alone as a mean in a band from the
    lowest to the highest, others as a line each.

    Examples:

      decision analyse out

      decision analyse out/easy out/fcfs -p platforms/taurus.xml -o report

      decision analyse learned/seed0 learned/seed1 learned/seed2
    """
    from decision.analysis.curves import load_trainings
    from decision.analysis.extras import require_matplotlib
    from decision.analysis.runs import load_runs
    from decision.drivers.inputs import writable_folder
    from decision.formats import load_platform
    from decision.learn.kinds import kind_of

    from .progress import working
    from .tables import print_summaries
    from .terminal import stdout
    from .workload.tables import count

    require_matplotlib()
    from decision.analysis.analyse import analyse as write
    from decision.analysis.analyse import split
    from decision.analysis.report import summaries_of

    with working("drawing"):
        hosts = None if platform is None else load_platform(platform, energy=True)
        places, folders = split(runs)
        found, learned = load_runs(places), load_trainings(folders, kind_of)
        files = write(found, learned, writable_folder(output), pictures.value, hosts)
    if found:
        print_summaries(summaries_of(found))
    beside = count(len(files) - 1, "picture")
    stdout().print(f"{files[-1]} and {beside} beside it", highlight=False, soft_wrap=True)
