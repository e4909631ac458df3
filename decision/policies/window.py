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

from decision.bundle import F8, I8, Bundle, bundle_at
from decision.draws import first_word
from decision.jit import kernel
from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.platform import Platform
from decision.placement.anneal import PROGRAM_FIRST, Search, anneal
from decision.placement.exact import MOST_JOBS, place_exactly
from decision.placement.windows import DYNAMIC, FREE, STATIC, groups_of, place_in_turn
from decision.state.bitmap import count_hosts, next_in, remove_interval
from decision.state.cluster import N_QUEUED, ClusterState

from .allocation import check_tree, take_lowest
from .capacity import TOLERANCE
from .plan_arrays import CALL_AT, START, add, add_interval, clear
from .prepared import DECIDE, DECIDED, CompiledPolicy

STRATEGIES = {"scas": STATIC, "dcas": DYNAMIC, "free": FREE}
_SEQUENTIAL, _SA, _EXACT = range(3)
SOLVERS = {"sequential": _SEQUENTIAL, "sa": _SA, "exact": _EXACT}

# WindowMemory.counts
_JOBS = 0  # on more than one host, at most in a window; 0 for all
_STRATEGY = 1
_SOLVER = 2
_STEPS = 3
_UNDO = 4
_SEED = 5
_LAST = 6  # number of the last window that was decided, -1 for none
_DUE = 7  # number of the window that was called for, -1 for none

_HOP = 1000.0  # cost of a hop, Table I of the paper
_HOT, _COLD = 2500.0, 2.5  # temperatures, Table I


class WindowMemory(Bundle):
    """What the policy is and remembers from call to call."""

    period: F8  # (1,) seconds
    counts: I8  # (8,)


_memory_at = bundle_at(WindowMemory)


@kernel
def _decide(state, facts, memory, plan):
    """Fill `plan` for this instant, after all transitions of it; reads `state` and never writes it."""
    clear(plan, state)
    now, period, counts = state.now[0], memory.period[0], memory.counts
    index = int((now + TOLERANCE) / period)
    called = 0 <= counts[_DUE] <= index
    if called:
        counts[_DUE] = -1
    if state.count[N_QUEUED] == 0:
        return
    head = -1
    if index > counts[_LAST] and (called or now <= index * period + TOLERANCE):
        counts[_LAST] = index
        order = _in_order(state, period, index)
        taken = _decide_window(state, facts, memory, plan, order, index)
        if taken < len(order):
            head = order[taken]
    elif counts[_DUE] < 0:
        head = _first(state, period, index + 1)
    if head >= 0 and counts[_DUE] < 0 and state.size[head] <= count_hosts(plan.free):
        counts[_DUE] = index + 1
        plan.time[add(plan, CALL_AT, -1)] = (index + 1) * period


@kernel
def _rank(state, period, index, job):
    """What a job is sorted by, ascending: the periods that it has waited, most first, and then its hosts."""
    waited = index - math.ceil((state.submit_time[job] - TOLERANCE) / period)
    return state.size[job] - waited * (len(state.host_state) + 1.0)


@kernel
def _in_order(state, period, index):
    """The waiting jobs in the order in which a window takes them."""
    queue = state.queue[: state.count[N_QUEUED]]
    ranks = np.empty(len(queue))
    for i in range(len(queue)):
        ranks[i] = _rank(state, period, index, queue[i])
    return queue[np.argsort(ranks, kind="mergesort")]


@kernel
def _first(state, period, index):
    """The waiting job that a window takes first."""
    best = state.queue[0]
    for i in range(1, state.count[N_QUEUED]):
        if _rank(state, period, index, state.queue[i]) < _rank(state, period, index, best):
            best = state.queue[i]
    return best


@kernel
def _decide_window(state, facts, memory, plan, order, index):
    """Plan the starts of a window; how many jobs it takes from the front of `order`."""
    free, limit = count_hosts(plan.free), memory.counts[_JOBS]
    jobs = np.empty(len(order), np.int64)
    taken, wide = 0, 0
    for job in order:
        size = state.size[job]
        if size > free or (size > 1 and wide == limit and limit > 0):
            break
        if size > 1:
            jobs[wide] = job
            wide += 1
        free -= size
        taken += 1
    if wide > 0:
        _start_together(state, facts, memory, plan, jobs[:wide], index)
    for job in order[:taken]:
        if state.size[job] == 1:
            take_lowest(plan, add(plan, START, job), 1)
    return taken


@kernel
def _start_together(state, facts, memory, plan, jobs, index):
    hosts = _sequence(facts, plan.free)
    switches = np.empty(len(hosts), np.int64)
    for entry in range(len(hosts)):
        switches[entry] = facts.switch[hosts[entry]]
    sizes = np.empty(len(jobs), np.int64)
    for i in range(len(jobs)):
        sizes[i] = state.size[jobs[i]]
    held = np.zeros((len(jobs), sizes.max()), np.int64)
    _solve(facts.down, groups_of(facts.down, switches), sizes, memory.counts, index, held)
    for i in range(len(jobs)):
        action = add(plan, START, jobs[i])
        for host in np.sort(hosts[held[i, : sizes[i]]]):
            add_interval(plan, action, host, host)
            remove_interval(plan.free, host, host)


@kernel
def _sequence(facts, free):
    """The free hosts from left to right in the tree; those of one switch by id."""
    hosts = np.empty(count_hosts(free), np.int64)
    switches = np.empty(len(hosts), np.int64)
    host = next_in(free, 0)
    for entry in range(len(hosts)):
        hosts[entry] = host
        switches[entry] = facts.switch[host]
        host = next_in(free, host + 1)
    return hosts[np.argsort(switches, kind="mergesort")]


@kernel
def _solve(down, groups, sizes, counts, index, held):
    """Write the entries of each job."""
    switches = 1
    for level in range(1, len(down)):
        switches *= down[level]
    if counts[_SOLVER] == _SEQUENTIAL:
        place_in_turn(down, groups, sizes, counts[_STRATEGY], held)
    elif counts[_SOLVER] == _EXACT:
        place_exactly(groups, switches, sizes, held)
    else:
        undo = counts[_UNDO] == 1
        first = 0 if undo else PROGRAM_FIRST
        search = Search(counts[_STRATEGY], counts[_STEPS], undo, first, 2.0 * _HOP, _HOT, _COLD)
        anneal(down, groups, switches, sizes, search, first_word(counts[_SEED], index), held)


@DECIDE.entry
def _decide_by_window(state, facts, memory, plan):
    _decide(state, facts, _memory_at(memory), plan)
    return DECIDED


class Window(CompiledPolicy):
    """Jobs placed together, once in a period.

    Args:
        period: seconds from one window to the next; windows are at its multiples.
        jobs: on more than one host, at most in a window; 0 for all.
        strategy: scas or dcas, as in the paper, or free for any hosts; scas with the solver exact, and else dcas, by
            default.
        solver: sequential, sa, or exact (with scas).
        steps: moves of sa.
        undo: whether sa undoes a move that it rejects; false is the walk of the published program.

    Raises:
        ConfigError: for a name or number that makes no sense.
    """

    entry = _decide_by_window
    needs_walltime = False

    def __init__(
        self,
        period: float = 60.0,
        jobs: int = 5,
        strategy: str = "",
        solver: str = "sa",
        steps: int = 500,
        undo: bool = True,
    ) -> None:
        if not 0 < period < math.inf:
            raise ConfigError(f"policy window: option period={period:g} must be finite and above 0")
        for name, value, least in (("jobs", jobs, 0), ("steps", steps, 0)):
            if value < least:
                raise ConfigError(f"policy window: option {name}={value} must be at least {least}")
        solving = _code("solver", solver, SOLVERS)
        placing = _code("strategy", strategy or ("scas" if solver == "exact" else "dcas"), STRATEGIES)
        if solving == _EXACT and placing != STATIC:
            raise ConfigError(f"policy window: solver=exact is for strategy=scas; found strategy={strategy}")
        if solving == _EXACT and not 1 <= jobs <= MOST_JOBS:
            raise ConfigError(f"policy window: solver=exact takes jobs=1 to {MOST_JOBS} to a window; found jobs={jobs}")
        self._period = float(period)
        self._counts = np.array([jobs, placing, solving, steps, undo, 0, -1, -1], np.int64)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform.

        Raises:
            ConfigError: if no tree of switches connects its hosts.
        """
        super().reset(platform, seed)
        check_tree("policy window", platform)
        self._counts[_SEED] = seed % 2**63

    def memory_for(self, state: ClusterState, memory: WindowMemory | None = None) -> WindowMemory:
        """`memory`, which has room for any state; a new one where there is none yet."""
        return memory or WindowMemory(period=np.array([self._period]), counts=self._counts.copy())


def _code(option: str, value: str, known: dict[str, int]) -> int:
    if value not in known:
        there = f"{nearest(value, known)} (there are {', '.join(known)})"
        raise ConfigError(f"policy window: there is no {option} {value!r}{there}")
    return known[value]
