"""What the commands that make a platform with a network have in common."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from decision.model.errors import ConfigError

from ..terminal import stdout

if TYPE_CHECKING:
    from decision.model.platform import PowerState, SleepState
    from decision.model.topology import Link, Topology

HOSTS = "Hosts"

BandwidthOption = Annotated[
    str, typer.Option("--bandwidth", help="Of a link, each way: GBps are bytes, Gbps bits.", metavar="RATE")
]
LatencyOption = Annotated[str, typer.Option("--latency", help="Of a link.", metavar="TIME")]
SpeedOption = Annotated[str, typer.Option("--speed", help="Of a host.", metavar="FLOPS", rich_help_panel=HOSTS)]
PowerOption = Annotated[
    str,
    typer.Option(
        "--power",
        help="Watts of a host idle and computing; taurus for the frequencies and sleep of a server of that cluster; "
        "or none.",
        metavar="IDLE:COMPUTING",
        rich_help_panel=HOSTS,
    ),
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The file.", metavar="FILE")]

BANDWIDTH = "12.5GBps"
LATENCY = "1us"
SPEED = "141.24Gf"
POWER = "95:190.738"


def read_links(bandwidth: str, latency: str, levels: int = 1) -> "list[Link]":
    """The links of each level, from one value for all or one for each, separated by commas.

    Raises:
        ConfigError: if there are as many values as neither, or one cannot be read.
    """
    from decision.formats.network import parse_bandwidth, parse_latency
    from decision.model.topology import Link

    bandwidths = _each("--bandwidth", bandwidth, levels)
    latencies = _each("--latency", latency, levels)
    return [Link(parse_bandwidth(b), parse_latency(d)) for b, d in zip(bandwidths, latencies, strict=True)]


def _each(option: str, text: str, levels: int) -> list[str]:
    values = text.split(",")
    if len(values) not in (1, levels):
        number = "one value" if levels == 1 else f"one value, or {levels}, from the hosts up"
        raise ConfigError(f"{option} {text!r}: give {number}")
    return values if len(values) == levels else values * levels


class Options(NamedTuple):
    """Options of all these commands as they were given."""

    bandwidth: str
    latency: str
    speed: str
    power: str
    simgrid: str | None
    output: Path


def write_networked(topology: "Topology", command: str, shape: Mapping[str, object], options: Options) -> None:
    """Write the platform of equal hosts in a topology; a comment says what it is and which command made it.

    Args:
        topology: what connects the hosts.
        command: its name.
        shape: the command's own options.
        options: the options that it shares with others.
    """
    from decision import __version__
    from decision.formats.platform_write import write_platform
    from decision.formats.simgrid import BATSIM_SIMGRID
    from decision.generate.topologies import describe_topology, networked

    from .tables import print_written

    platform = networked(topology, *_power(options.speed, options.power))
    description = describe_topology(topology)
    written = {**shape, **options._asdict(), "output": None}
    given = " ".join(f"{key}={value}" for key, value in written.items() if value is not None)
    comment = fill(f"{description} Made by decision {__version__}: platform {command}, {given}.", 110)
    write_platform(options.output, platform, comment, options.simgrid or BATSIM_SIMGRID)
    print_written(options.output, platform)
    stdout().print(description, highlight=False, soft_wrap=True)


def _power(speed: str, power: str) -> "tuple[tuple[PowerState, ...], tuple[SleepState, ...], dict[str, str]]":
    """The pstates, sleep states and properties of a host.

    Raises:
        ConfigError: if one of the two cannot be read, or is too small.
    """
    from decision.formats.power import parse_speed, parse_wattage
    from decision.generate.clusters import taurus_power
    from decision.model.platform import PowerState

    flops = parse_speed(speed)
    least = 1e9 if power == "taurus" else 1.0  # the speeds of taurus's frequencies are rounded to 0.01 Gf
    if flops < least:
        raise ConfigError(f"--speed {speed!r}: at least {least:g} flop/s are needed")
    if power == "taurus":
        return taurus_power(flops, 1)
    if power == "none":
        return (PowerState(flops),), (), {}
    ((idle, epsilon, computing), *others) = parse_wattage(power)
    if others:
        raise ConfigError(f"--power {power!r}: give taurus, none, or watts as IDLE:COMPUTING")
    if idle > computing:
        raise ConfigError(f"--power {power!r}: a host draws more when it computes; write idle first")
    return (PowerState(flops, idle, epsilon, computing),), (), {}
