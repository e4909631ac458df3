"""The picture of a run in the terminal."""

import io
import threading
import time

import msgspec
import pytest
from click.testing import CliRunner
from helpers.run_samples import run_facts
from rich.console import Console

from decision.cli.app import app
from decision.cli.report import frame
from decision.files.outputs_read import RUN, STATUS, Status, lock_folder


def status(**changes) -> Status:
    values = {
        "policy": "easy",
        "written": time.time(),
        "jobs": 1500,
        "now": 90_061.0,
        "submitted": 400,
        "waiting": 30,
        "running": 5,
        "hosts": "CCCI",
        "watts": 667.0,
    }
    return Status(**(values | changes))


def drawn(picture, width=80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(picture)
    return console.export_text()


def test_clock_queue_hosts_and_power_are_shown():
    text = drawn(frame(status(), [0, 15, 30], 80))
    assert "1 d 01:01:01" in text
    assert "400 of 1,500 submitted, 365 ended" in text
    assert "30 waiting, 5 running" in text
    assert "0.67 kW" in text
    assert " ▄█" in text
    assert "■■■□" in text
    assert "■ 3 computing" in text and "□ 1 idle" in text


def test_large_clusters_get_a_cell_for_several_hosts():
    text = drawn(frame(status(hosts="C" * 3000 + "I" * 1000), [0], 80))
    assert (text.count("■"), text.count("□")) == (750 + 1, 250 + 1)  # four hosts a cell, and the legend's
    assert "3,000 computing" in text and "a cell: the state of most of 4 hosts" in text


def test_each_state_has_a_sign_of_its_own():
    text = drawn(frame(status(hosts="SNFICU"), [0], 80))
    assert "·▲▼□■x" in text


@pytest.mark.parametrize("width", [30, 60, 200])
def test_nothing_is_wider_than_the_terminal(width):
    text = drawn(frame(status(hosts="CISNFU" * 40), list(range(500)), width), width)
    assert max(map(len, text.splitlines())) <= width


def test_a_run_that_says_nothing_any_more_is_told_apart():
    assert "no update for 60 s" in drawn(frame(status(written=time.time() - 60), [0], 80))


def test_no_power_is_shown_where_the_platform_says_none():
    assert "unknown" in drawn(frame(status(watts=None), [0], 80))


def test_the_command_says_what_is_missing(tmp_path):
    for folder, message in ((tmp_path, "no run there"), (tmp_path / "no", "no such folder")):
        result = CliRunner().invoke(app, ["report", "view", str(folder)])
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())


@pytest.mark.parametrize("options", [(), ("--live",), ("--json",)])
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"state": "failed", "reason": "Batsim ended"}, "the last run in this folder failed (Batsim ended)"),
        ({}, "the last run in this folder died without a word (process 7 on here)"),
    ],
)
def test_a_run_that_failed_or_died_is_refused(tmp_path, options, changes, says):
    (tmp_path / STATUS).write_bytes(msgspec.json.encode(status()))  # killed before it could be removed
    (tmp_path / RUN).write_bytes(msgspec.json.encode(run_facts(**changes)))
    for name in ("jobs", "schedule"):
        (tmp_path / f"out_{name}.csv").write_text("of an older run")
    result = CliRunner().invoke(app, ["report", "view", str(tmp_path), *options])
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())


def test_the_command_shows_a_run_that_goes(tmp_path):
    (tmp_path / STATUS).write_bytes(msgspec.json.encode(status()))
    with lock_folder(tmp_path):
        result = CliRunner().invoke(app, ["report", "view", str(tmp_path)])
    assert result.exit_code == 0
    assert "30 waiting, 5 running" in result.output


def test_who_waits_for_a_run_is_told_so(tmp_path, monkeypatch):
    def begin(_seconds):
        if threading.current_thread() is threading.main_thread():  # others' threads may sleep here, too
            (tmp_path / "out_jobs.csv").write_text("")  # which is none, and is said to be none

    monkeypatch.setattr(time, "sleep", begin)
    result = CliRunner().invoke(app, ["report", "view", str(tmp_path), "--live"])
    assert result.stderr.splitlines()[0] == f"waiting for a run in {tmp_path}; Ctrl-C ends it"
