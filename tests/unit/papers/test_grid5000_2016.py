"""Simulations beside what OAR really did: how its records are read, and how far off we are."""

import numpy as np
import pytest

from decision.model.errors import InputError
from decision.papers.grid5000 import (
    MEASURED_ON,
    MODELS,
    SEEDS,
    Delays,
    deviation,
    measure_delays,
    read_record,
    read_recorded_case,
    reproduce_grid5000,
    seeds_in,
    simulated_jobs,
)

HEADER = "job_id,submission_time,start_time,stop_time,walltime,resource_count,resources,state\n"
PLAIN, KAMELOT, DELAYED = MODELS


@pytest.fixture(scope="module")
def data(shared):
    return shared / "data" / "grid5000-2016"


@pytest.fixture(scope="module")
def cases(data):
    return {seed: read_recorded_case(data, seed) for seed in SEEDS}


@pytest.fixture(scope="module")
def delays(cases):
    return measure_delays(cases[seed] for seed in MEASURED_ON)


def test_a_record_is_read_in_order_of_submission_from_its_first_second(tmp_path):
    rows = "8,1005,1016,1040,60,3,1 2 32,Terminated\n7,1000,1001,1015,60,2,2 1,Terminated\n"
    (tmp_path / "gantt.csv").write_text(HEADER + rows)
    real = read_record(tmp_path / "gantt.csv")
    np.testing.assert_array_equal(real.submit_time, [0, 5])
    np.testing.assert_array_equal(real.start_time, [1, 16])
    np.testing.assert_array_equal(real.runtime, [14, 24])
    assert real.allocation == ["0-1", "0-1 31"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,energy\n1,2\n", "not a record of OAR"),
        (HEADER + "7,x,1,2,3,1,1,T\n", "not a record of OAR"),
        (HEADER, "has no jobs"),
    ],
)
def test_another_file_is_refused(tmp_path, text, message):
    (tmp_path / "gantt.csv").write_text(text)
    with pytest.raises(InputError, match=rf"gantt\.csv: .*{message}"):
        read_record(tmp_path / "gantt.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_record(tmp_path / "nothing.csv")


def test_the_record_of_seed_0_is_of_other_jobs(cases):
    assert [seed for seed, case in cases.items() if case.rebuilt] == [0]
    workload, real = cases[0].workload, cases[0].real
    assert [job.size for job in workload.jobs] == real.size.tolist()


def test_the_delays_are_measured_on_two_seeds_and_hold_for_the_others(cases, delays):
    assert delays.reaction == pytest.approx(1.49, abs=0.01)
    assert delays.launch == pytest.approx(0.43, abs=0.01)
    others = measure_delays([cases[3], cases[4]])
    assert others.reaction == pytest.approx(delays.reaction, abs=0.05)
    assert others.launch == pytest.approx(delays.launch, abs=0.05)


@pytest.mark.parametrize(("seed", "wait", "start_95"), [(1, 1.3, 35), (2, 1.4, 37), (3, 0.5, 20), (4, 0.9, 40)])
def test_with_oars_delays_the_simulation_is_as_near_as_reality_is_to_itself(cases, delays, seed, wait, start_95):
    real, error = cases[seed].real, deviation(cases[seed], DELAYED, delays)
    assert abs(error.wait - (real.start_time - real.submit_time).mean()) <= wait
    assert abs(error.makespan - (real.start_time + real.runtime).max()) <= 20
    assert error.start_median <= 0.5
    assert error.start_95 <= start_95
    assert error.close >= 0.75


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_without_them_every_job_seems_to_wait_less(cases, delays, seed):
    real = cases[seed].real
    waits = [deviation(cases[seed], model, delays).wait for model in (PLAIN, KAMELOT)]
    assert max(waits) < (real.start_time - real.submit_time).mean() - 2


def test_a_model_without_delays_takes_none(cases):
    assert deviation(cases[3], KAMELOT, Delays(9.0, 9.0)) == deviation(cases[3], KAMELOT, Delays())


@pytest.mark.parametrize(("seed", "first"), [(0, 42), (1, 14), (2, 5), (3, 45), (4, 33)])
def test_the_first_jobs_get_exactly_the_hosts_that_oar_gave_them(cases, delays, seed, first):
    real, jobs = cases[seed].real, simulated_jobs(cases[seed], DELAYED, delays)
    order = np.argsort(real.start_time, kind="stable")[:first]
    assert [jobs.allocation[job] for job in order] == [real.allocation[job] for job in order]


def test_the_table_has_a_row_for_reality_and_each_model(data):
    outcome = reproduce_grid5000(data)
    (table,) = outcome.tables
    assert [row[0] for row in table.rows if row[0]] == [str(seed) for seed in SEEDS]
    assert len(table.rows) == len(SEEDS) * (1 + len(MODELS)) + 1
    assert "other jobs than its workload" in outcome.notes


def test_every_seed_in_the_folder_is_compared(tmp_path):
    assert seeds_in(tmp_path) == list(SEEDS), "whose files are then named as missing"
    for seed in (12, 3):
        (tmp_path / f"oar_gantt_seed{seed}.csv").touch()
    assert seeds_in(tmp_path) == [1, 2, 3, 12]
