"""`decision run`: the same policy gives the same files whoever simulates."""

import csv
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision.cli.app import app

STANDIN = Path(sys.executable).parent / "decision-batsim"
LEARNED = ("dbf", "ranking")
POLICIES = ("fcfs", "easy", "conservative", "saf+easy", *LEARNED)


def run(*arguments):
    """Run `decision run` in this process."""
    return CliRunner().invoke(app, ["run", *map(str, arguments)], env={"COLUMNS": "150"})


@pytest.fixture
def toy(root):
    return ["-p", root / "platforms" / "toy.xml", "-w", root / "workloads" / "toy.json"]


def rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


def simulated_by(engine: str) -> list[str]:
    return ["--engine", engine, *(["--batsim", str(STANDIN)] if engine == "batsim" else [])]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_engines_write_the_same_files(toy, tmp_path, policy):
    if policy in LEARNED:
        pytest.importorskip("torch", reason="a learned policy needs torch")
    files = {}
    for engine in ("embedded", "reference", "batsim"):
        result = run(*toy, "--policy", policy, *simulated_by(engine), "-E", "--force", "-o", tmp_path / engine)
        assert result.exit_code == 0, result.stderr
        files[engine] = {f.name: f.read_text() for f in (tmp_path / engine).glob("out_*.csv")}
        files[engine].pop("out_schedule.csv")  # it has wall-clock times
    assert set(files["embedded"]) >= {"out_jobs.csv", "out_machine_states.csv", "out_consumed_energy.csv"}
    assert files["embedded"] == files["reference"] == files["batsim"]


def test_a_pybatsim_scheduler_swaps_in_by_a_flag(toy, tmp_path):
    pytest.importorskip("batsim.batsim", reason="pybatsim 3.2.1 is not installed")
    policy = "pybatsim:schedulers.easyBackfill:EasyBackfill"
    for engine in ("embedded", "batsim"):
        result = run(*toy, "--policy", policy, *simulated_by(engine), "-o", tmp_path / engine)
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "embedded" / "out_jobs.csv").read_text() == (tmp_path / "batsim" / "out_jobs.csv").read_text()


def table_row(output: str) -> list[str]:
    """The cells of the one policy's row."""
    return next(line for line in output.splitlines() if line.startswith(" easy")).split()


def test_the_table_says_what_the_files_say(toy, tmp_path):
    result = run(*toy, "--policy", "easy", "-E", "-o", tmp_path)
    jobs, schedule = rows(tmp_path / "out_jobs.csv"), rows(tmp_path / "out_schedule.csv")[0]
    policy, *cells = table_row(result.stdout)
    assert policy == "easy"
    makespan, mean_wait, max_wait, _, _, energy = (float(cell.replace(",", "")) for cell in cells)
    assert makespan == pytest.approx(float(schedule["makespan"]), abs=0.5)
    assert mean_wait == pytest.approx(sum(float(job["waiting_time"]) for job in jobs) / len(jobs), abs=0.01)
    assert max_wait == max(float(job["waiting_time"]) for job in jobs)
    assert energy == pytest.approx(float(schedule["consumed_joules"]) / 1e6, abs=0.01)


def test_energy_that_was_not_simulated_is_not_shown(toy, tmp_path):
    result = run(*toy, "--policy", "easy", "-o", tmp_path)
    assert table_row(result.stdout)[-1] == "-"


def test_a_log_is_a_workload_and_its_lines_left_out_are_told(root, tmp_path):
    log = tmp_path / "log.swf"
    fields = "{} {} -1 {} {} -1 -1 {} 100 -1 1 1 1 -1 1 -1 -1 -1\n"
    log.write_text(
        "; a log\n" + fields.format(1, 0, 50, 1, 1) + fields.format(2, 5, 0, 1, 1) + fields.format(3, 9, 70, 2, 2)
    )
    for engine in ("embedded", "batsim"):
        arguments = ["-p", root / "platforms" / "toy.xml", "-w", log, "--policy", "fcfs", "-o", tmp_path / engine]
        result = run(*arguments, *simulated_by(engine))
        assert result.exit_code == 0, result.stderr
        assert "log.swf: left out: 1 with an unknown or zero run time" in result.stderr
    assert (tmp_path / "embedded" / "out_jobs.csv").read_text() == (tmp_path / "batsim" / "out_jobs.csv").read_text()
    assert [job["job_id"] for job in rows(tmp_path / "embedded" / "out_jobs.csv")] == ["1", "3"]


def test_a_plot_is_drawn_where_it_is_asked_for(toy, tmp_path):
    pytest.importorskip("matplotlib")
    assert run(*toy, "--policy", "easy", "-o", tmp_path / "with", "--plot").exit_code == 0
    assert run(*toy, "--policy", "easy", "-o", tmp_path / "without").exit_code == 0
    assert (tmp_path / "with" / "schedule.png").exists()
    assert not (tmp_path / "without" / "schedule.png").exists()
    assert run(*toy, "--policy", "easy", "-o", tmp_path, "--plot", "--format", "pdf", "--width", "3.5").exit_code == 0
    assert b"/MediaBox [ 0 0 252 " in (tmp_path / "schedule.pdf").read_bytes()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"--policy": "eazy"}, "did you mean"),
        ({"-p": "absent.xml"}, "absent.xml: cannot be read"),
        ({"-O": "depth"}, "--option 'depth': write it as name=value"),
        ({"--engine": "batsim", "--batsim": "no-such-batsim"}, "no-such-batsim: command not found"),
    ],
)
def test_a_users_mistake_is_one_line(toy, tmp_path, change, complaint):
    given = dict(zip(toy[::2], toy[1::2], strict=True)) | {"--policy": "easy", "-o": tmp_path} | change
    result = run(*(part for option in given.items() for part in option))
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_batsim_that_dies_is_reported_in_its_own_words(toy, tmp_path):
    batsim = tmp_path / "batsim"
    batsim.write_text("#!/bin/sh\necho 'terminate called: no host named master_host' >&2\nexit 134\n")
    batsim.chmod(0o755)
    result = run(*toy, "--policy", "easy", "-o", tmp_path / "out", "--engine", "batsim", "--batsim", batsim)
    assert result.exit_code == 3
    assert "exit code 134" in result.stderr
    assert "terminate called: no host named master_host" in result.stderr


def test_lublin_gives_the_waiting_times_that_others_found(shared, root, tmp_path):
    log = ["-p", root / "platforms" / "cluster256.xml", "-w", shared / "data" / "lublin_256.swf"]
    log += ["--missing-walltime", "runtime"]  # as others had them
    for policy, waiting_time in (("fcfs", 2388443.7601), ("easy", 97155.9945)):
        assert run(*log, "--policy", policy, "-o", tmp_path / policy).exit_code == 0
        jobs = rows(tmp_path / policy / "out_jobs.csv")
        assert sum(float(job["waiting_time"]) for job in jobs) / len(jobs) == pytest.approx(waiting_time, abs=1e-3)
