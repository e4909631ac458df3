"""What is learnt from earlier forecasts: intervals hold, the better one is believed, and nothing is known too early."""

import numpy as np
import pytest

from decision.forecasts.calibration import ERRORS, FUTURES, LIKE_JOBS, Blend, Calibration, Evidence
from decision.forecasts.judge import KEPT_LEVELS

_MOMENTS, _JOBS = 220, 8
_APART = 7200.0  # seconds between moments
_WARM = 40  # moments
_NORMAL = np.quantile(np.random.default_rng(1).standard_normal(20_000), KEPT_LEVELS)


def _forecasts(count: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Waits around an hour, and quantiles that are `width` times as wide as they should be."""
    rng = np.random.default_rng(0)
    normal = np.sort(rng.standard_normal(20_000))
    quantiles = np.quantile(normal, KEPT_LEVELS) * width * 0.5
    middle = np.log(rng.uniform(1800, 7200, count))
    return np.exp(middle[:, None] + quantiles), np.exp(middle + 0.5 * rng.standard_normal(count))


@pytest.mark.parametrize("width", [0.4, 1.0, 2.0])
def test_calibration_makes_intervals_hold(width: float) -> None:
    said, left = _forecasts(6000, width)
    calibration = Calibration()
    calibration.learn(said[:3000], left[:3000])
    moved = calibration.apply(said[3000:])
    inside = (left[3000:] >= moved[:, 2]) & (left[3000:] <= moved[:, 6])
    assert inside.mean() == pytest.approx(0.8, abs=0.05)
    assert (np.diff(moved, axis=1) >= 0).all()


class _World:
    """Waits of about an hour whose logarithms are off by 0.5 (standard deviation), 0.3 of it common to a moment.

    So a forecast is exact whose quantiles are those of that error.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.middle = np.log(rng.uniform(1800, 7200, (_MOMENTS, _JOBS)))
        common, own = rng.normal(0, 0.3, (_MOMENTS, 1)), rng.normal(0, 0.4, (_MOMENTS, _JOBS))
        self.left = np.exp(self.middle + common + own)
        self.at = np.arange(_MOMENTS) * _APART
        self.start = (self.at[:, None] + self.left).ravel()
        self.features = rng.uniform(1, 100, (_MOMENTS, _JOBS, 10))

    def rows(self, moment: int) -> np.ndarray:
        return moment * _JOBS + np.arange(_JOBS)

    def said(self, moment: int, width: float, later: float = 0.0) -> np.ndarray:
        """Quantiles `width` times as wide as exact ones, by a factor of e ** `later` too late."""
        return np.exp(self.middle[moment][:, None] + later + 0.5 * width * _NORMAL)

    def evidence(self, moment: int, width: float, later: float) -> Evidence:
        anything = np.tile(np.exp(np.log(3600) + 0.8 * _NORMAL), (_JOBS, 1))
        return Evidence(self.said(moment, width, later), anything, self.features[moment])


@pytest.mark.parametrize(("width", "later"), [(1.0, 0.0), (2.5, 0.0), (0.3, 0.7)])
def test_intervals_hold_as_often_as_they_say_though_a_moments_jobs_err_together(width: float, later: float) -> None:
    world, blend, inside = _World(0), Blend(), {80: list[float](), 95: list[float]()}
    for moment in range(_MOMENTS):
        blend.learn(world.at[moment], world.start)
        found = blend.follow(world.at[moment], world.rows(moment), world.evidence(moment, width, later))
        assert (np.diff(found, axis=1) >= 0).all()
        if moment >= _WARM:
            for percent, (low, high) in {80: (2, 6), 95: (0, 8)}.items():
                left = world.left[moment]
                inside[percent].append(float(((left >= found[:, low]) & (left <= found[:, high])).mean()))
    assert np.mean(inside[80]) == pytest.approx(0.80, abs=0.04)
    assert np.mean(inside[95]) == pytest.approx(0.95, abs=0.03)


def test_nothing_is_learnt_from_what_happens_later() -> None:
    world = _World(1)
    truth, changed = Blend(), Blend()
    for moment in range(80):
        at, evidence = world.at[moment], world.evidence(moment, 0.5, 0.3)
        unknown = np.where(world.start > at, world.start + 5e5, world.start)
        unknown[world.start > at + 2e5] = np.nan
        truth.learn(at, world.start)
        changed.learn(at, unknown)
        one = truth.follow(at, world.rows(moment), evidence)
        assert one.tolist() == changed.follow(at, world.rows(moment), evidence).tolist()


def test_futures_that_are_worthless_lose_their_weight() -> None:
    world, good, bad = _World(2), Blend(), Blend()
    for moment in range(70):
        evidence = world.evidence(moment, 1.0, 0.0)
        swapped = Evidence(evidence.alike * 40, evidence.futures, evidence.features)
        for blend, what in ((good, evidence), (bad, swapped)):
            blend.learn(world.at[moment], world.start)
            blend.follow(world.at[moment], world.rows(moment), what)
    assert good.weights[FUTURES] + good.weights[ERRORS] > 0.6
    assert good.weights[LIKE_JOBS] < 0.5 * good.weights[FUTURES]
    assert bad.weights[LIKE_JOBS] > bad.weights[FUTURES]


def test_an_interval_that_has_passed_is_a_miss_before_the_job_starts() -> None:
    world, blend = _World(3), Blend()
    said = Evidence(world.said(0, 0.2), world.said(0, 0.2), world.features[0])
    blend.follow(0.0, np.arange(_JOBS), said)
    blend.learn(1e6, np.full(_JOBS, np.nan))
    assert blend.learnt == 0
    assert blend.widened[80] == pytest.approx(np.exp(0.2 * _JOBS * 0.8 / 15))  # each missed job counts alike
