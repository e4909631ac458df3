"""What places the jobs of a window: one after the other, by a search, or exactly."""

from enum import IntEnum

from decision.compiling.bundle import F4, F8, I8, Bundle, F8x2, I8x2
from decision.compiling.draws import first_word
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.placement.anneal import PROGRAM_FIRST, Search, anneal
from decision.placement.bound import gap, search_with_bound
from decision.placement.exact import MOST_SUBSETS, nb_subsets, place_exactly
from decision.placement.repair import StartRule
from decision.placement.tree import count_lowest
from decision.placement.windows import place_in_turn


class WindowCount(IntEnum):
    """Positions in `WindowMemory.counts`."""

    JOBS = 0  # on more than one host, at most in a window; 0 for all
    STRATEGY = 1
    SOLVER = 2
    STEPS = 3
    UNDO = 4
    SEED = 5
    LAST = 6  # number of the last window that was decided, -1 for none
    DUE = 7  # number of the window that was called for, -1 for none
    REPAIR = 8  # `decision.placement.repair.StartRule.kind`
    LARGE = 9  # address of what solves windows exactly that have too many subsets
    CELLS = 10  # of the dynamic program's table; windows that need more are solved in the same way
    PLACER = 11  # address of the solver
    PRICER = 12  # address of what starts jobs where hosts have a price, 0 where they have none


_HOP = 1000.0  # cost of a hop, Table I of the paper
_HOT, _COLD = 2500.0, 2.5  # temperatures, Table I


class WindowMemory(Bundle):
    """What the policy is and remembers from call to call."""

    period: F8  # (1,) seconds
    prices: F8x2  # (L - 1, N_FEATURES) weights of `decision.placement.prices`; empty where hosts have no price
    counts: I8  # (13,) at each `WindowCount`
    layers: I8x2  # (n, 5) of the network of nsa
    weights: F4  # (P,) of the network
    switches: I8  # (H,) of a window that has too many subsets: the lowest switch of each entry,
    sizes: I8  # (H,) the hosts of each job,
    starts: I8  # (H,) and the entry at which each job begins
    gaps: F8  # (2,) with free and exact: sum of the gaps of all windows, and how many there were


SOLVE_LARGE = Interface(int, int, int, int)  # from entries and jobs of such a window, and its number; 0: it failed
_solve_large = SOLVE_LARGE.caller()
# What a policy does not use is not compiled: solvers, and starts where hosts have a price, are called by address. A
# solver writes the entries of each job into its last argument, and returns whether there are some.
PLACE_WINDOW = Interface(int, I8, I8x2, I8, WindowMemory, int, I8x2)
place_window = PLACE_WINDOW.caller()


@kernel
def _solve_outside(groups, sizes, memory, index, held):
    """As a solver, by `Window._solve_large`."""
    length, jobs = groups.shape[1], len(sizes)
    memory.sizes[:jobs] = sizes
    for entry in range(length):
        memory.switches[entry] = groups[0, entry] if len(groups) > 0 else 0
    if _solve_large(memory.counts[WindowCount.LARGE], (length, jobs, index)) == 0:
        return 0
    for job in range(jobs):
        for i in range(sizes[job]):
            held[job, i] = (memory.starts[job] + i) % length
    return 1


@kernel
def _how(memory):
    """The search that the counts say."""
    counts = memory.counts
    undo = counts[WindowCount.UNDO] == 1
    repair = StartRule(counts[WindowCount.REPAIR], memory.layers, memory.weights)
    return Search(
        counts[WindowCount.STRATEGY],
        counts[WindowCount.STEPS],
        undo,
        0 if undo else PROGRAM_FIRST,
        2.0 * _HOP,
        _HOT,
        _COLD,
        repair,
    )


@kernel
def anneal_window(down, groups, sizes, memory, index, held):
    word = first_word(memory.counts[WindowCount.SEED], index)
    anneal(down, groups, count_lowest(down), sizes, _how(memory), word, held)


@PLACE_WINDOW.entry
def in_turn(down, groups, sizes, memory, index, held):
    place_in_turn(down, groups, sizes, memory.counts[WindowCount.STRATEGY], held)
    return 1


@PLACE_WINDOW.entry
def search_alone(down, groups, sizes, memory, index, held):
    anneal_window(down, groups, sizes, memory, index, held)
    return 1


@PLACE_WINDOW.entry
def search_window_with_bound(down, groups, sizes, memory, index, held):
    word = first_word(memory.counts[WindowCount.SEED], index)
    found, bound = search_with_bound(down, groups, count_lowest(down), sizes, _how(memory), word, held)
    memory.gaps[0] += gap(len(down), sizes, found, bound)
    memory.gaps[1] += 1.0
    return 1


@PLACE_WINDOW.entry
def exactly(down, groups, sizes, memory, index, held):
    memory.gaps[1] += 1.0
    subsets = nb_subsets(sizes)
    if subsets > MOST_SUBSETS or subsets * groups.shape[1] * len(sizes) > memory.counts[WindowCount.CELLS]:
        return _solve_outside(groups, sizes, memory, index, held)
    place_exactly(groups, count_lowest(down), sizes, held)
    return 1
