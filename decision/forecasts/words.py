"""Times and spans of forecasts as people say them."""

import datetime
import math

from decision.model.dates import DAY


def span(seconds: float) -> str:
    """45 s, 12 min, 3:20 h, 2 d 4 h; none without end."""
    if not math.isfinite(seconds):
        return "none"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 5970:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * DAY:
        minutes = round(seconds / 60)
        return f"{minutes // 60}:{minutes % 60:02} h"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"


def clock_words(seconds: float, at: float | None, zero: float | None) -> str:
    """A time: on the log's clock where it has one, and without the day where that is the moment's; else after `at`.

    Args:
        seconds: since the log began.
        at: the moment; None for the moment itself.
        zero: seconds since 1970 when the log began; None where that is unknown.
    """
    if not math.isfinite(seconds):
        return "never"
    if zero is None:
        return f"{seconds:,.0f} s" if at is None else f"+{span(max(0.0, seconds - at))}"
    date = datetime.datetime.fromtimestamp(zero + seconds, datetime.UTC)
    if at is not None and date.date() == datetime.datetime.fromtimestamp(zero + at, datetime.UTC).date():
        return f"{date:%H:%M}"
    return f"{date:%Y-%m-%d %H:%M}" if at is None else f"{date:%a %d %b %H:%M}"
