"""topology.conf or topology.yaml of topology/tree: switches below switches, down to nodes; as they are, or a tree.

Lines are those of the manual page topology.conf(5): ``SwitchName=s0 Nodes=n[1-18]``, ``SwitchName=top
Switches=s[0-3]``. As Slurm does, a leaf switch is of level 0 and any other one level above the highest switch below it;
a switch that hangs higher than the next level is taken for a chain of switches. LinkSpeed is read and not used, as in
Slurm.

Design
------
A platform gets a `FatTree` with empty places: as wide at each level as its widest switch. So everything that knows
trees (allocations, hops, contention, files) knows these, too. Rejected: a topology of its own for trees of any shape,
which each of them would have to learn. The model of Slurm takes the switches as they are (`read_forest`): which of them
comes first in the file decides between equal ones, and several trees may stand side by side.
"""

import re
from collections.abc import Container, Iterator, Sequence
from math import prod
from pathlib import Path

import msgspec

from decision.model.errors import InputError
from decision.model.platform import MAX_HOSTS

from .conf import ConfLine, logical_lines, pairs_of, read_text
from .text import read_hosts

_FORM = "write it as SwitchName=s0 Nodes=n[1-18], or SwitchName=top Switches=s[0-3]"
_KEYS = {"switchname", "nodes", "switches", "linkspeed"}
_DEEPEST = 20  # switches above one another, as in Slurm


class _Switch(msgspec.Struct):
    """A line of the file."""

    name: str
    nodes: list[str]
    below: list[str]  # names of switches
    line: ConfLine
    level: int = -1  # not known yet
    twin: list[str] = []  # switches below it that are all below another one first; then it has none of its own


class Switch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A switch of a cluster, at its place in the file."""

    name: str
    level: int = 0  # of leaves
    above: int = -1  # the number of the switch above it; -1 for none
    nodes: tuple[str, ...] = ()  # of a leaf


class SwitchTree(msgspec.Struct, frozen=True):
    """Where the nodes of a topology.conf are in a tree that is as wide at each level as its widest switch."""

    down: tuple[int, ...]  # devices below each switch of a level, from the nodes up
    places: dict[str, int]  # of the nodes by name, from left to right
    switches: int


def read_switches(path: Path) -> SwitchTree:
    """Read a topology.conf that is one tree. Switches keep the order of their lines, nodes that of their lists.

    Raises:
        InputError: naming file and line, if it is none, or its switches are not one tree.
    """
    switches, above = _linked(path)
    tops = [switch for name, switch in switches.items() if name not in above and not switch.twin]
    if len(tops) > 1:
        shown = ", ".join(top.name for top in tops[:5]) + (", ..." if len(tops) > 5 else "")
        raise InputError(f"{path}: no switch is above all others ({shown}); add a line SwitchName=top Switches={shown}")
    top = tops[0]
    down = [1] * (top.level + 1)
    # a switch of fewer parts leaves places empty
    for switch in switches.values():
        if switch.twin:
            continue
        down[switch.level] = max(down[switch.level], len(switch.nodes) + len(switch.below))
    if prod(down) > MAX_HOSTS:
        raise InputError(f"{path}: a tree as wide as its widest switches has more than {MAX_HOSTS:,} places; split it")
    return SwitchTree(tuple(down), dict(_places(top, top.level, 0, down, switches)), len(switches))


def read_forest(path: Path, known: Container[str]) -> tuple[list[Switch], list[str]]:
    """The switches of a topology.conf in the order of its lines, and notes on nodes that the cluster does not have.

    Args:
        path: the file.
        known: the names of the cluster's nodes.

    Raises:
        InputError: naming file and line, if it is none.
    """
    switches, above = _linked(path)
    number = {name: i for i, name in enumerate(switches)}
    strange = [node for switch in switches.values() for node in switch.nodes if node not in known]
    others = tree_of_yaml(path)[1] if path.suffix in (".yaml", ".yml") else []
    notes = [f"{path.name}: only the cluster's default is simulated, not {', '.join(others)}"] if others else []
    if strange:
        notes.append(f"{path.name} has {len(strange):,} nodes that slurm.conf has not ({strange[0]}, ...)")
    found = [
        Switch(
            name=switch.name,
            level=switch.level,
            above=number[above[switch.name]] if switch.name in above else -1,
            nodes=tuple(node for node in switch.nodes if node in known),
        )
        for switch in switches.values()
    ]
    return found, notes


def _linked(path: Path) -> tuple[dict[str, _Switch], dict[str, str]]:
    """The switches by name, with their levels; and the name of the switch above each that is below one."""
    switches: dict[str, _Switch] = {}
    homes: dict[str, str] = {}  # the leaf switch of each node
    # topology.conf(5): a node may be on one switch only in a tree
    for line in _lines(path):
        switch = _read_line(line)
        if switch.name in switches:
            raise InputError(f"{line.place}: there is a switch {switch.name} already; give each a name of its own")
        switches[switch.name] = switch
        for node in switch.nodes:
            if node in homes:
                raise InputError(f"{line.place}: node {node} is on switch {homes[node]} already; name it once")
            homes[node] = switch.name
    above = _above(switches)
    tops = [switch for name, switch in switches.items() if name not in above]
    if not tops:
        reason = "its switches are in a circle" if switches else "there is no switch"
        raise InputError(f"{path}: {reason}; {_FORM}")
    for top in tops:
        _set_levels(top, switches, 1)
    for switch in switches.values():
        if switch.twin:
            switch.level = 1 + max(switches[name].level for name in switch.twin)
    lost = next((switch for switch in switches.values() if switch.level < 0), None)
    if lost is not None:
        raise InputError(
            f"{lost.line.place}: switch {lost.name} is in a circle of switches; take it out of those below"
        )
    if not homes:
        raise InputError(f"{path}: no switch has nodes; {_FORM}")
    return switches, above


def _lines(path: Path) -> list[ConfLine]:
    """The lines of switches of a topology.conf, or of the tree of a topology.yaml."""
    if path.suffix not in (".yaml", ".yml"):
        return list(logical_lines(path))
    return tree_of_yaml(path)[0]


_ITEM = re.compile(r"\s*(- )?\s*([\w]+)\s*:\s*(.*?)\s*$")


def tree_of_yaml(path: Path) -> tuple[list[ConfLine], list[str]]:
    """The switches of a topology.yaml (25.05) as lines of a topology.conf, and the names of its other topologies.

    Of several topologies it is the tree that is the cluster's default, else the first one. Only block style is read, as
    topology.yaml(5) shows it.

    Raises:
        InputError: naming file and line, if there is no tree in it.
    """
    trees: dict[str, list[tuple[int, dict[str, str]]]] = {}
    default, name, kind = "", "", ""
    others: list[str] = []
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        text = raw.split("#")[0]
        found = _ITEM.match(text)
        if found is None:
            if text.strip() not in ("", "---", "..."):
                raise InputError(f"{path}, line {number}: {text.strip()[:60]!r} is not a line of topology.yaml")
            continue
        key, value = found[2], found[3].strip("\"'")
        if key == "topology":
            name, kind = value, ""
            others.append(value)
        elif key == "cluster_default" and value.lower() in ("true", "yes"):
            default = name
        elif not value and key not in ("switches", "blocks", "rings", "torus"):
            kind = key
            if kind == "tree":
                trees[name] = []
        elif kind == "tree" and key == "switch":
            trees[name].append((number, {"SwitchName": value}))
        elif kind == "tree" and key in ("nodes", "children") and trees[name]:
            trees[name][-1][1]["Nodes" if key == "nodes" else "Switches"] = value
    if not trees:
        raise InputError(f"{path}: no topology of the kind tree is in it; only trees are read")
    chosen = default if default in trees else next(iter(trees))
    lines = [
        ConfLine(" ".join(f"{key}={value}" for key, value in pairs.items()), str(path), number)
        for number, pairs in trees[chosen]
    ]
    return lines, [other for other in others if other != chosen]


def _read_line(line: ConfLine) -> _Switch:
    pairs = dict(pairs_of(line))
    name = pairs.get("switchname", "")
    unknown = sorted(pairs.keys() - _KEYS)
    if not name or unknown:
        found = f"{unknown[0]} is not known" if unknown else "there is no SwitchName"
        raise InputError(f"{line.place}: {found}; only topology/tree is read: {_FORM}")
    try:
        nodes, below = read_hosts(pairs.get("nodes", "")), read_hosts(pairs.get("switches", ""))
    except ValueError as error:
        raise InputError(f"{line.place}: {str(error)!r} is not a list of names; write it as n[1-16] or n1,n2") from None
    if nodes and below:
        raise InputError(f"{line.place}: switch {name} has both Nodes and Switches; {_FORM}")
    return _Switch(name, nodes, below, line)


def _above(switches: dict[str, _Switch]) -> dict[str, str]:
    """The switch above each; those below each switch are brought into the order of their lines.

    Of several switches above one, as spines are above each leaf, the first counts: a tree has one way up. One with
    nothing of its own below it is its twin.
    """
    above: dict[str, str] = {}
    for switch in switches.values():
        for name in switch.below:
            if name not in switches:
                raise InputError(f"{switch.line.place}: there is no switch {name}; add a line with SwitchName={name}")
            if above.get(name) == switch.name:
                raise InputError(f"{switch.line.place}: switch {name} is below {above[name]} already; name it once")
            above.setdefault(name, switch.name)
        own = [name for name in switch.below if above[name] == switch.name]
        switch.twin = [] if own or not switch.below else switch.below
        switch.below = own
    number = {name: i for i, name in enumerate(switches)}
    for switch in switches.values():
        switch.below = sorted((name for name in switch.below if not switches[name].twin), key=number.__getitem__)
    return above


def _set_levels(switch: _Switch, switches: dict[str, _Switch], depth: int) -> int:
    if depth > _DEEPEST:
        raise InputError(
            f"{switch.line.place}: more than {_DEEPEST} switches are above one another; Slurm takes no more"
        )
    switch.level = 1 + max((_set_levels(switches[name], switches, depth + 1) for name in switch.below), default=-1)
    return switch.level


def _places(
    switch: _Switch, level: int, number: int, down: Sequence[int], switches: dict[str, _Switch]
) -> Iterator[tuple[str, int]]:
    """The nodes below a switch that counts as one of this level, and is the `number`-th of it."""
    first = number * down[level]
    if switch.level < level:
        yield from _places(switch, level - 1, first, down, switches)
        return
    for place, node in enumerate(switch.nodes, first):
        yield node, place
    for part, name in enumerate(switch.below, first):
        yield from _places(switches[name], level - 1, part, down, switches)
