"""Many tasks: done once, kept, and left in good order whatever happens."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import msgspec
import pytest

from decision.drivers import kept
from decision.drivers.side_by_side import do_all
from decision.drivers.signals import Interrupted
from decision.model.errors import ConfigError


class Square(msgspec.Struct, frozen=True):
    """A task; each time that it is done leaves a line in a file."""

    number: int
    folder: str

    def definition(self):
        return {"square": self.number}


def square(task):
    with (Path(task.folder) / "done.txt").open("a") as file:
        file.write(f"{task.number} {os.getpid()}\n")
    return {"square": task.number**2}


def slowly(task):
    time.sleep(0.3)
    return square(task)


def fail_at_three(task):
    if task.number == 3:
        raise ConfigError("three")
    return square(task)


def interrupt_at_three(task):
    if task.number == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return square(task)


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def tasks(tmp_path):
    return [Square(number, str(tmp_path)) for number in range(6)]


def done(tmp_path):
    file = tmp_path / "done.txt"
    return [int(line.split()[0]) for line in file.read_text().splitlines()] if file.exists() else []


def test_results_come_in_order_and_are_not_worked_out_again(tmp_path, tasks):
    heard = []
    found = do_all(square, tasks[:4], tmp_path / "runs", progress=lambda *counts: heard.append(counts))
    assert found == [{"square": n * n} for n in range(4)]
    assert heard == [(n, 4) for n in range(5)]
    assert do_all(square, tasks, tmp_path / "runs") == [{"square": n * n} for n in range(6)]
    assert done(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_equal_tasks_are_done_once(tmp_path, tasks):
    assert do_all(square, [tasks[2], tasks[2]], tmp_path / "runs") == [{"square": 4}] * 2
    assert done(tmp_path) == [2]


def test_a_half_written_result_does_not_count(tmp_path, tasks):
    do_all(square, tasks[:1], tmp_path / "runs")
    (file,) = (tmp_path / "runs").iterdir()
    file.write_text(file.read_text()[:20])
    assert do_all(square, tasks[:1], tmp_path / "runs") == [{"square": 0}]
    assert done(tmp_path) == [0, 0]


def test_a_result_is_named_by_what_defines_it_and_by_the_sources(tmp_path, tasks, monkeypatch):
    other = Square(1, "elsewhere")
    assert kept.place(tmp_path, tasks[1]) == kept.place(tmp_path, other) != kept.place(tmp_path, tasks[2])
    before = kept.place(tmp_path, other)
    monkeypatch.setattr(kept, "_sources", lambda: "changed")
    assert kept.place(tmp_path, other) != before


def test_several_processes_share_the_work_after_those_that_go_first(tmp_path, tasks):
    found = do_all(slowly, tasks, tmp_path / "runs", processes=2, first=[tasks[4]])
    assert found == [{"square": n * n} for n in range(6)]
    assert done(tmp_path)[0] == 4
    workers = {line.split()[1] for line in (tmp_path / "done.txt").read_text().splitlines()}
    assert len(workers) == 2 and str(os.getpid()) not in workers


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_ends_it_and_leaves_what_is_finished(tmp_path, tasks, processes):
    with pytest.raises(ConfigError, match="three"):
        do_all(fail_at_three, tasks, tmp_path / "runs", processes=processes)
    before, finished = done(tmp_path), len(list((tmp_path / "runs").glob("*.json")))
    assert finished > 0 and 3 not in before
    do_all(square, tasks, tmp_path / "runs")
    assert set(done(tmp_path)) == {0, 1, 2, 3, 4, 5}
    assert len(done(tmp_path)) - len(before) == 6 - finished  # what was finished is not done again


def test_an_interruption_lets_the_task_finish_and_keeps_it(tmp_path, tasks):
    with pytest.raises(Interrupted):
        do_all(interrupt_at_three, tasks, tmp_path / "runs")
    assert done(tmp_path) == [0, 1, 2, 3]
    assert len(list((tmp_path / "runs").iterdir())) == 4


def test_an_interruption_of_several_processes_starts_nothing_new_and_leaves_none_behind(tmp_path, tasks):
    more = [Square(number, str(tmp_path)) for number in range(40)]
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted):
        do_all(slowly, more, tmp_path / "runs", processes=2)
    timer.join()
    kept_results = list((tmp_path / "runs").glob("*.json"))
    assert 0 < len(kept_results) == len(done(tmp_path)) < 40
    deadline = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_one_clear_line(tmp_path, tasks):
    with pytest.raises(ConfigError, match="was killed, perhaps for lack of memory"):
        do_all(die, tasks, tmp_path / "runs", processes=2)
