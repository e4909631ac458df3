"""The calls and probes of Batsim 5: when they come, in which order, and what is refused."""

import pytest

from decision.engine.batsim5 import Calls
from decision.protocol import messages as m


def calls():
    return Calls(lambda hosts, now: [now, 3 * now], ValueError)


def told(some, begin, end):
    """What comes between two times, stroke by stroke."""
    alarms, _ = some.strokes(begin, end, nexts=False)
    return [(a.time, [e.data for e in some.due(a.number, a.time)]) for a in alarms]


def test_calls_come_at_multiples_of_their_period_by_name_and_say_which_is_the_last():
    some = calls()
    some.repeat("b", m.Periodic(2, times=2), 0.0)
    some.repeat("a", m.Periodic(4000, "ms"), 1.0)
    assert told(some, 0.0, 8.0) == [
        (2.0, [m.RequestedCallData("b", False)]),
        (4.0, [m.RequestedCallData("a", False), m.RequestedCallData("b", True)]),
        (6.0, []),
        (8.0, [m.RequestedCallData("a", False)]),
    ]


def test_a_probe_tells_from_its_second_period_on():
    some = calls()
    probe = m.CreateProbeData("p", "0-1", m.Periodic(10), "ArithmeticMean")
    some.repeat("p", probe.periodic, 0.0, probe)
    assert told(some, 0.0, 20.0) == [(10.0, []), (20.0, [m.ProbeData("p", "0-1", 40.0)])]


def test_a_call_that_is_stopped_comes_no_more_and_its_alarm_is_void():
    some = calls()
    some.repeat("a", m.Periodic(2), 0.0)
    alarms, void = some.strokes(0.0, 0.0, nexts=True)
    assert [alarm.time for alarm in alarms] == [2.0] and not void
    assert some.endless
    some.stop("a")
    assert some.strokes(0.0, 0.0, nexts=True) == ([], [alarms[0].number])


def test_periods_that_do_not_divide_each_other_and_names_in_use_are_refused():
    some = calls()
    some.repeat("a", m.Periodic(4), 0.0)
    with pytest.raises(ValueError, match="multiple of the other"):
        some.repeat("b", m.Periodic(6), 0.0)
    with pytest.raises(ValueError, match="already"):
        some.repeat("a", m.Periodic(4), 0.0)
