"""``decision workload convert|to-swf``: conversions between logs, exports and Batsim's JSON."""

import inspect
import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from decision.model.computer import find_workload
from decision.model.errors import ConfigError

from .declared import Argument, Option
from .options import (
    JsonOption,
    LogReading,
    MissingWalltimeOption,
    OutputFile,
    SpeedOption,
    TimeFieldOption,
    WalltimeName,
    read_range,
    read_speed,
)
from .tables import count, print_dropped, print_json
from .terminal import note, say

if TYPE_CHECKING:
    from decision.experiments.conversion import Converted
    from decision.files.generate.jobs import Tasks
    from decision.model.reshape import Filters

# Options of conversions of workloads: which jobs, their times, their profiles; and how their values are read.

_jobs_option = partial(Option, panel="Selection of jobs")
_times_option = partial(Option, panel="Times of jobs")
_tasks_option = partial(Option, panel="Profiles of jobs")


class ProfileName(StrEnum):
    """Kind of profile that a job gets."""

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
    from decision.files.generate.jobs import TEN_GIGABIT, Tasks
    from decision.files.simgrid.values import parse_bandwidth

    for option, value in (("--comm-ratio", comm_ratio), ("--bandwidth", bandwidth)):
        if value is not None and profile is not ProfileName.PARALLEL:
            raise ConfigError(f"{option}: give it with --profile parallel, and only there")
    if profile is None:
        return None
    rate = TEN_GIGABIT if bandwidth is None else parse_bandwidth(bandwidth)
    return Tasks(kind=profile.value, speed=read_speed(speed), comm_ratio=comm_ratio, bandwidth=rate)


def given_options(context: click.Context) -> str:
    """The options that the user gave and that change the result, as on the command line."""
    parts: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        source = context.get_parameter_source(name)
        typed = source is not None and source.name == "COMMANDLINE"
        if option.param_type_name == "option" and name not in ("target", "as_json") and typed:
            value = context.params[name]
            parts += [option.opts[0], *([] if value is True else [str(value)])]
    return " ".join(parts)


SourceFile = Annotated[Path, Argument(help="Input file.", metavar="FILE", show_default=False, parser=find_workload)]
_BATSIMS = ("4", "5")


SourceFiles = Annotated[
    list[Path], Argument(help="Input file.", metavar="FILE...", show_default=False, parser=find_workload)
]


def _convert(
    given: str | None,
    context: click.Context,
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

    from decision.experiments.conversion import Conversion, convert

    to = end if end in _BATSIMS else None
    asked = Conversion(
        sources=tuple(files),
        target=target,
        to_swf=given is None and target.suffix.lower() == ".swf",
        reading=reading.options(time_field, given),
        filters=replace(
            read_filters(jobs, begin, None if to else end, nodes, walltime, load, shift, speed),
            load_by=load_by,
            scale_sizes=scale_sizes,
            without=without or "",
            seed=seed,
        ),
        missing=missing,
        to=to,
        tasks=read_tasks(profile, speed, comm_ratio, bandwidth),
        estimates=estimates,
        seed=seed,
        daily=daily,
        options=given_options(context),
    )
    converted = convert(asked)
    if as_json and given is None:
        from decision.experiments.audit import audit

        print_dropped([converted.source])
        print_json(audit(converted.source, read_speed(speed)))
    else:
        print_converted(converted, missing if walltime is WalltimeName.REQUESTED else "", as_json)


def _from(text: str, given: str | None = None) -> Callable[..., None]:
    """A command that converts files, of the format `given` or of any; `text` is its help."""

    def command(**options: Any) -> None:
        _convert(given, **options)

    signature = inspect.signature(_convert)
    parameters = [each for name, each in signature.parameters.items() if name != "given"]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__doc__ = text
    return command


convert_command = _from(
    """Convert a log, accounting records, a table of jobs or a workload to Batsim's JSON.

    What FILE is, its content says: SWF (any number of fields from 18 on, also
    with ; between them), GWF, sacct (any columns with a header, Open XDMoD's 26
    without one, or --json), accounting files of PBS, Torque, LSF (lsb.acct), SGE
    and UGE, OAR exports (oarstat --gantt "FROM, TO" -J, or a table with job_id,
    submission_time, start_time, stop_time and resources or resource_count),
    tables of known data sets (CSV, or Parquet with pip install
    'batsim-decision[traces]'), other tables with --columns, and Batsim's JSON,
    whose profiles stay as they are unless --profile asks for others. Files may be
    compressed (gzip, bzip2, xz).

    Each record is accounted for: it is a job, part of one, or left out for a
    reason that is printed and written into the description, which also has the
    file's SHA-256 and the options. What was recorded of a job is kept with it,
    under recorded and request, and no policy sees it. Run times of jobs that
    compute are those on hosts of --speed. A file named .swf is written as a log.
    With --to 5 or --to 4 alone Batsim's JSON is converted for that Batsim, and
    nothing else; back it is the same file.

    Examples:

      decision workload convert sacct.txt -o cluster.json

      decision workload convert log.swf -o week.json --from 1993-10-04 \\
          --to 1993-10-11 --shift --load 0.9

      decision workload convert log.swf -o days.json --daily \\
          --profile parallel --speed 11.77Gf --comm-ratio 0.2

      decision workload convert 2026-0*.gz -o pbs.json --unit cores

      decision workload convert jobs.parquet -o jobs.json --columns mine.toml

      decision workload convert week.json -o week5.json --to 5
    """
)
OLD_NAMES = {  # of commands that read one format; `convert` reads them all
    f"from-{given}": _from(f"The same as decision workload convert --format {given}.", given)
    for given in ("swf", "oar", "json")
}


def to_swf_command(
    context: click.Context,
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
    from decision.experiments.conversion import Conversion, convert

    asked = Conversion(
        sources=(file,),
        target=target,
        to_swf=True,
        filters=read_filters(jobs, begin, end, nodes, walltime, load, shift, speed),
        daily=daily,
        options=given_options(context),
    )
    print_converted(convert(asked), "", as_json)


def print_converted(converted: "Converted", missing: str, as_json: bool) -> None:
    """What was written where, what was left out of the source, and what takes the place of missing walltimes."""
    from decision.policies.runtimes.walltimes import missing_text

    print_dropped([converted.workload])
    if missing and (remark := missing_text(converted.source, missing)):
        note(f"{converted.source.path}: {remark}")
    if (reading := converted.source.reading) is not None and reading.format not in ("json", "swf", "oar"):
        # What a host is and how many there are, with the reasons
        changes = (
            "" if reading.unit_changes is None else f"; {reading.unit_changes:,} jobs have another size in the other"
        )
        unit = f"hosts are {reading.unit} ({reading.unit_reason}{changes})"
        clock = f", times in {reading.clock}" if reading.clock else ""
        hosts = f"{converted.source.nb_res:,} of them ({reading.hosts_from})"
        note(f"{converted.source.path}: {reading.format}, {unit}, {hosts}{clock}")
    if as_json:
        files = [
            {"path": file.path, "jobs": len(file.workload.jobs), "hosts": file.workload.nb_res, "load": file.load}
            for file in converted.files
        ]
        print_json({"files": files, "dropped": converted.workload.dropped})
        return
    for file in converted.files:
        size = f"{count(len(file.workload.jobs), 'job')} for {count(file.workload.nb_res, 'host')}"
        load = "offered load unknown without --speed"
        if file.load is not None:
            load = "all at one time" if math.isnan(file.load) else f"offered load {file.load:.3g}"
        say(f"{file.path}: {size}, {load}")
