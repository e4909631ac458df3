"""Pages in HTML, and what they are made of: sections, tables, lists, pictures.

A page is one file and needs no network, which its content security policy enforces: pictures, script and style are
in it.
"""

import base64
import datetime
import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import NamedTuple

import msgspec

from decision import __version__
from decision.formats.files import csv_text
from decision.model.names import without_folders

from .groups import SHOWN_GROUPS, GroupFigures, folded
from .plots.figures import wait_unit
from .plots.pictures import Picture

_SIZES = {"wide": 14, "more": 10, "many": 7}  # columns, above which a table is printed smaller; a wide one's page lies
_MEDIA = {".png": "image/png", ".svg": "image/svg+xml"}


class Cell(NamedTuple):
    """Of a table."""

    text: str
    best: bool = False  # of its column
    markup: str = ""  # HTML in place of the text


Values = Iterable[Mapping[str, object]]  # rows of a table for programs


def page(title: str, parts: Iterable[str], command: str = "", date: str = "") -> bytes:
    """A page of parts in HTML, one below the other, under a title and what made it.

    Args:
        title: what it says, or is of.
        parts: in HTML.
        command: what the user typed, if it was a command.
        date: of the results; today if empty.
    """
    shell = Template(template("page.html"))
    made = [f"decision {__version__}", date or f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"]
    typed = f"<code>{html.escape(without_folders(command))}</code>" if command else ""
    text = shell.substitute(
        title=html.escape(title),
        style=template("page.css"),
        parts="\n".join(parts),
        made=" &middot; ".join([*made, *filter(None, [typed])]),
    )
    return text.encode()


def template(name: str) -> str:
    """A file of the folder ``templates``."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def section(name: str, title: str, content: str) -> str:
    """A part with a title; `name` is its anchor, `content` is HTML."""
    return f'<section id="{name}">\n<h2>{html.escape(title)}</h2>\n{content}\n</section>'


def table(
    headers: Sequence[str], rows: Iterable[Sequence[Cell | str]], name: str, kind: str = "figures", values: Values = ()
) -> str:
    """A table in HTML that scrolls where it has no room, and below it a link that saves it as CSV.

    Args:
        headers: HTML.
        rows: of cells; plain texts are cells, too.
        name: of the CSV file, without its ending.
        kind: ``figures`` or ``words``.
        values: what the CSV has, in place of the cells' texts.
    """
    given = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    head = "".join(f"<th>{header}</th>" for header in headers)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in given)
    names = [html.unescape(re.sub(r"<[^>]*>", " ", header)) for header in headers] or ["name", "value"]
    found = list(values) or [dict(zip(names, (cell.text for cell in row), strict=True)) for row in given]
    size = next((f" {name}" for name, most in _SIZES.items() if len(headers) > most), "")
    content = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'
    return f'<div class="data{size}"><div class="scroll">{content}</div>{_saved(name, csv_text(found))}</div>'


def _cell(shown: Cell) -> str:
    mark = ' class="best"' if shown.best else ""
    return f"<td{mark}>{shown.markup or html.escape(shown.text)}</td>"


def _saved(name: str, text: str) -> str:
    """A link that saves a text as a CSV file: the text is in the link, so that no script and no network is needed."""
    data = base64.b64encode(text.encode()).decode()
    file = re.sub(r"[^\w.,+=@-]+", "-", name).strip("-")
    return f'<a class="save" download="{file}.csv" href="data:text/csv;charset=utf-8;base64,{data}">save as CSV</a>'


def bullets(lines: Sequence[str], kind: str = "note") -> str:
    """Lines of text as a list; its `kind` is ``note``, or ``caveats`` that nobody should miss."""
    return f'<ul class="{kind}">' + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def embedded(shown: Picture, suffix: str) -> str:
    """A picture that stands in the page itself, ``.png`` or ``.svg``, with its caption; narrow windows scroll it."""
    data = base64.b64encode(shown.drawn(suffix)).decode()
    width = shown.figure.get_figwidth()  # inches, in which its type has the size that was asked for
    size = f"min-width: {0.93 * width:g}in; max-width: {1.5 * width:g}in"
    image = f'<img alt="{html.escape(shown.alt)}" style="{size}" src="data:{_MEDIA[suffix]};base64,{data}">'
    return f'<figure><div class="scroll">{image}</div><figcaption>{html.escape(shown.caption)}</figcaption></figure>'


def prose(text: str) -> str:
    """A docstring's text as HTML: what stands in backticks is code."""
    return re.sub(r"(`{1,2})([^`]+)\1", r"<code>\2</code>", html.escape(" ".join(text.split()), quote=False))


REPORT = "report.html"


def group_sections(runs: Mapping[str, Sequence[GroupFigures]], workload: str = "") -> Iterator[str]:
    """A part for each kind of groups: their jobs, host-hours and waits, the largest of the first run.

    Args:
        runs: by name, of the same jobs.
        workload: of which they are, where a page has several.
    """
    main: Sequence[GroupFigures] = next((groups for groups in runs.values() if groups), ())
    for kind in dict.fromkeys(row.by for row in main):
        own = {name: [row for row in rows if row.by == kind] for name, rows in runs.items() if rows}
        first = [row.name for row in next(iter(own.values()))]
        names = first if len(first) <= SHOWN_GROUPS + 1 else first[:SHOWN_GROUPS]
        shown = {name: {row.name: row for row in folded(rows, names)} for name, rows in own.items()}
        unit, unit_name = wait_unit(max(row.mean_wait for groups in shown.values() for row in groups.values()))
        of = [f"<br>{_breakable(name)}" if len(shown) > 1 else "" for name in shown]
        heads = [f"{what}, {unit_name}{name}" for name in of for what in ("mean wait", "longest wait")]
        rows = [
            [
                name,
                f"{row.jobs:,.0f}",
                f"{row.host_seconds / 3600:,.0f}",
                *(text for groups in shown.values() for text in _waits(groups.get(name), unit)),
            ]
            for name, row in next(iter(shown.values())).items()
        ]
        values = [{"run": name} | msgspec.structs.asdict(row) for name, groups in own.items() for row in groups]
        listed = table([kind, "jobs", "host-hours", *heads], rows, f"by-{kind}", values=values)
        title = f"By {kind} on {workload}" if workload else f"By {kind}"
        yield section(f"by-{kind}{workload and '-'}{workload}", title, listed)


def _breakable(name: str) -> str:
    """A policy's name in HTML that is broken behind its signs where there is little room."""
    return re.sub(r"([,+=/_])", r"\1<wbr>", html.escape(name))


def _waits(row: GroupFigures | None, unit: float) -> list[str]:
    """Mean and longest wait."""
    waits = ("-", "-") if row is None else (row.mean_wait / unit, row.max_wait / unit)
    return [wait if isinstance(wait, str) else f"{wait:,.{0 if wait < 0.05 or wait >= 100 else 1}f}" for wait in waits]


def fact_table(facts: Iterable[tuple[str, str]], name: str) -> str:
    """A table of names and what they are; `name` is that of its CSV file."""
    return table((), [[without_folders(text) for text in fact] for fact in facts], name, kind="words")
