"""Sets of host ids, and the notation in which Batsim writes them: ``0-3 7``."""

import difflib
import re
from collections.abc import Iterable, Sequence

from .errors import ConfigError

MOST_HOSTS = 1_000_000  # of a platform; more are a mistake, or more than fits into memory
_SHOWN = 60  # characters of a text in an error
_INTERVAL = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII).fullmatch


def format_hosts(ids: Iterable[int]) -> str:
    """Write host ids in Batsim's interval notation, ascending: ``[0, 1, 2, 3, 7]`` gives ``"0-3 7"``."""
    return format_intervals(intervals(ids))


def intervals(ids: Iterable[int]) -> list[tuple[int, int]]:
    """The maximal runs of host ids as (first, last), ascending."""
    runs: list[tuple[int, int]] = []
    for host in sorted(ids):
        if runs and host <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(host, runs[-1][1]))
        else:
            runs.append((host, host))
    return runs


def format_intervals(runs: Iterable[tuple[int, int]]) -> str:
    """Write (first, last) runs, ascending and apart from one another, in Batsim's notation."""
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def parse_hosts(text: str, nb_hosts: int = MOST_HOSTS) -> list[int]:
    """Read host ids from Batsim's interval notation; spaces and commas separate intervals.

    Args:
        text: the host set.
        nb_hosts: how many hosts there are; checked before any interval is expanded, which may be from a peer.

    Returns:
        The ids ascending and without repetition.

    Raises:
        ConfigError: if a part is neither ``7`` nor ``3-5``, an interval runs backwards, or a host is not there.
    """
    runs = parse_intervals(text)
    last = max((last for _, last in runs), default=0)
    if last >= nb_hosts:
        raise ConfigError(f"host set {_shown(text)}: there is no host {last}, the last one is {nb_hosts - 1}")
    hosts: list[int] = []
    for low, high in sorted(runs):
        hosts.extend(range(max(low, hosts[-1] + 1) if hosts else low, high + 1))
    return hosts


def parse_intervals(text: str) -> list[tuple[int, int]]:
    """The intervals of Batsim's notation as they stand, first and last host of each; errors as `parse_hosts`."""
    return [_parse_interval(part, text) for part in text.replace(",", " ").split()]


def _parse_interval(part: str, text: str) -> tuple[int, int]:
    interval = _INTERVAL(part)
    if interval is None:
        reason = f"{_shown(part)} is neither a host id nor an interval like 3-5"
        raise ConfigError(f"host set {_shown(text)}: {reason}")
    low, high = int(interval[1]), int(interval[2] or interval[1])
    if high < low:
        raise ConfigError(f"host set {_shown(text)}: the interval {_shown(part)} runs backwards")
    return low, high


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


# Many names in one: ``taurus-[1-16]``, as tools of clusters fold them; and the name that was meant.

_NUMBERS = re.compile(r"(\d+)")
_RENAMED = {"green": "timetable"}  # in the previous release: the evolved policy, and how it is made again


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt or former name: ``; did you mean easy?``, or nothing. Capitals make no difference."""
    spelt = {option.casefold(): option for option in known}
    if (present := _RENAMED.get(name)) in spelt:
        return f"; it is {present} now"
    close = difflib.get_close_matches(name.casefold(), spelt, n=1)
    return f"; did you mean {spelt[close[0]]}?" if close else ""


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


def encodable(text: str) -> str:
    """A text with escapes for what is not a character: halves of pairs in names of files and in a user's errors."""
    return text.encode(errors="backslashreplace").decode()
