"""Options of a composed policy: their names, their values, and which of them do not go together."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.platform import Platform

from .catalogue import SLOTS
from .config import Allocation, Backfill, Order, PolicyConfig, Power, StartHosts
from .guard import OPTION
from .options import read_value

SLOT_VALUES: dict[str, Mapping[str, tuple[int, Any]]] = {slot: values for slot, (_, values) in SLOTS.items()}
_NUMBERS: dict[str, tuple[type, str, tuple[int, ...]]] = {  # option: kind, slot that reads it, values that read it
    "age_weight": (float, "order", (Order.MULTIFACTOR,)),
    "size_weight": (float, "order", (Order.MULTIFACTOR,)),
    "max_age": (float, "order", (Order.MULTIFACTOR,)),
    "idle_timeout": (float, "power", (Power.IDLE_TIMEOUT,)),
    "keep_awake": (int, "power", (Power.KEEP_AWAKE,)),
    "wake_time": (float, "power", (Power.IDLE_TIMEOUT, Power.KEEP_AWAKE)),
    "patience": (float, "start", (StartHosts.BOOKED,)),
}
BACKFILL_ORDER, PRICES = "backfill_order", "prices"
OPTIONS = (*SLOT_VALUES, PRICES, *_NUMBERS, OPTION, BACKFILL_ORDER)


def composed_name(order: str, backfill: str) -> str:
    """A policy's name from its parts, in short."""
    if backfill == "none":
        return order
    return backfill if order == "fcfs" else f"{order}+{backfill}"


UNGUARDED = f"keeps no reservations: it cannot have the option {OPTION}"


def check_booking(policy: str, codes: Mapping[str, int], guarded: bool, reordered: bool) -> None:
    """Refuse what does not go with start=bound."""
    wrong = {
        "needs power=idle-timeout": codes["power"] != Power.IDLE_TIMEOUT,
        "needs allocation=first-fit or allocation=pack": codes["allocation"]
        not in (Allocation.LOWEST, Allocation.PACK),
        "keeps no reservations: it needs backfill=none, first-fit or easy": codes["backfill"] == Backfill.CONSERVATIVE,
        UNGUARDED: guarded,
        f"looks at jobs in one order: it cannot have the option {BACKFILL_ORDER}": reordered,
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise ConfigError(f"policy {policy}: start=bound {text}")


def check_suspend(policy: str, codes: Mapping[str, int], guarded: bool) -> None:
    """Refuse what does not go with suspend=..."""
    wrong = {
        "breaks reservations: it needs backfill=none or first-fit": codes["backfill"]
        not in (Backfill.NONE, Backfill.FIRST_FIT),
        f"breaks reservations: it cannot have the option {OPTION}": guarded,
        "needs hosts that are awake: it needs power=never": codes["power"] != Power.NEVER,
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise ConfigError(f"policy {policy}: suspend=... {text}")


def refuse_sleepless(policy: str, platform: Platform) -> NoReturn:
    """Refuse a platform without hosts that sleep."""
    none = f"start=bound needs hosts that sleep, and {platform.path or 'the platform'} has none"
    raise ConfigError(f"policy {policy}: {none}; decision platform grid5000 makes some, with energy", field="platform")


def allocation_name(config: PolicyConfig) -> str:
    """The allocation as users name it."""
    return next(name for name, (code, _) in SLOT_VALUES["allocation"].items() if code == config.allocation)


def slot_code(policy: str, slot: str, value: str) -> int:
    """The number of a slot's value. Raises ConfigError for one that there is not."""
    known = SLOT_VALUES[slot]
    if value not in known:
        raise ConfigError(
            f"policy {policy}: there is no {slot} {value!r}{nearest(str(value), known)} (there are {', '.join(known)})"
        )
    return int(known[value][0])


def candidate_order(policy: str, order: str, backfill: int) -> int:
    """The order of EASY's candidates."""
    if backfill != Backfill.EASY:
        raise ConfigError(f"policy {policy}: option backfill_order does nothing without EASY; use easy or ORDER+easy")
    return slot_code(policy, "order", order)


def checked_number(policy: str, name: str, value: Any, codes: Mapping[str, int]) -> Any:
    """The value of a numeric option. Raises ConfigError where no slot reads it, or it makes no sense."""
    kind, slot, readers = _NUMBERS[name]
    if codes[slot] not in readers:
        names = [n for n, (code, _) in SLOT_VALUES[slot].items() if code in readers]
        raise ConfigError(f"policy {policy}: option {name} does nothing without {slot}={' or '.join(names)}")
    number = read_value(policy, name, value, kind)
    if not 0 <= number < math.inf:
        raise ConfigError(f"policy {policy}: option {name}={value} must be finite and not negative")
    return number
