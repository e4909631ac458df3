"""Options of platforms of equal hosts in a network: links, speed, power; and the file that they make."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from decision.model.errors import ConfigError

from .declared import Option

if TYPE_CHECKING:
    from decision.model.platform import Link, Platform, PowerState, SleepState, Topology


_hosts_option = partial(Option, panel="Hosts")
_RATE = "Link bandwidth in each direction (GBps are bytes, Gbps bits)"

Bandwidth = Annotated[str, Option("--bandwidth", help=f"{_RATE}.", metavar="RATE")]
Bandwidths = Annotated[str, Option("--bandwidth", help=f"{_RATE}: one value, or L0,L1,L2.", metavar="RATE")]
Latency = Annotated[str, Option("--latency", help="Link latency.", metavar="TIME")]
Latencies = Annotated[str, Option("--latency", help="Link latency: one value, or L0,L1,L2.", metavar="TIME")]
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


def print_written(path: Path, platform: "Platform", as_json: bool, description: str = "") -> None:
    """Say which platform was written into which file."""
    from .tables import print_json
    from .terminal import say

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
