"""``decision platform fat-tree|torus|dragonfly|flat``: equal hosts in a network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decision.model.errors import ConfigError

from .grouped import with_groups
from .network_options import LevelOptions, NetworkOptions, read_links, write_networked
from .options import JsonOption, OutputFile, SimgridOption

if TYPE_CHECKING:
    from decision.model.topology import FatTree


Radix = Annotated[int | None, typer.Option("--radix", "-k", help="Number of ports of each switch; even.", metavar="K")]
Down = Annotated[
    str | None,
    typer.Option(
        "--down", help="Instead of a radix: hosts on a switch, switches in a pod, pods; any levels.", metavar="N,N,N"
    ),
]
Pods = Annotated[
    int | None, typer.Option("--pods", help="Number of pods; K by default, fewer for a pruned tree.", metavar="P")
]
Dims = Annotated[str, typer.Option("--dims", help="Number of hosts in each dimension.", metavar="XxYxZ")]
Groups = Annotated[int, typer.Option("--groups", help="Number of groups; at most the number of routers in a chassis.")]
Chassis = Annotated[int, typer.Option("--chassis", help="Number of chassis in a group.")]
Routers = Annotated[int, typer.Option("--routers", help="Number of routers in a chassis.")]
Nodes = Annotated[int, typer.Option("--nodes", help="Number of hosts on a router.")]
Cables = Annotated[
    str, typer.Option("--cables", help="Parallel links between groups, chassis and routers.", metavar="G,C,R")
]
NbHosts = Annotated[int, typer.Option("--hosts", help="Number of hosts.", metavar="N")]


@with_groups
def fat_tree_command(
    *,
    radix: Radix = None,
    pods: Pods = None,
    down: Down = None,
    links: LevelOptions,
    simgrid: SimgridOption = None,
    output: OutputFile = Path("fat_tree.xml"),
    as_json: JsonOption = False,
) -> None:
    """Write the platform of a fat-tree: of switches with K ports, or of any sizes.

    A pod has K/2 switches L0, with K/2 hosts each, and K/2 switches L1; (K/2)^2
    switches L2 connect the pods. Two hosts are 2 hops apart on one switch, 4 in
    one pod, and 6 otherwise, and their ids run from left to right. Links L0 are
    those of hosts, L1 those up to switches L1, and L2 those up to switches L2.

    With --down each switch has as many links up as devices below it, too.

    Where all links are equal SimGrid routes over each of them. Where levels
    differ, the links from one switch or pod up are pooled into one.

    Examples:

      decision platform fat-tree --radix 4

      decision platform fat-tree --radix 20 --pods 10 -o fat_tree1000.xml

      decision platform fat-tree --radix 16 --bandwidth 10Gbps,10Gbps,40Gbps

      decision platform fat-tree --down 10,4,25 -o fat_tree_of_25_pods.xml
    """
    shape: dict[str, object]
    if down is not None:
        if radix is not None or pods is not None:
            raise ConfigError("--down says how large the tree is; leave --radix and --pods out")
        topology = _tree_of_any_sizes(down, links)
        shape = {"down": down}
    else:
        topology = _k_ary_tree(radix, pods, links)
        shape = {"radix": radix, "pods": topology.down[2]}
    write_networked(topology, "fat-tree", shape, links, simgrid, output, as_json)


def _k_ary_tree(radix: int | None, pods: int | None, links: LevelOptions) -> "FatTree":
    from decision.generate.topologies import fat_tree

    if radix is None:
        raise ConfigError("a fat-tree needs a size: give --radix, or --down for one that is not k-ary")
    return fat_tree(radix, radix if pods is None else pods, read_links(links, levels=3))


def _tree_of_any_sizes(down: str, links: LevelOptions) -> "FatTree":
    from decision.generate.topologies import full_tree

    parts = down.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--down {down!r}: write whole numbers like 10,4,25, from the hosts up, each at least 1")
    return full_tree([int(part) for part in parts], read_links(links, levels=len(parts)))


@with_groups
def torus_command(
    dims: Dims,
    links: NetworkOptions,
    simgrid: SimgridOption = None,
    output: OutputFile = Path("torus.xml"),
    as_json: JsonOption = False,
) -> None:
    """Write the platform of a torus of any dimensions.

    Each host has a link to the next one in each dimension, and the last to the
    first. Ids run along the first dimension fastest, and two hosts are as many
    hops apart as links lie between them.

    Example:

      decision platform torus --dims 4x4x4 --bandwidth 10GBps -o torus64.xml
    """
    from decision.model.topology import Torus

    (link,) = read_links(links)
    topology = Torus(_read_dims(dims), link)
    write_networked(topology, "torus", {"dims": dims}, links, simgrid, output, as_json)


def _read_dims(text: str) -> tuple[int, ...]:
    """The dimensions from ``4x4x4``.

    Raises:
        ConfigError: if they are not written so.
    """
    parts = text.split("x")
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--dims {text!r}: write whole numbers like 4x4x4")
    return tuple(map(int, parts))


@with_groups
def dragonfly_command(
    *,
    groups: Groups,
    chassis: Chassis,
    routers: Routers,
    nodes: Nodes,
    cables: Cables = "1,1,1",
    links: NetworkOptions,
    simgrid: SimgridOption = None,
    output: OutputFile = Path("dragonfly.xml"),
    as_json: JsonOption = False,
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

    (link,) = read_links(links)
    topology = Dragonfly(groups, chassis, routers, nodes, link, _read_cables(cables))
    shape = {"groups": groups, "chassis": chassis, "routers": routers, "nodes": nodes, "cables": cables}
    write_networked(topology, "dragonfly", shape, links, simgrid, output, as_json)


def _read_cables(text: str) -> tuple[int, int, int]:
    """The numbers of parallel links from ``1,1,1``.

    Raises:
        ConfigError: if they are not written so.
    """
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--cables {text!r}: write three whole numbers like 2,1,1")
    return int(parts[0]), int(parts[1]), int(parts[2])


@with_groups
def flat_command(
    hosts: NbHosts,
    links: NetworkOptions,
    network: Annotated[bool, typer.Option(help="Write links; without them messages take no time.")] = True,
    simgrid: SimgridOption = None,
    output: OutputFile = Path("flat.xml"),
    as_json: JsonOption = False,
) -> None:
    """Write the platform of equal hosts around one switch that never saturates.

    Each host has a link of its own, so that all are 2 hops apart. Batsim's own
    messages cross the links: it hears of the end of a job a latency late.

    Example:

      decision platform flat --hosts 64 --bandwidth 1Gbps --latency 50us
    """
    from decision.model.topology import Flat

    (link,) = read_links(links)
    topology = Flat(hosts, link)
    shape = {"hosts": hosts} if network else {"hosts": hosts, "network": "no"}
    write_networked(topology, "flat", shape, links, simgrid, output, as_json, network)
