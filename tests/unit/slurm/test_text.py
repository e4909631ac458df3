"""How Slurm writes times, sizes and lists of hosts."""

import math
from zoneinfo import ZoneInfo

import pytest

from decision.slurm.text import NEVER, read_date, read_hosts, read_memory, read_minutes, write_date


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("30:00", 1800),
        ("1:30:00", 5400),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("UNLIMITED", math.inf),
    ],
)
def test_limits_are_minutes_or_clock_times(text: str, seconds: float) -> None:
    assert read_minutes(text) == seconds


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("n[08-10],login", ["n08", "n09", "n10", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("None assigned", []),
    ],
)
def test_lists_of_hosts_are_expanded(text: str, names: list[str]) -> None:
    assert read_hosts(text) == names


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n[1-9999999]"])
def test_what_is_no_list_of_hosts_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_hosts(text)


def test_dates_are_the_clocks_face_unless_a_zone_is_known() -> None:
    plain = read_date("2026-03-02T08:00:00")
    assert write_date(plain) == "2026-03-02T08:00:00"
    assert read_date("2026-03-02T08:00:00+01:00") == plain - 3600
    assert read_date("2026-07-02T08:00:00", ZoneInfo("Europe/Berlin")) == read_date("2026-07-02T06:00:00")
    assert read_date("03/02/26-08:00:00") == plain
    assert read_date(str(plain)) == plain
    assert read_date("Unknown") == NEVER


def test_memory_is_megabytes() -> None:
    assert [read_memory(text) for text in ("8000M", "4G", "2800Mc", "512K")] == [8000, 4096, 2800, 0.5]
