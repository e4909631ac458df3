"""How the policy `packer` was made: evolution on whole schedules of made workloads of many kinds.

They are as WL1 and WL2 of Takizawa, Nomura and Matsuba, but of other seeds and of other shares of single-node jobs than
those that `packer` is tested on. Predictions are perfect: walltimes are run times. What is maximised is utilization to
the last end, from the largest area first with EASY on; the linear numbers evolve, and the units stay without effect.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision import __version__
from decision.experiments.inputs import writable_folder
from decision.experiments.tasks import key_of
from decision.files.generate.paper_workloads import predicted_runtimes
from decision.files.text import InputFacts, write_files
from decision.model.computer import available_cores
from decision.model.demand import runtimes
from decision.model.record import Floats
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Parts, ResultTable
from decision.papers.packing.claims import UTILIZATION, setup_of
from decision.rl.envs.batch import Batch, play_episode
from decision.rl.learning.checkpoint import Manifest, write_checkpoint
from decision.rl.learning.config import load_config
from decision.rl.learning.evolution import CmaEs
from decision.rl.learning.weights import dump_numbers
from decision.rl.schedulers import ParametricScheduler
from decision.rl.schedulers.ranking import HOLD, ORDER, RESERVE, Packer, largest_area_first

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
    with ThreadPoolExecutor(available_cores()) as pool:
        for generation in range(generations):
            chosen, candidates = _draw_halves(rng), evolution.ask(rng)
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


def _draw_halves(rng: np.random.Generator) -> list[int]:
    """Numbers of halves of different kinds."""
    kinds = [
        [n for n in range(nb_halves()) if (n % len(ACCURACIES), n // len(ACCURACIES) % len(SHARES)) == (a, s)]
        for a in range(len(ACCURACIES))
        for s in range(len(SHARES))
    ]
    return [kinds[k][rng.integers(_HALVES)] for k in rng.permutation(len(kinds))[:_SEQUENCES]]


def _compete(
    pool: ThreadPoolExecutor,
    half: Callable[[int], _Half],
    chosen: Sequence[int],
    candidates: NDArray[np.float64],
    _jobs: int,
) -> NDArray[np.float64]:
    """(C, S) utilization that each candidate reaches on each of these halves, which have so many jobs."""
    return np.transpose(list(pool.map(functools.partial(_play, candidates), map(half, chosen))))


def _play(candidates: NDArray[np.float64], half: _Half) -> list[float]:
    return [half.utilization(_weights(genes)) for genes in candidates]


def _weights(genes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3, P) weights from what evolves."""
    weights = largest_area_first()
    weights[_ROWS, _COLUMNS] += _SCALE * genes
    return weights
