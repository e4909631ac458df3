"""What several commands print: tables, or one JSON document in their place."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from .terminal import note, say, stdout

if TYPE_CHECKING:  # a table of workloads needs no policies
    from decision.analysis.comparison import PolicyComparison
    from decision.analysis.metrics import Summary
    from decision.batsim.replay import Replay
    from decision.batsim.zmq_loop import Conversation
    from decision.model.workload import Workload
    from decision.policies.catalogue import OptionLine, PolicyLine
    from decision.reproduce import Findings, ResultTable
    from decision.runs.inputs import LoadedInputs

_SUMMARY = ("makespan\ns", "mean wait\ns", "max wait\ns", "bounded\nslowdown", "util.\n%", "energy\nMJ")

_SUMMARY_NOTES = """\
makespan: from the first submission to the last end
bounded slowdown: mean; runtimes under 10 s count as 10 s"""


def print_json(document: Any) -> None:
    """Print a document of structs, mappings, sequences, arrays and numbers; numbers that are not finite are null."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain), indent=2)
    typer.echo(text.decode())


def _plain(value: Any) -> Any:
    """Numpy's arrays and numbers as Python's; anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def simple_table(*headers: str, title: str | None = None, caption: str | None = None) -> Table:
    """An empty table with these columns; those of figures, marked by ``>``, are aligned to the right."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    for header in headers:
        right = header.startswith(">")
        table.add_column(header.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    return table


def number(value: float) -> str:
    """A number with thousands apart and as many decimals as say something; a dash for nan."""
    if math.isnan(value):
        return "-"
    digits = next(digits for digits, least in enumerate((1000, 100, 0)) if abs(value) >= least)
    return f"{value:,.{digits}f}"


def count(number: int, what: str) -> str:
    """``1 job``, ``10,000 jobs``."""
    return f"{number:,} {what}{'s' * (number != 1)}"


# --- Runs and policies ----------------------------------------------------------------------------------------------


def print_summaries(summaries: Mapping[str, "Summary"]) -> None:
    """One row per policy."""
    table = simple_table(caption=_SUMMARY_NOTES)
    table.add_column("policy", overflow="fold")  # a long name makes room for the figures
    for header in _SUMMARY:
        table.add_column(header, justify="right", no_wrap=True)
    for policy, summary in summaries.items():
        table.add_row(policy, *map(number, _values(summary)))
    stdout().print(table)


def _values(summary: "Summary") -> tuple[float, ...]:
    return (
        summary.makespan,
        summary.mean_waiting_time,
        summary.max_waiting_time,
        summary.mean_bounded_slowdown,
        100 * summary.utilization,
        summary.energy / 1e6,
    )


def summary_rows(summaries: Mapping[str, "Summary"]) -> list[dict[str, Any]]:
    """The rows of `print_summaries` as data."""
    import msgspec

    return [{"policy": policy, **msgspec.structs.asdict(summary)} for policy, summary in summaries.items()]


def print_comparison(comparison: "PolicyComparison") -> None:
    """One table per metric and workload, then how to read them."""
    from decision.analysis.comparison import cells, heading, notes, tables

    for metric, workload, rows in tables(comparison):
        table = simple_table(title=heading(metric, workload))
        table.add_column("policy", overflow="fold", min_width=12)
        for header in ("IQM", "95 %", "P(better)", "95 %"):
            table.add_column(header, justify="right", no_wrap=True)
        table.add_column("")
        for row in rows:
            table.add_row(*cells(row))
        stdout().print(table)
    stdout().print("\n".join(notes(comparison)), highlight=False)


def print_dropped(workloads: Iterable["Workload"]) -> None:
    """What was left out of each file, and why."""
    from decision.model.reshape import dropped_text

    for workload in workloads:
        if workload.dropped:
            note(f"{workload.path}: left out: {dropped_text(workload)}")


def print_machines(case: "LoadedInputs") -> None:
    """For each log that was read: whether its machine is of another size than the platform."""
    from decision.formats.workload import is_swf

    hosts = len(case.platform.hosts)
    for path, workload in zip(case.inputs.workloads, case.workloads, strict=True):
        if is_swf(path) and workload.nb_res != hosts:
            advice = f"; --nodes {hosts:d} leaves out larger jobs" if workload.nb_res > hosts else ""
            has = f"{case.inputs.platform} has {hosts:,}"
            note(f"{path}: the log of a machine of {count(workload.nb_res, 'host')}, and {has}{advice}")


def warn_of_seen_jobs(policies: Iterable[str], workloads: Sequence["Workload"]) -> None:
    """Say which policies are judged on jobs that they were learned from."""
    from decision.learn.seen_jobs import seen_jobs

    for policy in policies:
        for workload in workloads:
            if seen := seen_jobs(policy, workload):
                jobs = f"{seen:,} of the {count(len(workload.jobs), 'job')} of {workload.path}"
                note(f"warning: {policy} was learned from {jobs}, which says little of others (--select chooses jobs)")


def print_catalogue(catalogue: Iterable["PolicyLine"]) -> None:
    """Policies with one line each."""
    table = simple_table()
    table.add_column("policy", no_wrap=True)
    table.add_column("description and source")
    for entry in catalogue:
        table.add_row(entry.name, f"{entry.summary} ({entry.paper})" if entry.paper else entry.summary)
    stdout().print(table)
    note("decision policies NAME lists the options of a policy")


def print_options(policy: str, options: Sequence["OptionLine"]) -> None:
    """A policy's options with one line each."""
    if not options:
        say(f"{policy} has no options")
        return
    table = simple_table()
    for column in ("option", "default", "unit"):
        table.add_column(column, no_wrap=True)
    table.add_column("description and source")
    for name, default, unit, summary, paper in options:
        table.add_row(name, default or "must be given", unit, f"{summary} ({paper})" if paper else summary)
    stdout().print(table)
    say(f"--policy {policy},{options[0].name}=... or --option {options[0].name}=...")


# --- Conversations --------------------------------------------------------------------------------------------------


def print_conversation(conversation: "Conversation") -> None:
    """How much was answered, and how fast."""
    say(
        f"answered {conversation.messages:,} messages: {conversation.deciding:.3f} s of scheduling, "
        f"{conversation.total:.3f} s in total"
    )


def print_replay(replay: "Replay") -> None:
    """Whether a policy decides as was recorded."""
    if replay.difference is None:
        say(f"the same decisions in all {replay.messages:,} messages")
        return
    first = replay.difference
    lines = [f"the same decisions in {replay.messages:,} messages; then, at t={first.now:g} s (line {first.line}):"]
    lines += [f"  recorded: {event}" for event in first.recorded] or ["  recorded: nothing more"]
    lines += [f"  decided:  {event}" for event in first.decided] or ["  decided:  nothing more"]
    say("\n".join(lines))


# --- Reproductions --------------------------------------------------------------------------------------------------


def print_findings(findings: "Findings", as_json: bool) -> None:
    """A reproduction's tables and what they say."""
    if as_json:
        print_json({"tables": [table._asdict() for table in findings.tables], "notes": findings.notes})
        return
    tables: Sequence[Table] = [_result_table(table, whole=findings.side_by_side) for table in findings.tables]
    if findings.side_by_side:
        grid = Table.grid(padding=(0, 2))
        grid.add_row(*tables)
        tables = [grid]
    for table in tables:
        stdout().print(table)
    stdout().print(findings.notes, highlight=False)


def _result_table(found: "ResultTable", whole: bool) -> Table:
    """`whole`: no cell wraps; otherwise those of the first column do not."""
    table = simple_table(title=found.title)
    table.collapse_padding = True
    for at, (header, cells) in enumerate(zip(found.columns, zip(*found.rows, strict=True), strict=True)):
        words = any(cell[:1].isalpha() for cell in cells)
        table.add_column(header, justify="left" if words else "right", no_wrap=whole or at == 0)
    for row in found.rows:
        table.add_row(*row)
    return table
