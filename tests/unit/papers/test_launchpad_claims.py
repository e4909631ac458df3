"""How Launchpad's claims are judged, by known answers."""

import numpy as np
import pytest

from decision.experiments.statistics import middle_mean
from decision.papers.campaign import Kind, PaperAgent, Verdict, judge
from decision.papers.launchpad.claims import (
    CLAIMS,
    WITHIN,
    MeanDifference,
    Results,
    claim_table,
    common,
    mean_difference,
    time_ratio,
    times_to_value,
)

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
    assert judge(kind, MeanDifference((low + high) / 2, low, high), WITHIN) == verdict


def test_the_interquartile_mean_leaves_out_both_ends():
    assert middle_mean(np.array([[100.0, 1.0, 2.0, 3.0], [2.0, 3.0, -100.0, 2.5]])) == pytest.approx(
        (2 + 2 + 2.5 + 3) / 4
    )


def test_what_is_always_so_much_better_has_no_interval():
    values = np.random.default_rng(0).random((5, 10))
    found = mean_difference(values + 0.1, values, 200)
    np.testing.assert_allclose(found, 0.1)


def test_an_interval_holds_the_truth_about_as_often_as_it_says():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(100):
        noise = rng.normal(size=(2, 8, 10)) + rng.normal(size=(2, 8, 1))
        found = mean_difference(0.5 + noise[0], noise[1], 200)
        inside += found.low <= 0.5 <= found.high
    assert 85 <= inside <= 99


def test_only_seeds_that_both_have_are_compared():
    own, other = ({seed: np.full(3, float(seed)) for seed in seeds} for seeds in ((2, 0), (0, 1, 2)))
    for values in common(own, other):
        np.testing.assert_array_equal(values[:, 0], [0.0, 2.0])


def test_all_claims_on_means_are_there():
    assert {claim.name for claim in CLAIMS} == {f"C{number}" for number in range(1, 8)}


def timed(own=False, times=1):
    """Shares at seconds 1, 2 and 4, and QoS's at 0.5: BC is there at 1 s, offline at 2 or 4, online with one seed."""
    curves = {
        "BC_qos": ((0.48, 0.5, 0.5), (0.5, 0.5, 0.5)),
        "Offline_qos": ((0.1, 0.48, 0.5), (0.1, 0.2, 0.5)),
        "Offline+Online_qos": ((0.1, 0.48, 0.5), (0.1, 0.2, 0.5)),
        "Online": ((0.1, 0.2, 0.3), (0.1, 0.2, 0.5)),
    }
    moments = {
        name: {seed: np.column_stack([[1.0, 2.0, 4.0], shares]) for seed, shares in enumerate(times * seeds)}
        for name, seeds in curves.items()
    }
    values = {10: {"QoS": {seed: np.full(3, 0.5) for seed in range(2 * times)}}}
    return Results(values, {}, moments, {}, {}, 100, PaperAgent("green", own, 1.0))


def test_how_long_a_method_takes_is_until_its_rollouts_get_nearly_what_qos_gets():
    times = times_to_value(timed())
    assert times["BC_qos"] == {0: 1.0, 1: 1.0}
    assert times["Offline_qos"] == {0: 2.0, 1: 4.0}
    assert times["Online"] == {0: np.inf, 1: 4.0}
    assert np.exp(time_ratio(times["BC_qos"], times["Offline_qos"], 100)) == pytest.approx([8**0.5, 2.0, 4.0])
    assert time_ratio({0: np.inf}, {0: np.inf}, 100) is None, "neither comes there"


@pytest.mark.parametrize("own", [False, True])
def test_which_method_takes_longer_is_judged_by_these_times(own):
    rows = {row[1].split(" to reach")[0]: row[3:6] for row in claim_table(timed(own, times=2)).rows if row[0] == "C9"}
    assert rows["Offline takes longer than BC"] == (
        "2.8 times (2 times to 4 times)",
        *((HOLDS, "") if own else (NOT_TRIED, HOLDS)),
    )
    equal = rows["Offline+Online takes longer than Offline"]
    assert (equal[0][:9], equal[1 + (not own)]) == ("1 times (", REFUTED)
    assert {row[5] or row[4] for row in claim_table(timed(own)).rows} == {"undecided (2 runs)"}
