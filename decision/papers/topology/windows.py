"""Tables III and IV of Lan et al. by the rules of their program: how much solvers take off the cost of windows.

An epoch begins at a random job with an empty cluster and lasts 100 periods of 60 s; its figure is the mean cost of a
window, which is 0 where no job on more than one host is placed. All solvers are given the same windows, and the exact
one's hosts are what jobs get. `rules` has the tree and the cost, and `decision.policies.window` says which
jobs a window takes. What is published as SA undoes no move that it rejects (`decision.placement.anneal`).
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from decision.compiling.draws import first_word
from decision.model.record import Floats, Ints
from decision.placement.anneal import PROGRAM_FIRST, Search, anneal_along
from decision.placement.exact import place_exactly
from decision.placement.repair import AT_RANDOM, StartRule
from decision.placement.tree import count_lowest
from decision.placement.windows import DYNAMIC, FREE, groups_of, place_in_turn, worth

from ..rlscheduler.rules import Sequence as Jobs
from .rules import DOWN

PERIODS, PERIOD = 100, 60.0  # seconds
_JOBS = 5  # on more than one host, at most in a window
_HOT, _COLD = 2500.0, 2.5  # thousandths of a hop, Table I


class Tree(NamedTuple):
    """A tree, and what a job costs on it in thousandths of a hop; `decision.placement.cost` has both formulas."""

    name: str
    down: Ints  # (L,) devices below each switch of a level, from the hosts up
    most: float  # what n hosts cost: (most * n - fixed - scale * Q / n), before the program rounds it down
    fixed: float
    scale: float

    @property
    def hosts(self) -> int:
        """All."""
        return int(np.prod(self.down))

    @property
    def switches(self) -> int:
        """On the lowest level."""
        return count_lowest(self.down)

    def cost(self, sizes: Ints, worth: float) -> float:
        """Of jobs of these sizes that are worth so much together (the sum of Q / n)."""
        return float(self.most * sizes.sum() - self.fixed * len(sizes) - self.scale * worth)


PROGRAM = Tree("program", DOWN, 2500.0, 500.0, 1000.0)
TEXT = Tree("text", np.array([10, 10, 10]), 6000.0, 2000.0, 2000.0)


class WindowJobs(NamedTuple):
    """Jobs to be placed on a sequence of free hosts."""

    tree: Tree
    groups: Ints  # (L - 1, N) of the sequence
    sizes: Ints  # (n,) hosts of each job
    word: np.uint64  # of random numbers


class Solver(NamedTuple):
    """A way to place the jobs of a window: it writes the entries of each job and says what the window is worth."""

    name: str
    solve: Callable[[WindowJobs, Ints], Floats]  # what it is worth after each of `steps`
    published: float | None = None  # mean cost in thousandths of a hop
    steps: tuple[int, ...] = (0,)  # after which it is looked at; one figure each


def annealing(
    name: str,
    steps: tuple[int, ...],
    undo: bool,
    repair: StartRule = AT_RANDOM,
    first: int = 0,
    published: float | None = None,
) -> Solver:
    """A search that is looked at after so many steps; with `undo` only its end is what a search of so many finds."""

    def solve(window: WindowJobs, held: Ints) -> Floats:
        search = Search(DYNAMIC, steps[-1], undo, first, window.tree.scale, _HOT, _COLD, repair)
        best = np.empty(steps[-1])
        down, switches = window.tree.down, window.tree.switches
        anneal_along(down, window.groups, switches, window.sizes, search, window.word, held, best)
        return best[np.array(steps) - 1]

    return Solver(name, solve, published, steps)


def _in_turn(strategy: int) -> Callable[[WindowJobs, Ints], Floats]:
    def solve(window: WindowJobs, held: Ints) -> Floats:
        place_in_turn(window.tree.down, window.groups, window.sizes, strategy, held)
        on = np.zeros(window.tree.switches, np.int64)
        return np.array([sum(worth(window.groups, on, held[j, :n]) for j, n in enumerate(window.sizes))])

    return solve


def _exactly(window: WindowJobs, held: Ints) -> Floats:
    return np.array([place_exactly(window.groups, window.tree.switches, window.sizes, held)])


NSA = 89_588.7  # published, of 500 steps; its network is not
IN_TURN = Solver("in turn", _in_turn(DYNAMIC), 105_023.5)
LARGEST_FIRST = Solver("any hosts, largest first", _in_turn(FREE))
EXACT = Solver("exact", _exactly, 83_092.3)
SOLVERS = (
    IN_TURN,
    annealing("SA of the program, 500", (500,), False, first=PROGRAM_FIRST, published=91_813.2),
    annealing("SA of the program, 1000", (1000,), False, first=PROGRAM_FIRST, published=90_809.7),
    annealing("SA that undoes, 500", (500,), True),
    annealing("SA that undoes, 1000", (1000,), True),
    LARGEST_FIRST,
    EXACT,
)


class Solved(NamedTuple):
    """An epoch."""

    costs: Floats  # mean of a window in thousandths of a hop, by solver and its steps
    seconds: Floats  # mean of a window with jobs on more than one host, by solver
    windows: list[WindowJobs]  # those


def solve_epoch(
    jobs: Jobs, epoch: int, solvers: Sequence[Solver], tree: Tree = PROGRAM, periods: int = PERIODS
) -> Solved:
    """Give all solvers the windows of an epoch; the last solver's hosts are used."""
    rng = np.random.default_rng(epoch)
    submit, runtime, size = jobs.submit, jobs.runtime, jobs.size
    arrived = int(rng.integers(0, len(submit) - 6 * PERIODS))
    now, free_at = submit[arrived], np.full(tree.hosts, -np.inf)  # seconds: when each host comes free
    waiting: list[tuple[int, int, int]] = []  # minus the periods waited, hosts, number
    costs, seconds = np.zeros(sum(len(solver.steps) for solver in solvers)), np.zeros(len(solvers))
    windows = []
    for number in range(periods):
        now += PERIOD
        while submit[arrived] < now:
            waiting.append((0, int(size[arrived]), arrived))
            arrived += 1
        free = np.flatnonzero(free_at <= now)
        waiting.sort()
        taken = _taken(waiting, len(free))
        wide = np.array([job for _, hosts, job in taken if hosts > 1], np.int64)
        if len(wide):
            groups = groups_of(tree.down, free // tree.down[0])
            window = WindowJobs(tree, groups, size[wide], np.uint64(first_word(epoch, number)))
            held, found, took = _solve(window, solvers)
            costs += found
            seconds += took
            windows.append(window)
            for j, job in enumerate(wide):
                free_at[free[held[j, : size[job]]]] = now + runtime[job]
        for _, hosts, job in taken:
            if hosts == 1:
                free_at[np.flatnonzero(free_at <= now)[0]] = now + runtime[job]
        waiting = [(waited - 1, hosts, job) for waited, hosts, job in waiting[len(taken) :]]
    return Solved(costs / periods, seconds / max(len(windows), 1), windows)


def _solve(window: WindowJobs, solvers: Sequence[Solver]) -> tuple[Ints, Floats, Floats]:
    """The entries by the last solver, what each says that the window costs, and how many seconds it took."""
    held = np.zeros((len(window.sizes), int(window.sizes.max())), np.int64)
    costs, seconds = [], []
    for solver in solvers:
        held[:] = 0
        began = perf_counter()
        worths = solver.solve(window, held)
        seconds.append(perf_counter() - began)
        costs += [window.tree.cost(window.sizes, each) for each in worths]
    return held, np.array(costs), np.array(seconds)


def _taken(waiting: list[tuple[int, int, int]], free: int) -> list[tuple[int, int, int]]:
    """The jobs that a window takes, from the front."""
    wide = 0
    for at, (_, hosts, _) in enumerate(waiting):
        wide += hosts > 1
        free -= hosts
        if free < 0 or wide > _JOBS:
            return waiting[:at]
    return waiting
