"""Other forecasts of starts: what clusters and papers use. Each gives quantiles of seconds left to wait."""

from collections.abc import Sequence

import numpy as np

from decision.compiling.bundle import F8
from decision.forecasts.judge import KEPT_LEVELS
from decision.model.errors import ConfigError

_OFFSET = 60.0  # seconds


def point(left: F8) -> F8:
    """A forecast of one time (n,) as quantiles that are all the same."""
    return np.repeat(np.maximum(0.0, left)[:, None], len(KEPT_LEVELS), axis=1)


class Boosting:
    """Quantile regression by gradient boosting (scikit-learn), of the logarithm of what is left to wait."""

    def __init__(self) -> None:
        try:
            from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise ConfigError(
                "gradient boosting, to compare with, needs scikit-learn: pip install 'batsim-decision[comparison]'"
            ) from None
        self._make = HistGradientBoostingRegressor
        self._models: Sequence = ()

    def learn(self, known: F8, left: F8) -> None:
        """Features (n, F) and what was left (n,) in seconds, of jobs that have started."""
        target = np.log(np.maximum(0.0, left) + _OFFSET)
        make = (self._make(loss="quantile", quantile=level, max_iter=60, random_state=0) for level in KEPT_LEVELS)
        self._models = [model.fit(known, target) for model in make] if len(left) >= 30 else ()

    def forecast(self, known: F8) -> F8 | None:
        """Quantiles (n, len(KEPT_LEVELS)); None before it has learnt."""
        if not self._models:
            return None
        quantiles = np.column_stack([model.predict(known) for model in self._models])
        return np.sort(np.maximum(0.0, np.exp(quantiles) - _OFFSET), axis=1)
