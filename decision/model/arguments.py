"""Checks of what callers give to the functions of ``import decision``: each error names the argument."""

import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import ConfigError


def whole(field: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`; numpy's will do. Raises ConfigError."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{field}: must be a whole number, at least {least}; found {value!r}", field=field)
    return number


def flag(field: str, value: Any) -> bool:
    """True or False; numpy's will do. Raises ConfigError."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise ConfigError(f"{field}: must be True or False; found {value!r}", field=field)
    return bool(value)


def text(field: str, value: Any) -> str:
    """A text. Raises ConfigError."""
    if not isinstance(value, str):
        raise ConfigError(f"{field}: must be a text; found an object of type {type(value).__name__}", field=field)
    return value


def a_path(field: str, value: Any) -> Path:
    """The path of a file or folder. Raises ConfigError."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{field}: must be a path; found an object of type {type(value).__name__}", field=field)
    return Path(value)


def amount(field: str, value: Any, least: float, most: float) -> float:
    """A number from `least` to `most`. Raises ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ConfigError(f"{field}: must be a number, {least:g} to {most:g}; found {value!r}", field=field)
    return float(value)


def mapping(field: str, value: Any, like: str) -> dict[str, Any]:
    """Values by name, empty for None; `like` is an example for the error. Raises ConfigError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{field}: must be a mapping like {like}; found {value!r}", field=field)
    return dict(value)


def several(value: Any) -> list[Any]:
    """One as a list of one: a text, a path, a table and whatever cannot be iterated."""
    one = isinstance(value, str | os.PathLike | Mapping) or hasattr(value, "columns") or not isinstance(value, Iterable)
    return [value] if one else list(value)


def some(field: str, value: Any, what: str) -> list[Any]:
    """At least one, or a list of at least one. Raises ConfigError where there is none."""
    found = several(value)
    if not found:
        raise ConfigError(f"{field}: give at least one {what}", field=field)
    return found
