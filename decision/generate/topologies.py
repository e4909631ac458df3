"""Platforms with a network: fat-trees, tori, dragonflies and flat clusters of equal hosts.

Hosts are numbered from left to right and all numbers have as many digits, so that Batsim's order of ids, which is that
of the names' bytes, is theirs too: of 1,000 hosts that of id 7 is node-1007.
"""

from collections.abc import Mapping, Sequence

import msgspec

from decision.model.errors import ConfigError
from decision.model.platform import Platform, PowerState, SleepState
from decision.model.topology import Dragonfly, FatTree, Link, Topology, Torus

from .clusters import check_number, uniform_platform


def fat_tree(radix: int, pods: int, links: Sequence[Link]) -> FatTree:
    """A fat-tree of switches with `radix` ports: whole with as many pods, and with fewer pruned.

    Each pod has radix/2 switches L0, each of radix/2 hosts, and radix/2 switches L1, all connected; (radix/2)^2
    switches L2 connect the pods, each by one link to every pod. After Al-Fares et al., "A Scalable, Commodity Data
    Center Network Architecture"; pruned as in Lan et al. (see `decision.model.topology`).

    Args:
        radix: ports of each switch, an even number.
        pods: 1 to `radix`.
        links: from hosts to L0, from L0 to L1, from L1 to L2.

    Raises:
        ConfigError: if such a tree does not exist.
    """
    if radix < 2 or radix % 2:
        raise ConfigError(f"the radix of a fat-tree is an even number of ports, half of them up; found {radix}")
    if not 1 <= pods <= radix:
        raise ConfigError(f"switches of {radix} ports connect 1 to {radix} pods; found {pods}")
    half = radix // 2
    return FatTree((half, half, pods), (1, half, half), (1, 1, 1), tuple(links))


def full_tree(down: Sequence[int], links: Sequence[Link]) -> FatTree:
    """A fat-tree of any levels and sizes, in which each switch has as many links up as devices below it.

    Args:
        down: devices below each switch of a level, from the hosts up.
        links: of each level, from the hosts' own up.

    Raises:
        ConfigError: if such a tree does not exist.
    """
    return FatTree(tuple(down), (1, *down[:-1]), (1,) * len(down), tuple(links))


def networked(
    topology: Topology,
    pstates: tuple[PowerState, ...],
    sleep: tuple[SleepState, ...] = (),
    properties: Mapping[str, str] = {},
    places: Mapping[str, int] = {},
) -> Platform:
    """Equal hosts in a topology.

    Args:
        topology: what connects them.
        pstates: of each host.
        sleep: how each sleeps.
        properties: of each host.
        places: of the hosts by name; by default there is one at each place, whose id is its place.

    Raises:
        ConfigError: if there are more than a platform may have.
    """
    check_number(topology.nb_hosts)
    first = 10 ** len(str(topology.nb_hosts - 1))
    at = places or {f"node-{first + place}": place for place in range(topology.nb_hosts)}
    platform = uniform_platform([(name, dict(properties)) for name in at], pstates, sleep, topology)
    if not places:
        return platform
    return msgspec.structs.replace(platform, places=tuple(at[host.name] for host in platform.hosts))


def describe_topology(topology: Topology, nb_hosts: int | None = None) -> str:
    """What the topology is, and how far apart its hosts are: one sentence.

    Args:
        topology: what connects the hosts.
        nb_hosts: how many there are; by default one at each place.
    """
    hosts = f"{topology.nb_hosts:,} hosts"
    if isinstance(topology, FatTree) and nb_hosts not in (None, topology.nb_hosts):
        levels = len(topology.down)
        return f"A tree of switches in {levels} levels with {nb_hosts:,} hosts: 2 to {2 * levels} hops."
    match topology:
        case FatTree(down=(of_switch, switches, pods)):
            return (
                f"A fat-tree of {hosts} in {pods} pods of {switches} switches of {of_switch}: "
                "2 hops within a switch, 4 within a pod, 6 across."
            )
        case FatTree(down=down):
            return f"A fat-tree of {hosts} in {len(down)} levels: 2 to {2 * len(down)} hops."
        case Torus(dims=dims):
            return f"A torus of {hosts}, {' x '.join(map(str, dims))}: at most {sum(dim // 2 for dim in dims)} hops."
        case Dragonfly(groups=groups, chassis=chassis, routers=routers, nodes=nodes):
            return (
                f"A dragonfly of {hosts} in {groups} groups of {chassis} chassis of {routers} routers of {nodes}: "
                "2 hops within a router, at most 4 within a group and 7 across."
            )
    return f"A flat cluster of {hosts} around one switch: {topology.distance(0, 1)} hops."
