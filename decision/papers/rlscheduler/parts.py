"""What the experiment `rlscheduler` simulates: heuristics by three sets of rules, on sequences of two logs."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from decision.analysis import metrics
from decision.formats import load_swf
from decision.generate.clusters import simple_cluster
from decision.model.errors import InputError
from decision.model.workload import Workload
from decision.runs.chunks import file_digest
from decision.runs.planned_runs import cut
from decision.runs.store import Result
from decision.simulation import simulate_workloads

from . import rules as simulator

SEQUENCE_LENGTH = 1024  # jobs in a sequence
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)  # the ten sequences' first jobs, from 0
TABLE_ORDERS = ("fcfs", "wfp3", "unicep", "sjf", "f1")
ORDERS_BY_WAIT = ("wfp3", "unicep")  # those that look at waiting times
_AT_ONCE = 50  # sequences in one part

Rules = Literal["rlscheduler", "true waits", "standard"]


class HeuristicPart(msgspec.Struct, frozen=True, kw_only=True):
    """One heuristic on some sequences of a trace."""

    trace: Path
    digest: str
    rules: Rules
    order: str
    backfilling: bool
    starts: tuple[int, ...]

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        fields = msgspec.structs.asdict(self)
        del fields["trace"]
        return {"experiment": "rlscheduler-table", "length": SEQUENCE_LENGTH, **fields}


def parts_of(path: Path, sequences: int) -> Iterator[HeuristicPart]:
    """All parts of a log: the ten sequences by all rules, and so many random ones by standard rules.

    Raises:
        InputError: if it is not a log or too short.
    """
    jobs, needed = len(_load(path).jobs), max(STARTS) + SEQUENCE_LENGTH
    if jobs < needed:
        raise InputError(f"{path}: has {jobs:,} jobs, but the sequences need {needed:,}; take the log of 10,000")
    drawn = np.random.default_rng(0).integers(0, jobs - SEQUENCE_LENGTH + 1, sequences).tolist()
    chunks = [tuple(drawn[at : at + _AT_ONCE]) for at in range(0, sequences, _AT_ONCE)]
    name = file_digest(path)
    for backfilling in (False, True):
        for order in TABLE_ORDERS:
            work: list[tuple[Rules, tuple[int, ...]]] = [("rlscheduler", STARTS), ("standard", STARTS)]
            work += [("true waits", STARTS)] if order in ORDERS_BY_WAIT else []
            for rules, starts in work + [("standard", chunk) for chunk in chunks]:
                yield HeuristicPart(
                    trace=path, digest=name, rules=rules, order=order, backfilling=backfilling, starts=starts
                )


def simulate_part(part: HeuristicPart) -> Result:
    """Each sequence's mean bounded slowdown."""
    slowdown = _by_standard_rules if part.rules == "standard" else _by_their_rules
    return {"bounded_slowdowns": [slowdown(part, start) for start in part.starts]}


def _by_their_rules(part: HeuristicPart, first: int) -> float:
    jobs = simulator.part(_read_sequence(part.trace), first, SEQUENCE_LENGTH)
    true_waits = part.rules == "true waits"
    start = simulator.rule_starts(jobs, part.order, part.backfilling, _load(part.trace).nb_res, true_waits)
    return simulator.mean_bounded_slowdown(jobs, start)


def _by_standard_rules(part: HeuristicPart, first: int) -> float:
    log = _load(part.trace)
    policy = f"{part.order}+easy" if part.backfilling else part.order
    record = simulate_workloads(simple_cluster(log.nb_res), [cut(log, first, SEQUENCE_LENGTH)], policy)
    return metrics.mean(metrics.bounded_slowdowns(record.jobs))


_read_sequence = lru_cache(maxsize=2)(simulator.read_sequence)


@lru_cache(maxsize=2)
def _load(path: Path) -> Workload:
    return load_swf(path, missing_walltime="runtime")
