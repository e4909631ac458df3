"""Which elements may be together in a zone, and in which order: SimGrid's DTD."""

from collections.abc import Iterator

from decision.formats.xml_nodes import Node

from .finding import Finding, found

ZONES = ("zone", "AS")
_PARTS = (*ZONES, "cluster", "peer")  # of a zone that holds zones
_LEAVES = ("host", "router", "host_link")  # of a zone that holds hosts
ZONE_ROUTES = ("zoneRoute", "ASroute")
_ROUTES = ("route", *ZONE_ROUTES, "bypassRoute", "bypassZoneRoute", "bypassASroute")
ROUTINGS = ("Full", "Floyd", "Dijkstra", "DijkstraCache", "None", "Vivaldi", "Cluster", "Wifi")


def check_layout(root: Node) -> Iterator[Finding]:
    """Zones that mix what SimGrid keeps apart, or have it in another order."""
    tops = [node for node in root.children if node.tag in (*_PARTS, "cabinet")]
    if len(tops) > 1:
        yield found(tops[1], "a second zone outside of all others", "put all zones into one")
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        if node.tag in ZONES:
            yield from _check_zone(node)
            waiting += node.children


def _check_zone(zone: Node) -> Iterator[Finding]:
    tags = [child.tag for child in zone.children]
    parts, leaves = ([child for child in zone.children if child.tag in kind] for kind in (_PARTS, _LEAVES))
    if parts and leaves:
        later = max(parts[0], leaves[0], key=lambda node: node.line)
        mend = "put the hosts and routers into a zone of their own, and a zoneRoute between the two"
        yield found(later, f"{zone.element} has both hosts or routers and zones or clusters", mend)
    ranks = [0 if tag == "prop" else 2 if tag in _ROUTES else 1 for tag in tags if not tag.startswith("trace")]
    if ranks != sorted(ranks):
        yield found(zone, "SimGrid wants <prop> first and routes last", "move them there")
    if zone.attributes.get("routing", "Full").lower() not in (routing.lower() for routing in ROUTINGS):
        yield found(
            zone, f"the routing {zone.attributes['routing']!r} is unknown", f"take one of {', '.join(ROUTINGS)}"
        )
