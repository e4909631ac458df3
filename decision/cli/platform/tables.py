"""What commands about platforms print."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from decision.formats.platform_check import Finding, grouped
from decision.generate.grid5000 import Cluster
from decision.model.platform import Platform

from ..terminal import stdout


def print_clusters(clusters: Iterable[Cluster]) -> None:
    """One row of facts per cluster."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption="Gflop/s of one core", caption_justify="left")
    for header in ("cluster", "site"):
        table.add_column(header, no_wrap=True)
    for header in ("year", "nodes", "cores", "measured", "theoretical"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("network")
    for c in clusters:
        measured = "-" if c.measured is None else f"{c.measured / 1e9:g}"
        figures = (str(c.year), str(c.nodes), str(c.cores), measured, f"{c.theoretical / 1e9:g}")
        table.add_row(c.name, c.site, *figures, c.network)
    stdout().print(table)


def print_written(path: Path, platform: Platform) -> None:
    """What was written where."""
    speed = platform.hosts[0].pstates[0].speed / 1e9
    power = (
        "with power and sleep states"
        if platform.hosts[0].sleep
        else "with power"
        if platform.has_power
        else "without power"
    )
    text = f"{path}: {len(platform.hosts):,} hosts of {speed:g} Gflop/s, {power}"
    stdout().print(text, highlight=False, soft_wrap=True)


def print_findings(path: Path, findings: Sequence[Finding]) -> None:
    """One line and its mend for each finding; equal ones of many elements once."""
    lines = []
    for finding, number in grouped(findings):
        more = f" (and {number - 1:,} more like it)" if number > 1 else ""
        lines += [f"line {finding.line}, {finding.element}{more}: {finding.problem}", f"    {finding.mend}"]
    count = f"{len(findings):,} finding{'s' * (len(findings) > 1)}" if findings else "no findings"
    stdout().print("\n".join([*lines, f"{path}: {count}"]), highlight=False, soft_wrap=True)
