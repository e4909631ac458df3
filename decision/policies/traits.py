"""What a policy needs of jobs, what it does besides starting them, and what it was learned with: one record.

A policy says it by attributes of the record's names, as many as differ from the defaults; what is around another
policy changes that one's record (`decision.policies.wrappers`). All of it is known when a policy has been made, and
who wants to know asks `traits_of`.

The text that a user writes for a policy is parsed once, into its name and its options (`PolicySpec`): a name followed
by options, all separated by commas; options may also be given apart from it. Whoever is handed such a text (the command
line, `api`, a choice of an experiment) makes one record of it with `read_spec`; all others ask the record, so that no
two of them read the text differently.
"""

import math
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from decision.model.errors import ConfigError, mapping, text
from decision.model.hosts import nearest

from .options import SHORTHANDS, read_value

# Options that say for how long jobs are expected to run, as settings.

ESTIMATE, CORRECTION, _SHADOW_OPTION, _FILL_OPTION = "estimate", "correction", "shadow", "fill"  # of every policy
OUTLOOK_OPTIONS = (ESTIMATE, CORRECTION, _SHADOW_OPTION, _FILL_OPTION)


class Estimator(IntEnum):
    """Who predicts for how long jobs will run."""

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
    chosen: dict[str, float] = {}
    for option in levels:
        value = options.pop(option)
        try:
            chosen[option] = float(value)
        except (TypeError, ValueError):
            chosen[option] = math.nan
        if not 0.0 < chosen[option] < 1.0:
            raise ConfigError(f"policy {policy}: option {option}={value} must be a number between 0 and 1")
    return None if estimate == Estimator.WALLTIME else OutlookSettings(estimate, correction, **chosen)


def _known(policy: str, option: str, value: Any, kind: type[IntEnum]) -> str:
    names = [member.name.lower() for member in kind]
    if value not in names:
        has = f"there are {', '.join(names)}"
        raise ConfigError(f"policy {policy}: there is no {option} {value!r}{nearest(str(value), names)} ({has})")
    return str(value).upper()


# What a policy's options say of jobs without power, after their deadline, and on hosts that fail.


class Failed(IntEnum):
    """What becomes of a job one of whose hosts becomes unavailable."""

    RUN = 0  # it goes on, as with Batsim
    KILL = 1
    RESUBMIT = 2  # what it has not saved is lost, and what is left is submitted again


_LATE, BEYOND, _RESTART, CAP = "late", "beyond", "restart", "cap"  # names of the options, for every policy
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


class Battery(NamedTuple):
    """What a battery can do; powers are in hosts that compute."""

    capacity: float = 0.0  # host-seconds; 0: there is none
    charge: float = math.inf  # hosts that it takes the power of at most
    discharge: float = math.inf  # hosts that it powers at most
    efficiency: float = 1.0  # share of what it takes that it gives back


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
    # Without any of these the policy stands under a supply only where there is one, with the defaults.
    if not options.keys() & set(SUPPLY_OPTIONS):
        return None
    late, beyond = (_chosen(policy, name, options) for name in (_LATE, BEYOND))
    checkpoint, restart, every = (
        float(read_value(policy, name, options.pop(name, 0.0), float)) for name in (_CHECKPOINT, _RESTART, _EVERY)
    )
    for name, seconds in ((_CHECKPOINT, checkpoint), (_RESTART, restart), (_EVERY, every)):
        if not 0 <= seconds < math.inf:
            raise ConfigError(f"policy {policy}: option {name}={seconds:g} must be finite and not negative")
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


def _chosen(policy: str, option: str, options: dict[str, Any]) -> str:
    names = _CHOICES[option]
    value = str(options.pop(option, names[0]))
    if value not in names:
        has = f"there are {', '.join(names)}"
        raise ConfigError(f"policy {policy}: there is no {option} {value!r}{nearest(value, names)} ({has})")
    return value


class Traits(NamedTuple):
    """What never changes of a policy."""

    name: str  # for messages; by default that of its class
    needs_walltime: bool = False  # whether jobs must say their walltime
    needs_estimate: bool = False  # whether they must say how long they will run
    needs_users: bool = False  # whether nothing is predicted of jobs of nobody
    needs_value: bool = False  # whether jobs must have values
    needs_qos: bool = False  # whether they must have a quality of service
    switches_hosts: bool | None = None  # whether it puts hosts to sleep; None: it does not say
    suspends: bool = False  # whether it suspends jobs
    books_hosts: bool = False  # whether it gives jobs hosts that are not awake yet
    expects: OutlookSettings | None = None  # the predictions of run times that it was learned with
    supply: SupplySettings | None = None  # the supply of power that it was learned with


def traits_of(policy: object) -> Traits:
    """The record of a policy, whatever it is made of."""
    whole = getattr(policy, "traits", None)
    if isinstance(whole, Traits):
        return whole
    given = {field: getattr(policy, field) for field in Traits._fields if hasattr(policy, field)}
    return Traits(**({"name": type(policy).__name__} | given))


# What a user writes for a policy, parsed once.

_QUANTILES = f"{ESTIMATE}=quantiles"  # which corrects by itself


class PolicySpec(NamedTuple):
    """A policy's name and options."""

    name: str  # behind a shorthand: easy of easy++
    options: dict[str, Any]  # as texts or values, those given apart first

    @property
    def place(self) -> str:
        """The name without its class: the module or file of one in Python, else the whole name."""
        return self.name.partition(":")[0]

    @property
    def file(self) -> Path | None:
        """The file of a policy that is one: a checkpoint, or Python's (``./mine.py:Class``)."""
        path = Path(self.place)
        return path if path.is_file() else None


def read_spec(spec: str, options: Mapping[str, Any] | None = None) -> PolicySpec:
    """Parse what a user writes for a policy.

    Args:
        spec: name and options, like ``sjf+easy,guard=1.5x``.
        options: more options, as texts or values.

    Raises:
        ConfigError: if an option is not written as name=value, is given twice, or contradicts a shorthand.
    """
    name, *pairs = text("spec", spec).split(",")
    settings = dict(mapping("options", options, '{"guard": "auto"}'))
    if name in SHORTHANDS:
        shorthand, (name, *more) = name, SHORTHANDS[name].split(",")
        named = {pair.partition("=")[0] for pair in pairs} | settings.keys()
        if _QUANTILES in (*pairs, f"{ESTIMATE}={settings.get(ESTIMATE)}") and CORRECTION not in named:
            kept = [pair for pair in more if pair.partition("=")[0] not in (*named, CORRECTION)]
            advice = f"use {','.join((name, *kept, *pairs))}"
            raise ConfigError(f"policy {shorthand}: it has a correction, and {_QUANTILES} takes none; {advice}")
        # what the user says replaces what the shorthand stands for
        pairs += [pair for pair in more if pair.partition("=")[0] not in named]
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"policy {spec!r}: {pair!r} is not an option; write it as name=value")
        if key in settings:
            raise ConfigError(f"policy {spec!r}: option {key} is given twice")
        settings[key] = value
    return PolicySpec(name, settings)
