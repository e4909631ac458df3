"""``decision workload from-swf|from-oar|from-json|to-swf``: conversions between logs, exports and Batsim's JSON."""

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from decision.computer.shipped import find_workload
from decision.model.errors import ConfigError

from .grouped import with_groups
from .options import (
    JsonOption,
    MissingWalltimeOption,
    OutputFile,
    SpeedOption,
    TimeFieldOption,
    WalltimeName,
    read_range,
    read_speed,
)

if TYPE_CHECKING:
    from decision.formats.traces.read import TraceOptions
    from decision.generate.tasks import Tasks
    from decision.model.reshape import Filters

_JOBS = "Selection of jobs"
_TIMES = "Times of jobs"
_TASKS = "Profiles of jobs"
_LOGS = "How the file is read"


class ProfileName(StrEnum):
    """What a job does."""

    DELAY = "delay"
    COMPUTATION = "computation"
    PARALLEL = "parallel"


SourceFile = Annotated[
    Path, typer.Argument(help="Input file.", metavar="FILE", show_default=False, parser=find_workload)
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        help="Keep only jobs A to B - 1 of those that are left, in order of submission.",
        metavar="A:B",
        rich_help_panel=_JOBS,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Leave out jobs submitted earlier: seconds, or a date like 2016-05-10T08:30.",
        metavar="TIME",
        rich_help_panel=_JOBS,
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        help="Leave out jobs submitted at this time or later. Or 4 or 5: the Batsim that the file is for.",
        metavar="TIME",
        rich_help_panel=_JOBS,
    ),
]
_BATSIMS = ("4", "5")
MaxNodes = Annotated[
    int | None,
    typer.Option(
        "--max-nodes",
        help="Number of hosts of the workload; leave out jobs that need more.",
        min=1,
        rich_help_panel=_JOBS,
    ),
]
Daily = Annotated[
    bool,
    typer.Option(
        "--daily", help="Write one file per day, FILE_2016-05-10, with midnight at t=0.", rich_help_panel=_JOBS
    ),
]
Walltime = Annotated[
    WalltimeName,
    typer.Option(
        "--walltime",
        help="Walltimes: as requested, the run time (perfect estimates), or none.",
        rich_help_panel=_TIMES,
    ),
]
Estimates = Annotated[
    str | None,
    typer.Option(
        "--estimates",
        help="Walltimes from the run times: exact, factor:F (F times the run times), or tsafrir (a few round values, "
        "as users choose them; tsafrir:SECONDS sets the longest).",
        metavar="MODEL",
        rich_help_panel=_TIMES,
    ),
]
EstimatesSeed = Annotated[
    int,
    typer.Option("--seed", help="Random seed of models of walltimes and of --by users.", min=0, rich_help_panel=_TIMES),
]
Load = Annotated[
    float | None,
    typer.Option("--load", help="Scale arrival times to this offered load.", metavar="SHARE", rich_help_panel=_TIMES),
]
LoadBy = Annotated[
    str,
    typer.Option(
        "--by",
        help="How --load is reached: arrivals (times are stretched) or users (whole users are drawn, moved by weeks).",
        metavar="arrivals|users",
        rich_help_panel=_TIMES,
    ),
]
ScaleSizes = Annotated[
    int | None,
    typer.Option(
        "--scale-sizes",
        help="Scale sizes to a machine of N hosts, rounded, at least 1.",
        min=1,
        metavar="N",
        rich_help_panel=_JOBS,
    ),
]
WithoutJobs = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Leave out the jobs that a filter of the archive's language names.",
        metavar="FILTER",
        rich_help_panel=_JOBS,
    ),
]
Shift = Annotated[
    bool,
    typer.Option(
        "--shift", help="Shift times so that --from (default: the first submission) is t=0.", rich_help_panel=_TIMES
    ),
]
Profile = Annotated[
    ProfileName | None,
    typer.Option(
        "--profile",
        help="Job profiles that take the recorded time: delays, computations, or computations with communication. "
        "By default logs become delays, and Batsim's JSON keeps its profiles.",
        rich_help_panel=_TASKS,
        show_default=False,
    ),
]
CommRatio = Annotated[
    float | None,
    typer.Option(
        "--comm-ratio",
        help="With --profile parallel: share of its run time, 0 to 1, during which a job keeps its links busy.",
        metavar="SHARE",
        rich_help_panel=_TASKS,
    ),
]
LinkRate = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        help="With --profile parallel: bandwidth of a host's link in each direction; 1.25GBps by default.",
        metavar="RATE",
        rich_help_panel=_TASKS,
    ),
]


SourceFiles = Annotated[
    list[Path], typer.Argument(help="Input file.", metavar="FILE...", show_default=False, parser=find_workload)
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the input, where its content is misread: json, swf, gwf, oar, sacct, sacct-json, pbs, lsf, "
        "sge, csv or parquet.",
        metavar="FORMAT",
        show_default=False,
        rich_help_panel=_LOGS,
    ),
]
UnitOption = Annotated[
    str,
    typer.Option(
        "--unit",
        help="What a host is: nodes, cores, gpus, or auto: nodes where at most 2 % of the jobs shared one, else cores.",
        metavar="UNIT",
        rich_help_panel=_LOGS,
    ),
]
Machine = Annotated[
    int | None,
    typer.Option(
        "--machine",
        help="Hosts of the machine; by default those of the header, a file FILE.machines, the distinct nodes, or the "
        "peak of recorded use.",
        min=1,
        metavar="N",
        rich_help_panel=_LOGS,
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        help="Time zone of local times, such as Europe/Berlin.",
        show_default="UTC",
        metavar="ZONE",
        rich_help_panel=_LOGS,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of sacct's columns with commas between them, where there is no header; or a TOML file that says "
        "which columns of a table are submit, wait or start, run or end, size, walltime, user and id.",
        metavar="NAMES|FILE",
        rich_help_panel=_LOGS,
    ),
]


class LogReading(NamedTuple):
    """How logs are read, as the user wants it."""

    kind: Format = None
    unit: UnitOption = "auto"
    machine: Machine = None
    time_zone: TimeZone = None
    columns: Columns = None

    def options(self, time_field: int | None = None, given: str | None = None) -> "TraceOptions":
        """What readers of logs take; `given` is the format, where the command says it."""
        from decision.formats.traces.read import TraceOptions

        return TraceOptions(
            format=self.kind or given,
            unit=self.unit,
            machine=self.machine,
            time_zone=self.time_zone,
            columns=self.columns,
            time_field=time_field,
        )


def _convert(
    given: str | None,
    context: typer.Context,
    files: SourceFiles,
    target: OutputFile,
    *,
    reading: LogReading,
    jobs: Select = None,
    begin: From = None,
    end: To = None,
    nodes: MaxNodes = None,
    daily: Daily = False,
    walltime: Walltime = WalltimeName.REQUESTED,
    missing: MissingWalltimeOption = "none",
    time_field: TimeFieldOption = None,
    estimates: Estimates = None,
    seed: EstimatesSeed = 0,
    load: Load = None,
    load_by: LoadBy = "arrivals",
    scale_sizes: ScaleSizes = None,
    without: WithoutJobs = None,
    shift: Shift = False,
    profile: Profile = None,
    speed: SpeedOption = None,
    comm_ratio: CommRatio = None,
    bandwidth: LinkRate = None,
    as_json: JsonOption = False,
) -> None:
    """Convert files, of the format `given` or of any."""
    from msgspec.structs import replace

    from decision.runs.conversion import Conversion, convert

    from .workload_tables import print_audit_json, print_converted

    to = end if end in _BATSIMS else None
    asked = Conversion(
        sources=tuple(files),
        target=target,
        to_swf=given is None and target.suffix.lower() == ".swf",
        reading=reading.options(time_field, given),
        filters=replace(
            _read_filters(jobs, begin, None if to else end, nodes, walltime, load, shift, speed),
            load_by=load_by,
            scale_sizes=scale_sizes,
            without=without or "",
            seed=seed,
        ),
        missing=missing,
        to=to,
        tasks=_read_tasks(profile, speed, comm_ratio, bandwidth),
        estimates=estimates,
        seed=seed,
        daily=daily,
        options=_given_options(context),
    )
    converted = convert(asked)
    if as_json and given is None:
        print_audit_json(converted.source, read_speed(speed))
    else:
        print_converted(converted, missing if walltime is WalltimeName.REQUESTED else "", as_json)


def _from(text: str, given: str | None = None) -> Callable[..., None]:
    """A command that converts files, of the format `given` or of any; `text` is its help."""

    def command(**options: Any) -> None:
        _convert(given, **options)

    signature = inspect.signature(_convert)
    parameters = [each for name, each in signature.parameters.items() if name != "given"]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = text
    return with_groups(command)


convert_command = _from(
    """Convert a log, accounting records or a table of jobs to Batsim's JSON.

    What FILE is, its content says: SWF (any number of fields from 18 on, also
    with ; between them), GWF, sacct (any columns with a header, Open XDMoD's 26
    without one, or --json), accounting files of PBS, Torque, LSF (lsb.acct), SGE
    and UGE, OAR exports, tables of known data sets (CSV, or Parquet with
    pip install 'batsim-decision[traces]'), other tables with --columns, and
    Batsim's JSON. Files may be compressed (gzip, bzip2, xz).

    Each record is accounted for: it is a job, part of one, or left out for a
    reason that is printed and written into the description. What was recorded of
    a job is kept beside it, under recorded and request, and told to no policy.
    A file named .swf is written as a log.

    Examples:

      decision workload convert sacct.txt -o cluster.json

      decision workload convert 2026-0*.gz -o pbs.json --unit cores

      decision workload convert jobs.parquet -o jobs.json --columns mine.toml
    """
)
from_swf_command = _from(
    """Convert a log in the Standard Workload Format to Batsim's JSON.

    Lines that a simulation cannot use, and jobs that options leave out, are
    counted by reason, on the terminal and in the file's description, which also
    has the log's name and SHA-256, the options and the version of this program.

    Examples:

      decision workload from-swf log.swf -o log.json

      decision workload from-swf log.swf -o week.json --from 1993-10-04 \\
          --to 1993-10-11 --shift --load 0.9

      decision workload from-swf log.swf -o days.json --daily \\
          --profile parallel --speed 11.77Gf --comm-ratio 0.2
    """,
    "swf",
)
from_oar_command = _from(
    """Convert an export of the scheduler OAR to Batsim's JSON.

    FILE is the output of oarstat --gantt "FROM, TO" -J (.json; OAR's other JSON
    works if it has stop times and resources), or a CSV table with the columns
    job_id, submission_time, start_time, stop_time (seconds since 1970), and
    resources (ids separated by spaces) or resource_count; optionally walltime
    (seconds), user and queue. A job's size is the number of its resources, and
    the first submission is t=0.

    Examples:

      decision workload from-oar gantt.csv -o gantt.json

      decision workload from-oar jobs.json -o short.json --select 0:1000 \\
          --profile computation --speed 8.024Gf
    """,
    "oar",
)
from_json_command = _from(
    """Convert a Batsim workload to another one.

    Profiles do not change unless --profile asks for others; fields of jobs that
    Batsim does not know are kept. Run times of jobs that compute are those on
    hosts of --speed. With --to 5 or --to 4 alone the file is converted for that
    Batsim, and nothing else; back it is the same file.

    Examples:

      decision workload from-json week.json -o week5.json --to 5

      decision workload from-json week.json -o busy.json --load 1.2

      decision workload from-json week.json -o flops.json \\
          --profile computation --speed 141.24Gf
    """,
    "json",
)


def to_swf_command(
    context: typer.Context,
    file: SourceFile,
    target: OutputFile,
    jobs: Select = None,
    begin: From = None,
    end: To = None,
    nodes: MaxNodes = None,
    daily: Daily = False,
    walltime: Walltime = WalltimeName.REQUESTED,
    load: Load = None,
    shift: Shift = False,
    speed: SpeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Convert a Batsim workload to a log in the Standard Workload Format.

    Run times of jobs that compute are those on hosts of --speed. Names of jobs,
    users, groups, executables and queues that are not numbers are replaced by
    numbers; the header lists them.

    Examples:

      decision workload to-swf week.json -o week.swf

      decision workload to-swf flops.json -o week.swf --speed 141.24Gf
    """
    from decision.runs.conversion import Conversion, convert

    from .workload_tables import print_converted

    asked = Conversion(
        sources=(file,),
        target=target,
        to_swf=True,
        filters=_read_filters(jobs, begin, end, nodes, walltime, load, shift, speed),
        daily=daily,
        options=_given_options(context),
    )
    print_converted(convert(asked), "", as_json)


def _read_filters(
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


def _read_tasks(
    profile: ProfileName | None, speed: str | None, comm_ratio: float | None, bandwidth: str | None
) -> "Tasks | None":
    """The profiles that the options ask for, None where they ask for none. Raises ConfigError."""
    from decision.formats.simgrid import parse_bandwidth
    from decision.generate.tasks import TEN_GIGABIT, Tasks

    for option, value in (("--comm-ratio", comm_ratio), ("--bandwidth", bandwidth)):
        if value is not None and profile is not ProfileName.PARALLEL:
            raise ConfigError(f"{option}: give it with --profile parallel, and only there")
    if profile is None:
        return None
    rate = TEN_GIGABIT if bandwidth is None else parse_bandwidth(bandwidth)
    return Tasks(kind=profile.value, speed=read_speed(speed), comm_ratio=comm_ratio, bandwidth=rate)


def _given_options(context: typer.Context) -> str:
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
