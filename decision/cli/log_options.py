"""Options of commands that read logs: the format, what a host is, the machine, the time zone, the columns."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .options import TimeZoneOption

if TYPE_CHECKING:
    from decision.formats.traces.read import TraceOptions


_logs_option = partial(typer.Option, rich_help_panel="How the file is read")

Format = Annotated[
    str | None,
    _logs_option(
        "--format",
        help="Format of the input, where its content is misread: json, swf, gwf, oar, sacct, sacct-json, pbs, lsf, "
        "sge, csv or parquet.",
        metavar="FORMAT",
        show_default=False,
    ),
]
UnitOption = Annotated[
    str,
    _logs_option(
        "--unit",
        help="What a host is: nodes, cores, gpus, or auto: nodes where at most 2 % of the jobs shared one, else cores.",
        metavar="UNIT",
    ),
]
Machine = Annotated[
    int | None,
    _logs_option(
        "--machine",
        help="Hosts of the machine; by default those of the header, a file FILE.machines, the distinct nodes, or the "
        "peak of recorded use.",
        min=1,
        metavar="N",
    ),
]
Columns = Annotated[
    str | None,
    _logs_option(
        "--columns",
        help="Names of sacct's columns with commas between them, where there is no header; or a TOML file that says "
        "which columns of a table are submit, wait or start, run or end, size, walltime, user and id.",
        metavar="NAMES|FILE",
    ),
]


class LogReading(NamedTuple):
    """How logs are read, as the user wants it."""

    kind: Format = None
    unit: UnitOption = "auto"
    machine: Machine = None
    time_zone: TimeZoneOption = None
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
