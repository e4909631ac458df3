"""How the policy `packer` was made: evolution on whole schedules of made workloads of many kinds.

They are as WL1 and WL2 of Takizawa, Nomura and Matsuba, but of other seeds and of other shares of single-node jobs than
those that `packer` is tested on. Predictions are perfect: walltimes are run times. What is maximised is utilization to
the last end, from the largest area first with EASY on; the linear numbers evolve, and the units stay without effect.
"""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.computer.cores import available_cores
from decision.envs.batch import Batch
from decision.envs.evaluation import play_episode
from decision.formats.input_facts import InputFacts
from decision.generate.papers.predicted_runtimes import predicted_runtimes
from decision.learn.evolution import CmaEs
from decision.learned.packer import Packer, largest_area_first
from decision.learned.ranking_kernels import HOLD, ORDER, RESERVE
from decision.model.demand import runtimes
from decision.model.workload import Workload
from decision.runs.inputs import writable_folder

from ..findings import Findings, Parts, ResultTable
from ..packing.parts import UTILIZATION, setup_of
from .evolved import kept, write_evolved

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
