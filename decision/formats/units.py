"""Numbers with units, as SimGrid's platform files write them."""

import math
import re
from collections.abc import Mapping

from decision.model.errors import ConfigError

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")

_NUMBER = re.compile(r"\s*(\+?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(.*)", re.DOTALL)


def parse_quantity(text: str, units: Mapping[str, float], default: str, what: str, known: str) -> float:
    """A number times its unit; `default` is the unit of a number without one.

    Raises:
        ConfigError: if the number is missing, negative or not finite, or the unit unknown; it names `what` the number
            is of, and the units best `known`.
    """
    match = _NUMBER.fullmatch(text.strip())
    unit = units.get(match[2] or default) if match else None
    if not match or unit is None or math.isinf(float(match[1]) * unit):
        raise ConfigError(f"the {what} {text.strip()!r} is not a number and a unit such as {known}")
    return float(match[1]) * unit


def format_quantity(value: float, units: Mapping[str, float], default: str) -> str:
    """A number with the first of these units, largest first, that keeps it exact; else with the `default` of size 1."""
    for unit, size in units.items():
        text = f"{value / size:.6g}"
        if "e" not in text and float(text) >= 1 and float(text) * size == value:
            return f"{text}{unit}"
    short = f"{value:g}"
    return f"{short if float(short) == value else repr(value)}{default}"
