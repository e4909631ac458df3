"""Options and arguments that commands share."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from decision.computer.shipped import find_platform, find_workload
from decision.model.errors import ConfigError
from decision.model.hosts import MOST_HOSTS

_input_option = partial(typer.Option, rich_help_panel="Input")
_jobs_option = partial(typer.Option, rich_help_panel="Jobs of the workload")
_MOST_JOBS = 10_000_000  # more are a mistake, or more than fits into memory

DEFAULT_TIMEOUT = 300.0  # seconds
DEFAULT_DECIDE_LIMIT = 60.0  # seconds


class WalltimeName(StrEnum):
    """Where the walltimes of a log's jobs come from."""

    REQUESTED = "requested"
    RUNTIME = "runtime"
    NONE = "none"


# --- Output ---------------------------------------------------------------------------------------------------------

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document (SI units, shares from 0 to 1) instead of text.")
]
PdfOption = Annotated[
    bool, typer.Option("--pdf", help="Print the page to PDF, too, where Chromium or Chrome is at hand.")
]


def _named(text: str | Path) -> Path:
    """A path; not an empty text, which a shell makes of a variable that is not set, and which is the current folder."""
    if not str(text).strip():
        raise ConfigError("--output: the name is empty; give one, or . for the current folder")
    return Path(text)


OutputFolder = Annotated[Path, typer.Option("--output", "-o", help="Output folder.", metavar="FOLDER", parser=_named)]
OutputFile = Annotated[Path, typer.Option("--output", "-o", help="Output file.", metavar="FILE", parser=_named)]

# --- What is simulated ----------------------------------------------------------------------------------------------

PlatformArgument = Annotated[
    Path,
    typer.Argument(help="SimGrid platform (XML), or a shipped platform's name.", metavar="FILE", parser=find_platform),
]
PlatformOption = Annotated[
    Path,
    _input_option(
        "--platform",
        "-p",
        help="SimGrid platform (XML), or a shipped platform's name.",
        metavar="FILE",
        parser=find_platform,
    ),
]
MasterOption = Annotated[str, typer.Option("--master", help="Host on which Batsim itself runs.", metavar="HOST")]
WorkloadArgument = Annotated[
    Path,
    typer.Argument(
        help="Log or accounting records of any known format, table of jobs, Batsim workload (JSON), a shipped "
        "workload's name, or - for standard input; may be compressed.",
        metavar="FILE",
        parser=find_workload,
    ),
]
WorkloadOption = Annotated[
    Path,
    _input_option(
        "--workload",
        "-w",
        help="Batsim workload (JSON), log of any known format, a shipped workload's name, or - for standard input.",
        metavar="FILE",
        parser=find_workload,
    ),
]
WorkloadsOption = Annotated[
    list[Path],
    _input_option(
        "--workload",
        "-w",
        help="Batsim workload (JSON), log of any known format, a shipped workload's name, or - for standard input; "
        "may be repeated.",
        metavar="FILE",
        parser=find_workload,
    ),
]
EventsOption = Annotated[
    list[Path] | None, _input_option("--events", help="Batsim external events; may be repeated.", metavar="FILE")
]
EnergyOption = Annotated[bool, _input_option("--energy", "-E", help="Simulate power states and energy.")]
SelectOption = Annotated[
    str | None, _jobs_option("--select", help="Use only jobs A to B - 1, in order of submission.", metavar="A:B")
]
DaysOption = Annotated[
    str | None,
    _jobs_option(
        "--days", help="Run each of these days alone: A to B - 1 of those with two submissions or more.", metavar="A:B"
    ),
]
NodesOption = Annotated[int | None, _jobs_option("--nodes", help="Leave out jobs that need more hosts.", min=1)]
WalltimeOption = Annotated[
    WalltimeName, _jobs_option("--walltime", help="Walltimes: as requested, the run time (perfect estimates), or none.")
]
MissingWalltimeOption = Annotated[
    str,
    _jobs_option(
        "--missing-walltime",
        help="Walltime of a log's jobs without a requested time: none, runtime (perfect estimates), longest, or a "
        "model as --estimates of workload convert has it.",
        metavar="MODEL",
    ),
]
FeedbackOption = Annotated[
    bool,
    _jobs_option(
        "--feedback",
        help="Submit each user's next session when the jobs that it came after in the log have ended, with the log's "
        "think times (closed loop); for logs with users and starts.",
    ),
]
ShakeOption = Annotated[
    int, typer.Option("--shake", help="Copies of the whole log with shaken submissions.", min=1, max=1000, metavar="N")
]
TimeFieldOption = Annotated[
    int | None,
    _jobs_option(
        "--time-field",
        help="Field of SWF logs that holds the requested time, counted from 1; the standard's field 9 by default.",
        min=1,
        max=18,
        metavar="N",
    ),
]

TimeZoneOption = Annotated[
    str | None,
    _jobs_option(
        "--time-zone",
        help="Time zone of a log's local times, such as Europe/Berlin.",
        show_default="UTC",
        metavar="ZONE",
    ),
]

# --- Who decides and simulates --------------------------------------------------------------------------------------

PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        help="Name listed by [bold]decision policies[/bold], checkpoint.ckpt, module:Class, ./file.py:Class or "
        "pybatsim:module:Class.",
        metavar="POLICY",
    ),
]
SettingsOption = Annotated[
    list[str] | None, typer.Option("--option", "-O", help="Policy option; may be repeated.", metavar="NAME=VALUE")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also a checkpoint that has not passed its gates (decision gates).")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Random seed.", min=0)]
BatsimOption = Annotated[str, typer.Option("--batsim", help="Batsim executable, for --engine batsim.", metavar="PATH")]
ProcessesOption = Annotated[
    int | None, typer.Option("--processes", "-j", help="Number of parallel processes; one per core by default.", min=1)
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", help="Seconds to wait for the other process; 0 means no limit.", min=0.0)
]
DecideLimitOption = Annotated[
    float,
    typer.Option(
        "--decide-limit",
        help="Seconds that a policy in Python may take for one decision; 0 means no limit.",
        min=0.0,
        metavar="SECONDS",
    ),
]

# --- How workloads and platforms are made ---------------------------------------------------------------------------

NbJobsOption = Annotated[int, typer.Option("--nb-jobs", help="Number of jobs.", min=1, max=_MOST_JOBS)]
HostsOption = Annotated[
    int, typer.Option("--hosts", help="Number of hosts; jobs are not larger.", min=1, max=MOST_HOSTS)
]
EstimatesOption = Annotated[
    str,
    typer.Option(
        "--estimates",
        help="Walltimes: exact (the run times), factor:F (F times the run times), or tsafrir (a few round values, as "
        "users choose them; tsafrir:SECONDS sets the longest).",
        metavar="MODEL",
    ),
]
SpeedOption = Annotated[
    str | None, typer.Option("--speed", help="Host speed, for jobs that compute, such as 11.77Gf.", metavar="FLOPS")
]
SimgridOption = Annotated[
    str | None,
    typer.Option(
        "--simgrid",
        help="SimGrid version that will read the file, such as 3.24, 3.28 or 4.0; by default 3.32, that of Batsim "
        "4.2.1.",
        metavar="VERSION",
    ),
]
