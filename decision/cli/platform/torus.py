"""``decision platform torus``: a grid of hosts whose ends meet."""

from pathlib import Path
from typing import Annotated

import typer

from decision.model.errors import ConfigError

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

Dims = Annotated[str, typer.Option("--dims", help="Hosts in each dimension.", metavar="XxYxZ")]


def torus(
    dims: Dims,
    bandwidth: BandwidthOption = BANDWIDTH,
    latency: LatencyOption = LATENCY,
    speed: SpeedOption = SPEED,
    power: PowerOption = POWER,
    simgrid: SimgridOption = None,
    output: OutputOption = Path("torus.xml"),
) -> None:
    """Write the platform of a torus of any dimensions.

    Each host has a link to the next one in each dimension, and the last to the
    first. Ids run along the first dimension fastest, and two hosts are as many
    hops apart as links lie between them.

    Example:

      decision platform torus --dims 4x4x4 --bandwidth 10GBps -o torus64.xml
    """
    from decision.model.topology import Torus

    (link,) = read_links(bandwidth, latency)
    topology = Torus(_read_dims(dims), link)
    write_networked(topology, "torus", {"dims": dims}, Options(bandwidth, latency, speed, power, simgrid, output))


def _read_dims(text: str) -> tuple[int, ...]:
    """The dimensions from ``4x4x4``.

    Raises:
        ConfigError: if they are written otherwise.
    """
    parts = text.split("x")
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--dims {text!r}: write whole numbers like 4x4x4")
    return tuple(map(int, parts))
