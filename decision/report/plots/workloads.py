"""A picture of a workload: when jobs come, how large and how long they are, how well estimated, and whose."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from decision.experiments.descriptions import WorkloadFigures, workload_figures
from decision.experiments.results import PIECES, NamedRun, Steps, averaged, last_end
from decision.experiments.worth import PowerCourse, power_course
from decision.model.dates import DAY, WEEKDAYS, clock_at_zero
from decision.model.demand import Floats, sizes, submit_times, walltimes
from decision.model.workload import Workload
from decision.report.plots import paper

from .figures import (
    BLUE,
    DARK,
    GREEN,
    PLAIN,
    RED,
    Picture,
    clock,
    explain,
    facts_of,
    headline,
    logarithmic,
    name_panel,
    new_figure,
    outer_legend,
    panels_in_row,
    save,
    side_by_side,
    styled,
    wrapped,
)
from .schedules import clock_of, stack_layers

_BINS = (1.0, 60.0, 600.0, 3600.0, 6 * 3600.0, float(DAY), 7.0 * DAY, 28.0 * DAY)  # seconds
_BIN_NAMES = ("second", "minute", "10 minutes", "hour", "6 hours", "day", "week", "4 weeks")
_MOST_BINS = 150
_TICKS = {
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3600: "1 h",
    21_600: "6 h",
    172_800: "2 d",
    1_209_600: "14 d",
}


def draw_workload(workload: Workload, runtimes: Floats, path: Path, title: str) -> None:
    """Write a picture of seven panels.

    Args:
        workload: at least one job.
        runtimes: how long each takes, (J,) seconds.
        path: the file, .png, .svg or .pdf.
        title: the picture's title; how much it shows is added.

    Raises:
        ConfigError: if the file cannot be written or has another ending.
    """
    save(workload_figure(workload, runtimes, title), path)


@styled
def workload_figure(workload: Workload, runtimes: Floats, title: str) -> Figure:
    """The picture that `draw_workload` writes, as a figure."""
    facts = workload_figures(workload, runtimes)
    across = panels_in_row(6, 19)
    down = 6 // across
    figure = new_figure(18 + 17 * down)
    grid = figure.add_gridspec(1 + down, across, height_ratios=(1, *[1.15] * down))
    headline(figure, f"{title}: {facts.jobs:,} jobs for {facts.nb_res:,} hosts")
    _draw_load(figure.add_subplot(grid[0, :]), workload, runtimes, facts)
    panels = [figure.add_subplot(grid[1 + at // across, at % across]) for at in range(6)]
    sizes, lengths, estimates, hours, weekdays, users = panels
    _draw_sizes(sizes, workload, facts)
    _draw_runtimes(lengths, workload, runtimes)
    _draw_accuracy(estimates, workload, runtimes, facts)
    known = workload.unix_start is not None
    hours.bar(np.arange(24) + 0.5, facts.by_hour, 0.9, color=GREEN)
    hours.set_xlim(0, 24)
    hours.set_xticks(range(0, 25, 4))
    hours.set_xlabel("hour of the day" if known else "hour, counted from 0 s (no date is known)")
    _shares(hours)
    _title(hours, "arrivals by hour", "jobs")
    weekdays.bar(range(7), facts.by_weekday, 0.9, color=GREEN)
    weekdays.set_xticks(range(7), WEEKDAYS if known else [str(day) for day in range(1, 8)])
    weekdays.set_xlabel("" if known else "day, counted from 0 s (no date is known)")
    _shares(weekdays)
    _title(weekdays, "arrivals by weekday", "jobs")
    # What the busiest users have, of all jobs and of all host time.
    number = len(facts.jobs_by_user)
    if number:
        for values, color, style, label in (
            (facts.jobs_by_user, BLUE, "-", "of jobs"),
            (np.sort(facts.area_by_user)[::-1], RED, "--", "of host time"),
        ):
            shares = np.concatenate(([0], np.cumsum(values))) / values.sum()
            users.step(np.arange(number + 1), shares, style, where="post", color=color, label=label)
        users.set_xlim(0, number)
        users.legend(fontsize="small", loc="lower right")
    else:
        users.text(0.5, 0.5, "no job has a user", ha="center", va="center", transform=users.transAxes)
    users.set_ylim(0, 1.02)
    users.xaxis.set_major_locator(MaxNLocator(integer=True))
    users.set_xlabel("the busiest users")
    _shares(users)
    _title(users, f"users ({number:,})", "share")
    for axes in panels:
        name_panel(axes, axes.get_title(loc="left"), across)
        axes.set_xlabel(wrapped(axes.get_xlabel(), paper().columns / across - 4))
    return figure


def _draw_load(axes: Axes, workload: Workload, runtimes: Floats, facts: WorkloadFigures) -> None:
    """Host-seconds submitted in each bin of time, relative to what the machine has."""
    submitted = submit_times(workload)
    width, name = next(
        ((w, n) for w, n in zip(_BINS, _BIN_NAMES, strict=True) if facts.span / w <= _MOST_BINS),
        (_BINS[-1], _BIN_NAMES[-1]),
    )
    begin = clock_at_zero([workload])
    time = clock(max(facts.span, 2 * 3600.0), None if begin is None else begin + float(submitted.min()))
    unit = time.unit
    which = ((submitted - submitted.min()) // width).astype(np.int64)
    area = sizes(workload) * np.minimum(runtimes, walltimes(workload))
    load = np.bincount(which, weights=area) / (workload.nb_res * width)
    axes.bar(np.arange(len(load)) * width / unit, load, width / unit, align="edge", color=BLUE)
    axes.axhline(facts.load, color=DARK, linewidth=0.8, linestyle="--")
    top = max(1e-9, min(float(load.max()), 6 * float(np.quantile(load, 0.95)) or np.inf))
    cut = np.flatnonzero(load > 1.05 * top)
    axes.set_ylim(0, top * (1.25 if len(cut) else 1.05))
    for piece in cut.tolist():  # what goes on beyond the picture says how far
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        at = ((piece + 0.5) * width / unit, 1.24 * top)
        axes.text(*at, f"{load[piece]:.3g}", ha="center", va="top", color=DARK, fontsize="x-small", bbox=behind)
    axes.set_xlim(0, max(len(load) * width, 1.0) / unit)
    axes.set_xlabel(time.label)
    time.show(axes)
    beyond = "; numbers: bars that go on so far" if len(cut) else ""
    _title(axes, f"offered load by {name} of submission (dashed: in all, {facts.load:.2f}{beyond})", "load")


def _draw_sizes(axes: Axes, workload: Workload, facts: WorkloadFigures) -> None:
    size = sizes(workload)
    top = int(np.ceil(np.log2(size.max()))) if size.max() > 1 else 0
    bounds = np.array([0.0, *2.0 ** np.arange(top + 1)])  # 1, 2, 3-4, 5-8, ...
    which = np.searchsorted(bounds, size) - 1
    whole = np.log2(size) % 1 == 0
    counts = [np.bincount(which[chosen], minlength=top + 1) / len(size) for chosen in (whole, ~whole)]
    axes.bar(range(top + 1), counts[0], color=BLUE, label="powers of two")
    axes.bar(range(top + 1), counts[1], bottom=counts[0], color=RED, hatch="////", edgecolor="white", label="others")
    names = ["1", "2", *(f"{2 ** (k - 1) + 1}-{2**k}" for k in range(2, top + 1))][: top + 1]
    axes.set_xticks(range(top + 1), names, rotation=60 if top > 4 else 0, ha="right" if top > 4 else "center")
    axes.set_xlabel("hosts")
    axes.set_ylim(0, 1.5 * (counts[0] + counts[1]).max())
    axes.legend(fontsize="small", loc="best")
    _shares(axes)
    _title(axes, f"sizes ({facts.serial:.0%} of one host)", "jobs")


def _draw_runtimes(axes: Axes, workload: Workload, runtimes: Floats) -> None:
    """How many jobs take at most so long: run times, and walltimes where there are any."""
    limits = walltimes(workload)
    for values, color, style, label in (
        (runtimes, BLUE, "-", "run time"),
        (limits[np.isfinite(limits)], RED, "--", "walltime"),
    ):
        if len(values):
            ordered = np.maximum(np.sort(values), 1.0)
            shares = np.arange(1, len(ordered) + 1) / len(ordered)
            axes.step(ordered, shares, style, where="post", color=color, label=label)
    logarithmic(axes, "x", f"{PLAIN} s")
    low, high = axes.get_xlim()
    ticks = {seconds: name for seconds, name in _TICKS.items() if low <= seconds <= high}
    if len(ticks) > 1:
        axes.set_xticks(list(ticks), list(ticks.values()), fontsize="x-small")
    axes.set_ylim(0, 1.25)  # with room for the legend above the curves
    axes.set_xlabel("at most" + (" (1 s: or less)" if runtimes.min() < 1 else ""))
    axes.legend(fontsize="small", loc="upper left", ncols=2, columnspacing=1.0, handlelength=1.6)
    axes.grid()
    _shares(axes)
    _title(axes, "run times and walltimes", "jobs")


def _draw_accuracy(axes: Axes, workload: Workload, runtimes: Floats, facts: WorkloadFigures) -> None:
    limits = walltimes(workload)
    limited = np.isfinite(limits)
    if limited.any():
        accuracy = np.minimum(runtimes[limited] / limits[limited], 1.0)
        counts, edges = np.histogram(accuracy, bins=20, range=(0, 1))
        axes.bar(edges[:-1], counts / len(accuracy), 0.05, align="edge", color=BLUE, edgecolor="white", linewidth=0.5)
        title = f"estimates ({facts.exact:.0%} exact, {facts.stopped:.0%} too short)"
    else:
        axes.text(0.5, 0.5, "no job has a walltime", ha="center", va="center", transform=axes.transAxes)
        title = "estimates"
    axes.set_xlim(0, 1)
    axes.set_xlabel("run time / walltime")
    _shares(axes)
    _title(axes, title, "jobs")


def _shares(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _title(axes: Axes, title: str, ylabel: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(ylabel)


# Pictures of a supply of power: what jobs used of it, what a battery took and gave, and what was wasted.

_LOOKS = {
    "jobs, from the supply": ("#4477aa", ""),
    "jobs, from the battery": ("#228833", "////"),
    "jobs, from the grid": ("#ee6677", "xxxx"),
    "into the battery": ("#b8dcb0", "...."),
    "wasted": ("#f0e6b0", ""),
}
_SUPPLY, _LEVEL = "#222222", "#228833"


@styled
def power_over_time(runs: Sequence[NamedRun]) -> Picture:
    """Supply and use of power, and below them what batteries hold, averaged over 200ths of the time.

    Args:
        runs: under a supply of power.
    """
    stored = any(run.record.battery is not None for run in runs)
    figure, panels = side_by_side(len(runs), 20, 30 if stored else 17, stacked=1 + stored)
    time = clock_of(runs)
    unit, label = time.unit, time.label
    across = panels_in_row(len(runs), 20)
    wasted = {}
    for at, ((top, *below), run) in enumerate(zip(panels, runs, strict=True)):
        assert run.record.supply is not None  # only such runs are drawn
        course, end = power_course(run.jobs, run.record.supply, run.record.battery), last_end([run])
        edges = np.linspace(0.0, end, PIECES + 1)
        # In the order of the looks; without a limit the supply has power for all hosts
        covered = np.minimum(course.busy, course.supply)
        waste = np.minimum(course.waste, run.record.nb_hosts - covered)
        parts = (covered, course.given, course.grid, course.taken, waste)
        layers = [_average(course, values, edges) for values in parts]
        stack_layers(top, edges / unit, layers, list(_LOOKS.values()))
        supply = np.minimum(course.supply, run.record.nb_hosts)
        top.stairs(_average(course, supply, edges), edges / unit, color=_SUPPLY, linewidth=0.8)
        top.set_xlim(0, last_end(runs) / unit)
        time.show(top)
        top.set_ylim(0, 1.02 * run.record.nb_hosts)
        wasted[run.name] = f"{layers[-1].mean() * end / 3600:,.0f} host-hours"
        name_panel(top, f"{run.name}: {wasted[run.name]} wasted", across)
        for axes in below:
            ran = course.edges <= end
            axes.plot(course.edges[ran] / unit, course.level[ran] / 3600, color=_LEVEL, linewidth=1.0)
            axes.set_ylim(bottom=0)
        if at % across == 0:
            top.set_ylabel("hosts")
            for axes in below:
                axes.set_ylabel("host-h stored")
    levels = [axes for _, *below in panels for axes in below]
    highest = max((axes.get_ylim()[1] for axes in levels), default=1.0)
    for axes in levels:  # one scale for what all batteries hold
        axes.set_ylim(0, highest)
    explain(figure, f"{label}\naverages over {PIECES}ths of the time")
    handles = [Patch(facecolor=c, hatch=h, edgecolor="white", label=name) for name, (c, h) in _LOOKS.items()]
    outer_legend(figure, [*handles, Line2D([], [], color=_SUPPLY, linewidth=0.8, label="supply")])
    batteries = " Below: what the battery holds." if stored else ""
    return Picture(
        figure,
        f"Where power came from and went to, in hosts that compute, over the {label}, averaged over {PIECES}ths of "
        f"the time.{batteries} Wasted is what the supply had and neither jobs nor a battery took.",
        facts_of("Supply and use of power over time. Wasted", wasted),
    )


def _average(course: PowerCourse, values: Floats, edges: Floats) -> Floats:
    return averaged(Steps(course.edges[:-1], values), edges)
