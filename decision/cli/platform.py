"""``decision platform``: what is in a platform file or wrong with it, and the commands that make one."""

import typer

from decision.analysis.plots.paper import Paper, drawn_for

from .command import Group, add_command
from .options import JsonOption, MasterOption, PlatformArgument, SimgridOption
from .picture_options import PAPER, DpiOption, PlotFile, TypeSizeOption, WidthOption
from .platform_grid5000 import grid5000_command
from .platform_make import dragonfly_command, fat_tree_command, flat_command, torus_command
from .platform_slurm import slurm_command


def check_platform_command(
    platform: PlatformArgument,
    simgrid: SimgridOption = None,
    master: MasterOption = "master_host",
    as_json: JsonOption = False,
) -> None:
    """Check a platform file for mistakes that are common among users of Batsim.

    Prints each with its line, its element and the suggested fix: gateways,
    routers, routes and links, bits taken for bytes, units, power and sleep states
    under the names that this SimGrid reads, speeds, the master host.

    It also says how late Batsim hears of ends of jobs, where the platform has
    links.

    Exit codes: 0 without findings, 2 with findings.

    Examples:

      decision platform check platforms/taurus.xml

      decision platform check old.xml --simgrid 3.24
    """
    from decision.formats import load_platform
    from decision.formats.simgrid import BATSIM_SIMGRID
    from decision.platform_check import check_platform

    from .platform_tables import print_platform_findings

    findings = check_platform(platform, simgrid or BATSIM_SIMGRID, master)
    read = None if findings else load_platform(platform, master=master)
    print_platform_findings(platform, findings, read, as_json)
    if findings:
        raise typer.Exit(2)


def show_platform_command(
    platform: PlatformArgument,
    plot: PlotFile = None,
    width: WidthOption = PAPER.width,
    type_size: TypeSizeOption = PAPER.type_size,
    dpi: DpiOption = PAPER.dpi,
    master: MasterOption = "master_host",
    as_json: JsonOption = False,
) -> None:
    """Show a platform: hosts, speeds, power, sleep states, topology, links.

    Hosts that differ only in their names share a row. The picture shows hosts,
    network and power.

    Examples:

      decision platform show platforms/taurus.xml

      decision platform show fat_tree.xml --plot fat_tree.png
    """
    from decision.analysis.plots import require_matplotlib
    from decision.formats import load_platform
    from decision.model.errors import InputError
    from decision.platform_check.structure import declared_links

    from .platform_tables import platform_document, print_platform
    from .tables import print_json
    from .terminal import note, say

    try:
        loaded = load_platform(platform, energy=True, master=master)
    except InputError as error:
        loaded = load_platform(platform, master=master)
        note(f"power is left out where it is invalid: {error}")
    if plot is not None:
        require_matplotlib()
        from decision.analysis.plots.platforms import draw_platform

        with drawn_for(Paper(width, type_size, dpi)):
            draw_platform(loaded, plot, platform.stem)
    links = declared_links(platform)
    if as_json:
        print_json(platform_document(loaded, links))
        return
    print_platform(loaded, links)
    if plot is not None:
        say(f"drawn in {plot}")


app = typer.Typer(cls=Group, no_args_is_help=True, help="Make, check and show SimGrid platforms.")
add_command(app, "grid5000", grid5000_command)
add_command(app, "fat-tree", fat_tree_command)
add_command(app, "torus", torus_command)
add_command(app, "dragonfly", dragonfly_command)
add_command(app, "flat", flat_command)
add_command(app, "slurm", slurm_command)
add_command(app, "check", check_platform_command)
add_command(app, "show", show_platform_command)
