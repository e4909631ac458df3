"""A table of texts, as it is written: Markdown, HTML, LaTeX and CSV. `decision.cli.tables` prints it."""

import csv
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_SPECIAL = str.maketrans(
    {each: f"\\{each}" for each in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
)


class Table(NamedTuple):
    """A table of texts, the first column of which names the row.

    A name of a column that begins with ``>`` is one of figures, which stand at the right.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name.removeprefix(">") for name in self.columns]

    def as_data(self) -> dict[str, Any]:
        """Title, columns and rows, for a JSON document."""
        return {"title": self.title, "columns": self.names, "rows": self.rows}

    def markdown(self, level: int = 0) -> list[str]:
        """The lines of Markdown; with a level under the title, a heading of it, and with an empty line at the end."""
        lines = ["".join(f"| {cell} " for cell in row) + "|" for row in (self.names, *self.rows)]
        rule = "".join("|--:" if name.startswith(">") else "|---" for name in self.columns) + "|"
        table = [lines[0], rule, *lines[1:]]
        return [f"{'#' * level} {self.title}", "", *table, ""] if level else table

    def html(self) -> str:
        """As a cell of a notebook shows it, the title above; without a head where no column has a name."""
        title = f"<caption style='text-align:left'>{html.escape(self.title)}</caption>" if self.title else ""
        head = f"<thead><tr>{_cells(self.names, 'th')}</tr></thead>" if any(self.columns) else ""
        body = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in self.rows)
        return f"<table>{title}{head}<tbody>{body}</tbody></table>"

    def latex(self) -> list[str]:
        """The lines of LaTeX, by booktabs; the title is a comment."""
        places = "".join("r" if name.startswith(">") else "l" for name in self.columns)
        lines = [" & ".join(cell.translate(_SPECIAL) for cell in row) + r" \\" for row in (self.names, *self.rows)]
        head = [f"% {self.title}", f"\\begin{{tabular}}{{{places}}}", r"\toprule", lines[0], r"\midrule"]
        return [*head, *lines[1:], r"\bottomrule", r"\end{tabular}", ""]


def _cells(row: Sequence[str], kind: str) -> str:
    return "".join(f"<{kind} style='text-align:left'>{html.escape(cell)}</{kind}>" for cell in row)


def csv_text(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows of the same columns as CSV, under the columns' names."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
