"""``decision workload carbon`` and ``price``: what a kWh emits and costs by time, as external events."""

from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption, OutputFile
from .series_options import Begin, ColumnName, Gaps, GapsOption, TimeColumn, layout_of

_KWH_PER_MWH = 1000.0
_CARBON = ("carbon_intensity", "avg_ci", "value")
_PRICE = ("price", "energy_price", "value")

Table = Annotated[Path, typer.Argument(help="Table by time, CSV or Parquet.", metavar="FILE", dir_okay=False)]
For = Annotated[
    Path | None, typer.Option("--for", help="Workload that the table must last for.", metavar="FILE", dir_okay=False)
]
PerMwh = Annotated[bool, typer.Option("--per-mwh", help="The table has prices per MWh.")]


def carbon_command(
    table: Table,
    output: OutputFile,
    workload: For = None,
    time_column: TimeColumn = None,
    column: ColumnName = None,
    begin: Begin = None,
    gaps: GapsOption = Gaps.REFUSE,
    as_json: JsonOption = False,
) -> None:
    """Say what a kWh emits by time, g of CO2, for --events.

    Tables have any columns and any step; those of opendc-traces (timestamp,
    carbon_intensity) and Green-DCC (avg_CI) are known by their names. With -E,
    decision run and compare --metric carbon measure what a run emitted. The file
    has generic events of Batsim, {"type": "carbon_intensity", "timestamp": t,
    "value": g}; a Batsim of your own needs --forward-unknown-events, which decision
    run passes itself.

    Examples:

      decision workload carbon NL-2023.parquet -o carbon.txt

      decision workload carbon DE.csv --for week.json --column avg_CI
          --begin 2024-05-01T00:00:00+02:00 --gaps linear -o carbon.txt
    """
    from decision.model.workload import CARBON

    layout = time_column, column, begin, gaps
    _write(CARBON, table, output, workload, layout, usual=_CARBON, scale=1.0, as_json=as_json)


def price_command(
    table: Table,
    output: OutputFile,
    workload: For = None,
    time_column: TimeColumn = None,
    column: ColumnName = None,
    per_mwh: PerMwh = False,
    begin: Begin = None,
    gaps: GapsOption = Gaps.REFUSE,
    as_json: JsonOption = False,
) -> None:
    """Say what a kWh costs by time, for --events; prices may be below 0.

    As decision workload carbon, for the metric cost. The events are
    {"type": "energy_price", "timestamp": t, "value": price of a kWh}.

    Example:

      decision workload price day-ahead.csv --column EUR --per-mwh -o price.txt
    """
    from decision.model.workload import PRICE

    layout = time_column, column, begin, gaps
    scale = 1.0 / _KWH_PER_MWH if per_mwh else 1.0
    _write(PRICE, table, output, workload, layout, usual=_PRICE, scale=scale, as_json=as_json)


def _write(
    kind: str,
    table: Path,
    output: Path,
    workload: Path | None,
    layout: tuple[str | None, str | None, str | None, Gaps],
    *,
    usual: tuple[str, ...],
    scale: float,
    as_json: bool,
) -> None:
    import msgspec

    from decision.computer.shipped import find_workload
    from decision.formats import load_workload
    from decision.formats.files import write_files
    from decision.formats.series import read_series
    from decision.model.demand import submit_times
    from decision.model.workload import PRICE

    from .tables import number, print_json
    from .terminal import say

    jobs = load_workload(find_workload(workload)) if workload else None
    until = float(submit_times(jobs).max()) if jobs is not None and jobs.jobs else 0.0
    series = read_series(table, layout_of(*layout), usual, until=until, negative=kind == PRICE)
    rates = series.value * scale
    lines = [
        msgspec.json.encode({"type": kind, "timestamp": time, "value": rate})
        for time, rate in zip(series.time.tolist(), rates.tolist(), strict=True)
    ]
    write_files({output: [b"\n".join([*lines, b""])]})
    if as_json:
        facts = {"path": output, "events": len(lines), "end": series.end, "least": rates.min(), "most": rates.max()}
        print_json(facts)
    else:
        said = f"{number(float(rates.min()))} to {number(float(rates.max()))} per kWh"
        say(f"{output}: {len(lines):,} values, {said}")
