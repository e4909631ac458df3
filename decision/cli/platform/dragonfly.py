"""``decision platform dragonfly``: groups of routers, all groups connected."""

from pathlib import Path
from typing import Annotated

import typer

from decision.model.errors import ConfigError

from .networked import (
    BANDWIDTH,
    LATENCY,
    POWER,
    SPEED,
    BandwidthOption,
    LatencyOption,
    Options,
    OutputOption,
    PowerOption,
    SpeedOption,
    read_links,
    write_networked,
)
from .options import SimgridOption

Groups = Annotated[int, typer.Option("--groups", help="Groups; no more than routers in a chassis.")]
Chassis = Annotated[int, typer.Option("--chassis", help="Chassis in a group.")]
Routers = Annotated[int, typer.Option("--routers", help="Routers in a chassis.")]
Nodes = Annotated[int, typer.Option("--nodes", help="Hosts on a router.")]
Cables = Annotated[
    str, typer.Option("--cables", help="Parallel links between groups, chassis and routers.", metavar="G,C,R")
]


def dragonfly(
    groups: Groups,
    chassis: Chassis,
    routers: Routers,
    nodes: Nodes,
    cables: Cables = "1,1,1",
    bandwidth: BandwidthOption = BANDWIDTH,
    latency: LatencyOption = LATENCY,
    speed: SpeedOption = SPEED,
    power: PowerOption = POWER,
    simgrid: SimgridOption = None,
    output: OutputOption = Path("dragonfly.xml"),
) -> None:
    """Write the platform of a dragonfly, as SimGrid knows it.

    Routers of a chassis are all connected, and so are those of one number in the
    chassis of a group. Any two groups are connected by one pair of routers. Two
    hosts are 2 hops apart on one router, at most 4 in one group, and at most 7
    otherwise; ids run from group to group.

    Example:

      decision platform dragonfly --groups 4 --chassis 2 --routers 4 --nodes 2
    """
    from decision.model.topology import Dragonfly

    (link,) = read_links(bandwidth, latency)
    topology = Dragonfly(groups, chassis, routers, nodes, link, _read_cables(cables))
    shape = {"groups": groups, "chassis": chassis, "routers": routers, "nodes": nodes, "cables": cables}
    write_networked(topology, "dragonfly", shape, Options(bandwidth, latency, speed, power, simgrid, output))


def _read_cables(text: str) -> tuple[int, int, int]:
    """The numbers of parallel links from ``1,1,1``.

    Raises:
        ConfigError: if they are written otherwise.
    """
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--cables {text!r}: write three whole numbers like 2,1,1")
    return int(parts[0]), int(parts[1]), int(parts[2])
