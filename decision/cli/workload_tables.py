"""What the commands about workloads print: tables, or data in their place."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .tables import FittedTable, count, number, print_dropped, print_json, simple_table
from .terminal import note, say, stdout

if TYPE_CHECKING:
    from decision.experiments.conversion import Converted
    from decision.experiments.descriptions import WorkloadFigures
    from decision.files.generate.paper_workloads import PublishedTrace, TraceFigures
    from decision.model.workload import Workload
    from decision.policies.runtimes.predictors import Errors, History

_ROWS = ("least", "25 %", "median", "75 %", "95 %", "most", "mean")
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))
_BAND = 3  # hours


def print_figures(workload: "Workload", facts: "WorkloadFigures") -> None:
    """Print a workload's facts, distributions and arrivals."""
    _print_facts(_facts(workload, facts))
    _print_spreads(facts)
    _print_arrivals(workload, facts)


def duration_short(seconds: float) -> str:
    """A time with its usual unit: ``12 s``, ``5.3 min``, ``2.1 d``; a dash for nan."""
    if math.isnan(seconds):
        return "-"
    unit, name = next(((unit, name) for unit, name in _UNITS if seconds >= unit), (1.0, "s"))
    return f"{number_short(seconds / unit)} {name}"


def number_short(value: float) -> str:
    """A number with three significant digits or all those before the point; a dash for nan."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def as_percent(share: float) -> str:
    """A share in percent; a dash for nan."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def _facts(workload: "Workload", facts: "WorkloadFigures") -> Iterable[tuple[str, str]]:
    from decision.model.dates import clock_text
    from decision.model.demand import submit_times

    yield "jobs", f"{facts.jobs:,}"
    yield "hosts", f"{facts.nb_res:,}"
    yield "users", f"{len(facts.jobs_by_user):,}" if len(facts.jobs_by_user) else "unknown"
    if workload.unix_start is not None:
        times = submit_times(workload)
        yield "first submission", clock_text(workload, float(times.min()))
        yield "last submission", clock_text(workload, float(times.max()))
    yield "submitted within", duration_short(facts.span)
    yield "offered load", "-" if math.isnan(facts.load) else f"{facts.load:.3f}"
    yield "of one host", as_percent(facts.serial)
    yield "of more, powers of two", as_percent(facts.powers)
    yield "with a walltime", as_percent(facts.limited)
    yield "of these, exact", as_percent(facts.exact)
    yield "of these, too short", as_percent(facts.stopped)


def _print_facts(facts: Iterable[tuple[str, str]]) -> None:
    table = FittedTable(plain=True)
    table.add_column()
    table.add_column(justify="right")
    for name, value in facts:
        table.add_row(name, value)
    stdout().print(table, highlight=False)


def _print_spreads(facts: "WorkloadFigures") -> None:
    from decision.experiments.descriptions import SevenFigures

    table = simple_table()
    table.add_column("", no_wrap=True)
    columns = []
    for header, spread, written in (
        ("size\nhosts", facts.size, number_short),
        ("run time", facts.runtime, duration_short),
        ("walltime", facts.walltime, duration_short),
        ("run time /\nwalltime", facts.accuracy, number_short),
        ("between\narrivals", facts.gap, duration_short),
    ):
        table.add_column(header, justify="right", no_wrap=True)
        columns.append([written(getattr(spread, name)) for name in SevenFigures.__struct_fields__])
    for name, *cells in zip(_ROWS, *columns, strict=True):
        table.add_row(name, *cells)
    if facts.exact == 1:
        table.caption = "all walltimes are the run times: the log has none, or they are perfect estimates"
    stdout().print(table)


def _print_arrivals(workload: "Workload", facts: "WorkloadFigures") -> None:
    import numpy as np

    from decision.model.dates import WEEKDAYS

    known = workload.unix_start is not None
    bands = np.add.reduceat(facts.by_hour, range(0, 24, _BAND))
    _print_shares("hour", [f"{hour}-{hour + _BAND}" for hour in range(0, 24, _BAND)], bands.tolist())
    days = list(WEEKDAYS) if known else [f"day {day}" for day in range(1, 8)]
    _print_shares("weekday", days, facts.by_weekday.tolist())
    if not known:
        say("the date is unknown: hours and days are counted from t=0")


def _print_shares(what: str, names: list[str], shares: list[float]) -> None:
    table = simple_table()
    table.add_column(f"arrivals by {what}", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("% of jobs", *(f"{100 * share:.1f}" for share in shares))
    stdout().print(table)


def figure_facts(workload: "Workload", facts: "WorkloadFigures") -> dict[str, Any]:
    """What `print_figures` shows, as data."""
    import msgspec

    return {
        "path": workload.path,
        "dropped": workload.dropped,
        "unix_start": workload.unix_start,
        **msgspec.structs.asdict(facts),
    }


# --- Conversions, predictions and presets ---------------------------------------------------------------------------


def print_converted(converted: "Converted", missing: str, as_json: bool) -> None:
    """What was written where, what was left out of the source, and what takes the place of missing walltimes."""
    from decision.policies.runtimes.walltimes import missing_text

    print_dropped([converted.workload])
    if missing and (remark := missing_text(converted.source, missing)):
        note(f"{converted.source.path}: {remark}")
    if (reading := converted.source.reading) is not None and reading.format not in ("json", "swf", "oar"):
        note(f"{converted.source.path}: {reading.format}, {_hosts_text(converted.source)}")
    if as_json:
        files = [
            {"path": file.path, "jobs": len(file.workload.jobs), "hosts": file.workload.nb_res, "load": file.load}
            for file in converted.files
        ]
        print_json({"files": files, "dropped": converted.workload.dropped})
        return
    for file in converted.files:
        size = f"{count(len(file.workload.jobs), 'job')} for {count(file.workload.nb_res, 'host')}"
        say(f"{file.path}: {size}, {_load_text(file.load)}")


def _hosts_text(workload: "Workload") -> str:
    """What a host is and how many there are, with the reasons."""
    reading = workload.reading
    if reading is None:
        return ""
    changes = "" if reading.unit_changes is None else f"; {reading.unit_changes:,} jobs have another size in the other"
    return (
        f"hosts are {reading.unit} ({reading.unit_reason}{changes}), {workload.nb_res:,} of them "
        f"({reading.hosts_from}){f', times in {reading.clock}' if reading.clock else ''}"
    )


def print_audit_json(workload: "Workload", speed: float | None = None) -> None:
    """The audit of a workload as one JSON document."""
    from decision.experiments.audit import audit

    print_dropped([workload])
    print_json(audit(workload, speed))


def _load_text(load: float | None) -> str:
    if load is None:
        return "offered load unknown without --speed"
    return "all at one time" if math.isnan(load) else f"offered load {load:.3g}"


_ERRORS = ("jobs\npredicted\n%", "mean\nerror\ns", "median\nerror\ns", "too\nshort\n%", "too\nlong\n%", "accuracy")


def print_errors(errors: Mapping[str, "Errors"], history: "History", coverage: float | None) -> None:
    """One row per predictor; errors are absolute, over the jobs that had a prediction.

    Args:
        errors: by predictor.
        history: the jobs.
        coverage: share of the jobs within their interval of 80 %; None where nobody says one.
    """
    mean = number(float(history.runtime.mean()))
    caption = f"{len(history.runtime):,} jobs, mean run time {mean} s; errors are absolute"
    if coverage is not None:
        caption += f"; intervals of 80 % by quantiles hold {as_percent(coverage)} of the jobs"
    table = simple_table("predictor", *(f">{header}" for header in _ERRORS), caption=caption)
    for name, found in errors.items():
        table.add_row(name, *_error_cells(found))
    stdout().print(table)


def _error_cells(found: "Errors") -> tuple[str, ...]:
    return (
        number(100 * found.share),
        number(found.mean_absolute_error),
        number(found.median_absolute_error),
        number(100 * found.under),
        number(100 * found.over),
        "-" if math.isnan(found.accuracy) else f"{found.accuracy:.3f}",
    )


def trace_rows(made: "TraceFigures", published: "PublishedTrace") -> dict[str, Any]:
    """The rows of `print_trace` as data."""
    names = made.__struct_fields__
    return {
        title: {name: getattr(row, name) for name in names} for title, row in (("made", made), ("published", published))
    }


def print_trace(made: "TraceFigures", published: "PublishedTrace") -> None:
    """The figures of days, as made and as published for all days of the trace."""
    table = simple_table(caption="published: of all days together")
    for header in ("", "jobs", "days", "sequential\n%", "utilization\n%", "days in groups 1 to 5"):
        table.add_column(header, justify="right" if header else "left")
    for name, row in (("made", made), ("published", published)):
        groups = "  ".join(map(str, row.groups))
        shares = (f"{100 * row.sequential:.1f}", f"{100 * row.utilization:.1f}")
        table.add_row(name, f"{row.jobs:,}", f"{row.days:,}", *shares, groups)
    stdout().print(table)
