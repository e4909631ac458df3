"""How the policies `packer` and `timetable` were made: evolution on whole schedules of made workloads of many kinds.

Those of `packer` are as WL1 and WL2 of Takizawa, Nomura and Matsuba, but of other seeds and of other shares of single-
node jobs than those that `packer` is tested on. Predictions are perfect: walltimes are run times. What is maximised is
utilization to the last end, from the largest area first with EASY on; the linear numbers evolve, and the units stay
without effect.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.experiments.gates import BY_DENSITY
from decision.experiments.inputs import writable_folder
from decision.experiments.tasks import key_of
from decision.experiments.worth import join_parts, total_value, value_bound
from decision.files.generate.events import SupplyModel, green_power
from decision.files.generate.paper_workloads import GreenModel, green_workload, predicted_runtimes
from decision.files.text import InputFacts, write_files
from decision.model.computer import available_cores
from decision.model.demand import runtimes
from decision.model.record import Floats
from decision.model.workload import MachineEvent, Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.papers.launchpad import WORLD_STEP, power_events
from decision.papers.packing.claims import UTILIZATION, setup_of
from decision.policies import Policy
from decision.rl.envs import Setup, equal_hosts, evaluate, make_setup, random_rows
from decision.rl.envs.batch import Batch, play_episode
from decision.rl.learning.checkpoint import Manifest, write_checkpoint
from decision.rl.learning.config import load_config
from decision.rl.learning.evolution import CmaEs
from decision.rl.learning.weights import dump_numbers
from decision.rl.schedulers import ParametricScheduler
from decision.rl.schedulers.ranking import HOLD, ORDER, RESERVE, Packer, largest_area_first
from decision.rl.schedulers.timetable import Timetable
from decision.simulation import simulate_workloads

# What programs that evolve a shipped policy share: results that are kept, and the checkpoint at the end.


def kept(file: Path, make: Callable[..., Floats], *given: Any) -> Floats:
    """What is made of what is given; kept in the file, and made again where that is of something else.

    Args:
        file: of the result and of what identifies it: what was given, and this package's sources.
        make: makes it.
        given: arrays, numbers and texts, on which alone the result depends.
    """
    key = key_of(msgspec.json.encode(given, enc_hook=np.ndarray.tolist))
    if file.exists() and (before := msgspec.json.decode(file.read_bytes(), type=_Kept)).key == key:
        return np.array(before.found)
    found = make(*given)
    write_files({file: [msgspec.json.encode(_Kept(key, found.tolist()))]})
    return found


class _Kept(msgspec.Struct, frozen=True):
    key: str
    found: list[Any]


def write_evolved(
    path: Path,
    record: ParametricScheduler,
    weights: Floats,
    learned: Mapping[str, Any],
    *,
    hosts: int,
    platform: str,
    workloads: Sequence[InputFacts],
    changes: Sequence[str] = (),
    seed: int = 0,
    scores: Mapping[str, float] | None = None,
) -> None:
    """Write the checkpoint of weights that were evolved.

    Args:
        path: of the file.
        record: whose weights they are; its preset has the same name.
        weights: in the shape of the record's.
        learned: what the section learn of the preset really was; ``steps`` is the manifest's, too.
        hosts: of the platform.
        platform: what it was, for people.
        workloads: what was learned from.
        changes: other changes of the preset.
        seed: of the evolution.
        scores: of the manifest.
    """
    config = load_config(
        record.name, [*changes, *(f"learn.{name}={value}" for name, value in learned.items())], seed=seed
    )
    manifest = Manifest(
        decision=__version__,
        algorithm=config.algorithm,
        config=config,
        encoder=dict(record.sees),
        nb_hosts=hosts,
        platform=InputFacts(name=platform, sha256=""),
        workloads=tuple(workloads),
        steps=learned["steps"],
        scores=dict(scores or {}),
    )
    write_checkpoint(path, manifest, dump_numbers(weights))


PACKER_GENERATIONS = 135
SHARES = (0.9, 0.85, 0.7, 0.5, 0.3, 0.15)  # of single-node jobs; WL1 has 0.8, WL2 0.2
ACCURACIES = ("100", "050", "RND")
_HALVES = 4  # of each kind
_POPULATION, _SPREAD, _SEQUENCES = 16, 0.3, 12
_MADE_SEED, _SEED = 77, 1  # of the workloads, which are no pair's; of the evolution
_AVERAGED, _AVERAGED_FROM = 0.1, 10  # share of the newest mean in what is learned, after so many generations
# what evolves: columns of the linear numbers of each question, and by what its changes are multiplied
_EVOLVES = {ORDER: (range(1, 6), 2.0), RESERVE: ((0, 1, 2, 3, 5, 7, 8, 9, 10), 1.0), HOLD: (range(12), 1.0)}
_ROWS, _COLUMNS, _SCALE = (
    np.array(each)
    for each in zip(*((row, c, scale) for row, (columns, scale) in _EVOLVES.items() for c in columns), strict=True)
)


class _Half:
    """A made half, and room to schedule it again and again. `number` is of `nb_halves`."""

    def __init__(self, number: int, jobs: int) -> None:
        setup = setup_of(made_kind(number, jobs))
        self._batch = Batch(setup, 1, 1)
        self._utilization = self._batch.metric_names.index(UTILIZATION)

    def utilization(self, weights: NDArray[np.float64]) -> float:
        """Of the schedule that these (3, P) weights make."""
        policy, metrics = Packer().policy(weights), np.zeros(len(self._batch.metric_names))
        memory = policy.memory_for(self._batch.envs[0].state)
        play_episode(self._batch, 0, policy.entry.address, memory.address, 0, metrics)
        return float(metrics[self._utilization])


def nb_halves() -> int:
    """How many are made: by accuracy, then by share, then half a or b."""
    return _HALVES * len(SHARES) * len(ACCURACIES)


def made_kind(number: int, jobs: int) -> Workload:
    """The first jobs of a made half, whose walltimes are run times."""
    accuracy, kind = ACCURACIES[number % len(ACCURACIES)], number // len(ACCURACIES)
    rng, share = np.random.default_rng([_MADE_SEED, number]), SHARES[kind % len(SHARES)]
    whole = predicted_runtimes(rng, "WL1", accuracy, "ab"[kind % 2], single=share)
    said = zip(whole.jobs[:jobs], runtimes(whole).tolist(), strict=False)
    known = [msgspec.structs.replace(job, walltime=max(run, 1.0)) for job, run in said]
    return msgspec.structs.replace(whole, jobs=known)


def reproduce_packer(parts: Parts, *, generations: int = PACKER_GENERATIONS, jobs: int = 1000) -> Findings:
    """Evolve, and write ``packer.ckpt``; finished generations are not repeated.

    Args:
        parts: where finished generations are kept; progress counts generations.
        generations: how many.
        jobs: of a half that are used.
    """
    folder = writable_folder(parts.folder)
    rng, half = np.random.default_rng(_SEED), functools.cache(lambda number: _Half(number, jobs))
    evolution = CmaEs(np.zeros(len(_ROWS)), _SPREAD, _POPULATION)
    average, rows = evolution.mean, []
    kinds = [  # numbers of the halves of each kind
        [n for n in range(nb_halves()) if (n % len(ACCURACIES), n // len(ACCURACIES) % len(SHARES)) == (a, s)]
        for a in range(len(ACCURACIES))
        for s in range(len(SHARES))
    ]
    with ThreadPoolExecutor(available_cores()) as pool:
        for generation in range(generations):
            chosen = [kinds[k][rng.integers(_HALVES)] for k in rng.permutation(len(kinds))[:_SEQUENCES]]
            candidates = evolution.ask(rng)
            play = functools.partial(_compete, pool, half)
            found = kept(folder / f"generation-{generation}.json", play, chosen, candidates, jobs)
            evolution.tell(-found.mean(1))
            newest = _AVERAGED if generation > _AVERAGED_FROM else 1.0
            average = average + newest * (evolution.mean - average)
            rows.append((str(generation), f"{found.mean():.4f}", f"{found.mean(1).max():.4f}"))
            parts.progress(generation + 1, generations)
    steps = generations * _POPULATION * _SEQUENCES * jobs
    write_evolved(
        folder / "packer.ckpt",
        Packer(),
        _weights(average),
        {"steps": steps, "population": _POPULATION, "spread": _SPREAD, "sequences": _SEQUENCES},
        hosts=256,
        platform="256 equal hosts",
        workloads=[InputFacts(name="decision reproduce packer", sha256="")],
        seed=_SEED,
    )
    table = ResultTable("Utilization of what evolves", ("generation", "mean", "best"), rows)
    return Findings((table,), f"{folder}: packer.ckpt")


def _compete(
    pool: ThreadPoolExecutor,
    half: Callable[[int], _Half],
    chosen: Sequence[int],
    candidates: NDArray[np.float64],
    _jobs: int,
) -> NDArray[np.float64]:
    """(C, S) utilization that each candidate reaches on each of these halves, which have so many jobs."""
    weights = [_weights(genes) for genes in candidates]
    return np.transpose(list(pool.map(lambda each: [each.utilization(w) for w in weights], map(half, chosen))))


def _weights(genes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, P) weights from what evolves."""
    weights = largest_area_first()
    weights[_ROWS, _COLUMNS] += _SCALE * genes
    return weights


# The policy `timetable`: evolved on datacenters of three sizes at once; and what it is worth.
#
# Jobs are those of `decision workload preset green --price qos`, power is that of `decision workload supply`. What is
# maximised is the mean over the sizes of the value on sequences of jobs over that of the density with suspensions on
# the same ones. Every 20 generations the mean of the evolution and its moving average are compared on sequences that
# stay the same, and what was best there is learned. Then it runs on sequences of other jobs and supplies, beside every
# heuristic; and on whole workloads, beside the value that no schedule can exceed.


_WORLDS = {10: 16, 50: 8, 100: 4}  # of a candidate in a generation, by hosts
_CANDIDATES, _FIRST_SPREAD, _EVOLUTION_SEED = 16, 0.25, 1
_LEARNED, _UNSEEN, _BOUNDED = 100, 7000, 9000  # seeds of the jobs, to which the hosts are added
_SUPPLY_SEED = 1000  # is added to these
_MEAN_SHARE, _MEANS_FROM = 0.05, 30  # share of the newest mean in the average, which begins with that generation's
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
    folder, of = writable_folder(parts.folder), size.generations + 2 * len(_WORLDS)
    weights, evolved = _evolve(parts, size, of)
    sequences = sum(_WORLDS.values())
    steps = size.generations * _CANDIDATES * sequences * size.sequence
    write_evolved(
        folder / "timetable.ckpt",
        Timetable(),
        weights,
        {"steps": steps, "population": _CANDIDATES, "spread": _FIRST_SPREAD, "sequences": sequences},
        hosts=min(_WORLDS),
        platform=f"{', '.join(map(str, _WORLDS))} equal hosts",
        workloads=[InputFacts(name="decision reproduce timetable", sha256="")],
        changes=[f"env.jobs={size.sequence}"],
        seed=_EVOLUTION_SEED,
    )
    compared, bounded = [], []
    for number, hosts in enumerate(_WORLDS):
        compared.append(kept(folder / f"unseen-{hosts}.json", _compare, weights, hosts, size))
        bounded.append(kept(folder / f"bound-{hosts}.json", _bound, weights, hosts, size))
        parts.progress(size.generations + 2 * number + 2, of)
    table = ResultTable(
        f"Value on {size.unseen} sequences of {size.sequence} unseen jobs, and shares of the bound on {size.bounded:,}",
        ("hosts", "best heuristic", "times its value (95 %)", "share of the bound", f"of it, {BY_DENSITY}"),
        [_row(hosts, *found) for hosts, *found in zip(_WORLDS, compared, bounded, strict=True)],
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
    rng = np.random.default_rng(_EVOLUTION_SEED)
    worlds = [_World(_setup(hosts, _LEARNED, size), number) for hosts, number in _WORLDS.items()]
    average = Timetable().first_weights(rng)
    evolution = CmaEs(average, _FIRST_SPREAD, _CANDIDATES)
    best, learned, rows = -np.inf, average, []
    compete = partial(_values_of, worlds)
    checked = [random_rows(setup, n * _CHECKED, _CHECKED_SEED) for setup, n in worlds]
    for generation in range(1, size.generations + 1):
        begins = [(setup.beginnings.row, number) for setup, number in worlds]
        drawn = [rows[rng.integers(len(rows), size=number)] for rows, number in begins]
        candidates = evolution.ask(rng)
        found = kept(parts.folder / f"generation-{generation}.json", compete, drawn, candidates, size)
        evolution.tell(-found)
        average = average + _MEAN_SHARE * (evolution.mean - average)
        if generation == _MEANS_FROM:
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


def _values_of(worlds: Sequence[_World], rows: Sequence[NDArray[np.int64]], candidates: Floats, _size: Size) -> Floats:
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
