"""The page of `decision advise`: a sentence, a table and four pictures."""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from decision.formats.files import write_files

PAGE = "advice.html"
_HOUR = 3600.0
_CLASSES = [f"{size}\n{length}" for size in ("small", "middle", "large") for length in ("short", "middle", "long")]


def write_advice_page(folder: Path, advice: Any, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
    """Write ``advice.html``, a page that works without a network.

    Args:
        folder: where.
        advice: a `decision.runs.advise.Advice`.
        header: of the table of policies.
        rows: of it.

    Raises:
        ConfigError: if it cannot be written.
    """
    drawn = (
        ("Load: jobs submitted by block of time", _draw_load),
        ("Mean waits by size and run time", _draw_classes),
        ("Mean and longest wait of all policies that were tried", _draw_plane),
        ("Mean wait by block of time", _draw_weeks),
    )
    pictures = "".join(
        f"<figure><figcaption>{title}</figcaption><img alt='{title}' src='data:image/png;base64,{_png(draw, advice)}'>"
        "</figure>"
        for title, draw in drawn
    )
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    heads = "".join(f"<th>{html.escape(text)}</th>" for text in header)
    cannot = "".join(f"<li>{html.escape(text)}</li>" for text in advice.cannot)
    facts = "".join(f"<li>{html.escape(f'{name}: {value}')}</li>" for name, value in advice.log.items() if value)
    page = (
        "<!doctype html><meta charset='utf-8'><title>Advice</title><style>body{font:16px sans-serif;max-width:60em;"
        "margin:2em auto}td,th{padding:2px 8px;text-align:right}td:first-child{text-align:left}img{max-width:100%}"
        "</style>"
        f"<h1>{html.escape(advice.policy)}</h1><p>{html.escape(advice.sentence)}</p>"
        f"<table><tr>{heads}</tr>{cells}</table>{pictures}"
        f"<h2>What cannot be told from this log</h2><ul>{cannot}</ul><h2>The log</h2><ul>{facts}</ul>"
    )
    path = folder / PAGE
    write_files({path: [page.encode()]})
    return path


def _png(draw: Any, advice: Any) -> str:
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    draw(axes, advice)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120, metadata={"Software": None})
    plt.close(figure)
    return base64.b64encode(buffer.getvalue()).decode()


def _draw_load(axes: Axes, advice: Any) -> None:
    axes.bar(range(len(advice.pictures["jobs"])), advice.pictures["jobs"], width=1.0)
    axes.set(xlabel=advice.pictures["block"], ylabel="jobs submitted")


def _draw_classes(axes: Axes, advice: Any) -> None:
    place = np.arange(len(_CLASSES))
    for shift, who in ((-0.2, "baseline"), (0.2, "advised")):
        hours = np.array(advice.pictures["classes"][who]) / _HOUR
        axes.bar(place + shift, hours, width=0.4, label=getattr(advice, "policy" if who == "advised" else who))
    axes.set_xticks(place, _CLASSES, fontsize=8)
    axes.set(ylabel="mean wait (h)")
    axes.legend()


def _draw_plane(axes: Axes, advice: Any) -> None:
    plane = advice.pictures["plane"]
    mean, longest = (np.array([point[at] for point in plane.values()]) / _HOUR for at in range(2))
    axes.scatter(np.maximum(mean, 1e-3), np.maximum(longest, 1e-3), s=12, color="0.6")
    for name in dict.fromkeys([advice.baseline, advice.policy]):
        x, y = (max(value / _HOUR, 1e-3) for value in plane[name])
        axes.scatter([x], [y], s=40)
        axes.annotate(name, (x, y), textcoords="offset points", xytext=(4, 4), fontsize=8)
    axes.axhline(max(advice.pictures["bound"] * plane[advice.baseline][1] / _HOUR, 1e-3), color="0.3", linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="mean wait (h)", ylabel="longest wait (h)")


def _draw_weeks(axes: Axes, advice: Any) -> None:
    for who in ("baseline", "advised"):
        hours = np.array(advice.pictures["weeks"][who]) / _HOUR
        axes.plot(hours, label=getattr(advice, "policy" if who == "advised" else who), linewidth=1)
    axes.set(xlabel=advice.pictures["block"], ylabel="mean wait (h)")
    axes.legend()
