"""The tables of ``decision workload describe``."""

import math
from collections.abc import Iterable

import numpy as np
from rich import box
from rich.table import Table

from decision.analysis.workload_figures import Spread, WorkloadFigures
from decision.model.dates import WEEKDAYS, clock_text
from decision.model.demand import submit_times
from decision.model.workload import Workload

from ..terminal import stdout

_ROWS = ("least", "25 %", "median", "75 %", "95 %", "most", "mean")
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))
_BAND = 3  # hours


def print_figures(workload: Workload, facts: WorkloadFigures) -> None:
    """Facts, distributions, and arrivals."""
    _print_facts(_facts(workload, facts))
    _print_spreads(facts)
    _print_arrivals(workload, facts)


def duration(seconds: float) -> str:
    """A time as people say it: ``12 s``, ``5.3 min``, ``2.1 d``; a dash for nan."""
    if math.isnan(seconds):
        return "-"
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= unit), (1.0, "s"))
    return f"{number_short(seconds / unit)} {name}"


def number_short(value: float) -> str:
    """A number with three significant digits or all those before the point; a dash for nan."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent; a dash for nan."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def _facts(workload: Workload, facts: WorkloadFigures) -> Iterable[tuple[str, str]]:
    yield "jobs", f"{facts.jobs:,}"
    yield "hosts", f"{facts.nb_res:,}"
    yield "users", f"{len(facts.jobs_by_user):,}" if len(facts.jobs_by_user) else "unknown"
    if workload.unix_start is not None:
        times = submit_times(workload)
        yield "first submission", clock_text(workload, float(times.min()))
        yield "last submission", clock_text(workload, float(times.max()))
    yield "submitted within", duration(facts.span)
    yield "offered load", "-" if math.isnan(facts.load) else f"{facts.load:.3f}"
    yield "of one host", percent(facts.serial)
    yield "of more, powers of two", percent(facts.powers)
    yield "with a walltime", percent(facts.limited)
    yield "of these, exact", percent(facts.exact)
    yield "of these, too short", percent(facts.stopped)


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in facts:
        table.add_row(name, value)
    stdout().print(table, highlight=False)


def _print_spreads(facts: WorkloadFigures) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    columns = []
    for header, spread, written in (
        ("size\nhosts", facts.size, number_short),
        ("run time", facts.runtime, duration),
        ("walltime", facts.walltime, duration),
        ("run time /\nwalltime", facts.accuracy, number_short),
        ("between\narrivals", facts.gap, duration),
    ):
        table.add_column(header, justify="right", no_wrap=True)
        columns.append([written(getattr(spread, name)) for name in Spread.__struct_fields__])
    for name, *cells in zip(_ROWS, *columns, strict=True):
        table.add_row(name, *cells)
    if facts.exact == 1:
        table.caption = "all walltimes are the run times: there were none in the log, or they are perfect estimates"
        table.caption_justify = "left"
    stdout().print(table)


def _print_arrivals(workload: Workload, facts: WorkloadFigures) -> None:
    known = workload.unix_start is not None
    bands = np.add.reduceat(facts.by_hour, range(0, 24, _BAND))
    _print_shares("hour", [f"{hour}-{hour + _BAND}" for hour in range(0, 24, _BAND)], bands.tolist())
    days = list(WEEKDAYS) if known else [f"day {day}" for day in range(1, 8)]
    _print_shares("weekday", days, facts.by_weekday.tolist())
    if not known:
        stdout().print("no date is known: hours and days are counted from 0 s", highlight=False)


def _print_shares(what: str, names: list[str], shares: list[float]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(f"arrivals by {what}", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("% of jobs", *(f"{100 * share:.1f}" for share in shares))
    stdout().print(table)
