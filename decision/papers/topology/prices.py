"""What free hosts are worth: prices that ship against the tree alone and against exact windows, on jobs held out.

Pairs of schedules of the same jobs are compared, each sequence from a seed of its own; `decision.rl.schedulers.prices`
learns from seeds below these. Hops are compared on both trees and with waits alike: jobs start at the same windows
whether each window is placed exactly or its jobs are placed one by one. Stretch is compared where jobs communicate for
half of their time on a tapered tree.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from decision.experiments.metrics import only_ran, stretches, tree_hops, waiting_times
from decision.experiments.statistics import Estimate, bootstrap_mean
from decision.experiments.tasks import Result
from decision.files.generate.paper_workloads import topology_workload
from decision.model.demand import runtimes
from decision.model.record import Floats
from decision.papers.campaign import ResultTable
from decision.policies.runtimes import apply_estimates
from decision.rl.learning import read_prices

from .parts import HOST_SPEED, TREES, all_to_all, platform_of, schedule_files

_TREE = "fcfs,allocation=tree"
_EXACT, _ONE_BY_ONE = "window,solver=exact", "window,solver=sequential,strategy=free"
_FIRST_SEED = {"hops": 2001, "stretch": 3101}
_ESTIMATES = {"hops": "exact", "stretch": "factor:10"}  # walltimes: jobs that communicate take longer
_TAPERED, _RATIO = "tapered", 0.5  # where stretch is compared


class Comparison(NamedTuple):
    """Two policies on the same jobs."""

    metric: str
    tree: str
    policy: str
    reference: str
    claim: str = ""


COMPARISONS = (
    *(
        Comparison("hops", tree, f"{own},prices=hops", reference, claim)
        for tree, asked in (("program", 2.0), ("text", 0.5))
        for own, reference, claim in (
            (_TREE, _TREE, ""),
            (_ONE_BY_ONE, _EXACT, f"one by one by prices, jobs have fewer hops than in exact windows ({asked:g} %)"),
        )
    ),
    Comparison("stretch", "text", f"{_TREE},prices=stretch", _TREE, "prices for stretch shorten runs against tree"),
    Comparison(
        *("stretch", "text", f"{_TREE},prices=stretch", f"{_TREE},prices=hops"),
        "prices for stretch shorten runs against prices for hops",
    ),
)


class Priced(NamedTuple):
    """A sequence of jobs that no training has seen, under one policy."""

    metric: str
    tree: str
    policy: str
    seed: int
    jobs: int
    batsim: bool = False  # under a real Batsim

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        _, _, name = self.policy.partition("prices=")
        prices = hashlib.sha256(read_prices(name).tobytes()).hexdigest()[:24] if name else ""
        return {**self._asdict(), "kind": "Priced", "prices": prices}

    def work(self) -> Result:
        """Means over jobs: hops of the text or stretch, and wait in seconds."""
        rng, tree = np.random.default_rng(self.seed), TREES[self.tree]
        jobs = apply_estimates(topology_workload(rng, self.jobs), _ESTIMATES[self.metric], rng)
        communicate = self.metric == "stretch"
        platform = platform_of(tree, _TAPERED if communicate else "full")
        given = all_to_all(jobs, _RATIO) if communicate else jobs
        done = only_ran(schedule_files(platform, given, self.policy, self.seed, self.batsim))
        if communicate:
            recorded = dict(zip((job.id for job in jobs.jobs), runtimes(jobs, HOST_SPEED).tolist(), strict=True))
            values = stretches(done, recorded)
        else:
            values = tree_hops(done, platform.down, np.arange(tree.hosts))
        return {self.metric: float(values.mean()), "wait": float(waiting_times(done).mean())}


class Lengths(NamedTuple):
    """Sequences of so many jobs each."""

    sequences: int
    jobs: int


def priced_tasks(lengths: Sequence[Lengths], batsim: bool) -> list[Priced]:
    """All schedules that are compared; stretch on sequences of the first length only, because it takes longest.

    Args:
        lengths: of the sequences.
        batsim: whether stretch is compared under a real Batsim, too.
    """
    tasks: dict[Priced, None] = {}
    for metric, tree, *policies, _ in COMPARISONS:
        places = (False, True) if batsim and metric == "stretch" else (False,)
        for sequences, jobs in lengths[:1] if metric == "stretch" else lengths:
            for policy, i, there in product(policies, range(sequences), places):
                tasks[Priced(metric, tree, policy, _FIRST_SEED[metric] + i, jobs, there)] = None
    return list(tasks)


class Compared(NamedTuple):
    """A comparison on sequences of one length."""

    comparison: Comparison
    jobs: int
    batsim: bool
    values: tuple[Floats, Floats]  # means of the sequences: the policy's, and the reference's
    waits: tuple[Floats, Floats]  # seconds

    @property
    def less(self) -> Estimate:
        """By how many per cent the policy's mean is below the reference's: over pairs, in shares of the latter."""
        own, reference = self.values
        shares = 100 * (reference - own) / reference.mean()
        return bootstrap_mean(shares.reshape(-1, 1), np.random.default_rng(0))


def compared(found: Mapping[Priced, Result]) -> Iterator[Compared]:
    """All comparisons that there are results for."""
    for comparison in COMPARISONS:
        metric, tree, *policies, _ = comparison
        own_tasks = [task for task in found if (task.metric, task.tree) == (metric, tree)]
        for jobs, batsim in dict.fromkeys((task.jobs, task.batsim) for task in own_tasks):
            same = [task for task in own_tasks if (task.jobs, task.batsim) == (jobs, batsim)]
            rows = [[found[task] for task in same if task.policy == policy] for policy in policies]
            own, reference = (np.array([r[metric] for r in row]) for row in rows)
            waits = tuple(np.array([r["wait"] for r in row]) for row in rows)
            yield Compared(comparison, jobs, batsim, (own, reference), (waits[0], waits[1]))


def price_table(pairs: Sequence[Compared]) -> ResultTable:
    """A row for each comparison."""
    rows = []
    for pair in pairs:
        metric, tree, policy, reference, _ = pair.comparison
        digits = 2 if metric == "hops" else 3
        figures = [f"{values.mean():,.{digits}f}" for values in pair.values]
        waits = " / ".join(f"{values.mean():,.0f}" for values in pair.waits)
        less = f"{pair.less.value:+.2f} % ({pair.less.low:+.2f} to {pair.less.high:+.2f})"
        sequences = f"{len(pair.values[0])} of {pair.jobs}"
        metric += ", Batsim" if pair.batsim else ""
        rows.append((policy, reference, metric, tree, sequences, *figures, less, waits))
    columns = ("prices", "against", "metric", "tree", "sequences", "with prices", "without", "less (95 %)", "waits, s")
    return ResultTable("Prices that ship, on held-out jobs: pairs of schedules", columns, rows)
