"""Power and sleep states: their names, their counts, and pstates in which nothing can be computed."""

import difflib
from collections.abc import Iterator, Mapping

from decision.formats.power import (
    SLEEP_PSTATES,
    WATTAGE,
    WATTAGE_OFF,
    parse_sleep_states,
    parse_speeds,
    parse_wattage,
)
from decision.formats.simgrid import FIRST_WITH_NEW_NAMES, FIRST_WITHOUT_OLD_NAMES
from decision.formats.xml_nodes import Node
from decision.model.errors import ConfigError

from .finding import Finding, found

_HOSTS = ("host", "cluster", "peer", "cabinet")
_KNOWN = (*WATTAGE, *WATTAGE_OFF, SLEEP_PSTATES)
_SIMILAR = 0.85  # share of equal letters from which on a property is probably a misspelt one
_NOT_COMPUTING = ("storage", "master")


def check_energy(root: Node, version: tuple[int, int], master: str) -> Iterator[Finding]:
    """Properties of all hosts and clusters, for the SimGrid that will read them."""
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
            yield found(node, "no power, while other hosts have some", f"add a <prop> {_present(version)!r}")


def _descendants(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children


def _properties(node: Node) -> dict[str, str]:
    """The <prop> children that are whole; of two with one name SimGrid keeps the first."""
    properties: dict[str, str] = {}
    for child in node.children:
        if child.tag == "prop" and {"id", "value"} <= child.attributes.keys():
            properties.setdefault(child.attributes["id"], child.attributes["value"])
    return properties


def _present(version: tuple[int, int]) -> str:
    return WATTAGE[version < FIRST_WITH_NEW_NAMES]


def _check_names(node: Node, properties: Mapping[str, str], version: tuple[int, int]) -> Iterator[Finding]:
    simgrid = ".".join(map(str, version))
    for new, old in (WATTAGE, WATTAGE_OFF):
        if old in properties and new not in properties and version >= FIRST_WITHOUT_OLD_NAMES:
            mend = f"rename it {new!r}"
            if new == WATTAGE[0]:
                mend += ", and make the middle of three numbers that of no load (epsilon) instead of that of one core"
            yield found(node, f"SimGrid {simgrid} no longer reads {old!r}", mend)
        if new in properties and old not in properties and version < FIRST_WITH_NEW_NAMES:
            yield found(node, f"SimGrid {simgrid} does not read {new!r} yet", f"rename it {old!r}")
    for name in properties:
        near = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=_SIMILAR)
        if near and name not in _KNOWN:
            yield found(node, f"nobody reads the property {name!r}", f"was {near[0]!r} meant?")


def _check_form(node: Node, properties: Mapping[str, str]) -> Iterator[Finding]:
    """Powers and sleep states that cannot be read, or not one power for each pstate."""
    nb_pstates = node.attributes.get("speed", "").count(",") + 1
    for name in WATTAGE:
        if name not in properties:
            continue
        try:
            watts = parse_wattage(properties[name])
        except ConfigError as error:
            yield found(node, str(error), f"correct {name!r}")
            continue
        if len(watts) != nb_pstates:
            mend = "give one power per speed, separated by commas"
            yield found(node, f"{len(watts)} powers in {name!r} for {nb_pstates} pstates", mend)
        if any(idle > full for idle, _, full in watts):
            mend = "write idle first and all cores last"
            yield found(node, f"{name!r} says that a host draws more without load than with it", mend)
    if SLEEP_PSTATES in properties:
        try:
            parse_sleep_states(properties[SLEEP_PSTATES], nb_pstates)
        except ConfigError as error:
            yield found(node, str(error), f"correct {SLEEP_PSTATES!r}")


def _check_speeds(node: Node, properties: Mapping[str, str]) -> Iterator[Finding]:
    """Computing and switching need speed; so does the first pstate of all."""
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
                mend = "write 1 / (seconds of the switch), such as 0.1f for 10 s"
                yield found(node, f"pstate {pstate} has a speed of 0, at which no switch ends", mend)
            else:
                yield found(node, f"pstate {pstate} has a speed of 0, at which no job ends", "write one such as 1Gf")
    if first in asleep | switching:
        yield found(node, f"it starts in pstate {first}, which is not one of computing", 'write pstate="0"')
