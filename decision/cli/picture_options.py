"""Options of pictures: their file, format, width, type size, and pixels per inch."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from decision.analysis.plots.paper import Paper

_PICTURES = "Pictures"

PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", help="Picture to draw (.png, .svg or .pdf).", metavar="FILE", show_default=False),
]

PAPER = Paper()


class PictureFormat(StrEnum):
    """How pictures are written."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


FormatOption = Annotated[PictureFormat, typer.Option("--format", help="Image format.", rich_help_panel=_PICTURES)]
WidthOption = Annotated[
    float,
    typer.Option(
        "--width", help="Width of pictures, inches.", min=2.0, max=20.0, metavar="INCHES", rich_help_panel=_PICTURES
    ),
]
TypeSizeOption = Annotated[
    float,
    typer.Option(
        "--type-size", help="Type size in pictures, points.", min=4, max=24, metavar="POINTS", rich_help_panel=_PICTURES
    ),
]
DpiOption = Annotated[
    float,
    typer.Option("--dpi", help="Pixels per inch of PNG.", min=50.0, max=600.0, metavar="N", rich_help_panel=_PICTURES),
]
