"""A small table in HTML: what a cell of a notebook shows that ends in an object of ours."""

import html
from collections.abc import Iterable, Sequence


def rows_html(rows: Iterable[Sequence[object]], header: Sequence[str] = (), caption: str = "") -> str:
    """A table of these rows of texts.

    Args:
        rows: the cells.
        header: of the columns; none if empty.
        caption: above them.
    """
    said = f"<caption style='text-align:left'>{html.escape(caption)}</caption>" if caption else ""
    head = f"<thead><tr>{_cells(header, 'th')}</tr></thead>" if header else ""
    body = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{said}{head}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[object], kind: str) -> str:
    return "".join(f"<{kind} style='text-align:left'>{html.escape(str(cell))}</{kind}>" for cell in row)
