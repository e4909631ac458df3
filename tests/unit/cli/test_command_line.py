"""What the command line promises whatever the command: help at once, one line per mistake, exit codes."""

import subprocess
import sys

import pytest
from click.testing import CliRunner
from helpers.complaints import complaints

from decision.batsim.signals import Interrupted
from decision.cli import app as application
from decision.cli import terminal
from decision.cli.batsim import check_extra, read_roles, read_sched_config
from decision.cli.command import add_command
from decision.cli.declared import make_command
from decision.cli.options import read_pairs, read_range
from decision.model.errors import ConfigError, PeerError, PolicyError, RemoteProtocolError

COMMANDS = (
    "run",
    "showcase",
    "again",
    "compare",
    "starts",
    "slurm starts",
    "serve",
    "replay",
    "policies",
    "policies check",
    "batsim",
    "train",
    "evaluate",
)
COMMANDS += (
    "reproduce dbf",
    "reproduce grid5000-2016",
    "report analyse",
    "report evalys",
    "report view",
    "report show",
)


@pytest.fixture(autouse=True)
def _consoles_of_its_own():
    """As in each process: tables are as wide as the environment of this test says, not of the first one."""
    terminal.stdout.cache_clear()
    terminal.stderr.cache_clear()


def cli(*arguments, **environment):
    return CliRunner().invoke(application.app, arguments, env={"COLUMNS": "200", **environment})


@pytest.fixture
def failing(monkeypatch):
    """A command line whose only command raises what it is given."""

    def make(error):
        app = make_command(application.decision, "decision", application.CommandLine)

        def fail() -> None:
            raise error

        add_command(app, "fail", fail)
        return lambda *arguments: CliRunner().invoke(app, [*arguments, "fail"])

    return make


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("platform.xml: cannot be read"), 2),
        (PolicyError("t=3600 s: w0!17 needs 8 hosts, 5 free"), 2),
        (PeerError("Batsim never came"), 3),
        (RemoteProtocolError("Batsim goes back in time"), 3),
    ],
)
def test_an_error_is_one_line_and_its_exit_code_says_whose_it_is(failing, error, code):
    result = failing(error)()
    assert result.exit_code == code
    assert result.stderr == f"error: {error}\n"
    assert result.stdout == ""


def test_debug_shows_where_an_error_came_from(failing):
    run = failing(ConfigError("[x] is no policy"))
    assert "Traceback" in run("--debug").stderr
    assert "error: [x] is no policy" in run("--debug").stderr
    assert "Traceback" not in run().stderr


def test_debug_may_stand_behind_the_command_and_shows_the_users_code_last(tmp_path):
    (tmp_path / "mine.py").write_text("class Mine:\n    def __init__(self):\n        self.x = 1 / 0\n")
    given = ["run", "-p", "toy", "-w", "toy", "--policy", f"{tmp_path / 'mine.py'}:Mine", "-o", str(tmp_path / "out")]
    (plain,) = complaints(cli(*given).stderr)
    assert plain.endswith("mine.py:3: self.x = 1 / 0) (--debug shows the trace)")
    shown = complaints(cli(*given, "--debug").stderr)
    assert shown[-1] == plain
    assert shown[-2] == "ZeroDivisionError: division by zero"
    assert shown == complaints(cli("--debug", *given).stderr)


def test_a_policy_that_takes_too_long_ends_every_command_that_runs_it(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def reset(self, platform, seed): pass\n    def decide(self, cluster, plan):\n"
        "        while True: pass\n"
    )
    policy = f"{tmp_path / 'mine.py'}:Mine"
    toy = ["-p", "toy", "-w", "toy", "--policy", policy, "-o", str(tmp_path / "out")]
    for given in (
        ["run", *toy],
        ["run", *toy, "--engine", "reference"],
        ["compare", *toy, "--seeds", "2", "-j", "2"],
        ["policies", "check", policy],
    ):
        result = cli(*given, "--decide-limit", "0.3")
        assert result.exit_code == (1 if given[0] == "compare" else 2)  # of several runs, those that fail are listed
        assert "t=0 s: policy Mine: decide took longer than 0.3 s (" in result.stderr
        assert "mine.py:4: while True: pass)" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_policys_name_lists_its_options():
    rows = [" ".join(line.split()) for line in cli("policies", "sjf+easy").stdout.splitlines()]
    assert any(row.startswith("order sjf in which order jobs are looked at: fcfs, lcfs,") for row in rows)
    assert "idle_timeout 300 s with power=idle-timeout: a host that is idle for so long sleeps" in rows
    assert any(row.startswith("max_age 604800 s") and row.endswith("(Slurm, priority/multifactor)") for row in rows)
    assert cli("policies", "kamelot").stdout.split()[7:10] == ["security_time", "60", "s"]
    assert cli("policies", "eazy").stderr.startswith("error: there is no policy 'eazy'; did you mean easy?")
    assert "did you mean easy?" in cli("policies", "EASY").stderr


def test_an_interrupted_run_ends_as_programs_do(failing):
    assert failing(Interrupted(15))().exit_code == 143
    assert failing(KeyboardInterrupt())().exit_code == 130


def test_a_bug_is_called_a_bug(monkeypatch, capsys):
    def crash(**kwargs):
        raise RuntimeError("queue out of order")

    monkeypatch.setattr(application, "app", crash)
    monkeypatch.setattr(sys, "argv", ["decision", "policies"])
    from decision.cli import main

    with pytest.raises(SystemExit, match="1"):
        main()
    shown = capsys.readouterr().err
    assert "RuntimeError: queue out of order" in shown
    assert "This is a bug in decision" in shown


def test_what_stands_in_brackets_is_printed():
    assert "batsim-decision[learn]" in cli("policies").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command):
    result = cli(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"decision {command}" in result.stdout.partition("Example")[2]


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], ["run"], ["run", "--engine", "simgrid"], ["serve", "--timeout", "-1"]]
)
def test_a_command_line_that_cannot_be_understood_is_the_users_mistake(arguments):
    assert cli(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["run", "--engine", "simgrid"],
            "Invalid value for '--engine': 'simgrid' is not one of 'embedded', 'reference', 'batsim', 'docker' "
            "(decision run --help lists the options)",
        ),
        (
            ["serve", "--policy", "easy", "--timeout", "-1"],
            "Invalid value for '--timeout': must be greater than or equal to 0 "
            "(decision serve --help lists the options)",
        ),
        (["policies", "check"], "Missing argument 'POLICY' (decision policies check --help lists the options)"),
        (["frobnicate"], "No such command 'frobnicate' (decision --help lists the options)"),
        (["run", "--polcy", "easy"], None),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line(arguments, line):
    result = CliRunner().invoke(application.app, arguments, prog_name="decision", env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr == f"error: {line}\n" if line else "--policy" in result.stderr


def test_help_shows_flags_without_a_value_and_no_types_of_python():
    text = cli("run", "--help").stdout
    assert " --plot " in text
    assert not {"<", "bool", "range"} & set(text.split())
    assert "embedded | reference | batsim | docker" in text


def test_help_needs_no_heavy_module():
    code = (
        "import sys; sys.argv = ['decision', 'run', '--help']\n"
        "from decision.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'zmq', 'matplotlib', 'msgspec', 'torch'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.splitlines()[-1] == "[]"


def test_a_warm_run_does_not_import_numba(tmp_path):
    """Numba takes longer to import than all else; what compiles nothing needs none of it."""
    arguments = ["run", "-p", "toy", "-w", "toy", "--policy", "easy", "-o", str(tmp_path / "out")]
    assert cli(*arguments).exit_code == 0  # compiles what is not on disk
    code = (
        f"import sys; sys.argv = ['decision', *{arguments}, '--force']\n"
        "from decision.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numba', 'torch'} & set(sys.modules)), 'decision.engine.compiled' in sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.splitlines()[-1] == "[] True"


def test_the_module_is_the_command():
    output = subprocess.run(
        [sys.executable, "-m", "decision", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert output.stdout.startswith("decision ")


def test_settings_are_names_and_values():
    assert read_pairs(["order=saf", "text=a=b", "empty="]) == {"order": "saf", "text": "a=b", "empty": ""}
    assert read_pairs(None) == {}


@pytest.mark.parametrize("pairs", [["order"], ["=saf"], ["a=1", "a=2"]])
def test_settings_that_are_none_are_refused(pairs):
    with pytest.raises(ConfigError, match="--option"):
        read_pairs(pairs)


def test_ranges_are_read_as_in_python():
    assert [read_range(text) for text in ("10:20", ":5", "7:", ":", None)] == [
        slice(10, 20),
        slice(None, 5),
        slice(7, None),
        slice(None, None),
        None,
    ]


@pytest.mark.parametrize("text", ["5", "a:b", "1:2:3", "-3:"])
def test_ranges_that_are_none_are_refused(text):
    with pytest.raises(ConfigError, match="write it as a:b"):
        read_range(text)


@pytest.mark.parametrize(
    ("option", "what"),
    [("--enable-redis", "Redis"), ("-W", "workflows"), ("--sg-cfg=a:b", "SimGrid"), ("--no-sched", "without")],
)
def test_the_stand_in_refuses_by_name_what_only_batsim_can_do(option, what):
    with pytest.raises(ConfigError, match=f"{option.partition('=')[0]}: .*{what}.*use Batsim itself"):
        check_extra([option])


def test_the_stand_in_takes_what_changes_nothing_with_its_values():
    check_extra(["--redis-port", "6379", "--sg-log=root.thresh:info", "--disable-storage-sharing", "--sg-log", "x"])


@pytest.mark.parametrize("arguments", [["--enrgy"], ["--disable-storage-sharing", "stray"], ["stray"]])
def test_the_stand_in_refuses_what_is_no_option_of_batsims(arguments):
    with pytest.raises(ConfigError, match=f"{arguments[-1]}: no such option"):
        check_extra(arguments)


def test_roles_belong_to_each_host_named():
    assert read_roles(["a,b:storage", "c:master"]) == {"a": "storage", "b": "storage", "c": "master"}
    for wrong in ("a", "a:b:c", ":storage"):
        with pytest.raises(ConfigError, match="host1,host2:role"):
            read_roles([wrong])


def test_the_scheduler_configuration_is_a_text_or_a_file(tmp_path):
    file = tmp_path / "cfg.json"
    file.write_text('{"a": 1}')
    assert read_sched_config(None, None) == ""
    assert read_sched_config("x", None) == "x"
    assert read_sched_config(None, file) == '{"a": 1}'
    with pytest.raises(ConfigError, match="give one of them"):
        read_sched_config("x", file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_sched_config(None, tmp_path / "absent")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--policy", "fcfs"], "--policy: given 2 times, and it takes one value"),
        (["-o", "", "--seed", "1"], "--output: the name is empty; give one, or . for the current folder"),
        (["-w", "x" * 5000], f"{'x' * 60}...: no file has so long a name"),
        (["--option", "backfill=none"], "policy easy: the name says backfill=easy, and the option backfill=none; keep"),
    ],
)
def test_what_would_be_lost_or_mixed_without_a_word_is_refused(arguments, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = cli("run", "-p", "toy", "-w", "toy", "--policy", "easy", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {line}") and len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.rglob("*.*"))


def test_a_quiet_command_prints_results_and_errors_only(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(f"; MaxProcs: 4\n1 0 -1 10 4 -1 -1 4 20 -1 1 {'-1 ' * 7}\nno job\n")
    told, quiet = (cli("workload", "describe", str(log), *more) for more in ((), ("--quiet",)))
    assert "left out: 1 not 18 numbers (line 3)" in told.stderr
    assert (quiet.stderr, quiet.stdout) == ("", told.stdout)
    assert cli("--quiet", "run", "--policy", "eazy", "-p", "toy", "-w", "toy").stderr.startswith("error: ")


def test_an_error_with_half_a_character_is_printed():
    assert terminal.encodable("a \ud800 b") == "a \\ud800 b"
