"""Reachability: every host can send to every other, by the rules of each zone's routing."""

from collections import defaultdict
from collections.abc import Iterator

from .finding import Finding, found
from .layout import ZONE_ROUTES
from .routes import ends
from .zones import Zone, Zones

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
            yield found(zone.node, "with routing None no host reaches another", "choose another routing")


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
        mend = f'add a <{_route_of(zone)}>, or one with symmetrical="YES"'
        yield found(zone.node, problem, mend)


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
        yield found(zone.node, problem, f"add a <{_route_of(zone)}>")


def _pairs(reached: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    return ((start, goal) for start, goals in reached.items() for goal in goals)


def _check_star(zone: Zone) -> Iterator[Finding]:
    """Routing Cluster: a host_link for each host."""
    linked = {node.attributes.get("id") for node in zone.node.children if node.tag == "host_link"}
    for name, node in zone.hosts.items():
        if node.tag == "host" and name not in linked:
            yield found(node, f"no <host_link> connects it to the others of {zone.node.element}", "add one")


def _check_coordinates(zone: Zone) -> Iterator[Finding]:
    for node in (*zone.hosts.values(), *zone.routers.values()):
        if len(node.attributes.get("coordinates", "").split()) != 3:
            yield found(node, "routing Vivaldi needs its coordinates", 'write coordinates="0 0 0"')
