"""Where machine code cannot be kept the user is told, once and truly; and what runs it for long can be ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KERNEL = """
from decision.compiling.jit import kernel, on_compiling

@kernel
def one(x):
    return x + 1

@kernel
def two(x):
    return 2 * x

on_compiling.append(lambda done, of: print(done, of))
print(one(1), two(1))
"""
ANNOUNCED = "from decision.cli.terminal import announce_compilation; announce_compilation(); announce_compilation()"


def python(program, folder, limit="true", **settings):
    (folder / "program.py").write_text(program)
    command = ["sh", "-c", f'{limit} && exec "$@"', "sh", sys.executable, str(folder / "program.py")]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    given = {**environment, "PYTHONDONTWRITEBYTECODE": "1", **settings}
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=given)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


def kept(place, reason, variable):
    return (
        f"machine code cannot be kept in {place} ({reason}), so that each command compiles again; "
        f"set {variable} to a folder that can be written\n"
    )


def test_a_file_in_the_place_of_the_cache(tmp_path):
    (tmp_path / "cache").write_text("")
    said = kept(tmp_path / "cache", "a file of that name is in its place", "NUMBA_CACHE_DIR")
    assert python(KERNEL, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == ("0 0\n0 0\n2 2\n", said)


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_commands_say_so_before_they_compile(variable, tmp_path):
    place = "/proc/nope" if variable == "NUMBA_CACHE_DIR" else "/proc/nope/decision"
    _, said = python(ANNOUNCED, tmp_path, **{variable: "/proc/nope"})
    assert said == kept(place, "No such file or directory", variable)


def test_a_disk_that_is_full(tmp_path):
    out, said = python(KERNEL, tmp_path, "ulimit -f 1", NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert out == "0 0\n0 0\n2 2\n"
    assert said == f"machine code cannot be kept in {tmp_path / 'cache'} (File too large); free space there\n"
    assert not [*(tmp_path / "cache").rglob("*.root")]


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGTERM, "interrupted (SIGTERM)"), (signal.SIGINT, "interrupted")]
)
def test_what_ends_a_process_need_not_wait_for_machine_code(number, word):
    program = (
        "import hashlib, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore in what they run beside them\n"
        "from decision.batsim.signals import interrupted_by_sigterm\n"
        "from decision.cli.app import _end_at_once\n"
        "from decision.model.errors import ended_if_deaf, heeding_nothing\n"
        "print('begun', flush=True)\n"
        "with ended_if_deaf(_end_at_once), interrupted_by_sigterm(), heeding_nothing():\n"
        "    hashlib.pbkdf2_hmac('sha512', b'', b'', 1_000_000_000)  # minutes, in C\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        time.sleep(0.5)
        sent = time.monotonic()
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    assert time.monotonic() - sent < 5
    assert process.returncode == 128 + number and error.decode() == f"{word}\n"


def test_lines_of_progress_say_how_many_of_how_many():
    from decision.cli.terminal import Pace
    from decision.compiling import jit

    pace = Pace("runs")
    pace.set(0, 60)
    assert str(pace) == "runs: 0 of 60, 0 s elapsed, time left unknown"
    jit._begun.append(time.monotonic() - 90)
    try:
        assert str(pace) == "runs: 0 of 60, compiling for 2 min, 0 s elapsed"  # and no guess of what is left
    finally:
        jit._begun.clear()


def test_a_folder_that_can_be_written_is_no_news(tmp_path):
    assert python(KERNEL, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == ("0 0\n0 0\n2 2\n", "")
    assert [*Path(tmp_path / "cache").rglob("*.root")]
