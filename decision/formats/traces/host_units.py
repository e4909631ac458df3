"""What a host of a workload is: a node, or a core where jobs share nodes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from decision.model.column import Labelled
from decision.model.errors import ConfigError
from decision.model.record import Floats

from .records import RecordTable
from .values import node_names

UNITS = ("auto", "nodes", "cores", "gpus")
SHARED = 0.02  # of the jobs may share a node before nodes are no unit
_PAIRS = 4_000_000  # of a job and a node that are looked at together


class HostUnit(NamedTuple):
    """What a host of the workload is."""

    name: str
    reason: str
    changes: int | None  # jobs that have another size in the other unit
    size: Floats  # (n,) of each job


def choose_unit(table: RecordTable, unit: str) -> HostUnit:
    """The unit that was asked for, or the one that fits the jobs. Raises ConfigError."""
    if unit not in UNITS:
        raise ConfigError(f"unit {unit!r}: must be one of {', '.join(UNITS)}", field="unit")
    nodes, cores = table.numbers["nodes"], table.numbers["cores"]
    known = ~np.isnan(nodes) & ~np.isnan(cores)
    changes = int((nodes[known] != cores[known]).sum()) if known.any() else None
    if unit != "auto":
        size = table.numbers[unit]
        if len(size) and np.isnan(size).all():
            raise ConfigError(f"the log does not say how many {unit} its jobs had; choose another unit", field="unit")
        return HostUnit(unit, "as asked for", changes, size)
    if np.isnan(cores).all() and np.isnan(nodes).all() and not np.isnan(table.numbers["gpus"]).all():
        return HostUnit("gpus", "neither cores nor nodes are known", changes, table.numbers["gpus"])
    if np.isnan(cores).all():
        return HostUnit("nodes", "cores are not known", changes, nodes)
    if np.isnan(nodes).all():
        return HostUnit("cores", "nodes are not known", changes, cores)
    share = shared_nodes(table)
    if share is None:
        return HostUnit("cores", "which nodes a job had is not known, so they may have been shared", changes, cores)
    compared = "at most" if share <= SHARED else "more than"
    reason = f"{100 * share:.1f} % of the jobs shared a node at one time, {compared} {100 * SHARED:.0f} %"
    return HostUnit("nodes", reason, changes, nodes) if share <= SHARED else HostUnit("cores", reason, changes, cores)


def shared_nodes(table: RecordTable) -> float | None:
    """The share of the jobs that had a node together with another job at one time; None where nodes are not known."""
    lists = table.texts["node_list"]
    shares = sharing(lists, table.numbers["start"], table.numbers["run"])
    if shares is None:
        return None
    has_nodes = np.array([bool(node_names(text)) for text in lists.labels])
    return float(shares[has_nodes[lists.codes]].mean())


def sharing(lists: Labelled[str], start: Floats, run: Floats) -> np.ndarray | None:
    """Which jobs had a node together with another job at one time, (n,) bool; None where nodes are not known.

    Args:
        lists: (n,) each job's nodes, as a batch system writes them.
        start: (n,) seconds.
        run: (n,) seconds.
    """
    codes: dict[str, int] = {}
    of_list = [
        np.array([codes.setdefault(node, len(codes)) for node in node_names(text)], np.int32) for text in lists.labels
    ]
    counts = np.array([len(nodes) for nodes in of_list], np.int64)[lists.codes]
    if not counts.any():
        return None
    shares = np.zeros(len(start), bool)
    groups = max(1, int(counts.sum() // _PAIRS))
    for group in range(groups):
        chosen = of_list if groups == 1 else [nodes[nodes % groups == group] for nodes in of_list]
        _mark_shared(start, run, lists.codes, chosen, shares)
    return shares


def _mark_shared(starts: Floats, runs: Floats, codes: np.ndarray, of_list: Sequence[np.ndarray], shares: Any) -> None:
    """Mark the jobs that have one of these nodes while another job has it."""
    counts = np.array([len(nodes) for nodes in of_list])[codes]
    job = np.repeat(np.arange(len(codes)), counts)
    if not len(job):
        return
    node = np.concatenate([of_list[code] for code in codes.tolist()])
    start = starts[job]
    order = np.lexsort((start, node))
    node, job, start = node[order], job[order], start[order]
    end = start + runs[job]
    # the latest end so far on the node: ends are lifted by the node's number so that a running maximum starts again
    span = float(end.max() - start.min()) + 1.0
    lifted = end - start.min() + node * span
    before = np.concatenate([[-1.0], np.maximum.accumulate(lifted)[:-1]])
    overlaps = np.flatnonzero(before > start - start.min() + node * span)
    shares[job[overlaps]] = True
    holder = np.maximum.accumulate(np.where(lifted > before, np.arange(len(job)), 0))
    shares[job[holder[overlaps - 1]]] = True
