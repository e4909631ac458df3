"""Checks of hosts and links by themselves: units, bits taken for bytes, power, sleep states and speeds of pstates."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping

from decision.formats.simgrid import (
    FIRST_WITH_NEW_NAMES,
    FIRST_WITHOUT_OLD_NAMES,
    SLEEP_PSTATES,
    WATTAGE,
    WATTAGE_OFF,
    parse_sleep_states,
    parse_speed,
    parse_speeds,
    parse_wattage,
)
from decision.formats.simgrid_network import NOMINAL, format_bandwidth, parse_bandwidth, parse_latency
from decision.formats.xml_nodes import XmlNode
from decision.model.errors import ConfigError

from .structure import Finding, finding_at

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
        for kinds, check in ((_BANDWIDTHS, _check_bandwidth), (_LATENCIES, _check_latency)):
            for name in kinds.get(node.tag, ()):
                if node.attributes.get(name):
                    yield from check(node, name)
        if node.tag in _SPEEDS and "speed" in node.attributes:
            for text in node.attributes["speed"].split(","):
                yield from _check_unit(node, "speed", text, parse_speed, "flop/s", "f, such as 1Gf")


def _check_bandwidth(node: XmlNode, name: str) -> Iterator[Finding]:
    for text in re.split("[;,]", node.attributes[name]):
        yield from _check_unit(node, name, text, parse_bandwidth, "bytes per second", "Bps, such as 125MBps")
        yield from _check_bits(node, name, text.strip())


def _check_latency(node: XmlNode, name: str) -> Iterator[Finding]:
    text = node.attributes[name]
    wrong = list(_check_unit(node, name, text, parse_latency, "seconds", "s, such as 50us"))
    yield from wrong
    if not wrong and parse_latency(text) >= _LONG:
        yield finding_at(node, f'{name}="{text}" is longer than the latency of any network', "write it in us or ms")


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
    hosts = [(node, _properties(node)) for node in _descendants(root) if node.tag in _HOSTS]
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
            yield finding_at(node, "no power is given, but other hosts have it", f"add a <prop> {_present(version)!r}")


def _descendants(root: XmlNode) -> Iterator[XmlNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children


def _properties(node: XmlNode) -> dict[str, str]:
    """The complete <prop> children; of two with the same name SimGrid keeps the first."""
    properties: dict[str, str] = {}
    for child in node.children:
        if child.tag == "prop" and {"id", "value"} <= child.attributes.keys():
            properties.setdefault(child.attributes["id"], child.attributes["value"])
    return properties


def _present(version: tuple[int, int]) -> str:
    return WATTAGE[version < FIRST_WITH_NEW_NAMES]


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
