"""When cycles of backfill began: from slurmctld's log, or from a file with one time a line."""

import lzma
import re
from pathlib import Path
from zoneinfo import ZoneInfo

from decision.model.errors import InputError

from .conf import read_text
from .text import read_date

_LOGGED = re.compile(r"^\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?\]?\s+(.*)")
_BEGINS = re.compile(r"^cycle\b|(?:_attempt_backfill|backfill):?.*\bbeginning\b|backfill: beginning")


def read_cycles(path: Path, zone: ZoneInfo | None = None) -> list[int]:
    """Seconds since 1970 at which cycles began, ascending.

    slurmctld says "backfill: beginning" with ``DebugFlags=Backfill`` or ``SlurmctldDebug=debug``.

    Raises:
        InputError: if there is none, or a line is no time.
    """
    times, plain = [], True
    for number, line in enumerate(_lines(path), 1):
        text = line.strip()
        found = _LOGGED.match(text)
        if found and found[2]:
            plain = False
            if _BEGINS.search(found[2]):
                times.append(read_date(found[1], zone))
        elif text and (plain or found):
            times.append(_time(text, f"{path}, line {number}", zone))
    if not times:
        raise InputError(
            f"{path}: no cycle of backfill begins in it; log with DebugFlags=Backfill, or give one time a line"
        )
    return sorted(set(times))


def _time(text: str, place: str, zone: ZoneInfo | None) -> int:
    try:
        found = _LOGGED.match(text)
        return round(float(text)) if not found and text.replace(".", "", 1).isdigit() else read_date(text, zone)
    except ValueError:
        raise InputError(f"{place}: {text[:40]!r} is not a time like 2026-03-02T08:05:48") from None


def _lines(path: Path) -> list[str]:
    if path.suffix != ".xz":
        return read_text(path).splitlines()
    try:
        with lzma.open(path, "rt", encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (OSError, lzma.LZMAError) as error:
        raise InputError(f"{path}: cannot be unpacked ({error}); check the file") from None
