"""Many tasks: done once, kept, and left in good order whatever happens."""

import multiprocessing
import os
import signal
import threading
import time

import pytest
from helpers.tasks import Square, die, fail_at_three, interrupt_at_three, slowly, square, together

from decision.batsim.signals import Interrupted
from decision.model.errors import ConfigError
from decision.runs import tasks as kept
from decision.runs.tasks import run_tasks


@pytest.fixture
def tasks(tmp_path):
    return [Square(number, str(tmp_path)) for number in range(6)]


def done(tmp_path):
    file = tmp_path / "done.txt"
    return [int(line.split()[0]) for line in file.read_text().splitlines()] if file.exists() else []


def test_results_come_in_order_and_are_not_worked_out_again(tmp_path, tasks):
    heard = []
    found = run_tasks(square, tasks[:4], tmp_path / "runs", progress=lambda *counts: heard.append(counts))
    assert found == [{"square": n * n} for n in range(4)]
    assert heard == [(n, 4) for n in range(5)]
    assert run_tasks(square, tasks, tmp_path / "runs") == [{"square": n * n} for n in range(6)]
    assert done(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_equal_tasks_are_done_once(tmp_path, tasks):
    assert run_tasks(square, [tasks[2], tasks[2]], tmp_path / "runs") == [{"square": 4}] * 2
    assert done(tmp_path) == [2]


def test_a_half_written_result_does_not_count(tmp_path, tasks):
    run_tasks(square, tasks[:1], tmp_path / "runs")
    (file,) = (tmp_path / "runs").iterdir()
    file.write_text(file.read_text()[:20])
    assert run_tasks(square, tasks[:1], tmp_path / "runs") == [{"square": 0}]
    assert done(tmp_path) == [0, 0]


def test_a_result_is_named_by_what_defines_it_and_by_the_sources(tmp_path, tasks, monkeypatch):
    other = Square(1, "elsewhere")
    assert (
        kept.result_path(tmp_path, tasks[1])
        == kept.result_path(tmp_path, other)
        != kept.result_path(tmp_path, tasks[2])
    )
    before = kept.result_path(tmp_path, other)
    monkeypatch.setattr(kept, "_numerics", lambda: "changed")
    assert kept.result_path(tmp_path, other) != before


def test_several_processes_share_the_work_after_those_that_go_first(tmp_path, tasks):
    found = run_tasks(together, tasks, tmp_path / "runs", processes=2, first=[tasks[4]])
    assert found == [{"square": n * n} for n in range(6)]
    assert done(tmp_path)[0] == 4
    workers = {line.split()[1] for line in (tmp_path / "done.txt").read_text().splitlines()}
    assert len(workers) == 2 and str(os.getpid()) not in workers


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_ends_it_and_leaves_what_is_finished(tmp_path, tasks, processes):
    with pytest.raises(ConfigError, match="three"):
        run_tasks(fail_at_three, tasks, tmp_path / "runs", processes=processes)
    before, finished = done(tmp_path), len(list((tmp_path / "runs").glob("*.json")))
    assert finished > 0 and 3 not in before
    run_tasks(square, tasks, tmp_path / "runs")
    assert set(done(tmp_path)) == {0, 1, 2, 3, 4, 5}
    assert len(done(tmp_path)) - len(before) == 6 - finished  # what was finished is not done again


def test_an_interruption_lets_the_task_finish_and_keeps_it(tmp_path, tasks):
    with pytest.raises(Interrupted):
        run_tasks(interrupt_at_three, tasks, tmp_path / "runs")
    assert done(tmp_path) == [0, 1, 2, 3]
    assert len(list((tmp_path / "runs").iterdir())) == 4


def test_an_interruption_of_several_processes_starts_nothing_new_and_leaves_none_behind(tmp_path, tasks):
    more = [Square(number, str(tmp_path)) for number in range(40)]
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted):
        run_tasks(slowly, more, tmp_path / "runs", processes=2)
    timer.join()
    kept_results = list((tmp_path / "runs").glob("*.json"))
    assert 0 < len(kept_results) == len(done(tmp_path)) < 40
    deadline = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_one_clear_line(tmp_path, tasks):
    with pytest.raises(ConfigError, match="was killed, perhaps for lack of memory"):
        run_tasks(die, tasks, tmp_path / "runs", processes=2)
