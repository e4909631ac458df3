"""What all reproductions do alike: their tables, and their ends."""

import sys
from collections.abc import Callable, Sequence

import typer
from rich.table import Column, Table

from decision.cli.terminal import stderr, stdout
from decision.model.errors import DecisionError


def run_script(main: Callable[..., None]) -> None:
    """Run a script's command; an error of this package is one line and its exit code."""
    try:
        typer.run(main)
    except DecisionError as error:
        stderr().print(f"error: {error}", style="bold red", soft_wrap=True)
        sys.exit(error.exit_code)


def print_table(rows: Sequence[Sequence[str]], caption: str | None = None) -> None:
    """Rows, the first of which are headers; names in the first column stay in one line."""
    header, *body = rows
    table = Table(*(Column(title, no_wrap=at == 0) for at, title in enumerate(header)), caption=caption)
    for row in body:
        table.add_row(*row)
    stdout().print(table)


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of such a table in Markdown."""
    header, *body = (f"| {' | '.join(row)} |" for row in rows)
    return [header, f"|{'---|' * len(rows[0])}", *body]
