"""Models of a window by the static strategy: the paper's rows, set packing, and the dynamic program.

The paper's rows (3) to (5) have a binary for each job and start and one for each job and entry, and a row for each
start and each entry that it takes. As printed they lack that no entry is of two jobs; the published program has that,
and that a job has no more entries than it needs. Set packing (`decision.placement.highs`) has a binary for each size
and start, and a row for each entry. Both are solved by HiGHS, where the paper has SCIP.
"""

import math
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from decision.model.record import Floats, Ints
from decision.placement.exact import kinds_of, place_exactly
from decision.placement.highs import binary_program, need_of_highs, place_by_highs
from decision.runs.tasks import Result

from .windows import WindowJobs

if TYPE_CHECKING:
    import highspy

DYNAMIC_PROGRAM, _PACKING, _ROWS = "dynamic program", "set packing, HiGHS", "the paper's rows, HiGHS"


def solve_models(windows: Sequence[WindowJobs], limit: float) -> Result:
    """Seconds and worth of each window by each model; no worth where the time was over.

    Args:
        windows: to be placed.
        limit: seconds for a window by the paper's rows.
    """
    models: dict[str, Callable[[WindowJobs], float | None]] = {DYNAMIC_PROGRAM: _by_program}
    if not need_of_highs():
        models |= {_PACKING: _by_packing, _ROWS: lambda window: _by_rows(window, limit)}
    found: Result = {}
    for name, solve in models.items():
        solve(windows[0])  # what is compiled or loaded first does not count
        seconds, worths = [], []
        for window in windows:
            began = perf_counter()
            worths.append(solve(window))
            seconds.append(perf_counter() - began)
        found[name] = {"seconds": seconds, "worths": worths}
    return found


def _by_program(window: WindowJobs) -> float:
    held = np.zeros((len(window.sizes), int(window.sizes.max())), np.int64)
    return float(place_exactly(window.groups, window.tree.switches, window.sizes, held))


def _by_packing(window: WindowJobs) -> float:
    starts = np.cumsum(window.sizes) - window.sizes
    return place_by_highs(window.groups, window.tree.switches, window.sizes, starts).found


def _by_rows(window: WindowJobs, limit: float) -> float | None:
    import highspy

    kinds = kinds_of(window.groups, window.tree.switches, window.sizes)
    worth = kinds.worth[np.searchsorted(kinds.size, window.sizes)]  # (jobs, N)
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", limit), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(option, value)
    solver.passModel(_rows(window.sizes, worth))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(solver.getInfo().objective_function_value)


def _rows(sizes: Ints, worth: Floats) -> "highspy.HighsLp":
    """The program: first a binary y for each job and start, then an x for each job and entry."""
    jobs, length = worth.shape
    y, x = np.arange(jobs * length).reshape(jobs, length), np.arange(jobs * length).reshape(jobs, length) + worth.size
    rows: list[tuple[Ints, list[float], float, float]] = []  # columns, coefficients, lower, upper
    for job, size in enumerate(sizes.tolist()):
        rows.append((y[job], [1.0] * length, 1.0, 1.0))
        rows.append((x[job], [1.0] * length, size, size))
        for start in range(length):
            for entry in (start + np.arange(size)) % length:
                rows.append((np.array([y[job, start], x[job, entry]]), [1.0, -1.0], -math.inf, 0.0))
    rows += [(x[:, entry], [1.0] * jobs, -math.inf, 1.0) for entry in range(length)]
    places, values, lower, upper = zip(*rows, strict=True)
    worth_of_all = np.concatenate([worth.ravel(), np.zeros(worth.size)])
    return binary_program(worth_of_all, np.array(lower), np.array(upper), places, np.concatenate(values), by_row=True)
