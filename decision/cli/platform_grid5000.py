"""``decision platform grid5000``: the clusters of Grid'5000."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import JsonOption, SimgridOption

if TYPE_CHECKING:
    from decision.generate.clusters import SwitchTimes


class Flops(StrEnum):
    """Which speed a core has."""

    MEASURED = "measured"
    THEORETICAL = "theoretical"


class Granularity(StrEnum):
    """What a host is."""

    HOST = "host"
    CORE = "core"


class PowerSource(StrEnum):
    """Whose power the hosts have."""

    OWN = "own"
    TAURUS = "taurus"
    NONE = "none"


ClusterName = Annotated[str | None, typer.Argument(help="Name of the cluster; without a name, all are listed.")]
CoreSpeed = Annotated[Flops, typer.Option("--flops", help="Core speed: measured, or the theoretical peak.")]
Servers = Annotated[int | None, typer.Option("--hosts", help="Number of servers; all by default.", min=1)]
Grain = Annotated[Granularity, typer.Option("--granularity", help="What one host is: a server, or one of its cores.")]
Power = Annotated[
    PowerSource | None,
    typer.Option("--energy", help="Power: the cluster's own where measured, that of taurus, or none."),
]
Network = Annotated[bool, typer.Option(help="Write links; without them messages take no time.")]
SwitchSeconds = Annotated[
    str | None,
    typer.Option(
        "--switch-times",
        help="Seconds that hosts take to wake and to fall asleep; as measured by default.",
        metavar="WAKE,SLEEP",
    ),
]
ClusterFile = Annotated[
    Path | None, typer.Option("--output", "-o", help="Output file; CLUSTER.xml by default.", metavar="FILE")
]


def grid5000_command(
    cluster: ClusterName = None,
    flops: CoreSpeed = Flops.MEASURED,
    granularity: Grain = Granularity.HOST,
    hosts: Servers = None,
    energy: Power = None,
    network: Network = True,
    switch_times: SwitchSeconds = None,
    simgrid: SimgridOption = None,
    output: ClusterFile = None,
    as_json: JsonOption = False,
) -> None:
    """Write the platform of a Grid'5000 cluster, with the source of each figure.

    Power and sleep states are known for taurus only. The other clusters have
    none, unless --energy taurus gives them those of its servers, as studies that
    simulate these clusters do.

    With --granularity core each core is a host, and the property 'server' says
    which cores are one machine: they share its power equally, and should be
    switched together.

    --switch-times 60,180 lets hosts wake in 60 s and fall asleep in 180 s, as in
    the platform of DeepScheduling's authors; measured were 151.52 s and 6.1 s.

    Examples:

      decision platform grid5000

      decision platform grid5000 taurus -o taurus.xml

      decision platform grid5000 graphite --granularity core --energy taurus \\
          --simgrid 3.24 -o graphite.xml
    """
    from decision import __version__
    from decision.formats.platform_write import write_platform
    from decision.formats.simgrid import BATSIM_SIMGRID
    from decision.generate.clusters import Wanted, describe_cluster, grid5000_cluster
    from decision.generate.grid5000 import CLUSTERS, find_cluster
    from decision.model.errors import ConfigError

    from .platform_tables import print_clusters, print_written
    from .terminal import note

    if cluster is None:
        print_clusters(list(CLUSTERS.values()), as_json)
        return
    facts = find_cluster(cluster)
    wanted = Wanted(
        cluster=facts,
        flops=flops.value,
        servers=hosts,
        by_core=granularity is Granularity.CORE,
        power=_has_power(facts.name, energy),
        network=network,
        switch_times=_read_switch_times(switch_times),
    )
    if wanted.switch_times and not wanted.power:
        raise ConfigError(f"--switch-times {switch_times}: hosts of {facts.name} do not sleep; add --energy taurus")
    platform = grid5000_cluster(wanted)
    path = output or Path(f"{facts.name}.xml")
    comment = f"{describe_cluster(wanted)}\nMade by decision {__version__}."
    write_platform(path, platform, comment, simgrid or BATSIM_SIMGRID)
    print_written(path, platform, as_json)
    if energy is None and not wanted.power:
        note("its power has not been measured; --energy taurus gives it that of taurus")


def _read_switch_times(text: str | None) -> "SwitchTimes | None":
    """Seconds to wake and to fall asleep. Raises ConfigError."""
    from decision.generate.clusters import SwitchTimes
    from decision.model.errors import ConfigError

    if text is None:
        return None
    try:
        wake, sleep = (float(seconds) for seconds in text.split(","))
    except ValueError:
        wake = sleep = 0.0
    if not all(0 < seconds < math.inf for seconds in (wake, sleep)):
        raise ConfigError(f"--switch-times {text!r}: write it as WAKE,SLEEP in seconds above 0, like 60,180")
    return SwitchTimes(wake, sleep)


def _has_power(name: str, energy: PowerSource | None) -> bool:
    """Whether the hosts get taurus's power.

    Raises:
        ConfigError: if the cluster's own is wanted and was never measured.
    """
    from decision.model.errors import ConfigError

    own = name == "taurus"
    if energy is PowerSource.OWN and not own:
        raise ConfigError(f"{name}: its power has not been measured; choose --energy taurus or --energy none")
    return own if energy is None else energy is not PowerSource.NONE
