"""How the policy `timetable` was made: evolved on datacenters of three sizes at once; and what it is worth.

Jobs are those of `decision workload preset green --price qos`, power is that of `decision workload supply`. What is
maximised is the mean over the sizes of the value on sequences of jobs over that of the density with suspensions on the
same ones. Every 20 generations the mean of the evolution and its moving average are compared on sequences that stay the
same, and what was best there is learned. Then it runs on sequences of other jobs and supplies, beside every heuristic;
and on whole workloads, beside the value that no schedule can exceed.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.experiments.gates import BY_DENSITY
from decision.experiments.inputs import writable_folder
from decision.experiments.worth import join_parts, total_value, value_bound
from decision.files.generate.events import SupplyModel, green_power
from decision.files.generate.paper_workloads import GreenModel, green_workload
from decision.files.text import InputFacts
from decision.model.computer import available_cores
from decision.model.record import Floats
from decision.model.workload import MachineEvent, Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.papers.launchpad import WORLD_STEP, power_events
from decision.policies import Policy
from decision.rl.envs import Setup, equal_hosts, evaluate, make_setup, random_rows
from decision.rl.learning.evolution import CmaEs
from decision.rl.schedulers.timetable import Timetable
from decision.simulation import simulate_workloads

from .packer import kept, write_evolved

_SEQUENCES = {10: 16, 50: 8, 100: 4}  # of a candidate in a generation, by hosts
_POPULATION, _SPREAD, _SEED = 16, 0.25, 1
_LEARNED, _UNSEEN, _BOUNDED = 100, 7000, 9000  # seeds of the jobs, to which the hosts are added
_SUPPLY_SEED = 1000  # is added to these
_AVERAGED, _AVERAGED_FROM = 0.05, 30  # share of the newest mean in the average, which begins with that generation's
_CHECKED, _CHECKED_SEED = 6, 999  # times as many sequences are compared
_MOST_STEPS_MORE = 60  # of the supply, after the last submission
_SAMPLES = 4000  # of the bootstrap
_ORDERS = ("density", "hvf", "qos", "edf", "sjf", "saf", "fcfs")
_SUSPENDING = tuple(
    f"{order}{backfill},suspend={suspend}"
    for order in _ORDERS
    for backfill in ("+first-fit", "")
    for suspend in ("never", "value", "density")
)
_HEURISTICS = (*_SUSPENDING, *(f"{order}+easy" for order in _ORDERS))


class Size(NamedTuple):
    """How much is done: generations, checks, and jobs of each kind."""

    generations: int = 140
    checked_every: int = 20  # generations
    jobs: int = 20_000  # of each size, to learn from and to compare on
    sequence: int = 200  # jobs
    unseen: int = 100  # sequences to compare on
    bounded: int = 2_000  # jobs beside the bound


class _World(NamedTuple):
    setup: Setup
    sequences: int


def reproduce_timetable(parts: Parts, size: Size = Size()) -> Findings:  # noqa: B008 - immutable
    """Evolve, write ``timetable.ckpt``, and compare; finished generations and comparisons are not repeated.

    Args:
        parts: where what is finished is kept; progress counts generations, comparisons and bounds.
        size: how much is done.
    """
    folder, of = writable_folder(parts.folder), size.generations + 2 * len(_SEQUENCES)
    weights, evolved = _evolve(parts, size, of)
    _write(folder / "timetable.ckpt", weights, size)
    compared, bounded = [], []
    for number, hosts in enumerate(_SEQUENCES):
        compared.append(kept(folder / f"unseen-{hosts}.json", _compare, weights, hosts, size))
        bounded.append(kept(folder / f"bound-{hosts}.json", _bound, weights, hosts, size))
        parts.progress(size.generations + 2 * number + 2, of)
    table = ResultTable(
        f"Value on {size.unseen} sequences of {size.sequence} unseen jobs, and shares of the bound on {size.bounded:,}",
        ("hosts", "best heuristic", "times its value (95 %)", "share of the bound", f"of it, {BY_DENSITY}"),
        [_row(hosts, *found) for hosts, *found in zip(_SEQUENCES, compared, bounded, strict=True)],
    )
    return Findings((table, evolved), f"{folder}: timetable.ckpt")


# --- The worlds -----------------------------------------------------------------------------------------------------


def made_case(hosts: int, jobs: int, seed: int) -> tuple[Workload, tuple[MachineEvent, ...]]:
    """Jobs for so many hosts, and their power."""
    model = GreenModel(hosts=hosts, most_hosts=hosts // 2, price_by_qos=True)
    workload = green_workload(np.random.default_rng(seed), jobs, model)
    steps = int(workload.jobs[-1].submit_time / WORLD_STEP) + _MOST_STEPS_MORE
    supply, rng = SupplyModel(hosts=hosts, steps=steps), np.random.default_rng(seed + _SUPPLY_SEED)
    return workload, power_events(rng, green_power(rng, supply), supply)


def _setup(hosts: int, seed: int, size: Size) -> Setup:
    workload, events = made_case(hosts, size.jobs, seed + hosts)
    return make_setup(workload, encoder="green", events=events, jobs=size.sequence)


# --- The evolution --------------------------------------------------------------------------------------------------


def _evolve(parts: Parts, size: Size, of: int) -> tuple[Floats, ResultTable]:
    """The weights that were best where they were compared, and how they came to be."""
    rng, worlds = np.random.default_rng(_SEED), [_World(_setup(h, _LEARNED, size), n) for h, n in _SEQUENCES.items()]
    average = Timetable().first_weights(rng)
    evolution = CmaEs(average, _SPREAD, _POPULATION)
    best, learned, rows = -np.inf, average, []
    compete = partial(_compete, worlds)
    checked = [random_rows(setup, n * _CHECKED, _CHECKED_SEED) for setup, n in worlds]
    for generation in range(1, size.generations + 1):
        drawn = [_draw(rng, world) for world in worlds]
        candidates = evolution.ask(rng)
        found = kept(parts.folder / f"generation-{generation}.json", compete, drawn, candidates, size)
        evolution.tell(-found)
        average = average + _AVERAGED * (evolution.mean - average)
        if generation == _AVERAGED_FROM:
            average = evolution.mean.copy()
        if generation % size.checked_every == 0 or generation == size.generations:
            pair = np.stack([average, evolution.mean])
            ratios = kept(parts.folder / f"checked-{generation}.json", compete, checked, pair, size)
            rows.append((str(generation), f"{found.mean():.4f}", *(f"{ratio:.4f}" for ratio in ratios)))
            for ratio, weights in zip(ratios, pair, strict=True):
                if ratio > best:
                    best, learned = ratio, weights
        parts.progress(generation, of)
    columns = ("generation", "candidates", "average", "mean")
    return learned, ResultTable(f"Value over that of {BY_DENSITY}, to learn from", columns, rows)


def _draw(rng: np.random.Generator, world: _World) -> NDArray[np.int64]:
    rows = world.setup.beginnings.row
    return rows[rng.integers(len(rows), size=world.sequences)]


def _compete(worlds: Sequence[_World], rows: Sequence[NDArray[np.int64]], candidates: Floats, _size: Size) -> Floats:
    """(C,) mean over the sizes of each candidate's value over that of the density with suspensions.

    The worlds are of this size.
    """

    def values(policy: str | Policy) -> Floats:
        pairs = zip(worlds, rows, strict=True)
        return np.array([evaluate(policy, world.setup, first=first)["value"].sum() for world, first in pairs])

    policies = [BY_DENSITY, *map(Timetable().policy, candidates)]
    with ThreadPoolExecutor(available_cores()) as pool:
        base, *found = pool.map(values, policies)
    return np.array([np.mean(each / base) for each in found])


# --- The comparison -------------------------------------------------------------------------------------------------


def _compare(weights: Floats, hosts: int, size: Size) -> Floats:
    """(1 + heuristics, sequences) values, the policy's first."""
    setup = _setup(hosts, _UNSEEN, size)
    rows = np.linspace(0, size.jobs - size.sequence, size.unseen).astype(np.int64)
    policies = [Timetable().policy(weights), *_HEURISTICS]
    with ThreadPoolExecutor(available_cores()) as pool:
        return np.stack(list(pool.map(lambda policy: evaluate(policy, setup, first=rows)["value"], policies)))


def _bound(weights: Floats, hosts: int, size: Size) -> Floats:
    """(2,) values of the policy and of the density with suspensions, over the bound."""
    workload, events = made_case(hosts, size.bounded, _BOUNDED + hosts)
    most = value_bound(workload, hosts, events).value
    policies: tuple[str | Policy, ...] = (Timetable().policy(weights), BY_DENSITY)
    records = [simulate_workloads(equal_hosts(hosts), [workload], policy, events=events) for policy in policies]
    return np.array([total_value(join_parts(record.jobs), record.worth) / most for record in records])


def _row(hosts: int, values: Floats, shares: Floats) -> tuple[str, ...]:
    """A line of the table; sequences are drawn again together."""
    own, best = values[0], int(values[1:].sum(axis=1).argmax())
    other = values[1 + best]
    drawn = np.random.default_rng(0).integers(len(own), size=(_SAMPLES, len(own)))
    low, high = np.quantile(own[drawn].sum(axis=1) / other[drawn].sum(axis=1), (0.025, 0.975))
    ratio = f"{own.sum() / other.sum():.3f} ({low:.3f} to {high:.3f})"
    return (str(hosts), _HEURISTICS[best], ratio, *(f"{share:.3f}" for share in shares))


def _write(path: Path, weights: Floats, size: Size) -> None:
    sequences = sum(_SEQUENCES.values())
    steps = size.generations * _POPULATION * sequences * size.sequence
    write_evolved(
        path,
        Timetable(),
        weights,
        {"steps": steps, "population": _POPULATION, "spread": _SPREAD, "sequences": sequences},
        hosts=min(_SEQUENCES),
        platform=f"{', '.join(map(str, _SEQUENCES))} equal hosts",
        workloads=[InputFacts(name="decision reproduce timetable", sha256="")],
        changes=[f"env.jobs={size.sequence}"],
        seed=_SEED,
    )
