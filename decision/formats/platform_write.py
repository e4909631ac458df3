"""SimGrid's platform files, written."""

import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from xml.sax.saxutils import quoteattr

import msgspec

from decision.model.platform import Host, Platform, PowerState

from .files import write_files
from .power import SLEEP_PSTATES, WATTAGE, WATTAGE_OFF, format_sleep_states, format_speed, format_wattage
from .simgrid import BATSIM_SIMGRID, DOCTYPE, FIRST_WITHOUT_OLD_NAMES, FORMAT, simgrid_version


class Switched(msgspec.Struct, frozen=True):
    """Servers around one switch that never saturates: each has a full-duplex link of its own.

    Hosts with the same `server` property are cores of one server and share its link, also for messages among them; any
    other host is a server.
    """

    name: str  # of the zone
    bandwidth: float  # bytes/s, each way
    latency: float  # seconds from a server to the switch


def write_platform(
    path: str | os.PathLike[str],
    platform: Platform,
    comment: str = "",
    simgrid: str = BATSIM_SIMGRID,
    network: Switched | None = None,
) -> None:
    """Write a platform: one <host> per host.

    Args:
        path: the XML file.
        platform: its hosts' power and sleep states become properties; their zone properties are not written.
        comment: where the platform comes from.
        simgrid: the version of SimGrid that will read the file.
        network: what connects the hosts; without it messages take no time.

    Raises:
        ConfigError: if the file cannot be written, or there is no such version.
    """
    old = simgrid_version(simgrid) < FIRST_WITHOUT_OLD_NAMES
    lines = ["<?xml version='1.0'?>", f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">', f'<platform version="{FORMAT}">']
    if comment:
        lines.append(f"  <!--\n{indent(comment.replace('--', '- -'), '  ')}\n  -->")
    lines += _unconnected(platform, old) if network is None else _switched(platform, network, old)
    lines += ["</platform>", ""]
    write_files({Path(path): ["\n".join(lines).encode()]})


def _unconnected(platform: Platform, old: bool) -> Iterator[str]:
    """All hosts at one place of a Vivaldi zone: they reach one another at once."""
    yield '  <zone id="AS0" routing="Vivaldi">'
    for host in (_master(platform), *platform.hosts, *platform.storage):
        yield from _host_lines(host, ' coordinates="0 0 0"', old)
    yield "  </zone>"


def _switched(platform: Platform, network: Switched, old: bool) -> Iterator[str]:
    """The hosts in a zone around a router; the master in a zone beside it, on a link like theirs."""
    hosts = platform.hosts + platform.storage
    servers = [host.properties.get("server", host.name) for host in hosts]
    zone, switch = quoteattr(network.name), quoteattr(f"{network.name}_switch")
    rate = f'bandwidth="{format_bandwidth(network.bandwidth)}" latency="{network.latency:g}s"'
    link = f'    {{}}<link id={{}} {rate} sharing_policy="SPLITDUPLEX"/>'
    yield '  <zone id="AS0" routing="Full">'
    yield f'    <zone id={zone} routing="Cluster">'
    for host in hosts:
        yield from (f"  {line}" for line in _host_lines(host, "", old))
    yield from (link.format("  ", quoteattr(f"{server}_link")) for server in dict.fromkeys(servers))
    for host, server in zip(hosts, servers, strict=True):
        up, down = quoteattr(f"{server}_link_UP"), quoteattr(f"{server}_link_DOWN")
        yield f"      <host_link id={quoteattr(host.name)} up={up} down={down}/>"
    yield f"      <router id={switch}/>"
    yield "    </zone>"
    yield '    <zone id="head" routing="Full">'
    yield from (f"  {line}" for line in _host_lines(_master(platform), "", old))
    yield "    </zone>"
    yield link.format("", '"head_link"')
    yield f'    <zoneRoute src="head" dst={zone} gw_src={quoteattr(platform.master)} gw_dst={switch}>'
    yield '      <link_ctn id="head_link" direction="UP"/>'
    yield "    </zoneRoute>"
    yield "  </zone>"


def format_bandwidth(bandwidth: float) -> str:
    """Bytes per second with a unit: ``1.25GBps``."""
    unit, name = next((u, n) for u, n in ((1e9, "G"), (1e6, "M"), (1.0, "")) if bandwidth >= u or u == 1)
    return f"{bandwidth / unit:.12g}{name}Bps"


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
    lines = [f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in properties.items()]
    return [f"{start}>", *lines, "    </host>"]


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
