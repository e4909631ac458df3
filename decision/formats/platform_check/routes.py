"""Routes: their ends, gateways and links exist, and are where they must be."""

from collections.abc import Iterator

from decision.formats.xml_nodes import Node

from .finding import Finding, found
from .layout import ZONE_ROUTES
from .zones import Zone, Zones

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


def ends(node: Node) -> tuple[str, str]:
    """What a route connects."""
    return node.attributes.get("src", ""), node.attributes.get("dst", "")


def _route(node: Node) -> str:
    return "the route from {!r} to {!r}".format(*ends(node))


def _check_route(zone: Zone, node: Node) -> Iterator[Finding]:
    for name in ends(node):
        if not zone.has(name):
            mend = f"add a <host> or <router> of this name to {zone.node.element}, or correct it"
            if name in zone.parts:
                mend = "write a <zoneRoute>, with gateways"
            yield found(node, f"{_route(node)}: no host or router {name!r} in this zone", mend)


def _check_host_link(zones: Zones, zone: Zone, node: Node) -> Iterator[Finding]:
    if not zone.has(node.attributes.get("id", "")):
        yield found(node, "no such host in this zone", "correct the id, or put the host first")
    for way in ("up", "down"):
        name = node.attributes.get(way, "")
        if not _exists(zones, name):
            yield found(node, f"no link {name!r}", f"add it, or correct {way!r}")


def _exists(zones: Zones, name: str) -> bool:
    """Whether SimGrid has a link of this name: one of the file, a half of one, or one that a cluster makes."""
    whole = name.removesuffix("_UP").removesuffix("_DOWN")
    if name in zones.links:
        return zones.links[name].attributes.get("sharing_policy") not in _DUPLEX
    if whole in zones.links:
        return zones.links[whole].attributes.get("sharing_policy") in _DUPLEX
    return any(name.startswith(f"{zone.name}_") for zone in zones.all if zone.is_cluster)


def _check_links(zones: Zones, node: Node) -> Iterator[Finding]:
    for child in node.children:
        name, direction = child.attributes.get("id", ""), child.attributes.get("direction", "NONE")
        if child.tag != "link_ctn" or _exists(zones, name) or _exists(zones, f"{name}_{direction}"):
            continue
        if name in zones.links:
            problem = "the link has a direction each way, and the route does not say which it takes"
            mend = 'add direction="UP" or direction="DOWN"'
        else:
            problem, mend = "there is no such link", "add it before the routes, or correct the id"
        yield found(child, f"{_route(node)}: {problem}", mend)


# ------------------------------------------------------------------------------------------------ gateways


def _check_zone_route(zones: Zones, zone: Zone, node: Node) -> Iterator[Finding]:
    unknown = [name for name in ends(node) if name not in zone.parts]
    for name in unknown:
        where = f"is not directly in {zone.node.element}" if name in zones.by_name else "does not exist"
        yield found(node, f"{_route(node)}: the zone {name!r} {where}", "put it there, or correct its name")
    if unknown:
        return
    src, dst = (zone.parts[name] for name in ends(node))
    gateways = node.attributes.get("gw_src", ""), node.attributes.get("gw_dst", "")
    if src is not dst and zones.holds(dst, gateways[0]) and zones.holds(src, gateways[1]):
        mend = f'write gw_src="{gateways[1]}" gw_dst="{gateways[0]}"'
        yield found(node, f"{_route(node)}: the gateways are swapped; gw_src must be in {src.name!r}", mend)
        return
    for part, name, gateway in zip((src, dst), ("gw_src", "gw_dst"), gateways, strict=True):
        if not zones.holds(part, gateway):
            yield _bad_gateway(zones, part, node, name, gateway)


def _bad_gateway(zones: Zones, part: Zone, node: Node, name: str, gateway: str) -> Finding:
    if gateway in zones.home:
        problem = f"{name} {gateway!r} is not in the zone {part.name!r} but in {zones.home[gateway].name!r}"
    else:
        problem = f"{name} {gateway!r}: there is no such router or host"
    return found(node, f"{_route(node)}: {problem}", _gateway_of(part))


def _gateway_of(part: Zone) -> str:
    """What can be a zone's gateway."""
    if part.is_cluster and part.topology == "FLAT":
        return f"the router of this cluster is {part.own_router!r}"
    first = next(iter(part.routers or part.hosts), None)
    if part.is_cluster:
        return f"a cluster of topology {part.topology} has no router; take one of its hosts, such as {first!r}"
    return f"take one of its own, such as {first!r}" if first else "add a <router> to that zone"
