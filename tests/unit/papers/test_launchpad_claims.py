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
    figure_csv,
    figure_values,
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
        (Kind.NO_MORE, -0.5, 0.02, HOLDS),
        (Kind.NO_MORE, 0.03, 0.5, REFUTED),
        (Kind.NO_MORE, -0.5, 0.03, UNDECIDED),
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


def as_the_paper_tells(own=True):
    """QoS gets most of all heuristics, cloning as much, mixes less; offline learns from them; online falls behind."""
    alike = {"QoS": 0.5, "SJF": 0.4, "FCFS": 0.3, "HVF": 0.3, "BC_qos": 0.5, "BC_qos_sjf": 0.4, "BC_combo": 0.4}
    alike |= {"Offline_qos": 0.5, "Offline_qos_sjf": 0.5, "Offline_combo": 0.5, "Online": 0.5}
    by_hosts = {
        10: alike,
        30: alike,
        50: alike | {"Offline_combo": 0.55, "Online": 0.4},
        100: alike | {"Offline+Online_qos": 0.5},
    }
    values = {
        hosts: {name: {seed: np.full(4, share) for seed in range(3)} for name, share in shares.items()}
        for hosts, shares in by_hosts.items()
    }
    return Results(values, {}, {}, {}, {}, 20, PaperAgent("green-paper", own, 1.0))


def test_a_world_as_the_paper_tells_of_it_lets_all_of_its_claims_hold():
    rows = claim_table(as_the_paper_tells()).rows
    assert {row[4] for row in rows} == {HOLDS}
    assert len(rows) == sum(len(claim.hosts) for claim in CLAIMS) == 56
    ours = claim_table(as_the_paper_tells(own=False)).rows
    assert {row[4] for row in ours} == {HOLDS, NOT_TRIED}
    assert {row[0] for row in ours if row[4] == HOLDS} == {"C1"}, "heuristics are the paper's own"


def test_figures_3_to_8_have_a_bar_for_each_contender_at_each_size():
    pytest.importorskip("matplotlib")
    from decision.papers.launchpad.figures import value_bars

    found = as_the_paper_tells()
    shown = {number: figure_values(found, number) for number in range(3, 9)}
    assert {(number, name) for number in (5, 8) for name in shown[number]} == {
        *((5, name) for name in ("QoS", "BC_combo", "Offline_combo")),
        *((8, name) for name in ("BC_qos", "Offline_combo", "Offline+Online_qos")),
    }
    assert [list(shown[number]["Offline_combo"]) for number in (4, 5, 8)] == [[10, 30, 50, 100], [50], [100]]
    axes = value_bars("title", shown[7]).axes[0]
    heights = [[bar.get_height() for bar in bars] for bars in axes.containers if len(bars) == 4]
    assert heights[-1] == pytest.approx([0.5, 0.5, 0.4, 0.5]), "online learning falls behind at 50 hosts"
    assert figure_csv(shown[5]).decode().splitlines()[:2] == [
        "who,hosts,value,low,high",
        "QoS,50," + ",".join(["0.500000"] * 3),
    ]
