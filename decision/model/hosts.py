"""Sets of host ids, and the notation in which Batsim writes them: ``0-3 7``."""

from collections.abc import Iterable

from .errors import ConfigError


def format_hosts(ids: Iterable[int]) -> str:
    """Write host ids in Batsim's interval notation, ascending: ``[0, 1, 2, 3, 7]`` gives ``"0-3 7"``."""
    return format_intervals(intervals(ids))


def _interval(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


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
    return " ".join(_interval(first, last) for first, last in runs)


def parse_hosts(text: str) -> list[int]:
    """Read host ids from Batsim's interval notation; spaces and commas separate intervals.

    Returns the ids ascending and without repetition.

    Raises:
        ConfigError: if a part is neither ``7`` nor ``3-5``, or an interval runs backwards.
    """
    return sorted({host for low, high in parse_intervals(text) for host in range(low, high + 1)})


def parse_intervals(text: str) -> list[tuple[int, int]]:
    """The intervals of Batsim's notation as they stand, first and last host of each; errors as `parse_hosts`."""
    return [_parse_interval(part, text) for part in text.replace(",", " ").split()]


def _parse_interval(part: str, text: str) -> tuple[int, int]:
    first, dash, last = part.partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise ConfigError(f"host set {text!r}: {part!r} is neither a host id nor an interval like 3-5")
    low, high = int(first), int(last) if dash else int(first)
    if high < low:
        raise ConfigError(f"host set {text!r}: the interval {part!r} runs backwards")
    return low, high
