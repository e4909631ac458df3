"""Changes of parameters that a sweep tries: those that are named, or each parameter by itself."""

from collections.abc import Mapping
from itertools import product

from decision.model.errors import ConfigError

from .parameters import Settings, checked

Change = dict[str, str]  # parameters by name, as they were written
_DEFAULT_STEPS: Mapping[str, tuple[float, ...]] = {
    "bf_interval": (0.5, 2, 4),
    "bf_window": (0.5, 2),
    "bf_max_job_test": (0.5, 2),
    "bf_resolution": (0.5, 5),
}
_WEIGHTS = ("PriorityWeightAge", "PriorityWeightJobSize", "PriorityWeightFairshare", "PriorityWeightQOS")


def read_vary(text: str) -> list[Change]:
    """All settings of ``a=1,2;b=3,4``: each value of a with each of b; with ``&`` for ``;`` the first with the first.

    Raises:
        ConfigError: for a parameter that there is not, or lists of different lengths.
    """
    return [{k: v for part in parts for k, v in part.items()} for parts in product(*map(_together, text.split(";")))]


def _together(text: str) -> list[Change]:
    columns: dict[str, list[str]] = {}
    for part in text.split("&"):
        name, equals, values = part.strip().partition("=")
        if not equals or not values:
            raise ConfigError(f"{part!r} is not a parameter to vary; write it as bf_interval=30,60", field="vary")
        checked({name: ""})
        columns[name] = [value.strip() for value in values.split(",")]
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ConfigError(f"{text!r}: parameters that change together need equally many values", field="vary")
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def default_settings(settings: Settings) -> list[Change]:
    """The settings that are tried where none are named: each parameter by itself."""
    found: list[Change] = []
    if not settings.builtin:
        for name, factors in _DEFAULT_STEPS.items():
            value = settings.number(name)
            found += [{name: f"{max(1, round(value * factor))}"} for factor in factors]
    if settings.multifactor:
        for name in _WEIGHTS:
            value = settings.number(name)
            steps = (0, value * 5) if value else (1000, 5000)
            found += [{name: f"{round(step)}"} for step in steps]
    return found
