"""``decision slurm read``: a case of a slurm.conf, a job log, and what else is known of the cluster."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .options import TimeZoneOption

_files_option = partial(typer.Option, rich_help_panel="Files of the cluster")


def _file(name: str, text: str) -> object:
    return _files_option(name, help=text, metavar="FILE", dir_okay=False)


ConfOption = Annotated[Path, _file("--conf", "Slurm's configuration, slurm.conf.")]
JobsOption = Annotated[Path, _file("--jobs", "The log: what sacct -P or sacct --json prints.")]
NodesOption = Annotated[Path | None, _file("--nodes", "What scontrol show node prints, with or without -o.")]
PartitionsOption = Annotated[Path | None, _file("--partitions", "What scontrol show partition prints.")]
AssocOption = Annotated[Path | None, _file("--assoc", "What sacctmgr -P show assoc prints.")]
QosOption = Annotated[Path | None, _file("--qos", "What sacctmgr -P show qos prints.")]
SharesOption = Annotated[Path | None, _file("--shares", "What sshare -a -l -P prints when the log begins.")]
CyclesOption = Annotated[Path | None, _file("--cycles", "When backfill ran: slurmctld's log, or one time a line.")]
NodeEventsOption = Annotated[Path | None, _file("--events", "What sacctmgr -P show event prints of nodes.")]
ReservationsOption = Annotated[Path | None, _file("--reservations", "What scontrol show res prints.")]
TopologyOption = Annotated[
    Path | None,
    _file("--topology", "Its switches, topology.conf; with topology/tree, the one next to slurm.conf by default."),
]
AnonymousOption = Annotated[bool, typer.Option("--anonymous", help="Hide names of users, accounts and jobs.")]
CaseFolder = Annotated[Path, typer.Option("--output", "-o", help="Folder of the case.", metavar="CASE")]


def read_command(
    conf: ConfOption,
    jobs: JobsOption,
    output: CaseFolder,
    nodes: NodesOption = None,
    partitions: PartitionsOption = None,
    assoc: AssocOption = None,
    qos: QosOption = None,
    shares: SharesOption = None,
    cycles: CyclesOption = None,
    events: NodeEventsOption = None,
    reservations: ReservationsOption = None,
    topology: TopologyOption = None,
    time_zone: TimeZoneOption = None,
    anonymous: AnonymousOption = False,
) -> None:
    """Make a case of a slurm.conf and a job log: platform, workload and case.json.

    The log is what this prints, with the dates of your own weeks:

      sacct -a -P -X -D -S 2026-03-02 -E 2026-03-09 -o JobIDRaw,JobID,User,\\
      Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,\\
      TimelimitRaw,State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,\\
      NodeList,Priority,Reason,Flags,Constraints,Reservation,Suspended,\\
      SubmitLine > sacct.txt

    Columns may be in any order; SubmitLine stands last. What the other files
    are is said at their options; without them slurm.conf and the log speak.

    Example:

      decision slurm read --conf slurm.conf --jobs sacct.txt \\
          --qos qos.txt --shares sshare.txt -o CASE
    """
    from decision.slurm.anonymous import hide_names
    from decision.slurm.case import Sources, read_case
    from decision.slurm.case_folder import write_case

    from .tables import count
    from .terminal import note, say

    case, found = read_case(
        Sources(
            conf=conf,
            jobs=jobs,
            nodes=nodes,
            partitions=partitions,
            assoc=assoc,
            qos=qos,
            shares=shares,
            cycles=cycles,
            events=events,
            reservations=reservations,
            topology=topology,
            time_zone=time_zone or "",
        )
    )
    if anonymous:
        case = hide_names(case)
    write_case(case, found, output)
    for line in (*case.notes, *case.keys.words()):
        note(line)
    parts = (count(len(case.jobs), "job"), count(len(case.nodes), "node"), count(len(case.partitions), "partition"))
    say(f"{output}: {', '.join(parts)}")
