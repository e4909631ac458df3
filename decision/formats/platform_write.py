"""SimGrid's platform files, written."""

import os
from pathlib import Path
from textwrap import indent
from xml.sax.saxutils import quoteattr

from decision.model.platform import Host, Platform, PowerState

from .files import write_files
from .power import WATTAGE, format_sleep_states, format_speed, format_wattage


def write_platform(path: str | os.PathLike[str], platform: Platform, comment: str = "") -> None:
    """Write a platform without network: one zone, one <host> per host.

    Args:
        path: the XML file.
        platform: its hosts' power and sleep states become properties; their zone properties are not written.
        comment: where the platform comes from.

    Raises:
        ConfigError: if the file cannot be written.
    """
    lines = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">']
    lines.append('<platform version="4.1">')
    if comment:
        lines.append(f"  <!--\n{indent(comment.replace('--', '- -'), '  ')}\n  -->")
    lines.append('  <zone id="AS0" routing="Vivaldi">')
    lines += _host_lines(_master(platform))
    lines += [line for host in platform.hosts + platform.storage for line in _host_lines(host)]
    lines += ["  </zone>", "</platform>", ""]
    write_files({Path(path): ["\n".join(lines).encode()]})


def _master(platform: Platform) -> Host:
    """Batsim's own host; where others have power it draws none, for SimGrid warns about hosts without."""
    has_power = any(host.has_power for host in platform.hosts)
    return Host(id=-1, name=platform.master, pstates=(PowerState(1e9),), has_power=has_power)


def _host_lines(host: Host) -> list[str]:
    speeds = ", ".join(format_speed(p.speed) for p in host.pstates)
    start = f'    <host id={quoteattr(host.name)} coordinates="0 0 0" speed="{speeds}" pstate="{host.initial_pstate}"'
    properties = _written_properties(host)
    if not properties:
        return [f"{start}/>"]
    lines = [f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>" for key, value in properties.items()]
    return [f"{start}>", *lines, "    </host>"]


def _written_properties(host: Host) -> dict[str, str]:
    derived = {*WATTAGE, "sleep_pstates"}
    properties = {k: v for k, v in host.properties.items() if k not in derived and (k, v) != ("role", "")}
    if host.has_power:
        properties["wattage_per_state"] = format_wattage(host.pstates)
    if host.sleep:
        properties["sleep_pstates"] = format_sleep_states(host.sleep)
    return properties
