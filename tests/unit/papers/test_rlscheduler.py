"""RLScheduler's simulator, rule by rule on schedules worked out by hand, and its published table."""

import numpy as np
import pytest

from decision.model.errors import InputError
from decision.papers.campaign import Parts
from decision.papers.rlscheduler import JobSequence, mean_bounded_slowdown, read_sequence, rule_starts, simulate_lines


def jobs(*rows):
    """From (submission, requested, size) or (submission, requested, size, runtime)."""
    submit, requested, size, runtime = zip(*((*row, row[1]) if len(row) == 3 else row for row in rows), strict=True)
    return JobSequence(np.array(submit, float), np.array(runtime, float), np.array(requested, float), np.array(size))


def starts(order, *rows, backfilling=False, true_waits=False):
    return rule_starts(jobs(*rows), order, backfilling, 4, true_waits).tolist()


def test_a_job_once_chosen_blocks_those_that_arrive_while_it_waits():
    assert starts("sjf", (0, 100, 4), (1, 50, 4), (2, 1, 4)) == [0, 100, 150]


def test_jobs_of_one_instant_are_not_seen_together():
    assert starts("sjf", (0, 10, 4), (0, 1, 4)) == [0, 10]


@pytest.mark.parametrize(("requested", "start"), [(7, 2), (8, 15)])
def test_backfilling_wants_the_end_strictly_before_the_shadow_time(requested, start):
    rows = [(0, 10, 3), (1, 5, 4), (2, requested, 1)]
    assert starts("fcfs", *rows, backfilling=True)[2] == start
    assert starts("fcfs", *rows, backfilling=False)[2] == 15


def test_backfilling_leaves_hosts_unused_that_the_reservation_does_not_need():
    assert starts("fcfs", (0, 10, 2), (1, 5, 3), (2, 100, 1), backfilling=True) == [0, 10, 10]


def test_backfilling_goes_in_order_of_arrival_whatever_the_order():
    rows = [(0, 20, 3), (1, 2, 4), (1, 9, 1), (1, 3, 1)]  # the second is shortest, and too large
    assert starts("sjf", *rows, backfilling=True) == [0, 20, 1, 10]


def test_the_shadow_time_does_not_move_when_a_job_ends_early():
    rows = [(0, 20, 2, 3), (0, 10, 2), (1, 5, 4), (4, 12, 1)]  # at 3 s it is clear that the third could start at 10 s
    assert starts("fcfs", *rows, backfilling=True) == [0, 0, 16, 4]


def test_wfp3_and_unicep_take_a_queued_jobs_start_to_be_minus_one():
    """Both jobs wait at 10 s; by the formulas the short one comes first, by theirs the long one."""
    for order in ("wfp3", "unicep"):
        rows = [(0, 10, 4), (1, 50, 4), (1, 5, 4)]
        blocked = [(0, 10, 4), (0, 1, 4), *rows[1:]]  # while the second blocks, the others arrive
        assert starts(order, *blocked) == [0, 10, 11, 61]
        assert starts(order, *blocked, true_waits=True) == [0, 10, 16, 11]


def test_unicep_puts_jobs_on_one_host_last():
    rows = [(0, 10, 4), (0, 1, 4), (1, 50, 1), (1, 50, 4)]
    assert starts("unicep", *rows) == [0, 10, 61, 11]
    assert starts("unicep", *rows, true_waits=True) == [0, 10, 11, 61]


def test_a_log_is_read_as_theirs_reads_it(tmp_path):
    lines = ["; MaxProcs: 4", line(2, 7, 30, 2, 3, 60), line(1, 5, -1, 4, -1, -1), line(3, 9, 0, 1, 1, 5)]
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    log = read_sequence(tmp_path / "log.swf")
    assert [column.tolist() for column in log] == [[5, 7], [10, 30], [-1, 60], [4, 3]]  # by number; 0 s is left out


def test_what_is_no_log_is_refused(tmp_path):
    (tmp_path / "log.swf").write_text("1 2 3\n")
    with pytest.raises(InputError, match="its lines need 18 numbers"):
        read_sequence(tmp_path / "log.swf")
    (tmp_path / "log.swf").write_text("no log\n")
    with pytest.raises(InputError, match="no log in the Standard Workload Format"):
        read_sequence(tmp_path / "log.swf")


def line(number, submit, runtime, allocated, requested, time):
    return " ".join(map(str, [number, submit, -1, runtime, allocated, -1, -1, requested, time, *[-1] * 9]))


def test_the_slowdown_is_bounded_by_ten_seconds():
    assert mean_bounded_slowdown(jobs((0, 5, 1), (0, 20, 1)), np.array([15.0, 0.0])) == ((15 + 5) / 10 + 1) / 2


@pytest.fixture(scope="module")
def lines(shared, tmp_path_factory):
    parts = Parts(tmp_path_factory.mktemp("parts"))
    return simulate_lines(shared / "data", parts, sequences=2)


def test_all_twenty_published_figures_come_out_within_a_tenth_of_a_percent(lines):
    assert len(lines) == 20
    assert max(abs(line.deviation) for line in lines) < 0.001


def test_fcfs_without_backfilling_is_the_same_by_standard_rules_and_little_else_is(lines):
    same = [(line.trace, line.order) for line in lines if line.standard == pytest.approx(line.reproduced, rel=0.01)]
    assert same == [("Lublin-1", "fcfs"), ("Lublin-2", "fcfs")]


def test_each_figure_has_a_verdict_by_either_rules(lines):
    assert {line.verdict(line.reproduced) for line in lines} == {"holds"}
    by_standard_rules = {(line.trace, line.backfilling, line.order): line.verdict(line.standard) for line in lines}
    assert {case for case, known in by_standard_rules.items() if known == "holds"} == {
        ("Lublin-1", False, "fcfs"),
        ("Lublin-2", False, "fcfs"),
    }


def test_the_notes_are_true(lines):
    """What the experiment says in words."""
    by = {(line.trace, line.backfilling, line.order): line for line in lines}
    for trace in ("Lublin-1", "Lublin-2"):
        for order in ("wfp3", "unicep"):
            line = by[trace, False, order]
            assert line.reproduced > 10 * line.true_waits > 10 * line.standard
        for order in ("wfp3", "unicep", "sjf", "f1"):
            line = by[trace, False, order]
            assert line.standard < 0.3 * line.reproduced
    easy = [by[trace, True, "fcfs"].standard / by[trace, True, "fcfs"].reproduced for trace in ("Lublin-1", "Lublin-2")]
    assert easy[0] > 1 > easy[1]
    best = min(line.published for line in lines if line.backfilling and line.trace == "Lublin-1")
    assert all(by["Lublin-1", False, order].standard < best for order in ("sjf", "f1", "unicep"))
