"""``decision workload preset grid5000-like``: days of orion, graphite and econome."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ...options import read_range
from ...terminal import stdout
from ..making import OutputOption, SeedOption, write_made

if TYPE_CHECKING:
    from decision.generate.papers.grid5000_days import Trace
    from decision.model.workload import Workload


class Cluster(StrEnum):
    """Whose trace."""

    ORION = "orion"
    GRAPHITE = "graphite"
    ECONOME = "econome"


DaysOption = Annotated[
    str | None,
    typer.Option("--days", help="Only these of the days that have submissions; all if not given.", metavar="A:B"),
]


def grid5000_like(
    cluster: Annotated[Cluster, typer.Argument(help="Whose trace.")],
    output: OutputOption,
    days: DaysOption = None,
    seed: SeedOption = 0,
) -> None:
    """Make days like those of a cluster's trace in DeepScheduling.

    The traces are not public. This meets what is published of them: cores, jobs,
    days, the share of submissions less than 5 minutes after the one before, the
    days in five groups by that share, and the utilization. A host is a core.
    Users, sizes, hours, weekdays and walltimes are plausible.

    Examples:

      decision workload preset grid5000-like orion -o orion.json

      decision workload preset grid5000-like econome --days 0:30 -o month.json
    """
    import numpy as np

    from decision.generate.papers.grid5000_days import TRACES, grid5000_days

    trace = TRACES[cluster.value]
    made = grid5000_days(np.random.default_rng(seed), trace, read_range(days, "--days"))
    origin = (
        f"Days like those of Grid'5000's {cluster.value} in DeepScheduling (Casagrande, Koslovski, Miers and Pillon, "
        "Table 1); 0 s is midnight of the first day."
    )
    chosen = cluster.value + (f" --days {days}" if days else "")
    write_made(output, made, origin, f"preset grid5000-like {chosen} --seed {seed}")
    _print_figures(made, trace)


def _print_figures(made: "Workload", trace: "Trace") -> None:
    """The table's figures, as made and as published for all days."""
    from rich import box
    from rich.table import Table

    from decision.generate.papers.grid5000_days import figures

    found = figures(made, trace.cores)
    caption = "published: of all days together"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    for header in ("", "jobs", "days", "sequential\n%", "utilization\n%", "days in groups 1 to 5"):
        table.add_column(header, justify="right" if header else "left")
    for name, row in (("made", found), ("published", trace)):
        groups = "  ".join(map(str, row.groups))
        shares = (f"{100 * row.sequential:.1f}", f"{100 * row.utilization:.1f}")
        table.add_row(name, f"{row.jobs:,}", f"{row.days:,}", *shares, groups)
    stdout().print(table)
