"""The routes of Batsim's own messages in a platform file, as SimGrid 3.32 finds them.

Batsim's messages are simulated: one byte from the host of its sender (a job's first host, or a host that switches) to
the master. What counts of a route is its latency and its slowest link. Zones route as SimGrid's do, by gateways from
zone to zone. Of several routes with equally few links, zones that search (Floyd, Dijkstra) may take another than here.
A host without a route tells at once; `decision platform check` names it.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from decision.model.platform import Dragonfly, FatTree, Route, Topology

from .values import XmlNode, parse_bandwidth, parse_latency, topology_of_cluster

ZONES = ("zone", "AS")
ZONE_ROUTES = ("zoneRoute", "ASroute")
_BYPASSES = ("bypassRoute", "bypassZoneRoute", "bypassASroute")
_DUPLEX = ("SPLITDUPLEX", "FULLDUPLEX")
_SEARCHED = ("floyd", "dijkstra", "dijkstracache")


def routes_to(
    root: XmlNode, hosts: Mapping[int, Sequence[str]], names: Sequence[str], master: str
) -> tuple[Route, ...]:
    """The routes of messages from the hosts `names`, and from the master itself, to the master.

    Args:
        root: the platform's root element.
        hosts: names of the hosts that an element makes, by the element's identity.
        names: who sends.
        master: who receives.

    Returns:
        None at all where every message arrives at once.

    Raises:
        ConfigError: if a link's bandwidth or latency cannot be read.
    """
    network = _Network(root, hosts)
    same: dict[RouteLinks, Route] = {}
    routes = []
    for name in (*names, master):
        wires = network.wires(name, master)
        if wires not in same:
            times = Counter(wire.name for wire in wires if wire.is_shared)
            bandwidth = min((w.bandwidth / max(times[w.name], 1) for w in wires if w.name), default=math.inf)
            latency = 0.0
            for wire in wires:
                latency += wire.latency
            same[wires] = Route(latency, bandwidth)
        routes.append(same[wires])
    return tuple(routes) if any(route != Route() for route in routes) else ()


# --- How each kind of zone routes from one of its points to another ---


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
        to_itself = RoutePart(() if self.has_zones else _LOOPBACK) if src == dst else RoutePart()
        return self.routes.get((src, dst), to_itself)


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
    # host to router and router to host; then within the group, and before that from group to group, by the router that
    # has the number of the other group
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


# --- All zones of a file, and the way from one zone to another ---


class _Network:
    """All zones of a file."""

    def __init__(self, root: XmlNode, hosts: Mapping[int, Sequence[str]]) -> None:
        self.hosts = hosts  # names by the identity of the element that makes them
        self.home: dict[str, RoutedZone] = {}
        self.links: dict[str, RouteLink] = {}
        self.known: dict[tuple[str, str], RouteLinks] = {}
        for child in root.children:
            self._read(child, None)

    def wires(self, src: str, dst: str) -> RouteLinks:
        """All links between two points, those between their zones first, as SimGrid adds them up."""
        if (src, dst) not in self.known:
            self.known[src, dst] = ()  # for wrong gateways, which would lead in a circle
            self.known[src, dst] = self._find(src, dst)
        return self.known[src, dst]

    def _find(self, src: str, dst: str) -> RouteLinks:
        if src not in self.home or dst not in self.home:
            return ()
        here, there = self.home[src], self.home[dst]
        if here is there:
            return (here.bypasses.get((src, dst)) or here.local(self.wires, src, dst)).wires
        # the innermost zone around both, and its two parts that they are in
        a, b = list(here.chain), list(there.chain)
        common = a[-1]
        while len(a) > 1 and len(b) > 1 and a[-1] is b[-1]:
            common = a.pop()
            b.pop()
        # a bypass between zones of the two chains, from the innermost zones outwards
        pairs = [(i, j) for i in range(len(here.chain)) for j in range(len(there.chain))] if common.bypasses else []
        pairs.sort(key=lambda pair: (max(pair), pair[0] == pair[1], min(pair)))
        names = ((here.chain[i].name, there.chain[j].name) for i, j in pairs)
        bypass = next((common.bypasses[pair] for pair in names if pair in common.bypasses), None)
        part = bypass or common.local(self.wires, a[-1].name, b[-1].name)
        if not part.gw_src or not part.gw_dst:
            return ()
        before = self.wires(src, part.gw_src) if src != part.gw_src else ()
        after = self.wires(part.gw_dst, dst) if dst != part.gw_dst else ()
        return part.wires + before + after

    # --- Reading --------------------------------------------------------------------------------------------------

    def _read(self, node: XmlNode, parent: RoutedZone | None) -> None:
        if node.tag == "cluster":
            self._read_cluster(node, parent)
        elif node.tag in ZONES:
            kind = node.attributes.get("routing", "Full").lower()
            star = kind in ("cluster", "vivaldi")
            zone = (StarZone if star else SearchedZone if kind in _SEARCHED else RoutedZone)(node, parent)
            for child in node.children:  # links first: routes name them
                if child.tag in ("link", "backbone"):
                    name, policy = child.attributes.get("id", ""), child.attributes.get("sharing_policy", "SHARED")
                    bandwidth = parse_bandwidth(child.attributes.get("bandwidth", "1").split(",")[0])
                    latency = parse_latency(child.attributes.get("latency", "0s"))
                    for way in ("_UP", "_DOWN") if policy in _DUPLEX else ("",):
                        self.links[name + way] = RouteLink(name + way, bandwidth, latency, policy != "FATPIPE")
            for child in node.children:
                self._read(child, zone)
            backbone = tuple(self.links[c.attributes["id"]] for c in node.children if c.tag == "backbone")
            for child in node.children:
                self._read_point(zone, child)
                self._read_route(zone, child, backbone)

    def _read_point(self, zone: RoutedZone, node: XmlNode) -> None:
        name = node.attributes.get("id", "")
        if node.tag in ("host", "peer", "router"):
            self.home[name] = zone
        elif node.tag == "cabinet":
            self.home |= dict.fromkeys(self.hosts.get(id(node), ()), zone)
        if isinstance(zone, StarZone):
            if "coordinates" in node.attributes:
                zone.coordinates[name] = tuple(map(float, node.attributes["coordinates"].split()))
            if node.tag == "peer":
                zone.up[name] = (RouteLink(f"{name} up", parse_bandwidth(node.attributes["bw_out"]), 0.0),)
                zone.down[name] = (RouteLink(f"{name} down", parse_bandwidth(node.attributes["bw_in"]), 0.0),)

    def _read_route(self, zone: RoutedZone, node: XmlNode, backbone: RouteLinks) -> None:
        attributes = node.attributes
        if node.tag == "cabinet" and isinstance(zone, StarZone):
            for name in self.hosts.get(id(node), ()):
                link = RouteLink(f"{name} up", parse_bandwidth(attributes["bw"]), parse_latency(attributes["lat"]))
                zone.up[name], zone.down[name] = (link, *backbone), (*backbone, link._replace(name=f"{name} down"))
        elif node.tag == "host_link" and isinstance(zone, StarZone):
            name = attributes.get("id", "")
            zone.up[name] = (*self._named(attributes.get("up", "")), *backbone)
            zone.down[name] = (*backbone, *self._named(attributes.get("down", "")))
        elif node.tag in (*ZONE_ROUTES, *_BYPASSES, "route"):
            src, dst = attributes.get("src", ""), attributes.get("dst", "")
            gateways = attributes.get("gw_src", ""), attributes.get("gw_dst", "")
            ways = [(c.attributes.get("id", ""), c.attributes.get("direction", "NONE")) for c in node.children]
            part = RoutePart(tuple(w for name, way in ways for w in self._named(name, way)), *gateways)
            if node.tag in _BYPASSES:
                zone.bypasses[src, dst] = part
                return
            zone.routes[src, dst] = part
            if attributes.get("symmetrical", "YES").upper() == "YES" and src != dst:
                turned = {"UP": "DOWN", "DOWN": "UP"}
                back = (w for name, way in reversed(ways) for w in self._named(name, turned.get(way, way)))
                zone.routes[dst, src] = RoutePart(tuple(back), *reversed(gateways))

    def _named(self, name: str, way: str = "NONE") -> RouteLinks:
        """A link of a route; none where it does not exist."""
        wire = self.links.get(name) or self.links.get(f"{name}_{way}")
        return (wire,) if wire else ()

    def _read_cluster(self, node: XmlNode, parent: RoutedZone | None) -> None:
        hosts, attributes = self.hosts.get(id(node), ()), node.attributes
        if attributes.get("topology", "FLAT") != "FLAT":
            self.home |= dict.fromkeys(hosts, SwitchedZone(node, parent, hosts))
            return
        star = StarZone(node, parent)
        default = f"{attributes.get('prefix', '')}{star.name}_router{attributes.get('suffix', '')}"
        self.home |= dict.fromkeys((attributes.get("router_id") or default, *hosts), star)
        bandwidth, latency = parse_bandwidth(attributes["bw"]), parse_latency(attributes["lat"])
        split = attributes.get("sharing_policy", "SPLITDUPLEX") in _DUPLEX
        shared = attributes.get("sharing_policy") != "FATPIPE"
        loopback, limiter = cluster_extras(node)
        backbone: RouteLinks = ()
        if "bb_bw" in attributes:
            wide, slow = parse_bandwidth(attributes["bb_bw"]), parse_latency(attributes.get("bb_lat", "0s"))
            backbone = (RouteLink(f"{star.name}_backbone", wide, slow),)
        for name in hosts:
            up = RouteLink(f"{name} up", bandwidth, latency, shared)
            down = up._replace(name=f"{name} down") if split else up
            limits = tuple(wire._replace(name=f"{name} limiter") for wire in limiter)
            star.up[name], star.down[name] = (*limits, up, *backbone), (*backbone, down, *limits)
            if loopback:
                star.loopback[name] = loopback
