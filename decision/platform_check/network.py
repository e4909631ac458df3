"""Checks of the network: the layout of zones (SimGrid's DTD), routes and gateways, and that all hosts are connected."""

from collections import defaultdict
from collections.abc import Iterator

from decision.formats.route_zones import ZONES
from decision.formats.routes import ZONE_ROUTES
from decision.formats.xml_nodes import XmlNode

from .structure import Finding, Zone, Zones, finding_at

_PARTS = (*ZONES, "cluster", "peer")  # of a zone that holds zones
_LEAVES = ("host", "router", "host_link")  # of a zone that holds hosts
_ROUTES = ("route", *ZONE_ROUTES, "bypassRoute", "bypassZoneRoute", "bypassASroute")
ROUTINGS = ("Full", "Floyd", "Dijkstra", "DijkstraCache", "None", "Vivaldi", "Cluster", "Wifi")


def check_layout(root: XmlNode) -> Iterator[Finding]:
    """Zones with a mix or an order of elements that SimGrid does not allow."""
    tops = [node for node in root.children if node.tag in (*_PARTS, "cabinet")]
    if len(tops) > 1:
        yield finding_at(tops[1], "there are several top-level zones", "put all zones into one")
    waiting = list(root.children)
    while waiting:
        node = waiting.pop()
        if node.tag in ZONES:
            yield from _check_zone(node)
            waiting += node.children


def _check_zone(zone: XmlNode) -> Iterator[Finding]:
    tags = [child.tag for child in zone.children]
    parts, leaves = ([child for child in zone.children if child.tag in kind] for kind in (_PARTS, _LEAVES))
    if parts and leaves:
        later = max(parts[0], leaves[0], key=lambda node: node.line)
        fix = "put the hosts and routers into a zone of their own, and a zoneRoute between the two"
        yield finding_at(later, f"{zone.element} has both hosts or routers and zones or clusters", fix)
    ranks = [0 if tag == "prop" else 2 if tag in _ROUTES else 1 for tag in tags if not tag.startswith("trace")]
    if ranks != sorted(ranks):
        yield finding_at(zone, "SimGrid requires <prop> first and routes last", "move them there")
    if zone.attributes.get("routing", "Full").lower() not in (routing.lower() for routing in ROUTINGS):
        yield finding_at(
            zone, f"the routing {zone.attributes['routing']!r} is unknown", f"take one of {', '.join(ROUTINGS)}"
        )


_DUPLEX = ("SPLITDUPLEX", "FULLDUPLEX")


def check_routes(zones: Zones) -> Iterator[Finding]:
    """All routes of all zones."""
    for zone in zones.all:
        for node in zone.node.children:
            if node.tag in ZONE_ROUTES:
                yield from _check_zone_route(zones, zone, node)
            elif node.tag == "route" and zone.routing != "cluster":
                yield from _check_route(zone, node)
            elif node.tag == "host_link":
                yield from _check_host_link(zones, zone, node)
            if node.tag in (*ZONE_ROUTES, "route"):
                yield from _check_links(zones, node)


def ends(node: XmlNode) -> tuple[str, str]:
    """What a route connects."""
    return node.attributes.get("src", ""), node.attributes.get("dst", "")


def _route(node: XmlNode) -> str:
    return "the route from {!r} to {!r}".format(*ends(node))


def _check_route(zone: Zone, node: XmlNode) -> Iterator[Finding]:
    for name in ends(node):
        if not zone.has(name):
            fix = f"add a <host> or <router> of this name to {zone.node.element}, or correct it"
            if name in zone.parts:
                fix = "write a <zoneRoute>, with gateways"
            yield finding_at(node, f"{_route(node)}: no host or router {name!r} in this zone", fix)


def _check_host_link(zones: Zones, zone: Zone, node: XmlNode) -> Iterator[Finding]:
    if not zone.has(node.attributes.get("id", "")):
        yield finding_at(node, "no such host in this zone", "correct the id, or put the host first")
    for way in ("up", "down"):
        name = node.attributes.get(way, "")
        if not _exists(zones, name):
            yield finding_at(node, f"no link {name!r}", f"add it, or correct {way!r}")


def _exists(zones: Zones, name: str) -> bool:
    """Whether SimGrid has a link of this name: one of the file, a half of one, or one that a cluster makes."""
    whole = name.removesuffix("_UP").removesuffix("_DOWN")
    if name in zones.links:
        return zones.links[name].attributes.get("sharing_policy") not in _DUPLEX
    if whole in zones.links:
        return zones.links[whole].attributes.get("sharing_policy") in _DUPLEX
    return any(name.startswith(f"{zone.name}_") for zone in zones.all if zone.is_cluster)


def _check_links(zones: Zones, node: XmlNode) -> Iterator[Finding]:
    for child in node.children:
        name, direction = child.attributes.get("id", ""), child.attributes.get("direction", "NONE")
        if child.tag != "link_ctn" or _exists(zones, name) or _exists(zones, f"{name}_{direction}"):
            continue
        if name in zones.links:
            problem = "the link has a direction each way, and the route does not say which it takes"
            fix = 'add direction="UP" or direction="DOWN"'
        else:
            problem, fix = "the link does not exist", "add it before the routes, or correct the id"
        yield finding_at(child, f"{_route(node)}: {problem}", fix)


# ------------------------------------------------------------------------------------------------ gateways


def _check_zone_route(zones: Zones, zone: Zone, node: XmlNode) -> Iterator[Finding]:
    unknown = [name for name in ends(node) if name not in zone.parts]
    for name in unknown:
        where = f"is not directly in {zone.node.element}" if name in zones.by_name else "does not exist"
        yield finding_at(node, f"{_route(node)}: the zone {name!r} {where}", "put it there, or correct its name")
    if unknown:
        return
    src, dst = (zone.parts[name] for name in ends(node))
    gateways = node.attributes.get("gw_src", ""), node.attributes.get("gw_dst", "")
    if src is not dst and zones.holds(dst, gateways[0]) and zones.holds(src, gateways[1]):
        fix = f'write gw_src="{gateways[1]}" gw_dst="{gateways[0]}"'
        yield finding_at(node, f"{_route(node)}: the gateways are swapped; gw_src must be in {src.name!r}", fix)
        return
    for part, name, gateway in zip((src, dst), ("gw_src", "gw_dst"), gateways, strict=True):
        if not zones.holds(part, gateway):
            yield _bad_gateway(zones, part, node, name, gateway)


def _bad_gateway(zones: Zones, part: Zone, node: XmlNode, name: str, gateway: str) -> Finding:
    if gateway in zones.home:
        problem = f"{name} {gateway!r} is not in the zone {part.name!r} but in {zones.home[gateway].name!r}"
    else:
        problem = f"{name} {gateway!r}: no router or host has this name"
    return finding_at(node, f"{_route(node)}: {problem}", _gateway_of(part))


def _gateway_of(part: Zone) -> str:
    """What can be a zone's gateway."""
    if part.is_cluster and part.topology == "FLAT":
        return f"the router of this cluster is {part.own_router!r}"
    first = next(iter(part.routers or part.hosts), None)
    if part.is_cluster:
        return f"a cluster of topology {part.topology} has no router; take one of its hosts, such as {first!r}"
    return f"take one of its own, such as {first!r}" if first else "add a <router> to that zone"


_SEARCHED = ("floyd", "dijkstra", "dijkstracache")  # routes are put together of others


def check_reach(zones: Zones) -> Iterator[Finding]:
    """One finding for each zone in which something cannot be reached."""
    for zone in zones.all:
        if zone.is_cluster:
            continue
        if zone.routing == "full":
            yield from _check_full(zone)
        elif zone.routing in _SEARCHED:
            yield from _check_searched(zone)
        elif zone.routing == "cluster":
            yield from _check_star(zone)
        elif zone.routing == "vivaldi":
            yield from _check_coordinates(zone)
        elif zone.routing == "none" and len(zone.members) > 1:
            yield finding_at(zone.node, "with routing None no host reaches another", "choose another routing")


def _neighbours(zone: Zone) -> dict[str, set[str]]:
    """Where the routes of the zone lead, by where they begin."""
    reached = defaultdict(set)
    for node in zone.node.children:
        if node.tag in (*ZONE_ROUTES, "route"):
            src, dst = ends(node)
            reached[src].add(dst)
            if node.attributes.get("symmetrical", "YES").upper() == "YES":
                reached[dst].add(src)
    return reached


def _check_full(zone: Zone) -> Iterator[Finding]:
    """Full routing: a route of its own for each pair, except between two routers."""
    members, reached = set(zone.members), _neighbours(zone)
    lacking = {}
    for name in zone.members:
        others = members - {name} - (zone.routers.keys() if name in zone.routers else set())
        if not others <= reached[name]:
            lacking[name] = min(others - reached[name])
    if lacking:
        name, other = next(iter(lacking.items()))
        problem = (
            f"{len(lacking)} of {len(members)} members do not reach all others: no route from {name!r} to {other!r}"
        )
        fix = f'add a <{_route_of(zone)}>, or one with symmetrical="YES"'
        yield finding_at(zone.node, problem, fix)


def _route_of(zone: Zone) -> str:
    return "zoneRoute" if zone.parts else "route"


def _check_searched(zone: Zone) -> Iterator[Finding]:
    """Floyd's and Dijkstra's routing: a path of routes from the first member to all others."""
    members, reached = zone.members, _neighbours(zone)
    for start, goal in list(_pairs(reached)):
        reached[goal].add(start)  # a path back by other routes is not searched for
    seen, waiting = set(members[:1]), members[:1]
    while waiting:
        fresh = reached[waiting.pop()] - seen
        seen |= fresh
        waiting += fresh
    apart = [name for name in members if name not in seen]
    if apart:
        problem = f"{len(apart)} of {len(members)} members have no path to {members[0]!r}, such as {apart[0]!r}"
        yield finding_at(zone.node, problem, f"add a <{_route_of(zone)}>")


def _pairs(reached: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    return ((start, goal) for start, goals in reached.items() for goal in goals)


def _check_star(zone: Zone) -> Iterator[Finding]:
    """Routing Cluster: a host_link for each host."""
    linked = {node.attributes.get("id") for node in zone.node.children if node.tag == "host_link"}
    for name, node in zone.hosts.items():
        if node.tag == "host" and name not in linked:
            yield finding_at(node, f"no <host_link> connects it to the others of {zone.node.element}", "add one")


def _check_coordinates(zone: Zone) -> Iterator[Finding]:
    for node in (*zone.hosts.values(), *zone.routers.values()):
        if len(node.attributes.get("coordinates", "").split()) != 3:
            yield finding_at(node, "routing Vivaldi needs its coordinates", 'write coordinates="0 0 0"')
