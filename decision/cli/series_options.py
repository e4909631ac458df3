"""Options of commands that read a series of values by time."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from decision.formats.series import SeriesLayout


class Gaps(StrEnum):
    """What becomes of what a table leaves out."""

    REFUSE = "refuse"
    HOLD = "hold"
    LINEAR = "linear"


TimeColumn = Annotated[
    str | None, typer.Option("--time-column", help="Column with the time; by default one called so.", metavar="NAME")
]
ColumnName = Annotated[
    str | None, typer.Option("--column", help="Column with the values; by default one called so.", metavar="NAME")
]
Begin = Annotated[
    str | None,
    typer.Option(
        "--begin", help="Time in the table at which the simulation begins; by default its first.", metavar="TIME"
    ),
]
GapsOption = Annotated[
    Gaps, typer.Option("--gaps", help="What fills gaps: nothing, the value before, or a line to the next.")
]


def layout_of(time_column: str | None, column: str | None, begin: str | None, gaps: Gaps) -> "SeriesLayout":
    """What the options say of a table."""
    from decision.formats.series import SeriesLayout

    return SeriesLayout(time_column=time_column or "", column=column or "", begin=begin or "", gaps=gaps.value)
