"""Options of conversions of workloads: which jobs, their times, their profiles; and how their values are read."""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decision.model.errors import ConfigError

from .options import WalltimeName
from .readers import read_range, read_speed

if TYPE_CHECKING:
    from decision.generate.tasks import Tasks
    from decision.model.reshape import Filters


_jobs_option = partial(typer.Option, rich_help_panel="Selection of jobs")
_times_option = partial(typer.Option, rich_help_panel="Times of jobs")
_tasks_option = partial(typer.Option, rich_help_panel="Profiles of jobs")


class ProfileName(StrEnum):
    """What a job does."""

    DELAY = "delay"
    COMPUTATION = "computation"
    PARALLEL = "parallel"


Select = Annotated[
    str | None,
    _jobs_option(
        "--select", help="Keep only jobs A to B - 1 of those that are left, in order of submission.", metavar="A:B"
    ),
]
From = Annotated[
    str | None,
    _jobs_option(
        "--from", help="Leave out jobs submitted earlier: seconds, or a date like 2016-05-10T08:30.", metavar="TIME"
    ),
]
To = Annotated[
    str | None,
    _jobs_option(
        "--to",
        help="Leave out jobs submitted at this time or later. Or 4 or 5: the Batsim that the file is for.",
        metavar="TIME",
    ),
]

MaxNodes = Annotated[
    int | None,
    _jobs_option("--max-nodes", help="Number of hosts of the workload; leave out jobs that need more.", min=1),
]
Daily = Annotated[bool, _jobs_option("--daily", help="Write one file per day, FILE_2016-05-10, with midnight at t=0.")]
Walltime = Annotated[
    WalltimeName,
    _times_option("--walltime", help="Walltimes: as requested, the run time (perfect estimates), or none."),
]
Estimates = Annotated[
    str | None,
    _times_option(
        "--estimates",
        help="Walltimes from the run times: exact, factor:F (F times the run times), or tsafrir (a few round values, "
        "as users choose them; tsafrir:SECONDS sets the longest).",
        metavar="MODEL",
    ),
]
EstimatesSeed = Annotated[
    int, _times_option("--seed", help="Random seed of models of walltimes and of --by users.", min=0)
]
Load = Annotated[
    float | None, _times_option("--load", help="Scale arrival times to this offered load.", metavar="SHARE")
]
LoadBy = Annotated[
    str,
    _times_option(
        "--by",
        help="How --load is reached: arrivals (times are stretched) or users (whole users are drawn, moved by weeks).",
        metavar="arrivals|users",
    ),
]
ScaleSizes = Annotated[
    int | None,
    _jobs_option("--scale-sizes", help="Scale sizes to a machine of N hosts, rounded, at least 1.", min=1, metavar="N"),
]
WithoutJobs = Annotated[
    str | None,
    _jobs_option(
        "--filter", help="Leave out the jobs that a filter of the archive's language names.", metavar="FILTER"
    ),
]
Shift = Annotated[
    bool, _times_option("--shift", help="Shift times so that --from (default: the first submission) is t=0.")
]
Profile = Annotated[
    ProfileName | None,
    _tasks_option(
        "--profile",
        help="Job profiles that take the recorded time: delays, computations, or computations with communication. "
        "By default logs become delays, and Batsim's JSON keeps its profiles.",
        show_default=False,
    ),
]
CommRatio = Annotated[
    float | None,
    _tasks_option(
        "--comm-ratio",
        help="With --profile parallel: share of its run time, 0 to 1, during which a job keeps its links busy.",
        metavar="SHARE",
    ),
]
LinkRate = Annotated[
    str | None,
    _tasks_option(
        "--bandwidth",
        help="With --profile parallel: bandwidth of a host's link in each direction; 1.25GBps by default.",
        metavar="RATE",
    ),
]


def read_filters(
    jobs: str | None,
    begin: str | None,
    end: str | None,
    nodes: int | None,
    walltime: WalltimeName,
    load: float | None,
    shift: bool,
    speed: str | None,
) -> "Filters":
    """What the options ask for. Raises ConfigError."""
    from decision.model.dates import read_moment
    from decision.model.reshape import Filters

    return Filters(
        nodes=nodes,
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
    """The profiles that the options ask for, None where they ask for none. Raises ConfigError."""
    from decision.formats.simgrid_network import parse_bandwidth
    from decision.generate.tasks import TEN_GIGABIT, Tasks

    for option, value in (("--comm-ratio", comm_ratio), ("--bandwidth", bandwidth)):
        if value is not None and profile is not ProfileName.PARALLEL:
            raise ConfigError(f"{option}: give it with --profile parallel, and only there")
    if profile is None:
        return None
    rate = TEN_GIGABIT if bandwidth is None else parse_bandwidth(bandwidth)
    return Tasks(kind=profile.value, speed=read_speed(speed), comm_ratio=comm_ratio, bandwidth=rate)


def given_options(context: typer.Context) -> str:
    """The options that the user gave and that change the result, as on the command line."""
    parts: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        if option.param_type_name == "option" and name not in ("target", "as_json") and _is_given(context, name):
            parts += [option.opts[0], *_value(context.params[name])]
    return " ".join(parts)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _value(value: Any) -> list[str]:
    return [] if value is True else [str(value)]
