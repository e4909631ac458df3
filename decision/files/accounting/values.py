"""How accounting records write values: durations, sizes of memory, counts, node lists, times of a local clock."""

import datetime
import math
import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError
from decision.model.record import Floats

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtTpP]?)[iI]?([bBwW]?)[nc]?")
_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(sorted(_SECONDS, key=len, reverse=True))})", re.IGNORECASE)
_SPANS = re.compile(rf"({_SPAN.pattern}\s*)+", re.IGNORECASE)
# sacct(1), SLURM_TIME_FORMAT: a strftime text of the site; others are what tables have
DATE_FORMATS = (
    *("%m/%d/%y-%H:%M:%S", "%m/%d/%Y-%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%b %d %Y %H:%M:%S", "%d %b %Y %H:%M:%S"),
    *("%m/%d/%yT%H:%M:%S", "%m/%d/%YT%H:%M:%S", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%YT%H:%M"),
    *("%Y/%m/%d %H:%M:%S", "%Y/%m/%dT%H:%M:%S", "%Y/%m/%d-%H:%M:%S", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M:%S"),
    *("%d.%m.%YT%H:%M:%S", "%a %b %d %H:%M:%S %Y", "%aT%b %d %H:%M:%S %Y"),
)
_FACTOR = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_UNKNOWN_TIMES = frozenset(("", "Unknown", "None", "N/A", "NONE"))
_SECOND_TEXT = len("2020-01-01T00:00:00")
_ENDLESS = 2147486648.0  # MB: what sacct writes for all memory of a node
_MOST_NODES = 10_000_000  # of one list; more are a mistake


def seconds_of(text: str) -> float:
    """``[DAYS-][HOURS:]MINUTES:SECONDS`` or plain seconds; nan where it is neither."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    try:
        numbers = [float(part) for part in parts]
        whole = 86_400.0 * int(days) if dash else 0.0
    except ValueError:
        return math.nan
    if len(parts) > 3 or min(numbers) < 0 or not math.isfinite(sum(numbers)):
        return math.nan
    if dash:  # of DAYS-HOURS[:MINUTES[:SECONDS]]
        return whole + sum(number * unit for number, unit in zip(numbers, (3600.0, 60.0, 1.0), strict=False))
    for number in numbers:
        whole = 60.0 * whole + number
    return whole


def span_of(text: str) -> float:
    """Seconds of a clock (``1:02:03``) or of numbers with units (``1h 2m 3s``, ``45.2s``); nan where it is neither."""
    text = text.strip()
    if ":" in text:
        return seconds_of(text)
    parts = _SPAN.findall(text) if _SPANS.fullmatch(text) else []
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts) if parts else math.nan


def megabytes(text: str, default: str = "M") -> float:
    """An amount of memory in MB; nan where there is none. `default` is the unit of a plain number.

    Slurm's ``c`` and ``n`` at the end, for a core and a node, say what it is of and are left to the caller.
    """
    match = _AMOUNT.fullmatch(text)
    if not match:
        return math.nan
    letter = match[2].upper() or ("" if match[3] else default)
    amount = float(match[1]) * (8.0 if match[3] in ("w", "W") else 1.0) * 1024.0 ** (_FACTOR[letter] - 2)
    return math.nan if amount >= _ENDLESS else amount


def whole_count(text: str) -> float:
    """A count, which may be written as ``9.2K``; nan where it is none."""
    if text.isdecimal():
        return float(text)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG])", text)
    return float(round(float(match[1]) * 1024.0 ** _FACTOR[match[2]])) if match else math.nan


def tres(text: str) -> dict[str, str]:
    """Slurm's trackable resources, ``cpu=4,mem=8G,gres/gpu:a100=2,node=1``, by name."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def gpus_of(resources: dict[str, str]) -> float:
    """GPUs among Slurm's resources: those of any type, or else the sum over the types; nan of none."""
    if "gres/gpu" in resources:
        return whole_count(resources["gres/gpu"])
    typed = [whole_count(count) for name, count in resources.items() if name.startswith("gres/gpu:")]
    return sum(typed) if typed else math.nan


@lru_cache(maxsize=1 << 16)
def node_names(text: str) -> tuple[str, ...]:
    """The nodes of a list in Slurm's way, ``n[01-03,7],gpu1``; none where it is not such a list.

    ClusterShell, where it is installed, reads what this does not: steps, and operations on sets.
    """
    nodes: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[\]]*)(?:\[([^\]]*)\])?", part):
            numbers = _numbers(ranges) if ranges else [""]
            if numbers is None or len(names) * len(numbers) > _MOST_NODES:
                try:
                    from ClusterShell.NodeSet import NodeSet, NodeSetParseError
                except ImportError:
                    return ()
                try:
                    return tuple(NodeSet(text, resolver=None))
                except (NodeSetParseError, AssertionError):  # the latter of more nodes than it takes
                    return ()
            names = [name + plain + number for name in names for number in numbers]
        nodes += names
    return tuple(nodes)


def _numbers(ranges: str) -> list[str] | None:
    """The numbers of ``01-03,7`` as texts; None where they are no such ranges."""
    numbers: list[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return None
        end = int(last) if dash else int(first)
        if not 0 <= end - int(first) < _MOST_NODES:
            return None
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), end + 1)]
    return numbers


def named_zone(name: str | None) -> ZoneInfo | None:
    """A time zone such as ``Europe/Berlin``; None where none is named. Raises ConfigError if there is no such zone."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):
        raise ConfigError(
            f"time zone {name!r}: unknown here; give a name like Europe/Berlin", field="time_zone"
        ) from None


def read_clock_text(text: str) -> datetime.datetime | None:
    """The date and time of an ISO text, or of one of `DATE_FORMATS`; None where it is neither."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in DATE_FORMATS:
        try:
            return datetime.datetime.strptime(text, form)
        except ValueError:
            continue
    return None


class Clock:
    """The clock of a machine, which may go by summer time; UTC where no zone is known.

    Args:
        zone: a name like ``Europe/Berlin``.

    Raises:
        ConfigError: if there is no such zone.
    """

    def __init__(self, zone: str | None = None) -> None:
        self._zone = named_zone(zone)
        # by local quarter of an hour: seconds ahead of UTC, before and after a fold
        self._offsets: dict[float, tuple[float, float]] = {}

    def read(self, texts: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
        """Seconds since 1970, (n,), nan where a time is not known, and which texts are no times."""
        plain = [text if len(text) == _SECOND_TEXT else "NaT" for text in texts]
        bad = np.zeros(len(texts), bool)
        others = [at for at, text in enumerate(plain) if text == "NaT" and texts[at] not in _UNKNOWN_TIMES]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of a text of that length that names a zone
                local = np.array(plain, "datetime64[s]")
        except (ValueError, UserWarning):
            others = [at for at, text in enumerate(texts) if text not in _UNKNOWN_TIMES]
            local = np.full(len(texts), np.datetime64("NaT"), "datetime64[s]")
        seconds = np.where(np.isnat(local), np.nan, local.astype(np.int64).astype(np.float64))
        seconds = self.utc(seconds)
        for at in others:
            moment = None if texts[at].isdecimal() else read_clock_text(texts[at])
            if texts[at].isdecimal():
                seconds[at] = float(texts[at])
            elif moment is None:
                bad[at] = True
                seconds[at] = math.nan
            elif moment.tzinfo is not None:
                seconds[at] = moment.timestamp()
            else:
                seconds[at] = self.utc(np.array([moment.replace(tzinfo=datetime.UTC).timestamp()]))[0]
        return seconds, bad

    def utc(self, local: Floats) -> Floats:
        """Seconds since 1970 of what the clock shows, (n,); the first of two where it shows a time twice."""
        return local - self._ahead(local)[0] if self._zone else local

    def fold(self, local: Floats) -> Floats:
        """How many seconds later the second of two times is that the clock shows alike; 0 where it is one. (n,)."""
        if self._zone is None:
            return np.zeros(len(local))
        hours = np.floor(local / 3600.0)
        known = {
            hour: self._offset(datetime.datetime.fromtimestamp(hour * 3600.0, self._zone))
            for hour in np.unique(hours[np.isfinite(local)]).tolist()
        }
        first, second = self._ahead(local + np.array([known.get(hour, 0.0) for hour in hours.tolist()]))
        return first - second

    def _ahead(self, local: Floats) -> tuple[Floats, Floats]:
        """Seconds ahead of UTC, (n,), before and after the clock went back where it did."""
        quarter = np.floor(local / 900.0)
        distinct, which = np.unique(quarter, return_inverse=True)
        pairs = np.zeros((len(distinct), 2))
        for row, key in enumerate(distinct.tolist()):
            if math.isnan(key):
                continue
            if key not in self._offsets:
                shown = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=key * 900)
                first, second = (self._offset(shown.replace(tzinfo=self._zone, fold=fold)) for fold in (0, 1))
                self._offsets[key] = first, second if second < first else first
            pairs[row] = self._offsets[key]
        return pairs[which, 0], pairs[which, 1]

    @staticmethod
    def _offset(moment: datetime.datetime) -> float:
        ahead = moment.utcoffset()
        return ahead.total_seconds() if ahead else 0.0
