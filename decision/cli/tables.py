"""The tables that commands print."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from .terminal import stderr, stdout

if TYPE_CHECKING:  # a table of workloads needs no policies
    from decision.analysis.comparison import Comparison
    from decision.analysis.metrics import Summary
    from decision.drivers.replay import Replay
    from decision.drivers.zmq_loop import Conversation
    from decision.experiments import Experiment, Outcome
    from decision.experiments import Table as Found
    from decision.model.workload import Workload
    from decision.policies.presets import Entry

_COLUMNS = ("makespan\ns", "mean wait\ns", "max wait\ns", "bounded\nslowdown", "util.\n%", "energy\nMJ")


def print_summaries(summaries: Mapping[str, "Summary"]) -> None:
    """One row per policy."""
    caption = "bounded slowdown: mean; runtimes under 10 s count as 10 s"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    table.add_column("policy", overflow="fold")  # a long name makes room for the figures
    for header in _COLUMNS:
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


def number(value: float) -> str:
    """A number with thousands apart and as many decimals as say something; a dash for nan."""
    if math.isnan(value):
        return "-"
    digits = next(digits for digits, least in enumerate((1000, 100, 0)) if abs(value) >= least)
    return f"{value:,.{digits}f}"


def print_comparison(comparison: "Comparison") -> None:
    """One table per metric and workload, then how to read them."""
    from decision.analysis.comparison_files import cells, heading, notes, tables

    for metric, workload, rows in tables(comparison):
        table = Table(title=heading(metric, workload), box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
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
            stderr().print(f"{workload.path}: left out: {dropped_text(workload)}", highlight=False, soft_wrap=True)


def print_conversation(conversation: "Conversation") -> None:
    """What the decision process did."""
    stdout().print(
        f"answered {conversation.messages:,} messages in {conversation.deciding:.3f} s of deciding, "
        f"{conversation.total:.3f} s in all",
        highlight=False,
    )


def print_replay(replay: "Replay") -> None:
    """Whether a policy decides as was recorded."""
    if replay.difference is None:
        stdout().print(f"the same decisions in all {replay.messages:,} messages", highlight=False)
        return
    first = replay.difference
    lines = [f"the same decisions in {replay.messages:,} messages; then, at t={first.now:g} s (line {first.line}):"]
    lines += [f"  recorded: {event}" for event in first.recorded] or ["  recorded: nothing more"]
    lines += [f"  decided:  {event}" for event in first.decided] or ["  decided:  nothing more"]
    stdout().print("\n".join(lines), highlight=False, soft_wrap=True)


def print_catalogue(catalogue: Iterable["Entry"]) -> None:
    """Policies with one line each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("what it does, and where it is from")
    for entry in catalogue:
        table.add_row(entry.name, f"{entry.summary} ({entry.paper})" if entry.paper else entry.summary)
    stdout().print(table)


def print_experiments(experiments: Iterable["Experiment"]) -> None:
    """Experiments with one line each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    table.add_column("what it compares")
    for experiment in experiments:
        table.add_row(experiment.name, experiment.summary)
    stdout().print(table)


def print_outcome(outcome: "Outcome") -> None:
    """An experiment's tables and what they say."""
    tables = [_found(table) for table in outcome.tables]
    if outcome.beside:
        side_by_side = Table.grid(padding=(0, 2))
        side_by_side.add_row(*tables)
        tables = [side_by_side]
    for table in tables:
        stdout().print(table)
    stdout().print(outcome.notes, highlight=False)


def _found(found: "Found") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title=found.title, title_justify="left")
    for header, cells in zip(found.columns, zip(*found.rows, strict=True), strict=True):
        words = any(cell[:1].isalpha() for cell in cells)
        table.add_column(header, justify="left" if words else "right", no_wrap=True)
    for row in found.rows:
        table.add_row(*row)
    return table
