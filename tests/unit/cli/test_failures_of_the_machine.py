"""What the machine lacks is one clear line and an exit code, whatever it is; and what can be written is written."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from decision.cli.terminal import cause_in_words

RUN = ("run", "-p", "toy", "-w", "toy", "--policy", "easy")
COMPARE = ("compare", "-p", "toy", "-w", "toy", "--policy", "fcfs", "--policy", "easy", "--whole", "-j", "1")
DECISION = (sys.executable, "-m", "decision")


def decision(*arguments, cwd, **settings):
    """A command in a process of its own; its environment is this one's with `settings`."""
    return _run([*DECISION, *arguments], cwd, **settings)


def limited(limit, *arguments, cwd):
    """As `decision`, with a limit of the shell's."""
    return _run(["sh", "-c", f'{limit} && exec "$@"', "sh", *DECISION, *arguments], cwd)


def _run(command, cwd, stdout=subprocess.PIPE, **environment):
    run = subprocess.run(
        command, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **environment}, timeout=120
    )
    error = run.stderr.decode()
    assert "Traceback" not in error and "bug" not in error, error
    return run.returncode, run.stdout, error


@pytest.mark.parametrize("arguments", [RUN, (*RUN, "--json"), ("--version",)])
def test_an_output_that_takes_no_more(arguments, tmp_path):
    with Path("/dev/full").open("w") as full:
        code, _, error = decision(*arguments, cwd=tmp_path, stdout=full)
    assert code == 2 and error.rstrip().endswith(
        "cannot be written (No space left on device); free space, or send it elsewhere"
    )


def test_a_comparison_that_cannot_be_printed_is_written(tmp_path):
    with Path("/dev/full").open("w") as full:
        code, _, _ = decision(*COMPARE, "-o", "out", cwd=tmp_path, stdout=full)
    assert code == 2
    assert (tmp_path / "out" / "comparison.csv").exists() and (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_any_encoding_prints_a_comparison(encoding, tmp_path):
    shaken = [argument for argument in COMPARE if argument != "--whole"]
    code, out, _ = decision(*shaken, "-o", "out", cwd=tmp_path, PYTHONIOENCODING=encoding)
    assert code == 0 and "^ v: better or worse" in out.decode(encoding)
    assert "▲" in (tmp_path / "out" / "comparison.md").read_text("utf-8")


def test_names_of_files_that_are_no_utf8(tmp_path):
    toy = Path(__file__).parents[3]
    log, platform = os.fsencode(tmp_path) + b"/to\xffy.json", os.fsencode(tmp_path) + b"/pl\xff.xml"
    Path(os.fsdecode(log)).write_bytes((toy / "workloads" / "toy.json").read_bytes())
    Path(os.fsdecode(platform)).write_bytes((toy / "platforms" / "toy.xml").read_bytes())
    given = ("-p", platform, "-w", log, "--policy", "easy")
    compare = ("compare", *given, "--policy", "fcfs", "--whole", "-o", b"o\xff", "--json")
    for _ in range(2):  # the second time all runs are found again
        code, out, _ = decision(*compare, cwd=tmp_path)
        assert code == 0 and json.loads(out)["baseline"] == "easy"
    page = Path(os.fsdecode(os.fsencode(tmp_path) + b"/o\xff")) / "report.html"
    assert "to\\udcffy" in page.read_text("utf-8")
    assert decision("run", *given, "-o", b"r\xff", "--json", cwd=tmp_path)[0] == 0
    assert decision("report", "analyse", b"r\xff", "-o", b"p\xff", "--json", cwd=tmp_path)[0] == 0
    assert decision("workload", "describe", log, "--json", cwd=tmp_path)[0] == 0
    for made in ("convert", "to-swf"):
        assert decision("workload", made, log, "-o", b"made\xff." + made.encode(), cwd=tmp_path)[0] == 0
    code, _, error = decision(*RUN, "--option", b"ea\xff=3", cwd=tmp_path)
    assert code == 2 and "no option 'ea\\udcff'" in error


@pytest.mark.parametrize("arguments", [RUN, COMPARE])
def test_a_folder_that_has_been_removed(arguments, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code, _, error = limited(f"rmdir '{gone}'", *arguments, cwd=gone)
    assert code == 2 and error == "error: the current folder has been removed; change to another one (cd)\n"


def test_few_open_files(tmp_path):
    code, _, error = limited("ulimit -n 16", *COMPARE[:-1], "2", cwd=tmp_path)
    assert code == 2 and "raise the limit (ulimit -n 1024), or take fewer processes (-j 1)" in error


def test_little_memory(tmp_path):
    code, _, error = limited("ulimit -v 200000", *RUN, cwd=tmp_path)
    assert code == 2 and "of what ulimit -v allows" in error


def test_numba_that_is_switched_off(tmp_path):
    code, _, error = decision(*RUN, cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    assert (
        code == 2 and error == "error: NUMBA_DISABLE_JIT is set, and simulations run as machine code alone; unset it\n"
    )


def test_shared_memory_that_cannot_be_written():
    error = OSError(errno.EROFS, "Read-only file system", "/dev/shm/pym-1-abc")
    assert cause_in_words(error) == (
        "/dev/shm cannot be written (Read-only file system), and several processes need it; take one (-j 1)"
    )


def test_only_what_the_machine_lacks_is_no_bug():
    assert cause_in_words(ValueError("a mistake of ours")) is None
    assert cause_in_words(ImportError("No module named 'decision.nothing'")) is None
    assert cause_in_words(OSError(errno.EBADF, "Bad file descriptor")) is None
