"""Pictures of a supply of power: what jobs used of it, what a battery took and gave, and what was wasted."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from decision.experiments.results import PIECES, NamedRun, Steps, averaged, last_end
from decision.experiments.worth import PowerCourse, power_course
from decision.model.record import Floats

from .figures import Picture, explain, facts_of, name_panel, outer_legend, panels_in_row, side_by_side, styled
from .schedules import clock_of, stack_layers

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
        course, end = _course(run), last_end([run])
        edges = np.linspace(0.0, end, PIECES + 1)
        layers = [_average(course, values, edges) for values in _parts(course, run.record.nb_hosts)]
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
    _level_scales([below for _, *below in panels])
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


def _course(run: NamedRun) -> PowerCourse:
    supply = run.record.supply
    assert supply is not None  # only such runs are drawn
    return power_course(run.jobs, supply, run.record.battery)


def _parts(course: PowerCourse, nb_hosts: int) -> list[Floats]:
    """What is drawn, in the order of the looks; without a limit the supply has power for all hosts."""
    covered = np.minimum(course.busy, course.supply)
    waste = np.minimum(course.waste, nb_hosts - covered)
    return [covered, course.given, course.grid, course.taken, waste]


def _average(course: PowerCourse, values: Floats, edges: Floats) -> Floats:
    return averaged(Steps(course.edges[:-1], values), edges)


def _level_scales(panels: Sequence[Sequence[Axes]]) -> None:
    """One scale for what all batteries hold."""
    axes = [one for panel in panels for one in panel]
    highest = max((one.get_ylim()[1] for one in axes), default=1.0)
    for one in axes:
        one.set_ylim(0, highest)
