"""Options: those that repair an error are named in it, and help is short; former names of commands still work."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from click.testing import CliRunner

import decision
from decision.cli import app as application
from decision.cli.command import Group, add_command
from decision.cli.declared import Option, make_command
from decision.model.errors import ConfigError, PeerError

PACKAGE = Path(decision.__file__).parent
LOG = "".join(
    f"{number} {10 * number} 0 50 1 -1 -1 1 {60 + number} -1 1 1 1 -1 -1 -1 -1 {300 + number}\n"
    for number in range(1, 7)
)


def cli(*arguments, **environment):
    return CliRunner().invoke(application.app, [str(a) for a in arguments], env={"COLUMNS": "200", **environment})


@pytest.fixture
def files(root, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n" + LOG)
    return "-p", root / "platforms/toy.xml", "-w", log


# --- Errors ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def nested():
    """A command line with a command in a group in a group, which raises what it is given."""

    def make(error):
        app = make_command(application.decision, "decision", application.CommandLine)
        outer, inner = Group("outer"), Group("inner")

        def fail(file: str, speed: Annotated[str, Option("-s", "--host-speed")] = "1f") -> None:
            raise error

        add_command(inner, "fail", fail)
        outer.add_command(inner)
        app.add_command(outer)
        return CliRunner().invoke(app, ["outer", "inner", "fail", "x"])

    return make


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("speed", "w.json: give the speed (--host-speed)"),
        ("file", "w.json: give the speed"),
        ("", "w.json: give the speed"),
    ],
)
def test_an_error_names_the_option_of_the_running_command(nested, field, shown):
    result = nested(ConfigError("w.json: give the speed", field=field))
    assert (result.exit_code, result.stderr) == (2, f"error: {shown}\n")
    assert nested(PeerError("w.json: give the speed", field=field)).stderr == f"error: {shown}\n"


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("workload preset topology --estimates factor -o FILE", "or tsafrir:LONGEST (--estimates)"),
        ("workload lublin --set a.serial=1 -o FILE", "choose from whole (--set)"),
        ("platform flat --hosts 2 --simgrid 3 -o FILE", "3.28 or 4.0 (--simgrid)"),
        ("platform grid5000 paradoxe -o FILE", "choose that one (--flops)"),
        ("workload describe ROOT/workloads/taurus_week_flops.json", "like 11.77Gf (--speed)"),
        ("run -p ROOT/platforms/toy.xml -w ROOT/workloads/toy.json --policy easy --time-field 3", "(--time-field)"),
        (
            "run -p ROOT/platforms/toy.xml -w ROOT/workloads/toy.json --policy easy --engine batsim --batsim no",
            "(--batsim)",
        ),
        ("reproduce grid5000-2016 --data FILE", "give the folder that it is in (--data)"),
        ("batsim -p ROOT/platforms/toy.xml --enable-profile-reuse", "enable them too (--enable-dynamic-jobs)"),
    ],
)
def test_errors_of_lower_layers_end_with_the_option(command, end, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [word.replace("ROOT", str(root)).replace("FILE", str(tmp_path / "none/file")) for word in command.split()]
    result = cli(*words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith(end)


def test_no_error_below_the_command_line_names_an_option():
    """But for options of Batsim and of Slurm's commands, which errors name."""
    below = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(PACKAGE / "cli")]
    named = {}
    for path in below:
        raised = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)]
        texts = [part.value for node in raised for part in ast.walk(node) if isinstance(part, ast.Constant)]
        if found := [text for text in texts if isinstance(text, str) and " --" in f" {text}"]:
            named[path.relative_to(PACKAGE).as_posix()] = found
    assert set(named) <= {
        "protocol/rules.py",
        "protocol/batsim5/codec.py",
        "rl/learning/checkpoint.py",
        "slurm/queue.py",  # squeue --json
        "slurm/versions.py",  # sinfo --version
    }


# --- Old names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("analyse", "report analyse"),
        ("view", "report view"),
        ("show", "report show"),
        ("check-policy", "policies check"),
        ("experiment", "reproduce"),
    ],
)
def test_moved_commands_are_hidden_and_work(old, new):
    assert f"\n  {old} " not in cli("--help").stdout
    assert cli(old, "--help").exit_code == 0
    wrong = "absent" if old != "experiment" else "grid5000-2016"
    result = cli(old, wrong)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"decision {old} is now decision {new}; the next release")
    assert result.stderr.splitlines()[-1].startswith("error: ")


# --- Requested times ------------------------------------------------------------------------------------------------


def test_the_field_of_requested_times_can_be_chosen(files, tmp_path):
    import json

    for field, first in ((None, 61.0), (18, 301.0)):
        option = () if field is None else ("--time-field", field)
        assert cli("workload", "from-swf", files[-1], "-o", tmp_path / "w.json", *option).exit_code == 0
        written = json.loads((tmp_path / "w.json").read_text())
        assert written["jobs"][0]["walltime"] == first
        assert ("--time-field 18" in written["description"]) == (field == 18)
        described = cli("workload", "describe", files[-1], "--json", *option)
        assert json.loads(described.stdout)["walltime"]["least"] == first


@pytest.mark.parametrize("command", ["run", "compare", "train dbf", "evaluate easy"])
def test_every_command_that_reads_logs_has_the_field(command, root, tmp_path):
    files = ("-p", root / "platforms/toy.xml", "-w", root / "workloads/toy.json")
    policy = () if "train" in command or "evaluate" in command else ("--policy", "easy")
    result = cli(*command.split(), *files, *policy, "-o", tmp_path / "out", "--time-field", 6)
    assert result.exit_code == 2
    assert "toy.json: not a log in the Standard Workload Format" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("(--time-field)")


# --- Help and completion --------------------------------------------------------------------------------------------


def paths(command, *names):
    """The words of every command, of groups too."""
    yield names
    for name, each in getattr(command, "commands", {}).items():
        yield from paths(each, *names, name)


def test_every_option_explains_itself():
    def check(command, *names):
        for parameter in command.params:
            text = getattr(parameter, "help", None) or ""
            assert text[:1].isupper() or text[:1] == "[", (names, parameter.name, text)
            assert text.rstrip("]").endswith("."), (names, parameter.name, text)
        for name, each in getattr(command, "commands", {}).items():
            check(each, *names, name)

    check(application.app)


def test_help_names_options_that_few_need_and_explains_them_when_it_is_asked_to():
    short, whole = (cli(*words).stdout for words in (("compare", "--help"), ("compare", "--help", "-v")))
    assert "Pictures: format, width, type-size, dpi." in short and "Pixels per inch" not in short
    assert "Metrics: bounded_slowdown" in whole and "Metrics: bounded_slowdown" not in short
    assert "Pixels per inch" in whole and "--pictures" not in whole and "--json" in whole
    assert "Pixels per inch" not in cli("compare", "--help").stdout
    assert "-v report view" not in cli("report", "view", "--help").stdout


def test_a_setting_is_the_option_of_its_name(files, tmp_path):
    def run(*words):
        return cli("run", *files, "--policy", "fcfs", "-o", tmp_path / "out", *words)

    for words in (["--width", 3], ["--pictures", "width=3"], ["--pictures=dpi=60,width=3"]):
        assert run(*words).stderr == "error: it needs --plot; leave the option out (--width)\n"
    assert run("--plot", "--pictures", "width=3,dpi=60", "--pictures", "format=svg").exit_code == 0
    assert (tmp_path / "out/schedule.svg").exists()
    assert "no such setting; did you mean width?; choose from format" in run("--pictures", "widht=3").stderr
    assert "--pictures 'width': write it as width=VALUE" in run("--pictures", "width").stderr
    assert "--simulator 'schedule-trace=1': write it as schedule-trace" in run("--simulator", "schedule-trace=1").stderr
    assert "--width: given 2 times" in run("--pictures", "width=3", "--width", 4).stderr
    assert "'--pictures' requires an argument" in run("--pictures").stderr


def test_a_setting_may_have_commas(files, tmp_path):
    """What follows one is another setting only where it has the name of one."""
    given = ("--policy", "easy", "-o", tmp_path / "out")
    result = cli("compare", *files, *given, "--machines", "submit=-l nodes=1,mem=2,share=0/0")
    assert result.stderr.endswith("'0/0': write it as I/N with I from 0 to N - 1, like 0/10 (--share)\n")
    result = cli("compare", *files, *given, "--machines", "submit=-l nodes=1,mem=2")
    assert result.stderr.endswith("nothing is submitted; say where with --on, or leave the option out (--submit)\n")


def test_json_may_stand_before_the_command(files):
    import json

    assert json.loads(cli("--json", "workload", "describe", files[-1]).stdout)["jobs"] == 6


def test_the_help_of_no_command_imports_what_is_slow():
    code = (
        "import contextlib, io, sys\n"
        "from decision.cli.app import app\n"
        f"for words in {[list(words) for words in paths(application.app)]!r}:\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):\n"
        "        app(args=[*words, '--help'], prog_name='decision')\n"
        "    assert 'Usage: decision ' + ' '.join(words) in shown.getvalue(), (words, shown.getvalue())\n"
        "print(sorted({'numba', 'numpy', 'zmq', 'matplotlib', 'msgspec', 'torch'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.splitlines()[-1] == "[]"


def test_the_shell_completes_commands_and_options():
    def completed(words):
        environment = {"_DECISION_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        output = subprocess.run(
            [sys.executable, "-m", "decision"], env=os.environ | environment, capture_output=True, text=True, timeout=60
        )
        return [line.partition(",")[2] for line in output.stdout.split()]

    assert completed("decision re") == ["replay", "report", "reproduce"]
    assert completed("decision report ") == ["analyse", "evalys", "export", "view", "show"]
    assert completed("decision workload lublin --nb") == ["--nb-jobs"]


def test_the_completion_script_is_shown(monkeypatch):
    options = cli("--help").stdout
    assert "--install-completion" in options and "--show-completion" in options
    assert "_DECISION_COMPLETE=fish_complete" in cli("--show-completion", SHELL="/usr/bin/fish").stdout
    assert "there is no completion for it" in cli("--show-completion", SHELL="/bin/csh").stderr


def test_the_completion_script_is_installed_once(tmp_path):
    (tmp_path / ".zshrc").write_text("alias ll='ls -l'\n")
    for _ in range(2):
        assert cli("--install-completion", SHELL="/bin/zsh", HOME=str(tmp_path)).exit_code == 0
    assert "_DECISION_COMPLETE=zsh_complete" in (tmp_path / ".zfunc/_decision").read_text()
    assert (tmp_path / ".zshrc").read_text().splitlines()[0] == "alias ll='ls -l'"
    assert len((tmp_path / ".zshrc").read_text().splitlines()) == 2


def test_the_version_is_printed():
    assert cli("--version").stdout == f"decision {decision.__version__}\n"
