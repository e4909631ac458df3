"""The tables that commands print."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from decision.analysis.metrics import Summary
from decision.drivers.replay import Replay
from decision.drivers.zmq_loop import Conversation
from decision.model.workload import Workload

from .terminal import stderr, stdout

_COLUMNS = (
    ("policy", ""),
    ("makespan", "s"),
    ("mean wait", "s"),
    ("max wait", "s"),
    ("mean bounded\nslowdown", "10 s"),
    ("utilization", "%"),
    ("energy", "MJ"),
)


def print_summaries(summaries: Mapping[str, Summary]) -> None:
    """One row per policy."""
    table = Table()
    for name, unit in _COLUMNS:
        table.add_column(f"{name} ({unit})" if unit else name, justify="right" if unit else "left")
    for policy, summary in summaries.items():
        table.add_row(policy, *_cells(summary))
    stdout().print(table)


def _cells(summary: Summary) -> tuple[str, ...]:
    return (
        number(summary.makespan, 0),
        number(summary.mean_waiting_time, 1),
        number(summary.max_waiting_time, 0),
        number(summary.mean_bounded_slowdown, 2),
        number(100 * summary.utilization, 1),
        number(summary.energy / 1e6, 1),
    )


def number(value: float, digits: int) -> str:
    """A number with thousands apart; a dash for nan."""
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"


def print_dropped(workloads: Iterable[Workload]) -> None:
    """What was left out of each log, and why."""
    for workload in workloads:
        if workload.dropped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in workload.dropped.items())
            stderr().print(f"{workload.path}: lines left out: {reasons}", highlight=False, soft_wrap=True)


def print_conversation(conversation: Conversation) -> None:
    """What the decision process did."""
    stdout().print(
        f"answered {conversation.messages:,} messages in {conversation.deciding:.3f} s of deciding, "
        f"{conversation.total:.3f} s in all",
        highlight=False,
    )


def print_replay(replay: Replay) -> None:
    """Whether a policy decides as was recorded."""
    if replay.difference is None:
        stdout().print(f"the same decisions in all {replay.messages:,} messages", highlight=False)
        return
    first = replay.difference
    lines = [f"the same decisions in {replay.messages:,} messages; then, at t={first.now:g} s (line {first.line}):"]
    lines += [f"  recorded: {event}" for event in first.recorded] or ["  recorded: nothing more"]
    lines += [f"  decided:  {event}" for event in first.decided] or ["  decided:  nothing more"]
    stdout().print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def print_catalogue(catalogue: Iterable[Any]) -> None:
    """Policies with one line each."""
    table = Table()
    for name in ("policy", "what it does", "from"):
        table.add_column(name)
    for entry in catalogue:
        table.add_row(entry.name, entry.summary, entry.paper)
    stdout().print(table)
