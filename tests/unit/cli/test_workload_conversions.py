"""The commands that convert and describe workloads, as a user meets them."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision import __version__
from decision.cli.app import app

HEADER = "; Version: 2.2\n; Computer: Toy\n; UnixStartTime: 736992000\n; TimeZone: 7200\n; MaxProcs: 8\n"


def line(number: int, submit: float, run: float, size: int, user: int = 3) -> str:
    return f"{number} {submit} -1 {run} {size} -1 -1 {size} 600 -1 1 {user} 1 -1 2 -1 -1 -1\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    rows = [
        line(1, 0, 300, 4),
        line(2, 40_000, 600, 8),
        line(3, 90_000, 60, 1),
        line(4, 90_100, 0, 1),
        line(5, 5, 9, 9),
    ]
    path.write_text(HEADER + "".join(rows))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["workload", *map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_a_log_becomes_a_workload_that_says_where_it_is_from(log: Path) -> None:
    target = log.with_name("out.json")
    code, shown, notes = run("from-swf", log, "-o", target, "--select", "0:2")
    assert code == 0
    assert shown == f"{target}: 2 jobs for 8 hosts, offered load 0.0187\n"
    reasons = (
        "1 with an unknown or zero run time (line 9), 1 larger than 8 hosts (line 10), 1 outside the range 0:2 of jobs"
    )
    assert notes == f"{log}: left out: {reasons}\n"
    written = json.loads(target.read_text())
    assert written["description"].splitlines() == [
        f"From log.swf (sha256 {hashlib.sha256(log.read_bytes()).hexdigest()}) by decision {__version__}, "
        "options --select 0:2.",
        f"2 of 5 jobs; left out: {reasons}.",
        "Offered load 0.01875 on 8 hosts.",
        "Computer: Toy",
    ]
    assert (written["unix_start_time"], written["time_zone"], written["nb_res"]) == (736_992_000.0, 7200.0, 8)
    assert written["jobs"][0] == {
        **{"id": "1", "subtime": 0.0, "res": 4, "profile": "delay300", "walltime": 600.0},
        **{"user": "3", "group": "1", "queue": "2"},
        **{"recorded": {"size": 4, "state": "COMPLETED"}, "request": {"size": 4}},
    }


def test_there_is_a_file_for_each_day(log: Path) -> None:
    profile = ("--profile", "computation", "--speed", "1Gf")
    code, shown, _ = run("from-swf", log, "-o", log.with_name("day.json"), "--daily", *profile)
    assert code == 0
    first, second = (log.with_name(f"day_1993-05-{day}.json") for day in (10, 11))
    assert [text.partition(":")[0] for text in shown.splitlines()] == [str(first), str(second)]
    assert json.loads(first.read_text())["jobs"][0]["subtime"] == 7200.0
    assert json.loads(second.read_text())["profiles"] == {
        "computation60": {"type": "parallel_homogeneous", "cpu": 6e10, "com": 0.0}
    }


def test_a_workload_becomes_a_log_again(log: Path) -> None:
    middle, target = log.with_name("out.json"), log.with_name("again.swf")
    run("from-swf", log, "-o", middle)
    assert run("to-swf", middle, "-o", target)[0] == 0
    jobs = [text for text in target.read_text().splitlines() if not text.startswith(";")]
    assert jobs[1] == "2 40000 -1 600 8 -1 -1 8 600 -1 1 3 1 -1 2 -1 -1 -1"
    assert "; UnixStartTime: 736992000" in target.read_text()
    assert "; Note: From log.swf" in target.read_text()


def test_a_workload_keeps_what_batsim_does_not_know(tmp_path: Path) -> None:
    job = {"id": 7, "subtime": 3, "res": 2, "profile": "p", "walltime": 9, "after": ["w0!3"], "user": {"name": "ada"}}
    profile = {"type": "smpi", "trace": "t.txt", "note": "é"}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": [job], "profiles": {"p": profile}}))
    code, shown, _ = run("from-json", tmp_path / "w.json", "-o", tmp_path / "o.json", "--shift", "--walltime", "none")
    assert (code, shown) == (0, f"{tmp_path / 'o.json'}: 1 job for 4 hosts, offered load unknown without --speed\n")
    written = json.loads((tmp_path / "o.json").read_text())
    del job["walltime"]
    assert written["jobs"] == [{**job, "id": "7", "subtime": 0.0}]
    assert written["profiles"] == {"p": profile}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--from", "soon"], "soon: not a time; give seconds or a date"),
        (["--from", "1e9"], "no usable job (left out: "),
        (["--select", "3"], "--select '3': write it as a:b"),
        (["--load", "0"], "load: must be above 0"),
        (["--load", "nan"], "load: must be above 0"),
        (["--select", "0:1", "--load", "1"], "come all at once or take no time"),
        (["--profile", "computation"], "need the hosts' speed; give it, like 11.77Gf (--speed)"),
        (["--profile", "computation", "--speed", "fast"], "the speed 'fast' is not a number and a unit"),
        (["--profile", "computation", "--speed", "0"], "--speed 0: must be above 0"),
        (
            ["--profile", "parallel", "--speed", "1Gf"],
            "communication ratio: give it for jobs of kind parallel, and only for them (--comm-ratio)",
        ),
        (["--comm-ratio", "0.5"], "--comm-ratio: give it with --profile parallel"),
        (["--profile", "delay", "--bandwidth", "1GBps"], "--bandwidth: give it with --profile parallel"),
        (["--load", "1e-320"], "too close together or too far apart"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(options: list[str], reason: str, log: Path) -> None:
    code, shown, notes = run("from-swf", log, "-o", log.with_name("out.json"), *options)
    assert (code, shown) == (2, "")
    assert reason in notes
    assert len(notes.splitlines()) == 1
    assert list(log.parent.iterdir()) == [log]


def test_a_workload_is_not_written_over_its_source(log: Path) -> None:
    before = log.read_bytes()
    code, _, notes = run("from-swf", log, "-o", log)
    assert (code, log.read_bytes()) == (2, before)
    assert "is the source itself" in notes


def test_a_file_that_cannot_be_written_leaves_nothing_behind(log: Path) -> None:
    (log.with_name("folder")).mkdir()
    code, _, notes = run("from-swf", log, "-o", log.with_name("folder"))
    assert code == 2
    assert "folder: cannot be written (Is a directory)" in notes
    assert sorted(path.name for path in log.parent.iterdir()) == ["folder", "log.swf"]


def test_a_description_is_tables_and_a_picture(log: Path) -> None:
    pytest.importorskip("matplotlib")
    code, shown, notes = run("describe", log, "--plot", log.with_name("log.png"), "--width", "5", "--dpi", "60")
    assert code == 0
    facts = [" ".join(text.split()) for text in shown.splitlines()]
    assert facts[:4] == ["jobs 3", "hosts 8", "users 1", "first submission 1993-05-10 02:00:00"]
    assert facts[6] == "offered load 0.008"
    assert "left out" in notes
    picture = log.with_name("log.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and int.from_bytes(picture[16:20], "big") == 300  # pixels


def test_the_shipped_workloads_can_be_described(root: Path) -> None:
    code, shown, _ = run("describe", root / "workloads/taurus_week_flops.json", "--speed", "141.24Gf")
    assert code == 0
    assert "1,500" in shown


@pytest.mark.parametrize("command", ["convert", "to-swf", "describe"])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    code, shown, _ = run(command, "--help")
    assert code == 0
    assert f"decision workload {command}" in shown


def test_converting_needs_neither_engine_nor_compiler(log: Path) -> None:
    code = (
        f"import sys; sys.argv = ['decision', 'workload', 'from-swf', {str(log)!r}, '-o', {str(log) + '.json'!r}]\n"
        "from decision.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numba', 'zmq', 'matplotlib', 'decision.engine', 'decision.policies.composed'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.splitlines()[-1] == "[]"


def test_names_of_one_format_still_convert_and_are_not_in_the_help(log: Path) -> None:
    """``convert`` is the one command; the others write the same, but for the options in the description."""
    written = []
    for words in (("convert",), ("from-swf",)):
        target = log.with_name(f"{words[0]}.json")
        assert run(*words, log, "-o", target)[0] == 0
        written.append(target.read_bytes())
    assert written[0] == written[1]
    shown = run("--help")[1]
    assert "convert" in shown and "from-" not in shown
