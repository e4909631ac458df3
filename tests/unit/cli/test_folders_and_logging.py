"""Folders that are not what a command expects, pictures by ``--format``, and what is logged, where it is asked for."""

import logging
import subprocess
import sys

import pytest
from click.testing import CliRunner

import decision as d
from decision.cli import app as application
from decision.cli import terminal
from decision.model.errors import ConfigError, warn_once
from decision.rl.schedulers import find_scheduler

TOY = ("-p", "toy", "-w", "toy")
RUN = ("run", *TOY, "--policy", "easy")
COMPARE = ("compare", *TOY, "--policy", "fcfs", "--policy", "easy", "-j", "1")


@pytest.fixture(autouse=True)
def _consoles_and_logger_of_its_own():
    logger = logging.getLogger("decision")
    warn_once.cache_clear()
    handlers, level = [*logger.handlers], logger.level
    terminal.stdout.cache_clear()
    terminal.stderr.cache_clear()
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


def cli(*arguments):
    return CliRunner().invoke(application.app, [*map(str, arguments)], env={"COLUMNS": "300"})


def test_a_folder_of_a_comparison_says_what_it_is_and_what_to_do(tmp_path):
    folder = tmp_path / "out"
    assert cli(*COMPARE, "--whole", "-o", folder).exit_code == 0
    page, table = folder / "report.html", f"decision report export {folder} -o runs.csv"
    said = f"results of many runs, of which figures are kept and no schedules; see {page}, or write a row for each run"
    for command, place in (("analyse", folder), ("analyse", folder / "runs"), ("analyse", tmp_path), ("view", folder)):
        result = cli("report", command, place)
        assert result.exit_code == 2 and result.stderr == f"error: {folder}: {said}: {table}\n"
    assert cli("report", "export", folder, "-o", tmp_path / "runs.csv").exit_code == 0


def test_a_format_draws(tmp_path):
    assert cli(*COMPARE, "--metric", "wait", "--format", "svg", "-o", tmp_path / "many").exit_code == 0
    assert [*(tmp_path / "many").glob("*.svg")]
    assert cli(*RUN, "--format", "svg", "-o", tmp_path / "one").exit_code == 0
    assert (tmp_path / "one" / "schedule.svg").is_file()


def test_an_output_folder_that_is_a_link_to_nothing(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for given in (RUN, COMPARE):
        result = cli(*given, "-o", tmp_path / "link")
        said = f"{tmp_path / 'link'} is a link to {tmp_path / 'nothing'}, which is not there"
        assert result.exit_code == 2 and said in result.stderr


def test_a_scheduler_in_a_file_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # who follows the README has a mine.py in the checkout
    with pytest.raises(ConfigError, match=r"scheduler \./mine\.py:Mine: there is no file mine\.py"):
        find_scheduler("./mine.py:Mine")


def test_what_can_be_seen_of_the_package_is_what_is_public():
    assert dir(d) == sorted(d.__all__) and not any(name.startswith("_") for name in dir(d) if name != "__version__")


@pytest.mark.parametrize("option", ["-v", "--verbose", "--debug"])
def test_what_is_read_and_written_is_said_where_it_is_asked_for(option, tmp_path):
    for given in ([option, *RUN], [*RUN, option]):
        said = cli(*given, "-o", tmp_path).stderr
        assert "reading " in said and f"wrote {tmp_path / 'out_jobs.csv'}" in said
    assert "reading " not in cli(*RUN, "-o", tmp_path).stderr


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_notes_and_warnings_can_be_left_out(option, tmp_path):
    given = [*RUN[:-1], "easy,power=idle-timeout", "-o", tmp_path, "--energy"]  # whose hosts cannot sleep
    assert "puts hosts to sleep, and none can" in cli(*given).stderr
    warn_once.cache_clear()
    for quiet in ([option, *given], [*given, option]):
        result = cli(*quiet)
        assert result.exit_code == 0 and result.stderr == ""


def test_options_of_batsim_keep_their_letters():
    assert "loud" in cli("batsim", "-p", "toy", "-w", "toy", "-v", "loud").stderr
    assert cli("-v", "--version").exit_code == 0


def test_a_notebook_can_set_the_logger():
    program = (
        "import logging; logging.basicConfig(format='%(name)s %(message)s')\n"
        "logging.getLogger('decision').setLevel('INFO')\n"
        "import decision as d; d.simulate('toy', 'toy', 'easy')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert "decision reading " in run.stderr, run.stderr
