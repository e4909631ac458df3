"""SimGrid's platform files, written."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from xml.sax.saxutils import quoteattr

from decision.model.platform import Host, Platform, PowerState
from decision.model.topology import Flat

from .files import write_files
from .network import format_bandwidth, format_latency, zone_properties
from .power import SLEEP_PSTATES, WATTAGE, WATTAGE_OFF, format_sleep_states, format_speed, format_wattage
from .simgrid import BATSIM_SIMGRID, DOCTYPE, FIRST_WITHOUT_OLD_NAMES, FORMAT, simgrid_version


def write_platform(
    path: str | os.PathLike[str], platform: Platform, comment: str = "", simgrid: str = BATSIM_SIMGRID
) -> None:
    """Write a platform: one <host> per host.

    Where the topology is flat, the hosts are around one switch, each on a link of its own; but hosts with the same
    `server` property are cores of one server and share its link, also for messages among them. Without a topology
    messages take no time.

    Args:
        path: the XML file.
        platform: its hosts' power and sleep states become properties; their zone properties are not written.
        comment: where the platform comes from.
        simgrid: the version of SimGrid that will read the file.

    Raises:
        ConfigError: if the file cannot be written, or there is no such version.
    """
    old = simgrid_version(simgrid) < FIRST_WITHOUT_OLD_NAMES
    lines = ["<?xml version='1.0'?>", f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">', f'<platform version="{FORMAT}">']
    if comment:
        lines.append(f"  <!--\n{indent(comment.replace('--', '- -'), '  ')}\n  -->")
    topology = platform.topology
    lines += _switched(platform, topology, old) if isinstance(topology, Flat) else _unconnected(platform, old)
    lines += ["</platform>", ""]
    write_files({Path(path): ["\n".join(lines).encode()]})


def _unconnected(platform: Platform, old: bool) -> Iterator[str]:
    """All hosts at one place of a Vivaldi zone: they reach one another at once."""
    yield '  <zone id="AS0" routing="Vivaldi">'
    for host in (_master(platform), *platform.hosts, *platform.storage):
        yield from _host_lines(host, ' coordinates="0 0 0"', old)
    yield "  </zone>"


def _switched(platform: Platform, topology: Flat, old: bool) -> Iterator[str]:
    """The hosts in a zone around a router, and the master in a zone beside it, by a link that takes no time."""
    bandwidth = format_bandwidth(topology.link.bandwidth)
    yield '  <zone id="AS0" routing="Full">'
    yield '    <zone id="network" routing="Cluster">'
    yield from (f"      {line}" for line in _property_lines(zone_properties(topology)))
    yield from (f"  {line}" for host in platform.hosts + platform.storage for line in _host_lines(host, "", old))
    yield from (f"      {line}" for line in _link_lines(platform, topology))
    yield '      <router id="network_router"/>'
    yield "    </zone>"
    yield '    <zone id="head" routing="Full">'
    yield from (f"  {line}" for line in _host_lines(_master(platform), "", old))
    yield "    </zone>"
    yield f'    <link id="head_link" bandwidth="{bandwidth}" latency="0s" sharing_policy="FATPIPE"/>'
    ends = f'gw_src={quoteattr(platform.master)} gw_dst="network_router"'
    yield f'    <zoneRoute src="head" dst="network" {ends}>'
    yield '      <link_ctn id="head_link"/>'
    yield "    </zoneRoute>"
    yield "  </zone>"


def _link_lines(platform: Platform, topology: Flat) -> Iterator[str]:
    """A full-duplex link for each server, and who uses it."""
    servers = {host.name: host.properties.get("server", host.name) for host in platform.hosts + platform.storage}
    rate = f'bandwidth="{format_bandwidth(topology.link.bandwidth)}" latency="{format_latency(topology.link.latency)}"'
    for server in dict.fromkeys(servers.values()):
        yield f'<link id={quoteattr(f"{server}_link")} {rate} sharing_policy="SPLITDUPLEX"/>'
    for host, server in servers.items():
        up, down = quoteattr(f"{server}_link_UP"), quoteattr(f"{server}_link_DOWN")
        yield f"<host_link id={quoteattr(host)} up={up} down={down}/>"


def _master(platform: Platform) -> Host:
    """Batsim's own host; where others have power it draws none, for SimGrid warns about hosts without."""
    has_power = any(host.has_power for host in platform.hosts)
    return Host(id=-1, name=platform.master, pstates=(PowerState(1e9),), has_power=has_power)


def _host_lines(host: Host, place: str, old: bool) -> list[str]:
    speeds = ", ".join(format_speed(p.speed) for p in host.pstates)
    start = f'    <host id={quoteattr(host.name)}{place} speed="{speeds}" pstate="{host.initial_pstate}"'
    properties = _written_properties(host, old)
    if not properties:
        return [f"{start}/>"]
    return [f"{start}>", *(f"      {line}" for line in _property_lines(properties)), "    </host>"]


def _property_lines(properties: Mapping[str, str]) -> Iterator[str]:
    return (f"<prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in properties.items())


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
