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
from collections.abc import Container, Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.model.errors import InputError
from decision.model.platform import MAX_HOSTS
from decision.slurm.kernels.topology_tree import ALWAYS, IF_ASKED
from decision.slurm.kernels.world import FAR

from .conf import ConfLine, Settings, logical_lines, pairs_of, read_text
from .jobs import SlurmJob
from .nodes import Node, Partition
from .text import read_hosts

_FORM = "write it as SwitchName=s0 Nodes=n[1-18], or SwitchName=top Switches=s[0-3]"
_KEYS = {"switchname", "nodes", "switches", "linkspeed"}
_DEEPEST = 20  # switches above one another, as in Slurm
_KINDS = ("tree", "block", "flat", "ring", "torus3d")  # of topologies


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
    topology: str = ""  # its name in a topology.yaml
    named: bool = False  # whether only partitions that name the topology have it


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
    lines: Iterable[ConfLine]
    if _is_yaml(path):
        read = _read_yaml(path)
        if not read.trees:
            raise InputError(f"{path}: no topology of the kind tree is in it; only trees are read")
        # the cluster's default, else the first one
        lines = read.trees.get(read.default) or next(iter(read.trees.values()))
    else:
        lines = logical_lines(path)
    switches, above = _linked(path, lines)
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


class Forest(NamedTuple):
    """The switches of a cluster, and what is to be said of them."""

    switches: list[Switch]
    notes: list[str]
    others: dict[str, str]  # kinds of topologies that are no trees, by name; the cluster's default is "", too


def read_forest(path: Path, known: Container[str]) -> Forest:
    """The switches of a topology.conf in the order of its lines, or those of all trees of a topology.yaml.

    Args:
        path: the file.
        known: the names of the cluster's nodes.

    Raises:
        InputError: naming file and line, if it is none.
    """
    if not _is_yaml(path):
        return Forest(*_grown(path, logical_lines(path), known), {})
    found, notes = list[Switch](), list[str]()
    read = _read_yaml(path)
    for name, lines in read.trees.items():
        switches, more = _grown(path, lines, known)
        first = len(found)
        found += [
            replace(each, above=each.above + first * (each.above >= 0), topology=name, named=name != read.default)
            for each in switches
        ]
        notes += more
    others = {name: kind for name, kind in read.kinds.items() if kind not in ("tree", "flat")}
    notes += [
        f"{path.name}: topology {name} is of the kind {kind}, which is not simulated: nodes are chosen as without one"
        for name, kind in others.items()
    ]
    return Forest(found, notes, others | ({"": others[read.default]} if read.default in others else {}))


def _grown(path: Path, lines: Iterable[ConfLine], known: Container[str]) -> tuple[list[Switch], list[str]]:
    """The switches of a topology, and a note on nodes that the cluster does not have."""
    switches, above = _linked(path, lines)
    number = {name: i for i, name in enumerate(switches)}
    strange = [node for switch in switches.values() for node in switch.nodes if node not in known]
    notes = [f"{path.name} has {len(strange):,} nodes that slurm.conf has not ({strange[0]}, ...)"] if strange else []
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


def _linked(path: Path, lines: Iterable[ConfLine]) -> tuple[dict[str, _Switch], dict[str, str]]:
    """The switches by name, with their levels; and the name of the switch above each that is below one."""
    switches: dict[str, _Switch] = {}
    homes: dict[str, str] = {}  # the leaf switch of each node
    # topology.conf(5): a node may be on one switch only in a tree
    for line in lines:
        pairs = dict(pairs_of(line))
        name, unknown = pairs.get("switchname", ""), sorted(pairs.keys() - _KEYS)
        if not name or unknown:
            found = f"{unknown[0]} is not known" if unknown else "there is no SwitchName"
            raise InputError(f"{line.place}: {found}; only topology/tree is read: {_FORM}")
        try:
            nodes, below = read_hosts(pairs.get("nodes", "")), read_hosts(pairs.get("switches", ""))
        except ValueError as error:
            reason = f"{str(error)!r} is not a list of names; write it as n[1-16] or n1,n2"
            raise InputError(f"{line.place}: {reason}") from None
        if nodes and below:
            raise InputError(f"{line.place}: switch {name} has both Nodes and Switches; {_FORM}")
        if name in switches:
            raise InputError(f"{line.place}: there is a switch {name} already; give each a name of its own")
        switches[name] = _Switch(name, nodes, below, line)
        for node in nodes:
            if node in homes:
                raise InputError(f"{line.place}: node {node} is on switch {homes[node]} already; name it once")
            homes[node] = name
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


def _is_yaml(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


_ITEM = re.compile(r"\s*(- )?\s*([\w]+)\s*:\s*(.*?)\s*$")


class _Yaml(NamedTuple):
    """The topologies of a topology.yaml."""

    trees: dict[str, list[ConfLine]]  # by name, as lines of a topology.conf
    kinds: dict[str, str]  # of all by name
    default: str  # of the cluster


def _read_yaml(path: Path) -> _Yaml:
    """Read a topology.yaml (25.05). Only block style is read, as topology.yaml(5) shows it.

    Raises:
        InputError: naming file and line.
    """
    trees: dict[str, list[tuple[int, dict[str, str]]]] = {}
    kinds: dict[str, str] = {}
    default, name = "", ""
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        text = raw.split("#")[0]
        found = _ITEM.match(text)
        if found is None:
            # block_sizes are a list of numbers
            if not re.fullmatch(r"\s*(---|\.\.\.|-\s*\d+)?\s*", text):
                raise InputError(f"{path}, line {number}: {text.strip()[:60]!r} is not a line of topology.yaml")
            continue
        key, value = found[2], found[3].strip("\"'")
        if key == "topology":
            name, kinds[value] = value, ""
        elif key == "cluster_default" and value.lower() in ("true", "yes"):
            default = default or name
        elif name and not kinds[name] and key in _KINDS:
            kinds[name] = key
            if key == "tree":
                trees[name] = []
        elif name in trees and key == "switch":
            trees[name].append((number, {"SwitchName": value}))
        elif name in trees and key in ("nodes", "children") and trees[name]:
            trees[name][-1][1]["Nodes" if key == "nodes" else "Switches"] = value
    if not kinds:
        raise InputError(f"{path}: there is no topology in it; is it a topology.yaml?")
    lines = {
        tree: [ConfLine(" ".join(f"{k}={v}" for k, v in pairs.items()), str(path), number) for number, pairs in rows]
        for tree, rows in trees.items()
    }
    return _Yaml(lines, kinds, default or next(iter(kinds)))


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


# The switches of a case as arrays of the model.


def topology_of(switches: Sequence[Switch], settings: Settings) -> int:
    """Whether switches choose nodes: always, for jobs that ask for few of them, or never (0)."""
    # slurmctld looks for topology.yaml first, whatever TopologyPlugin says
    by_name = any(switch.topology for switch in switches)
    if not switches or not (by_name or "tree" in settings.text("TopologyPlugin").lower()):
        return 0
    # slurm.conf(5), TopologyParam=TopoOptional: only for jobs with --switches
    optional = "topooptional" in settings.text("TopologyParam").lower()
    return IF_ASKED if optional else ALWAYS


def switch_arrays(
    switches: Sequence[Switch],
    nodes: Sequence[Node],
    partitions: Sequence[Partition],
    jobs: Sequence[SlurmJob],
    settings: Settings,
) -> dict[str, Any]:
    """What `SlurmWorld` has of switches, of the topologies of partitions, and of the jobs that ask for few switches."""
    trees = list(dict.fromkeys(switch.topology for switch in switches)) or [""]
    home = {(switch.topology, node): number for number, switch in enumerate(switches) for node in switch.nodes}
    default = next((switch.topology for switch in switches if not switch.named), None)
    chosen = [partition.topology or default for partition in partitions]
    # from each switch up to the highest above it: how many links each is away
    way: list[dict[int, int]] = []
    for number in range(len(switches)):
        links: dict[int, int] = {}
        while number >= 0:
            links[number] = len(links)
            number = switches[number].above
        way.append(links)
    apart = np.full((len(switches), len(switches)), FAR, np.int64)
    for one, first in enumerate(way):
        for other, second in enumerate(way):
            common = next((switch for switch in first if switch in second), None)
            if common is not None:
                apart[one, other] = first[common] + second[common]
    # slurm.conf(5), max_switch_wait: bounds what a user may ask for
    longest = settings.number("max_switch_wait")
    scratch = ("switch_nodes", "switch_cores", "switch_named", "switch_weight", "switch_used", "switch_far")
    return {
        "node_switch": np.array([[home.get((tree, node.name), -1) for node in nodes] for tree in trees], np.int64),
        "part_tree": np.array([trees.index(name) if name in trees else -1 for name in chosen], np.int64),
        "switch_level": np.array([switch.level for switch in switches], np.int64),
        "switch_above": np.array([switch.above for switch in switches], np.int64),
        "switch_apart": apart,
        "max_switches": np.array([job.switches for job in jobs], np.int64),
        "switch_wait": np.array([int(min(job.switch_wait, longest)) for job in jobs], np.int64),
        "wanted": np.zeros(4, np.int64),
    } | {name: np.zeros(len(switches), np.int64) for name in scratch}
