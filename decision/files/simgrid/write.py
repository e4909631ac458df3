"""SimGrid's platform files, written: hosts with power and sleep states, in the zones of their network."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent

import numpy as np

from decision.files.text import write_files
from decision.model.errors import ConfigError
from decision.model.platform import Host, Platform, PowerState
from decision.model.topology import Dragonfly, FatTree, Flat, Torus

from .values import (
    BATSIM_SIMGRID,
    DOCTYPE,
    FIRST_WITHOUT_OLD_NAMES,
    PLATFORM_FORMAT,
    SLEEP_PSTATES,
    WATTAGE,
    WATTAGE_OFF,
    format_sleep_states,
    format_speed,
    format_wattage,
    simgrid_version,
)
from .zones import EqualHosts, HeadHost, PlacedHosts, StarHost, cluster_zone, prop_lines, quoted_text, star_zone


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
        ConfigError: if the file cannot be written, the version is unknown, or the hosts of a network that is not flat
            are not equal or not numbered.
    """
    old = simgrid_version(simgrid) < FIRST_WITHOUT_OLD_NAMES
    lines = [
        "<?xml version='1.0'?>",
        f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">',
        f'<platform version="{PLATFORM_FORMAT}">',
    ]
    if comment:
        lines.append(f"  <!--\n{indent(comment.replace('--', '- -'), '  ')}\n  -->")
    lines += (f"  {line}" for line in _network_lines(platform, old))
    lines += ["</platform>", ""]
    write_files({Path(path): ["\n".join(lines).encode()]})


def _network_lines(platform: Platform, old: bool) -> Iterator[str]:
    if platform.topology is None:
        return _unconnected(platform, old)
    head = HeadHost(platform.master, _host_lines(_master(platform), "", old))
    if isinstance(platform.topology, Flat):
        return star_zone(platform.topology, _star_hosts(platform, old), head)
    return cluster_zone(platform.topology, _members(platform, platform.topology, old), head, old)


def _unconnected(platform: Platform, old: bool) -> Iterator[str]:
    """All hosts at one place of a Vivaldi zone: they reach one another at once."""
    yield '<zone id="AS0" routing="Vivaldi">'
    for host in (_master(platform), *platform.hosts, *platform.storage):
        yield from (f"  {line}" for line in _host_lines(host, ' coordinates="0 0 0"', old))
    yield "</zone>"


def _star_hosts(platform: Platform, old: bool) -> Iterator[StarHost]:
    """The hosts of a flat network, with the links of their servers."""
    for host in platform.hosts + platform.storage:
        server = host.properties.get("server", host.name)
        yield StarHost(host.name, _host_lines(host, "", old), f"{server}_link")


def _members(platform: Platform, topology: FatTree | Torus | Dragonfly, old: bool) -> "EqualHosts | PlacedHosts":
    """The hosts as one <cluster> has them; where they are not so, as a tree of zones does.

    Raises:
        ConfigError: if they are not equal, or not numbered from left to right, and what connects them is one <cluster>.
    """
    places = platform.places or tuple(range(len(platform.hosts)))
    order = np.argsort(places)
    whole = len(order) == topology.nb_hosts and not platform.storage
    if whole and (members := _equal_hosts([platform.hosts[i] for i in order], old)):
        return members
    if isinstance(topology, FatTree) and topology.pooled and not platform.storage:
        around = list(_star_hosts(platform, old))
        return PlacedHosts([places[i] for i in order], [around[i] for i in order])
    raise ConfigError(
        f"a {type(topology).__name__} is written as one <cluster>: its hosts must be equal, start in pstate 0 "
        "and have consecutive numbers in their names"
    )


def _equal_hosts(hosts: Sequence[Host], old: bool) -> "EqualHosts | None":
    """Hosts in the order of their places, if they are equal, start in pstate 0 and are numbered so."""
    first, name = hosts[0], re.fullmatch(r"(.*?)(0|[1-9]\d*)(\D*)", hosts[0].name)
    if not name or any(host.initial_pstate or host.pstates != first.pstates for host in hosts):
        return None
    members = EqualHosts(name[1], int(name[2]), name[3], _speeds(first), _written_properties(first, old))
    fits = (
        host.name == members.name(place) and _written_properties(host, old) == members.properties
        for place, host in enumerate(hosts)
    )
    return members if all(fits) else None


def _master(platform: Platform) -> Host:
    """Batsim's own host; where others have power it draws none, for SimGrid warns about hosts without."""
    has_power = any(host.has_power for host in platform.hosts)
    return Host(id=-1, name=platform.master, pstates=(PowerState(1e9),), has_power=has_power)


def _host_lines(host: Host, place: str, old: bool) -> list[str]:
    start = f'<host id={quoted_text(host.name)}{place} speed="{_speeds(host)}" pstate="{host.initial_pstate}"'
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
