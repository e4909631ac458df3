"""What commands of papers share: options, and how findings are shown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.measure import Measurement
from rich.table import Table

from decision.cli.options import Spread
from decision.cli.tables import print_json, simple_table
from decision.cli.terminal import announce_compilation, counting, stdout

if TYPE_CHECKING:
    from decision.experiments.tasks import How

    from .campaign import Findings, Parts, ResultTable

Data = Annotated[Path, typer.Option("--data", help="Folder of the inputs, which are not shipped.", metavar="FOLDER")]
PartsFolder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Folder for finished parts and results; out/NAME by default.", metavar="FOLDER"
    ),
]
Log = Annotated[
    Path, typer.Option("--swf", help="Log lublin_256, or another one in the Standard Workload Format.", metavar="FILE")
]
BudgetOption = Annotated[
    Literal["smoke", "standard", "full"],
    typer.Option("--budget", help="Number and length of trainings: a minute, hours or days."),
]
Finished = Annotated[bool, typer.Option("--finished", help="Train nothing; show the finished runs.")]


def parts_in(output: Path | None, name: str, how: "How", progress: Callable[[int, int], None]) -> "Parts":
    """Parts in the folder that was named, or else in ``out/NAME``."""
    from .campaign import Parts

    return Parts(output or Path("out") / name, progress=progress, others=how)


def reproduce(parts: str, run: "Callable[..., Findings]", as_json: bool, spread: Spread | None = None) -> None:
    """Show what a function finds.

    Args:
        parts: what is counted while it runs.
        run: takes a progress display; before it, with `spread`, how runs are done.
        as_json: whether one JSON document is printed in place of tables.
        spread: the options for many machines, of a command that has them.
    """
    announce_compilation()
    with counting(parts) as show:
        if spread is None:
            findings = run(show)
        else:
            with spread.begun() as how:
                findings = run(how, show)
    _print_findings(findings, as_json)


def reproduce_budget(
    run: "Callable[..., Findings]",
    name: str,
    output: Path | None,
    budget: str,
    finished: bool,
    spread: Spread,
    as_json: bool,
) -> None:
    """Show what a campaign's `run` of this name finds with a budget, or what its finished parts have found."""
    reproduce(
        "parts",
        lambda how, progress: run(parts_in(output, name, how, progress), budget, only_finished=finished),
        as_json,
        spread,
    )


def _print_findings(findings: "Findings", as_json: bool) -> None:
    """A reproduction's tables and what they say."""
    if as_json:
        print_json({"tables": [table._asdict() for table in findings.tables], "notes": findings.notes})
        return
    tables: Sequence[Table] = [_result_table(table, whole=findings.side_by_side) for table in findings.tables]
    if findings.side_by_side:
        grid = Table.grid(padding=(0, 2))
        grid.add_row(*tables)
        if Measurement.get(stdout(), stdout().options, grid).maximum < stdout().width:
            tables = [grid]
    for table in tables:
        stdout().print(table)
    stdout().print(findings.notes, highlight=False)


def _result_table(found: "ResultTable", whole: bool) -> Table:
    """`whole`: no cell wraps; otherwise those of the first column do not."""
    table = simple_table(title=found.title)
    table.collapse_padding = True
    for at, (header, cells) in enumerate(zip(found.columns, zip(*found.rows, strict=True), strict=True)):
        words = any(cell[:1].isalpha() for cell in cells)
        table.add_column(header, justify="left" if words else "right", no_wrap=whole or at == 0)
    for row in found.rows:
        table.add_row(*row)
    return table
