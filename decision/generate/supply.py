"""A supply of power for a green datacenter: how many hosts may compute at each step, and what was expected before.

Sun follows the hour of the day behind clouds, wind blows in gusts that last; a battery takes what is above the mean
and gives it back below; the grid always powers a few hosts. Launchpad (Venkataswamy et al., JSSPP 2024) names all four
and no numbers: the ones here are plausible and fitted to nothing.
"""

import csv
import io
from pathlib import Path

import msgspec
import numpy as np

from decision.model.errors import InputError
from decision.model.record import Floats, Ints
from decision.model.workload import POWER_SUPPLY

_CLOUDS, _GUSTS = 0.98, 0.97  # correlation of neighbouring steps of a minute
_CLEAREST = 0.35  # share of the sun that the thickest clouds leave


class SupplyModel(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the model; power is in hosts that it lets compute."""

    hosts: int = 10
    steps: int = 1440
    step: float = 60.0  # seconds
    day: float = 86400.0  # seconds from midnight to midnight
    sun: float = 0.8  # of the hosts, at noon of a clear day
    wind: float = 0.4  # of the hosts, on average
    battery: float = 0.0  # host-hours that it can hold
    floor: int = 1  # hosts that the grid always powers
    horizon: int = 20  # steps of each forecast
    error: float = 0.05  # standard deviation of a forecast for the next step, of the hosts; grows with its root


def green_power(rng: np.random.Generator, model: SupplyModel) -> Floats:
    """Power of sun and wind by step: (S,) hosts, at least 0."""
    minutes = model.step / 60.0
    hour = 2 * np.pi * np.arange(model.steps) * model.step / model.day
    height = np.maximum(0.0, -np.cos(hour))
    clouds = _CLEAREST + (1 - _CLEAREST) * _between(_lasting(rng, model.steps, _CLOUDS**minutes))
    wind = 2 * model.wind * _between(_lasting(rng, model.steps, _GUSTS**minutes))
    return model.hosts * (model.sun * height * clouds + wind)


def _lasting(rng: np.random.Generator, steps: int, correlation: float) -> Floats:
    """Normal deviates (S,) of which neighbours are correlated: an autoregressive process of order 1."""
    shocks, series = rng.normal(size=steps), np.zeros(steps)
    level = 0.0
    for step in range(steps):
        level = correlation * level + np.sqrt(1 - correlation**2) * shocks[step] if step else shocks[0]
        series[step] = level
    return series


def _between(series: Floats) -> Floats:
    """The same series between 0 and 1, one half on average."""
    return 1 / (1 + np.exp(-2 * series))


def stored(power: Floats, model: SupplyModel) -> Floats:
    """What a battery, empty at first, makes of power (S,): it takes what is above the mean, and gives it back below."""
    room, held, mean, given = model.battery * 3600.0 / model.step, 0.0, float(power.mean()), power.copy()
    for step in range(len(power)):
        change = min(max(power[step] - mean, -held), room - held)
        held += change
        given[step] -= change
    return given


def supplied_hosts(power: Floats, model: SupplyModel) -> Ints:
    """Hosts that may compute by step, (S,): whole ones, as many as there are at most, and the grid's at least."""
    return np.clip(np.floor(stored(power, model) + 1e-9), model.floor, model.hosts).astype(np.int64)


def forecasts(rng: np.random.Generator, hosts: Ints, model: SupplyModel) -> Ints:
    """What is expected at each step of the next ones, (S, R); after the last step what it has."""
    steps = np.arange(len(hosts))[:, None] + np.arange(1, model.horizon + 1)
    real = hosts[np.minimum(steps, len(hosts) - 1)]
    off = model.error * model.hosts * np.sqrt(np.arange(1, model.horizon + 1)) * rng.normal(size=real.shape)
    return np.clip(np.rint(real + off), 0, model.hosts).astype(np.int64)


def supply_lines(rng: np.random.Generator, power: Floats, model: SupplyModel) -> bytes:
    """The events of a supply as Batsim reads them, one JSON object a line.

    Without forecasts a step at which nothing changes has none.
    """
    hosts = supplied_hosts(power, model)
    expected = forecasts(rng, hosts, model)
    lines = []
    for step, number in enumerate(hosts.tolist()):
        event = {"type": POWER_SUPPLY, "timestamp": step * model.step, "hosts": number}
        if model.horizon:
            event["forecast"] = expected[step].tolist()
        elif 0 < step < len(hosts) - 1 and number == hosts[step - 1]:
            continue
        lines.append(msgspec.json.encode(event))
    return b"\n".join([*lines, b""])


def read_power(path: Path, model: SupplyModel) -> Floats:
    """Power by step, (S,) hosts, from a table with the columns ``time`` (seconds, ascending) and ``hosts``.

    Each step has what the table said last; steps before its first time have none.

    Raises:
        InputError: if the file is no such table; one line with file and line.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    times, hosts = np.zeros(len(rows)), np.zeros(len(rows))
    for number, row in enumerate(rows):
        try:
            times[number], hosts[number] = float(row["time"]), float(row["hosts"])
        except (KeyError, TypeError, ValueError):
            wanted = "needs the columns time (seconds) and hosts, and numbers in them"
            raise InputError(f"{path}, line {number + 2}: {wanted}; found {dict(row)}") from None
        if not 0 <= hosts[number] < np.inf or (number and not times[number] > times[number - 1]):
            raise InputError(f"{path}, line {number + 2}: times must ascend, and hosts must be 0 or more")
    if not rows:
        raise InputError(f"{path}: has no rows; it needs the columns time (seconds) and hosts")
    at = np.searchsorted(times, np.arange(model.steps) * model.step, side="right") - 1
    return np.where(at >= 0, hosts[np.maximum(at, 0)], 0.0)
