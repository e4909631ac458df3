"""Output files are Batsim's, byte for byte where Batsim's files say enough to rebuild the run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.recorded_runs import columns, read_record, recorded_runs, rows

from decision.files import write_run
from decision.model.errors import ConfigError
from decision.model.record import FinalState, HostTable, JobTable, RunRecord

# Jobs that share a network last as long as no file's six digits say: their ends cannot be told from these.
RUNS = [run for run in recorded_runs() if run.name != "shared_network"]
FILES = ("jobs", "schedule", "machine_states", "pstate_changes")


@pytest.mark.parametrize("run", RUNS, ids=[run.name for run in RUNS])
def test_files_equal_those_of_batsim(run: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "out", read_record(run), version="v4.2.1")
    for name in FILES:
        file = f"out_{name}.csv"
        assert (tmp_path / file).exists() == (run / file).exists()
        if (run / file).exists():
            assert (tmp_path / file).read_text() == (run / file).read_text()


@pytest.mark.parametrize(
    "run", [run for run in RUNS if (run / "out_consumed_energy.csv").exists()], ids=lambda r: r.name
)
def test_consumed_energy_equals_that_of_batsim(run: Path, tmp_path: Path) -> None:
    """Mean power can only be compared where the time between two rows is not lost in the file's six digits."""
    write_run(tmp_path / "out", read_record(run), version="v4.2.1")
    ours, theirs = (rows(folder / "out_consumed_energy.csv") for folder in (tmp_path, run))
    assert [row[:4] for row in ours] == [row[:4] for row in theirs]
    pairs = [(a[4], b[4]) for a, b in zip(ours, theirs, strict=True) if a[4] != "NA"]
    assert len(pairs) > 10
    assert all(a == b or float(a) == pytest.approx(float(b), rel=1e-4) for a, b in pairs)


def table(**changed: object) -> JobTable:
    """Two jobs: one ran from 2 to 6 after waiting 2 s, one was rejected."""
    values = {
        "id": ["w0!a", "w0!b"],
        "profile": ["p", "p"],
        "submit_time": np.array([0.0, 1.0]),
        "size": np.array([2, 99]),
        "walltime": np.array([np.inf, 7.5]),
        "final_state": np.array([FinalState.COMPLETED_SUCCESSFULLY, FinalState.REJECTED]),
        "start_time": np.array([2.0, np.nan]),
        "runtime": np.array([4.0, np.nan]),
        "allocation": ["0-1", ""],
        "energy": np.array([-1.0, -1.0]),
        "metadata": ["", "too large"],
    }
    return JobTable(**(values | changed))


def record(jobs: JobTable) -> RunRecord:
    empty = HostTable(time=np.zeros(0), counts=np.zeros((0, 6), np.int64))
    return RunRecord(nb_hosts=4, jobs=jobs, host_states=empty, time_in_state=np.zeros(6))


def test_rejected_jobs_count_in_the_denominator_of_means(tmp_path: Path) -> None:
    write_run(tmp_path / "out", record(table()))
    schedule = {key: cells[0] for key, cells in columns(tmp_path / "out_schedule.csv").items()}
    assert schedule["nb_jobs"] == "2"
    assert schedule["nb_jobs_rejected"] == "1"
    assert schedule["mean_waiting_time"] == "1.000000"  # 2 s over two jobs
    assert schedule["mean_slowdown"] == "0.750000"  # 6/4 over two jobs
    assert schedule["makespan"] == "6.000000"
    assert schedule["success_rate"] == "0.500000"


def test_a_job_without_walltime_has_requested_time_minus_one(tmp_path: Path) -> None:
    write_run(tmp_path / "out", record(table()))
    assert columns(tmp_path / "out_jobs.csv")["requested_time"] == ["-1.000000", "7.500000"]


def test_a_job_that_took_no_time_is_written_with_a_runtime_of_1e_5(tmp_path: Path) -> None:
    write_run(tmp_path / "out", record(table(runtime=np.array([0.0, np.nan]))))
    jobs = columns(tmp_path / "out_jobs.csv")
    assert jobs["execution_time"][0] == "0.000010"
    assert jobs["finish_time"][0] == "2.000010"


def test_texts_with_commas_quotes_and_lines_stay_one_cell(tmp_path: Path) -> None:
    jobs = table(id=['w0!a,"b"', "w0!c"], metadata=['say "no", twice', "two\nlines"])
    write_run(tmp_path / "out", record(jobs))
    found = columns(tmp_path / "out_jobs.csv")
    assert found["job_id"] == ['a,"b"', "c"]
    assert found["metadata"] == ['say "no", twice', "two\nlines"]


def test_a_run_without_jobs_is_written(tmp_path: Path) -> None:
    empty = np.zeros(0)
    names = ("submit_time", "size", "walltime", "final_state", "start_time", "runtime", "energy")
    jobs = JobTable(id=[], profile=[], allocation=[], metadata=[], **dict.fromkeys(names, empty))
    write_run(tmp_path / "out", record(jobs))
    assert columns(tmp_path / "out_schedule.csv")["nb_jobs"] == ["0"]


def test_many_rows_are_all_written_in_order(tmp_path: Path) -> None:
    """More rows than the writer holds at once."""
    time = np.arange(150_000) / 8
    states = HostTable(time=time, counts=np.ones((len(time), 6), np.int64))
    run = record(table())
    run.host_states = states
    write_run(tmp_path / "out", run)
    assert columns(tmp_path / "out_machine_states.csv")["time"] == [f"{at:g}" for at in time.tolist()]


def test_missing_folders_are_made(tmp_path: Path) -> None:
    written = write_run(tmp_path / "a/b/out", record(table()))
    assert [path.name for path in written] == ["out_jobs.csv", "out_schedule.csv", "out_machine_states.csv"]
    assert all(path.exists() for path in written)


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ConfigError, match=r"file/out_jobs.csv: cannot be written \(.+\); free space or choose"):
        write_run(tmp_path / "file/out", record(table()))


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder_is_one_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match=r"cannot be written \(Permission denied\)"):
        write_run(tmp_path / "out", record(table()))


FULL_DISK = """
import resource, sys
sys.path[:0] = {folders!r}
from test_outputs import record, table
from decision.files import write_run
from decision.model.errors import ConfigError
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))  # the jobs fit, the schedule does not
try:
    write_run({prefix!r}, record(table()))
except ConfigError as error:
    print(error)
"""


def test_a_full_disk_is_one_clear_error_and_old_files_stay(tmp_path: Path) -> None:
    write_run(tmp_path / "out", record(table(metadata=["old", ""])))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    script = FULL_DISK.format(
        folders=[str(Path(__file__).parent), str(Path(__file__).parents[2])], prefix=str(tmp_path / "out")
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "out_" in done.stdout
    assert "cannot be written (File too large); free space or choose another folder" in done.stdout
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
