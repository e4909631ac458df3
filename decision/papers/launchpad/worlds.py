"""Launchpad's green datacenters, and what heuristics and no schedule at all can get there.

The paper publishes neither its workload nor its power. Here jobs are those of `decision workload preset green --price
qos`, at 120 % of what all hosts can do, and power is that of `decision workload supply`. Rollouts are stretches of
so many jobs in a row, under the power of that time, on an idle datacenter.
"""

import functools
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from decision.analysis.value_bound import value_bound
from decision.analysis.worth import join_parts, value_share
from decision.generate.papers.uniform import GreenModel, green_workload
from decision.generate.supply import SupplyModel, forecasts, green_power, supplied_hosts
from decision.generate.topologies import networked
from decision.model.demand import DEADLINE, submit_times, worths
from decision.model.platform import Platform, PowerState
from decision.model.record import Floats
from decision.model.topology import Flat, Link
from decision.model.workload import POWER_SUPPLY, MachineEvent, Workload
from decision.simulation import simulate_workloads

RATE = 1.2  # host-seconds that arrive per host-second
WORLD_STEP = 60.0  # seconds
LEARNED_WORLD = 0  # seed of the world that is learned from; those of rollouts are above
_MOST_STEPS_MORE = 60  # of the supply, after the last deadline
HEURISTICS = {  # by the paper's names, and more
    "QoS": "qos+first-fit",
    "SJF": "sjf+first-fit",
    "FCFS": "fcfs+first-fit",
    "HVF": "hvf+first-fit",
    "EDF": "edf+first-fit",
    "density": "density+first-fit",
}
SUSPENDING = {f"{name}, suspending": f"{policy},suspend=density" for name, policy in HEURISTICS.items()}
RULES = {**HEURISTICS, **SUSPENDING}
BOUND = "bound"


class GreenWorld(NamedTuple):
    """A datacenter, its jobs, and its power."""

    platform: Platform
    workload: Workload
    events: tuple[MachineEvent, ...]  # none: all hosts always have power


@functools.lru_cache(maxsize=4)
def world(hosts: int, intermittent: bool, seed: int, jobs: int) -> GreenWorld:
    """Jobs and power that depend on the seed."""
    model = GreenModel(hosts=hosts, rate=RATE, most_hosts=max(1, hosts // 2), step=WORLD_STEP, price_by_qos=True)
    workload = green_workload(np.random.default_rng([seed, hosts]), jobs, model)
    platform = networked(Flat(hosts, Link(1.25e9, 0.0)), (PowerState(1e9),))
    return GreenWorld(platform, workload, _supply(workload, hosts, seed) if intermittent else ())


def _supply(workload: Workload, hosts: int, seed: int) -> tuple[MachineEvent, ...]:
    rows = worths(workload)
    assert rows is not None
    steps = int(rows[:, DEADLINE].max() / WORLD_STEP) + _MOST_STEPS_MORE
    model, rng = SupplyModel(hosts=hosts, steps=steps, step=WORLD_STEP), np.random.default_rng([seed, hosts, 1])
    return power_events(rng, green_power(rng, model), model)


def power_events(rng: np.random.Generator, power: Floats, model: SupplyModel) -> tuple[MachineEvent, ...]:
    """The events that `decision.generate.supply.supply_lines` writes, of power by step (S,) in hosts."""
    powered = supplied_hosts(power, model)
    numbers = np.column_stack([powered, forecasts(rng, powered, model)]).tolist()
    return tuple(
        MachineEvent(timestamp=step * model.step, type=POWER_SUPPLY, hosts=tuple(row))
        for step, row in enumerate(numbers)
    )


def rollout(whole: GreenWorld, number: int, jobs: int) -> GreenWorld:
    """One of the stretches of a world."""
    workload = replace(whole.workload, jobs=whole.workload.jobs[number * jobs : (number + 1) * jobs])
    rows = worths(workload)
    assert rows is not None
    first, last = float(submit_times(workload).min()), float(rows[:, DEADLINE].max()) + WORLD_STEP
    kept = [event for event in whole.events if first - WORLD_STEP < event.timestamp <= last]
    return GreenWorld(whole.platform, workload, tuple(kept))


def heuristic_shares(whole: GreenWorld, policy: str, rollouts: int, jobs: int) -> Floats:
    """(R,) value that ended over value that was submitted, of each rollout."""
    found = []
    for number in range(rollouts):
        part = rollout(whole, number, jobs)
        name, *options = policy.split(",")
        record = simulate_workloads(
            part.platform, [part.workload], name, dict(each.split("=") for each in options), events=part.events
        )
        found.append(value_share(join_parts(record.jobs), record.worth))
    return np.array(found)


def bound_shares(whole: GreenWorld, rollouts: int, jobs: int) -> Floats:
    """(R,) likewise, that no schedule can exceed."""
    parts = [rollout(whole, number, jobs) for number in range(rollouts)]
    return np.array([value_bound(p.workload, len(p.platform.hosts), p.events, WORLD_STEP).share for p in parts])
