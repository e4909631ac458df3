"""The best window by the static strategy where `exact` would need too many subsets: a program for HiGHS.

The set packing of Lan et al. with what its printing leaves out: a binary for each size and each entry at which a job of
that size may begin, a row for each entry, which no two jobs may have, and a row for each size, which says how many jobs
have it. HiGHS (Huangfu and Hall) solves it on one thread, to the end: then the same window gives the same hosts. Where
time ends first, the best that was found counts, and what none exceeds is known.
"""

import importlib.util
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import InternalError, how_to_install
from decision.model.record import Floats, Ints

from .exact import kinds_of

if TYPE_CHECKING:
    import highspy

_CHOSEN = 0.5  # binaries above it are 1
_LEAST = 0.01  # seconds that HiGHS gets in any case


def need_of_highs() -> str:
    """What to install so that `place_by_highs` can be called; empty where it is there."""
    return "" if importlib.util.find_spec("highspy") else f"needs highspy: {how_to_install('exact')}"


class Packed(NamedTuple):
    """What a window is worth: sums of Q / n."""

    found: float
    bound: float  # that no window exceeds: `found` where it is the best


def place_by_highs(groups: Ints, switches: int, sizes: Ints, starts: Ints, limit: float = math.inf) -> Packed:
    """Write the entry at which each job begins in a best window, with wrap-around.

    Args:
        groups: (L - 1, N) of the sequence (`decision.placement.windows.groups_of`).
        switches: lowest switches of the tree.
        sizes: (n,) hosts of each job, in all no more than there are entries.
        starts: (n,) where jobs could begin; receives where they do. Of jobs of one size, the first has the lowest.
        limit: seconds, about.

    Raises:
        InternalError: if HiGHS ends without an optimum, and not for want of time.
    """
    kinds = kinds_of(groups, switches, sizes)
    at_first = np.zeros(kinds.worth.shape, bool)
    at_first[np.searchsorted(kinds.size, sizes), starts] = True
    values, bound = _solve(kinds.size, kinds.number, kinds.worth, at_first, limit)
    chosen = values.reshape(kinds.worth.shape) > _CHOSEN
    if kinds.worth[chosen].sum() < kinds.worth[at_first].sum():  # nothing was found in time
        chosen = at_first
    for kind, size in enumerate(kinds.size.tolist()):
        starts[sizes == size] = np.flatnonzero(chosen[kind])
    found = float(kinds.worth[chosen].sum())
    return Packed(found, max(bound, found))


def binary_program(
    worth: Floats, lower: Floats, upper: Floats, places: Sequence[Ints], values: Floats, by_row: bool
) -> "highspy.HighsLp":
    """A program whose binaries, (V,), are worth as much as possible, each row's sum being between its bounds, (R,).

    `places` are the binaries of each row or, not `by_row`, the rows of each binary; `values` the factors there.
    """
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(worth), len(lower)
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = worth
    program.col_lower_, program.col_upper_ = np.zeros(len(worth)), np.ones(len(worth))
    program.row_lower_, program.row_upper_ = lower, upper
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(worth)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise if by_row else highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(each) for each in places])])
    program.a_matrix_.index_ = np.concatenate(places)
    program.a_matrix_.value_ = values
    return program


def _solve(size: Ints, number: Ints, worth: Floats, at_first: NDArray[np.bool_], limit: float) -> tuple[Floats, float]:
    """The binaries, (K * N,), a size after the other, and what they are worth at most."""
    began = time.monotonic()
    import highspy

    kinds, length = worth.shape
    rows = [
        np.append((start + np.arange(size[kind])) % length, length + kind)
        for kind in range(kinds)
        for start in range(length)
    ]
    lower, upper = np.concatenate([np.full(length, -math.inf), number]), np.concatenate([np.ones(length), number])
    program = binary_program(worth.ravel(), lower, upper, rows, np.ones(sum(map(len, rows))), by_row=False)
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-9)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    known = highspy.HighsSolution()
    known.col_value = at_first.ravel().astype(float).tolist()
    solver.setSolution(known)
    solver.setOptionValue("time_limit", max(limit - (time.monotonic() - began), _LEAST))
    solver.run()
    status = solver.getModelStatus()
    if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit):
        raise InternalError(f"HiGHS found no best window: {solver.modelStatusToString(status)}")
    bound = solver.getInfo().mip_dual_bound if status == highspy.HighsModelStatus.kTimeLimit else -math.inf
    values = np.array(solver.getSolution().col_value)
    most = float((worth.max(1) * number).sum())  # of each job alone
    return values if len(values) else np.zeros(kinds * length), min(bound, most)
