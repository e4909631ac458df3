"""What several commands print: tables, or one JSON document in their place."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table

from .terminal import note, say, stdout

if TYPE_CHECKING:  # a table of workloads needs no policies
    from decision.analysis.comparison import PolicyComparison
    from decision.batsim.conversation import Conversation
    from decision.batsim.replay import Replay
    from decision.model.platform import Platform
    from decision.model.workload import Workload
    from decision.policies.catalogue import OptionLine, PolicyLine
    from decision.runs.worth_of_predictions import PredictionsWorth


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
        box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", caption=caption, caption_justify="left"
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


def policy_table(headers: Iterable[str], caption: str | None = None) -> Table:
    """An empty table of figures, a row for each policy."""
    table = simple_table(caption=caption)
    table.add_column("policy", overflow="fold", min_width=12)  # a long name makes room for the figures
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def print_comparison(comparison: "PolicyComparison") -> None:
    """One table per metric and workload, then how to read them; of whole workloads above them all metrics at a glance.

    Single runs have that alone.
    """
    from decision.analysis.comparison_text import cells, headers, heading, notes, tables

    if comparison.judged or comparison.single:
        _print_at_a_glance(comparison)
    for metric, workload, rows in () if comparison.single else tables(comparison):
        table = simple_table(title=heading(metric, workload))
        table.add_column("policy", overflow="fold", min_width=12)
        for header in headers(rows)[1:-1]:
            table.add_column(header, justify="right", no_wrap=True)
        table.add_column("")
        for row in rows:
            table.add_row(*cells(row))
        stdout().print(table)
    stdout().print("\n".join(notes(comparison)), highlight=False)


def print_worth(rows: "Sequence[PredictionsWorth]") -> None:
    """What predictions are worth: one row per workload, policy and metric; nothing where there are none."""
    if not rows:
        return
    table = simple_table("workload", "policy", "metric", ">walltimes", ">predictions", ">perfect", ">recovered")
    for row in rows:
        recovered = "-" if math.isnan(row.recovered) else f"{100 * row.recovered:.0f} %"
        numbers = map(number, (row.walltimes, row.predictions, row.perfect))
        table.add_row(row.workload, row.policy, row.metric, *numbers, recovered)
    stdout().print(table)


_ACROSS = 4  # metrics in a table, so that it fits a terminal


def _print_at_a_glance(comparison: "PolicyComparison") -> None:
    """All metrics of each policy, by workload."""
    from decision.analysis.comparison_text import at_a_glance
    from decision.analysis.metric_list import METRICS

    for workload, metrics, rows in at_a_glance(comparison):
        say(f"{workload}: one run" if comparison.single else workload)
        for begin in range(0, len(metrics), _ACROSS):
            shown = slice(begin, begin + _ACROSS)
            table = policy_table([f"{name}\n{METRICS[name].unit}" for name in metrics[shown]])
            for policy, *own in rows:
                table.add_row(policy, *own[shown])
            stdout().print(table)


def print_dropped(workloads: Iterable["Workload"]) -> None:
    """What was left out of each file, and why."""
    from decision.model.reshape import dropped_text

    for workload in workloads:
        if workload.dropped:
            note(f"{workload.path}: left out: {dropped_text(workload)}")
        for said in workload.notes:
            note(f"{workload.path}: {said}")


def print_unsimulated(workloads: Iterable["Workload"], policies: Iterable[str]) -> None:
    """What each log says that no run looks at; nothing where a policy `slurm` has a whole case of its own."""
    from decision.analysis.unsimulated import unsimulated

    if any(policy.partition(",")[0] == "slurm" for policy in policies):
        return
    for workload in workloads:
        if found := unsimulated(workload):
            note(f"{workload.path}: not simulated: {'; '.join(each.brief() for each in found)}")


def print_machines(platform: "Platform", workloads: Iterable["Workload"]) -> None:
    """For each workload without jobs, of a larger machine than the platform, or, if it is a log, of a smaller one."""
    from decision.formats.workload import is_log

    hosts = len(platform.hosts)
    for workload in workloads:
        if not workload.jobs:
            note(f"{workload.path}: there are no jobs")
        if workload.nb_res > hosts or (is_log(workload) and workload.nb_res != hosts):
            what = "the log of a machine of" if is_log(workload) else "made for"
            advice = f"; --nodes {hosts:d} leaves out larger jobs" if workload.nb_res > hosts else ""
            has = f"{platform.path} has {hosts:,}"
            note(f"{workload.path}: {what} {count(workload.nb_res, 'host')}, and {has}{advice}")


def warn_of_seen_jobs(policies: Iterable[str], workloads: Sequence["Workload"]) -> None:
    """Say which policies are judged on jobs that they were learned from."""
    from decision.learn.seen_jobs import seen_text

    for policy in policies:
        for workload in workloads:
            if text := seen_text(policy, workload):
                note(f"warning: {text}; that says little of others (--select chooses jobs)")


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
