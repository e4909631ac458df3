"""Options of commands that read logs: the format, what a host is, the machine, the time zone, the columns."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from decision.formats.traces.read import TraceOptions


_LOGS = "How the file is read"

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Format of the input, where its content is misread: json, swf, gwf, oar, sacct, sacct-json, pbs, lsf, "
        "sge, csv or parquet.",
        metavar="FORMAT",
        show_default=False,
        rich_help_panel=_LOGS,
    ),
]
UnitOption = Annotated[
    str,
    typer.Option(
        "--unit",
        help="What a host is: nodes, cores, gpus, or auto: nodes where at most 2 % of the jobs shared one, else cores.",
        metavar="UNIT",
        rich_help_panel=_LOGS,
    ),
]
Machine = Annotated[
    int | None,
    typer.Option(
        "--machine",
        help="Hosts of the machine; by default those of the header, a file FILE.machines, the distinct nodes, or the "
        "peak of recorded use.",
        min=1,
        metavar="N",
        rich_help_panel=_LOGS,
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone",
        help="Time zone of local times, such as Europe/Berlin.",
        show_default="UTC",
        metavar="ZONE",
        rich_help_panel=_LOGS,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of sacct's columns with commas between them, where there is no header; or a TOML file that says "
        "which columns of a table are submit, wait or start, run or end, size, walltime, user and id.",
        metavar="NAMES|FILE",
        rich_help_panel=_LOGS,
    ),
]


class LogReading(NamedTuple):
    """How logs are read, as the user wants it."""

    kind: Format = None
    unit: UnitOption = "auto"
    machine: Machine = None
    time_zone: TimeZone = None
    columns: Columns = None

    def options(self, time_field: int | None = None, given: str | None = None) -> "TraceOptions":
        """What readers of logs take; `given` is the format, where the command says it."""
        from decision.formats.traces.read import TraceOptions

        return TraceOptions(
            format=self.kind or given,
            unit=self.unit,
            machine=self.machine,
            time_zone=self.time_zone,
            columns=self.columns,
            time_field=time_field,
        )
