"""Options that the makers of workloads share, and what they all do at the end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..terminal import stdout
from .tables import count

if TYPE_CHECKING:
    from decision.model.workload import Workload

MOST_JOBS, MOST_HOSTS = 10_000_000, 1_000_000  # more are a mistake, or more than fits into memory

SeedOption = Annotated[int, typer.Option("--seed", help="The same seed gives the same file.", min=0)]
JobsOption = Annotated[int, typer.Option("--jobs", help="How many jobs.", min=1, max=MOST_JOBS)]
HostsOption = Annotated[
    int, typer.Option("--hosts", help="Hosts of the machine; no job is larger.", min=1, max=MOST_HOSTS)
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The workload to write.", metavar="FILE")]
EstimatesOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        help="The walltimes: exact, the run times; factor:F, F times as long; tsafrir, few round values, as users "
        "choose them (tsafrir:SECONDS, none longer than that).",
        metavar="MODEL",
    ),
]


def write_made(path: Path, workload: "Workload", origin: str, command: str) -> None:
    """Write a made workload with its origin in its description, and say what it is.

    Args:
        path: the file.
        workload: its jobs.
        origin: the model or paper, with its parameters; sentences.
        command: the arguments after ``decision workload`` that make it again.
    """
    import msgspec

    from decision.formats import write_workload

    description = f"{origin} Made, not recorded: decision workload {command}"
    write_workload(path, msgspec.structs.replace(workload, description=description))
    days = (workload.jobs[-1].submit_time - workload.jobs[0].submit_time) / 86_400
    stdout().print(
        f"{path}: {count(len(workload.jobs), 'job')} for {count(workload.nb_res, 'host')}, "
        f"submitted within {days:.1f} days",
        highlight=False,
        soft_wrap=True,
    )
