"""Machines that fail and are repaired: when each leaves and comes back, drawn from two distributions.

Each machine is on its own, and works and is repaired by turns (an alternating renewal process). Times to failure and
times to repair are Weibull distributed, exponentially where the shape is 1; Schroeder and Gibson (DSN 2006) found
shapes of 0.7 to 0.8 for times between failures of HPC systems, and repairs that are far from exponential.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from decision.model.hosts import format_hosts
from decision.model.record import Floats, Ints
from decision.model.workload import POWER_SUPPLY


class FailureModel(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters; times in seconds."""

    mtbf: float  # mean time from a repair to the next failure of a machine
    repair: float  # mean time to repair
    shape: float = 1.0  # Weibull, of times to failure
    repair_shape: float = 1.0
    length: float  # no failure begins later


class Breakdown(msgspec.Struct, frozen=True):
    """A machine is away. Seconds."""

    machine: int
    begin: float
    end: float


def failures(rng: np.random.Generator, machines: int, model: FailureModel) -> list[Breakdown]:
    """All failures, by machine and time; each ends, be it after the model's length."""
    breakdowns = []
    for machine in range(machines):
        time = 0.0
        while (time := time + _draw(rng, model.mtbf, model.shape)) < model.length:
            begin, time = time, time + _draw(rng, model.repair, model.repair_shape)
            breakdowns.append(Breakdown(machine, begin, time))
    return breakdowns


def _draw(rng: np.random.Generator, mean: float, shape: float) -> float:
    """A Weibull number of this mean, to the microsecond and no less than one."""
    scale = mean / math.gamma(1.0 + 1.0 / shape)
    return max(round(scale * float(rng.weibull(shape)), 6), 1e-6)


def failure_lines(breakdowns: Sequence[Breakdown], hosts: Sequence[Sequence[int]]) -> bytes:
    """The events of failures as Batsim reads them, by time, one JSON object a line; `hosts` are each machine's ids."""
    moves = [(breakdown.begin, "machine_unavailable", breakdown.machine) for breakdown in breakdowns]
    moves += [(breakdown.end, "machine_available", breakdown.machine) for breakdown in breakdowns]
    lines = [
        msgspec.json.encode({"type": kind, "timestamp": time, "resources": format_hosts(list(hosts[machine]))})
        for time, kind, machine in sorted(moves)
    ]
    return b"\n".join([*lines, b""])


def availability(breakdowns: Sequence[Breakdown], machines: int, length: float) -> float:
    """The share of machine time until `length` (seconds) in which machines are there."""
    away: Floats = np.array([min(breakdown.end, length) - breakdown.begin for breakdown in breakdowns], np.float64)
    return 1.0 - float(away.sum()) / (machines * length)


# A supply of power for a green datacenter: how many hosts may compute at each step, and what was expected before.
#
# Sun follows the hour of the day behind clouds, wind blows in gusts that last; a battery takes what is above the last
# day's mean and gives it back below; the grid always powers a few hosts. Launchpad (Venkataswamy et al., JSSPP 2024)
# names all four and no numbers: the ones here are plausible and fitted to nothing.

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
    battery_rate: float = math.inf  # hosts that it takes or gives at most
    battery_efficiency: float = 1.0  # share of what it takes that it gives back
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
    """What a battery, empty at first, makes of power (S,): it takes what is above the mean, and gives back below it.

    The mean is that of the last day, the present step included: a battery does not know what comes.
    """
    per_step = 3600.0 / model.step
    room, rate, held, given = model.battery * per_step, model.battery_rate, 0.0, power.copy()
    length = max(int(model.day / model.step), 1)
    total = np.append(0.0, np.cumsum(power))
    for step in range(len(power)):
        begin = max(step + 1 - length, 0)
        over = float(power[step] - (total[step + 1] - total[begin]) / (step + 1 - begin))
        if over > 0:
            taken = min(over, rate, (room - held) / model.battery_efficiency)
            held += taken * model.battery_efficiency
            given[step] -= taken
        else:
            back = min(-over, rate, held)
            held -= back
            given[step] += back
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
