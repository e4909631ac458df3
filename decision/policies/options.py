"""Options of policies: from texts to values, with errors that name the option."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from decision.model.errors import ConfigError
from decision.model.names import nearest

from .catalogue import OptionLine

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def refuse_unknown(policy: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options that a policy does not have.

    Raises:
        ConfigError: naming the option and the valid ones.
    """
    valid = list(known)
    for name in given:
        if name == "seed" and name not in valid:
            raise ConfigError(f"policy {policy} has no option 'seed': it takes the seed of the run", field="seed")
        if name not in valid:
            options = f"its options are {', '.join(valid)}" if valid else "it has none"
            raise ConfigError(f"policy {policy} has no option {name!r}{nearest(name, valid)} ({options})")


def read_value(policy: str, name: str, value: Any, kind: type) -> Any:
    """Make an option's value an int, a float, a bool or a str.

    Raises:
        ConfigError: naming the option and its value.
    """
    try:
        return _TRUTH[value.lower()] if kind is bool and isinstance(value, str) else kind(value)
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"policy {policy}: option {name}={value!r} must be {_KINDS[kind]}") from None


def make_with_options(policy: str, make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call a class or function with options as keyword arguments, converted as its annotations say.

    Raises:
        ConfigError: if it has no such parameter or a value does not fit, or one without default is missing.
    """
    parameters = inspect.signature(make, eval_str=True).parameters
    refuse_unknown(policy, options, parameters)
    missing = [n for n, p in parameters.items() if p.default is p.empty and p.kind not in _OPEN and n not in options]
    if missing:
        raise ConfigError(f"policy {policy} needs the option {missing[0]}")
    values = {}
    for name, value in options.items():
        kind = parameters[name].annotation
        values[name] = read_value(policy, name, value, kind) if kind in (int, float, bool) else value
    return make(**values)


def options_of(make: Callable[..., Any]) -> list[OptionLine]:
    """The parameters of a class or function, as options."""
    return [
        OptionLine(name, "" if p.default is p.empty else str(p.default), "", _KINDS.get(p.annotation, ""))
        for name, p in inspect.signature(make, eval_str=True).parameters.items()
        if p.kind not in _OPEN
    ]


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
