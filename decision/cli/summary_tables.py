"""The figures of runs: a table or two for each kind of them, a row for each policy; or data in their place."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .terminal import say, stdout

if TYPE_CHECKING:  # a table of workloads needs no policies
    import numpy as np
    from numpy.typing import NDArray

    from decision.analysis.recorded import Standing
    from decision.analysis.summary import Summary
from .tables import number, policy_table

_SUMMARY = ("makespan\ns", "mean wait\ns", "max wait\ns", "bounded\nslowdown", "util.\n%", "energy\nMJ")

_SUMMARY_NOTES = """\
makespan: from the first submission to the last end
bounded slowdown: mean; runtimes under 10 s count as 10 s"""

_TAIL = ("p95 wait\ns", "p99 wait\ns", "late starts\njobs", "util. until\nlast arrival, %")
_TAIL_NOTES = """\
p95, p99: percentiles of the waiting times
late starts: after the last arrival, when no other jobs compete"""

_WORTH = ("value", "of submitted\n%", "deadlines\nmissed", "lost work\nhost-hours", "grid power\nhost-hours")
_WORTH_NOTES = """\
value: of the jobs that ended successfully
deadlines missed: also by jobs that were rejected
lost work: done in vain, by jobs that were cut, killed or begun again
grid power: computing beyond supply and battery"""

_WASTE = ("energy waste\nMJ", "waste bound\nMJ")
_WASTE_NOTES = """\
energy waste: of idle hosts and of switches
waste bound: the least of any shutdown with the same starts, all being known before"""

_RATED = ("energy\nMJ", "carbon\nkg", "cost")
_RATED_NOTES = "carbon, cost: of the energy, by what events say of a kWh"

_GAP = "gap of\nwindows, %"
_GAP_NOTES = "gap of windows: hops above a lower bound, mean over windows"


def print_summaries(summaries: Mapping[str, "Summary"], beside: "Standing | None" = None) -> None:
    """One row per policy in each of two tables: the usual figures, and what the means do not tell.

    `beside` says how far what really happened, if it is among them, can be compared with the others.
    """
    for headers, values, caption in ((_SUMMARY, _values, _SUMMARY_NOTES), (_TAIL, _tail_values, _TAIL_NOTES)):
        table = policy_table(headers, caption)
        for policy, summary in summaries.items():
            table.add_row(policy, *values(summary))
        stdout().print(table)
    _print_waste(summaries)
    _print_rated(summaries)
    _print_worth(summaries)
    _print_gaps(summaries)
    if beside is not None:
        from decision.analysis.recorded import standing_text

        say(standing_text(beside))


def _print_waste(summaries: Mapping[str, "Summary"]) -> None:
    """A row for each policy whose hosts may sleep, where energy was simulated."""
    known = {policy: summary for policy, summary in summaries.items() if not math.isnan(summary.waste_bound)}
    if known:
        table = policy_table(_WASTE, _WASTE_NOTES)
        for policy, summary in known.items():
            table.add_row(policy, number(summary.energy_waste / 1e6), number(summary.waste_bound / 1e6))
        stdout().print(table)


def _print_rated(summaries: Mapping[str, "Summary"]) -> None:
    """A row for each policy, where something says what its energy emitted or cost."""
    known = {
        policy: each for policy, each in summaries.items() if not math.isnan(each.carbon) or not math.isnan(each.cost)
    }
    if known:
        table = policy_table(_RATED, _RATED_NOTES)
        for policy, summary in known.items():
            table.add_row(policy, *map(number, (summary.energy / 1e6, summary.carbon / 1e3, summary.cost)))
        stdout().print(table)


def _print_worth(summaries: Mapping[str, "Summary"]) -> None:
    """A row for each policy whose jobs have values or deadlines, or that had a supply of power."""
    rows = {policy: list(_worth_values(summary)) for policy, summary in summaries.items()}
    if any(cell != "-" for cells in rows.values() for cell in cells):
        table = policy_table(_WORTH, _WORTH_NOTES)
        for policy, cells in rows.items():
            table.add_row(policy, *cells)
        stdout().print(table)


def _worth_values(summary: "Summary") -> Iterator[str]:
    yield number(summary.value)
    yield number(100 * summary.value_share)
    yield number(summary.violations)
    yield number(summary.lost_work / 3600) if summary.lost_work else "-"
    yield number(summary.grid / 3600)


def _print_gaps(summaries: Mapping[str, "Summary"]) -> None:
    """A row for each policy that knows how far from the best its windows are."""
    gaps = {policy: summary.window_gap for policy, summary in summaries.items() if not math.isnan(summary.window_gap)}
    if gaps:
        table = policy_table((_GAP,), _GAP_NOTES)
        for policy, gap in gaps.items():
            table.add_row(policy, number(100 * gap))
        stdout().print(table)


def _values(summary: "Summary") -> Iterator[str]:
    yield number(summary.makespan)
    yield number(summary.wait)
    yield number(summary.max_wait)
    yield number(summary.bounded_slowdown)
    yield number(100 * summary.utilization)
    yield number(summary.energy / 1e6)


def _tail_values(summary: "Summary") -> Iterator[str]:
    yield number(summary.p95_wait)
    yield number(summary.p99_wait)
    yield f"{summary.late_starts:,}"
    yield number(100 * summary.arrival_utilization)


def summary_rows(summaries: Mapping[str, "Summary"]) -> list[dict[str, Any]]:
    """The rows of `print_summaries` as data."""
    return [{"policy": policy, **summary.with_old_names()} for policy, summary in summaries.items()]


def summary_columns(summaries: Mapping[str, "Summary"]) -> dict[str, dict[str, "NDArray[np.float64]"]]:
    """Of each policy the figures of its one run, as `decision.envs.write_metrics` takes them."""
    import numpy as np

    rows = {policy: summary.with_old_names() for policy, summary in summaries.items()}
    return {policy: {name: np.array([float(value)]) for name, value in row.items()} for policy, row in rows.items()}
