"""Commands that make workloads: the file says how to make it again, and a mistake leaves no file."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision.cli import app as application
from decision.files import load_workload
from decision.model.computer import find_workload

MAKERS = [
    "lublin --nb-jobs 50 --classes both --set batch.serial=0.5 --seed 3 --estimates tsafrir",
    "preset predicted-runtimes --workload WL2 --accuracy 050 --half b",
    "preset predicted-runtimes --single 0.5 --load 2.5 --seed 2",
    "preset grid5000-like graphite --days 3:5 --seed 1",
    "preset green --nb-jobs 20 --hosts 7 --rate 80 --most-steps 3 --step 30 --most-value 2",
    "preset topology --nb-jobs 30 --estimates factor:2",
]


def workload(*arguments: str):
    return CliRunner().invoke(application.app, ["workload", *arguments], env={"COLUMNS": "200"})


@pytest.mark.parametrize("command", MAKERS)
def test_a_made_workload_says_the_command_that_makes_it_again(command: str, tmp_path: Path) -> None:
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    result = workload(*command.split(), "-o", str(first))
    assert result.exit_code == 0, result.output
    made = load_workload(first)
    assert f"{len(made.jobs):,} jobs for {made.nb_res:,} hosts" in result.stdout
    _, _, written = made.description.partition("Made, not recorded: decision workload ")
    assert workload(*shlex.split(written), "-o", str(again)).exit_code == 0
    assert first.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("lublin --set seriel=1", "error: seriel: unknown parameter, perhaps 'serial' is meant (--set)"),
        ("lublin --set serial", "error: --set 'serial': write it as name=value"),
        (
            "lublin --estimates factor:x",
            "error: the estimates 'factor:x': must have a number of at least 1 after the colon (--estimates)",
        ),
        ("preset grid5000-like orion --days 3", "error: --days '3': write it as a:b, like 0:1000"),
        ("preset grid5000-like orion --days 9000:", "error: no day is left"),
        ("preset green --hosts 4 --most-hosts 5", "error: --most-hosts 5: there are only 4 hosts; give fewer"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(command: str, message: str, tmp_path: Path) -> None:
    result = workload(*command.split(), "-o", str(tmp_path / "made.json"))
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_predictions_are_a_row_per_predictor(tmp_path: Path) -> None:
    """Two users whose jobs always take as long: the last two are right, once there are two."""
    lines = [f"{i} {1000 * i} 10 {100 + 400 * (i % 2)} 1 -1 -1 1 900 -1 1 {i % 2} {'-1 ' * 6}" for i in range(1, 41)]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n" + "\n".join(lines))
    result = workload("predict", str(log), "--predictor", "walltime", "--predictor", "last2")
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if "100.0" in line}
    assert rows["walltime"] == ["100.0", "600.0", "600.0", "0.00", "100.0", "0.333"]
    assert rows["last2"] == ["100.0", "60.00", "0.00", "0.00", "10.00", "0.933"]


@pytest.mark.parametrize("option", ["--rate inf", "--step inf", f"--hosts {10**30}", f"--nb-jobs {10**12}"])
def test_sizes_without_bounds_are_refused(option: str, tmp_path: Path) -> None:
    result = workload("preset", "green", *option.split(), "-o", str(tmp_path / "made.json"))
    assert (result.exit_code, "less than or equal to" in result.stderr) == (2, True)
    assert not list(tmp_path.iterdir())


def test_the_field_of_a_log_says_nothing_about_other_files(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_bytes(find_workload("toy").read_bytes())
    result = workload("predict", str(tmp_path / "w.json"), "--time-field", "6")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'w.json'}: not a log")
    assert result.stderr.endswith("leave out the number of the field (--time-field)\n")
