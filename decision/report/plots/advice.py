"""Pictures of an advice: the log's load, who waits, what was tried, and how waits go over time."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from decision.model.dates import DAY
from decision.model.record import Floats

from .figures import (
    BLUE,
    GREY,
    PALE,
    PLAIN,
    RED,
    AxisClock,
    Picture,
    facts_of,
    logarithmic,
    new_figure,
    outer_legend,
    styled,
    wait_unit,
)

_LEAST = 1e-3  # of a unit: the shortest wait on logarithmic axes
_WIDTH = 0.4  # of a bar


def unit_of(advice: Any) -> tuple[float, str]:
    """The unit of all waits on the page of an advice, seconds, and its name.

    Args:
        advice: a `decision.experiments.advise.Advice`.
    """
    return wait_unit(max(row.metrics["wait"].value for row in advice.rows))


@styled
def advice_pictures(advice: Any) -> dict[str, Picture]:
    """The pictures by name: ``plane``, ``classes``, ``weeks``, ``load``.

    Args:
        advice: a `decision.experiments.advise.Advice`.
    """
    return {"plane": _plane(advice), "classes": _classes(advice), "weeks": _weeks(advice), "load": _load(advice)}


def _both(advice: Any) -> list[tuple[str, str, str, str]]:
    """Of what is compared: the key, the name, colour and hatching."""
    found = [("baseline", advice.baseline, GREY, "")]
    return found if advice.policy == advice.baseline else [*found, ("advised", advice.policy, BLUE, "////")]


def _plane(advice: Any) -> Picture:
    plane, (unit, name) = advice.pictures["plane"], unit_of(advice)
    shown = {policy: [max(wait / unit, _LEAST) for wait in waits] for policy, waits in plane.items()}
    figure = new_figure(30)
    axes = figure.subplots()
    logarithmic(axes, "x")
    logarithmic(axes, "y")
    named = [policy for _, policy, *_ in _both(advice)]
    others = np.array([waits for policy, waits in shown.items() if policy not in named]).reshape(-1, 2)
    axes.scatter(others[:, 0], others[:, 1], s=14, color=PALE, edgecolors=GREY, linewidths=0.6)
    signs = []
    for (_, policy, color, _), marker in zip(_both(advice), "Do", strict=False):
        sign: dict[str, Any] = {"color": color, "marker": marker, "markersize": 7, "linestyle": ""}
        axes.plot(*[[wait] for wait in shown[policy]], **sign)
        signs.append(Line2D([], [], label=policy, **sign))
    signs.append(Line2D([], [], marker="o", linestyle="", color=PALE, markeredgecolor=GREY, label="others"))
    times = advice.pictures["bound"]
    bound: dict[str, Any] = {"color": RED, "linewidth": 1.0, "linestyle": (0, (4, 2))}
    axes.axhline(times * shown[advice.baseline][1], **bound)
    signs.append(Line2D([], [], label=f"{times:g} times the longest wait under {advice.baseline}", **bound))
    axes.margins(0.08)
    axes.grid()
    axes.set(xlabel=f"mean wait ({name})", ylabel=f"longest wait ({name})")
    outer_legend(figure, signs)
    return Picture(
        figure,
        "Mean and longest wait of all policies that were tried. Better is below and on the left; those above the "
        "dashed line let somebody wait for too long.",
        facts_of("Mean wait", {policy: f"{shown[policy][0]:.3g} {name}" for policy in named}),
    )


def _classes(advice: Any) -> Picture:
    unit, name = unit_of(advice)
    names = [text.replace(" ", "\n") for text in advice.pictures["class_names"]]
    figure = new_figure(24)
    axes = figure.subplots()
    place, both = np.arange(len(names)), _both(advice)
    for at, (key, policy, color, hatch) in enumerate(both):
        waits = np.array(advice.pictures["classes"][key]) / unit
        left = place + (at - (len(both) - 1) / 2) * _WIDTH
        axes.bar(left, waits, _WIDTH, label=policy, color=color, hatch=hatch, edgecolor="white", linewidth=0)
    axes.set_xticks(place, names)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_ylabel(f"mean wait ({name})")
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    return Picture(
        figure,
        "Mean waits by size (small: up to 1/64 of the machine, middle-sized: 1/8) and run time (short: up to 10 min, "
        "middle-long: 2 h).",
        "Mean waits by size and run time of jobs.",
    )


def _weeks(advice: Any) -> Picture:
    unit, name = unit_of(advice)
    figure = new_figure(20)
    axes = figure.subplots()
    clock, edges = _blocks(advice)
    middle = (edges[:-1] + edges[1:]) / 2
    for (key, policy, color, _), marker in zip(_both(advice), "Do", strict=False):
        waits = np.array(advice.pictures["weeks"][key]) / unit
        axes.plot(middle, waits, label=policy, color=color, marker=marker, markersize=3)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_ylabel(f"mean wait ({name})")
    _show_time(axes, clock, edges)
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    caption = f"Mean wait of the jobs that are submitted in each {advice.log['block']}."
    return Picture(figure, caption, caption)


def _load(advice: Any) -> Picture:
    figure = new_figure(18)
    axes = figure.subplots()
    clock, edges = _blocks(advice)
    axes.bar(
        edges[:-1], advice.pictures["jobs"], np.diff(edges), align="edge", color=BLUE, edgecolor="white", linewidth=0.4
    )
    axes.yaxis.set_major_formatter(PLAIN)
    axes.set_ylabel("jobs submitted")
    _show_time(axes, clock, edges)
    caption = f"Jobs that are submitted in each {advice.log['block']}."
    return Picture(figure, caption, caption)


def _blocks(advice: Any) -> tuple[AxisClock, Floats]:
    """The clock, and where blocks of time begin and end on it: in days, or their numbers where there are no dates."""
    pictures = advice.pictures
    number, seconds, begin = len(pictures["jobs"]), pictures["block_seconds"], pictures["begin"]
    edges = np.arange(number + 1, dtype=np.float64)
    if begin is None or not np.isfinite(seconds):
        return AxisClock(seconds, advice.log["block"]), edges + 0.5
    return AxisClock(float(DAY), "time by the machine's clock", begin), edges * (seconds / DAY)


def _show_time(axes: Axes, clock: AxisClock, edges: Floats) -> None:
    axes.set_xlim(edges[0], edges[-1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    clock.show(axes)
    axes.set_xlabel(clock.label)
