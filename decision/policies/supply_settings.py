"""What a policy's options say of jobs without power, after their deadline, and on hosts that fail."""

import math
from enum import IntEnum
from typing import Any, NamedTuple

from decision.model.errors import ConfigError
from decision.model.names import nearest

from .battery import Battery
from .cap import CAP
from .options import read_value


class Failed(IntEnum):
    """What becomes of a job one of whose hosts becomes unavailable."""

    RUN = 0  # it goes on, as with Batsim
    KILL = 1
    RESUBMIT = 2  # what it has not saved is lost, and what is left is submitted again


_LATE, BEYOND, _RESTART = "late", "beyond", "restart"  # names of the options, for every policy
BATTERY, _CHARGE, _DISCHARGE, _EFFICIENCY = "battery", "battery_charge", "battery_discharge", "battery_efficiency"
_CHECKPOINT, _FAILED, _EVERY = "checkpoint", "failed", "checkpoint_every"
_OF_BATTERY = (BATTERY, _CHARGE, _DISCHARGE, _EFFICIENCY)
SUPPLY_OPTIONS = (_LATE, BEYOND, _RESTART, CAP, _CHECKPOINT, _FAILED, _EVERY, *_OF_BATTERY)
_HOUR = 3600.0
_CHOICES = {
    _LATE: ("reject", "keep"),
    BEYOND: ("suspend", "grid", "battery"),
    _FAILED: tuple(each.name.lower() for each in Failed),
}


class SupplySettings(NamedTuple):
    """What a policy's options say."""

    rejects_late: bool = True  # whether jobs leave that cannot end in time any more
    suspends_beyond: bool = True  # whether jobs beyond the supply are suspended; else they run on, on power of the grid
    restart: float = 0.0  # seconds that what is left of a job takes to write its checkpoint and to go on
    cap: str = ""  # watts, or a file of them by time, that are never passed; "": none
    failed: Failed = Failed.RUN  # what becomes of jobs whose hosts fail
    every: float = 0.0  # seconds between two checkpoints of a job that runs, which a failure leaves; 0: there are none
    battery: Battery = Battery()  # what powers jobs beyond the supply, as long as it can


def read_supply(policy: str, options: dict[str, Any]) -> SupplySettings | None:
    """Take what says this out of a policy's options; None where nothing does.

    Raises:
        ConfigError: naming the policy and the value.
    """
    if not options.keys() & set(SUPPLY_OPTIONS):
        return None
    late, beyond = (_chosen(policy, name, options) for name in (_LATE, BEYOND))
    checkpoint, restart, every = (_seconds(policy, name, options) for name in (_CHECKPOINT, _RESTART, _EVERY))
    failed = Failed[_chosen(policy, _FAILED, options).upper()]
    if every and failed is not Failed.RESUBMIT:
        raise ConfigError(f"policy {policy}: option {_EVERY}={every:g} goes with {_FAILED}=resubmit")
    cap = str(options.pop(CAP, ""))
    if cap and beyond != "suspend":
        raise ConfigError(f"policy {policy}: cap={cap} is not kept with beyond={beyond}; leave one of them out")
    battery = _read_battery(policy, beyond, options)
    return SupplySettings(late == "reject", beyond != "grid", checkpoint + restart, cap, failed, every, battery)


def _read_battery(policy: str, beyond: str, options: dict[str, Any]) -> Battery:
    given = [name for name in _OF_BATTERY if name in options]
    if beyond != "battery":
        if given:
            raise ConfigError(f"policy {policy}: option {given[0]} goes with {BEYOND}=battery")
        return Battery()
    hours, charge, discharge, efficiency = (
        read_value(policy, name, options.pop(name, default), float)
        for name, default in zip(_OF_BATTERY, (0.0, *Battery()[1:]), strict=True)
    )
    if not 0 < hours < math.inf:
        raise ConfigError(f"policy {policy}: {BEYOND}=battery needs {BATTERY}=HOST-HOURS above 0, like {BATTERY}=40")
    for name, value, is_right, what in (
        (_CHARGE, charge, charge > 0, "hosts above 0"),
        (_DISCHARGE, discharge, discharge >= 1, "1 host or more"),
        (_EFFICIENCY, efficiency, 0 < efficiency <= 1, "above 0 and at most 1"),
    ):
        if not is_right:
            raise ConfigError(f"policy {policy}: option {name}={value:g} must be {what}")
    return Battery(hours * _HOUR, charge, discharge, efficiency)


def _seconds(policy: str, option: str, options: dict[str, Any]) -> float:
    seconds = read_value(policy, option, options.pop(option, 0.0), float)
    if not 0 <= seconds < math.inf:
        raise ConfigError(f"policy {policy}: option {option}={seconds:g} must be finite and not negative")
    return float(seconds)


def _chosen(policy: str, option: str, options: dict[str, Any]) -> str:
    names = _CHOICES[option]
    value = str(options.pop(option, names[0]))
    if value not in names:
        has = f"there are {', '.join(names)}"
        raise ConfigError(f"policy {policy}: there is no {option} {value!r}{nearest(value, names)} ({has})")
    return value
