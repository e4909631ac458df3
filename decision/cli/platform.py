"""``decision platform``: what is in a platform file or wrong with it, and the commands that make one."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click

from decision.model.errors import ConfigError
from decision.report.plots import Paper, drawn_for

from .command import Group, add_command
from .declared import Argument, Option
from .network_options import LevelOptions, NetworkOptions, print_written, read_links, write_networked
from .options import (
    PAPER,
    DpiOption,
    JsonOption,
    MasterOption,
    OutputFile,
    PlatformArgument,
    PlotFile,
    SimgridOption,
    TypeSizeOption,
    WidthOption,
)

# ``decision platform grid5000``: the clusters of Grid'5000.


class Flops(StrEnum):
    """Which speed a core has."""

    MEASURED = "measured"
    THEORETICAL = "theoretical"


class Granularity(StrEnum):
    """What a host of the platform is: a server, or one of its cores."""

    HOST = "host"
    CORE = "core"


class PowerSource(StrEnum):
    """Whose power the hosts have."""

    OWN = "own"
    TAURUS = "taurus"
    NONE = "none"


ClusterName = Annotated[str | None, Argument(help="Name of the cluster; without a name, all are listed.")]
CoreSpeed = Annotated[Flops, Option("--flops", help="Core speed: measured, or the theoretical peak.")]
Servers = Annotated[int | None, Option("--hosts", help="Number of servers; all by default.", min=1)]
Grain = Annotated[Granularity, Option("--granularity", help="What one host is: a server, or one of its cores.")]
Power = Annotated[
    PowerSource | None, Option("--energy", help="Power: the cluster's own where measured, that of taurus, or none.")
]
Network = Annotated[bool, Option(help="Write links; without them messages take no time.")]
SwitchSeconds = Annotated[
    str | None,
    Option(
        "--switch-times",
        help="Seconds that hosts take to wake and to fall asleep; as measured by default.",
        metavar="WAKE,SLEEP",
    ),
]
ClusterFile = Annotated[
    Path | None, Option("--output", "-o", help="Output file; CLUSTER.xml by default.", metavar="FILE")
]


def grid5000_command(
    cluster: ClusterName = None,
    flops: CoreSpeed = Flops.MEASURED,
    granularity: Grain = Granularity.HOST,
    hosts: Servers = None,
    energy: Power = None,
    network: Network = True,
    switch_times: SwitchSeconds = None,
    simgrid: SimgridOption = None,
    output: ClusterFile = None,
    as_json: JsonOption = False,
) -> None:
    """Write the platform of a Grid'5000 cluster, with the source of each figure.

    Power and sleep states are known for taurus only. The other clusters have
    none, unless --energy taurus gives them those of its servers, as studies that
    simulate these clusters do.

    With --granularity core each core is a host, and the property 'server' says
    which cores are one machine: they share its power equally, and should be
    switched together.

    --switch-times 60,180 lets hosts wake in 60 s and fall asleep in 180 s, as in
    the platform of DeepScheduling's authors; measured were 151.52 s and 6.1 s.

    Examples:

      decision platform grid5000

      decision platform grid5000 taurus -o taurus.xml

      decision platform grid5000 graphite --granularity core --energy taurus \\
          --simgrid 3.24 -o graphite.xml
    """
    from decision import __version__
    from decision.files.generate.grid5000 import CLUSTERS, find_cluster
    from decision.files.generate.platforms import SwitchTimes, Wanted, describe_cluster, grid5000_cluster
    from decision.files.simgrid.values import BATSIM_SIMGRID
    from decision.files.simgrid.write_platform import write_platform
    from decision.model.errors import ConfigError

    from .platform_tables import print_clusters
    from .terminal import note

    if cluster is None:
        print_clusters(list(CLUSTERS.values()), as_json)
        return
    facts = find_cluster(cluster)
    seconds = None
    if switch_times is not None:
        try:
            wake, sleep = map(float, switch_times.split(","))
        except ValueError:
            wake = sleep = 0.0
        if not all(0 < each < math.inf for each in (wake, sleep)):
            what = "write it as WAKE,SLEEP in seconds above 0, like 60,180"
            raise ConfigError(f"--switch-times {switch_times!r}: {what}")
        seconds = SwitchTimes(wake, sleep)
    measured = facts.name == "taurus"  # the only one
    if energy is PowerSource.OWN and not measured:
        raise ConfigError(f"{facts.name}: its power has not been measured; choose --energy taurus or --energy none")
    wanted = Wanted(
        cluster=facts,
        flops=flops.value,
        servers=hosts,
        by_core=granularity is Granularity.CORE,
        power=measured if energy is None else energy is not PowerSource.NONE,
        network=network,
        switch_times=seconds,
    )
    if wanted.switch_times and not wanted.power:
        raise ConfigError(f"--switch-times {switch_times}: hosts of {facts.name} do not sleep; add --energy taurus")
    platform = grid5000_cluster(wanted)
    path = output or Path(f"{facts.name}.xml")
    comment = f"{describe_cluster(wanted)}\nMade by decision {__version__}."
    write_platform(path, platform, comment, simgrid or BATSIM_SIMGRID)
    print_written(path, platform, as_json)
    if energy is None and not wanted.power:
        note("its power has not been measured; --energy taurus gives it that of taurus")


# ``decision platform fat-tree|torus|dragonfly|flat``: equal hosts in a network.

Radix = Annotated[int | None, Option("--radix", "-k", help="Number of ports of each switch; even.", metavar="K")]
Down = Annotated[
    str | None,
    Option(
        "--down", help="Instead of a radix: hosts on a switch, switches in a pod, pods; any levels.", metavar="N,N,N"
    ),
]
Pods = Annotated[
    int | None, Option("--pods", help="Number of pods; K by default, fewer for a pruned tree.", metavar="P")
]
Dims = Annotated[str, Option("--dims", help="Number of hosts in each dimension.", metavar="XxYxZ")]
Groups = Annotated[int, Option("--groups", help="Number of groups; at most the number of routers in a chassis.")]
Chassis = Annotated[int, Option("--chassis", help="Number of chassis in a group.")]
Routers = Annotated[int, Option("--routers", help="Number of routers in a chassis.")]
Nodes = Annotated[int, Option("--nodes", help="Number of hosts on a router.")]
Cables = Annotated[str, Option("--cables", help="Parallel links between groups, chassis and routers.", metavar="G,C,R")]
NbHosts = Annotated[int, Option("--hosts", help="Number of hosts.", metavar="N")]


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
        from decision.files.generate.platforms import full_tree

        parts = down.split(",")
        if not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise ConfigError(f"--down {down!r}: write whole numbers like 10,4,25, from the hosts up, each at least 1")
        topology = full_tree([int(part) for part in parts], read_links(links, levels=len(parts)))
        shape = {"down": down}
    else:
        from decision.files.generate.platforms import fat_tree

        if radix is None:
            raise ConfigError("a fat-tree needs a size: give --radix, or --down for one that is not k-ary")
        topology = fat_tree(radix, radix if pods is None else pods, read_links(links, levels=3))
        shape = {"radix": radix, "pods": topology.down[2]}
    write_networked(topology, "fat-tree", shape, links, simgrid, output, as_json)


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
    from decision.model.platform import Torus

    (link,) = read_links(links)
    parts = dims.split("x")
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--dims {dims!r}: write whole numbers like 4x4x4")
    topology = Torus(tuple(map(int, parts)), link)
    write_networked(topology, "torus", {"dims": dims}, links, simgrid, output, as_json)


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
    from decision.model.platform import Dragonfly

    (link,) = read_links(links)
    parts = cables.split(",")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--cables {cables!r}: write three whole numbers like 2,1,1")
    topology = Dragonfly(groups, chassis, routers, nodes, link, (int(parts[0]), int(parts[1]), int(parts[2])))
    shape = {"groups": groups, "chassis": chassis, "routers": routers, "nodes": nodes, "cables": cables}
    write_networked(topology, "dragonfly", shape, links, simgrid, output, as_json)


def flat_command(
    hosts: NbHosts,
    links: NetworkOptions,
    network: Annotated[bool, Option(help="Write links; without them messages take no time.")] = True,
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
    from decision.model.platform import Flat

    (link,) = read_links(links)
    topology = Flat(hosts, link)
    shape = {"hosts": hosts} if network else {"hosts": hosts, "network": "no"}
    write_networked(topology, "flat", shape, links, simgrid, output, as_json, network)


# ``decision platform slurm``: the tree of switches of a topology.conf.

TopologyFile = Annotated[
    Path, Argument(help="Slurm's file of switches, topology.conf.", metavar="FILE", dir_okay=False)
]


def slurm_command(
    file: TopologyFile,
    links: LevelOptions,
    simgrid: SimgridOption = None,
    output: OutputFile = Path("slurm.xml"),
    as_json: JsonOption = False,
) -> None:
    """Write the platform of a Slurm's topology.conf: its nodes, by their names, below its switches.

    The file is that of the plugin topology/tree: lines with SwitchName, and Nodes
    or Switches. Links L0 are those of nodes, L1 those up from leaf switches, and so
    on; LinkSpeed is not used, as in Slurm, and --bandwidth says how fast they are.
    Where switches hang at different heights, each link of a lower one counts once
    for every level that it spans.

    The allocations slurm-tree and tree look at these switches.

    Examples:

      decision platform slurm /etc/slurm/topology.conf -o cluster.xml

      decision compare -p cluster.xml -w log.swf --policy easy,allocation=slurm-tree \\
          --policy easy,allocation=tree --metric hops --metric wait
    """
    from decision.slurm.switches import read_switches

    found = read_switches(file)
    levels = read_links(links, levels=len(found.down))
    shape = {"file": file.name, "switches": found.switches}
    down = found.down
    from decision.model.platform import FatTree, Flat

    ones = (1,) * len(down)
    topology = Flat(down[0], levels[0]) if len(down) == 1 else FatTree(down, ones, ones, tuple(levels), pooled=True)
    write_networked(topology, "slurm", shape, links, simgrid, output, as_json, places=found.places)


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
    from decision.files import load_platform
    from decision.files.platform_check import check_platform
    from decision.files.simgrid.values import BATSIM_SIMGRID

    from .platform_tables import print_platform_findings

    findings = check_platform(platform, simgrid or BATSIM_SIMGRID, master)
    read = None if findings else load_platform(platform, master=master)
    print_platform_findings(platform, findings, read, as_json)
    if findings:
        raise click.exceptions.Exit(2)


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
    from decision.files import load_platform
    from decision.files.platform_check.structure import declared_links
    from decision.model.errors import InputError
    from decision.report.plots import require_matplotlib

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
        from decision.report.plots.platforms import draw_platform

        with drawn_for(Paper(width, type_size, dpi)):
            draw_platform(loaded, plot, platform.stem)
    links = declared_links(platform)
    if as_json:
        print_json(platform_document(loaded, links))
        return
    print_platform(loaded, links)
    if plot is not None:
        say(f"drawn in {plot}")


app = Group("platform", no_args_is_help=True, help="Make, check and show SimGrid platforms.")
add_command(app, "grid5000", grid5000_command)
add_command(app, "fat-tree", fat_tree_command)
add_command(app, "torus", torus_command)
add_command(app, "dragonfly", dragonfly_command)
add_command(app, "flat", flat_command)
add_command(app, "slurm", slurm_command)
add_command(app, "check", check_platform_command)
add_command(app, "show", show_platform_command)
