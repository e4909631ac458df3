"""``decision platform grid5000``: a cluster of Grid'5000 as a platform."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..terminal import stderr
from .options import SimgridOption


class Flops(StrEnum):
    """Which speed a core has."""

    MEASURED = "measured"
    THEORETICAL = "theoretical"


class Granularity(StrEnum):
    """What a host is."""

    HOST = "host"
    CORE = "core"


class Energy(StrEnum):
    """Whose power the hosts have."""

    OWN = "own"
    TAURUS = "taurus"
    NONE = "none"


Speed = Annotated[Flops, typer.Option("--flops", help="A core's speed: as benchmarked, or the peak.")]
Hosts = Annotated[int | None, typer.Option("--hosts", help="Servers; as many as there were if not given.", min=1)]
Grain = Annotated[Granularity, typer.Option("--granularity", help="What one host is: a server, or one of its cores.")]
Power = Annotated[
    Energy | None,
    typer.Option("--energy", help="Power: the cluster's own if it was measured, taurus's in its place, or none."),
]
Network = Annotated[bool, typer.Option(help="Write links; without them messages take no time.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file; CLUSTER.xml if not given.", metavar="FILE")
]


def grid5000(
    cluster: Annotated[str | None, typer.Argument(help="Its name; without one all are listed.")] = None,
    flops: Speed = Flops.MEASURED,
    granularity: Grain = Granularity.HOST,
    hosts: Hosts = None,
    energy: Power = None,
    network: Network = True,
    simgrid: SimgridOption = None,
    output: Output = None,
) -> None:
    """Write the platform of a cluster of Grid'5000, each figure with its source.

    Only of taurus are power and sleep states known. The others have none
    unless --energy taurus lends them those of its servers, as studies do that
    simulate these clusters.

    With --granularity core each core is a host, and the property 'server' says
    which ones are one machine: they draw equal shares of its power, and should
    be switched together.

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

    from .tables import print_clusters, print_written

    if cluster is None:
        print_clusters(CLUSTERS.values())
        return
    facts = find_cluster(cluster)
    wanted = Wanted(
        cluster=facts,
        flops=flops.value,
        servers=hosts,
        by_core=granularity is Granularity.CORE,
        power=_has_power(facts.name, energy),
        network=network,
    )
    platform = grid5000_cluster(wanted)
    path = output or Path(f"{facts.name}.xml")
    comment = f"{describe_cluster(wanted)}\nMade by decision {__version__}."
    write_platform(path, platform, comment, simgrid or BATSIM_SIMGRID)
    print_written(path, platform)
    if energy is None and not wanted.power:
        stderr().print("no measurement of its power is known; --energy taurus lends it that of taurus", highlight=False)


def _has_power(name: str, energy: Energy | None) -> bool:
    """Whether the hosts get taurus's power.

    Raises:
        ConfigError: if the cluster's own is wanted and was never measured.
    """
    from decision.model.errors import ConfigError

    own = name == "taurus"
    if energy is Energy.OWN and not own:
        raise ConfigError(f"{name}: no measurement of its power is known; choose --energy taurus or --energy none")
    return own if energy is None else energy is not Energy.NONE
