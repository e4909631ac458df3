"""Pages in HTML, and what they are made of: sections, tables, lists, pictures.

A page is one file and needs no network, which its content security policy enforces: pictures, script and style are
in it.
"""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from decision import __version__
from decision.formats.files import utf8

from .plots.pictures import Picture

_MEDIA = {".png": "image/png", ".svg": "image/svg+xml"}


def page(title: str, parts: Iterable[str]) -> bytes:
    """A page of parts in HTML, one below the other, under a title."""
    shell = Template(template("page.html"))
    text = shell.substitute(
        title=html.escape(title), style=template("page.css"), parts="\n".join(parts), version=__version__
    )
    return utf8(text)


def template(name: str) -> str:
    """A file of the folder ``templates``."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def section(name: str, title: str, content: str) -> str:
    """A part with a title; `name` is its anchor, `content` is HTML."""
    return f'<section id="{name}">\n<h2>{html.escape(title)}</h2>\n{content}\n</section>'


def table(headers: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "figures") -> str:
    """A table of cells in HTML that scrolls where it has no room; its `kind` is ``figures`` or ``words``."""
    head = "".join(f"<th>{header}</th>" for header in headers)
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    content = f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody>"
    return f'<div class="scroll"><table class="{kind}">{content}</table></div>'


def cell(text: str, best: bool = False) -> str:
    """A table's cell; the best of a column may be marked."""
    mark = ' class="best"' if best else ""
    return f"<td{mark}>{html.escape(text)}</td>"


def bullets(lines: Sequence[str]) -> str:
    """Lines of text as a list, as notes."""
    return '<ul class="note">' + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


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


def fact_table(facts: Iterable[tuple[str, str]]) -> str:
    """A table of names and what they are."""
    return table((), (map(cell, fact) for fact in facts), kind="words")
