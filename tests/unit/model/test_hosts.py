"""Host sets: what is read, and what is refused before it takes any memory."""

import tracemalloc

import pytest

from decision.model.errors import ConfigError
from decision.model.hosts import format_hosts, parse_hosts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [("", []), ("7", [7]), ("0-3 7", [0, 1, 2, 3, 7]), ("7,0-1", [0, 1, 7]), ("2-4 0-9 3 9-10", list(range(11)))],
)
def test_hosts_are_read_in_order_and_once(text, hosts):
    assert parse_hosts(text) == hosts


@pytest.mark.parametrize("text", ["a", "-1", "1-", "1--2", "1-2-3", "\u00b2", "\u0663", "0x1", "9" * 5000, "1.0", "_1"])
def test_what_is_no_host_set_is_refused_in_one_short_line(text):
    with pytest.raises(ConfigError, match="neither a host id nor an interval") as caught:
        parse_hosts(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["0-99999999999", "3 0-1000000", "999999999999999999"])
def test_hosts_that_no_platform_has_are_refused_before_they_are_made(text):
    tracemalloc.start()
    with pytest.raises(ConfigError, match="there is no host"):
        parse_hosts(text)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_hosts_beyond_those_that_there_are_are_refused():
    assert parse_hosts("0-3", 4) == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match="host set '0-4': there is no host 4, the last one is 3"):
        parse_hosts("0-4", 4)


def test_what_is_written_is_read_again():
    assert parse_hosts(format_hosts([5, 0, 1, 2, 9])) == [0, 1, 2, 5, 9]
