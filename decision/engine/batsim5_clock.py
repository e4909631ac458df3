"""Batsim 5's calls and probes: those with a name, and those that come again.

Batsim 5 has one clock for all that is periodic: it strikes at the multiples of the shortest period, which divides all
others, and then lets all calls and probes act whose period it is, calls first, each kind by name. A probe measures
from its second time on. An alarm is a call of the engine under a number of ours. The clock waits for its next stroke
as soon as the server has heard of one, so that the engine must know that stroke before we hear of this one.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from decision.model.hosts import parse_hosts
from decision.protocol import messages as m


class Alarm(NamedTuple):
    """When the engine is to wake us, under which number; 0 for none."""

    number: int = 0
    time: float = 0.0  # seconds


def is_for_clock(event: m.Event) -> bool:
    """Whether a command is one of which the clock hears."""
    if isinstance(event, m.CallMeLater):
        return isinstance(event.data.periodic, m.Periodic)
    return isinstance(event, m.StopCall | m.CreateProbe | m.StopProbe)


class _Series(msgspec.Struct):
    """A periodic call or probe."""

    period: int  # milliseconds
    begin: int  # milliseconds: it does not act at or before this
    left: float  # times; inf for ever
    probe: m.CreateProbeData | None = None
    ready: bool = False  # whether a probe has measured before
    end: float = math.inf  # milliseconds: it acts at this, and not after it


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
        self._stopped: list[tuple[dict[str, _Series], str, _Series]] = []  # which may act at a stroke to come
        self.awaited = Alarm(), Alarm()  # the next stroke, and the one after it if nothing changes before

    @property
    def endless(self) -> bool:
        """Whether something comes again for ever."""
        return any(math.isinf(series.left) for series in (*self._calls.values(), *self._probes.values()))

    def nb_strokes(self, seconds: float, reply: Iterable[m.Event]) -> int:
        """How many there may be in a time, once the commands of a reply are carried out."""
        asked = [getattr(event.data, "periodic", None) for event in reply]  # type: ignore[attr-defined]
        periods = self._periods() + [period.milliseconds for period in asked if isinstance(period, m.Periodic)]
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
        series[name] = _Series(period, _milliseconds(now), times, probe)

    def stop(self, name: str, now: float, probe: bool = False) -> None:
        """A call or a probe comes no more after `now` seconds; Batsim warns of one that there is not."""
        which = self._probes if probe else self._calls
        if series := which.pop(name, None):
            series.end = _milliseconds(now)
            self._stopped.append((which, name, series))

    def forget_stopped(self) -> None:
        """Forget those that were stopped before the next stroke."""
        pending = min(self._strokes.values(), default=math.inf)
        self._stopped = [stopped for stopped in self._stopped if pending <= stopped[2].end]

    def void(self, now: float) -> list[int]:
        """The numbers of alarms for strokes after `now` seconds, for which the clock does not wait any more."""
        idle = self._idle()
        void = [number for number, time in self._strokes.items() if time > _milliseconds(now)]
        for number in void:
            del self._strokes[number]
        return [number for number in void if number != idle]

    def _idle(self) -> int:
        """The number of the alarm that begins with the awaited stroke, which is still to come; 0 for none."""
        awaited, following = self.awaited
        return following.number if awaited.number in self._strokes else 0

    def strokes(self, begin: float, end: float, nexts: bool, heard: bool) -> list[Alarm]:
        """New alarms for the clock between two times in seconds, at whose begin it may have `heard` a command.

        With `nexts` there is one to come after that. It has struck for all that was to come by `begin`, or has its
        alarm.
        """
        periods = self._periods()
        if not periods:
            self.awaited = self._last_until(end), Alarm()
            return []
        # Strokes are at multiples of the shortest period.
        period, first, last = min(periods), _milliseconds(begin), _milliseconds(end)
        wanted = [n * period for n in range(first // period + 1, last // period + 1)]
        pending = Alarm() if wanted else self._last_until(end)
        if nexts and not wanted and (heard or not pending.number):
            wanted = [(last // period + 1) * period]
        known = {time: number for number, time in self._strokes.items()}
        alarms, idle = [], self._idle()
        for time in wanted:
            if time not in known:
                alarms.append(self._alarm(time / 1000))
                self._strokes[alarms[-1].number] = time
            elif known[time] == idle:
                alarms.append(Alarm(idle, time / 1000))
        if nexts and pending.number:  # the stroke after it begins with it, or has begun with the command
            self.awaited = pending, Alarm() if heard else self._numbered(self._stroke_after(last))
        elif nexts:
            self.awaited = self._numbered(wanted[-1]), self._numbered(self._stroke_after(wanted[-1]))
        return alarms

    def _last_until(self, end: float) -> Alarm:
        """The alarm of the last stroke to come by `end` seconds."""
        numbers = [number for number, time in self._strokes.items() if time <= _milliseconds(end)]
        number = max(numbers, key=self._strokes.__getitem__, default=0)
        return Alarm(number, self._strokes[number] / 1000) if number else Alarm()

    def _numbered(self, time: int) -> Alarm:
        """The alarm of a stroke in milliseconds, which may be new; of 0 none."""
        numbers = [number for number, known in self._strokes.items() if known == time]
        alarm = Alarm(numbers[0], time / 1000) if numbers else self._alarm(time / 1000) if time else Alarm()
        if time:
            self._strokes[alarm.number] = time
        return alarm

    def _stroke_after(self, time: int) -> int:
        """The stroke after one in milliseconds, at which calls and probes may come for the last time; 0 if none is."""
        last = [id(series) for _, series in self._acting(self._calls, time) if series.left == 1]
        last += [id(series) for _, series in self._acting(self._probes, time) if series.left == 1 and series.ready]
        series = (*self._calls.values(), *self._probes.values())
        periods = [each.period for each in series if id(each) not in last]
        return (time // min(periods) + 1) * min(periods) if periods else 0

    def probed(self, stroke: Alarm) -> Iterator[int]:
        """The hosts that probes measure at a stroke, in order; one may come twice."""
        for _, series in self._acting(self._probes, self._strokes[stroke.number]):
            if series.ready and series.probe is not None:
                yield from parse_hosts(series.probe.hosts)

    def due(self, number: int, now: float) -> Iterator[m.BatsimEvent]:
        """What an alarm means, at `now` seconds."""
        if number in self._once:
            yield m.RequestedCall(now, m.RequestedCallData(self._once.pop(number), False))
        elif number in self._strokes:
            time = self._strokes.pop(number)
            for name, series in self._acting(self._calls, time):
                yield m.RequestedCall(now, m.RequestedCallData(name, self._count(self._calls, name, series)))
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
        stopped = [(name, series) for kind, name, series in self._stopped if kind is which]
        named = sorted((*which.items(), *stopped), key=lambda each: each[0])
        return [(n, s) for n, s in named if time % s.period == 0 and s.begin < time <= s.end and s.left]

    def _count(self, which: dict[str, _Series], name: str, series: _Series) -> bool:
        """One time less; whether it was the last."""
        series.left -= 1
        if not series.left and which.get(name) is series:
            del which[name]
        return not series.left

    def _periods(self) -> list[int]:
        return [series.period for series in (*self._calls.values(), *self._probes.values())]

    def _alarm(self, time: float) -> Alarm:
        self._last += 1
        return Alarm(self._last, time)


def _milliseconds(seconds: float) -> int:
    """Whole ones; 1e-6 of one is what binary seconds may be short of it."""
    return math.floor(seconds * 1000 + 1e-6)
