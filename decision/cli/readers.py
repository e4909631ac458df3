"""How the texts of options are read: pairs, ranges, days, speeds."""

from collections.abc import Iterable

from decision.model.errors import ConfigError


def read_pairs(pairs: Iterable[str] | None, option: str = "--option") -> dict[str, str]:
    """Values by name from the ``name=value`` pairs of an option that may be repeated.

    Raises:
        ConfigError: for a pair without ``=`` or a name given twice.
    """
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {pair!r}: write it as name=value")
        if name in settings:
            raise ConfigError(f"{option} {name}: given twice, as {settings[name]!r} and {value!r}")
        settings[name] = value
    return settings


def read_range(text: str | None, option: str = "--select") -> slice | None:
    """A range of jobs or days from ``a:b``, ``a:`` or ``:b``.

    Raises:
        ConfigError: if it is not written so.
    """
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not colon or not all(part == "" or part.isdigit() for part in (first, last)):
        raise ConfigError(f"{option} {text!r}: write it as a:b, like 0:1000")
    return slice(int(first) if first else None, int(last) if last else None)


def read_days(text: str | None) -> tuple[int, int | None] | None:
    """The days of ``--days a:b``, None where none were named. Raises ConfigError."""
    chosen = read_range(text, "--days")
    return None if chosen is None else (chosen.start or 0, chosen.stop)


def read_speed(text: str | None) -> float | None:
    """A host's speed in flop/s.

    Raises:
        ConfigError: if it is not a speed above 0.
    """
    from decision.formats.simgrid import parse_speed

    if text is None:
        return None
    speed = parse_speed(text)
    if speed <= 0:
        raise ConfigError(f"--speed {text}: must be above 0")
    return speed
