"""What the comments above a log in the Standard Workload Format say: the machine, and when and where the log began."""

import datetime
import re
from collections.abc import Mapping
from zoneinfo import ZoneInfo

from decision.model.dates import LAST_DATE

from .profiles import INT32_MAX

Header = Mapping[str, str]

_COMMENT = re.compile(rb"^[ \t]*[;#][ \t]*(\w+):[ \t]*([^\r\n]*)", re.MULTILINE)
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_ORIGIN = ("Computer", "Installation", "Acknowledge")


def read_header(data: bytes) -> dict[str, str]:
    """The comments by key; the first of each."""
    found: dict[str, str] = {}
    for match in _COMMENT.finditer(data):
        found.setdefault(match[1].decode("ascii", "replace"), match[2].decode("utf-8", "replace").strip())
    return found


def machine_size(header: Header) -> int | None:
    """MaxProcs, or else MaxNodes, or None; a number that no machine has is not known."""
    for key in ("MaxProcs", "MaxNodes"):
        size = _number(header, key)
        if size and 1 <= size <= INT32_MAX:
            return int(size)
    return None


def unix_start(header: Header) -> float | None:
    """UnixStartTime in seconds since 1970, or None."""
    start = _number(header, "UnixStartTime")
    return start if start is not None and 0 <= start <= LAST_DATE else None


def time_zone(header: Header) -> float:
    """Seconds that the machine's clock was ahead of UTC when the log began.

    TimeZoneString names a zone; the number TimeZone is deprecated (it does not know of summer time) and is used where
    the name is missing or unknown to this computer. Without either it is UTC.
    """
    zone = _named_zone(header.get("TimeZoneString", ""))
    start = unix_start(header)
    if zone is not None and start is not None:
        offset = datetime.datetime.fromtimestamp(start, zone).utcoffset()
        return offset.total_seconds() if offset else 0.0
    seconds = _number(header, "TimeZone")
    return seconds if seconds is not None and abs(seconds) < 86_400 else 0.0


def origin(header: Header) -> str:
    """Which machine the log is of, and whom to thank for it."""
    return "; ".join(f"{key}: {header[key]}" for key in _ORIGIN if header.get(key))


def _named_zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):  # a name that is unknown here, or that is none
        return None


def _number(header: Header, key: str) -> float | None:
    """A header's number, or None where there is none; a note may follow it."""
    match = _NUMBER.match(header.get(key, ""))
    return float(match[0]) if match else None
