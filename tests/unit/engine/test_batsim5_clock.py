"""The calls and probes of Batsim 5: when they come, in which order, and what is refused."""

import pytest

from decision.engine.batsim5_clock import Calls
from decision.protocol import messages as m


def calls():
    return Calls(lambda hosts, now: [now, 3 * now], ValueError)


def told(some, begin, end):
    """What comes between two times, stroke by stroke."""
    alarms = some.strokes(begin, end, nexts=False, heard=False)
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
    alarms = some.strokes(0.0, 0.0, nexts=True, heard=True)
    assert [alarm.time for alarm in alarms] == [2.0]
    assert some.endless
    some.stop("a", 1.0)
    assert some.void(1.0) == [alarms[0].number]
    assert some.strokes(1.0, 1.0, nexts=True, heard=True) == []


def test_a_call_that_is_stopped_comes_where_it_was_due_by_then():
    some = calls()
    some.repeat("a", m.Periodic(2), 0.0)
    alarms = some.strokes(0.0, 2.0, nexts=False, heard=False)
    some.stop("a", 2.0)
    assert some.void(2.0) == []
    assert [e.data for e in some.due(alarms[0].number, 2.0)] == [m.RequestedCallData("a", False)]


def test_periods_that_do_not_divide_each_other_and_names_in_use_are_refused():
    some = calls()
    some.repeat("a", m.Periodic(4), 0.0)
    with pytest.raises(ValueError, match="multiple of the other"):
        some.repeat("b", m.Periodic(6), 0.0)
    with pytest.raises(ValueError, match="already"):
        some.repeat("a", m.Periodic(4), 0.0)
