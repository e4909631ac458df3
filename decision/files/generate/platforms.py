"""Clusters of equal hosts, with the power states of a measured Grid'5000 server or simpler ones."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import NamedTuple

import msgspec

from decision.model.errors import ConfigError
from decision.model.platform import (
    MAX_HOSTS,
    Dragonfly,
    FatTree,
    Flat,
    Host,
    Link,
    Platform,
    PowerState,
    SleepState,
    Topology,
    Torus,
)

from .grid5000 import CLUSTERS, ETHERNET_LATENCY, Grid5000Cluster

_TAURUS = CLUSTERS["taurus"]
TAURUS_SPEED = _TAURUS.cores * _TAURUS.core_speed("measured")  # flop/s: a host of 12 cores, seen as one resource

# Taurus (Grid'5000 Lyon, Dell R720, 2 x Xeon E5-2630): watts of a computing server at each frequency with its speed
# relative to the first, the idle power, and what falling asleep and waking up take: the measurements published
# with Batsim's energy platforms.
_TAURUS_FREQUENCIES = (
    (1.0000, 190.738),
    (0.8896, 171.02),
    (0.8368, 165.62),
    (0.8057, 160.47),
    (0.7622, 155.729),
    (0.7249, 151.3),
    (0.6878, 146.92),
    (0.6468, 142.95),
    (0.6078, 138.928),
    (0.5863, 135.368),
    (0.5009, 132.519),
    (0.4921, 128.87),
    (0.4498, 125.88),
)
_IDLE_WATTS = 95.0
_SLEEP_WATTS = 9.75
_OFF_SECONDS, _OFF_WATTS = 6.1, 100.997
_ON_SECONDS, _ON_WATTS = 151.52, 125.174
_SLEEP_SPEED = 1e-3  # flop/s; nothing is computed asleep, but SimGrid wants a speed


class SwitchTimes(NamedTuple):
    """How long a server takes to switch."""

    wake: float  # seconds
    sleep: float  # seconds


_MEASURED = SwitchTimes(wake=_ON_SECONDS, sleep=_OFF_SECONDS)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of Grid'5000, and what is wanted of it."""

    cluster: Grid5000Cluster
    flops: str = "measured"  # which speed a core has; or "theoretical"
    servers: int | None = None  # without regard to how many there were; all that there were if absent
    by_core: bool = False  # one host per core, not per server
    power: bool = False  # with the power and sleep states of a server of taurus, the only one measured in all of them
    network: bool = False  # with links
    switch_times: SwitchTimes | None = None  # in place of those of taurus

    @property
    def nb_servers(self) -> int:
        """How many servers there will be."""
        return self.servers or self.cluster.nodes


def grid5000_cluster(wanted: Wanted) -> Platform:
    """Servers like those of a cluster of Grid'5000.

    By core, each host has the property `server` that names its server, and draws its share of the server's watts: the
    sum is the server's when all its cores do the same. They are one machine: a policy that switches one of them
    should switch all of them at once.

    Raises:
        ConfigError: if the speed was not measured, or there are more hosts than `MAX_HOSTS`.
    """
    cores = wanted.cluster.cores
    share = cores if wanted.by_core else 1  # hosts that a server is made of
    check_number(wanted.nb_servers * share)
    speed = wanted.cluster.core_speed(wanted.flops) * cores / share
    times = wanted.switch_times or _MEASURED
    pstates, sleep, off = taurus_power(speed, share, times) if wanted.power else ((PowerState(speed),), (), {})
    servers = [f"{wanted.cluster.name}-{number}" for number in range(1, wanted.nb_servers + 1)]
    hosts = [(server, dict(off)) for server in servers]
    if wanted.by_core:  # names sort in the order of cores
        hosts = [(f"{name}-core-{core:02d}", {**off, "server": name}) for name in servers for core in range(cores)]
    topology = Flat(len(hosts), Link(wanted.cluster.ethernet / 8, ETHERNET_LATENCY)) if wanted.network else None
    return uniform_platform(hosts, pstates, sleep, topology)


def describe_cluster(wanted: Wanted) -> str:
    """What `grid5000_cluster` makes, with the source of every figure: several lines."""
    cluster, number = wanted.cluster, wanted.nb_servers
    there_were = "" if number == cluster.nodes else f" (there were {cluster.nodes})"
    host = "core" if wanted.by_core else "server"
    lines = [
        f"{cluster.name} (Grid'5000, {cluster.site}, {cluster.year}): {number} servers{there_were} of {cluster.cores} "
        f"cores ({cluster.cpus} x {cluster.cpu}), {cluster.network}; one host per {host}.",
        f"Speed: {cluster.core_speed(wanted.flops) / 1e9:g} Gflop/s per core ({cluster.speed_source(wanted.flops)}).",
    ]
    if cluster.note:
        lines.append(f"Note: {cluster.note}.")
    if wanted.by_core:
        lines.append("The property 'server' groups the cores of a server: they are one machine and switch together.")
    if wanted.power:
        source, times = "as measured and published with Batsim's energy platforms", wanted.switch_times or _MEASURED
        if cluster is not _TAURUS:
            source = f"those of a server of taurus, {source}; none of {cluster.name} are known"
        lines += [
            f"Power at 13 frequencies, asleep, and while switching: {source}.",
            "A pstate's power is idle : epsilon : computing. Pstate 13 sleeps; "
            f"14 (off, {times.sleep:g} s) and 15 (on, {times.wake:g} s) only model the switches.",
        ]
        if wanted.switch_times:
            measured = f"measured are {_OFF_SECONDS:g} s (off) and {_ON_SECONDS:g} s"
            lines.append(f"How long switches take was chosen; {measured}.")
        if wanted.by_core:
            lines.append(f"A core draws 1/{cluster.cores} of what its server draws.")
    lines.append(
        f"Network: a link of {cluster.ethernet / 1e9:g} Gbit/s each way from each server to one switch that never "
        "saturates; the latency is that of SimGrid's description of Grid'5000 (g5k.xml)."
        if wanted.network
        else "No network: messages take no time."
    )
    return "\n".join(fill(line, 110) for line in lines)


def taurus_power(
    speed: float, share: int, times: SwitchTimes = _MEASURED
) -> tuple[tuple[PowerState, ...], tuple[SleepState, ...], dict[str, str]]:
    """Pstates, sleep states and further properties of a host that is one of `share` equal parts of a server."""

    def watts(of_server: float) -> float:
        return of_server if share == 1 else round(of_server / share, 6)

    idle, asleep = watts(_IDLE_WATTS), watts(_SLEEP_WATTS)
    computing = [
        PowerState(speed if relative == 1 else round(speed * relative, -7), idle, idle, watts(full))
        for relative, full in _TAURUS_FREQUENCIES
    ]
    sleep = len(computing)
    pstates = (
        *computing,
        _constant(_SLEEP_SPEED, asleep),
        _constant(1 / times.sleep, watts(_OFF_WATTS)),
        _constant(1 / times.wake, watts(_ON_WATTS)),
    )
    return pstates, (SleepState(sleep, sleep + 1, sleep + 2),), {"wattage_off": f"{asleep}"}


def simple_cluster(nb_hosts: int) -> Platform:
    """Hosts with one pstate, taurus at full speed, that draw 95 W idle and 190.738 W computing, and never sleep."""
    state = PowerState(TAURUS_SPEED, _IDLE_WATTS, _IDLE_WATTS, _TAURUS_FREQUENCIES[0][1])
    return uniform_platform([(f"node-{number:03d}", {}) for number in range(nb_hosts)], (state,))


def check_number(nb_hosts: int) -> None:
    """Refuse more hosts than `MAX_HOSTS`. Raises ConfigError."""
    if nb_hosts > MAX_HOSTS:
        raise ConfigError(f"{nb_hosts:,} hosts are more than the {MAX_HOSTS:,} that a platform may have")


def _constant(speed: float, watts: float) -> PowerState:
    return PowerState(speed, watts, watts, watts)


def uniform_platform(
    hosts: list[tuple[str, dict[str, str]]],
    pstates: tuple[PowerState, ...],
    sleep: tuple[SleepState, ...] = (),
    topology: Topology | None = None,
) -> Platform:
    """Equal hosts in Batsim's order of ids, from their names and properties."""
    has_power = any(state.full for state in pstates)
    ordered = sorted(hosts, key=lambda host: host[0].encode())
    return Platform(
        hosts=tuple(
            Host(id=number, name=name, pstates=pstates, sleep=sleep, has_power=has_power, properties=properties)
            for number, (name, properties) in enumerate(ordered)
        ),
        topology=topology,
    )


# Platforms with a network: fat-trees, tori, dragonflies and flat clusters of equal hosts.
#
# Hosts are numbered from left to right and all numbers have as many digits, so that Batsim's order of ids, which is
# that of the names' bytes, is theirs too: of 1,000 hosts that of id 7 is node-1007.


def fat_tree(radix: int, pods: int, links: Sequence[Link]) -> FatTree:
    """A fat-tree of switches with `radix` ports: whole with as many pods, and with fewer pruned.

    Each pod has radix/2 switches L0, each of radix/2 hosts, and radix/2 switches L1, all connected; (radix/2)^2
    switches L2 connect the pods, each by one link to every pod. After Al-Fares et al., "A Scalable, Commodity Data
    Center Network Architecture"; pruned as in Lan et al. (see `decision.model.platform`).

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
