"""Options that say for how long jobs are expected to run, as settings."""

import math
from enum import IntEnum
from typing import Any, NamedTuple

from decision.model.errors import ConfigError
from decision.model.names import nearest

ESTIMATE, CORRECTION, _SHADOW_OPTION, _FILL_OPTION = "estimate", "correction", "shadow", "fill"  # of every policy
OUTLOOK_OPTIONS = (ESTIMATE, CORRECTION, _SHADOW_OPTION, _FILL_OPTION)


class Estimator(IntEnum):
    """Who predicts."""

    WALLTIME = 0
    LAST2 = 1
    REGRESSION = 2
    GIVEN = 3
    QUANTILES = 4


class Correction(IntEnum):
    """What is expected of a job that outlives its prediction."""

    WALLTIME = 0
    INCREMENTS = 1
    DOUBLING = 2


class OutlookSettings(NamedTuple):
    """What a policy's options say."""

    estimate: Estimator = Estimator.WALLTIME
    correction: Correction = Correction.WALLTIME
    shadow: float = 0.5  # with quantiles: the level by which running jobs are expected to have ended
    fill: float = 0.8  # and the level that is expected of jobs that wait


def read_outlook(policy: str, options: dict[str, Any]) -> OutlookSettings | None:
    """Take the `OUTLOOK_OPTIONS` out of a policy's options; None where walltimes are expected.

    Raises:
        ConfigError: naming the policy and the value.
    """
    if CORRECTION in options and ESTIMATE not in options:
        advice = "name one: estimate=last2, regression or given"
        raise ConfigError(f"policy {policy}: option correction does nothing without estimate; {advice}")
    estimate = Estimator[_known(policy, ESTIMATE, options.pop(ESTIMATE, "walltime"), Estimator)]
    levels = [option for option in (_SHADOW_OPTION, _FILL_OPTION) if option in options]
    if levels and estimate != Estimator.QUANTILES:
        raise ConfigError(f"policy {policy}: option {levels[0]} does nothing without estimate=quantiles")
    if CORRECTION in options and estimate == Estimator.QUANTILES:
        why = "estimate=quantiles predicts again what is left of a job, and takes no option correction"
        raise ConfigError(f"policy {policy}: {why}")
    correction = Correction[_known(policy, CORRECTION, options.pop(CORRECTION, "walltime"), Correction)]
    chosen = {option: _level(policy, option, options.pop(option)) for option in levels}
    return None if estimate == Estimator.WALLTIME else OutlookSettings(estimate, correction, **chosen)


def _level(policy: str, option: str, value: Any) -> float:
    try:
        level = float(value)
    except (TypeError, ValueError):
        level = math.nan
    if not 0.0 < level < 1.0:
        raise ConfigError(f"policy {policy}: option {option}={value} must be a number between 0 and 1")
    return level


def _known(policy: str, option: str, value: Any, kind: type[IntEnum]) -> str:
    names = [each.name.lower() for each in kind]
    if value not in names:
        has = f"there are {', '.join(names)}"
        raise ConfigError(f"policy {policy}: there is no {option} {value!r}{nearest(str(value), names)} ({has})")
    return str(value).upper()
