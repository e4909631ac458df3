"""Series by time, as people have them."""

from pathlib import Path

import numpy as np
import pytest

from decision.files.events import SeriesLayout, read_series
from decision.model.errors import DecisionError

HOURS = "timestamp,zone,carbon_intensity\n" + "".join(
    f"2024-01-01 {hour:02}:00:00+00:00,DE,{value}\n" for hour, value in enumerate((100, 200, "", "nan", 500, 600))
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(HOURS)
    return path


def test_dates_count_from_the_first_and_the_usual_column_is_found(table: Path) -> None:
    series = read_series(table, SeriesLayout(gaps="hold"), ("carbon_intensity",))
    assert series.time.tolist() == [0, 3600, 14400, 18000]
    assert (series.value.tolist(), series.end) == ([100, 200, 500, 600], 21600)


def test_a_simulation_may_begin_later_in_the_table(table: Path) -> None:
    layout = SeriesLayout(column="carbon_intensity", begin="2024-01-01T04:30:00Z")
    series = read_series(table, layout)  # the gap is before
    assert (series.time.tolist(), series.value.tolist()) == ([0, 1800], [500, 600])


def test_gaps_are_named_and_filled_where_asked_for(table: Path) -> None:
    usual = ("carbon_intensity",)
    with pytest.raises(DecisionError, match="no value from 7200 to 14400 s after the simulation's begin; fill them"):
        read_series(table, SeriesLayout(), usual, until=20000)
    with pytest.raises(DecisionError, match=r"from 7200 to 14400 s .*, and in 1 more gaps; fill"):
        read_series(table, SeriesLayout(), usual, until=30000)
    assert read_series(table, SeriesLayout(), usual, until=7200).value[0] == 100
    filled = read_series(table, SeriesLayout(gaps="linear"), usual, until=30000)
    assert filled.value.tolist() == [100, 200, 300, 400, 500, 600]


def test_means_of_steps_are_by_time(table: Path) -> None:
    series = read_series(table, SeriesLayout(gaps="hold"), ("carbon_intensity",))
    assert series.averages(np.array([0.0, 7200, 18000, 18010])).tolist() == pytest.approx([150, 300, 600])


def test_parquet_of_opendc_is_read(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = pyarrow.array([1_700_000_000_000, 1_700_000_900_000], pyarrow.timestamp("ms"))
    path = tmp_path / "carbon.parquet"
    parquet.write_table(pyarrow.table({"timestamp": times, "carbon_intensity": [301.5, 280.0]}), path)
    series = read_series(path, SeriesLayout(), ("carbon_intensity",))
    assert (series.time.tolist(), series.value.tolist()) == ([0, 900], [301.5, 280])


@pytest.mark.parametrize(
    ("text", "layout", "message"),
    [
        ("time,v\n0,1\n0,2\n", {}, "row 2: times must ascend"),
        ("time,v\n0,-1\n", {}, "row 1, 'v': must be finite and not below 0; found -1"),
        ("time,v\n0,x\n", {}, "row 1, 'v': must be a number; found 'x'"),
        ("time,v\nnoon,1\n", {}, "row 1, 'time': must be seconds, or dates like .*; found 'noon'"),
        ("time,a,b\n0,1,1\n", {}, "has the columns a, b; say which one"),
        ("time,ghi,b\n0,1,1\n", {"column": "gih"}, "there is no column 'gih'; did you mean ghi"),
        ("time,v\n0,1\n5,\n", {"begin": "100"}, "over before the simulation begins"),
        ("time,v\n0\n", {}, "row 1: has 1 fields, and the header 2"),
        ("time,v\n", {}, "has no rows"),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path: Path, text: str, layout, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DecisionError, match=message):
        read_series(path, SeriesLayout(**layout))
