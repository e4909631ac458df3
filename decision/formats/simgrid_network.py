"""What SimGrid's platform files write of a network, as values: bandwidths, latencies, topologies."""

from collections.abc import Mapping, Sequence

import msgspec

from decision.model.errors import ConfigError
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.topology import Dragonfly, FatTree, Flat, Link, Topology, Torus

from .simgrid import PREFIXES, format_quantity, parse_quantity

# A topology that SimGrid's <cluster> cannot express, such as a fat-tree whose levels differ, is a zone with two
# properties
TOPOLOGY = "decision_topology"  # what a cluster has as "topology" and "topo_parameters"
_LINKS = "decision_links"  # of each level or of all, or of each host and the backbone
_PLACES = "decision_places"  # those that have a host, in the order of the file, where others are empty

_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_BYTES = {f"{prefix}Bps": 1000.0**k for k, prefix in enumerate(PREFIXES)}
_BYTES |= {f"{prefix}Bps": 1024.0**k for k, prefix in enumerate(_BINARY, 1)}
_BANDWIDTHS = _BYTES | {unit.replace("B", "b"): bytes_ / 8 for unit, bytes_ in _BYTES.items()}
_LATENCIES = {"w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LATENCIES["ps"] = 1e-12

NOMINAL = (1.0, 2.5, 10.0, 25.0, 40.0, 50.0, 56.0, 100.0, 200.0, 400.0, 800.0)  # Gbit/s: rates that networks have

_FORMS = {
    "TORUS": "4,4,2 (hosts in each dimension)",
    "FAT_TREE": "2;4,4;1,2;1,1 (levels; devices below each switch; switches above each device; parallel cables)",
    "DRAGONFLY": "4,1;2,1;6,1;3 (groups, cables; chassis, cables; routers, cables; hosts on a router)",
}


def parse_bandwidth(text: str) -> float:
    """Bytes per second from ``1.25GBps``, ``10Gbps`` (bits), ``1MiBps``; without a unit it is bytes.

    Raises:
        ConfigError: if the number is missing, negative or not finite, or the unit unknown.
    """
    return parse_quantity(text, _BANDWIDTHS, "Bps", "bandwidth", "MBps, GBps (bytes), Mbps or Gbps (bits)")


def parse_latency(text: str) -> float:
    """Seconds from ``50us``, ``1ms``, ``0s``; without a unit it is seconds. Raises as `parse_bandwidth`."""
    return parse_quantity(text, _LATENCIES, "s", "latency", "s, ms, us or ns")


def format_bandwidth(bandwidth: float) -> str:
    """Bytes per second with the largest unit that keeps them exact: ``1.25GBps``.

    What would look like a rate in bits, written in bytes by mistake, is written in bits: ``80Gbps`` for 10 GB/s.
    """
    if bandwidth / 1e9 in NOMINAL:
        return f"{bandwidth * 8 / 1e9:g}Gbps"
    return format_quantity(bandwidth, {unit: _BYTES[unit] for unit in ("TBps", "GBps", "MBps", "kBps")}, "Bps")


def format_latency(latency: float) -> str:
    """Seconds with a unit that keeps them exact: ``50us``."""
    return format_quantity(latency, {unit: _LATENCIES[unit] for unit in ("s", "ms", "us", "ns")}, "s")


def topology_of_cluster(attributes: Mapping[str, str], nb_hosts: int) -> Topology:
    """The topology of a <cluster> with these attributes.

    Raises:
        ConfigError: if SimGrid would not take them, or they are not of `nb_hosts` hosts.
    """
    kind, parameters = attributes.get("topology", "FLAT"), attributes.get("topo_parameters", "")
    links = [_link(attributes["bw"], attributes["lat"])]
    if kind == "FLAT" and attributes.get("bb_bw"):
        links.append(_link(attributes["bb_bw"], attributes.get("bb_lat", "0s")))
    return _topology(kind, parameters, links, nb_hosts)


def topology_of_zone(properties: Mapping[str, str], nb_hosts: int) -> tuple[Topology, Sequence[int]]:
    """The topology of a <zone> with the properties of `zone_properties`, and the places of its hosts, ascending.

    Errors as `topology_of_cluster`.
    """
    kind, _, parameters = properties[TOPOLOGY].partition(" ")
    links = [_link(*text.strip().split(" ", 1)) for text in properties.get(_LINKS, "").split(",")]
    places = parse_hosts(properties[_PLACES]) if _PLACES in properties else range(nb_hosts)
    if len(places) != nb_hosts:
        raise ConfigError(f"{_PLACES} has {len(places)} places; there are {nb_hosts} hosts")
    known = _PLACES not in properties or kind == "FLAT"
    topology = _topology(kind, parameters, links, nb_hosts if known else None)
    if places and places[-1] >= topology.nb_hosts:
        raise ConfigError(f"{_PLACES} has the place {places[-1]}; the {kind} {parameters!r} has {topology.nb_hosts}")
    return msgspec.structs.replace(topology, pooled=True) if isinstance(topology, FatTree) else topology, places


def zone_properties(topology: Flat | FatTree, places: Sequence[int] = ()) -> dict[str, str]:
    """What says of a zone that it is this topology, and at which places its hosts are if not at all of them."""
    links = (f"{format_bandwidth(link.bandwidth)} {format_latency(link.latency)}" for link in links_of(topology))
    own = {_PLACES: format_hosts(places)} if len(places) not in (0, topology.nb_hosts) else {}
    return {TOPOLOGY: " ".join(format_topology(topology)).strip(), _LINKS: ", ".join(links), **own}


def links_of(topology: Topology) -> tuple[Link, ...]:
    """One link of each level of a fat-tree; of another topology its one link, and the backbone where there is one."""
    match topology:
        case FatTree(links=links):
            return links
        case Flat(link=link, backbone=Link() as backbone):
            return link, backbone
    return (topology.link,)


def format_topology(topology: Topology) -> tuple[str, str]:
    """The attributes `topology` and `topo_parameters` of a <cluster>."""
    match topology:
        case Torus(dims=dims):
            return "TORUS", _join(dims)
        case FatTree(down=down, up=up, cables=cables):
            return "FAT_TREE", f"{len(down)};{_join(down)};{_join(up)};{_join(cables)}"
        case Dragonfly(groups=groups, chassis=chassis, routers=routers, nodes=nodes, cables=(blue, black, green)):
            return "DRAGONFLY", f"{groups},{blue};{chassis},{black};{routers},{green};{nodes}"
    return "FLAT", ""


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _link(bandwidth: str, latency: str = "") -> Link:
    return Link(parse_bandwidth(bandwidth), parse_latency(latency))


def _topology(kind: str, parameters: str, links: Sequence[Link], nb_hosts: int | None) -> Topology:
    """The topology of so many hosts, or of as many as it says; one that is flat says nothing."""
    if kind == "FLAT" and nb_hosts is not None:
        return Flat(nb_hosts, *links[:2])
    if kind not in _FORMS:
        raise ConfigError(f"the topology {kind!r} is none of FLAT, {', '.join(_FORMS)}")
    topology = _build(kind, parameters, links)
    if topology is None:
        raise ConfigError(f"the {kind} {parameters!r} is not of the form {_FORMS[kind]}")
    if nb_hosts not in (None, topology.nb_hosts):
        raise ConfigError(f"the {kind} {parameters!r} is of {topology.nb_hosts} hosts; there are {nb_hosts}")
    return topology


def _build(kind: str, parameters: str, links: Sequence[Link]) -> Topology | None:
    """The topology, or None if the parameters are not of its form."""
    try:
        numbers = [tuple(int(number) for number in part.split(",")) for part in parameters.split(";")]
    except ValueError:
        return None
    match kind, numbers:
        case "TORUS", [dims]:
            return Torus(dims, links[0])
        case "FAT_TREE", [(levels,), down, up, cables] if len(down) == levels:
            return FatTree(down, up, cables, tuple(links) * levels if len(links) == 1 else tuple(links))
        case "DRAGONFLY", [(groups, blue), (chassis, black), (routers, green), (nodes,)]:
            return Dragonfly(groups, chassis, routers, nodes, links[0], (blue, black, green))
    return None
