"""How Slurm writes durations, dates, sizes and lists of hosts."""

import datetime
import math
import re
from collections.abc import Iterable
from zoneinfo import ZoneInfo

from decision.files.accounting.records import read_clock_text
from decision.model.dates import DAY, LAST_DATE

MINUTE, _HOUR = 60, 3600  # seconds
NEVER = -1  # a time that has not come
_NOTHING = {"", "unknown", "none", "n/a", "(null)", "invalid", "none assigned"}
# what squeue, sacct and sacctmgr print for "no limit", in different columns
_ENDLESS = {"unlimited", "infinite", "partition_limit", "-1"}
_SIZE = re.compile(r"([\d.]+)([KMGTP]?)[cn]?$", re.IGNORECASE)
_MEGABYTES = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_MOST_HOSTS = 1_000_000
_NOT_A_NUMBER = re.compile(r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (.*)")


def is_nothing(text: str) -> bool:
    """Whether Slurm says with this text that there is no value."""
    return text.strip().lower() in _NOTHING


def is_endless(text: str) -> bool:
    """Whether Slurm says with this text that there is no limit."""
    return text.strip().lower() in _ENDLESS


def in_plain_words(error: ValueError) -> str:
    """What is wrong with a value, in plain words: Python's own are for programmers."""
    found = _NOT_A_NUMBER.match(str(error))
    return f"{found[1]} is not a number" if found else str(error)


def read_minutes(text: str) -> float:
    """Seconds of a limit: ``30`` (minutes), ``30:00``, ``1:30:00``, ``1-12``, ``1-12:30``; inf for UNLIMITED.

    Raises:
        ValueError: if it is none of these.
    """
    return _duration(text, MINUTE)


def read_duration(text: str) -> float:
    """Seconds of a time that passed: ``90`` (seconds), ``01:30``, ``1-02:03:04``, ``00:01.500``. Raises ValueError."""
    seconds = _duration(text, 1)
    if seconds > LAST_DATE:
        raise ValueError(text)
    return seconds


def _duration(text: str, unit: int) -> float:
    text = text.strip()
    if text.lower() in _ENDLESS:
        return math.inf
    # sbatch(1), --time: after days the first number is of hours; without them two numbers are minutes and seconds
    days, dash, rest = text.rpartition("-")
    parts = [float(part) for part in rest.split(":")] if rest else [0.0]
    if len(parts) > 3 or any(part < 0 for part in parts):
        raise ValueError(text)
    if dash:
        parts += [0.0] * (3 - len(parts))
        return int(days) * DAY + parts[0] * _HOUR + parts[1] * MINUTE + parts[2]
    if len(parts) == 1:
        return parts[0] * unit
    return sum(part * scale for part, scale in zip(reversed(parts), (1, MINUTE, _HOUR), strict=False))


def read_date(text: str, zone: ZoneInfo | None = None) -> int:
    """Seconds since 1970, of the clock's face where no zone is known; `NEVER` where there is no date.

    ISO with or without zone, seconds since 1970, and the formats of ``SLURM_TIME_FORMAT`` with month names or slashes.

    Raises:
        ValueError: if it is not a date.
    """
    text = text.strip()
    if is_nothing(text):
        return NEVER
    # SLURM_TIME_FORMAT=%s; 0 is "not yet"
    if text.isdigit():
        if int(text) > LAST_DATE:
            raise ValueError(text)
        return int(text) or NEVER
    date = read_clock_text(text)
    if date is None:
        raise ValueError(text)
    if date.tzinfo is None:
        date = date.replace(tzinfo=zone or datetime.UTC)
    return round(date.timestamp())


def write_date(seconds: float) -> str:
    """The clock's face as sacct writes it."""
    return datetime.datetime.fromtimestamp(round(seconds), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def read_memory(text: str) -> float:
    """Megabytes of ``8000M``, ``4G``, ``2800Mc``. Raises ValueError."""
    found = _SIZE.match(text.strip())
    if not found:
        raise ValueError(text)
    return float(found[1]) * _MEGABYTES[found[2].upper()]


def read_tres(text: str) -> dict[str, str]:
    """The amounts of ``cpu=4,mem=8G,gres/gpu=1`` by name, as they are written."""
    if is_nothing(text):
        return {}
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def count_gres(parts: Iterable[str]) -> dict[str, int]:
    """Generic resources of ``gpu:a100:2``, ``gpu:2``, ``gpu:a100`` or ``gpu``, by name and by type if there is one."""
    counts: dict[str, int] = {}
    for part in parts:
        name, *rest = part.partition("(")[0].split(":")  # in parentheses: sockets, or places
        count = rest.pop() if rest and re.fullmatch(r"\d+[KMGT]?", rest[-1]) else "1"
        number = int(count) if count.isdigit() else round(read_memory(count))
        # slurm.conf(5), Gres: "no_consume" may stand behind the type
        kinds = [name, *(f"{name}:{kind}" for kind in rest[:1] if kind != "no_consume")]
        for kind in kinds:
            counts[kind] = counts.get(kind, 0) + number
    return counts


def read_hosts(text: str) -> list[str]:
    """The names of a list of hosts: ``n[1-3,05-07],login``, also with several brackets.

    Raises:
        ValueError: if brackets do not match, or it is a list of more than a million.
    """
    if is_nothing(text):
        return []
    names: list[str] = []
    for part in split_list(text):
        names += _expand(part)
        if len(names) > _MOST_HOSTS:
            raise ValueError(f"more than {_MOST_HOSTS:,} hosts")
    return names


def split_list(text: str) -> list[str]:
    """The parts between commas that are not in brackets or parentheses. Raises ValueError where these do not match."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    if depth:
        raise ValueError(text)
    return [part.strip() for part in (*parts, text[begin:]) if part.strip()]


def _expand(text: str) -> list[str]:
    before, bracket, rest = text.partition("[")
    if not bracket:
        return [text]
    inside, _, after = rest.partition("]")
    tails = _expand(after)
    numbers: list[str] = []
    for part in inside.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(inside)
        if dash and not 0 <= int(last) - int(first) < _MOST_HOSTS:
            raise ValueError(inside)
        # widths count: n[08-10] is n08, n09, n10
        numbers += (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)) if dash else (first,)
    return [f"{before}{number}{tail}" for number in numbers for tail in tails]
