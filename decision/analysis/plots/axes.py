"""Axes of pictures: logarithmic ones without formulas, and clocks that show dates where they are known."""

import datetime
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

from decision.model.dates import DAY

PLAIN = "{x:,.10g}"  # a format of ticks: 12,000
_FEW, _MANY = 3, 7  # ticks of an axis
_STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))  # in a power of ten, from coarse to fine


def logarithmic(axes: Axes, which: Literal["x", "y"], form: str = PLAIN) -> None:
    """Let an axis be logarithmic, with a few round ticks also over a small range, written as plain numbers.

    Pictures do without matplotlib's mathematical texts, since names may have a ``$``, and its own formatters of
    logarithmic axes write nothing else.

    Args:
        axes: of the plot.
        which: of the two.
        form: of the ticks.
    """
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(RoundTicks())
    axis.set_major_formatter(StrMethodFormatter(form))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


class RoundTicks(Locator):
    """Three to seven round numbers on a logarithmic axis."""

    def __call__(self) -> Sequence[float]:
        """The ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """The ticks from `vmin` to `vmax`."""
        low, high = sorted((vmin, vmax))
        if not 0 < low < high < math.inf:
            return [value for value in (low,) if 0 < value < math.inf]
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in _STEPS:
            found = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
            if len(found) >= _FEW:
                return found[:: -(-len(found) // _MANY)]
        return [value for value in MaxNLocator(_MANY - 2).tick_values(low, high) if low <= value <= high]


_UNITS = ((2.0 * DAY, float(DAY), "days"), (2 * 3600.0, 3600.0, "hours"), (0.0, 1.0, "seconds"))


class AxisClock(NamedTuple):
    """What an axis of time counts, and whether it shows dates."""

    unit: float  # seconds
    label: str
    begin: float | None = None  # seconds since 1970 that the machine's clock showed at 0; None: no dates

    def show(self, axes: Axes) -> None:
        """Show dates on a plot's axis of time, where they are known."""
        if self.begin is not None:
            axes.xaxis.set_major_locator(DateTicks(self.unit, self.begin))
            axes.xaxis.set_major_formatter(DateTexts(self.unit, self.begin))


def clock(longest: float, begin: float | None = None, first: float = 0.0) -> AxisClock:
    """The clock that gives numbers easy to read up to `longest` seconds after the first submission, or dates.

    Args:
        longest: seconds.
        begin: what the machine's clock showed at the first submission, seconds since 1970, where it is known.
        first: the simulated time of the first submission, seconds.
    """
    unit, name = next((unit, name) for least, unit, name in _UNITS if longest >= least)
    if begin is not None:
        return AxisClock(unit, "time by the machine's clock", begin)
    return AxisClock(unit, f"{name} since the first submission" + (f" (at {first:,.0f} s)" if first else ""))


class DateTicks(Locator):
    """Midnights, full hours or firsts of months on an axis that counts in a unit from some time on."""

    def __init__(self, unit: float, begin: float) -> None:
        self._unit, self._begin = unit, begin

    def __call__(self) -> Sequence[float]:
        """The ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """The ticks from `vmin` to `vmax`."""
        low, high = sorted((vmin, vmax))
        first, last = (_date(self._begin + value * self._unit) for value in (low, high))
        if first == last:
            return [low]
        found = AutoDateLocator(tz=datetime.UTC, minticks=3, maxticks=_MANY - 1).tick_values(first, last)
        ticks = (np.asarray(found) * DAY - self._begin) / self._unit
        return [value for value in ticks.tolist() if low <= value <= high]


class DateTexts(Formatter):
    """The dates of `DateTicks`, short; what all have in common stands at the axis' end."""

    def __init__(self, unit: float, begin: float) -> None:
        self._unit, self._begin = unit, begin
        self._texts = ConciseDateFormatter(AutoDateLocator(tz=datetime.UTC), tz=datetime.UTC)

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The whole date of a value."""
        return f"{_date(self._begin + x * self._unit):%Y-%m-%d %H:%M}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The texts of all ticks."""
        return self._texts.format_ticks([(self._begin + value * self._unit) / DAY for value in values])

    def get_offset(self) -> str:
        """What the ticks have in common, as ``2016-May``."""
        return str(self._texts.get_offset())


def _date(seconds: float) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
