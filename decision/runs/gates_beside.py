"""What a schedule comes to, and its gates against that of FCFS with EASY: of one run, or over copies of a log."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decision.analysis.metrics import bounded_slowdowns, only_ran, waiting_times
from decision.learn.checkpoint import Gate
from decision.model.record import JobTable

LONGEST_WAIT = 1.5  # times that of FCFS with EASY, or of first-fit where servers sleep
LONGEST_OF_ALL = 2.0  # times, on any copy
NO_WAIT = 1e-3  # seconds: clocks round
_ROUNDING = 1e-6  # share


class Measures(NamedTuple):
    """What a schedule of a whole log comes to."""

    wait: float  # seconds, mean
    slowdown: float  # bounded, mean
    longest: float  # seconds
    idle: float = 0.0  # share of the room from the first submission to the last end


def measure(table: JobTable, nb_hosts: int = 0) -> Measures:
    """Of the jobs that ran, on so many hosts; idle room is left out where these are not said."""
    ran = only_ran(table)
    waits = waiting_times(ran)
    return Measures(
        float(waits.mean()), float(bounded_slowdowns(ran).mean()), float(waits.max()), idle_room(ran, nb_hosts)
    )


def idle_room(ran: JobTable, nb_hosts: int) -> float:
    """Share of the hosts' time, from the first submission to the last end, in which no job runs."""
    room = nb_hosts * float((ran.start_time + ran.runtime).max() - ran.submit_time.min())
    return 1.0 - float(ran.runtime @ ran.size) / room if room > 0 else 0.0


def gates_beside(own: Measures, easy: Measures) -> tuple[Gate, ...]:
    """The gates of one run, of a policy's measures against those of FCFS with EASY."""
    return (
        make_gate("mean wait", own.wait, easy.wait),
        make_gate("mean bounded slowdown", own.slowdown, easy.slowdown),
        make_gate("longest wait", own.longest, LONGEST_WAIT * easy.longest),
    )


def gates_over(own: Sequence[Measures], easy: Sequence[Measures]) -> tuple[Gate, ...]:
    """The gates over copies of a log, of a policy's measures against those of FCFS with EASY on the same ones."""
    times = [(mine.longest + NO_WAIT) / (other.longest + NO_WAIT) for mine, other in zip(own, easy, strict=True)]
    return (
        make_gate("mean wait", mean_of("wait", own), mean_of("wait", easy)),
        make_gate("mean bounded slowdown", mean_of("slowdown", own), mean_of("slowdown", easy)),
        make_gate("longest wait, times EASY's, median of the copies", float(np.median(times)), LONGEST_WAIT),
        make_gate("longest wait, times EASY's, largest of the copies", max(times), LONGEST_OF_ALL),
    )


def mean_of(name: str, measures: Sequence[NamedTuple]) -> float:
    """The mean of one of the measures."""
    return float(np.mean([getattr(each, name) for each in measures]))


def make_gate(name: str, found: float, most: float) -> Gate:
    """A gate that rounding does not close."""
    return Gate(name=name, found=float(found), most=float(most) * (1 + _ROUNDING))
