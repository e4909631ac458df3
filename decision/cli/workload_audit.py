"""``decision workload audit|clean|outages|fetch|sacct``: how to get a log, what is in it, and what is odd."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from decision.model.errors import ConfigError
from decision.model.table import Table

from .declared import Argument, Option
from .options import JsonOption, LogReading, OutputFile, SpeedOption, TimeFieldOption, read_speed
from .tables import as_percent, count, duration_short, number, print_dropped, print_json, print_table
from .terminal import note, say
from .workload_convert import SourceFile, SourceFiles

if TYPE_CHECKING:
    from decision.experiments.audit import Audit


def audit_command(
    files: SourceFiles,
    *,
    reading: LogReading,
    time_field: TimeFieldOption = None,
    speed: SpeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a log is, what became of each record, and what it cannot answer.

    Of what really happened it shows waits, slowdowns and utilization as they were
    recorded; over, the share of the time with more than the machine in use; and
    fitted, the share of all waiting during which the waiting job would have
    fitted next to what ran. Where fitted is high, jobs waited for what the log
    does not hold, and no simulation of the log can be compared with it.

    Examples:

      decision workload audit log.swf.gz

      decision workload audit sacct.txt --time-zone Europe/Berlin --json
    """
    from decision.experiments.audit import audit
    from decision.files.accounting.known import identify
    from decision.files.workload import read_workload

    options = reading.options(time_field)
    workload = read_workload(files, options=options, keep_extra=True)
    found = audit(workload, read_speed(speed))
    known = identify(files[0], len(workload.jobs))
    found.notes.extend([known] if known else [])
    if as_json:
        print_json(found)
        return
    print_dropped([workload])
    print_audit(found, files)


def print_audit(found: "Audit", files: list[Path]) -> None:
    """Print an audit on one page."""
    say(f"{', '.join(path.name for path in files)}: {found.format}, {count(found.records, 'record')}")
    left = sum(entry.count for entry in found.left_out.values())
    say(f"{count(found.jobs, 'job')}, {left:,} records left out, {found.joined:,} joined with another one")
    changes = "" if found.unit_changes is None else f"; {found.unit_changes:,} jobs have another size in the other unit"
    say(f"a host is one of the {found.unit}: {found.unit_reason}{changes}")
    clock = f"; times are {found.clock}" if found.clock else ""
    say(f"{count(found.hosts, 'host')}: {found.hosts_from}{clock}")
    share = as_percent(found.walltimes / found.jobs)
    say(f"{found.walltimes:,} jobs with a requested time ({share}), {found.users:,} users")
    say(f"{found.host_seconds / 3600:,.0f} host-hours")
    for line in found.notes:
        say(line)
    rows = [(why, f"{each.count:,}", ", ".join(map(str, each.lines))) for why, each in found.left_out.items()]
    if rows:
        print_table(Table("", ("left out", ">records", "first lines"), rows))
    edges, recorded = found.edges, found.recorded
    shown = [("submissions within", duration_short(edges.last_submission - edges.first_submission))]
    if recorded is not None:
        facts = (
            ("jobs with a start", f"{recorded.jobs:,}"),
            ("mean wait, s", number(recorded.mean_wait)),
            ("max wait, s", number(recorded.max_wait)),
            ("mean bounded slowdown", number(recorded.mean_bounded_slowdown)),
            ("peak of hosts in use", f"{recorded.peak:,} of {recorded.machine:,}"),
            ("over: time with more than the machine in use", as_percent(recorded.over)),
            ("fitted: waiting next to enough free hosts", as_percent(recorded.fitted)),
            ("utilization", as_percent(recorded.utilization)),
        )
        print_table(Table("", ("recorded", ">"), facts))
        shares = (edges.utilization_first_day, edges.utilization_first_week, edges.utilization)
        ends = f"{duration_short(edges.warm_up)}, {duration_short(edges.cool_down)}"
        shown.append(("submitted before the first end", f"{edges.submitted_before_first_end:,} jobs"))
        shown.append(("utilization of first day, first week, all", "  ".join(map(as_percent, shares))))
        shown.append(("warm-up and cool-down to leave out", ends))
    print_table(Table("", ("edges", ">"), shown))
    listed = {each.what for each in found.not_simulated}
    reasons = [*found.cannot.items()]
    for what, jobs in found.lost.items():
        if what not in listed:
            reasons.append((what, f"{jobs:,} jobs have some that a workload cannot say"))
    if reasons:
        print_table(Table("", ("cannot answer", "because"), reasons))
    if found.not_simulated:
        body = []
        for each in found.not_simulated:
            caveat = f"{each.what}: {', '.join(each.values)}" if each.values else each.what
            body.append((caveat, f"{each.jobs:,}", as_percent(each.share), each.meant))
        print_table(Table("", ("not simulated", ">jobs", ">host-hours", "instead"), body))


# ``decision workload clean|outages|fetch|sacct``: what is odd in a log, and how to get one.

Without = Annotated[
    str | None,
    Option(
        "--filter",
        help="Jobs to remove, in the language of the Parallel Workloads Archive: user=68 and (job>=58 and job<=564); "
        "also submit (seconds or dates), proc, app, queue, part and status.",
        metavar="FILTER",
    ),
]
Target = Annotated[
    Path | None, Option("--output", "-o", help="Output file: a log if it ends in .swf, else JSON.", metavar="FILE")
]


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
    from decision.experiments.conversion import find_oddities, write_cleaned
    from decision.files.workload import read_workload

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
        return
    rows = []
    for flurry in found.flurries:
        shares = (flurry.share_of_jobs, flurry.share_of_host_seconds, flurry.alike)
        texts = (f"{flurry.jobs:,}", f"{flurry.hours:.1f}", *map(as_percent, shares))
        rows.append((flurry.user, flurry.first, flurry.last, *texts))
    if rows:
        columns = ("flurry of user", "jobs from", "to", ">jobs", ">hours", ">of jobs", ">of host time", ">of one size")
        print_table(Table("", columns, rows))
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
    from decision.experiments.audit import recorded_jobs
    from decision.experiments.conversion import find_outages, fitted_beside, write_outages
    from decision.files.workload import read_workload

    options = reading.options()
    workload = read_workload([file], options=options)
    jobs = recorded_jobs(workload)
    outages = find_outages(jobs, workload.nb_res)
    before, after = fitted_beside(jobs, workload.nb_res, outages)
    write_outages(target, outages, workload.nb_res)
    hours = sum(each.end - each.begin for each in outages) / 3600.0
    if as_json:
        listed = [{"begin": outage.begin, "end": outage.end, "hosts": outage.hosts} for outage in outages]
        print_json({"outages": listed, "hours": hours, "fitted": before, "fitted_with_outages": after})
        return
    say(f"{target}: {count(len(outages), 'outage')}, {hours:.1f} hours")
    say(f"fitted: {as_percent(before)} without them, {as_percent(after)} with them")


Name = Annotated[str | None, Argument(help="Log of the Parallel Workloads Archive.", metavar="NAME")]
Mirror = Annotated[
    str | None, Option("--from", help="Folder or URL where NAME.swf.gz or NAME.swf is.", metavar="FOLDER|URL")
]
Listed = Annotated[bool, Option("--list", help="List the logs that are known.")]
Copy = Annotated[Path | None, Option("--output", "-o", help="File to write.", metavar="FILE")]


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
    from decision.experiments.conversion import fetch_log, find_log
    from decision.files.accounting.known import KNOWN_LOGS

    if listed:
        if as_json:
            print_json([{**log._asdict(), "url": log.url} for log in KNOWN_LOGS.values()])
            return
        rows = []
        for log in KNOWN_LOGS.values():
            load = "-" if log.load != log.load else f"{log.load:.2f}"
            numbers = (f"{log.lines:,}", f"{log.jobs:,}", f"{log.hosts:,}", f"{log.months:g}", load)
            rows.append((log.name, *numbers, "confirmed" if log.confirmed else "seen once", log.odd))
        columns = ("name", ">lines", ">jobs", ">hosts", ">months", ">load", "sum", "what is odd")
        print_table(Table("", columns, rows))
        note("sum: whether independent copies agree on the SHA-256, which --json shows")
        return
    if name is None:
        raise ConfigError("name a log, or give --list")
    log, path = find_log(name), fetch_log(name, source, target)
    if as_json:
        print_json({"path": path, **log._asdict(), "url": log.url})
    else:
        say(f"{path}: {log.name}, {log.jobs:,} usable jobs on {log.hosts:,} hosts; {log.odd}")


Hashed = Annotated[bool, Option("--hashed", help="Replace the names of users and accounts by hashes.")]
Since = Annotated[str, Option("--from", help="First day.", metavar="DATE")]
Until = Annotated[str, Option("--to", help="Day after the last one.", metavar="DATE")]


def sacct_command(hashed: Hashed = False, since: Since = "2026-01-01", until: Until = "now") -> None:
    """Print the command that gets a cluster's records from Slurm.

    Times are UTC, every attempt is a record, steps are left out, columns are those
    that are read, and the delimiter is one that no name has.

    Examples:

      decision workload sacct

      decision workload sacct --hashed
    """
    from decision.files.accounting.sacct import sacct_script

    click.echo(sacct_script(hashed, since, until))
