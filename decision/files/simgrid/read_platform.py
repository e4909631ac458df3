"""SimGrid's platform files, as Batsim 4.2.1 (SimGrid 3.32) reads them: hosts, power, sleep states, roles.

Of the network two things are read. The topology comes from the attributes of a <cluster> that holds all compute hosts,
or from the properties "decision_topology" and "decision_links" of a <zone> that does. The routes of Batsim's own
messages come from links and routes (`routes`).
A host of several cores is one resource that gives a job the speed of one core, as in Batsim.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cmp_to_key
from itertools import chain

import msgspec

from decision.model.computer import find_platform
from decision.model.errors import ConfigError, InputError, flag, mapping, text, whole
from decision.model.platform import MAX_HOSTS, Host, Platform, Topology

from .routes import routes_to
from .values import (
    TOPOLOGY,
    WATTAGE,
    WATTAGE_OFF,
    XmlNode,
    check_watts,
    parse_sleep_states,
    parse_speeds,
    power_states,
    read_xml,
    topology_of_cluster,
    topology_of_zone,
)

# The hosts of a platform file, each with the properties and the network of the zones around it.

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
            # its properties are its hosts', and also the zone's where the cluster is flat
            properties = properties_of(node)
            flat = node.tag == "cluster" and node.attributes.get("topology", "FLAT") == "FLAT"
            zone = {**outer, **properties} if flat else outer
            around = network or node if node.tag == "cluster" else network
            for number in radical(node):
                name = f"{node.attributes['prefix']}{number}{node.attributes['suffix']}"
                yield FileHost(name, node, dict(properties), zone, around)
        elif node.tag in ("platform", "zone", "AS"):
            properties = properties_of(node)
            inner, network = {**outer, **properties}, network or (node if TOPOLOGY in properties else None)
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


def radical(node: XmlNode) -> Iterator[int]:
    """The numbers of a cluster's hosts, of which ``radical`` gives a list like ``0-3,7``."""
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
    named: dict[str, FileHost] = {}
    for host in hosts:
        if host.name in named:
            line = named[host.name].node.line
            raise host.node.error(f"a host {host.name!r} exists already (line {line}); make names unique")
        named[host.name] = host
    by_name = sorted(named.values(), key=lambda host: host.name.encode())
    return sorted(by_name, key=cmp_to_key(_compare_numbers)) if by_numbers else by_name


_ROLES = ("", "compute_node", "storage", "master")
_MODELLED = {"sharing_policy": "SPLITDUPLEX", "bb_sharing_policy": "SHARED"}  # also where they are not given


def load_platform(
    path: str | os.PathLike[str],
    energy: bool = False,
    roles: Mapping[str, str] | None = None,
    master: str = "master_host",
    mmax: int | None = None,
    by_numbers: bool = False,
) -> Platform:
    """Read a SimGrid platform.

    Args:
        path: the XML file, or the name of a shipped platform (``taurus``).
        energy: energy will be simulated: mistakes in power and sleep states are errors (they are ignored otherwise).
        roles: role by host name, in addition to those that the file gives ("compute_node", "storage", "master").
        master: the host that Batsim itself runs on.
        mmax: use the first `mmax` compute hosts only.
        by_numbers: ids are in Batsim 5's order of names, in which node-2 comes before node-10.

    Raises:
        InputError: if Batsim would refuse the file; one line with file, line, element and what to do.

    Examples:
        >>> import decision as d
        >>> [host.name for host in d.load_platform("toy").hosts]
        ['node-000', 'node-001', 'node-002', 'node-003']
    """
    energy, path, roles = flag("energy", energy), find_platform(path), mapping("roles", roles, '{"node-0": "storage"}')
    master, mmax = text("master", master), None if mmax is None else whole("mmax", mmax)
    root = read_xml(path)
    if root.tag != "platform":
        raise root.error("the root of a SimGrid platform is <platform version='4.1'>")
    try:
        version = float(root.attributes.get("version", "0"))
    except ValueError:
        version = 0.0
    if not 4.0 <= version <= 4.1:
        raise root.error("only versions 4 and 4.1 are read; use simgrid_update_xml to bring the file up to date")
    in_order = list(hosts_of(root))
    sorted_hosts = hosts_by_name(in_order, by_numbers)
    by_role = _assign_roles(sorted_hosts, {master: "master", **roles})
    if len(by_role["master"]) != 1:
        names = ", ".join(h.name for h in by_role["master"]) or "none"
        raise InputError(
            f"{path}: there must be one master host (found: {names}); add <host id={master!r}> or name another"
        )
    compute = by_role["compute_node"]
    if mmax is not None and not 1 <= mmax <= len(compute):
        raise InputError(f"{path}: {len(compute)} compute hosts, {mmax} wanted; choose 1 to {len(compute)}")
    if not compute:
        raise InputError(f"{path}: no compute host; add <host> or <cluster>")
    compute = compute[:mmax]
    hosts = [_host(number, f, energy, True) for number, f in enumerate(compute)]
    storage = [_host(number, f, energy, False) for number, f in enumerate(by_role["storage"], len(hosts))]
    topology, places, unmodelled = _network(in_order, compute)
    master_host = by_role["master"][0]
    made: dict[int, list[str]] = {}
    for host in in_order:
        made.setdefault(id(host.node), []).append(host.name)
    try:
        routes = routes_to(root, made, [host.name for host in compute], master_host.name)
    except ConfigError as error:
        raise InputError(f"{path}: {error}") from None
    return Platform(
        hosts=tuple(hosts),
        storage=tuple(storage),
        master=master_host.name,
        path=str(path),
        topology=topology,
        places=places,
        unmodelled=unmodelled,
        routes=routes,
    )


# ------------------------------------------------------------------------------------------------- roles


def _assign_roles(hosts: Sequence[FileHost], roles: Mapping[str, str]) -> dict[str, list[FileHost]]:
    """Hosts by role. Like Batsim, it leaves a `role` among each host's properties."""
    by_role: dict[str, list[FileHost]] = {"compute_node": [], "storage": [], "master": []}
    for host in hosts:
        given = [host.properties["role"]] if "role" in host.properties else []
        role = ",".join(given + ([roles[host.name]] if host.name in roles else []))
        if role not in _ROLES:
            known = "compute_node, storage or master"
            raise host.node.error(f"host {host.name!r} has the role {role!r}; it must be one of {known}")
        host.properties = {"role": role} | host.properties | {"role": role}
        by_role[role or "compute_node"].append(host)
    return by_role


# ----------------------------------------------------------------------------------------------- network


def _network(in_order: Sequence[FileHost], compute: Sequence[FileHost]) -> tuple[Topology | None, tuple[int, ...], str]:
    """The topology that holds all compute hosts, if there is one, their places in it unless these are their ids, and
    what else it has."""
    network = compute[0].network
    if network is None or any(host.network is not network for host in compute):
        return None, (), ""
    members = [host.name for host in in_order if host.network is network]
    topology: Topology
    at: Sequence[int] = range(len(members))
    try:
        if network.tag == "cluster":
            topology = topology_of_cluster(network.attributes, len(members))
        else:
            topology, at = topology_of_zone(properties_of(network), len(members))
    except ConfigError as error:
        raise network.error(str(error)) from None
    unmodelled = ""  # what a <cluster> has that its topology does not say
    for name in reversed(("sharing_policy", "bb_sharing_policy", "limiter_link", "loopback_bw")):
        if network.attributes.get(name, _MODELLED.get(name, "")) not in (_MODELLED.get(name, ""), ""):
            unmodelled = f"{name} {network.attributes[name]!r}"
    place = dict(zip(members, at, strict=True))
    places = tuple(place[host.name] for host in compute)
    in_place = places == tuple(range(len(places)))
    return topology, () if in_place else places, unmodelled


# ------------------------------------------------------------------------------------------ power and speed


def _host(number: int, entry: FileHost, energy: bool, computes: bool) -> Host:
    try:
        host = _build(number, entry, energy)
        # computing needs a speed above 0; so does switching, which takes 1/speed seconds
        if computes and energy and not host.is_computing_pstate(host.initial_pstate):
            raise ConfigError(f"the attribute 'pstate' is {host.initial_pstate}, which is not a computing pstate")
        pstates = set(range(len(host.pstates))) - host.sleep_pstates if energy else {host.initial_pstate}
        for pstate in sorted(pstates) if computes else ():
            if host.pstates[pstate].speed <= 0:
                raise ConfigError(f"pstate {pstate} has a speed of 0; compute hosts need more (or the role 'storage')")
    except ConfigError as error:
        name = "" if entry.node.tag in ("host", "peer") else f"host {entry.name!r}: "
        raise entry.node.error(f"{name}{error}") from None
    return host


def _build(number: int, entry: FileHost, energy: bool) -> Host:
    for name in PROFILE_FILES:
        if name in entry.node.attributes:
            change = "a host that changes during the run, which neither Batsim nor the embedded engine follows"
            raise ConfigError(f"{name}: {change}; remove it")
    speeds = parse_speeds(entry.node.attributes["speed"])
    pstate = _integer(entry.node, "pstate", 0, len(speeds) - 1)
    cores = _integer(entry.node, "core", 1, 2**31 - 1)
    wattage = _property(entry, WATTAGE)
    sleep = entry.properties.get("sleep_pstates")
    try:
        check_watts(_property(entry, WATTAGE_OFF))
        states = power_states(speeds, wattage, cores, old=WATTAGE[0] not in entry.properties)
        sleeps = () if sleep is None else parse_sleep_states(sleep, len(speeds))
    except ConfigError:
        if energy:
            raise
        states, sleeps, wattage = power_states(speeds, None), (), None
    return Host(
        id=number,
        name=entry.name,
        pstates=states,
        sleep=sleeps,
        initial_pstate=pstate,
        cores=cores,
        has_power=wattage is not None,
        properties=entry.properties,
        zone_properties=entry.zone_properties,
    )


def _property(entry: FileHost, names: tuple[str, ...]) -> str | None:
    """The property under the first name that the host has."""
    return next((entry.properties[name] for name in names if name in entry.properties), None)


def _integer(node: XmlNode, attribute: str, least: int, most: int) -> int:
    text = node.attributes.get(attribute, str(least))
    try:
        value = int(float(text))  # SimGrid's own default is "0.0"
    except (ValueError, OverflowError):
        value = least - 1
    if not least <= value <= most:
        raise ConfigError(f"the attribute {attribute!r} must be a whole number from {least} to {most}; found {text!r}")
    return value
