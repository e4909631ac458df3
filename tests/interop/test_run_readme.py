"""What the README says can be typed can be typed, and prints what it says."""

import csv
import re
import shlex

import pytest
from click.testing import CliRunner

from decision.cli.app import app


def blocks_of(page) -> list[tuple[str, str]]:
    """A page's code blocks: language and text."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def blocks(root) -> list[tuple[str, str]]:
    return blocks_of(root / "README.md")


@pytest.fixture
def here(root, tmp_path, monkeypatch):
    """A folder to type commands in, with what is shipped."""
    for name in ("platforms", "workloads"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def type_in(command: str):
    return CliRunner().invoke(app, shlex.split(command.replace("\\\n", " "))[1:])


def commands(blocks) -> list[str]:
    lines = [line for _, text in blocks for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("decision ")]


def test_the_example_policy_keeps_the_rules_and_runs(blocks, here):
    (source,) = (text for language, text in blocks if language == "python" and "class " in text)
    assert len(source.splitlines()) <= 15
    (here / "mine.py").write_text(source)
    typed = [command for command in commands(blocks) if "mine.py" in command]
    assert [type_in(command).exit_code for command in typed] == [0, 0]


def test_the_example_of_the_api_runs(blocks, here, capsys):
    (source,) = (text for language, text in blocks if language == "python" and "import decision" in text)
    exec(compile(source, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "mean waiting time  " in printed and "\nutilization " in printed
    assert "conservative" in printed
    assert (here / "schedule.png").is_file()


def test_every_run_on_our_own_engine_works(blocks, here):
    runs = [command for command in commands(blocks) if command.startswith("decision run")]
    others = ("mine.py", "batsim -o", ".ckpt")
    runs = [command for command in runs if not any(word in command for word in others)]
    assert runs
    for command in runs:
        assert type_in(command).exit_code == 0, command


def shown_after(blocks, beginning: str) -> list[str]:
    """The lines of the block after the command that begins so."""
    (at,) = (i for i, (_, text) in enumerate(blocks) if text.startswith(beginning))
    return [line.rstrip() for line in blocks[at + 1][1].strip().splitlines()]


def test_the_comparison_prints_the_table_that_the_readme_shows(blocks, here):
    shown = shown_after(blocks, "decision compare")
    (command,) = (command for command in commands(blocks) if command.startswith("decision compare"))
    result = type_in(command)
    assert result.exit_code == 0, result.stderr
    assert [line.rstrip() for line in result.stdout.splitlines()][: len(shown)] == shown


@pytest.mark.nightly
def test_the_advice_is_what_the_readme_says(blocks, here):
    result = type_in(blocks_text(blocks, "decision advise"))
    assert result.exit_code == 0, result.stderr
    said = " ".join(shown_after(blocks, "decision advise"))
    assert result.stdout.splitlines()[0].rstrip() == said


@pytest.mark.nightly
def test_the_guides_table_of_learned_policies_is_made_again_by_the_command_above_it(root, here):
    pytest.importorskip("torch")
    blocks = blocks_of(root / "docs/guide/run.md")
    shown = shown_after(blocks, "decision evaluate easy")
    result = type_in(blocks_text(blocks, "decision evaluate easy"))
    assert result.exit_code == 0, result.stderr
    assert [line.rstrip() for line in result.stdout.splitlines()][: len(shown)] == shown


def blocks_text(blocks, beginning: str) -> str:
    (text,) = (text for _, text in blocks if text.startswith(beginning))
    return text


def test_the_training_learns_from_the_first_half_passes_on_the_second_and_runs(blocks, here, monkeypatch):
    """The README's three commands, with a smaller budget."""
    pytest.importorskip("torch")
    monkeypatch.setattr("decision.rl.learning.config.CmaEsConfig.validated_every", 1)
    monkeypatch.setattr("decision.experiments.gates.GATE_COPIES", 3)
    train, gates, run = blocks_text(blocks, "decision train learned").strip().splitlines()
    small = "--set learn.population=4 --set learn.sequences=2 --set env.jobs=100 --steps 6400"
    done = type_in(f"{train.replace('--steps 3000000', '')} {small}")
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((here / "learned/progress.csv").open()))
    assert sum(bool(row["validation_waiting_time"]) for row in rows) >= 9, "before, and after each generation"
    done = type_in(gates.replace("5000:", "5000:5600"))
    assert done.exit_code == 0, done.output
    done = type_in(f"{run} --select 5000:5600")
    assert done.exit_code == 0, done.output


def test_what_is_made_from_nothing_prints_what_the_readme_shows(blocks, here):
    shown = shown_after(blocks, "decision workload audit")
    typed = [
        line for line in commands(blocks) if re.match("decision (workload|platform) ", line) and ".swf" not in line
    ]
    assert len(typed) == 4
    results = [type_in(command) for command in typed]
    assert [result.exit_code for result in results] == [0] * 4
    printed = [line for result in results for line in result.stdout.splitlines()]
    assert [line for line in printed if line in shown] == shown


def test_every_option_of_the_other_commands_exists(root, blocks, here):
    pages = [root / f"docs/guide/{name}.md" for name in ("run", "inputs", "batsim", "train", "policy")]
    for command in dict.fromkeys(commands([*blocks, *(block for page in pages for block in blocks_of(page))])):
        result = type_in(f"{command} --help")
        assert result.exit_code == 0, command


def test_the_main_job_prints_the_table_that_the_readme_shows(blocks, here):
    (shown,) = (text for _, text in blocks if "conservative " in text and "energy" in text)
    result = type_in("decision showcase")
    assert result.exit_code == 0, result.stderr
    beginning = shown.strip().splitlines()
    assert [line.rstrip() for line in result.stdout.strip().splitlines()][: len(beginning)] == beginning
    for policy in ("fcfs", "easy", "conservative", "sjf+easy", "saf+easy"):
        assert {"out_jobs.csv", "out_consumed_energy.csv", "schedule.png"} <= {
            file.name for file in (here / "out" / policy).iterdir()
        }
