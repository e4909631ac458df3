"""``decision workload clean|outages|fetch|sacct``: what is odd in a log, and how to get one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decision.model.errors import ConfigError

from .grouped import with_groups
from .log_options import LogReading
from .options import JsonOption, OutputFile, SpeedOption
from .readers import read_speed
from .tables import count, print_dropped, print_json, simple_table
from .terminal import note, say, stdout
from .workload_convert import SourceFile
from .workload_tables import as_percent

if TYPE_CHECKING:
    from decision.analysis.cleaning import Oddities

Without = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Jobs to remove, in the language of the Parallel Workloads Archive: user=68 and (job>=58 and job<=564); "
        "also submit (seconds or dates), proc, app, queue, part and status.",
        metavar="FILTER",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Output file: a log if it ends in .swf, else JSON.", metavar="FILE"),
]


@with_groups
def clean_command(
    file: SourceFile,
    without: Without = None,
    target: Target = None,
    *,
    reading: LogReading,
    speed: SpeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Propose what to clean from a log, or remove what a filter names.

    Flurries are surges of much alike jobs of one user: gaps of less than an hour,
    at least 500 jobs, at least half of all that came meanwhile, four of five of
    one size. Nothing is removed unless --filter and -o ask for it; the output says
    what was.

    Examples:

      decision workload clean log.swf

      decision workload clean log.swf -o clean.swf \\
          --filter 'user=135 and (job>=47421 and job<=50307)'
    """
    from decision.analysis.cleaning import find_oddities
    from decision.formats.workload import read_workload
    from decision.runs.conversion import write_cleaned

    if (without is None) != (target is None):
        raise ConfigError("--filter and -o belong together: what is removed, and where the rest is written")
    options = reading.options()
    workload = read_workload([file], options=options, keep_extra=True)
    print_dropped([workload])
    if without is not None and target is not None:
        left = write_cleaned(workload, without, file, target, read_speed(speed))
        removed = len(workload.jobs) - len(left.jobs)
        if as_json:
            print_json({"path": target, "jobs": len(left.jobs), "removed": removed})
        else:
            say(f"{target}: {count(len(left.jobs), 'job')}, {removed:,} removed by {without}")
        return
    found = find_oddities(workload, read_speed(speed))
    if as_json:
        print_json(found)
    else:
        _print_oddities(found)


def _print_oddities(found: "Oddities") -> None:
    table = simple_table(
        "flurry of user", "jobs from", "to", ">jobs", ">hours", ">of jobs", ">of host time", ">of one size"
    )
    for each in found.flurries:
        shares = (each.share_of_jobs, each.share_of_host_seconds, each.alike)
        texts = (f"{each.jobs:,}", f"{each.hours:.1f}", *map(as_percent, shares))
        table.add_row(each.user, each.first, each.last, *texts)
    if found.flurries:
        stdout().print(table)
    for text in found.filters():
        say(f"--filter '{text}'")
    say(f"{count(len(found.flurries), 'flurry').replace('flurrys', 'flurries')}")
    say(f"days without jobs: {', '.join(found.days_without_jobs[:10]) or 'none'}{_more(found.days_without_jobs)}")
    for step in found.changes:
        say(f"from {step.day} on the peak in use is {step.after:,} hosts, before {step.before:,}")
    say(f"jobs over the machine: {', '.join(found.over_machine[:10]) or 'none'}{_more(found.over_machine)}")
    for burst in found.bursts:
        say(f"all {burst.jobs:,} jobs of user {burst.user} came within {burst.hours:.1f} hours")


def _more(names: list[str]) -> str:
    return f" and {len(names) - 10:,} more" if len(names) > 10 else ""


@with_groups
def outages_command(file: SourceFile, target: OutputFile, *, reading: LogReading, as_json: JsonOption = False) -> None:
    """Propose when a machine was out of order, as external events.

    An outage is an hour or more in which nothing started though a job that fitted
    waited, and fewer than half as many jobs ran as usual. The events close the
    whole machine; jobs that run go on. Prints how much of the recorded waiting is
    next to enough free hosts with and without them.

    Example:

      decision workload outages log.swf -o events.txt

      decision compare -p cluster.xml -w log.swf --policy easy \\
          --events events.txt
    """
    from decision.analysis.outages import find_outages, fitted_beside
    from decision.analysis.recorded import recorded_jobs
    from decision.formats.workload import read_workload
    from decision.runs.conversion import write_outages

    options = reading.options()
    workload = read_workload([file], options=options)
    jobs = recorded_jobs(workload)
    outages = find_outages(jobs, workload.nb_res)
    before, after = fitted_beside(jobs, workload.nb_res, outages)
    write_outages(target, outages, workload.nb_res)
    hours = sum(each.end - each.begin for each in outages) / 3600.0
    if as_json:
        listed = [{"begin": each.begin, "end": each.end, "hosts": each.hosts} for each in outages]
        print_json({"outages": listed, "hours": hours, "fitted": before, "fitted_with_outages": after})
        return
    say(f"{target}: {count(len(outages), 'outage')}, {hours:.1f} hours")
    say(f"fitted: {as_percent(before)} without them, {as_percent(after)} with them")


Name = Annotated[str | None, typer.Argument(help="Log of the Parallel Workloads Archive.", metavar="NAME")]
Mirror = Annotated[
    str | None, typer.Option("--from", help="Folder or URL where NAME.swf.gz or NAME.swf is.", metavar="FOLDER|URL")
]
Listed = Annotated[bool, typer.Option("--list", help="List the logs that are known.")]
Copy = Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", metavar="FILE")]


def fetch_command(
    name: Name = None, source: Mirror = None, target: Copy = None, listed: Listed = False, as_json: JsonOption = False
) -> None:
    """Fetch a log of the Parallel Workloads Archive, and check its SHA-256.

    A log with another checksum is refused, and nothing is kept. Without -o the
    log is kept in the user's cache, and found there the next time.

    Examples:

      decision workload fetch --list

      decision workload fetch CEA-Curie-2011-2.1-cln -o curie.swf

      decision workload fetch KTH-SP2-1996-2.1-cln --from /data/logs
    """
    from decision.formats.traces.known import KNOWN_LOGS
    from decision.runs.fetch import fetch_log, find_log

    if listed:
        if as_json:
            print_json([{**log._asdict(), "url": log.url} for log in KNOWN_LOGS.values()])
            return
        table = simple_table("name", ">lines", ">jobs", ">hosts", ">months", ">load", "sum", "what is odd")
        for log in KNOWN_LOGS.values():
            load = "-" if log.load != log.load else f"{log.load:.2f}"
            numbers = (f"{log.lines:,}", f"{log.jobs:,}", f"{log.hosts:,}", f"{log.months:g}", load)
            table.add_row(log.name, *numbers, "confirmed" if log.confirmed else "seen once", log.odd)
        stdout().print(table)
        note("sum: whether independent copies agree on the SHA-256, which --json shows")
        return
    if name is None:
        raise ConfigError("name a log, or give --list")
    log, path = find_log(name), fetch_log(name, source, target)
    if as_json:
        print_json({"path": path, **log._asdict(), "url": log.url})
    else:
        say(f"{path}: {log.name}, {log.jobs:,} usable jobs on {log.hosts:,} hosts; {log.odd}")


Hashed = Annotated[bool, typer.Option("--hashed", help="Replace the names of users and accounts by hashes.")]
Since = Annotated[str, typer.Option("--from", help="First day.", metavar="DATE")]
Until = Annotated[str, typer.Option("--to", help="Day after the last one.", metavar="DATE")]


def sacct_command(hashed: Hashed = False, since: Since = "2026-01-01", until: Until = "now") -> None:
    """Print the command that gets a cluster's records from Slurm.

    Times are UTC, every attempt is a record, steps are left out, columns are those
    that are read, and the delimiter is one that no name has.

    Examples:

      decision workload sacct

      decision workload sacct --hashed
    """
    from decision.formats.traces.sacct_script import sacct_script

    typer.echo(sacct_script(hashed, since, until))
