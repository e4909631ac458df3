"""``decision platform check``: what is wrong with a platform file."""

from pathlib import Path
from typing import Annotated

import typer

from .options import SimgridOption

Master = Annotated[str, typer.Option("--master", help="The host that Batsim itself runs on.", metavar="HOST")]


def check(
    platform: Annotated[Path, typer.Argument(help="SimGrid platform XML.", metavar="FILE")],
    simgrid: SimgridOption = None,
    master: Master = "master_host",
) -> None:
    """Look a platform file over for mistakes that bite users of Batsim.

    Prints each with its line, its element and its mend: gateways, routers,
    routes and links, bits taken for bytes, units, power and sleep states
    under the names of the SimGrid that reads them, speeds, the master host.

    Exit codes: 0 if there are no findings, 2 if there are any.

    Examples:

      decision platform check platforms/taurus.xml

      decision platform check old.xml --simgrid 3.24
    """
    from decision.formats.platform_check import check_platform
    from decision.formats.simgrid import BATSIM_SIMGRID

    from .tables import print_findings

    findings = check_platform(platform, simgrid or BATSIM_SIMGRID, master)
    print_findings(platform, findings)
    if findings:
        raise typer.Exit(2)
