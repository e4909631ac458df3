"""What the commands about platforms print: tables, or data in their place."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from decision.engine.rules import network_refusal
from decision.experiments.descriptions import PstateUse, host_groups, pstate_uses
from decision.files.generate.grid5000 import Grid5000Cluster
from decision.files.generate.platforms import describe_topology
from decision.files.platform_check import Finding, grouped
from decision.files.platform_check.structure import Links
from decision.model.errors import ConfigError
from decision.model.hosts import fold_names, format_hosts
from decision.model.platform import Host, Platform

from .tables import count, print_json, simple_table
from .terminal import say, stdout

if TYPE_CHECKING:
    from decision.model.platform import Link, PowerState, SleepState, Topology

_LONGEST = 60  # letters of a list of names


def print_platform(platform: Platform, links: Sequence[Links]) -> None:
    """Hosts and pstates by groups of equal hosts, then the network."""
    groups = host_groups(platform)
    head = f"{platform.path}: {len(platform.hosts):,} hosts"
    head += f", {len(platform.storage):,} for storage" if platform.storage else ""
    known = describe_topology(platform.topology, len(platform.hosts)) if platform.topology else "Topology: unknown."
    say(f"{head}; Batsim runs on {platform.master}.\n{known}")
    _print_groups(groups, len(platform.hosts))
    shown = set()
    for group in groups:
        kind = (group[0].pstates, group[0].sleep)
        if len(group[0].pstates) > 1 and kind not in shown:
            _print_pstates(group)
        shown.add(kind)
    if links:
        _print_links(links)


def _print_groups(groups: Sequence[list[Host]], nb_compute: int) -> None:
    table = simple_table("hosts", "ids", ">number", ">Gflop/s", ">pstates", ">idle\nW", ">computing\nW", "role")
    for group in groups:
        first = group[0]
        state = first.pstates[first.initial_pstate]
        watts = (f"{state.idle:g}", f"{state.full:g}") if first.has_power else ("-", "-")
        ids = format_hosts(host.id for host in group)
        role = "storage" if first.id >= nb_compute else ""
        figures = (f"{len(group):,}", f"{state.speed / 1e9:g}", str(len(first.pstates)), *watts)
        table.add_row(_folded(host.name for host in group), _short(ids), *figures, role)
    if nb_compute == sum(map(len, groups)):
        table.columns.pop()
    stdout().print(table)


def _print_pstates(group: Sequence[Host]) -> None:
    title = f"pstates of {_folded(host.name for host in group)}"
    table = simple_table(">pstate", "use", ">Gflop/s", ">idle\nW", ">computing\nW", ">takes\ns", title=title)
    first = group[0]
    for pstate in pstate_uses(first):
        computes = pstate.use == "computing"
        speed = f"{pstate.state.speed / 1e9:g}" if computes else ""
        watts = (
            (f"{pstate.state.idle:g}", f"{pstate.state.full:g}" if computes else "") if first.has_power else ("-", "-")
        )
        takes = "" if pstate.seconds is None else f"{pstate.seconds:g}"
        table.add_row(str(pstate.number), pstate.use, speed, *watts, takes)
    stdout().print(table)


def _print_links(links: Sequence[Links]) -> None:
    table = simple_table("links", ">number", ">bandwidth", ">latency", "sharing")
    for one in links:
        number = "" if one.number is None else f"{one.number:,}"
        table.add_row(_short(" ".join(one.names)), number, one.kind.bandwidth, one.kind.latency, one.kind.sharing)
    stdout().print(table)


def _folded(names: Iterable[str]) -> str:
    return _short(" ".join(fold_names(names)))


def _short(text: str) -> str:
    """At most as much of a long list as says what it is."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4].rsplit(' ', 1)[0]} ..."


def platform_document(platform: Platform, links: Sequence[Links]) -> dict[str, Any]:
    """What `print_platform` shows, as data."""
    return {
        "path": platform.path,
        "master": platform.master,
        "topology": None if platform.topology is None else describe_topology(platform.topology, len(platform.hosts)),
        "groups": [_group_facts(group, len(platform.hosts)) for group in host_groups(platform)],
        "links": links,
    }


def _group_facts(group: Sequence[Host], nb_compute: int) -> dict[str, Any]:
    first = group[0]
    return {
        "hosts": [host.name for host in group],
        "ids": [host.id for host in group],
        "role": "storage" if first.id >= nb_compute else "compute",
        "has_power": first.has_power,
        "initial_pstate": first.initial_pstate,
        "pstates": [_pstate_facts(pstate, first.has_power) for pstate in pstate_uses(first)],
    }


def _pstate_facts(pstate: PstateUse, has_power: bool) -> dict[str, Any]:
    state = pstate.state
    facts: dict[str, Any] = {"pstate": pstate.number, "use": pstate.use, "speed": state.speed}
    return facts | {
        "idle": state.idle if has_power else None,
        "computing": state.full if has_power else None,
        "switching_time": pstate.seconds,
    }


def print_clusters(clusters: Sequence[Grid5000Cluster], as_json: bool) -> None:
    """One row of facts per cluster."""
    if as_json:
        print_json({"clusters": clusters})
        return
    table = simple_table(caption="Gflop/s of one core")
    for header in ("cluster", "site"):
        table.add_column(header, no_wrap=True)
    for header in ("year", "nodes", "cores", "measured", "theoretical"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("network")
    for c in clusters:
        measured = "-" if c.measured is None else f"{c.measured / 1e9:g}"
        figures = (str(c.year), str(c.nodes), str(c.cores), measured, f"{c.theoretical / 1e9:g}")
        table.add_row(c.name, c.site, *figures, c.network)
    stdout().print(table)


def print_written(path: Path, platform: Platform, as_json: bool, description: str = "") -> None:
    """Say which platform was written into which file."""
    host = platform.hosts[0]
    speed = host.pstates[0].speed
    if as_json:
        facts: dict[str, Any] = {"path": path, "hosts": len(platform.hosts), "speed": speed}
        print_json(facts | {"has_power": platform.has_power, "sleeps": bool(host.sleep), "description": description})
        return
    power = "with power" if platform.has_power else "without power"
    power = "with power and sleep states" if host.sleep else power
    say(f"{path}: {len(platform.hosts):,} hosts of {speed / 1e9:g} Gflop/s, {power}")
    if description:
        say(description)


def print_platform_findings(path: Path, findings: Sequence[Finding], platform: Platform | None, as_json: bool) -> None:
    """One line and its fix for each finding; equal ones of many elements once; and what links do to messages and to
    jobs that communicate, where there is a `platform` without findings."""
    delays = [route.latency for route in platform.routes[:-1]] if platform else []
    refusal = network_refusal(platform) if platform else ""
    if as_json:
        delay = {"least": min(delays), "most": max(delays)} if delays else None
        told = {"path": path, "findings": findings, "message_delay": delay}
        print_json(told | {"only_batsim_communicates": refusal or None})
        return
    lines = []
    for finding, number in grouped(findings):
        more = f" (and {number - 1:,} more like it)" if number > 1 else ""
        lines += [f"line {finding.line}, {finding.element}{more}: {finding.problem}", f"    {finding.fix}"]
    total = count(len(findings), "finding") if findings else "no findings"
    if delays:
        least, most = (f"{seconds * 1e6:g}" for seconds in (min(delays), max(delays)))
        late = f"{most} us" if least == most else f"{least} to {most} us"
        lines.append(f"messages cross the links: Batsim hears of the end of a job {late} late, one after the other;")
        lines.append("    without links (flat and grid5000: --no-network) it hears of it at once")
    if refusal:
        lines.append(f"jobs that communicate need a Batsim: {refusal}")
    elif platform:
        lines.append("jobs that communicate share its links, in the embedded engine as in Batsim")
    say("\n".join([*lines, f"{path}: {total}"]))


# Options of platforms of equal hosts in a network: links, speed, power; and the file that they make.

_hosts_option = partial(typer.Option, rich_help_panel="Hosts")
_RATE = "Link bandwidth in each direction (GBps are bytes, Gbps bits)"

Bandwidth = Annotated[str, typer.Option("--bandwidth", help=f"{_RATE}.", metavar="RATE")]
Bandwidths = Annotated[str, typer.Option("--bandwidth", help=f"{_RATE}: one value, or L0,L1,L2.", metavar="RATE")]
Latency = Annotated[str, typer.Option("--latency", help="Link latency.", metavar="TIME")]
Latencies = Annotated[str, typer.Option("--latency", help="Link latency: one value, or L0,L1,L2.", metavar="TIME")]
HostSpeed = Annotated[str, _hosts_option("--speed", help="Host speed.", metavar="FLOPS")]
HostPower = Annotated[
    str,
    _hosts_option(
        "--power",
        help="Host power in watts, idle and computing; taurus for the frequencies and sleep states of a taurus server; "
        "or none.",
        metavar="IDLE:COMPUTING",
    ),
]

BANDWIDTH = "12.5GBps"
LATENCY = "1us"
SPEED = "141.24Gf"
POWER = "95:190.738"


class NetworkOptions(NamedTuple):
    """Links that are all alike, and equal hosts."""

    bandwidth: Bandwidth = BANDWIDTH
    latency: Latency = LATENCY
    speed: HostSpeed = SPEED
    power: HostPower = POWER


class LevelOptions(NamedTuple):
    """The same, where the links of each level may differ."""

    bandwidth: Bandwidths = BANDWIDTH
    latency: Latencies = LATENCY
    speed: HostSpeed = SPEED
    power: HostPower = POWER


def read_links(options: NetworkOptions | LevelOptions, levels: int = 1) -> "list[Link]":
    """The links of each level, from one value for all or one for each, separated by commas.

    Raises:
        ConfigError: if there are as many values as neither, or one cannot be read.
    """
    from decision.files.simgrid.values import parse_bandwidth, parse_latency
    from decision.model.platform import Link

    bandwidths = _each("--bandwidth", options.bandwidth, levels)
    latencies = _each("--latency", options.latency, levels)
    return [Link(parse_bandwidth(b), parse_latency(d)) for b, d in zip(bandwidths, latencies, strict=True)]


def _each(option: str, text: str, levels: int) -> list[str]:
    values = text.split(",")
    if len(values) not in (1, levels):
        number = "one value" if levels == 1 else f"one value, or {levels}, from the hosts up"
        raise ConfigError(f"{option} {text!r}: give {number}")
    return values if len(values) == levels else values * levels


def write_networked(
    topology: "Topology",
    command: str,
    shape: Mapping[str, object],
    options: NetworkOptions | LevelOptions,
    simgrid: str | None,
    output: Path,
    as_json: bool,
    network: bool = True,
    places: Mapping[str, int] = {},
) -> None:
    """Write the platform of equal hosts in a topology; a comment says what it is and which command made it.

    Args:
        topology: what connects the hosts.
        command: its name.
        shape: the command's own options.
        options: the options that it shares with others.
        simgrid: the version that reads the file; Batsim's if None.
        output: the file.
        as_json: print what was written as data.
        network: write links; without them the topology is unknown.
        places: of the hosts by name; numbered ones by default.
    """
    import msgspec

    from decision import __version__
    from decision.files.generate.platforms import describe_topology, networked
    from decision.files.simgrid.values import BATSIM_SIMGRID
    from decision.files.simgrid.write_platform import write_platform

    platform = networked(topology, *_power(options.speed, options.power), places)
    description = describe_topology(topology, len(platform.hosts))
    if not network:
        platform = msgspec.structs.replace(platform, topology=None, places=())
        description = f"{len(platform.hosts)} hosts without links: messages take no time."
    written = {**shape, **options._asdict(), "simgrid": simgrid}
    given = " ".join(f"{key}={value}" for key, value in written.items() if value is not None)
    comment = fill(f"{description} Made by decision {__version__}: platform {command}, {given}.", 110)
    write_platform(output, platform, comment, simgrid or BATSIM_SIMGRID)
    print_written(output, platform, as_json, description)


def _power(speed: str, power: str) -> "tuple[tuple[PowerState, ...], tuple[SleepState, ...], dict[str, str]]":
    """The pstates, sleep states and properties of a host.

    Raises:
        ConfigError: if one of the two cannot be read, or is too small.
    """
    from decision.files.generate.platforms import taurus_power
    from decision.files.simgrid.values import parse_speed, parse_wattage
    from decision.model.platform import PowerState

    flops = parse_speed(speed)
    least = 1e9 if power == "taurus" else 1.0  # the speeds of taurus's frequencies are rounded to 0.01 Gf
    if flops < least:
        raise ConfigError(f"--speed {speed!r}: must be at least {least:g} flop/s")
    if power == "taurus":
        return taurus_power(flops, 1)
    if power == "none":
        return (PowerState(flops),), (), {}
    ((idle, epsilon, computing), *others) = parse_wattage(power)
    if others:
        raise ConfigError(f"--power {power!r}: give taurus, none, or watts as IDLE:COMPUTING")
    if idle > computing:
        raise ConfigError(f"--power {power!r}: expected IDLE:COMPUTING with IDLE <= COMPUTING")
    return (PowerState(flops, idle, epsilon, computing),), (), {}
