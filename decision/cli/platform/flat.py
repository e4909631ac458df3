"""``decision platform flat``: hosts around one switch."""

from pathlib import Path
from typing import Annotated

import typer

from .networked import (
    BANDWIDTH,
    LATENCY,
    POWER,
    SPEED,
    BandwidthOption,
    LatencyOption,
    Options,
    OutputOption,
    PowerOption,
    SpeedOption,
    read_links,
    write_networked,
)
from .options import SimgridOption

Number = Annotated[int, typer.Option("--hosts", help="How many.", metavar="N")]


def flat(
    hosts: Number,
    bandwidth: BandwidthOption = BANDWIDTH,
    latency: LatencyOption = LATENCY,
    speed: SpeedOption = SPEED,
    power: PowerOption = POWER,
    simgrid: SimgridOption = None,
    output: OutputOption = Path("flat.xml"),
) -> None:
    """Write the platform of equal hosts around one switch that never saturates.

    Each host has a link of its own, so that all are 2 hops apart.

    Example:

      decision platform flat --hosts 64 --bandwidth 1Gbps --latency 50us
    """
    from decision.model.topology import Flat

    (link,) = read_links(bandwidth, latency)
    topology = Flat(hosts, link)
    write_networked(topology, "flat", {"hosts": hosts}, Options(bandwidth, latency, speed, power, simgrid, output))
