"""Speeds, bandwidths and latencies: their units, and bits taken for bytes."""

import re
from collections.abc import Callable, Iterator

from decision.formats.network import NOMINAL, format_bandwidth, parse_bandwidth, parse_latency
from decision.formats.power import parse_speed
from decision.formats.xml_nodes import Node
from decision.model.errors import ConfigError

from .finding import Finding, found

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


def check_quantities(root: Node) -> Iterator[Finding]:
    """Quantities without or with unknown units, and those that are probably not meant."""
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


def _check_bandwidth(node: Node, name: str) -> Iterator[Finding]:
    for text in re.split("[;,]", node.attributes[name]):
        yield from _check_unit(node, name, text, parse_bandwidth, "bytes per second", "Bps, such as 125MBps")
        yield from _check_bits(node, name, text.strip())


def _check_latency(node: Node, name: str) -> Iterator[Finding]:
    text = node.attributes[name]
    wrong = list(_check_unit(node, name, text, parse_latency, "seconds", "s, such as 50us"))
    yield from wrong
    if not wrong and parse_latency(text) >= _LONG:
        yield found(node, f'{name}="{text}" is longer than any network\'s', "write it in us or ms")


def _check_unit(
    node: Node, name: str, text: str, parse: Callable[[str], float], default: str, mend: str
) -> Iterator[Finding]:
    """A unit that is missing (SimGrid reads its own, and warns) or unknown."""
    try:
        value = parse(text)
    except ConfigError as error:
        yield found(node, str(error), f"write {name} with the unit {mend}")
        return
    if value and _NUMBER.fullmatch(text):
        yield found(node, f'{name}="{text.strip()}" has no unit; SimGrid reads {default}', f"add the unit {mend}")


def _check_bits(node: Node, name: str, text: str) -> Iterator[Finding]:
    """Rates that networks have in bits, written as bytes; or already divided by 8, and written as bits."""
    match = _RATE.fullmatch(text)
    if not match:
        return
    value = float(match[1]) / (1000 if match[2] == "Mbps" else 1)
    if match[2] == "GBps" and value in NOMINAL:
        mend = f"write {format_bandwidth(value / 8 * 1e9)} for {value:g} Gbit/s, or {value * 8:g}Gbps if it is meant"
        yield found(node, f'{name}="{text}" is {value * 8:g} Gbit/s; networks of {value:g} Gbit/s are common', mend)
    elif match[2] != "GBps" and value not in NOMINAL and value * 8 in NOMINAL:
        common = f"{text[:-3]}Bps"
        problem = f'{name}="{text}" is in bits; networks of {value * 8:g} Gbit/s, {common}, are common'
        yield found(node, problem, f"write {common} for bytes, or {format_bandwidth(value / 8 * 1e9)} if it is meant")
