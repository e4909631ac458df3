"""Measures of forecasts."""

import numpy as np
import pytest
from helpers.known_jobs import known_jobs

from decision.forecasts.judge import KEPT_LEVELS, Cases, moments_of, pinball, score_quantiles


def _forecasts(count: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Waits around an hour, and quantiles that are `width` times as wide as they should be."""
    rng = np.random.default_rng(0)
    normal = np.sort(rng.standard_normal(20_000))
    quantiles = np.quantile(normal, KEPT_LEVELS) * width * 0.5
    middle = np.log(rng.uniform(1800, 7200, count))
    return np.exp(middle[:, None] + quantiles), np.exp(middle + 0.5 * rng.standard_normal(count))


def test_forecasts_that_are_right_cover_what_they_say() -> None:
    said, left = _forecasts(4000, 1.0)
    cases = Cases(np.arange(4000) // 10, np.zeros(4000), np.zeros(4000), left)
    found = score_quantiles(cases, said)
    for percent in (50, 80, 95):
        share, low, high = found.covered[percent]
        assert share == pytest.approx(percent / 100, abs=0.03)
        assert low <= share <= high


def test_the_pinball_loss_is_that_of_the_definition() -> None:
    said = np.repeat([[10.0]], len(KEPT_LEVELS), axis=1)
    assert pinball(np.array([20.0]), said)[0].tolist() == pytest.approx([1.0, 2.5, 5.0, 7.5, 9.0])
    assert pinball(np.array([0.0]), said)[0].tolist() == pytest.approx([9.0, 7.5, 5.0, 2.5, 1.0])


def test_moments_are_times_at_which_jobs_wait() -> None:
    jobs = [(float(i), float(i) if i % 10 else i + 5.0, 1.0, 1, 10.0) for i in range(100)]
    log = known_jobs(*jobs)
    for at in moments_of(log, 20, 0).tolist():
        assert ((log.submit <= at) & (log.start > at)).any()
