"""The best window by the static strategy where `exact` would need too many subsets: a program for HiGHS.

The set packing of Lan et al. with what its printing leaves out: a binary for each size and each entry at which a job of
that size may begin, a row for each entry, which no two jobs may have, and a row for each size, which says how many jobs
have it. HiGHS (Huangfu and Hall) solves it to the end, on one thread, so that the same window gives the same hosts.
"""

import importlib.util
import math
from typing import Any

import numpy as np

from decision.model.errors import InternalError, how_to_install
from decision.model.record import Floats, Ints

from .exact import kinds_of

_CHOSEN = 0.5  # binaries above it are 1


def need_of_highs() -> str:
    """What to install so that `place_by_highs` can be called; empty where it is there."""
    return "" if importlib.util.find_spec("highspy") else f"needs highspy: {how_to_install('exact')}"


def place_by_highs(groups: Ints, switches: int, sizes: Ints, starts: Ints) -> float:
    """Write the entry at which each job begins in a best window, with wrap-around.

    Args:
        groups: (L - 1, N) of the sequence (`decision.placement.windows.groups_of`).
        switches: lowest switches of the tree.
        sizes: (n,) hosts of each job, in all no more than there are entries.
        starts: (n,) receives the entries; of jobs of one size, the first has the lowest.

    Returns:
        What it is worth: the sum of Q / n.

    Raises:
        InternalError: if HiGHS ends without an optimum.
    """
    kinds = kinds_of(groups, switches, sizes)
    chosen = _solve(kinds.size, kinds.number, kinds.worth).reshape(kinds.worth.shape)
    for kind, size in enumerate(kinds.size.tolist()):
        starts[sizes == size] = np.flatnonzero(chosen[kind])
    return float(kinds.worth[chosen].sum())


def _solve(size: Ints, number: Ints, worth: Floats) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which binaries are 1: (K * N,), a size after the other."""
    import highspy

    kinds, length = worth.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = kinds * length, length + kinds
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = worth.ravel()
    program.col_lower_, program.col_upper_ = np.zeros(kinds * length), np.ones(kinds * length)
    program.row_lower_ = np.concatenate([np.full(length, -math.inf), number])
    program.row_upper_ = np.concatenate([np.ones(length), number])
    program.integrality_ = [highspy.HighsVarType.kInteger] * (kinds * length)
    rows = [
        np.append((start + np.arange(size[kind])) % length, length + kind)
        for kind in range(kinds)
        for start in range(length)
    ]
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(each) for each in rows])])
    program.a_matrix_.index_ = np.concatenate(rows)
    program.a_matrix_.value_ = np.ones(len(program.a_matrix_.index_))
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 1e-9)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise InternalError(f"HiGHS found no best window: {solver.modelStatusToString(solver.getModelStatus())}")
    return np.array(solver.getSolution().col_value) > _CHOSEN
