"""What places the jobs of a window: one after the other, by a search, or exactly."""

from decision.compiling.bundle import F4, F8, I8, Bundle, F8x2, Float, I8x2, Int
from decision.compiling.draws import first_word
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.placement.anneal import PROGRAM_FIRST, Search, anneal
from decision.placement.bound import gap, search_with_bound
from decision.placement.exact import MOST_SUBSETS, nb_subsets, place_exactly
from decision.placement.repair import StartRule
from decision.placement.tree import count_lowest
from decision.placement.windows import place_in_turn

_HOP = 1000.0  # cost of a hop, Table I of the paper
_HOT, _COLD = 2500.0, 2.5  # temperatures, Table I


class WindowMemory(Bundle):
    """What the policy is and remembers from call to call."""

    period: Float  # seconds
    most_jobs: Int  # on more than one host, at most in a window; 0 for all
    strategy: Int
    steps: Int
    undo: Int  # 1: it undoes
    seed: Int
    last_window: Int = -1  # number of the last window that was decided, -1 for none
    due_window: Int = -1  # number of the window that was called for, -1 for none
    repair: Int  # `decision.placement.repair.StartRule.kind`
    large_solver: Int  # address of what solves windows exactly that have too many subsets
    most_cells: Int  # of the dynamic program's table; windows that need more are solved in the same way
    placer: Int  # address of the solver
    pricer: Int  # address of what starts jobs where hosts have a price, 0 where they have none
    prices: F8x2  # (L - 1, N_FEATURES) weights of `decision.placement.prices`; empty where hosts have no price
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
    if _solve_large(memory.large_solver, (length, jobs, index)) == 0:
        return 0
    for job in range(jobs):
        for i in range(sizes[job]):
            held[job, i] = (memory.starts[job] + i) % length
    return 1


@kernel
def _how(memory):
    """The search that the counts say."""
    undo = memory.undo == 1
    repair = StartRule(memory.repair, memory.layers, memory.weights)
    return Search(memory.strategy, memory.steps, undo, 0 if undo else PROGRAM_FIRST, 2.0 * _HOP, _HOT, _COLD, repair)


@kernel
def anneal_window(down, groups, sizes, memory, index, held):
    word = first_word(memory.seed, index)
    anneal(down, groups, count_lowest(down), sizes, _how(memory), word, held)


@PLACE_WINDOW.entry
def in_turn(down, groups, sizes, memory, index, held):
    place_in_turn(down, groups, sizes, memory.strategy, held)
    return 1


@PLACE_WINDOW.entry
def search_alone(down, groups, sizes, memory, index, held):
    anneal_window(down, groups, sizes, memory, index, held)
    return 1


@PLACE_WINDOW.entry
def search_window_with_bound(down, groups, sizes, memory, index, held):
    word = first_word(memory.seed, index)
    found, bound = search_with_bound(down, groups, count_lowest(down), sizes, _how(memory), word, held)
    memory.gaps[0] += gap(len(down), sizes, found, bound)
    memory.gaps[1] += 1.0
    return 1


@PLACE_WINDOW.entry
def exactly(down, groups, sizes, memory, index, held):
    memory.gaps[1] += 1.0
    subsets = nb_subsets(sizes)
    if subsets > MOST_SUBSETS or subsets * groups.shape[1] * len(sizes) > memory.most_cells:
        return _solve_outside(groups, sizes, memory, index, held)
    place_exactly(groups, count_lowest(down), sizes, held)
    return 1
