"""The routes of Batsim's own messages in a platform file, as SimGrid 3.32 finds them.

Batsim's messages are simulated: one byte from the host of its sender (a job's first host, or a host that switches) to
the master. What counts of a route is its latency and its slowest link. Zones route as SimGrid's do, by gateways from
zone to zone. Of several routes with equally few links, zones that search (Floyd, Dijkstra) may take another than here.
A host without a route tells at once; `decision platform check` names it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from decision.model.platform import Route

from .values import parse_bandwidth, parse_latency
from .xml_nodes import XmlNode
from .zones import (
    ZONES,
    RoutedZone,
    RouteLink,
    RouteLinks,
    RoutePart,
    SearchedZone,
    StarZone,
    SwitchedZone,
    cluster_extras,
)

ZONE_ROUTES = ("zoneRoute", "ASroute")
_BYPASSES = ("bypassRoute", "bypassZoneRoute", "bypassASroute")
_DUPLEX = ("SPLITDUPLEX", "FULLDUPLEX")
_SEARCHED = ("floyd", "dijkstra", "dijkstracache")


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
        common, a, b = _where_they_part(here.chain, there.chain)
        bypass = _bypass(common, here.chain, there.chain)
        part = bypass or common.local(self.wires, a.name, b.name)
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
                self._read_links(child)
            for child in node.children:
                self._read(child, zone)
            backbone = tuple(self.links[c.attributes["id"]] for c in node.children if c.tag == "backbone")
            for child in node.children:
                self._read_point(zone, child)
                self._read_route(zone, child, backbone)

    def _read_links(self, node: XmlNode) -> None:
        if node.tag in ("link", "backbone"):
            name, policy = node.attributes.get("id", ""), node.attributes.get("sharing_policy", "SHARED")
            bandwidth = parse_bandwidth(node.attributes.get("bandwidth", "1").split(",")[0])
            latency = parse_latency(node.attributes.get("latency", "0s"))
            for way in ("_UP", "_DOWN") if policy in _DUPLEX else ("",):
                self.links[name + way] = RouteLink(name + way, bandwidth, latency, policy != "FATPIPE")

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
        zone: RoutedZone
        if attributes.get("topology", "FLAT") == "FLAT":
            zone = star = StarZone(node, parent)
            self._fill_flat(star, node, hosts)
            default = f"{attributes.get('prefix', '')}{zone.name}_router{attributes.get('suffix', '')}"
            self.home[attributes.get("router_id") or default] = zone
        else:
            zone = SwitchedZone(node, parent, hosts)
        for name in hosts:
            self.home[name] = zone

    def _fill_flat(self, star: StarZone, node: XmlNode, hosts: Iterable[str]) -> None:
        attributes = node.attributes
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
            own = tuple(wire._replace(name=f"{name} limiter") for wire in limiter)
            star.up[name], star.down[name] = (*own, up, *backbone), (*backbone, down, *own)
            if loopback:
                star.loopback[name] = loopback


def _where_they_part(
    here: Sequence[RoutedZone], there: Sequence[RoutedZone]
) -> tuple[RoutedZone, RoutedZone, RoutedZone]:
    """The innermost zone around two zones' chains outwards, and its two parts that they are in."""
    a, b = list(here), list(there)
    common = a[-1]
    while len(a) > 1 and len(b) > 1 and a[-1] is b[-1]:
        common = a.pop()
        b.pop()
    return common, a[-1], b[-1]


def _bypass(common: RoutedZone, here: Sequence[RoutedZone], there: Sequence[RoutedZone]) -> RoutePart | None:
    """The bypass between two chains of zones that the common one has, from the innermost zones outwards."""
    if not common.bypasses:
        return None
    pairs = ((i, j) for i in range(len(here)) for j in range(len(there)))
    for i, j in sorted(pairs, key=lambda pair: (max(pair), pair[0] == pair[1], min(pair))):
        if (here[i].name, there[j].name) in common.bypasses:
            return common.bypasses[here[i].name, there[j].name]
    return None


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
        routes.append(same.setdefault(wires, _route(wires)))
    return tuple(routes) if any(route != Route() for route in routes) else ()


def _route(wires: RouteLinks) -> Route:
    times = Counter(wire.name for wire in wires if wire.is_shared)
    bandwidth = min((w.bandwidth / max(times[w.name], 1) for w in wires if w.name), default=math.inf)
    latency = 0.0
    for wire in wires:
        latency += wire.latency
    return Route(latency, bandwidth)
