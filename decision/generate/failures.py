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
from decision.model.record import Floats


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
    found = []
    for machine in range(machines):
        time = 0.0
        while (time := time + _draw(rng, model.mtbf, model.shape)) < model.length:
            begin, time = time, time + _draw(rng, model.repair, model.repair_shape)
            found.append(Breakdown(machine, begin, time))
    return found


def _draw(rng: np.random.Generator, mean: float, shape: float) -> float:
    """A Weibull number of this mean, to the microsecond and no less than one."""
    scale = mean / math.gamma(1.0 + 1.0 / shape)
    return max(round(scale * float(rng.weibull(shape)), 6), 1e-6)


def failure_lines(found: Sequence[Breakdown], hosts: Sequence[Sequence[int]]) -> bytes:
    """The events of failures as Batsim reads them, by time, one JSON object a line; `hosts` are each machine's ids."""
    moves = [(each.begin, "machine_unavailable", each.machine) for each in found]
    moves += [(each.end, "machine_available", each.machine) for each in found]
    lines = [
        msgspec.json.encode({"type": kind, "timestamp": time, "resources": format_hosts(list(hosts[machine]))})
        for time, kind, machine in sorted(moves)
    ]
    return b"\n".join([*lines, b""])


def availability(found: Sequence[Breakdown], machines: int, length: float) -> float:
    """The share of machine time until `length` (seconds) in which machines are there."""
    away: Floats = np.array([min(each.end, length) - each.begin for each in found], np.float64)
    return 1.0 - float(away.sum()) / (machines * length)
