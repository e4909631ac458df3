"""SimGrid's platform files, written: hosts with power and sleep states, in the zones of their network.

Design
------
A topology that SimGrid knows is one <cluster>: it loads fastest (1,000 hosts in 0.03 s, 3,456 in 0.3 s), and a fat-tree
routes over every cable as real switches do (destination modulo k). Such a cluster has no router that another zone could
enter by, except where it is flat; its first host is the gateway instead. So Batsim's own messages take as long as from
that host.

A fat-tree whose levels have different links is not such a cluster; nor, before SimGrid 3.28, is one whose hosts are not
numbered from 0, as ours never are because names must sort by number. It becomes zones in zones, down to a flat cluster
for each switch: within a zone routes go from any part to any other, and up by a router. All cables from a subtree up
are then one link of their summed bandwidth, as if traffic spread evenly over them. So does a tree in which places are
empty, or whose hosts have names of their own: the tree of a Slurm's topology.conf.

Rejected: routers joined by Floyd's or Dijkstra's routing, which send all traffic of a pod over the same core switch
(Floyd's takes 2.2 s for 1,024 hosts, too, and grows with the cube of devices), and a route for each pair of hosts.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from pathlib import Path
from textwrap import indent

import msgspec
import numpy as np

from decision.files.text import write_files
from decision.model.errors import ConfigError
from decision.model.platform import Dragonfly, FatTree, Flat, Host, Link, Platform, PowerState, Topology, Torus

from .values import (
    BATSIM_SIMGRID,
    DOCTYPE,
    FIRST_WITHOUT_OLD_NAMES,
    PLATFORM_FORMAT,
    SLEEP_PSTATES,
    WATTAGE,
    WATTAGE_OFF,
    format_bandwidth,
    format_latency,
    format_sleep_states,
    format_speed,
    format_topology,
    format_wattage,
    links_of,
    simgrid_version,
    zone_properties,
)

_Lines = Iterable[str]
_NETWORK = "network"  # the zone of the hosts


def write_platform(
    path: str | os.PathLike[str], platform: Platform, comment: str = "", simgrid: str = BATSIM_SIMGRID
) -> None:
    """Write a platform with the network that its topology says; where that is unknown, messages take no time.

    Around the switch of a flat network each host has a link of its own; but hosts with the same `server` property are
    cores of one server and share its link, also for messages among them.

    Args:
        path: the XML file.
        platform: its hosts' power and sleep states become properties; their zone properties are not written.
        comment: where the platform comes from.
        simgrid: the version of SimGrid that will read the file.

    Raises:
        ConfigError: if the file cannot be written, the version is unknown, or the hosts of a network that is not flat
            are not equal or not numbered.
    """
    old = simgrid_version(simgrid) < FIRST_WITHOUT_OLD_NAMES
    lines = [
        "<?xml version='1.0'?>",
        f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">',
        f'<platform version="{PLATFORM_FORMAT}">',
    ]
    if comment:
        lines.append(f"  <!--\n{indent(comment.replace('--', '- -'), '  ')}\n  -->")
    head = _HeadHost(platform.master, _host_lines(_master(platform), "", old))
    zone: _Lines
    if platform.topology is None:  # all hosts at one place of a Vivaldi zone: they reach one another at once
        hosts = (_master(platform), *platform.hosts, *platform.storage)
        placed = (f"  {line}" for host in hosts for line in _host_lines(host, ' coordinates="0 0 0"', old))
        zone = ['<zone id="AS0" routing="Vivaldi">', *placed, "</zone>"]
    elif isinstance(platform.topology, Flat):
        zone = _star_zone(platform.topology, _star_hosts(platform, old), head)
    else:
        zone = _cluster_zone(platform.topology, _members(platform, platform.topology, old), head, old)
    lines += (f"  {line}" for line in zone)
    lines += ["</platform>", ""]
    write_files({Path(path): ["\n".join(lines).encode()]})


# --- The hosts of a zone ---


class _HeadHost(msgspec.Struct, frozen=True):
    """Batsim's own host, in a zone next to that of the others; the link between the two takes no time."""

    name: str
    lines: _Lines  # its <host>


class _StarHost(msgspec.Struct, frozen=True):
    """A host around a switch."""

    name: str
    lines: _Lines  # its <host>
    link: str  # the name of its link; hosts may share one


class _EqualHosts(msgspec.Struct, frozen=True):
    """Equal hosts, numbered from left to right: ``node-1000``, ``node-1001``, ..."""

    prefix: str
    first: int
    suffix: str
    speed: str  # as SimGrid writes it
    properties: Mapping[str, str]

    def name(self, place: int) -> str:
        """The host at a place."""
        return f"{self.prefix}{self.first + place}{self.suffix}"

    def are_within(self, begin: int, end: int) -> bool:
        """Whether there is a host at one of these places."""
        return begin < end

    def cluster(self, name: str, topology: Topology, begin: int = 0) -> Iterator[str]:
        """The <cluster> of these hosts, from the one of place `begin` on, in a topology that SimGrid knows."""
        kind, parameters = format_topology(topology)
        link = links_of(topology)[0]
        attributes = {
            "id": name,
            "prefix": self.prefix,
            "radical": f"{self.first + begin}-{self.first + begin + topology.nb_hosts - 1}",
            "suffix": self.suffix,
            "speed": self.speed,
            "bw": format_bandwidth(link.bandwidth),
            "lat": format_latency(link.latency),
            "sharing_policy": "SPLITDUPLEX",
        }
        shape = {"router_id": _router(name)} if kind == "FLAT" else {"topology": kind, "topo_parameters": parameters}
        return _element("cluster", attributes | shape, _prop_lines(self.properties))


class _PlacedHosts(msgspec.Struct, frozen=True):
    """Any hosts of a tree, in which places may be empty."""

    places: list[int]  # ascending
    hosts: list[_StarHost]  # one for each of them

    def are_within(self, begin: int, end: int) -> bool:
        """Whether there is a host at one of these places."""
        return bisect_left(self.places, begin) < bisect_left(self.places, end)

    def cluster(self, name: str, topology: Flat, begin: int = 0) -> Iterator[str]:
        """The zone of the hosts around a switch whose first place is `begin`."""
        first, after = (bisect_left(self.places, place) for place in (begin, begin + topology.nb_hosts))
        return _star(name, topology, self.hosts[first:after])


# --- A platform as hosts in zones ---


def _star_hosts(platform: Platform, old: bool) -> Iterator[_StarHost]:
    """The hosts of a flat network, with the links of their servers."""
    for host in platform.hosts + platform.storage:
        server = host.properties.get("server", host.name)
        yield _StarHost(host.name, _host_lines(host, "", old), f"{server}_link")


def _members(platform: Platform, topology: FatTree | Torus | Dragonfly, old: bool) -> _EqualHosts | _PlacedHosts:
    """The hosts as one <cluster> has them; where they are not so, as a tree of zones does.

    Raises:
        ConfigError: if they are not equal, or not numbered from left to right, and what connects them is one <cluster>.
    """
    places = platform.places or tuple(range(len(platform.hosts)))
    order = np.argsort(places)
    whole = len(order) == topology.nb_hosts and not platform.storage
    if whole and (members := _equal_hosts([platform.hosts[i] for i in order], old)):
        return members
    if isinstance(topology, FatTree) and topology.pooled and not platform.storage:
        around = list(_star_hosts(platform, old))
        return _PlacedHosts([places[i] for i in order], [around[i] for i in order])
    raise ConfigError(
        f"a {type(topology).__name__} is written as one <cluster>: its hosts must be equal, start in pstate 0 "
        "and have consecutive numbers in their names"
    )


def _equal_hosts(hosts: Sequence[Host], old: bool) -> _EqualHosts | None:
    """Hosts in the order of their places, if they are equal, start in pstate 0 and are numbered so."""
    first, name = hosts[0], re.fullmatch(r"(.*?)(0|[1-9]\d*)(\D*)", hosts[0].name)
    if not name or any(host.initial_pstate or host.pstates != first.pstates for host in hosts):
        return None
    members = _EqualHosts(name[1], int(name[2]), name[3], _speeds(first), _written_properties(first, old))
    fits = (
        host.name == members.name(place) and _written_properties(host, old) == members.properties
        for place, host in enumerate(hosts)
    )
    return members if all(fits) else None


def _master(platform: Platform) -> Host:
    """Batsim's own host; where others have power it draws none, for SimGrid warns about hosts without."""
    has_power = any(host.has_power for host in platform.hosts)
    return Host(id=-1, name=platform.master, pstates=(PowerState(1e9),), has_power=has_power)


def _host_lines(host: Host, place: str, old: bool) -> list[str]:
    start = f'<host id={_quoted_text(host.name)}{place} speed="{_speeds(host)}" pstate="{host.initial_pstate}"'
    properties = _written_properties(host, old)
    if not properties:
        return [f"{start}/>"]
    return [f"{start}>", *(f"  {line}" for line in _prop_lines(properties)), "</host>"]


def _speeds(host: Host) -> str:
    return ", ".join(format_speed(pstate.speed) for pstate in host.pstates)


def _written_properties(host: Host, old: bool) -> dict[str, str]:
    """The host's properties, with power under the names of the SimGrid that will read it."""
    properties = {}
    for key, value in host.properties.items():
        if key not in (*WATTAGE, SLEEP_PSTATES) and (key, value) != ("role", ""):
            properties[WATTAGE_OFF[old] if key in WATTAGE_OFF else key] = value
    if host.has_power:
        properties[WATTAGE[old]] = format_wattage(host.pstates, old)
    if host.sleep:
        properties[SLEEP_PSTATES] = format_sleep_states(host.sleep)
    return properties


# --- The zones of a network: a <cluster>, a star, a tree of zones ---


def _cluster_zone(
    topology: FatTree | Torus | Dragonfly, members: _EqualHosts | _PlacedHosts, head: _HeadHost, old: bool
) -> Iterator[str]:
    """The lines of a zone of equal hosts, and of Batsim's own; `old` SimGrid is that before 3.28."""
    link = links_of(topology)[0]
    if isinstance(topology, FatTree) and (old or topology.pooled):
        return _beside(_Tree(topology, members).zone(), _router(_NETWORK), link, head)
    assert isinstance(members, _EqualHosts)  # others are of a pooled tree
    return _beside(members.cluster(_NETWORK, topology), members.name(0), link, head)


def _star_zone(topology: Flat, hosts: Iterable[_StarHost], head: _HeadHost) -> Iterator[str]:
    """The lines of a zone of any hosts around one switch, and of Batsim's own."""
    zone = _star(_NETWORK, topology, list(hosts), _prop_lines(zone_properties(topology)))
    return _beside(zone, _router(_NETWORK), topology.link, head)


def _star(name: str, topology: Flat, leaves: Sequence[_StarHost], properties: _Lines = ()) -> Iterator[str]:
    network = [
        *properties,
        *(line for leaf in leaves for line in leaf.lines),
        *(line for link in dict.fromkeys(leaf.link for leaf in leaves) for line in _link(link, topology.link)),
        *(_element("backbone", {"id": "backbone", **_rate(topology.backbone)}) if topology.backbone else ()),
        *(
            line
            for leaf in leaves
            for line in _element("host_link", {"id": leaf.name, "up": f"{leaf.link}_UP", "down": f"{leaf.link}_DOWN"})
        ),
        *_element("router", {"id": _router(name)}),
    ]
    return _element("zone", {"id": name, "routing": "Cluster"}, network)


def _beside(network: _Lines, gateway: str, link: Link, head: _HeadHost) -> Iterator[str]:
    between = Link(link.bandwidth, 0.0)
    return _zone(
        "AS0",
        *network,
        *_zone("head", *head.lines),
        *_link("head_link", between, "FATPIPE"),
        *_route("head", head.name, _NETWORK, gateway, {"head_link": "NONE"}),
    )


class _Tree:
    """A fat-tree as zones in zones; the subtrees of a level are numbered from left to right, hosts being of level 0."""

    def __init__(self, topology: FatTree, members: _EqualHosts | _PlacedHosts) -> None:
        self.topology = topology
        self.members = members
        self.top = len(topology.down)

    def zone(self) -> Iterator[str]:
        return self._subtree(self.top, 0)

    def _subtree(self, level: int, number: int) -> Iterator[str]:
        below = self.topology.down[level - 1]
        name = self._name(level, number)
        if level == 1:
            switch = Flat(below, self._uplink(0))
            return self.members.cluster(name, switch, number * below)
        width = prod(self.topology.down[: level - 1])  # places below a part
        parts = [
            part
            for part in range(number * below, (number + 1) * below)
            if self.members.are_within(part * width, (part + 1) * width)
        ]
        names = [self._name(level - 1, part) for part in parts]
        routes = [_route(part, _router(part), _top(name), _router(name), {_up(part): "UP"}) for part in names]
        for part_name, other in combinations(names, 2):
            links = {_up(part_name): "UP", _up(other): "DOWN"}
            routes.append(_route(part_name, _router(part_name), other, _router(other), links))
        places = self.members.places if isinstance(self.members, _PlacedHosts) else ()
        return _zone(
            name,
            *(_prop_lines(zone_properties(self.topology, places)) if level == self.top else ()),
            *(line for part in parts for line in self._subtree(level - 1, part)),
            *_zone(_top(name), *_element("router", {"id": _router(name)})),
            *(line for below_name in names for line in _link(_up(below_name), self._uplink(level - 1))),
            *(line for route in routes for line in route),
        )

    def _name(self, level: int, number: int) -> str:
        return _NETWORK if level == self.top else f"level{level}-{number}"

    def _uplink(self, level: int) -> Link:
        """All cables from a subtree of this level to the level above, as one."""
        link = self.topology.links[level]
        cables = prod(self.topology.up[: level + 1]) * self.topology.cables[level]
        return Link(link.bandwidth * cables, link.latency)


def _router(zone: str) -> str:
    return f"{zone}_router"


def _top(zone: str) -> str:
    return f"{zone}_top"


def _up(zone: str) -> str:
    return f"{zone}_up"


def _zone(name: str, *children: str) -> Iterator[str]:
    return _element("zone", {"id": name, "routing": "Full"}, children)


def _link(name: str, link: Link, policy: str = "SPLITDUPLEX") -> Iterator[str]:
    return _element("link", {"id": name, **_rate(link), "sharing_policy": policy})


def _rate(link: Link) -> dict[str, str]:
    return {"bandwidth": format_bandwidth(link.bandwidth), "latency": format_latency(link.latency)}


def _route(src: str, gw_src: str, dst: str, gw_dst: str, links: Mapping[str, str]) -> Iterator[str]:
    """A route in both directions over links, each with the direction in which it is taken."""
    through = [
        line
        for name, way in links.items()
        for line in _element("link_ctn", {"id": name} | ({"direction": way} if way != "NONE" else {}))
    ]
    return _element("zoneRoute", {"src": src, "dst": dst, "gw_src": gw_src, "gw_dst": gw_dst}, through)


def _prop_lines(properties: Mapping[str, str]) -> Iterator[str]:
    """A <prop> for each property."""
    return (line for key, value in properties.items() for line in _element("prop", {"id": key, "value": value}))


def _element(tag: str, attributes: Mapping[str, str], children: _Lines = ()) -> Iterator[str]:
    start = f"<{tag}" + "".join(f" {key}={_quoted_text(value)}" for key, value in attributes.items())
    lines = [f"  {line}" for line in children]
    if not lines:
        yield f"{start}/>"
        return
    yield f"{start}>"
    yield from lines
    yield f"</{tag}>"


def _quoted_text(text: str) -> str:
    """A text as the value of an attribute, in quotes and with entities for what XML forbids."""
    from xml.sax.saxutils import quoteattr  # with HTTP and all, a hundredth of a second that readers need not wait

    return quoteattr(text)
