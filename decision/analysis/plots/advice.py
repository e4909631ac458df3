"""The page of `decision advise`: a sentence, a table and four pictures."""

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from decision.formats.files import utf8, write_files

from .figures import BLUE, DARK, GREY, RED, drawn, styled

_PAGE = "advice.html"
_HOUR = 3600.0


def write_advice_page(folder: Path, advice: Any, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    """Write ``advice.html``, a page that works without a network.

    Args:
        folder: where.
        advice: a `decision.runs.advice.Advice`.
        header: of the table of policies.
        rows: of it.

    Raises:
        ConfigError: if it cannot be written.
    """
    pictures = "".join(
        f"<figure><figcaption>{title}</figcaption>"
        f"<img alt='{title}' src='data:image/png;base64,{_encoded(name, advice)}'></figure>"
        for name, (title, _) in PICTURES.items()
    )
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    heads = "".join(f"<th>{html.escape(text.replace('_', ' '))}</th>" for text in header)
    cannot = "".join(f"<li>{html.escape(text)}</li>" for text in advice.cannot)
    facts = "".join(f"<li>{html.escape(line)}</li>" for line in _facts(advice.log))
    page = (
        "<!doctype html><meta charset='utf-8'><title>Advice</title><style>body{font:16px sans-serif;max-width:72em;"
        "margin:2em auto}p,ul,figure{max-width:60em}td,th{padding:2px 8px;text-align:right}td:first-child,"
        "th:first-child{text-align:left;white-space:nowrap}img{max-width:100%}table{display:block;overflow-x:auto}</style>"
        f"<h1>{html.escape(advice.policy)}</h1><p>{html.escape(advice.sentence)}</p>"
        f"<table><tr>{heads}</tr>{cells}</table>{pictures}"
        f"<h2>What this log cannot say</h2><ul>{cannot}</ul><h2>The log</h2><ul>{facts}</ul>"
    )
    path = folder / _PAGE
    write_files({path: [utf8(page)]})
    return path


def _facts(log: Mapping[str, Any]) -> Iterator[str]:
    """What is known of the log, a line each."""
    for name, value in log.items():
        if value:
            text = value if isinstance(value, str) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
            yield f"{name.replace('_', ' ')}: {text}"


def _encoded(name: str, advice: Any) -> str:
    return base64.b64encode(draw_picture(name, advice, ".png")).decode()


@styled
def draw_picture(name: str, advice: Any, ending: str) -> bytes:
    """One of the `PICTURES` of an advice, in the format that an ending such as ``.png`` names."""
    figure, axes = plt.subplots(figsize=(7, 3.2), dpi=120, layout="constrained")
    try:
        PICTURES[name][1](axes, advice)
        return drawn(figure, ending)
    finally:
        plt.close(figure)


def _draw_load(axes: Axes, advice: Any) -> None:
    axes.bar(range(len(advice.pictures["jobs"])), advice.pictures["jobs"], width=1.0)
    axes.set(xlabel=advice.pictures["block"], ylabel="jobs submitted")


def _draw_classes(axes: Axes, advice: Any) -> None:
    names = [name.replace(" ", "\n") for name in advice.pictures["class_names"]]
    place = np.arange(len(names))
    for shift, who in ((-0.2, "baseline"), (0.2, "advised")):
        hours = np.array(advice.pictures["classes"][who]) / _HOUR
        axes.bar(place + shift, hours, width=0.4, label=getattr(advice, "policy" if who == "advised" else who))
    axes.set_xticks(place, names, fontsize=7)
    axes.set(ylabel="mean wait (h)")
    axes.legend()


def _draw_plane(axes: Axes, advice: Any) -> None:
    plane, both = advice.pictures["plane"], [advice.baseline, advice.policy]
    hours = {name: (max(mean / _HOUR, 1e-3), max(most / _HOUR, 1e-3)) for name, (mean, most) in plane.items()}
    x, y = np.array([waits for name, waits in hours.items() if name not in both]).reshape(-1, 2).T
    axes.scatter(x, y, s=12, color=GREY, alpha=0.6, linewidths=0)
    for name, color in dict(zip(both, (DARK, BLUE), strict=True)).items():
        mean, most = hours[name]
        axes.scatter([mean], [most], s=40, color=color)
        axes.annotate(name, (mean, most), textcoords="offset points", xytext=(5, 5), color=color)
    times = advice.pictures["bound"]
    limit = times * hours[advice.baseline][1]
    axes.axhline(limit, color=RED, linewidth=0.8, linestyle=":")
    said = f"{times:g} times the longest wait under {advice.baseline}"
    right = axes.get_yaxis_transform()  # a share of the width, hours of the height
    axes.text(0.99, limit, said, ha="right", va="bottom", color=RED, fontsize="small", transform=right)
    axes.set(xscale="log", yscale="log", xlabel="mean wait (h)", ylabel="longest wait (h)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.6)))


def _draw_weeks(axes: Axes, advice: Any) -> None:
    for who in ("baseline", "advised"):
        hours = np.array(advice.pictures["weeks"][who]) / _HOUR
        axes.plot(hours, label=getattr(advice, "policy" if who == "advised" else who), linewidth=1, marker=".")
    axes.set(xlabel=advice.pictures["block"], ylabel="mean wait (h)")
    axes.legend()


PICTURES = {  # by name: the caption, and what draws it
    "load": ("Load: jobs submitted by block of time", _draw_load),
    "classes": (
        "Mean waits by size (small: up to 1/64 of the machine, middle-sized: 1/8) and run time (short: up to 10 min, "
        "middle-long: 2 h)",
        _draw_classes,
    ),
    "plane": ("Mean and longest wait of all policies that were tried", _draw_plane),
    "weeks": ("Mean wait by block of time", _draw_weeks),
}
