"""SimGrid's platform files, written."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from xml.sax.saxutils import quoteattr

import numpy as np

from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.model.topology import Flat

from .files import write_files
from .power import SLEEP_PSTATES, WATTAGE, WATTAGE_OFF, format_sleep_states, format_speed, format_wattage
from .simgrid import BATSIM_SIMGRID, DOCTYPE, FIRST_WITHOUT_OLD_NAMES, FORMAT, simgrid_version
from .zones import Head, Leaf, Members, cluster_zone, prop_lines, star_zone


def write_platform(
    path: str | os.PathLike[str], platform: Platform, comment: str = "", simgrid: str = BATSIM_SIMGRID
) -> None:
    """Write a platform with the network that its topology says; where that is unknown, messages take no time.

    Around the switch of a flat network each host has a link of its own; but hosts with the same `server` property are
    cores of one server and share its link, also for messages among them.

    Args:
        path: the XML file.
        platform: its hosts' power and sleep states become properties; their zone properties are not written.
        comment: where the platform comes from.
        simgrid: the version of SimGrid that will read the file.

    Raises:
        ConfigError: if the file cannot be written, there is no such version, or the hosts of a network that is not flat
            are unequal or not numbered.
    """
    old = simgrid_version(simgrid) < FIRST_WITHOUT_OLD_NAMES
    lines = ["<?xml version='1.0'?>", f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">', f'<platform version="{FORMAT}">']
    if comment:
        lines.append(f"  <!--\n{indent(comment.replace('--', '- -'), '  ')}\n  -->")
    lines += (f"  {line}" for line in _zone(platform, old))
    lines += ["</platform>", ""]
    write_files({Path(path): ["\n".join(lines).encode()]})


def _zone(platform: Platform, old: bool) -> Iterator[str]:
    if platform.topology is None:
        return _unconnected(platform, old)
    head = Head(platform.master, _host_lines(_master(platform), "", old))
    if isinstance(platform.topology, Flat):
        return star_zone(platform.topology, _around(platform, old), head)
    return cluster_zone(platform.topology, _members(platform, old), head, old)


def _unconnected(platform: Platform, old: bool) -> Iterator[str]:
    """All hosts at one place of a Vivaldi zone: they reach one another at once."""
    yield '<zone id="AS0" routing="Vivaldi">'
    for host in (_master(platform), *platform.hosts, *platform.storage):
        yield from (f"  {line}" for line in _host_lines(host, ' coordinates="0 0 0"', old))
    yield "</zone>"


def _around(platform: Platform, old: bool) -> Iterator[Leaf]:
    """The hosts of a flat network, with the links of their servers."""
    for host in platform.hosts + platform.storage:
        server = host.properties.get("server", host.name)
        yield Leaf(host.name, _host_lines(host, "", old), f"{server}_link")


def _members(platform: Platform, old: bool) -> Members:
    """The hosts as one <cluster> has them.

    Raises:
        ConfigError: if they are not equal, or not numbered from left to right.
    """
    by_place = [platform.hosts[i] for i in np.argsort(platform.places)] if platform.places else platform.hosts
    properties = _written_properties(by_place[0], old)
    equal = all(
        host.pstates == by_place[0].pstates and _written_properties(host, old) == properties for host in by_place
    )
    name = re.fullmatch(r"(.*?)(0|[1-9]\d*)(\D*)", by_place[0].name)
    if equal and name and not any(host.initial_pstate for host in by_place) and not platform.storage:
        members = Members(name[1], int(name[2]), name[3], _speeds(by_place[0]), properties)
        if all(host.name == members.name(place) for place, host in enumerate(by_place)):
            return members
    raise ConfigError(
        f"a {type(platform.topology).__name__} is written as one <cluster>: its hosts must be equal, start in pstate 0 "
        "and have consecutive numbers in their names"
    )


def _master(platform: Platform) -> Host:
    """Batsim's own host; where others have power it draws none, for SimGrid warns about hosts without."""
    has_power = any(host.has_power for host in platform.hosts)
    return Host(id=-1, name=platform.master, pstates=(PowerState(1e9),), has_power=has_power)


def _host_lines(host: Host, place: str, old: bool) -> list[str]:
    start = f'<host id={quoteattr(host.name)}{place} speed="{_speeds(host)}" pstate="{host.initial_pstate}"'
    properties = _written_properties(host, old)
    if not properties:
        return [f"{start}/>"]
    return [f"{start}>", *(f"  {line}" for line in prop_lines(properties)), "</host>"]


def _speeds(host: Host) -> str:
    return ", ".join(format_speed(pstate.speed) for pstate in host.pstates)


def _written_properties(host: Host, old: bool) -> dict[str, str]:
    """The host's properties, with power under the names of the SimGrid that will read it."""
    properties = {}
    for key, value in host.properties.items():
        if key not in (*WATTAGE, SLEEP_PSTATES) and (key, value) != ("role", ""):
            properties[WATTAGE_OFF[old] if key in WATTAGE_OFF else key] = value
    if host.has_power:
        properties[WATTAGE[old]] = format_wattage(host.pstates, old)
    if host.sleep:
        properties[SLEEP_PSTATES] = format_sleep_states(host.sleep)
    return properties
