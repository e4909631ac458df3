"""What SimGrid's platform files are made of: elements of XML, and values in them.

XML is read as a tree of nodes that know their line, without entities, external files or surprises. Values are versions,
numbers with units, power and sleep states of hosts, and bandwidths, latencies and topologies of a network.
"""

import functools
import math
import os
import re
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import ParseError

import msgspec
from defusedxml.common import DefusedXmlException, DTDForbidden
from defusedxml.ElementTree import DefusedXMLParser

from decision.files.text import read_bytes
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.platform import Dragonfly, FatTree, Flat, Link, PowerState, SleepState, Topology, Torus

BATSIM_SIMGRID = "3.32"  # what Batsim 4.2.1 is built with

FIRST_WITH_NEW_NAMES = (3, 24)  # wattage_per_state, wattage_off: idle, epsilon, all cores
FIRST_WITHOUT_OLD_NAMES = (3, 28)  # watt_per_state, watt_off: idle, one core, all cores
_FIRST_OF_FORMAT = (3, 22)  # format 4.1 under the DOCTYPE below

DOCTYPE = "https://simgrid.org/simgrid.dtd"
OLD_DOCTYPE = "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd"  # the old one, still accepted
PLATFORM_FORMAT = "4.1"


def simgrid_version(text: str) -> tuple[int, int]:
    """Major and minor version from ``3.28``, ``3.23.2`` or ``4``.

    Raises:
        ConfigError: if it is not a version, or is older than the present format of platform files.
    """
    match = re.fullmatch(r"(\d{1,3})(?:\.(\d{1,3}))?(?:\.\d+)*", text.strip())
    version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if version < _FIRST_OF_FORMAT:
        advice = "give a version from 3.22 on, such as 3.24, 3.28 or 4.0"
        raise ConfigError(f"the SimGrid version {text!r}: {advice}", field="simgrid")
    return version


PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")

_NUMBER = re.compile(r"\s*(\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(.*)", re.DOTALL)


def parse_quantity(text: str, units: Mapping[str, float], default: str, quantity: str, known: str) -> float:
    """A number times its unit; `default` is the unit of a number without one.

    Raises:
        ConfigError: if the number is missing, negative or not finite, or the unit unknown; it names the `quantity` that
            is of, and the units best `known`.
    """
    match = _NUMBER.fullmatch(text.strip())
    unit = units.get(match[2] or default) if match else None
    if not match or unit is None or math.isinf(float(match[1]) * unit):
        raise ConfigError(f"the {quantity} {text.strip()!r} is not a number and a unit such as {known}")
    return float(match[1]) * unit


def format_quantity(value: float, units: Mapping[str, float], default: str) -> str:
    """A number with the first of these units, largest first, that keeps it exact; else with the `default` of size 1."""
    for unit, size in units.items():
        text = f"{value / size:.6g}"
        if "e" not in text and float(text) >= 1 and float(text) * size == value:
            return f"{text}{unit}"
    short = f"{value:g}"
    return f"{short if float(short) == value else repr(value)}{default}"


WATTAGE = ("wattage_per_state", "watt_per_state")  # present and old name
WATTAGE_OFF = ("wattage_off", "watt_off")
SLEEP_PSTATES = "sleep_pstates"

_LONG_PREFIXES = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta")
_UNITS = {f"{prefix}f": 1000.0**k for k, prefix in enumerate(PREFIXES)}
_UNITS |= {f"{prefix}flops": 1000.0**k for k, prefix in enumerate(_LONG_PREFIXES)}
_WRITTEN = {f"{prefix}f": _UNITS[f"{prefix}f"] for prefix in reversed(PREFIXES[1:5])}


def parse_speed(text: str) -> float:
    """A speed in flop/s from ``1Gf``, ``100.5Mf``, ``1e-9Mf``, ``2kiloflops``; without a unit it is flop/s.

    Raises:
        ConfigError: if the number is missing, negative or not finite, or the unit unknown.
    """
    return parse_quantity(text, _UNITS, "f", "speed", "f, kf, Mf, Gf or Tf")


@functools.lru_cache(maxsize=64)
def parse_speeds(text: str) -> tuple[float, ...]:
    """The speeds of all pstates, in flop/s, from a comma-separated list."""
    return tuple(parse_speed(part) for part in text.split(","))


@functools.lru_cache(maxsize=64)
def parse_wattage(text: str, old_cores: int = 0) -> tuple[tuple[float, float, float], ...]:
    """Each pstate's watts (idle, epsilon, all cores) from ``95:95:190.7, 93:170``; without epsilon it is idle's.

    Args:
        text: the property's value.
        old_cores: the host's cores if the property has its old name; its three numbers are then those of no core, of
            one core and of all cores, and epsilon follows from them as SimGrid 3.24 to 3.27 made it.

    Raises:
        ConfigError: if a pstate has not two or three numbers, or one is negative or not finite.
    """
    pstates = []
    for part in text.split(","):
        watts = _numbers(part.strip())
        if watts is None or len(watts) not in (2, 3):
            raise ConfigError(f"the power {part.strip()!r} is not Idle:AllCores or Idle:Epsilon:AllCores in watts")
        idle, middle, full = watts[0], watts[-2], watts[-1]
        if old_cores == 1:
            middle = full
        elif old_cores and len(watts) == 3:
            middle -= (full - middle) / (old_cores - 1)
        pstates.append((idle, middle, full))
    return tuple(pstates)


def check_watts(text: str | None) -> None:
    """Refuse a power that is not a number of watts. As in Batsim, the power of a host that is off is only checked.

    Raises:
        ConfigError: if it is negative, not finite or not a number.
    """
    if text is not None and (":" in text or _numbers(text) is None):
        raise ConfigError(f"the power {text!r} of a host that is off is not a number of watts")


def _numbers(text: str) -> list[float] | None:
    """Numbers separated by colons, or None if one is not a finite number of at least 0."""
    try:
        values = [float(value) for value in text.split(":")]
    except ValueError:
        return None
    return values if all(0 <= value < math.inf for value in values) else None


@functools.lru_cache(maxsize=64)
def parse_sleep_states(text: str, nb_pstates: int) -> tuple[SleepState, ...]:
    """Sleep states from Batsim's ``sleep:off:on`` triplets of pstates, separated by commas.

    Raises:
        ConfigError: if a part is not a triplet of known pstates, or a pstate is used for both sleeping and switching.
    """
    states = []
    for part in text.split(","):
        numbers = [number.strip() for number in part.split(":")]
        if len(numbers) != 3 or not all(number.isascii() and number.isdigit() for number in numbers):
            mistake = f"{part.strip()!r} is not a triplet sleep:off:on of pstates such as 13:14:15"
            raise ConfigError(f"sleep_pstates: {mistake}")
        for pstate in map(int, numbers):
            if pstate >= nb_pstates:
                raise ConfigError(f"sleep_pstates: pstate {pstate} does not exist; the host has 0 to {nb_pstates - 1}")
        states.append(SleepState(*map(int, numbers)))
    sleeps = [state.pstate for state in states]
    switches = {pstate for state in states for pstate in (state.switch_off, state.switch_on)}
    for pstate in sleeps:
        if sleeps.count(pstate) > 1 or pstate in switches:
            reason = "each pstate has one use: sleeping, switching or computing"
            raise ConfigError(f"sleep_pstates {text!r} uses pstate {pstate} twice; {reason}")
    return tuple(states)


def power_states(
    speeds: Sequence[float], wattage: str | None, cores: int = 1, old: bool = False
) -> tuple[PowerState, ...]:
    """The pstates of a host of `speeds` (flop/s) whose power is `wattage`, or none; `old` if it has its old name.

    A job computes on one core of each of its hosts. On a host of several cores it therefore reaches a load of
    one core, and the `full` power of a state is what the host draws then. A state without speed counts as fully used.

    Raises:
        ConfigError: if there is not one power per speed.
    """
    if wattage is None:
        return tuple(PowerState(speed) for speed in speeds)
    watts = parse_wattage(wattage, cores if old else 0)
    if len(watts) != len(speeds):
        raise ConfigError(f"{len(watts)} powers for {len(speeds)} pstates; give one per speed")
    return tuple(
        PowerState(speed, idle, epsilon, full if cores == 1 or speed <= 0 else epsilon + (full - epsilon) / cores)
        for speed, (idle, epsilon, full) in zip(speeds, watts, strict=True)
    )


def format_speed(speed: float) -> str:
    """A speed in flop/s with the largest unit that keeps it exact: ``141.24Gf``."""
    return format_quantity(speed, _WRITTEN, "f")


def format_wattage(pstates: Sequence[PowerState], old: bool = False) -> str:
    """The value of ``wattage_per_state`` for these pstates of one core; `old`: of ``watt_per_state``."""
    return ", ".join(f"{p.idle!r}:{p.full if old else p.epsilon!r}:{p.full!r}" for p in pstates)


def format_sleep_states(states: Sequence[SleepState]) -> str:
    """The value of ``sleep_pstates`` for these sleep states."""
    return ", ".join(f"{s.pstate}:{s.switch_off}:{s.switch_on}" for s in states)


# What SimGrid's platform files write of a network, as values: bandwidths, latencies, topologies.

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
    placed = {_PLACES: format_hosts(places)} if len(places) not in (0, topology.nb_hosts) else {}
    return {TOPOLOGY: " ".join(format_topology(topology)).strip(), _LINKS: ", ".join(links), **placed}


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
    try:
        numbers = [tuple(int(number) for number in part.split(",")) for part in parameters.split(";")]
    except ValueError:
        numbers = []
    topology: Topology
    match kind, numbers:
        case "TORUS", [dims]:
            topology = Torus(dims, links[0])
        case "FAT_TREE", [(levels,), down, up, cables] if len(down) == levels:
            topology = FatTree(down, up, cables, tuple(links) * levels if len(links) == 1 else tuple(links))
        case "DRAGONFLY", [(groups, blue), (chassis, black), (routers, green), (nodes,)]:
            topology = Dragonfly(groups, chassis, routers, nodes, links[0], (blue, black, green))
        case _:
            raise ConfigError(f"the {kind} {parameters!r} is not of the form {_FORMS[kind]}")
    if nb_hosts not in (None, topology.nb_hosts):
        raise ConfigError(f"the {kind} {parameters!r} is of {topology.nb_hosts} hosts; there are {nb_hosts}")
    return topology


# XML as a tree of nodes that know their line, read without entities, external files or surprises.


class XmlNode:
    """An element: its tag, attributes, children, and where it is."""

    __slots__ = ("attributes", "children", "line", "path", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], path: str, line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.path = path
        self.line = line
        self.children: list[XmlNode] = []

    @property
    def element(self) -> str:
        """What the element is called in messages: ``<host> 'taurus-1'``."""
        name = self.attributes.get("id", self.attributes.get("version"))
        return f"<{self.tag}>" if name is None else f"<{self.tag}> {name!r}"

    def error(self, text: str) -> InputError:
        """An error that names the file, the line and the element."""
        return ElementError(self, text)


class ElementError(InputError):
    """A fault of one element."""

    def __init__(self, node: XmlNode, text: str) -> None:
        super().__init__(f"{node.path}, line {node.line}, {node.element}: {text}")
        self.node = node
        self.text = text  # the fault alone


class _Tree:
    """Receives a parser's events and builds nodes from them."""

    def __init__(self, path: str, first_line: int) -> None:
        self.path = path
        self.parser = _Parser(target=self, forbid_dtd=True, forbid_entities=True, forbid_external=True)
        self.first_line = first_line
        self.open: list[XmlNode] = []
        self.root: XmlNode | None = None

    def line(self) -> int:
        return int(self.parser.parser.CurrentLineNumber) + self.first_line

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        node = XmlNode(tag, attributes, self.path, self.line())
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)

    def end(self, tag: str) -> None:
        self.open.pop()

    def data(self, text: str) -> None:
        """Text between elements says nothing; but only with this method does the parser refuse unknown entities."""


class _Parser(DefusedXMLParser):
    """Allows a DOCTYPE only if it declares nothing itself. Nothing external is ever fetched."""

    def defused_start_doctype_decl(self, name: str, sysid: str, pubid: str, has_internal_subset: bool) -> None:
        if has_internal_subset:
            raise DTDForbidden(name, sysid, pubid)


def read_xml(path: str | os.PathLike[str]) -> XmlNode:
    """The root of an XML file.

    Raises:
        InputError: if the file is unreadable, not well-formed, or declares entities or a DTD of its own.
    """
    data = read_bytes(path)
    text = data.lstrip()  # SimGrid allows blank lines before <?xml
    tree = _Tree(str(path), data[: len(data) - len(text)].count(b"\n"))
    try:
        tree.parser.feed(text)
        tree.parser.close()
    except ParseError as error:
        line = error.position[0] + tree.first_line
        reason = str(error).partition(": line")[0]  # the parser says the line, too
        raise InputError(f"{path}, line {line}: not well-formed XML: {reason}") from None
    except DefusedXmlException:
        reason = "a DOCTYPE with declarations, an entity or an external file is refused; remove it"
        raise InputError(f"{path}, line {tree.line()}: {reason}") from None
    except (ValueError, LookupError) as error:  # an unknown or impossible encoding
        raise InputError(f"{path}: not readable as XML: {error}") from None
    if tree.root is None:
        raise InputError(f"{path}: not well-formed XML: no element found")
    return tree.root
