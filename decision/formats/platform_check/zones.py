"""The zones of a platform: what each holds, and where every host, router and link is."""

from collections.abc import Iterator, Mapping

from decision.formats.platform_elements import radical
from decision.formats.xml_nodes import Node
from decision.model.errors import InputError

from .layout import ZONE_ROUTES, ZONES


class Zone:
    """A zone or cluster: the points (hosts and routers) and zones directly in it."""

    def __init__(self, node: Node, parent: "Zone | None") -> None:
        self.node = node
        self.name = node.attributes.get("id", "")
        self.parent = parent
        self.is_cluster = node.tag == "cluster"
        self.routing = "cluster" if self.is_cluster else node.attributes.get("routing", "Full").lower()
        self.parts: dict[str, Zone] = {}
        self.hosts: dict[str, Node] = {}
        self.routers: dict[str, Node] = {}
        self.members: list[str] = []  # hosts, gateways and zones that have some

    @property
    def topology(self) -> str:
        """Of a cluster, FLAT if it says nothing."""
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
        self.links: dict[str, Node] = {}

    def add(self, zone: Zone) -> None:
        """Take in a zone that has all its points."""
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


def read_zones(root: Node) -> Zones:
    """The zones of a <platform>."""
    zones = Zones()
    waiting: list[tuple[Node, Zone | None]] = [(child, None) for child in reversed(root.children)]
    while waiting:
        node, parent = waiting.pop()
        if node.tag not in (*ZONES, "cluster"):
            continue
        zone = Zone(node, parent)
        if parent is not None:
            parent.parts[zone.name] = zone
        _fill(zone, zones.links)
        zones.add(zone)
        waiting += [(child, zone) for child in reversed(node.children)]
    _find_members(zones)
    return zones


def _find_members(zones: Zones) -> None:
    """What routes must lead to: routers only where they are gateways, others are on the way at most."""
    routes = (node for zone in zones.all for node in zone.node.children if node.tag in ZONE_ROUTES)
    gateways = {node.attributes.get(name) for node in routes for name in ("gw_src", "gw_dst")}
    for zone in reversed(zones.all):
        parts = (name for name, part in zone.parts.items() if part.members)
        zone.members = [*zone.hosts, *(name for name in zone.routers if name in gateways), *parts]


def _fill(zone: Zone, links: dict[str, Node]) -> None:
    if zone.is_cluster:
        zone.hosts = dict.fromkeys(_numbered(zone.node), zone.node)
        if zone.topology == "FLAT":
            zone.routers[zone.own_router] = zone.node
        return
    for child in zone.node.children:
        name = child.attributes.get("id", "")
        if child.tag in ("host", "peer"):
            zone.hosts[name] = child
        elif child.tag == "cabinet":
            zone.hosts |= dict.fromkeys(_numbered(child), child)
        elif child.tag == "router":
            zone.routers[name] = child
        elif child.tag in ("link", "backbone"):
            links[name] = child


def _numbered(node: Node) -> Iterator[str]:
    """The names of a cluster's hosts, none if it is not as it must be."""
    attributes: Mapping[str, str] = {"prefix": "", "suffix": "", "radical": "", **node.attributes}
    try:
        numbers = list(radical(node)) if "radical" in node.attributes else []
    except InputError:
        numbers = []
    return (f"{attributes['prefix']}{number}{attributes['suffix']}" for number in numbers)
