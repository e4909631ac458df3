"""Many tasks: done once, kept, and left in good order whatever happens."""

import csv
import json
import multiprocessing
import os
import signal
import threading
import time

import pytest
from helpers.tasks import (
    Square,
    SquareOfFile,
    change_the_file,
    die_at_three,
    die_once_at_three,
    fail_at_three,
    hang_at_three,
    interrupt_at_three,
    look_at_the_clock,
    slowly,
    square,
    together,
)

from decision.batsim.signals import Interrupted
from decision.experiments import tasks as chunks
from decision.experiments.store import ResultStore
from decision.experiments.tasks import Share, file_digest, run_tasks, task_key
from decision.model.errors import ConfigError, RunsFailedError, ShareDone


@pytest.fixture
def tasks(tmp_path):
    return [Square(number, str(tmp_path)) for number in range(6)]


def done(tmp_path):
    file = tmp_path / "done.txt"
    return [int(line.split()[0]) for line in file.read_text().splitlines()] if file.exists() else []


def failures(tmp_path):
    return list(csv.DictReader((tmp_path / "failures.csv").read_text().splitlines()))


def squares(numbers):
    return [{"square": n * n} for n in numbers]


def test_results_come_in_order_and_are_not_worked_out_again(tmp_path, tasks):
    heard = []
    found = run_tasks(square, tasks[:4], tmp_path / "runs", progress=lambda *counts: heard.append(counts))
    assert found == squares(range(4))
    assert heard == [(n, 4) for n in range(5)]
    assert run_tasks(square, tasks, tmp_path / "runs") == squares(range(6))
    assert done(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_equal_tasks_are_done_once(tmp_path, tasks):
    assert run_tasks(square, [tasks[2], tasks[2]], tmp_path / "runs") == [{"square": 4}] * 2
    assert done(tmp_path) == [2]


def test_a_result_is_named_by_what_defines_it_and_by_the_sources(tasks, monkeypatch):
    other = Square(1, "elsewhere")
    assert task_key(tasks[1]) == task_key(other) != task_key(tasks[2])
    before = task_key(other)
    monkeypatch.setattr(chunks, "numerics", lambda: "changed")
    assert task_key(other) != before


def test_several_processes_share_the_work_after_those_that_go_first(tmp_path, tasks):
    found = run_tasks(together, tasks, tmp_path / "runs", processes=2, first=[tasks[4]])
    assert found == squares(range(6))
    assert done(tmp_path)[0] == 4
    workers = {line.split()[1] for line in (tmp_path / "done.txt").read_text().splitlines()}
    assert len(workers) == 2 and str(os.getpid()) not in workers


@pytest.mark.parametrize("processes", [1, 2])
def test_what_fails_is_listed_and_the_others_are_done_and_it_is_tried_again(tmp_path, tasks, processes):
    with pytest.raises(RunsFailedError, match="1 of 6 runs failed; the first is the square of 3: three;") as error:
        run_tasks(fail_at_three, tasks, tmp_path / "runs", processes=processes)
    assert error.value.exit_code == 1
    assert [(row["run"], row["reason"]) for row in failures(tmp_path)] == [("the square of 3", "three")]
    assert failures(tmp_path)[0]["host"] == os.uname().nodename
    assert set(done(tmp_path)) == {0, 1, 2, 4, 5}
    assert run_tasks(square, tasks, tmp_path / "runs") == squares(range(6))
    assert sorted(done(tmp_path)) == [0, 1, 2, 3, 4, 5]  # what was finished is not done again
    assert not (tmp_path / "failures.csv").exists()


def test_an_interruption_lets_the_task_finish_and_keeps_it(tmp_path, tasks):
    with pytest.raises(Interrupted):
        run_tasks(interrupt_at_three, tasks, tmp_path / "runs")
    assert done(tmp_path) == [0, 1, 2, 3]
    assert len(ResultStore(tmp_path / "runs")) == 4


def test_an_interruption_of_several_processes_starts_nothing_new_and_leaves_none_behind(tmp_path):
    more = [Square(number, str(tmp_path)) for number in range(60)]
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(Interrupted):
        run_tasks(slowly, more, tmp_path / "runs", processes=2)
    timer.join()
    assert 0 < len(ResultStore(tmp_path / "runs")) == len(done(tmp_path)) < 60
    deadline = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_costs_its_run_alone(tmp_path, tasks):
    assert run_tasks(die_once_at_three, tasks, tmp_path / "runs", processes=2) == squares(range(6))
    assert not (tmp_path / "failures.csv").exists()


def test_a_run_that_takes_three_workers_with_it_is_set_aside(tmp_path, tasks):
    with pytest.raises(RunsFailedError):
        run_tasks(die_at_three, tasks, tmp_path / "runs", processes=2)
    assert [(row["run"], row["reason"]) for row in failures(tmp_path)] == [("the square of 3", "killed 3 workers")]
    assert done(tmp_path).count(3) == 3
    assert len(ResultStore(tmp_path / "runs")) == 5


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_hangs_ends_by_its_limit(tmp_path, tasks, processes):
    with pytest.raises(RunsFailedError, match=r"took longer than 0\.4 s"):
        run_tasks(hang_at_three, tasks, tmp_path / "runs", processes=processes, limit=0.4)
    assert len(ResultStore(tmp_path / "runs")) == 5


@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_that_changes_meanwhile_ends_it_and_nothing_is_stored(tmp_path, processes):
    (tmp_path / "input.txt").write_text("as it was")
    tasks = [SquareOfFile(n, str(tmp_path), file_digest(tmp_path / "input.txt")) for n in range(3)]
    with pytest.raises(ConfigError, match=rf"{os.uname().nodename}: .*input.txt is not what it was"):
        run_tasks(change_the_file, tasks, tmp_path / "runs", processes=processes)
    assert len(ResultStore(tmp_path / "runs")) == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_an_audit_names_what_reads_the_clock(tmp_path, tasks, processes):
    assert run_tasks(square, tasks, tmp_path / "well", processes=processes, audit=1.0) == squares(range(6))
    assert sorted(done(tmp_path)) == [n for n in range(6) for _ in range(2)]
    if processes == 2:
        lines = [line.split() for line in (tmp_path / "done.txt").read_text().splitlines()]
        assert len({tuple(line) for line in lines}) == 12  # each by both
    with pytest.raises(RunsFailedError, match=r"the square of 3: done twice, two results: at \d+.*read the clock"):
        run_tasks(look_at_the_clock, tasks, tmp_path / "runs", processes=processes, audit=1.0)
    assert len(ResultStore(tmp_path / "runs")) == 5


def test_shares_are_disjoint_and_the_plain_call_collects_them(tmp_path, tasks, monkeypatch):
    monkeypatch.setattr(chunks, "numerics", lambda: "some")  # each share has tasks then, whatever the sources are today
    assert {int(task_key(task), 16) % 3 for task in tasks} == {0, 1, 2}
    for number in range(3):
        with pytest.raises(ShareDone, match=f"share {number}/3: ") if number < 2 else pytest.MonkeyPatch.context():
            run_tasks(square, tasks, tmp_path / "runs", share=Share(number, 3))
    assert run_tasks(fail_at_three, tasks, tmp_path / "runs") == squares(range(6))
    assert sorted(done(tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_who_did_what_stands_beside_the_results(tmp_path, tasks):
    run_tasks(square, tasks[:2], tmp_path / "runs")
    run_tasks(square, tasks, tmp_path / "runs")
    facts = json.loads((tmp_path / "runs/run.json").read_text())
    assert [(each["runs"], each["hosts"]) for each in facts["results"]] == [
        (n, {os.uname().nodename: n}) for n in (2, 4)
    ]
    assert all(each["writer"]["command"] and each["writer"]["decision"] for each in facts["results"])
