"""``decision platform slurm``: the tree of switches of a topology.conf."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .grouped import with_groups
from .network_options import LevelOptions, read_links, write_networked
from .options import JsonOption, OutputFile, SimgridOption

if TYPE_CHECKING:
    from decision.model.topology import Link, Topology

TopologyFile = Annotated[
    Path, typer.Argument(help="Slurm's file of switches, topology.conf.", metavar="FILE", dir_okay=False)
]


@with_groups
def slurm_command(
    file: TopologyFile,
    links: LevelOptions,
    simgrid: SimgridOption = None,
    output: OutputFile = Path("slurm.xml"),
    as_json: JsonOption = False,
) -> None:
    """Write the platform of a Slurm's topology.conf: its nodes, by their names, below its switches.

    The file is that of the plugin topology/tree: lines with SwitchName, and Nodes
    or Switches. Links L0 are those of nodes, L1 those up from leaf switches, and so
    on; LinkSpeed is not used, as in Slurm, and --bandwidth says how fast they are.
    Where switches hang at different heights, each link of a lower one counts once
    for every level that it spans.

    The allocations slurm-tree and tree look at these switches.

    Examples:

      decision platform slurm /etc/slurm/topology.conf -o cluster.xml

      decision compare -p cluster.xml -w log.swf --policy easy,allocation=slurm-tree \\
          --policy easy,allocation=tree --metric hops --metric wait
    """
    from decision.slurm.switches import read_switches

    found = read_switches(file)
    levels = read_links(links, levels=len(found.down))
    shape = {"file": file.name, "switches": found.switches}
    topology = _topology(found.down, levels)
    write_networked(topology, "slurm", shape, links, simgrid, output, as_json, places=found.places)


def _topology(down: "tuple[int, ...]", links: "list[Link]") -> "Topology":
    from decision.model.topology import FatTree, Flat

    ones = (1,) * len(down)
    return Flat(down[0], links[0]) if len(down) == 1 else FatTree(down, ones, ones, tuple(links), pooled=True)
