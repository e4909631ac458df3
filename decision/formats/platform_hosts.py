"""The hosts of a platform file, each with the properties and the network of the zones around it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cmp_to_key
from itertools import chain

import msgspec

from decision.model.platform import MAX_HOSTS

from .simgrid_network import TOPOLOGY
from .xml_nodes import XmlNode

PROFILE_FILES = ("speed_file", "availability_file", "state_file")
_NETWORK = ("sharing_policy", "bb_bw", "bb_lat", "bb_sharing_policy", "limiter_link", "loopback_bw", "loopback_lat")

# element: attributes that it must have, attributes that it may have
_ATTRIBUTES = {
    "zone": (("id", "routing"), ()),
    "AS": (("id", "routing"), ()),
    "host": (("id", "speed"), ("core", "pstate", "coordinates", *PROFILE_FILES)),
    "cluster": (
        ("id", "prefix", "suffix", "radical", "speed", "bw", "lat"),
        ("core", "topology", "topo_parameters", "router_id", *_NETWORK),
    ),
    "cabinet": (("id", "prefix", "suffix", "radical", "speed", "bw", "lat"), ()),
    "peer": (("id", "speed", "bw_in", "bw_out"), ("lat", "coordinates", *PROFILE_FILES)),
    "prop": (("id", "value"), ()),
}
_IGNORED = {
    *("config", "random", "trace", "trace_connect", "link", "backbone", "router", "host_link", "disk"),
    *("route", "zoneRoute", "ASroute", "bypassRoute", "bypassZoneRoute", "bypassASroute", "actor", "process"),
}

_REMOVED = {"include": "3.18", "storage": "3.27", "storage_type": "3.27", "mount": "3.27"}


class FileHost(msgspec.Struct):
    """A host as the file has it."""

    name: str
    node: XmlNode
    properties: dict[str, str]
    zone_properties: Mapping[str, str]
    network: XmlNode | None = None  # the element whose topology it is part of


def hosts_of(root: XmlNode) -> Iterator[FileHost]:
    """All hosts in the order of the file, each with the properties and the network of the zones around it.

    Raises:
        InputError: for what SimGrid does not know.
    """
    waiting: list[tuple[XmlNode, Mapping[str, str], XmlNode | None]] = [(root, {}, None)]
    while waiting:
        node, outer, network = waiting.pop()
        if node is not root:
            _check(node)
        if node.tag in ("host", "peer"):
            yield FileHost(node.attributes["id"], node, properties_of(node), outer, network)
        elif node.tag in ("cluster", "cabinet"):
            yield from _cluster(node, outer, network)
        elif node.tag in ("platform", "zone", "AS"):
            own = properties_of(node)
            inner, network = {**outer, **own}, network or (node if TOPOLOGY in own else None)
            waiting += [(child, inner, network) for child in reversed(node.children)]


def _check(node: XmlNode) -> None:
    """Refuse elements and attributes that SimGrid does not know."""
    if node.tag in _REMOVED:
        raise node.error(f"removed in SimGrid {_REMOVED[node.tag]}; put its content into this file")
    if node.tag in _IGNORED:
        return
    if node.tag not in _ATTRIBUTES:
        raise node.error("SimGrid knows no such element; correct its name or remove it")
    needed, optional = _ATTRIBUTES[node.tag]
    for name in node.attributes:
        if name not in needed and name not in optional:
            raise node.error(f"SimGrid knows no attribute {name!r} here; correct its name or remove it")
    for name in needed:
        if name not in node.attributes:
            raise node.error(f"the attribute {name!r} is missing; add it")


def properties_of(node: XmlNode) -> dict[str, str]:
    """The <prop> children of an element; of two with one name SimGrid keeps the first."""
    properties: dict[str, str] = {}
    for child in node.children:
        if child.tag == "prop":
            _check(child)
            properties.setdefault(child.attributes["id"], child.attributes["value"])
    return properties


def _cluster(node: XmlNode, outer: Mapping[str, str], network: XmlNode | None) -> Iterator[FileHost]:
    """The hosts of a cluster. Its properties are its hosts', and also the zone's where the cluster is flat."""
    properties = properties_of(node)
    flat = node.tag == "cluster" and node.attributes.get("topology", "FLAT") == "FLAT"
    zone = {**outer, **properties} if flat else outer
    if node.tag == "cluster":
        network = network or node
    for number in radical(node):
        name = f"{node.attributes['prefix']}{number}{node.attributes['suffix']}"
        yield FileHost(name, node, dict(properties), zone, network)


def radical(node: XmlNode) -> Iterator[int]:
    """Host numbers from ``0-3,7``."""
    intervals = []
    for part in node.attributes["radical"].split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or max(len(first), len(last)) > 9:
            raise node.error(f"radical: {part!r} is neither a number nor an interval like 0-15")
        intervals.append(range(int(first), int(last if dash else first) + 1))
    if sum(map(len, intervals)) > MAX_HOSTS:
        raise node.error(f"radical: more than {MAX_HOSTS} hosts; make it shorter")
    return chain.from_iterable(intervals)


_PARTS = re.compile(r"[0-9]+|[^0-9]")  # of a name


def _compare_numbers(one: FileHost, other: FileHost) -> int:
    """Whether a host's name comes before another's (below 0) where digits in a row are a number."""
    parts = [_PARTS.findall(host.name) for host in (one, other)]
    for mine, others in zip(*parts, strict=False):
        if mine.isdigit() and others.isdigit() and int(mine) != int(others):
            return int(mine) - int(others)
        if mine != others and not (mine.isdigit() and others.isdigit()):
            return -1 if mine.encode() < others.encode() else 1
    return len(parts[0]) - len(parts[1])


def hosts_by_name(hosts: Iterable[FileHost], by_numbers: bool) -> list[FileHost]:
    """Hosts in the order of their ids: by name, byte by byte, or where digits in a row are a number."""
    found: dict[str, FileHost] = {}
    for host in hosts:
        if host.name in found:
            line = found[host.name].node.line
            raise host.node.error(f"a host {host.name!r} exists already (line {line}); make names unique")
        found[host.name] = host
    by_name = sorted(found.values(), key=lambda host: host.name.encode())
    return sorted(by_name, key=cmp_to_key(_compare_numbers)) if by_numbers else by_name
