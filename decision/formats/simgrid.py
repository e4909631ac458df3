"""What SimGrid's platform files write of hosts, as values: versions, numbers with units, power and sleep states."""

import functools
import math
import re
from collections.abc import Mapping, Sequence

from decision.model.errors import ConfigError
from decision.model.platform import PowerState, SleepState

BATSIM_SIMGRID = "3.32"  # what Batsim 4.2.1 is built with

FIRST_WITH_NEW_NAMES = (3, 24)  # wattage_per_state, wattage_off: idle, epsilon, all cores
FIRST_WITHOUT_OLD_NAMES = (3, 28)  # watt_per_state, watt_off: idle, one core, all cores
_FIRST_OF_FORMAT = (3, 22)  # format 4.1 under the DOCTYPE below

DOCTYPE = "https://simgrid.org/simgrid.dtd"
OLD_DOCTYPE = "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd"  # the old one, still accepted
PLATFORM_FORMAT = "4.1"


def simgrid_version(text: str) -> tuple[int, int]:
    """Major and minor version from ``3.28``, ``3.23.2`` or ``4``.

    Raises:
        ConfigError: if it is not a version, or is older than the present format of platform files.
    """
    match = re.fullmatch(r"(\d{1,3})(?:\.(\d{1,3}))?(?:\.\d+)*", text.strip())
    version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if version < _FIRST_OF_FORMAT:
        advice = "give a version from 3.22 on, such as 3.24, 3.28 or 4.0"
        raise ConfigError(f"the SimGrid version {text!r}: {advice}", field="simgrid")
    return version


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
    """Refuse a power that is not a number of watts. As in Batsim, the power of a host that is off is only checked.

    Raises:
        ConfigError: if it is negative, not finite or not a number.
    """
    if text is not None and (":" in text or _numbers(text) is None):
        raise ConfigError(f"the power {text!r} of a host that is off is not a number of watts")


def _numbers(text: str) -> list[float] | None:
    """Numbers separated by colons, or None if one is not a finite number of at least 0."""
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
        ConfigError: if a part is not a triplet of known pstates, or a pstate is used for both sleeping and switching.
    """
    states = tuple(_sleep_state(part, nb_pstates) for part in text.split(","))
    sleeps = [state.pstate for state in states]
    switches = {pstate for state in states for pstate in (state.switch_off, state.switch_on)}
    for pstate in sleeps:
        if sleeps.count(pstate) > 1 or pstate in switches:
            reason = "each pstate has one use: sleeping, switching or computing"
            raise ConfigError(f"sleep_pstates {text!r} uses pstate {pstate} twice; {reason}")
    return states


def _sleep_state(text: str, nb_pstates: int) -> SleepState:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"sleep_pstates: {text.strip()!r} is not a triplet sleep:off:on of pstates such as 13:14:15")
    sleep, off, on = (int(part) for part in parts)
    for pstate in (sleep, off, on):
        if pstate >= nb_pstates:
            raise ConfigError(f"sleep_pstates: pstate {pstate} does not exist; the host has 0 to {nb_pstates - 1}")
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
