"""Reading Batsim's output files back, and what else reads ours."""

import math

import numpy as np
import pytest
from run_samples import THREE

from decision.analysis.batsim_files import read_jobs, read_joules
from decision.formats import write_run
from decision.model.errors import InputError
from decision.model.record import HostTable, RunRecord


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


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "out_jobs.csv").write_text("time,energy\n0,1\n")
    with pytest.raises(InputError, match=r"out_jobs\.csv: not the jobs of a run"):
        read_jobs(str(tmp_path / "out"))
    with pytest.raises(InputError, match=r"out_schedule\.csv: cannot be read"):
        read_joules(str(tmp_path / "out"))
