"""``decision workload convert|to-swf``: conversions between logs, exports and Batsim's JSON."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from decision.computer.shipped import find_workload

from .conversion_options import (
    CommRatio,
    Daily,
    Estimates,
    EstimatesSeed,
    From,
    LinkRate,
    Load,
    LoadBy,
    MaxNodes,
    Profile,
    ScaleSizes,
    Select,
    Shift,
    To,
    Walltime,
    WithoutJobs,
    given_options,
    read_filters,
    read_tasks,
)
from .grouped import with_groups
from .log_options import LogReading
from .options import JsonOption, MissingWalltimeOption, OutputFile, SpeedOption, TimeFieldOption, WalltimeName
from .readers import read_speed

SourceFile = Annotated[
    Path, typer.Argument(help="Input file.", metavar="FILE", show_default=False, parser=find_workload)
]
_BATSIMS = ("4", "5")


SourceFiles = Annotated[
    list[Path], typer.Argument(help="Input file.", metavar="FILE...", show_default=False, parser=find_workload)
]


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
        filters=read_filters(jobs, begin, end, nodes, walltime, load, shift, speed),
        daily=daily,
        options=given_options(context),
    )
    print_converted(convert(asked), "", as_json)
