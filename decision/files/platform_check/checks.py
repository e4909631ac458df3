"""All checks of one file."""

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from decision.files.simgrid.read_platform import load_platform
from decision.files.simgrid.routes import ZONE_ROUTES, ZONES
from decision.files.simgrid.values import (
    BATSIM_SIMGRID,
    DOCTYPE,
    FIRST_WITH_NEW_NAMES,
    FIRST_WITHOUT_OLD_NAMES,
    NOMINAL,
    OLD_DOCTYPE,
    PLATFORM_FORMAT,
    SLEEP_PSTATES,
    WATTAGE,
    WATTAGE_OFF,
    ElementError,
    XmlNode,
    format_bandwidth,
    parse_bandwidth,
    parse_latency,
    parse_sleep_states,
    parse_speed,
    parse_speeds,
    parse_wattage,
    read_xml,
    simgrid_version,
)
from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError

from .structure import Finding, Zone, Zones, finding_at, read_zones

# Checks of hosts and links by themselves: units, bits taken for bytes, power, sleep states and speeds of pstates.

_BANDWIDTHS = {
    "link": ("bandwidth",),
    "backbone": ("bandwidth",),
    "cluster": ("bw", "bb_bw", "limiter_link", "loopback_bw"),
    "cabinet": ("bw",),
    "peer": ("bw_in", "bw_out"),
}
_LATENCIES = {
    "link": ("latency",),
    "backbone": ("latency",),
    "cluster": ("lat", "bb_lat", "loopback_lat"),
    "cabinet": ("lat",),
}
_SPEEDS = ("host", "cluster", "cabinet", "peer")
_NUMBER = re.compile(r"\s*\+?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*")
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(GBps|Gbps|Mbps)")

_LONG = 1.0  # seconds of latency from which on something is wrong


def check_quantities(root: XmlNode) -> Iterator[Finding]:
    """Quantities without a unit or with an unknown one, and values that are probably mistakes."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        for name in _BANDWIDTHS.get(node.tag, ()):
            for text in re.split("[;,]", node.attributes[name]) if node.attributes.get(name) else ():
                yield from _check_unit(node, name, text, parse_bandwidth, "bytes per second", "Bps, such as 125MBps")
                yield from _check_bits(node, name, text.strip())
        for name in _LATENCIES.get(node.tag, ()):
            if text := node.attributes.get(name, ""):
                wrong = list(_check_unit(node, name, text, parse_latency, "seconds", "s, such as 50us"))
                yield from wrong
                if not wrong and parse_latency(text) >= _LONG:
                    problem = f'{name}="{text}" is longer than the latency of any network'
                    yield finding_at(node, problem, "write it in us or ms")
        if node.tag in _SPEEDS and "speed" in node.attributes:
            for text in node.attributes["speed"].split(","):
                yield from _check_unit(node, "speed", text, parse_speed, "flop/s", "f, such as 1Gf")


def _check_unit(
    node: XmlNode, name: str, text: str, parse: Callable[[str], float], default: str, fix: str
) -> Iterator[Finding]:
    """A unit that is missing (SimGrid reads its own, and warns) or unknown."""
    try:
        value = parse(text)
    except ConfigError as error:
        yield finding_at(node, str(error), f"write {name} with the unit {fix}")
        return
    if value and _NUMBER.fullmatch(text):
        yield finding_at(node, f'{name}="{text.strip()}" has no unit; SimGrid reads {default}', f"add the unit {fix}")


def _check_bits(node: XmlNode, name: str, text: str) -> Iterator[Finding]:
    """Common rates in bits that are written as bytes; or rates divided by 8 that are written as bits."""
    match = _RATE.fullmatch(text)
    if not match:
        return
    value = float(match[1]) / (1000 if match[2] == "Mbps" else 1)
    if match[2] == "GBps" and value in NOMINAL:
        fix = f"write {format_bandwidth(value / 8 * 1e9)} for {value:g} Gbit/s, or {value * 8:g}Gbps if it is meant"
        yield finding_at(node, f'{name}="{text}" is {value * 8:g} Gbit/s; networks of {value:g} Gbit/s are common', fix)
    elif match[2] != "GBps" and value not in NOMINAL and value * 8 in NOMINAL:
        common = f"{text[:-3]}Bps"
        problem = f'{name}="{text}" is in bits; networks of {value * 8:g} Gbit/s, {common}, are common'
        yield finding_at(
            node, problem, f"write {common} for bytes, or {format_bandwidth(value / 8 * 1e9)} if it is meant"
        )


_HOSTS = ("host", "cluster", "peer", "cabinet")
_KNOWN = (*WATTAGE, *WATTAGE_OFF, SLEEP_PSTATES)
_SIMILAR = 0.85  # share of equal letters from which on a property is probably a misspelt one
_NOT_COMPUTING = ("storage", "master")


def check_energy(root: XmlNode, version: tuple[int, int], master: str) -> Iterator[Finding]:
    """Power and sleep states of all hosts and clusters, for the version of SimGrid that will read them."""
    hosts: list[tuple[XmlNode, dict[str, str]]] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.tag in _HOSTS:
            properties: dict[str, str] = {}  # of two with the same name SimGrid keeps the first
            for child in node.children:
                if child.tag == "prop" and {"id", "value"} <= child.attributes.keys():
                    properties.setdefault(child.attributes["id"], child.attributes["value"])
            hosts.append((node, properties))
    computing = [
        (node, properties)
        for node, properties in hosts
        if properties.get("role") not in _NOT_COMPUTING and node.attributes.get("id") != master
    ]
    for node, properties in hosts:
        yield from _check_names(node, properties, version)
        yield from _check_form(node, properties)
    for node, properties in computing:
        yield from _check_speeds(node, properties)
    powered = sum(any(name in properties for name in WATTAGE) for _, properties in computing)
    for node, properties in computing if powered else ():
        if not any(name in properties for name in WATTAGE):
            yield finding_at(
                node,
                "no power is given, but other hosts have it",
                f"add a <prop> {WATTAGE[version < FIRST_WITH_NEW_NAMES]!r}",
            )


def _check_names(node: XmlNode, properties: Mapping[str, str], version: tuple[int, int]) -> Iterator[Finding]:
    simgrid = ".".join(map(str, version))
    for new, old in (WATTAGE, WATTAGE_OFF):
        if old in properties and new not in properties and version >= FIRST_WITHOUT_OLD_NAMES:
            fix = f"rename it {new!r}"
            if new == WATTAGE[0]:
                fix += ", and make the middle of three numbers that of no load (epsilon) instead of that of one core"
            yield finding_at(node, f"SimGrid {simgrid} no longer reads {old!r}", fix)
        if new in properties and old not in properties and version < FIRST_WITH_NEW_NAMES:
            yield finding_at(node, f"SimGrid {simgrid} does not read {new!r} yet", f"rename it {old!r}")
    for name in properties:
        near = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=_SIMILAR)
        if near and name not in _KNOWN:
            yield finding_at(node, f"neither SimGrid nor Batsim reads the property {name!r}", f"was {near[0]!r} meant?")


def _check_form(node: XmlNode, properties: Mapping[str, str]) -> Iterator[Finding]:
    """Powers and sleep states that cannot be read, or not one power for each pstate."""
    nb_pstates = node.attributes.get("speed", "").count(",") + 1
    for name in WATTAGE:
        if name not in properties:
            continue
        try:
            watts = parse_wattage(properties[name])
        except ConfigError as error:
            yield finding_at(node, str(error), f"correct {name!r}")
            continue
        if len(watts) != nb_pstates:
            fix = "give one power per speed, separated by commas"
            yield finding_at(node, f"{len(watts)} powers in {name!r} for {nb_pstates} pstates", fix)
        if any(idle > full for idle, _, full in watts):
            fix = "write idle first and all cores last"
            yield finding_at(node, f"{name!r} says that a host draws more without load than with it", fix)
    if SLEEP_PSTATES in properties:
        try:
            parse_sleep_states(properties[SLEEP_PSTATES], nb_pstates)
        except ConfigError as error:
            yield finding_at(node, str(error), f"correct {SLEEP_PSTATES!r}")


def _check_speeds(node: XmlNode, properties: Mapping[str, str]) -> Iterator[Finding]:
    """Computing and switching need a speed above 0, and hosts start in a computing pstate."""
    try:
        speeds = parse_speeds(node.attributes.get("speed", "1f"))
        states = parse_sleep_states(properties[SLEEP_PSTATES], len(speeds)) if SLEEP_PSTATES in properties else ()
        first = int(float(node.attributes.get("pstate", "0")))
    except (ConfigError, ValueError, OverflowError):
        return  # reported elsewhere
    asleep = {state.pstate for state in states}
    switching = {pstate for state in states for pstate in (state.switch_off, state.switch_on)}
    for pstate, speed in enumerate(speeds):
        if speed == 0 and pstate not in asleep:
            if pstate in switching:
                fix = "write 1 / (seconds of the switch), such as 0.1f for 10 s"
                yield finding_at(node, f"pstate {pstate} has speed 0: a switch would never end", fix)
            else:
                yield finding_at(node, f"pstate {pstate} has speed 0: a job would never end", "write one such as 1Gf")
    if first in asleep | switching:
        yield finding_at(node, f"it starts in pstate {first}, which is not a computing pstate", 'write pstate="0"')


# Checks of the network: the layout of zones (SimGrid's DTD), routes and gateways, and that all hosts are connected.

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
        if node.tag not in ZONES:
            continue
        waiting += node.children
        parts, leaves = ([child for child in node.children if child.tag in kind] for kind in (_PARTS, _LEAVES))
        if parts and leaves:
            later = max(parts[0], leaves[0], key=lambda child: child.line)
            fix = "put the hosts and routers into a zone of their own, and a zoneRoute between the two"
            yield finding_at(later, f"{node.element} has both hosts or routers and zones or clusters", fix)
        tags = [child.tag for child in node.children]
        ranks = [0 if tag == "prop" else 2 if tag in _ROUTES else 1 for tag in tags if not tag.startswith("trace")]
        if ranks != sorted(ranks):
            yield finding_at(node, "SimGrid requires <prop> first and routes last", "move them there")
        routing = node.attributes.get("routing", "Full")
        if routing.lower() not in (known.lower() for known in ROUTINGS):
            yield finding_at(node, f"the routing {routing!r} is unknown", f"take one of {', '.join(ROUTINGS)}")


_DUPLEX = ("SPLITDUPLEX", "FULLDUPLEX")


def check_routes(zones: Zones) -> Iterator[Finding]:
    """All routes of all zones."""
    for zone in zones.all:
        for node in zone.node.children:
            if node.tag in ZONE_ROUTES:
                yield from _check_zone_route(zones, zone, node)
            elif node.tag == "route" and zone.routing != "cluster":
                for name in (name for name in ends(node) if not zone.has(name)):
                    fix = f"add a <host> or <router> of this name to {zone.node.element}, or correct it"
                    if name in zone.parts:
                        fix = "write a <zoneRoute>, with gateways"
                    yield finding_at(node, f"{_route(node)}: no host or router {name!r} in this zone", fix)
            elif node.tag == "host_link":
                if not zone.has(node.attributes.get("id", "")):
                    yield finding_at(node, "no such host in this zone", "correct the id, or put the host first")
                for way in ("up", "down"):
                    name = node.attributes.get(way, "")
                    if not _exists(zones, name):
                        yield finding_at(node, f"no link {name!r}", f"add it, or correct {way!r}")
            if node.tag in (*ZONE_ROUTES, "route"):
                yield from _check_links(zones, node)


def ends(node: XmlNode) -> tuple[str, str]:
    """The two points or zones that a route connects, as its element names them."""
    return node.attributes.get("src", ""), node.attributes.get("dst", "")


def _route(node: XmlNode) -> str:
    return "the route from {!r} to {!r}".format(*ends(node))


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
        if zones.holds(part, gateway):
            continue
        problem = f"{name} {gateway!r}: no router or host has this name"
        if gateway in zones.home:
            problem = f"{name} {gateway!r} is not in the zone {part.name!r} but in {zones.home[gateway].name!r}"
        first = next(iter(part.routers or part.hosts), None)
        if part.is_cluster and part.topology == "FLAT":
            fix = f"the router of this cluster is {part.own_router!r}"
        elif part.is_cluster:
            fix = f"a cluster of topology {part.topology} has no router; take one of its hosts, such as {first!r}"
        else:
            fix = f"take one of its own, such as {first!r}" if first else "add a <router> to that zone"
        yield finding_at(node, f"{_route(node)}: {problem}", fix)


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
            linked = {node.attributes.get("id") for node in zone.node.children if node.tag == "host_link"}
            for name, node in zone.hosts.items():
                if node.tag == "host" and name not in linked:
                    problem = f"no <host_link> connects it to the others of {zone.node.element}"
                    yield finding_at(node, problem, "add one")
        elif zone.routing == "vivaldi":
            for node in (*zone.hosts.values(), *zone.routers.values()):
                if len(node.attributes.get("coordinates", "").split()) != 3:
                    yield finding_at(node, "routing Vivaldi needs its coordinates", 'write coordinates="0 0 0"')
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
    for start, goal in [(start, goal) for start, goals in reached.items() for goal in goals]:
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


def check_platform(
    path: str | os.PathLike[str], simgrid: str = BATSIM_SIMGRID, master: str = "master_host"
) -> list[Finding]:
    """The mistakes in a platform file, in the order of its lines.

    Args:
        path: the XML file.
        simgrid: the version of SimGrid that will read it.
        master: the host that Batsim itself runs on.

    Raises:
        InputError: if the file cannot be read or is not XML.
        ConfigError: if the version of SimGrid is unknown.
    """
    version = simgrid_version(simgrid)
    root = read_xml(path)
    zones = read_zones(root)
    findings: list[Finding] = []
    # SimGrid's parser wants the DOCTYPE word for word
    head = b" ".join(read_bytes(path).partition(b"<platform")[0].split()).replace(b"'", b'"')
    if not any(f'<!DOCTYPE platform SYSTEM "{url}">'.encode() in head for url in (DOCTYPE, OLD_DOCTYPE)):
        fix = f'write <!DOCTYPE platform SYSTEM "{DOCTYPE}"> before it'
        findings.append(finding_at(root, "SimGrid refuses files without its own DOCTYPE", fix))
    if (of_file := root.attributes.get("version")) in ("4", "4.0"):
        fix = f'write version="{PLATFORM_FORMAT}"'
        findings.append(finding_at(root, f"version {of_file} is older than SimGrid 3.16", fix))
    findings += [*check_quantities(root), *check_energy(root, version, master)]
    # wrong routes lead nowhere anyway
    findings += [*check_layout(root), *check_routes(zones)] or check_reach(zones)
    # the error with which Batsim would refuse the file (energy on), unless its element has findings already
    try:
        load_platform(path, energy=True, master=master)
    except ElementError as error:
        if all(finding.element != error.node.element for finding in findings):
            findings.append(finding_at(error.node, *_split(error.text)))
    except InputError as error:
        findings.append(finding_at(root, *_split(str(error).removeprefix(f"{path}: "))))
    return sorted(findings, key=lambda finding: finding.line)


def _split(text: str) -> tuple[str, str]:
    """Problem and fix of an error's text."""
    problem, _, fix = text.rpartition("; ")
    return (problem, fix) if problem else (fix, "correct it")
