"""``decision workload audit``: what a log is, what it can answer, and what really happened in it."""

from pathlib import Path
from typing import TYPE_CHECKING

from .grouped import with_groups
from .log_options import LogReading
from .options import JsonOption, SpeedOption, TimeFieldOption
from .readers import read_speed
from .tables import count, number, print_dropped, print_json, simple_table
from .terminal import say, stdout
from .workload_convert import SourceFiles
from .workload_tables import as_percent, duration_short

if TYPE_CHECKING:
    from decision.analysis.audit import Audit


@with_groups
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
    from decision.analysis.audit import audit
    from decision.formats.traces.known import identify
    from decision.formats.workload import read_workload

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
    """One page."""
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
    _print_left_out(found)
    _print_recorded(found)
    _print_edges(found)
    table = simple_table("cannot answer", "because")
    for question, reason in found.cannot.items():
        table.add_row(question, reason)
    told = {each.what for each in found.not_simulated}
    for what, jobs in found.lost.items():
        if what not in told:
            table.add_row(f"{what}", f"{jobs:,} jobs have some that a workload cannot say")
    if table.row_count:
        stdout().print(table)
    _print_unsimulated(found)


def _print_unsimulated(found: "Audit") -> None:
    if found.not_simulated:
        table = simple_table("not simulated", ">jobs", ">host-hours", "instead")
        for each in found.not_simulated:
            what = f"{each.what}: {', '.join(each.values)}" if each.values else each.what
            table.add_row(what, f"{each.jobs:,}", as_percent(each.share), each.meant)
        stdout().print(table)


def _print_left_out(found: "Audit") -> None:
    if found.left_out:
        table = simple_table("left out", ">records", "first lines")
        for reason, entry in found.left_out.items():
            table.add_row(reason, f"{entry.count:,}", ", ".join(map(str, entry.lines)))
        stdout().print(table)


def _print_recorded(found: "Audit") -> None:
    recorded = found.recorded
    if recorded is None:
        return
    table = simple_table("recorded", ">")
    for name, text in (
        ("jobs with a start", f"{recorded.jobs:,}"),
        ("mean wait, s", number(recorded.mean_wait)),
        ("max wait, s", number(recorded.max_wait)),
        ("mean bounded slowdown", number(recorded.mean_bounded_slowdown)),
        ("peak of hosts in use", f"{recorded.peak:,} of {recorded.machine:,}"),
        ("over: time with more than the machine in use", as_percent(recorded.over)),
        ("fitted: waiting next to enough free hosts", as_percent(recorded.fitted)),
        ("utilization", as_percent(recorded.utilization)),
    ):
        table.add_row(name, text)
    stdout().print(table)


def _print_edges(found: "Audit") -> None:
    edges = found.edges
    table = simple_table("edges", ">")
    table.add_row("submissions within", duration_short(edges.last_submission - edges.first_submission))
    if found.recorded is not None:
        table.add_row("submitted before the first end", f"{edges.submitted_before_first_end:,} jobs")
        shares = (edges.utilization_first_day, edges.utilization_first_week, edges.utilization)
        table.add_row("utilization of first day, first week, all", "  ".join(map(as_percent, shares)))
        table.add_row(
            "warm-up and cool-down to leave out", f"{duration_short(edges.warm_up)}, {duration_short(edges.cool_down)}"
        )
    stdout().print(table)
