"""Results of Lan et al.: FCFS and backfilling of Fig. 6 to the digit, better hosts without windows, and solvers.

The list of jobs is ``hpcschedule_jobs.txt``, from the program that the authors published; `rules` says by
which rules its figures come out, and `windows` what solvers are compared on.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decision.analysis.statistics import bootstrap_mean
from decision.model.record import Floats

from ..findings import Findings, ResultTable
from .rules import EPOCHS, Epoch, Place, best_of_tree, contiguous, lowest, read_job_list, simulate_epoch
from .windows import NSA, SOLVERS, solve_epoch

HPCSCHEDULE_JOBS = "hpcschedule_jobs.txt"
PUBLISHED_EPOCHS = {  # cost in thousandths of a hop and wait in seconds, by epoch
    "FCFS": (
        (35077, 35382, 35509, 35123, 32324, 35506, 36387, 33129, 34388, 36199),
        (93, 207, 195, 36, 100, 399, 71, 4, 251, 298),
    ),
    "BF": (
        (35077, 35354, 35432, 34904, 32619, 35415, 36387, 33129, 34359, 36249),
        (93, 204, 195, 35, 97, 394, 71, 4, 250, 290),
    ),
}
WINDOWS = {"windows of 10 s": (31352, 186), "windows of 60 s": (30599, 259)}  # means of the published files
PLACES: dict[str, Place] = {"first-fit": lowest, "contiguous": contiguous, "tree": best_of_tree}
_NOTES = """\
Cost in thousandths of a hop and wait in seconds, means of {epochs} epochs of 300 jobs. {same} of the 40 published \
figures come out to the digit, by the rules of the published program: 25 pods of 4 switches of 10 hosts, 1, 3 or 5 \
hops, each pair once. The second table changes nothing but which free hosts a job gets under FCFS (95 % bootstrap \
intervals over epochs), next to the published means of windows with NSA, which wait for the cost that they save: the \
best hosts of the tree, one job at a time, cost {tree:,.0f} at the waiting time of FCFS, {than} than all windows.
The third table has the mean cost of a window over {windows} epochs of 100 periods, the same windows for all solvers, \
with 95 % intervals of what they cost less than jobs in turn. {sa}"""
SA_NOTE = """\
The published SA undoes no move that it rejects. One that does costs {undone:.2%} less with 500 steps than the \
published one with 1,000, where NSA-500 is published as 1.34 % less: undoing alone gives {more} than the published \
network. The best static window, which takes a fraction of a millisecond, costs {exact:.2%} less still."""


def reproduce_hpcschedule(
    data: Path, window_epochs: int = EPOCHS, progress: Callable[[int, int], None] = lambda done, of: None
) -> Findings:
    """Simulate all epochs.

    Args:
        data: folder of the list of jobs.
        window_epochs: epochs of the third table.
        progress: is called with how many of them of how many are done.

    Raises:
        InputError: if the list is not there or is another one.
    """
    jobs = read_job_list(data / HPCSCHEDULE_JOBS)
    epochs = {name: [simulate_epoch(jobs, epoch, name == "BF") for epoch in range(EPOCHS)] for name in PUBLISHED_EPOCHS}
    placed = {
        name: epochs["FCFS"] if place is lowest else [simulate_epoch(jobs, e, False, place) for e in range(EPOCHS)]
        for name, place in PLACES.items()
    }
    costs = np.empty((window_epochs, len(SOLVERS)))
    for epoch in range(window_epochs):
        costs[epoch] = solve_epoch(jobs, epoch, SOLVERS).costs
        progress(epoch + 1, window_epochs)
    tree = float(np.mean([epoch.cost for epoch in placed["tree"]]))
    notes = _NOTES.format(
        epochs=EPOCHS,
        same=sum(_as_published(name, epochs[name]) for name in PUBLISHED_EPOCHS),
        tree=tree,
        windows=window_epochs,
        sa=_about_annealing(costs),
        than="less" if tree < min(cost for cost, _ in WINDOWS.values()) else "not less",
    )
    return Findings((_by_epoch(epochs), _by_placement(placed), _by_solver(costs)), notes)


def _as_published(name: str, epochs: Sequence[Epoch]) -> int:
    """How many figures are those that were published."""
    costs, waits = PUBLISHED_EPOCHS[name]
    found = zip(epochs, costs, waits, strict=True)
    return sum((int(epoch.cost) == cost) + (int(epoch.wait) == wait) for epoch, cost, wait in found)


def _by_epoch(epochs: dict[str, list[Epoch]]) -> ResultTable:
    columns = ["epoch", *(f"{name} {what}" for name in epochs for what in ("cost", "published", "wait", "published"))]
    rows = []
    for number in range(EPOCHS):
        row = [str(number + 1)]
        for name, found in epochs.items():
            costs, waits = PUBLISHED_EPOCHS[name]
            figures = int(found[number].cost), costs[number], int(found[number].wait), waits[number]
            row += [f"{figure:,}" for figure in figures]
        rows.append(row)
    return ResultTable("Fig. 6, by the program's rules", columns, rows)


def _by_placement(placed: dict[str, list[Epoch]]) -> ResultTable:
    rows = []
    for name, epochs in placed.items():
        cost = bootstrap_mean(np.array([[epoch.cost] for epoch in epochs]), np.random.default_rng(0))
        wait = np.mean([epoch.wait for epoch in epochs])
        rows.append((f"FCFS, {name}", f"{cost[0]:,.0f}", f"{cost[1]:,.0f} - {cost[2]:,.0f}", f"{wait:,.0f}"))
    rows += [(f"{name}, NSA (published)", f"{cost:,}", "", f"{wait:,}") for name, (cost, wait) in WINDOWS.items()]
    return ResultTable("which hosts", ("", "cost", "95 %", "wait"), rows)


def _by_solver(costs: Floats) -> ResultTable:
    """Of (epochs, solvers) mean costs."""
    rows, first = [], SOLVERS[0].published or 0.0
    for i, solver in enumerate(SOLVERS):
        saved = bootstrap_mean(100 * (1 - costs[:, i] / costs[:, 0])[:, None], np.random.default_rng(0))
        published = ("", "") if solver.published is None else _published(solver.published, first)
        interval = f"{saved[0]:.1f} ({saved[1]:.1f} - {saved[2]:.1f})" if i else ""
        rows.append((solver.name, f"{costs[:, i].mean():,.0f}", interval, *published))
    rows.append(("NSA of 500 steps", "", "", *_published(NSA, first)))
    return ResultTable("Tables III and IV", ("", "cost", "% less (95 %)", "published", "% less"), rows)


def _published(cost: float, first: float) -> tuple[str, str]:
    return f"{cost:,.0f}", f"{100 * (1 - cost / first):.1f}" if cost != first else ""


def _about_annealing(costs: Floats) -> str:
    mean = dict(zip((solver.name for solver in SOLVERS), costs.mean(axis=0), strict=True))
    undone = 1 - mean["SA that undoes, 500"] / mean["SA of the program, 1000"]
    return SA_NOTE.format(
        undone=undone,
        more="more" if undone > 0.0134 else "not more",
        exact=1 - mean["exact"] / mean["SA that undoes, 500"],
    )
