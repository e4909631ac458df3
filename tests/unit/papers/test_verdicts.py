"""One rule for what a difference says of a claim."""

import pytest

from decision.experiments.statistics import Estimate
from decision.papers.campaign import Kind, PaperAgent, TrainingHours, Verdict, judge, price_line, verdicts

INTERVALS = [(-3, -2), (-3, 0), (-1, 1), (-0.5, 0.5), (0, 3), (1, 1), (1, 3), (2, 3), (-3, 3)]


def judged(kind, low, high):
    return judge(kind, Estimate((low + high) / 2, low, high), margin=1.0)


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_a_difference_is_one_of_below_equal_and_above(low, high):
    found = [judged(kind, low, high) for kind in (Kind.BELOW, Kind.EQUAL, Kind.ABOVE)]
    assert found.count(Verdict.HOLDS) <= 1
    if Verdict.HOLDS in found:
        assert found.count(Verdict.REFUTED) == 2
    opposite = {Verdict.HOLDS: Verdict.REFUTED, Verdict.REFUTED: Verdict.HOLDS, Verdict.UNDECIDED: Verdict.UNDECIDED}
    assert judged(Kind.NO_WORSE, low, high) == opposite[found[0]]
    assert judged(Kind.NO_MORE, low, high) == opposite[found[2]]


def test_an_interval_across_a_margin_decides_nothing():
    assert {judged(kind, 0.5, 2) for kind in (Kind.EQUAL, Kind.ABOVE)} == {Verdict.UNDECIDED}
    assert judged(Kind.BELOW, 0.5, 2) == Verdict.REFUTED


def test_fewer_than_three_runs_decide_nothing():
    found = Estimate(2.0, 2.0, 2.0)
    known = [verdicts(Kind.ABOVE, found, 1.0, agent=None, runs=runs) for runs in (1, 2, 3)]
    assert known == [("undecided (1 run)", "", ""), ("undecided (2 runs)", "", ""), ("holds", "", "")]
    assert verdicts(Kind.ABOVE, None, 1.0, agent=None, runs=0) == ("not tried", "", "")


def test_a_row_says_who_learned_and_which_share_of_the_papers_steps():
    found = Estimate(2.0, 2.0, 2.0)
    ours, own = PaperAgent("dbf-compact", False, 0.0066), PaperAgent("dbf-paper", True, 0.05)
    assert verdicts(Kind.ABOVE, found, 1.0, agent=ours, runs=1) == (
        "not tried",
        "undecided (1 run)",
        "ours (dbf-compact), 0.66 % of its steps, 1 run",
    )
    assert verdicts(Kind.ABOVE, found, 1.0, agent=own, runs=3) == (
        "holds",
        "",
        "own (dbf-paper), 5 % of its steps, 3 runs",
    )


def test_hours_are_those_of_the_trainings_that_are_left():
    one, other = TrainingHours(7.2e6, 1000.0, 4000.0), TrainingHours(3.6e6, 500.0, 0.0)
    assert one.hours(2) == (2.0, 1.0)
    assert "3 hours of two cores, 1.5 hours of one H200" in price_line([(one, 3.0), (other, 0.0)])
    assert price_line([(one, 1.0), (other, 2.0)]).endswith(
        "left: 3; 3 hours of two cores, hours of one H200 not measured"
    )
    assert "left: 0; 0 hours" in price_line([(one, 0.0)])


def test_what_nobody_ran_was_not_tried():
    assert judge(Kind.ABOVE, None, 1.0) == Verdict.NOT_TRIED
