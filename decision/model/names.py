"""Many names in one: ``taurus-[1-16]``, as tools of clusters fold them; and the name that was meant."""

import difflib
import re
from collections.abc import Iterable, Sequence

from .hosts import intervals

_NUMBERS = re.compile(r"(\d+)")
_RENAMED = {"green": "timetable"}  # in the previous release: the evolved policy, and how it is made again


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt or former name: ``; did you mean easy?``, or nothing. Capitals make no difference."""
    spelt = {each.casefold(): each for each in known}
    if (present := _RENAMED.get(name)) in spelt:
        return f"; it is {present} now"
    found = difflib.get_close_matches(name.casefold(), spelt, n=1)
    return f"; did you mean {spelt[found[0]]}?" if found else ""


def fold_names(names: Iterable[str]) -> list[str]:
    """Names that differ in numbers as one with ranges: ``orion-[1-4]-core-[00-11]``; others as they are.

    Numbers with leading zeros are folded where all have the same width.
    """
    folded = [tuple(_NUMBERS.split(name)) for name in dict.fromkeys(names)]
    for place in range(max(map(len, folded), default=1) - 2, 0, -2):
        folded = _fold(folded, place)
    return ["".join(parts) for parts in folded]


def _fold(names: Sequence[tuple[str, ...]], place: int) -> list[tuple[str, ...]]:
    """Names in parts, those that differ in the part at this place only folded into one."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for parts in names:
        groups.setdefault((parts[:place], parts[place + 1 :]), []).extend(parts[place : place + 1])
    return [
        (*before, number, *after) for (before, after), numbers in groups.items() for number in _ranges(numbers) or [""]
    ]


def _ranges(numbers: Sequence[str]) -> list[str]:
    """Several numbers as one text in brackets, or as they are if they cannot be."""
    padded = any(number.startswith("0") and len(number) > 1 for number in numbers)
    widths = {len(number) for number in numbers}
    if len(numbers) < 2 or (padded and len(widths) > 1):
        return list(numbers)
    width = widths.pop() if padded else 0
    runs = intervals(int(number) for number in numbers)
    text = ",".join(f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in runs)
    return [f"[{text}]"]


def without_folders(text: str) -> str:
    """A text in which files with a whole path have their names alone: ``-w log.swf`` for ``-w /home/me/log.swf``."""
    text = re.sub(r"""(['"])~?/[^'"=,]*/(?=[^'"=,/]+\1)""", r"\1", text)  # in quotes, folders may have blanks
    return re.sub(r"(?<![^\s=,:;('\"])~?/(?:[^\s=,:;'\"/]+/)+(?=[^\s=,:;'\"/])", "", text)
