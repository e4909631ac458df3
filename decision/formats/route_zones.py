"""How each kind of zone in a platform file routes from one of its points to another, as in SimGrid 3.32."""

import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from decision.model.topology import Dragonfly, FatTree, Topology

from .simgrid_network import parse_bandwidth, parse_latency, topology_of_cluster
from .xml_nodes import XmlNode

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
