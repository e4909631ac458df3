"""``decision platform fat-tree``: a k-ary fat-tree, whole or pruned."""

from pathlib import Path
from typing import Annotated

import typer

from .networked import (
    BANDWIDTH,
    LATENCY,
    POWER,
    SPEED,
    Options,
    OutputOption,
    PowerOption,
    SpeedOption,
    read_links,
    write_networked,
)
from .options import SimgridOption

Radix = Annotated[int, typer.Option("--radix", "-k", help="Ports of each switch; even.", metavar="K")]
Pods = Annotated[int | None, typer.Option("--pods", help="Pods; K if not given, and pruned with fewer.", metavar="P")]
Bandwidth = Annotated[
    str,
    typer.Option(
        "--bandwidth", help="Of a link, each way: GBps are bytes, Gbps bits. One value, or L0,L1,L2.", metavar="RATE"
    ),
]
Latency = Annotated[str, typer.Option("--latency", help="Of a link. One value, or L0,L1,L2.", metavar="TIME")]


def fat_tree(
    radix: Radix,
    pods: Pods = None,
    bandwidth: Bandwidth = BANDWIDTH,
    latency: Latency = LATENCY,
    speed: SpeedOption = SPEED,
    power: PowerOption = POWER,
    simgrid: SimgridOption = None,
    output: OutputOption = Path("fat_tree.xml"),
) -> None:
    """Write the platform of a fat-tree of switches with K ports.

    A pod has K/2 switches L0, with K/2 hosts each, and K/2 switches L1; (K/2)^2
    switches L2 connect the pods. Two hosts are 2 hops apart on one switch, 4 in
    one pod, and 6 otherwise, and their ids run from left to right. Links L0 are
    those of hosts, L1 those up to switches L1, and L2 those up to switches L2.

    Where all links are equal SimGrid routes over each of them. Where levels
    differ, the links from one switch or pod up are pooled into one.

    Examples:

      decision platform fat-tree --radix 4

      decision platform fat-tree --radix 20 --pods 10 -o fat_tree1000.xml

      decision platform fat-tree --radix 16 --bandwidth 10Gbps,10Gbps,40Gbps
    """
    from decision.generate.topologies import fat_tree as build

    topology = build(radix, radix if pods is None else pods, read_links(bandwidth, latency, levels=3))
    shape = {"radix": radix, "pods": topology.down[2]}
    write_networked(topology, "fat-tree", shape, Options(bandwidth, latency, speed, power, simgrid, output))
