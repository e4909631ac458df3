"""``decision platform show``: what a platform is, as tables and as a picture."""

from pathlib import Path
from typing import Annotated

import typer

Plot = Annotated[
    Path | None, typer.Option("--plot", help="Draw it, as .png, .svg or .pdf: hosts, network, power.", metavar="FILE")
]
Master = Annotated[str, typer.Option("--master", help="The host that Batsim itself runs on.", metavar="HOST")]


def show(
    platform: Annotated[Path, typer.Argument(help="SimGrid platform XML.", metavar="FILE")],
    plot: Plot = None,
    master: Master = "master_host",
) -> None:
    """Show a platform: hosts, speeds, power, sleep states, topology, links.

    Hosts that differ in name only are one row.

    Examples:

      decision platform show platforms/taurus.xml

      decision platform show fat_tree.xml --plot fat_tree.png
    """
    from decision.analysis.extras import require_matplotlib
    from decision.formats import load_platform
    from decision.formats.platform_links import read_links
    from decision.model.errors import InputError

    from ..terminal import stderr, stdout
    from .show_tables import print_platform

    try:
        loaded = load_platform(platform, energy=True, master=master)
    except InputError as error:
        loaded = load_platform(platform, master=master)
        stderr().print(f"power is left out where it is wrong: {error}", highlight=False, soft_wrap=True)
    if plot is not None:
        require_matplotlib()
        from decision.analysis.platform_plots import draw_platform

        draw_platform(loaded, plot, platform.stem)
    print_platform(loaded, read_links(platform))
    if plot is not None:
        stdout().print(f"drawn in {plot}", highlight=False, soft_wrap=True)
