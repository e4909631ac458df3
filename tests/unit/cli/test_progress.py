"""What long commands say where there is no terminal."""

import re
import time

import pytest

from decision.cli import terminal, train
from decision.cli.terminal import Pace, clock_time, counting, working


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [1000.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.0, "59 s"),
        (60.0, "1 min"),
        (3540.0, "59 min"),
        (3599.0, "1 h 00 min"),
        (11_100.0, "3 h 05 min"),
    ],
)
def test_durations(seconds, text):
    assert clock_time(seconds) == text


def test_a_line_says_what_how_far_and_when_it_will_end(clock):
    pace = Pace("runs")
    assert str(pace) == "runs: 0 s elapsed"
    pace.set(0, 360)
    clock[0] += 60
    assert str(pace) == "runs: 0 of 360, 1 min elapsed, time left unknown"
    pace.set(90, 360)
    assert str(pace) == "runs: 90 of 360, 1 min elapsed, about 3 min left"


def test_what_was_done_before_does_not_count_as_speed(clock):
    pace = Pace("training", "steps")
    pace.set(1000, 4000, "12 steps/s")
    clock[0] += 600
    pace.set(2000, 4000, "12 steps/s")
    assert str(pace) == "training: 2,000 of 4,000 steps, 12 steps/s, 10 min elapsed, about 20 min left"


def wait_for(said, begin):
    """Until a line that begins so was said; a busy machine takes its time."""
    deadline = time.monotonic() + 60
    while not any(line.startswith(begin) for line in said.copy()):
        assert time.monotonic() < deadline, said
        time.sleep(0.01)


def test_lines_come_on_stderr_while_it_goes_on_and_not_after(monkeypatch, capsys):
    said = []
    monkeypatch.setattr(terminal, "_PERIOD", 0.02)
    monkeypatch.setattr(terminal, "note", said.append)
    with counting("runs") as show:
        show(1, 4)
        wait_for(said, "runs: 1 of 4, ")
    with working("easy") as show:
        show(50.0, 3, 7)
        wait_for(said, "easy: 3 of 7 jobs, simulated 50 s, ")
    with train.learning(100) as show:
        show(50, 10.0, {"validation_waiting_time": 7.0, "validation_bounded_slowdown": 2.0})
        wait_for(said, "training: 50 of 100 steps, 10 steps/s, validation: wait 7")
    count = len(said)
    time.sleep(0.1)
    assert len(said) == count
    assert capsys.readouterr().out == ""


def test_a_curve_without_some_figures_is_shown(capsys):
    row = {"steps": 10.0, "episodes": 2.0, "waiting_time": 30.0, "utilization": 0.5, "reward": -1.0}
    validation = {"validation_waiting_time": 12.0, "validation_bounded_slowdown": 1.5}
    train.print_curve([row | validation])
    assert re.search(r"10\s+12\S*\s+1\.5\S*\s+2\s+30\S*\s+-\s+50\S*\s+-1\.0000", capsys.readouterr().out)
