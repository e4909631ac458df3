"""Rows of a table in machine code are those of Python's `%`, byte by byte."""

import numpy as np
import pytest
from helpers.recorded_runs import read_record, recorded_runs

from decision.files import outputs_write
from decision.files.outputs_write import csv_rows
from decision.model.columns import HostSets
from decision.model.record import FinalState

_NUMBERS = 20_000


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1 / 128, b"0.007812"),  # a half: the even digit
        (3 / 128, b"0.023438"),
        (-1e-9, b"-0.000000"),
        (-0.0, b"-0.000000"),
        (0.9999999, b"1.000000"),
        (2.0**53 - 1, b"9007199254740991.000000"),
    ],
)
def test_six_decimals(number, text):
    assert csv_rows([np.array([number])]) == text + b"\n"


def test_any_number_is_written_as_python_does():
    random = np.random.default_rng(7)
    halves = random.integers(0, 10**9, _NUMBERS) / 128
    columns = [
        random.uniform(-1, 1, _NUMBERS) * 10.0 ** random.integers(-9, 15, _NUMBERS),
        halves,
        np.nextafter(halves, random.choice([-np.inf, np.inf], _NUMBERS)),
        (random.integers(0, 10**9, _NUMBERS) + 0.5) / 1e6,
    ]
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert csv_rows(columns) == "".join("{:f},{:f},{:f},{:f}\n".format(*row) for row in rows).encode()


@pytest.mark.parametrize("number", [np.nan, np.inf, 2.0**53])
def test_what_is_too_large_or_no_number_is_left_to_others(number):
    assert csv_rows([np.array([1.0, number])]) is None


def test_cells_of_each_kind():
    pairs, count = np.array([[0, 3], [7, 7], [4, 12]], np.int32), np.array([2, 0, 1], np.int32)
    first, last = pairs.T
    hosts = HostSets(lambda rows: (first, last, count[rows]), np.arange(3))
    columns = [["a", "é", ""], np.array([-3, 0, 12]), np.array([True, False, True]), hosts, np.array([0.5, 1, 2])]
    expected = "a,-3,1,0-3 7,0.500000\né,0,0,,1.000000\n,12,1,4-12,2.000000\n"
    assert csv_rows(columns) == expected.encode()
    assert hosts.made() == ["0-3 7", "", "4-12"]


def test_the_jobs_of_a_long_run_are_written_alike(monkeypatch):
    record = read_record(recorded_runs()[0])
    expected = b"".join(outputs_write.run_tables(record)["jobs"])
    monkeypatch.setattr(outputs_write, "_MANY", 1)
    assert b"".join(outputs_write.run_tables(record)["jobs"]) == expected
    record.jobs.final_state[3] = FinalState.REJECTED
    rejected = b"".join(outputs_write.run_tables(record)["jobs"])
    monkeypatch.undo()
    assert rejected == b"".join(outputs_write.run_tables(record)["jobs"]) != expected
