"""The zones of a platform's network, as SimGrid's platform files have them: a <cluster>, a star, a tree of zones.

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

import math
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import msgspec

from decision.model.topology import Dragonfly, FatTree, Flat, Link, Topology, Torus

from .values import (
    format_bandwidth,
    format_latency,
    format_topology,
    links_of,
    parse_bandwidth,
    parse_latency,
    topology_of_cluster,
    zone_properties,
)
from .xml_nodes import XmlNode

Lines = Iterable[str]
_NETWORK = "network"  # the zone of the hosts


class HeadHost(msgspec.Struct, frozen=True):
    """Batsim's own host, in a zone next to that of the others; the link between the two takes no time."""

    name: str
    lines: Lines  # its <host>


class StarHost(msgspec.Struct, frozen=True):
    """A host around a switch."""

    name: str
    lines: Lines  # its <host>
    link: str  # the name of its link; hosts may share one


class EqualHosts(msgspec.Struct, frozen=True):
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
        return _element("cluster", attributes | shape, prop_lines(self.properties))


class PlacedHosts(msgspec.Struct, frozen=True):
    """Any hosts of a tree, in which places may be empty."""

    places: list[int]  # ascending
    hosts: list[StarHost]  # one for each of them

    def are_within(self, begin: int, end: int) -> bool:
        """Whether there is a host at one of these places."""
        return bisect_left(self.places, begin) < bisect_left(self.places, end)

    def cluster(self, name: str, topology: Flat, begin: int = 0) -> Iterator[str]:
        """The zone of the hosts around a switch whose first place is `begin`."""
        first, after = (bisect_left(self.places, place) for place in (begin, begin + topology.nb_hosts))
        return _star(name, topology, self.hosts[first:after])


def cluster_zone(
    topology: FatTree | Torus | Dragonfly, members: EqualHosts | PlacedHosts, head: HeadHost, old: bool
) -> Iterator[str]:
    """The lines of a zone of equal hosts, and of Batsim's own; `old` SimGrid is that before 3.28."""
    link = links_of(topology)[0]
    if isinstance(topology, FatTree) and (old or topology.pooled):
        return _beside(_Tree(topology, members).zone(), _router(_NETWORK), link, head)
    assert isinstance(members, EqualHosts)  # others are of a pooled tree
    return _beside(members.cluster(_NETWORK, topology), members.name(0), link, head)


def star_zone(topology: Flat, hosts: Iterable[StarHost], head: HeadHost) -> Iterator[str]:
    """The lines of a zone of any hosts around one switch, and of Batsim's own."""
    zone = _star(_NETWORK, topology, list(hosts), prop_lines(zone_properties(topology)))
    return _beside(zone, _router(_NETWORK), topology.link, head)


def _star(name: str, topology: Flat, leaves: Sequence[StarHost], properties: Lines = ()) -> Iterator[str]:
    network = [
        *properties,
        *(line for leaf in leaves for line in leaf.lines),
        *(line for link in dict.fromkeys(leaf.link for leaf in leaves) for line in _link(link, topology.link)),
        *(_element("backbone", {"id": "backbone", **_rate(topology.backbone)}) if topology.backbone else ()),
        *(line for leaf in leaves for line in _host_link(leaf)),
        *_element("router", {"id": _router(name)}),
    ]
    return _element("zone", {"id": name, "routing": "Cluster"}, network)


def _beside(network: Lines, gateway: str, link: Link, head: HeadHost) -> Iterator[str]:
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

    def __init__(self, topology: FatTree, members: EqualHosts | PlacedHosts) -> None:
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
        return _zone(
            name,
            *(self._properties() if level == self.top else ()),
            *(line for part in parts for line in self._subtree(level - 1, part)),
            *_zone(_top(name), *_element("router", {"id": _router(name)})),
            *(line for part in parts for line in _link(_up(self._name(level - 1, part)), self._uplink(level - 1))),
            *self._routes(name, [self._name(level - 1, part) for part in parts]),
        )

    def _properties(self) -> Iterator[str]:
        places = self.members.places if isinstance(self.members, PlacedHosts) else ()
        return prop_lines(zone_properties(self.topology, places))

    def _name(self, level: int, number: int) -> str:
        return _NETWORK if level == self.top else f"level{level}-{number}"

    def _uplink(self, level: int) -> Link:
        """All cables from a subtree of this level to the level above, as one."""
        link = self.topology.links[level]
        cables = prod(self.topology.up[: level + 1]) * self.topology.cables[level]
        return Link(link.bandwidth * cables, link.latency)

    def _routes(self, name: str, parts: list[str]) -> Iterator[str]:
        for part in parts:
            yield from _route(part, _router(part), _top(name), _router(name), {_up(part): "UP"})
        for part, other in combinations(parts, 2):
            yield from _route(part, _router(part), other, _router(other), {_up(part): "UP", _up(other): "DOWN"})


def _router(zone: str) -> str:
    return f"{zone}_router"


def _top(zone: str) -> str:
    return f"{zone}_top"


def _up(zone: str) -> str:
    return f"{zone}_up"


def _host_link(leaf: StarHost) -> Iterator[str]:
    return _element("host_link", {"id": leaf.name, "up": f"{leaf.link}_UP", "down": f"{leaf.link}_DOWN"})


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


def prop_lines(properties: Mapping[str, str]) -> Iterator[str]:
    """A <prop> for each property."""
    return (line for key, value in properties.items() for line in _element("prop", {"id": key, "value": value}))


def _element(tag: str, attributes: Mapping[str, str], children: Lines = ()) -> Iterator[str]:
    start = f"<{tag}" + "".join(f" {key}={quoted_text(value)}" for key, value in attributes.items())
    lines = [f"  {line}" for line in children]
    if not lines:
        yield f"{start}/>"
        return
    yield f"{start}>"
    yield from lines
    yield f"</{tag}>"


def quoted_text(text: str) -> str:
    """An attribute's value."""
    from xml.sax.saxutils import quoteattr  # with HTTP and all, a hundredth of a second that readers need not wait

    return quoteattr(text)


# How each kind of zone in a platform file routes from one of its points to another, as in SimGrid 3.32.

ZONES = ("zone", "AS")


class RouteLink(NamedTuple):
    """A link in one direction."""

    name: str  # empty where it is only latency
    bandwidth: float  # bytes/s
    latency: float  # seconds
    is_shared: bool = True  # whether a route that takes it twice has half of its bandwidth


RouteLinks = tuple[RouteLink, ...]
Ways = Callable[[str, str], RouteLinks]  # all links between two points, in whatever zones
_LOOPBACK = (RouteLink("__loopback__", 10e9, 0.0, False),)  # SimGrid's own, from a host to itself


class RoutePart(NamedTuple):
    """A route within one zone: its links, and between two zones their gateways."""

    wires: RouteLinks = ()
    gw_src: str = ""
    gw_dst: str = ""


class RoutedZone:
    """A zone or a cluster, and the routes within it."""

    def __init__(self, node: XmlNode, parent: "RoutedZone | None") -> None:
        self.name = node.attributes.get("id", "")
        self.chain: tuple[RoutedZone, ...] = (self, *(parent.chain if parent else ()))
        self.has_zones = any(child.tag in (*ZONES, "cluster") for child in node.children)
        self.routes: dict[tuple[str, str], RoutePart] = {}
        self.bypasses: dict[tuple[str, str], RoutePart] = {}

    def local(self, between: Ways, src: str, dst: str) -> RoutePart:
        """The route from one point or zone of this zone to another."""
        own = RoutePart(() if self.has_zones else _LOOPBACK) if src == dst else RoutePart()
        return self.routes.get((src, dst), own)


class SearchedZone(RoutedZone):
    """Routes are put together of others, as few links as possible."""

    def __init__(self, node: XmlNode, parent: RoutedZone | None) -> None:
        super().__init__(node, parent)
        self.steps: dict[str, dict[str, str]] = {}  # by destination: where each point goes next

    def local(self, between: Ways, src: str, dst: str) -> RoutePart:
        if src == dst:
            return super().local(between, src, dst)
        steps = self.steps.get(dst) or self.steps.setdefault(dst, self._steps_to(dst))
        wires: RouteLinks = ()
        first = last = None
        while src != dst and src in steps:
            part = self.routes[src, steps[src]]
            if last is not None and last.gw_dst != part.gw_src:
                wires += between(last.gw_dst, part.gw_src)
            wires += part.wires
            first, last, src = first or part, part, steps[src]
        return RoutePart(wires, first.gw_src, last.gw_dst) if first and last else RoutePart()

    def _steps_to(self, dst: str) -> dict[str, str]:
        into = defaultdict(list)
        for (src, end), part in self.routes.items():
            into[end].append((src, len(part.wires)))
        cost, steps, waiting = {dst: 0}, dict[str, str](), deque([dst])
        while waiting:
            here = waiting.popleft()
            for src, links in into[here]:
                if cost[here] + links < cost.get(src, math.inf):
                    cost[src], steps[src] = cost[here] + links, here
                    waiting.append(src)
        return steps


class StarZone(RoutedZone):
    """Each point has its own way up and down; coordinates (milliseconds) add latency."""

    def __init__(self, node: XmlNode, parent: RoutedZone | None) -> None:
        super().__init__(node, parent)
        self.up: dict[str, RouteLinks] = {}
        self.down: dict[str, RouteLinks] = {}
        self.loopback: dict[str, RouteLinks] = {}
        self.coordinates: dict[str, tuple[float, ...]] = {}

    def local(self, between: Ways, src: str, dst: str) -> RoutePart:
        if src == dst and src in self.loopback:
            return RoutePart(self.loopback[src])
        wires = tuple(dict.fromkeys((*self.up.get(src, ()), *self.down.get(dst, ()))))
        a, b = self.coordinates.get(src, ()), self.coordinates.get(dst, ())
        if len(a) == len(b) == 3:
            apart = math.hypot(a[0] - b[0], a[1] - b[1]) + abs(a[2]) + abs(b[2])
            wires += (RouteLink("", math.inf, apart / 1000.0),)
        return RoutePart(wires, f"router_{src}", f"router_{dst}") if self.has_zones else RoutePart(wires)


class SwitchedZone(RoutedZone):
    """A cluster whose hosts are connected by a fat-tree, a torus or a dragonfly."""

    def __init__(self, node: XmlNode, parent: RoutedZone | None, hosts: Sequence[str]) -> None:
        super().__init__(node, parent)
        self.topology = topology_of_cluster(node.attributes, len(hosts))
        self.place = {name: place for place, name in enumerate(hosts)}
        self.link = RouteLink("", parse_bandwidth(node.attributes["bw"]), parse_latency(node.attributes["lat"]))
        self.loopback, self.limiter = cluster_extras(node)

    def local(self, between: Ways, src: str, dst: str) -> RoutePart:
        if src not in self.place or dst not in self.place:
            return RoutePart()
        if src == dst and self.loopback:
            return RoutePart(self.loopback)
        hops = _hops(self.topology, self.place[src], self.place[dst])
        wires = tuple(self.link._replace(name=f"{self.name} {hop}") for hop in range(hops))
        return RoutePart(wires + self.limiter if hops else ())


def _hops(topology: Topology, a: int, b: int) -> int:
    """Links on SimGrid's route: the shortest, but for a host's to itself and for some in a dragonfly."""
    if isinstance(topology, FatTree) and a == b:
        return 2
    if not isinstance(topology, Dragonfly):
        return int(topology.distance(a, b))
    chassis_hosts = topology.routers * topology.nodes
    group, to_group = a // topology.hosts_per_group, b // topology.hosts_per_group
    chassis, to_chassis = (place // chassis_hosts % topology.chassis for place in (a, b))
    router, to_router = (place // topology.nodes % topology.routers for place in (a, b))
    hops = 2
    if group != to_group:
        hops += (router != to_group) + (chassis != 0) + 1
        router, chassis = group, 0
    if router != to_router:
        hops, chassis = hops + 1, 0  # SimGrid goes on from the group's first chassis
    return hops + (chassis != to_chassis)


def cluster_extras(node: XmlNode) -> tuple[RouteLinks, RouteLinks]:
    """A cluster's loopback and limiter, where it has them."""
    attributes = node.attributes
    loopback: RouteLinks = ()
    limiter: RouteLinks = ()
    if "loopback_bw" in attributes:
        latency = parse_latency(attributes.get("loopback_lat", "0s"))
        loopback = (RouteLink("loopback", parse_bandwidth(attributes["loopback_bw"]), latency, False),)
    if "limiter_link" in attributes:
        limiter = (RouteLink("limiter", parse_bandwidth(attributes["limiter_link"]), 0.0, False),)
    return loopback, limiter
