"""A platform file as the checks see it: findings about elements, zones and what each holds, and links by kind."""

import os
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from decision.files.simgrid.read_platform import radical
from decision.files.simgrid.routes import ZONE_ROUTES, ZONES
from decision.files.simgrid.values import XmlNode, read_xml
from decision.model.errors import InputError
from decision.model.hosts import fold_names


class Finding(msgspec.Struct, frozen=True):
    """One mistake in a file."""

    line: int
    element: str  # as messages call it: <host> 'taurus-1'
    problem: str
    fix: str


def finding_at(node: XmlNode, problem: str, fix: str) -> Finding:
    """A finding about an element."""
    return Finding(node.line, node.element, problem, fix)


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """The first of all findings with one problem and fix, and how many there are, in the order of lines."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.line):
        groups.setdefault((finding.problem, finding.fix), []).append(finding)
    return [(members[0], len(members)) for members in groups.values()]


class Zone:
    """A zone or cluster: the points (hosts and routers) and zones directly in it."""

    def __init__(self, node: XmlNode, parent: "Zone | None") -> None:
        self.node = node
        self.name = node.attributes.get("id", "")
        self.parent = parent
        self.is_cluster = node.tag == "cluster"
        self.routing = "cluster" if self.is_cluster else node.attributes.get("routing", "Full").lower()
        self.parts: dict[str, Zone] = {}
        self.hosts: dict[str, XmlNode] = {}
        self.routers: dict[str, XmlNode] = {}
        self.members: list[str] = []  # hosts, gateways and zones that have some

    @property
    def topology(self) -> str:
        """The topology of a cluster, by default FLAT."""
        return self.node.attributes.get("topology", "FLAT")

    @property
    def own_router(self) -> str:
        """The name of the router that a flat cluster has."""
        attributes = self.node.attributes
        default = f"{attributes.get('prefix', '')}{self.name}_router{attributes.get('suffix', '')}"
        return attributes.get("router_id") or default

    def has(self, name: str) -> bool:
        """Whether a point is directly in this zone."""
        return name in self.hosts or name in self.routers


class Zones:
    """All zones by name and in order, each point's zone, and all links by name."""

    def __init__(self) -> None:
        self.all: list[Zone] = []
        self.by_name: dict[str, Zone] = {}
        self.home: dict[str, Zone] = {}
        self.links: dict[str, XmlNode] = {}

    def add(self, zone: Zone) -> None:
        """Add a zone that has all its points."""
        self.all.append(zone)
        self.by_name.setdefault(zone.name, zone)
        for name in (*zone.hosts, *zone.routers):
            self.home.setdefault(name, zone)

    def holds(self, zone: Zone, point: str) -> bool:
        """Whether a point is in this zone or in a zone of it."""
        home: Zone | None = self.home.get(point)
        while home is not None and home is not zone:
            home = home.parent
        return home is not None


def read_zones(root: XmlNode) -> Zones:
    """The zones of a <platform>."""
    zones = Zones()
    waiting: list[tuple[XmlNode, Zone | None]] = [(child, None) for child in reversed(root.children)]
    while waiting:
        node, parent = waiting.pop()
        if node.tag not in (*ZONES, "cluster"):
            continue
        zone = Zone(node, parent)
        if parent is not None:
            parent.parts[zone.name] = zone
        if zone.is_cluster:
            zone.hosts = dict.fromkeys(_numbered(node), node)
            if zone.topology == "FLAT":
                zone.routers[zone.own_router] = node
        for child in () if zone.is_cluster else node.children:
            name = child.attributes.get("id", "")
            if child.tag in ("host", "peer"):
                zone.hosts[name] = child
            elif child.tag == "cabinet":
                zone.hosts |= dict.fromkeys(_numbered(child), child)
            elif child.tag == "router":
                zone.routers[name] = child
            elif child.tag in ("link", "backbone"):
                zones.links[name] = child
        zones.add(zone)
        waiting += [(child, zone) for child in reversed(node.children)]
    # what routes must lead to: hosts, zones, and the routers that are gateways
    routes = (node for zone in zones.all for node in zone.node.children if node.tag in ZONE_ROUTES)
    gateways = {node.attributes.get(name) for node in routes for name in ("gw_src", "gw_dst")}
    for zone in reversed(zones.all):
        parts = (name for name, part in zone.parts.items() if part.members)
        zone.members = [*zone.hosts, *(name for name in zone.routers if name in gateways), *parts]
    return zones


def _numbered(node: XmlNode) -> Iterator[str]:
    """The names of a cluster's hosts; none if the element is not valid."""
    attributes: Mapping[str, str] = {"prefix": "", "suffix": "", "radical": "", **node.attributes}
    try:
        numbers = list(radical(node)) if "radical" in node.attributes else []
    except InputError:
        numbers = []
    return (f"{attributes['prefix']}{number}{attributes['suffix']}" for number in numbers)


class LinkKind(msgspec.Struct, frozen=True):
    """What links that differ in name only have in common, as the file has it."""

    bandwidth: str
    latency: str
    sharing: str


class Links(msgspec.Struct, frozen=True):
    """The links of one kind, and how many there are where that is known."""

    names: tuple[str, ...]  # folded; "each of network" for those that a <cluster> makes
    number: int | None  # None where SimGrid makes as many as the topology needs
    kind: LinkKind


def declared_links(path: str | os.PathLike[str]) -> list[Links]:
    """The links of a file: those that it names, and then those that its clusters make.

    Raises:
        InputError: if it cannot be read or is not XML.
    """
    zones = read_zones(read_xml(path))
    kinds: dict[LinkKind, list[tuple[str, int | None]]] = {}
    named = ((name, 1, _kind(node, "bandwidth", "latency", "SHARED")) for name, node in zones.links.items())
    for name, number, kind in (*named, *(made for zone in zones.all for made in _made(zone))):
        kinds.setdefault(kind, []).append((name, number))
    links = []
    for kind, members in kinds.items():
        numbers = [number for _, number in members if number is not None]
        total = sum(numbers) if len(numbers) == len(members) else None
        links.append(Links(tuple(fold_names(name for name, _ in members)), total, kind))
    return links


def _made(zone: Zone) -> Iterator[tuple[str, int | None, LinkKind]]:
    """The links that a <cluster> or a <cabinet> makes by itself."""
    if zone.is_cluster:
        number = len(zone.hosts) if zone.topology == "FLAT" else None
        yield f"each of {zone.name}", number, _kind(zone.node, "bw", "lat", "SPLITDUPLEX")
        if zone.node.attributes.get("bb_bw"):
            yield f"{zone.name}_backbone", 1, _kind(zone.node, "bb_bw", "bb_lat", "SHARED")
    for node in zone.node.children:
        if node.tag == "cabinet":
            number = sum(home is node for home in zone.hosts.values())
            yield f"each of {node.attributes.get('id', '')}", number, _kind(node, "bw", "lat", "SPLITDUPLEX")


def _kind(node: XmlNode, bandwidth: str, latency: str, sharing: str) -> LinkKind:
    policy = sharing if bandwidth == "bb_bw" else node.attributes.get("sharing_policy", sharing)
    return LinkKind(node.attributes.get(bandwidth, ""), node.attributes.get(latency, "0s"), policy)
