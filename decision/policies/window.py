"""Windows: jobs that wait are collected for a period and placed together on a fat-tree.

The system of Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by
Neural Simulated Annealing", after the paper and, where that says nothing, its published program. At each multiple of
the period, jobs are taken from the queue, those that have waited for most periods first and of these the ones on fewest
hosts, until one does not fit or enough jobs on more than one host are taken. These are placed together
(`decision.policies.placement.windows`); jobs on one host get the lowest hosts that are left. The others wait one period
more.

Design
------
A window is a function of the time, the queue and the free hosts: how many periods a job has waited follows from its
submission, and random words from the seed and the window's number. So it is the same in the engine and behind messages,
and nothing need be remembered but which windows were decided and called for. One is called for only if the first job
that waits would fit: while it does not, nothing changes before something happens that wakes the policy anyway.
"""

import math

import numpy as np

from decision.compiling.bundle import F4, I8, Bundle, F8x2, Float, I8x2, Int, bundle_at
from decision.compiling.entry import Entry, Interface
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import first_word
from decision.model.errors import ConfigError, raise_interruption
from decision.model.hosts import nearest
from decision.model.platform import Platform
from decision.policies.placement.search import (
    AT_BEST,
    AT_RANDOM,
    PROGRAM_FIRST,
    Search,
    StartRule,
    anneal,
    gap,
    search_with_bound,
)
from decision.policies.placement.tree import count_lowest
from decision.policies.placement.windows import (
    DYNAMIC,
    FREE,
    MOST_JOBS,
    MOST_SUBSETS,
    STATIC,
    groups_of,
    nb_subsets,
    need_of_highs,
    place_by_highs,
    place_exactly,
    place_in_turn,
)
from decision.state.bitmap import count_hosts, remove_interval, trailing_zeros
from decision.state.cluster import ClusterState, PlatformFacts, nb_hosts
from decision.state.plan_arrays import CALL_AT, START, PlanArrays, add, add_interval, clear

from .allocation import check_prices, check_tree, take_lowest, take_on_tree
from .loading import read_learned
from .policy import Policy
from .prepared import DECIDE, DECIDED, NO_PLAN, CompiledPolicy
from .profile import TOLERANCE
from .wrappers import innermost

# Which jobs a window takes and in which order, and which hosts they take of a sequence of free ones.


@kernel
def is_due(now, period, index, last, called):
    """Whether the window of this number is to be decided.

    Args:
        now: seconds.
        period: seconds.
        index: number of the last window that could be, at this time.
        last: number of the window that was decided last.
        called: whether one was called for that is due; the call may come a moment late, over the network.
    """
    # A window that was not called for is decided only at its very time: events between two windows wait for the next.
    return index > last and (called or now <= index * period + TOLERANCE)


@kernel
def _rank(state, period, index, job):
    """What a job is sorted by, ascending: the periods that it has waited, most first, and then its hosts."""
    # A period that has waited outweighs any number of hosts, so one key sorts by both.
    waited = index - math.ceil((state.submit_time[job] - TOLERANCE) / period)
    return state.size[job] - waited * (len(state.host_state) + 1.0)


@kernel
def in_order(state, queue, period, index):
    """The waiting jobs of `queue` in the order in which the window of this number takes them."""
    ranks = np.empty(len(queue))
    for i in range(len(queue)):
        ranks[i] = _rank(state, period, index, queue[i])
    # mergesort is stable: equal ranks stay in order of submission.
    return queue[np.argsort(ranks, kind="mergesort")]


@kernel
def first_of(state, queue, period, index):
    """The waiting job of `queue` that the window of this number takes first."""
    best, lowest = queue[0], np.inf
    for job in queue:
        rank = _rank(state, period, index, job)
        if rank < lowest:
            best, lowest = job, rank
    return best


@kernel
def taken_from(state, order, free, limit):
    """How many jobs a window takes from the front of `order`, and how many of them are on more than one host.

    Args:
        order: as `in_order` returns it.
        free: hosts.
        limit: jobs on more than one host, at most; 0 for all.
    """
    taken, wide = 0, 0
    for job in order:
        size = state.size[job]
        # The first that does not fit ends the window: nobody overtakes, which keeps wide jobs from starving.
        if size > free or (size > 1 and wide == limit and limit > 0):
            break
        wide += size > 1
        free -= size
        taken += 1
    return taken, wide


@kernel
def take_hosts(plan, action, hosts):
    """Give the action these free hosts (n,), which most often ascend."""
    ascends = True
    for i in range(1, len(hosts)):
        ascends &= hosts[i] > hosts[i - 1]
    ascending, first = hosts if ascends else np.sort(hosts), 0
    for i in range(len(ascending)):
        if i + 1 == len(ascending) or ascending[i + 1] != ascending[i] + 1:
            add_interval(plan, action, ascending[first], ascending[i])
            remove_interval(plan.free, ascending[first], ascending[i])
            first = i + 1


@kernel
def write_sequence(facts, free, hosts):
    """Write the free hosts from left to right in the tree, those of one switch by id; returns how many they are."""
    count, last, ascends = 0, 0, True
    for word in range(len(free)):
        bits = free[word]
        while bits != 0:
            host = (word << 6) + np.int64(trailing_zeros(bits))
            # Clears the lowest bit.
            bits &= bits - np.uint64(1)
            ascends &= facts.switch[host] >= last
            last = facts.switch[host]
            hosts[count] = host
            count += 1
    if not ascends:
        hosts[:count] = hosts[:count][np.argsort(facts.switch[hosts[:count]], kind="mergesort")]
    return count


# What places the jobs of a window: one after the other, by a search, or exactly.

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
    repair: Int  # `decision.policies.placement.search.StartRule.kind`
    large_solver: Int  # address of what solves windows exactly that have too many subsets
    most_cells: Int  # of the dynamic program's table; windows that need more are solved in the same way
    placer: Int  # address of the solver
    pricer: Int  # address of what starts jobs where hosts have a price, 0 where they have none
    prices: (
        F8x2  # (L - 1, N_FEATURES) weights of `decision.policies.placement.windows`; empty where hosts have no price
    )
    layers: I8x2  # (n, 5) of the network of nsa
    weights: F4  # (P,) of the network
    switches: I8  # (H,) of a window that has too many subsets: the lowest switch of each entry,
    sizes: I8  # (H,) the hosts of each job,
    starts: I8  # (H,) and the entry at which each job begins
    gaps: Float  # with free and exact: the sum of the gaps of all windows,
    nb_windows: Int  # and how many there were


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
            # By the static strategy a job's entries follow one another, around the end of the sequence.
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
    memory.gaps += gap(len(down), sizes, found, bound)
    memory.nb_windows += 1
    return 1


@PLACE_WINDOW.entry
def exactly(down, groups, sizes, memory, index, held):
    memory.nb_windows += 1
    subsets = nb_subsets(sizes)
    # The dynamic program is exact and fast for few jobs; beyond, a mixed-integer program with a time limit.
    if subsets > MOST_SUBSETS or subsets * groups.shape[1] * len(sizes) > memory.most_cells:
        return _solve_outside(groups, sizes, memory, index, held)
    place_exactly(groups, count_lowest(down), sizes, held)
    return 1


# What is decided at an instant: whether a window is due, which jobs start, and when the next call is.

_memory_at = bundle_at(WindowMemory)
_PRICED = Interface(int, ClusterState, PlatformFacts, WindowMemory, PlanArrays, I8)
_start_by_price = _PRICED.caller()


@kernel
def _decide_window(state, facts, memory, plan, order, index):
    """Plan the starts of a window; how many jobs it takes from the front of `order`, -1 where it has failed."""
    taken, wide = taken_from(state, order, count_hosts(plan.free), memory.most_jobs)
    if wide > 0:
        jobs = np.empty(wide, np.int64)
        i = 0
        for job in order[:taken]:
            if state.size[job] > 1:
                jobs[i] = job
                i += 1
        if memory.pricer != 0:
            _start_by_price(memory.pricer, (state, facts, memory, plan, jobs))
        else:
            hosts = np.empty(count_hosts(plan.free), np.int64)
            write_sequence(facts, plan.free, hosts)
            groups, sizes = groups_of(facts.down, facts.switch[hosts]), np.empty(wide, np.int64)
            for i in range(wide):
                sizes[i] = state.size[jobs[i]]
            held = np.zeros((wide, sizes.max()), np.int64)
            if place_window(memory.placer, (facts.down, groups, sizes, memory, index, held)) == 0:
                return -1
            for i in range(wide):
                take_hosts(plan, add(plan, START, jobs[i]), hosts[held[i, : sizes[i]]])
    for job in order[:taken]:
        if state.size[job] == 1:
            take_lowest(plan, add(plan, START, job), 1)
    return taken


@_PRICED.entry
def start_priced(state, facts, memory, plan, jobs):
    """The job on most hosts first, each gets the free hosts whose cost and prices are least."""
    sizes = np.empty(len(jobs), np.int64)
    for i in range(len(jobs)):
        sizes[i] = state.size[jobs[i]]
    # Wide jobs first: they have the fewest places.
    for i in np.argsort(-sizes, kind="mergesort"):
        take_on_tree(plan, state, facts, add(plan, START, jobs[i]), memory.prices, True)
    return len(jobs)


@DECIDE.entry
def decide_by_window(state, facts, memory, plan):
    clear(plan, state)
    own, now = _memory_at(memory), state.now
    period = own.period
    index = int((now + TOLERANCE) / period)
    called = 0 <= own.due_window <= index
    # The call has come; whatever happens from now on, another one is needed for the next window.
    if called:
        own.due_window = -1
    if state.nb_queued == 0:
        return DECIDED
    head = -1
    # At a window: place what it takes, and whoever is left first is the head. Between windows the head is whom the next
    # one takes first.
    if is_due(now, period, index, own.last_window, called):
        own.last_window = index
        order = in_order(state, state.queue[: state.nb_queued], period, index)
        taken = _decide_window(state, facts, own, plan, order, index)
        if taken < 0:
            return NO_PLAN
        if taken < len(order):
            head = order[taken]
    elif own.due_window < 0:
        head = first_of(state, state.queue[: state.nb_queued], period, index + 1)
    # Without hosts for the head the next window would start nothing.
    if head >= 0 and own.due_window < 0 and state.size[head] <= count_hosts(plan.free):
        own.due_window = index + 1
        plan.time[add(plan, CALL_AT, -1)] = (index + 1) * period
    return DECIDED


STRATEGIES = {"scas": STATIC, "dcas": DYNAMIC, "free": FREE}
_SEQUENTIAL, _SA, _NSA, _EXACT = range(4)
_SOLVERS = {"sequential": _SEQUENTIAL, "sa": _SA, "nsa": _NSA, "exact": _EXACT}
_BEST = "best"  # in place of a network


# Only turns seconds of the option `limit` into cells: that the same window is solved in the same way on every machine
# matters more than the seconds.
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
        for name, value in (("period", period), ("limit", limit)):
            if not 0 < value < math.inf:
                raise ConfigError(f"policy window: option {name}={value:g} must be finite and above 0")
        for name, number in (("jobs", jobs), ("steps", steps)):
            if number < 0:
                raise ConfigError(f"policy window: option {name}={number} must be at least 0")
        solving = _code("solver", solver, _SOLVERS)
        placing = _code("strategy", strategy or ("scas" if solver == "exact" else "dcas"), STRATEGIES)
        if solving == _EXACT and placing == DYNAMIC:
            raise ConfigError(f"policy window: solver=exact is for strategy=scas or free; found strategy={strategy}")
        if solving == _EXACT and placing == STATIC and not 1 <= jobs <= MOST_JOBS and (need := need_of_highs()):
            raise ConfigError(f"policy window: solver=exact with jobs={jobs} (above {MOST_JOBS}, or 0: all) {need}")
        if solving == _NSA and placing != DYNAMIC:
            raise ConfigError(f"policy window: solver=nsa is for strategy=dcas; found strategy={strategy}")
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
        # Without HiGHS the dynamic program must do, however long it takes.
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
        )
        return self._used

    def window_gap(self) -> float:
        """The mean gap of the last run, as the function `window_gap` says it."""
        used = self._used
        return used.gaps / used.nb_windows if used is not None and used.nb_windows else math.nan

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
            used.gaps += gap(len(self._down), sizes, placed.found, placed.bound)
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


def _code(option: str, value: str, known: dict[str, int]) -> int:
    if value not in known:
        there = f"{nearest(value, known)} (there are {', '.join(known)})"
        raise ConfigError(f"policy window: there is no {option} {value!r}{there}")
    return known[value]
