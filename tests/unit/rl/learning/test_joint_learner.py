"""What evolution judges candidates of the joint policy by."""

import numpy as np
import pytest

from decision.rl.learning.evolution import cost_within, ratios
from decision.rl.schedulers.joint import JointSettings

JOULES, SWITCHES, JOBS = 999.0, 49.0, 10.0  # of a day


def days(*waits):
    """(days, 4) with so many seconds of wait in the mean of each day."""
    return np.array([[JOULES, JOBS * wait, SWITCHES, JOBS] for wait in waits])


def test_minutes_on_a_calm_day_are_not_made_up_for_by_hours_on_a_full_one():
    theirs, own = days(60.0, 36_000.0), days(300.0, 35_760.0)  # as much in all
    assert ratios(own, theirs).tolist() == pytest.approx([1.0, np.sqrt(360.0 / 120.0 * 35_820.0 / 36_060.0), 1.0])


def test_hours_on_a_full_day_are_not_made_up_for_by_minutes_on_calm_ones():
    theirs, own = days(300.0, 300.0, 300.0, 36_000.0), days(60.0, 60.0, 60.0, 39_600.0)
    assert ratios(own, theirs)[1] == pytest.approx((39_780.0 + 240.0) / (36_900.0 + 240.0))


def test_energy_and_switches_are_sums_over_days():
    theirs, own = days(60.0, 60.0), days(60.0, 60.0)
    own[0] *= [3.0, 1.0, 0.5, 1.0]
    assert ratios(own, theirs).tolist() == pytest.approx([3997.0 / 1999.0, 1.0, 74.5 / 99.0])


def test_what_is_beyond_a_limit_counts_ten_times():
    limits = JointSettings(wait_limit=1.0, switch_limit=0.9)
    assert cost_within(np.array([0.5, 1.0, 0.9]), limits) == pytest.approx(np.log(0.5))
    assert cost_within(np.array([0.5, 1.1, 1.1]), limits) == pytest.approx(np.log(0.5) + 3.0)
