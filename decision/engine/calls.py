"""The calls and probes that a decision process asks of Batsim 5: those with a name, and those that come again.

Batsim 5 has one clock for all that is periodic: it strikes at the multiples of the shortest period, which divides all
others, and then lets all calls and probes act whose period it is, calls first, each kind by name. A probe measures from
its second time on. An alarm is a call of the engine under a number of ours.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from decision.protocol import messages as m


class Alarm(NamedTuple):
    """When the engine is to wake us, under which number."""

    number: int
    time: float  # seconds


class _Series(msgspec.Struct):
    """A periodic call or probe."""

    period: int  # milliseconds
    begin: int  # milliseconds: it does not act at or before this
    left: float  # times; inf for ever
    probe: m.CreateProbeData | None = None
    ready: bool = False  # whether a probe has measured before


class Calls:
    """Those that are under way.

    Args:
        measure: the joules that hosts (as text) have used at a time in seconds, of each.
        refuse: makes the error of an impossible command.
    """

    def __init__(self, measure: Callable[[str, float], list[float]], refuse: Callable[[str], Exception]) -> None:
        self._measure, self._refuse = measure, refuse
        self._last = 0  # number of an alarm
        self._once: dict[int, str] = {}
        self._strokes: dict[int, int] = {}  # milliseconds, by number of the alarm
        self._calls: dict[str, _Series] = {}
        self._probes: dict[str, _Series] = {}

    @property
    def endless(self) -> bool:
        """Whether something comes again for ever."""
        return any(math.isinf(series.left) for series in (*self._calls.values(), *self._probes.values()))

    def nb_strokes(self, seconds: float, reply: Iterable[m.Event]) -> int:
        """How many there may be in a time, once the commands of a reply are carried out."""
        asked = [getattr(event.data, "periodic", None) for event in reply]  # type: ignore[attr-defined]
        periods = self._periods() + [each.milliseconds for each in asked if isinstance(each, m.Periodic)]
        return 4 + int(2 * seconds * 1000 / min(periods)) if periods else 0

    def once(self, call_id: str, time: float) -> Alarm:
        """A call at `time` seconds."""
        alarm = self._alarm(time)
        self._once[alarm.number] = call_id
        return alarm

    def repeat(self, name: str, periodic: m.Periodic, now: float, probe: m.CreateProbeData | None = None) -> None:
        """A periodic call, or a probe, from `now` seconds on; raises what `refuse` makes."""
        series, kind = (self._calls, "call") if probe is None else (self._probes, "probe")
        if name in series:
            raise self._refuse(f"there is a periodic {kind} {name!r} already; give it another name")
        period = periodic.milliseconds
        for other in self._periods():
            if max(period, other) % min(period, other):
                reason = "one must be a multiple of the other"
                raise self._refuse(f"{kind} {name!r}: its period of {period} ms and another of {other} ms: {reason}")
        times = math.inf if periodic.times is None else periodic.times
        series[name] = _Series(period, math.floor(now * 1000 + 1e-6), times, probe)

    def stop(self, name: str, probe: bool = False) -> None:
        """A call or a probe comes no more; Batsim warns of one that there is not."""
        (self._probes if probe else self._calls).pop(name, None)

    def strokes(self, begin: float, end: float, nexts: bool) -> tuple[list[Alarm], list[int]]:
        """New alarms for the clock between two times in seconds, and numbers of those that are void.

        With `nexts` also the first after `end`. It has struck for all that was to come by `begin`.
        """
        periods = self._periods()
        if not periods:
            return [], self._forget(())
        period, first, last = min(periods), math.floor(begin * 1000 + 1e-6), math.floor(end * 1000 + 1e-6)
        wanted = [n * period for n in range(first // period + 1, last // period + 1 + nexts)]
        void = self._forget(wanted) if nexts else []
        known = set(self._strokes.values())
        alarms = []
        for time in wanted:
            if time not in known:
                alarms.append(self._alarm(time / 1000))
                self._strokes[alarms[-1].number] = time
        return alarms, void

    def due(self, number: int, now: float) -> Iterator[m.BatsimEvent]:
        """What an alarm means, at `now` seconds."""
        if number in self._once:
            yield m.RequestedCall(now, m.RequestedCallData(self._once.pop(number), False))
        elif number in self._strokes:
            time = self._strokes.pop(number)
            yield from self._called(time, now)
            yield from self._probed(time, now)

    def _called(self, time: int, now: float) -> Iterator[m.BatsimEvent]:
        for name, series in self._acting(self._calls, time):
            yield m.RequestedCall(now, m.RequestedCallData(name, self._count(self._calls, name, series)))

    def _probed(self, time: int, now: float) -> Iterator[m.BatsimEvent]:
        for name, series in self._acting(self._probes, time):
            if series.ready and series.probe is not None:
                value = self._value(series.probe, now)
                self._count(self._probes, name, series)
                yield m.ProbeDataEmitted(now, m.ProbeData(name, series.probe.hosts, value))
            series.ready = True

    def _value(self, probe: m.CreateProbeData, now: float) -> float | tuple[float, ...]:
        joules = self._measure(probe.hosts, now)
        if probe.aggregation == "NoResourcesAggregation":
            return tuple(joules)
        return sum(joules) / (len(joules) if probe.aggregation == "ArithmeticMean" else 1)

    def _acting(self, which: dict[str, _Series], time: int) -> list[tuple[str, _Series]]:
        return [(n, s) for n, s in sorted(which.items()) if time % s.period == 0 and time > s.begin]

    def _count(self, which: dict[str, _Series], name: str, series: _Series) -> bool:
        """One time less; whether it was the last."""
        series.left -= 1
        if not series.left:
            del which[name]
        return not series.left

    def _periods(self) -> list[int]:
        return [series.period for series in (*self._calls.values(), *self._probes.values())]

    def _alarm(self, time: float) -> Alarm:
        self._last += 1
        return Alarm(self._last, time)

    def _forget(self, wanted: object) -> list[int]:
        """Drop the strokes that nobody waits for; their numbers."""
        void = [number for number, time in self._strokes.items() if time not in wanted]  # type: ignore[operator]
        for number in void:
            del self._strokes[number]
        return void
