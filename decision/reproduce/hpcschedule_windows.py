"""Tables III and IV of Lan et al. by the rules of their program: how much solvers take off the cost of windows.

An epoch begins at a random job with an empty cluster and lasts 100 periods of 60 s; its figure is the mean cost of a
window, which is 0 where no job on more than one host is placed. All solvers are given the same windows, and the exact
one's hosts are what jobs get. `hpcschedule_rules` has the tree and the cost, and `decision.policies.window` says which
jobs a window takes. What is published as SA undoes no move that it rejects (`decision.placement.anneal`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from decision.draws import first_word
from decision.model.record import Floats, Ints
from decision.placement.anneal import PROGRAM_FIRST, Search, anneal
from decision.placement.cost import program_cost, square_sum
from decision.placement.exact import place_exactly
from decision.placement.windows import DYNAMIC, FREE, groups_of, place_in_turn

from .hpcschedule_rules import DOWN
from .rlscheduler_rules import Sequence as Jobs

PERIODS, PERIOD = 100, 60.0  # seconds
_JOBS = 5  # on more than one host, at most in a window
_HOSTS, _SWITCHES = int(np.prod(DOWN)), int(np.prod(DOWN[1:]))
_SCALE, _HOT, _COLD = 1000.0, 2500.0, 2.5  # thousandths of a hop, Table I


class Solver(NamedTuple):
    """A way to place the jobs of a window, and what was published of it."""

    name: str
    solve: Callable[[Ints, Ints, Ints, np.uint64], object]  # groups, sizes, entries to be written, word
    published: float | None = None  # mean cost in thousandths of a hop


def _annealing(steps: int, undo: bool, first: int = 0) -> Callable[[Ints, Ints, Ints, np.uint64], object]:
    search = Search(DYNAMIC, steps, undo, first, _SCALE, _HOT, _COLD)
    return lambda groups, sizes, held, word: anneal(DOWN, groups, _SWITCHES, sizes, search, word, held)


def _in_turn(strategy: int) -> Callable[[Ints, Ints, Ints, np.uint64], object]:
    return lambda groups, sizes, held, word: place_in_turn(DOWN, groups, sizes, strategy, held)


NSA = 89_588.7  # published, of 500 steps; its network is not
SOLVERS = (
    Solver("in turn", _in_turn(DYNAMIC), 105_023.5),
    Solver("SA of the program, 500", _annealing(500, False, PROGRAM_FIRST), 91_813.2),
    Solver("SA of the program, 1000", _annealing(1000, False, PROGRAM_FIRST), 90_809.7),
    Solver("SA that undoes, 500", _annealing(500, True)),
    Solver("SA that undoes, 1000", _annealing(1000, True)),
    Solver("any hosts, largest first", _in_turn(FREE)),
    Solver("exact", lambda groups, sizes, held, word: place_exactly(groups, _SWITCHES, sizes, held), 83_092.3),
)


def window_costs(jobs: Jobs, epoch: int, solvers: Sequence[Solver] = SOLVERS) -> Floats:
    """The mean cost of a window in an epoch, in thousandths of a hop, by solver; the last solver's hosts are used."""
    rng = np.random.default_rng(epoch)
    submit, runtime, size = jobs.submit, jobs.runtime, jobs.size
    arrived = int(rng.integers(0, len(submit) - 6 * PERIODS))
    now, free_at = submit[arrived], np.full(_HOSTS, -np.inf)  # seconds: when each host comes free
    waiting: list[tuple[int, int, int]] = []  # minus the periods waited, hosts, number
    costs = np.zeros(len(solvers))
    for window in range(PERIODS):
        now += PERIOD
        while submit[arrived] < now:
            waiting.append((0, int(size[arrived]), arrived))
            arrived += 1
        free = np.flatnonzero(free_at <= now)
        waiting.sort()
        taken = _taken(waiting, len(free))
        wide = [number for _, hosts, number in taken if hosts > 1]
        if wide:
            held = np.zeros((len(wide), int(size[wide].max())), np.int64)
            groups = groups_of(DOWN, free // DOWN[0])
            for i, solver in enumerate(solvers):
                held[:] = 0
                solver.solve(groups, size[wide], held, np.uint64(first_word(epoch, window)))
                costs[i] += sum(_cost(free[held[j, : size[job]]]) for j, job in enumerate(wide))
            for j, job in enumerate(wide):
                free_at[free[held[j, : size[job]]]] = now + runtime[job]
        for _, hosts, job in taken:
            if hosts == 1:
                free_at[np.flatnonzero(free_at <= now)[0]] = now + runtime[job]
        waiting = [(periods - 1, hosts, number) for periods, hosts, number in waiting[len(taken) :]]
    return costs / PERIODS


def _taken(waiting: list[tuple[int, int, int]], free: int) -> list[tuple[int, int, int]]:
    """The jobs that a window takes, from the front."""
    wide = 0
    for at, (_, hosts, _) in enumerate(waiting):
        wide += hosts > 1
        free -= hosts
        if free < 0 or wide > _JOBS:
            return waiting[:at]
    return waiting


def _cost(hosts: Ints) -> int:
    on_switch = np.bincount(hosts // DOWN[0], minlength=_SWITCHES)
    return int(program_cost(len(DOWN), len(hosts), square_sum(DOWN, on_switch)))
