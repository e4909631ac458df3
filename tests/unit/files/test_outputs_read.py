"""Reading Batsim's output files back, and what else reads ours."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from helpers.run_samples import THREE

from decision.files import write_run
from decision.files.outputs_read import find_run, read_jobs, read_joules, read_run_record, read_schedule
from decision.model.errors import InputError
from decision.model.record import HostState, HostTable, RunRecord


@pytest.fixture
def prefix(tmp_path):
    """Files of the three jobs."""
    host_states = HostTable(time=np.array([0.0]), counts=np.array([[0, 0, 0, 4, 0, 0]]))
    record = RunRecord(nb_hosts=4, jobs=THREE, host_states=host_states, time_in_state=np.zeros(6), joules=12.5)
    write_run(tmp_path / "out", record)
    return str(tmp_path / "out")


def test_jobs_that_were_written_are_read_back(prefix):
    jobs = read_jobs(prefix)
    assert jobs.id == THREE.id
    assert jobs.allocation == THREE.allocation
    for column in ("submit_time", "size", "walltime", "final_state", "start_time", "runtime"):
        np.testing.assert_array_equal(getattr(jobs, column), getattr(THREE, column))


def test_joules_are_those_of_the_schedule_file(prefix):
    assert read_joules(prefix) == 12.5


def test_evalys_reads_the_jobs_that_we_write(prefix):
    jobset = pytest.importorskip("evalys.jobset")
    jobs = jobset.JobSet.from_csv(f"{prefix}_jobs.csv", resource_bounds=(0, 3))
    assert math.isclose(jobs.df.waiting_time.max(), 90.0)
    assert len(jobs.queue) > 0
    assert jobs.utilisation.load.max() == 4


def test_a_whole_run_is_read_back(root):
    record = read_run_record(root / "tests" / "golden" / "sessions" / "energy_sleep")
    assert (record.nb_hosts, record.joules, record.nb_switches, record.nb_grouped_switches) == (
        16,
        10182379.4905,
        108,
        25,
    )
    assert record.host_states.counts[0].tolist() == [0, 0, 14, 2, 0, 0]  # 14 hosts fall asleep
    assert (record.pstates.time[2], record.pstates.hosts[2], record.pstates.pstate[2]) == (6.1, "2-15", 1)
    assert record.pstates.time[7] == 1033.645  # the file of pstate changes says 1033.64
    assert (record.energy.energy[1], record.energy.event[1]) == (9784.4, "p")
    assert record.time_in_state[HostState.SWITCHING_OFF] == 372.1


def test_hosts_that_no_state_counts_are_away(root):
    record = read_run_record(root / "tests" / "golden" / "sessions" / "external_events")
    assert (record.host_states.counts.sum(axis=1) == record.nb_hosts).all()
    assert record.host_states.counts[:, HostState.UNAVAILABLE].max() > 0


def test_the_layout_of_batsim_5_is_read_too(root, tmp_path):
    """Its tables are the same, its summary is JSON, and its prefix is a folder: so its documentation and source say."""
    old = root / "tests" / "golden" / "sessions" / "kill"
    (tmp_path / "jobs.csv").write_text((old / "out_jobs.csv").read_text().replace(',""', ","))
    (tmp_path / "machine_states.csv").write_text((old / "out_machine_states.csv").read_text())
    figures = read_schedule(old / "out_schedule.csv")
    gone = ("batsim_version", "scheduling_time", "simulation_time")
    kept = {name: float(value) for name, value in figures.items() if name not in gone}
    (tmp_path / "schedule.json").write_text(json.dumps({"batsim_version": "v5.0.0", **kept}, indent=2))
    new, same = read_run_record(f"{tmp_path}/"), read_run_record(old)
    assert new.jobs.id == same.jobs.id
    np.testing.assert_array_equal(new.jobs.start_time, same.jobs.start_time)
    np.testing.assert_array_equal(new.time_in_state, same.time_in_state)
    assert math.isnan(new.scheduling_time)
    assert read_jobs(tmp_path).id == same.jobs.id  # the folder without its slash will do


def test_a_place_with_no_run_or_several_is_refused(tmp_path):
    with pytest.raises(InputError, match="no run there; give the folder or the prefix"):
        find_run(tmp_path)
    for name in ("a_jobs.csv", "b_jobs.csv"):
        (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=r"2 runs \(a_jobs.csv, b_jobs.csv\) there"):
        find_run(tmp_path)
    assert find_run(tmp_path / "b").jobs == tmp_path / "b_jobs.csv"


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "out_jobs.csv").write_text("time,energy\n0,1\n")
    with pytest.raises(InputError, match=r"not the jobs of a run \(it has no 'requested_time'\)"):
        read_jobs(str(tmp_path / "out"))
    with pytest.raises(InputError, match=r"out_schedule\.csv: there is no such file"):
        read_joules(str(tmp_path / "out"))
    (tmp_path / "out_jobs.csv").write_text("time,energy\n0,1,2\n")
    with pytest.raises(InputError, match=r"not a table \(line 2 has 3 cells, and the header has 2\)"):
        read_jobs(tmp_path)
    (tmp_path / "out_schedule.json").write_text("{")
    with pytest.raises(InputError, match=r"out_schedule\.json: not the summary of a run"):
        read_joules(tmp_path)


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("starting_time", "nan", "has a time that is not a finite number"),
        ("starting_time", "-5", "has a start before its submission"),
        ("submission_time", "1e9", "has a start before its submission"),
        ("starting_time", "1e308", "has a time of 1e15 s or more"),
        ("execution_time", "1e300", "has a time of 1e15 s or more"),
        ("allocated_resources", "0-99999999", "a job ran on the hosts 0-99999999, and no platform has so many"),
        ("allocated_resources", "x", "'x' is neither a host id nor an interval"),
    ],
)
def test_a_job_that_ran_at_no_time_or_nowhere_is_refused(prefix, column, cell, fault):
    path = Path(f"{prefix}_jobs.csv")
    header, first, *rest = path.read_text().splitlines()
    cells = first.split(",")
    cells[header.split(",").index(column)] = cell
    path.write_text("\n".join((header, ",".join(cells), *rest, "")))
    with pytest.raises(InputError, match=rf"out_jobs\.csv: not the jobs of a run \(.*{fault}"):
        read_jobs(prefix)


@pytest.mark.parametrize("cell", ["nan", "inf", "-1", "0", ""])
def test_a_job_that_ran_on_no_number_of_hosts_is_refused(prefix, cell):
    path = Path(f"{prefix}_jobs.csv")
    head, first, *others = path.read_text().splitlines()
    cells = first.split(",")
    cells[head.split(",").index("requested_number_of_resources")] = cell
    path.write_text("\n".join([head, ",".join(cells), *others]))
    with pytest.raises(InputError, match="has a number of hosts that is not 1 or more"):
        read_jobs(prefix)


@pytest.mark.parametrize("text", [b"", b'{"state": ', b"\x00\xff", b"[]", b"{}", b'{"name": "mine"}'])
def test_a_run_json_that_is_damaged_or_no_runs_is_named(prefix, text):
    facts = Path(prefix).parent / "run.json"
    facts.write_bytes(text)
    with pytest.raises(InputError, match=r"run\.json: damaged, or no run's, so that nothing says what made this"):
        read_jobs(prefix)
    facts.unlink()
    assert len(read_jobs(prefix).id) == len(THREE.id)
