"""Options that the conversions share, and how their values are read."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decision.model.errors import ConfigError

from ..options import WalltimeName, read_range

if TYPE_CHECKING:
    from decision.generate.tasks import Tasks
    from decision.model.reshape import Filters

KEEP = "Which jobs"
CHANGE = "What becomes of them"
PROFILES = "What they do"


class ProfileName(StrEnum):
    """What a job does."""

    DELAY = "delay"
    COMPUTATION = "computation"
    PARALLEL = "parallel"


FileArgument = Annotated[Path, typer.Argument(help="The file to read.", metavar="FILE", show_default=False)]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The file to write.", metavar="FILE")]
JobsOption = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        help="Keep these of the jobs that are left, counted in order of submission.",
        metavar="A:B",
        rich_help_panel=KEEP,
    ),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Leave out jobs submitted before: seconds, or a date like 2016-05-10T08:30.",
        metavar="TIME",
        rich_help_panel=KEEP,
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", help="Leave out jobs submitted then or later.", metavar="TIME", rich_help_panel=KEEP),
]
MaxNodesOption = Annotated[
    int | None,
    typer.Option(
        "--max-nodes", help="Leave out larger jobs; the workload is for so many hosts.", min=1, rich_help_panel=KEEP
    ),
]
DailyOption = Annotated[
    bool, typer.Option("--daily", help="Write a file per day, FILE_2016-05-10; 0 s is midnight.", rich_help_panel=KEEP)
]
WalltimeOption = Annotated[
    WalltimeName,
    typer.Option("--walltime", help="As requested, the run time (perfect estimates), or none.", rich_help_panel=CHANGE),
]
EstimatesOption = Annotated[
    str | None,
    typer.Option(
        "--estimates",
        help="Walltimes made from the run times: exact, factor:F (F times as long), or tsafrir (few round values, as "
        "users choose them; tsafrir:SECONDS, none longer than that).",
        metavar="MODEL",
        rich_help_panel=CHANGE,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of --estimates tsafrir.", min=0, rich_help_panel=CHANGE)]
LoadOption = Annotated[
    float | None,
    typer.Option(
        "--load", help="Stretch or squeeze arrivals to this offered load.", metavar="SHARE", rich_help_panel=CHANGE
    ),
]
ShiftOption = Annotated[
    bool,
    typer.Option("--shift", help="Let --from, or else the first submission, be 0 s.", rich_help_panel=CHANGE),
]
ProfileOption = Annotated[
    ProfileName | None,
    typer.Option(
        "--profile",
        help="Wait, compute, or compute and communicate, each for the recorded time. "
        "If not given, logs become delays and Batsim's JSON keeps its profiles.",
        rich_help_panel=PROFILES,
        show_default=False,
    ),
]
SpeedOption = Annotated[
    str | None,
    typer.Option(
        "--speed", help="Speed of a host, for jobs that compute: 11.77Gf.", metavar="FLOPS", rich_help_panel=PROFILES
    ),
]
CommRatioOption = Annotated[
    float | None,
    typer.Option(
        "--comm-ratio",
        help="With --profile parallel: the share of its run time, 0 to 1, for which a job keeps its links busy.",
        metavar="SHARE",
        rich_help_panel=PROFILES,
    ),
]
BandwidthOption = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        help="With --profile parallel: what a host's link carries each way; 1.25GBps if not given.",
        metavar="RATE",
        rich_help_panel=PROFILES,
    ),
]


def read_filters(
    jobs: str | None,
    begin: str | None,
    end: str | None,
    max_nodes: int | None,
    walltime: WalltimeName,
    load: float | None,
    shift: bool,
    speed: str | None,
) -> "Filters":
    """What is asked for in the options' words. Raises ConfigError."""
    from decision.model.dates import read_moment
    from decision.model.reshape import Filters

    return Filters(
        nodes=max_nodes,
        begin=None if begin is None else read_moment(begin),
        end=None if end is None else read_moment(end),
        jobs=read_range(jobs),
        walltime=walltime.value,
        load=load,
        shift=shift,
        speed=read_speed(speed),
    )


def read_tasks(
    profile: ProfileName | None, speed: str | None, comm_ratio: float | None, bandwidth: str | None
) -> "Tasks | None":
    """The profiles that are asked for, None where none are. Raises ConfigError."""
    from decision.formats.network import parse_bandwidth
    from decision.generate.tasks import TEN_GIGABIT, Tasks

    for option, value in (("--comm-ratio", comm_ratio), ("--bandwidth", bandwidth)):
        if value is not None and profile is not ProfileName.PARALLEL:
            raise ConfigError(f"{option}: give it with --profile parallel, and only there")
    if profile is None:
        return None
    rate = TEN_GIGABIT if bandwidth is None else parse_bandwidth(bandwidth)
    return Tasks(kind=profile.value, speed=read_speed(speed), comm_ratio=comm_ratio, bandwidth=rate)


def read_speed(text: str | None) -> float | None:
    """A host's speed in flop/s.

    Raises:
        ConfigError: if it is no speed or not above 0.
    """
    from decision.formats.power import parse_speed

    if text is None:
        return None
    speed = parse_speed(text)
    if speed <= 0:
        raise ConfigError(f"--speed {text}: must be above 0")
    return speed


def given_options(context: typer.Context) -> str:
    """The options that the user gave, but for the files' names, as on the command line."""
    parts: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        if option.param_type_name == "option" and name != "output" and _is_given(context, name):
            parts += [option.opts[0], *_value(context.params[name])]
    return " ".join(parts)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _value(value: Any) -> list[str]:
    return [] if value is True else [str(value)]
