"""Tables that fit where they are printed: no figure is cut, and each row says what it is of."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table

from .terminal import is_uncut, page_width

_LEAST_KEY, _USUAL_KEY = 5, 12  # columns of a long name: as few as they may be, and where there is room
_LEAST_WORDS = 20  # columns of text that is broken between words


class FittedTable(Table):
    """A table that becomes several, one below the other, where it is too wide; each begins with the columns of names.

    Names that are too long are broken, texts are broken between words, and figures stay whole as long as a name and one
    figure fit side by side. A pipe takes tables of any width, but long texts are broken there, too.

    Args:
        names: columns at the left that say what a row is of.
        plain: whether it is a list of facts: no line, no header.
        settings: of `rich.table.Table`.
    """

    def __init__(self, *, names: int = 1, plain: bool = False, **settings: Any) -> None:
        look: dict[str, Any] = {"box": box.SIMPLE_HEAD}
        if plain:
            look = {"box": None, "show_header": False, "padding": (0, 2, 0, 0)}
        super().__init__(pad_edge=False, title_justify="left", caption_justify="left", **look, **settings)
        self._names, self._plain = names, plain

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.columns:
            return
        room = options.max_width
        wanted = [_width(column) for column in self.columns]
        if is_uncut(room):
            yield from self._whole(wanted, page_width(), console, options)
            return
        least = self._least(wanted, room)
        parts = list(self._parts(least, room))
        for at, part in enumerate(parts):
            widths = _grown([least[n] for n in part], [wanted[n] for n in part], room - self._between(len(part)))
            own = self._part(part, widths)
            own.title = self.title if at == 0 else None
            own.caption = self.caption if at == len(parts) - 1 else None
            yield from Table.__rich_console__(own, console, options)

    def _whole(self, wanted: list[int], goal: int, console: Console, options: ConsoleOptions) -> RenderResult:
        """One table, its texts broken so that it is no wider than a page if that can be."""
        texts = [n for n in range(self._names, len(wanted)) if not self.columns[n].no_wrap]
        least = [min(wanted[n], 2 * _LEAST_WORDS) if n in texts else wanted[n] for n in range(len(wanted))]
        own = self._part(range(len(wanted)), _grown(least, wanted, goal - self._between(len(wanted))))
        own.title, own.caption = self.title, self.caption
        yield from Table.__rich_console__(own, console, options)

    def _least(self, wanted: list[int], room: int) -> list[int]:
        """How few columns of characters each column may have."""
        names = range(min(self._names, len(wanted)))
        others = [n for n in range(len(wanted)) if n not in names]
        least = [wanted[n] if self.columns[n].no_wrap else min(wanted[n], _LEAST_WORDS) for n in range(len(wanted))]
        for n in names:
            least[n] = min(wanted[n], _USUAL_KEY)
        widest = max((least[n] for n in others), default=0)
        for n in names:  # the widest figure beside them
            spare = room - self._between(len(names) + 1) - widest - sum(least[m] for m in names if m != n)
            least[n] = max(min(least[n], spare), min(wanted[n], _LEAST_KEY))
        most = max(room - self._between(len(names) + 1) - sum(least[n] for n in names), 1)
        for n in others:
            least[n] = min(least[n], most)
        return least

    def _parts(self, least: list[int], room: int) -> Iterator[list[int]]:
        """Which columns stand side by side."""
        names = list(range(min(self._names, len(least))))
        part = list(names)
        for n in range(len(names), len(least)):
            if len(part) > len(names) and sum(least[m] for m in part) + least[n] + self._between(len(part) + 1) > room:
                yield part
                part = list(names)
            part.append(n)
        yield part

    def _between(self, columns: int) -> int:
        """Characters that are not the columns' own."""
        return 2 * (columns - 1) if self._plain else 3 * columns - 1

    def _part(self, which: Sequence[int], widths: Sequence[int]) -> Table:
        """A table of these columns."""
        own = Table(box=self.box, pad_edge=False, show_header=self.show_header, padding=self.padding)
        own.title_justify, own.caption_justify = self.title_justify, self.caption_justify
        own.collapse_padding = self.collapse_padding
        for n, width in zip(which, widths, strict=True):
            kind = self.columns[n]
            own.add_column(kind.header, justify=kind.justify, style=kind.style, overflow="fold", width=width)
        cells = [list(self.columns[n].cells) for n in which]
        for row in zip(*cells, strict=True):
            own.add_row(*row)
        return own


def _width(column: Column) -> int:
    """The longest line of a column's texts."""
    texts = [str(column.header), *map(str, column.cells)]
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _grown(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Widths for columns that may have `room` together: names first, and what is left to texts."""
    widths, spare = list(least), room - sum(least)
    for n, want in enumerate(wanted):
        more = max(0, min(want - widths[n], spare))
        widths[n], spare = widths[n] + more, spare - more
    return widths
