"""Windows: jobs that wait are collected for a period and placed together on a fat-tree.

The system of Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by
Neural Simulated Annealing", after the paper and, where that says nothing, its published program. At each multiple of
the period, jobs are taken from the queue, those that have waited for most periods first and of these the ones on fewest
hosts, until one does not fit or enough jobs on more than one host are taken. These are placed together
(`decision.placement.windows`); jobs on one host get the lowest hosts that are left. The others wait one period more.

Design
------
A window is a function of the time, the queue and the free hosts: how many periods a job has waited follows from its
submission, and random words from the seed and the window's number. So it is the same in the engine and behind messages,
and nothing need be remembered but which windows were decided and called for. One is called for only if the first job
that waits would fit: while it does not, nothing changes before something happens that wakes the policy anyway.
"""

import math

import numpy as np

from decision.compiling.entry import Entry
from decision.model.errors import ConfigError
from decision.model.interrupts import raise_interruption
from decision.model.names import nearest
from decision.model.platform import Platform
from decision.placement.bound import gap
from decision.placement.exact import MOST_JOBS
from decision.placement.highs import need_of_highs, place_by_highs
from decision.placement.repair import AT_BEST, AT_RANDOM
from decision.placement.tree import count_lowest
from decision.placement.windows import DYNAMIC, FREE, STATIC, groups_of
from decision.state.cluster import ClusterState, nb_hosts

from .above import read_learned
from .allocation import check_prices, check_tree
from .around import innermost
from .policy import Policy
from .prepared import CompiledPolicy
from .window_kernels import decide_by_window, start_priced
from .window_solvers import (
    SOLVE_LARGE,
    WindowMemory,
    anneal_window,
    exactly,
    in_turn,
    search_alone,
    search_window_with_bound,
)

STRATEGIES = {"scas": STATIC, "dcas": DYNAMIC, "free": FREE}
_SEQUENTIAL, _SA, _NSA, _EXACT = range(4)
_SOLVERS = {"sequential": _SEQUENTIAL, "sa": _SA, "nsa": _NSA, "exact": _EXACT}
_BEST = "best"  # in place of a network


_RATE = 50e6  # cells that are filled in a second at least, jobs that wrap around included


class Window(CompiledPolicy):
    """Jobs placed together, once in a period.

    Args:
        period: seconds from one window to the next; windows are at its multiples.
        jobs: on more than one host, at most in a window; 0 for all.
        strategy: scas or dcas, as in the paper, or free for any hosts; scas with the solver exact, and else dcas, by
            default.
        solver: sequential, sa, nsa (with dcas), or exact: with scas the optimum, with free the best found
            and a bound, so that `window_gap` says how far from the optimum that is at most.
        steps: moves of a search.
        undo: whether sa and nsa undo a move that they reject; false is the walk of the published program.
        repair: how nsa puts jobs back: a checkpoint that ``decision train repair`` made, or the name of a shipped one;
            or best, the start on which a job alone costs least, which needs no network, and is the default.
        limit: seconds that solver=exact takes for a window with strategy=scas, about; then the best that was found
            counts, and `window_gap` says how far from the optimum that is at most.
        prices: with solver=sequential and strategy=free: what free hosts are worth to later jobs, a checkpoint that
            ``decision train prices`` made; "": nothing.

    Raises:
        ConfigError: for a name or number that makes no sense, or a checkpoint that is not for windows.
        InputError: if the checkpoint cannot be read.
    """

    entry = decide_by_window
    needs_walltime = False

    def __init__(
        self,
        period: float = 60.0,
        jobs: int = 5,
        strategy: str = "",
        solver: str = "sa",
        steps: int = 500,
        undo: bool = True,
        repair: str = "",
        prices: str = "",
        limit: float = 1.0,
    ) -> None:
        _check_numbers(period, limit, jobs, steps)
        solving = _code("solver", solver, _SOLVERS)
        placing = _code("strategy", strategy or ("scas" if solver == "exact" else "dcas"), STRATEGIES)
        _check_strategy(solving, placing, strategy, jobs)
        if repair and solving != _NSA:
            raise ConfigError(f"policy window: option repair is for solver=nsa; found solver={solver}")
        self._used: WindowMemory | None = None
        if prices and (solving, placing) != (_SEQUENTIAL, FREE):
            raise ConfigError("policy window: option prices is for solver=sequential with strategy=free")
        self._prices, self._priced_by = read_learned("prices", prices) if prices else np.zeros((0, 0)), prices
        self._repair, self._levels = AT_RANDOM, 0
        if solving == _NSA:
            self._repair, self._levels = (AT_BEST, 0) if repair in ("", _BEST) else read_learned("network", repair)
        self._name = repair
        self._period, self._limit = float(period), limit
        cells = 2**62 if need_of_highs() else int(min(limit * _RATE, 2.0**62))
        self._numbers: dict[str, int] = {
            "most_jobs": jobs,
            "strategy": placing,
            "steps": steps,
            "undo": undo,
            "repair": self._repair.kind,
            "most_cells": cells,
        }
        self._solver, self._strategy = solving, placing

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform.

        Raises:
            ConfigError: if no tree of switches connects its hosts.
        """
        super().reset(platform, seed)
        check_tree("policy window", platform)
        check_prices(f"policy window: prices={self._priced_by}", self._prices, platform)
        if self._levels not in (0, len(platform.down)):
            given = f"{platform.path or 'the platform'} has {len(platform.down)}"
            raise ConfigError(f"policy window: repair={self._name} is for trees of {self._levels} levels, and {given}")
        self._numbers["seed"] = seed % 2**63
        self._down = np.array(platform.down)

    @property
    def called(self) -> tuple[Entry, ...]:
        """What it does in its own way."""
        if self._prices.size:
            return (start_priced,)
        if self._solver == _EXACT:
            return (search_window_with_bound if self._strategy == FREE else exactly,)
        return (in_turn if self._solver == _SEQUENTIAL else search_alone,)

    def memory_for(self, state: ClusterState, memory: WindowMemory | None = None) -> WindowMemory:
        """`memory`, which has room for any state; a new one where there is none yet."""
        if memory is not None:
            return memory
        hosts = nb_hosts(state)
        self._callback = SOLVE_LARGE.callback(self._solve_large)
        entry = "pricer" if self._prices.size else "placer"
        called = {"large_solver": self._callback.address, entry: self.called[0].address}
        self._used = WindowMemory(
            period=self._period,
            prices=self._prices,
            **self._numbers,
            **called,
            layers=self._repair.layers,
            weights=self._repair.weights,
            switches=np.zeros(hosts, np.int64),
            sizes=np.zeros(hosts, np.int64),
            starts=np.zeros(hosts, np.int64),
            gaps=np.zeros(2),
        )
        return self._used

    def window_gap(self) -> float:
        """As the function `window_gap`."""
        total, windows = (0.0, 0.0) if self._used is None else self._used.gaps.tolist()
        return total / windows if windows else math.nan

    def _solve_large(self, length: int, jobs: int, index: int) -> int:
        """Solve the window that the memory has, from the starts of a search on, and write where its jobs start."""
        used = self._used
        assert used is not None  # the memory with which the caller was asked
        try:
            raise_interruption()
            groups = groups_of(self._down, used.switches[:length])
            sizes = used.sizes[:jobs]
            held = np.zeros((jobs, sizes.max()), np.int64)
            anneal_window(self._down, groups, sizes, used, index, held)
            used.starts[:jobs] = held[:, 0]
            placed = place_by_highs(groups, count_lowest(self._down), sizes, used.starts[:jobs], self._limit)
            used.gaps[0] += gap(len(self._down), sizes, placed.found, placed.bound)
        except BaseException as error:  # nothing can be raised through the kernel
            self.raised = error
            return 0
        return 1


def window_gap(policy: Policy) -> float:
    """How many more hops the windows of a run have cost than they must, at most, as a share: the mean over windows.

    nan for other policies, and for windows whose solver knows no bound.
    """
    inner = innermost(policy)
    return inner.window_gap() if isinstance(inner, Window) else math.nan


def _check_numbers(period: float, limit: float, jobs: int, steps: int) -> None:
    for name, value in (("period", period), ("limit", limit)):
        if not 0 < value < math.inf:
            raise ConfigError(f"policy window: option {name}={value:g} must be finite and above 0")
    for name, number in (("jobs", jobs), ("steps", steps)):
        if number < 0:
            raise ConfigError(f"policy window: option {name}={number} must be at least 0")


def _check_strategy(solving: int, placing: int, strategy: str, jobs: int) -> None:
    """Refuse a solver that does not solve so."""
    if solving == _EXACT and placing == DYNAMIC:
        raise ConfigError(f"policy window: solver=exact is for strategy=scas or free; found strategy={strategy}")
    if solving == _EXACT and placing == STATIC and not 1 <= jobs <= MOST_JOBS and (need := need_of_highs()):
        raise ConfigError(f"policy window: solver=exact with jobs={jobs} (above {MOST_JOBS}, or 0: all) {need}")
    if solving == _NSA and placing != DYNAMIC:
        raise ConfigError(f"policy window: solver=nsa is for strategy=dcas; found strategy={strategy}")


def _code(option: str, value: str, known: dict[str, int]) -> int:
    if value not in known:
        there = f"{nearest(value, known)} (there are {', '.join(known)})"
        raise ConfigError(f"policy window: there is no {option} {value!r}{there}")
    return known[value]
