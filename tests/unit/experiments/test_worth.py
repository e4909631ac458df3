"""Jobs that were suspended count once; values, deadlines and power beyond the supply by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from decision.experiments.worth import grid_time, join_parts, missed_deadlines, total_value, value_share, violated_share
from decision.files.outputs_write import read_green_files, write_green_files
from decision.model.errors import InputError
from decision.model.record import Context, FinalState, JobTable, SupplyTable, WorthTable

SUCCESS, KILLED, REJECTED = (FinalState.COMPLETED_SUCCESSFULLY, FinalState.COMPLETED_KILLED, FinalState.REJECTED)


def table(*rows: tuple[str, float, int, float, float, int]) -> JobTable:
    """Rows of id, submission, size, start, end and final state."""
    ids, submit, size, start, end, state = zip(*rows, strict=True)
    nothing = [""] * len(ids)
    return JobTable(
        id=list(ids),
        profile=nothing,
        submit_time=np.array(submit, float),
        size=np.array(size),
        walltime=np.full(len(ids), math.inf),
        final_state=np.array(state),
        start_time=np.array(start, float),
        runtime=np.array(end, float) - np.array(start, float),
        allocation=nothing,
        energy=np.full(len(ids), -1.0),
        metadata=nothing,
    )


NONE = math.nan
JOBS = table(
    ("w0!a", 0, 2, 0, 30, KILLED),
    ("w0!b", 0, 1, NONE, NONE, REJECTED),
    ("w0!a#1", 30, 2, 80, 90, KILLED),
    ("w0!c", 10, 1, 30, 100, KILLED),
    ("w0!a#2", 90, 2, 100, 160, SUCCESS),
    ("w0!d#1", 0, 1, 0, 50, SUCCESS),
)
WORTH = WorthTable(
    id=["w0!a", "w0!b", "w0!c", "w0!d#1"],
    value=np.array([5.0, 3.0, 2.0, NONE]),
    deadline=np.array([159.9995, 50.0, NONE, 49.0]),
)


def test_a_suspended_job_is_one_that_waited_while_it_did_not_run() -> None:
    joined = join_parts(JOBS)
    assert joined.id == ["w0!a", "w0!b", "w0!c", "w0!d#1"]  # d#1 was left of nothing
    assert joined.final_state.tolist() == [SUCCESS, REJECTED, KILLED, SUCCESS]
    assert (joined.submit_time[0], joined.start_time[0], joined.runtime[0]) == (0, 60, 100)


def test_what_is_left_and_rejected_makes_the_job_rejected() -> None:
    joined = join_parts(table(("w0!a", 0, 1, 0, 9, KILLED), ("w0!a#1", 9, 1, NONE, NONE, REJECTED)))
    assert joined.final_state.tolist() == [REJECTED]
    assert np.isnan(joined.runtime[0])


def test_values_and_deadlines_by_hand() -> None:
    jobs = join_parts(JOBS)
    assert total_value(jobs, WORTH) == 5
    assert value_share(jobs, WORTH) == 0.5
    assert missed_deadlines(jobs, WORTH) == 2  # b was rejected, d#1 is a second late, a half a millisecond
    assert violated_share(jobs, WORTH) == 0.3  # b; d#1 has no value
    assert all(
        math.isnan(measure(jobs, None)) for measure in (total_value, value_share, violated_share, missed_deadlines)
    )


def test_power_beyond_the_supply_by_hand() -> None:
    jobs = table(("w0!a", 0, 2, 10, 30, SUCCESS), ("w0!b", 0, 1, 20, 40, SUCCESS))
    supply = SupplyTable(time=np.array([0.0, 15.0, 25.0]), hosts=np.array([3.0, 1.0, 2.0]))
    # 15-20: 1 beyond, 20-25: 2, 25-30: 1
    assert grid_time(jobs, supply) == 5 + 10 + 5
    assert math.isnan(grid_time(jobs, None))


def test_the_files_beside_a_run_are_read_as_they_were_written(tmp_path: Path) -> None:
    supply = SupplyTable(time=np.array([0.0, 15.5]), hosts=np.array([3.0, 1.0]))
    assert {path.name for path in write_green_files(tmp_path, Context(worth=WORTH, supply=supply))} == {
        "worth.csv",
        "supply.csv",
    }
    known = read_green_files(tmp_path)
    worth, read = known.worth, known.supply
    assert (worth.id, read.time.tolist(), read.hosts.tolist()) == (WORTH.id, [0, 15.5], [3, 1])
    np.testing.assert_array_equal(worth.deadline, WORTH.deadline)
    write_green_files(tmp_path, Context())
    assert read_green_files(tmp_path) == Context()
    (tmp_path / "worth.csv").write_text("job_id,value\nw0!a,1\n")
    with pytest.raises(InputError, match=r"worth.csv: not a table of job_id, value, deadline"):
        read_green_files(tmp_path)
