"""Speeds, power states and sleep states as SimGrid's and Batsim's platform files write them."""

import functools
import math
from collections.abc import Sequence

from decision.model.errors import ConfigError
from decision.model.platform import PowerState, SleepState

from .units import PREFIXES, format_quantity, parse_quantity

WATTAGE = ("wattage_per_state", "watt_per_state")  # present and old name
WATTAGE_OFF = ("wattage_off", "watt_off")
SLEEP_PSTATES = "sleep_pstates"

_LONG_PREFIXES = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta")
_UNITS = {f"{prefix}f": 1000.0**k for k, prefix in enumerate(PREFIXES)}
_UNITS |= {f"{prefix}flops": 1000.0**k for k, prefix in enumerate(_LONG_PREFIXES)}
_WRITTEN = {f"{prefix}f": _UNITS[f"{prefix}f"] for prefix in reversed(PREFIXES[1:5])}


def parse_speed(text: str) -> float:
    """A speed in flop/s from ``1Gf``, ``100.5Mf``, ``1e-9Mf``, ``2kiloflops``; without a unit it is flop/s.

    Raises:
        ConfigError: if the number is missing, negative or not finite, or the unit unknown.
    """
    return parse_quantity(text, _UNITS, "f", "speed", "f, kf, Mf, Gf or Tf")


@functools.lru_cache(maxsize=64)
def parse_speeds(text: str) -> tuple[float, ...]:
    """The speeds of all pstates, in flop/s, from a comma-separated list."""
    return tuple(parse_speed(part) for part in text.split(","))


@functools.lru_cache(maxsize=64)
def parse_wattage(text: str, old_cores: int = 0) -> tuple[tuple[float, float, float], ...]:
    """Each pstate's watts (idle, epsilon, all cores) from ``95:95:190.7, 93:170``; without epsilon it is idle's.

    Args:
        text: the property's value.
        old_cores: the host's cores if the property has its old name; its three numbers are then those of no core, of
            one core and of all cores, and epsilon follows from them as SimGrid 3.24 to 3.27 made it.

    Raises:
        ConfigError: if a pstate has not two or three numbers, or one is negative or not finite.
    """
    return tuple(_watts(part.strip(), old_cores) for part in text.split(","))


def check_watts(text: str | None) -> None:
    """Refuse a power that is no number of watts. What a host draws when off is checked and, as by Batsim, never used.

    Raises:
        ConfigError: if it is negative, not finite or no number.
    """
    if text is not None and (":" in text or _numbers(text) is None):
        raise ConfigError(f"the power {text!r} of a host that is off is not a number of watts")


def _numbers(text: str) -> list[float] | None:
    """Numbers separated by colons, or None if one is no finite number of at least 0."""
    try:
        values = [float(value) for value in text.split(":")]
    except ValueError:
        return None
    return values if all(0 <= value < math.inf for value in values) else None


def _watts(text: str, old_cores: int) -> tuple[float, float, float]:
    watts = _numbers(text)
    if watts is None or len(watts) not in (2, 3):
        raise ConfigError(f"the power {text!r} is not Idle:AllCores or Idle:Epsilon:AllCores in watts")
    idle, middle, full = watts[0], watts[-2], watts[-1]
    if old_cores == 1:
        return idle, full, full
    if old_cores and len(watts) == 3:
        middle -= (full - middle) / (old_cores - 1)
    return idle, middle, full


@functools.lru_cache(maxsize=64)
def parse_sleep_states(text: str, nb_pstates: int) -> tuple[SleepState, ...]:
    """Sleep states from Batsim's ``sleep:off:on`` triplets of pstates, separated by commas.

    Raises:
        ConfigError: if a part is no triplet of known pstates, or a pstate is both of sleep and of switching.
    """
    states = tuple(_sleep_state(part, nb_pstates) for part in text.split(","))
    sleeps = [state.pstate for state in states]
    switches = {pstate for state in states for pstate in (state.switch_off, state.switch_on)}
    for pstate in sleeps:
        if sleeps.count(pstate) > 1 or pstate in switches:
            reason = "a pstate is one sleep state, or of switching, or of computing"
            raise ConfigError(f"sleep_pstates {text!r} uses pstate {pstate} twice; {reason}")
    return states


def _sleep_state(text: str, nb_pstates: int) -> SleepState:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"sleep_pstates: {text.strip()!r} is not a triplet sleep:off:on of pstates such as 13:14:15")
    sleep, off, on = (int(part) for part in parts)
    for pstate in (sleep, off, on):
        if pstate >= nb_pstates:
            raise ConfigError(f"sleep_pstates: there is no pstate {pstate}; the host has 0 to {nb_pstates - 1}")
    return SleepState(sleep, off, on)


def power_states(
    speeds: Sequence[float], wattage: str | None, cores: int = 1, old: bool = False
) -> tuple[PowerState, ...]:
    """The pstates of a host of `speeds` (flop/s) whose power is `wattage`, or none; `old` if it has its old name.

    A job computes on one core of each of its hosts. On a host of several cores it therefore reaches a load of
    one core, and the `full` power of a state is what the host draws then.

    Raises:
        ConfigError: if there is not one power per speed.
    """
    if wattage is None:
        return tuple(PowerState(speed) for speed in speeds)
    watts = parse_wattage(wattage, cores if old else 0)
    if len(watts) != len(speeds):
        raise ConfigError(f"{len(watts)} powers for {len(speeds)} pstates; give one per speed")
    return tuple(
        PowerState(speed, idle, epsilon, full if cores == 1 else epsilon + (full - epsilon) / cores)
        for speed, (idle, epsilon, full) in zip(speeds, watts, strict=True)
    )


def format_speed(speed: float) -> str:
    """A speed in flop/s with the largest unit that keeps it exact: ``141.24Gf``."""
    return format_quantity(speed, _WRITTEN, "f")


def format_wattage(pstates: Sequence[PowerState], old: bool = False) -> str:
    """The value of ``wattage_per_state`` for these pstates of one core; `old`: of ``watt_per_state``."""
    return ", ".join(f"{p.idle!r}:{p.full if old else p.epsilon!r}:{p.full!r}" for p in pstates)


def format_sleep_states(states: Sequence[SleepState]) -> str:
    """The value of ``sleep_pstates`` for these sleep states."""
    return ", ".join(f"{s.pstate}:{s.switch_off}:{s.switch_on}" for s in states)
