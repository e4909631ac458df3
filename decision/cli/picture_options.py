"""Options of pictures: their file, format, width, type size, and pixels per inch."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from decision.analysis.plots.paper import Paper

_pictures_option = partial(typer.Option, rich_help_panel="Pictures")

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


FormatOption = Annotated[PictureFormat, _pictures_option("--format", help="Image format; includes --plot.")]
WidthOption = Annotated[
    float, _pictures_option("--width", help="Width of pictures, inches.", min=2.0, max=20.0, metavar="INCHES")
]
TypeSizeOption = Annotated[
    float, _pictures_option("--type-size", help="Type size in pictures, points.", min=4, max=24, metavar="POINTS")
]
DpiOption = Annotated[
    float, _pictures_option("--dpi", help="Pixels per inch of PNG.", min=50.0, max=600.0, metavar="N")
]
