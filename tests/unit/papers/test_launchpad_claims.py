"""How Launchpad's claims are judged, by known answers."""

import numpy as np
import pytest

from decision.analysis.statistics import middle_mean
from decision.papers.launchpad.claims import CLAIMS, MARGIN, Difference, common, difference
from decision.papers.verdicts import Kind, Verdict, judge

HOLDS, REFUTED, UNDECIDED, NOT_TRIED = Verdict


@pytest.mark.parametrize(
    ("kind", "low", "high", "verdict"),
    [
        (Kind.ABOVE, 0.024, 0.1, HOLDS),
        (Kind.ABOVE, 0.001, 0.02, REFUTED),
        (Kind.ABOVE, -0.01, 0.03, UNDECIDED),
        (Kind.BELOW, -0.05, -0.03, HOLDS),
        (Kind.BELOW, -0.02, 0.03, REFUTED),
        (Kind.BELOW, -0.03, 0.01, UNDECIDED),
        (Kind.EQUAL, -0.02, 0.02, HOLDS),
        (Kind.EQUAL, 0.024, 0.1, REFUTED),
        (Kind.EQUAL, -0.1, -0.024, REFUTED),
        (Kind.EQUAL, -0.02, 0.03, UNDECIDED),
        (Kind.NO_WORSE, -0.02, 0.5, HOLDS),
        (Kind.NO_WORSE, -0.5, -0.03, REFUTED),
        (Kind.NO_WORSE, -0.03, 0.5, UNDECIDED),
    ],
)
def test_an_interval_decides_a_claim(kind, low, high, verdict):
    assert judge(kind, Difference((low + high) / 2, low, high), MARGIN) == verdict


def test_the_interquartile_mean_leaves_out_both_ends():
    assert middle_mean(np.array([[100.0, 1.0, 2.0, 3.0], [2.0, 3.0, -100.0, 2.5]])) == pytest.approx(
        (2 + 2 + 2.5 + 3) / 4
    )


def test_what_is_always_so_much_better_has_no_interval():
    values = np.random.default_rng(0).random((5, 10))
    found = difference(values + 0.1, values, 200)
    np.testing.assert_allclose(found, 0.1)


def test_an_interval_holds_the_truth_about_as_often_as_it_says():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(100):
        noise = rng.normal(size=(2, 8, 10)) + rng.normal(size=(2, 8, 1))
        found = difference(0.5 + noise[0], noise[1], 200)
        inside += found.low <= 0.5 <= found.high
    assert 85 <= inside <= 99


def test_only_seeds_that_both_have_are_compared():
    own, other = ({seed: np.full(3, float(seed)) for seed in seeds} for seeds in ((2, 0), (0, 1, 2)))
    for values in common(own, other):
        np.testing.assert_array_equal(values[:, 0], [0.0, 2.0])


def test_all_claims_on_means_are_there():
    assert {claim.name for claim in CLAIMS} == {f"C{number}" for number in range(1, 8)}
