"""Tables III and IV of Lan et al. by the rules of their program: how much solvers take off the cost of windows.

An epoch begins at a random job with an empty cluster and lasts 100 periods of 60 s; its figure is the mean cost of a
window, which is 0 where no job on more than one host is placed. All solvers are given the same windows, and the exact
one's hosts are what jobs get. `rules` has the tree and the cost, and `decision.policies.window` says which
jobs a window takes. What is published as SA undoes no move that it rejects (`decision.policies.placement.search`).
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decision.compiling.small_kernels import first_word
from decision.experiments.statistics import bootstrap_mean
from decision.experiments.tasks import Result
from decision.model.errors import InputError
from decision.model.record import Floats, Ints
from decision.papers.campaign import Findings, ResultTable
from decision.papers.rlscheduler import JobSequence, Run, cut_sequence
from decision.policies.placement.search import AT_RANDOM, PROGRAM_FIRST, Search, StartRule, anneal_along
from decision.policies.placement.tree import count_lowest, place_best, program_cost, square_sum
from decision.policies.placement.windows import (
    DYNAMIC,
    FREE,
    binary_program,
    groups_of,
    kinds_of,
    need_of_highs,
    place_by_highs,
    place_exactly,
    place_in_turn,
    worth,
)

if TYPE_CHECKING:
    pass

# The simulator of Lan et al.'s published program (lzk23/hpcschedule), with its peculiarities.
#
# The paper is "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural
# Simulated Annealing". Its figures for FCFS and backfilling are not of the cluster and the cost that it describes, but
# of these:
#
# 1. There are 25 pods of 4 switches of 10 hosts, not 10 pods of 10 switches.
# 2. Two hosts are 1, 3 or 5 hops apart, each pair counts once, and a job's cost is rounded down
#    (`decision.policies.placement.tree.program_cost`). Jobs on one host cost 1, and count in the mean.
# 3. FCFS and backfilling are those of `rlscheduler.rules`, from which the program's simulator comes: strict order; an
#    arrival before a release of the same second; a shadow time that is computed once for each blocked job, and ``now +
#    runtime < shadow``, without a rule for hosts that are left over. Run times are known.
# 4. A job gets the free hosts with the lowest ids.
# 5. Epoch e is the jobs from number 300 e on, on a cluster that is empty at first; means are rounded down.

DOWN = np.array([10, 4, 25])  # hosts on a switch, switches in a pod, pods
EPOCHS, EPOCH_JOBS = 10, 300

Place = Callable[[Ints, int], Ints]  # ids of free hosts, ascending, and a number: that many of them


class Epoch(NamedTuple):
    """The means of an epoch."""

    cost: float  # thousandths of a hop
    wait: float  # seconds


def read_job_list(path: Path) -> JobSequence:
    """The authors' list, all of it: number, submission, run time and hosts of each job, in order of submission.

    Raises:
        InputError: if it cannot be read, is another one, or has too few jobs.
    """
    try:
        table = np.loadtxt(path, ndmin=2)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: no list of jobs ({error})") from None
    if table.shape[0] < EPOCHS * EPOCH_JOBS or table.shape[1] != 4:
        raise InputError(
            f"{path}: no list of jobs; {EPOCHS * EPOCH_JOBS:,} lines of number, submission, run time and hosts are "
            f"needed, {table.shape[0]:,} of {table.shape[1]} numbers were found"
        )
    return JobSequence(table[:, 1], table[:, 2], table[:, 2], table[:, 3].astype(np.int64))


def lowest(free: Ints, size: int) -> Ints:
    """The free hosts with the lowest numbers: rule 4."""
    return free[:size]


def contiguous(free: Ints, size: int) -> Ints:
    """The lowest run of neighbours, else the lowest hosts."""
    ends = np.flatnonzero(free[size - 1 :] - free[: len(free) - size + 1] == size - 1)
    return free[ends[0] : ends[0] + size] if len(ends) else free[:size]


def best_of_tree(free: Ints, size: int) -> Ints:
    """The hosts of least cost."""
    switch = free // DOWN[0]
    taken = np.zeros(count_lowest(DOWN), np.int64)
    place_best(DOWN, np.bincount(switch, minlength=len(taken)), size, taken)
    rank = np.arange(len(free)) - np.searchsorted(switch, switch)  # among the free hosts of its switch
    return free[rank < taken[switch]]


def simulate_epoch(jobs: JobSequence, epoch: int, backfilling: bool, place: Place = lowest) -> Epoch:
    """An epoch, by the rules above but for the hosts that jobs get.

    Args:
        jobs: the whole list.
        epoch: its number, from 0 on.
        backfilling: whether other jobs may start while the first one waits.
        place: which free hosts a job gets.
    """
    own = cut_sequence(jobs, epoch * EPOCH_JOBS, EPOCH_JOBS)
    run = _PlacedRun(own, backfilling, place)
    return Epoch(float(np.mean(run.cost)), float((np.array(run.start) - own.submit).mean()))


class _PlacedRun(Run):
    def __init__(self, jobs: JobSequence, backfilling: bool, place: Place) -> None:
        hosts = int(np.prod(DOWN))
        super().__init__(jobs, "fcfs", hosts, true_waits=False)
        self.place, self.idle = place, np.ones(hosts, bool)
        self.hosts: dict[int, Ints] = {}  # of each job that runs
        self.cost = [0] * len(self.start)
        while self.fill_queue():
            self.start_first(backfilling)

    def take(self, job: int) -> None:
        super().take(job)
        hosts = self.place(np.flatnonzero(self.idle), self.size[job])
        self.idle[hosts] = False
        self.hosts[job] = hosts
        on_switch = np.bincount(hosts // DOWN[0], minlength=count_lowest(DOWN))
        self.cost[job] = program_cost(len(DOWN), self.size[job], square_sum(DOWN, on_switch))

    def give_back(self, job: int) -> None:
        super().give_back(job)
        self.idle[self.hosts.pop(job)] = True


PERIODS, PERIOD = 100, 60.0  # seconds
_JOBS = 5  # on more than one host, at most in a window
_HOT, _COLD = 2500.0, 2.5  # thousandths of a hop, Table I


class Tree(NamedTuple):
    """A tree, and what a job costs on it in thousandths of a hop; `decision.policies.placement.tree` has both
    formulas.
    """

    name: str
    down: Ints  # (L,) devices below each switch of a level, from the hosts up
    most: float  # what n hosts cost: (most * n - fixed - scale * Q / n), before the program rounds it down
    fixed: float
    scale: float

    @property
    def hosts(self) -> int:
        """The number of all hosts."""
        return int(np.prod(self.down))

    @property
    def switches(self) -> int:
        """The number of switches on the lowest level."""
        return count_lowest(self.down)

    def cost(self, sizes: Ints, worth: float) -> float:
        """Of jobs of these sizes that are worth so much together (the sum of Q / n)."""
        return float(self.most * sizes.sum() - self.fixed * len(sizes) - self.scale * worth)


PROGRAM = Tree("program", DOWN, 2500.0, 500.0, 1000.0)
TEXT = Tree("text", np.array([10, 10, 10]), 6000.0, 2000.0, 2000.0)


class WindowJobs(NamedTuple):
    """JobSequence to be placed on a sequence of free hosts."""

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


NSA = 89_588.7  # published, of 500 steps; its network is not
IN_TURN = Solver("in turn", _in_turn(DYNAMIC), 105_023.5)
LARGEST_FIRST = Solver("any hosts, largest first", _in_turn(FREE))
EXACT = Solver("exact", lambda w, held: np.array([place_exactly(w.groups, w.tree.switches, w.sizes, held)]), 83_092.3)
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
    """What solvers made of the windows of one epoch."""

    costs: Floats  # mean of a window in thousandths of a hop, by solver and its steps
    seconds: Floats  # mean of a window with jobs on more than one host, by solver
    windows: list[WindowJobs]  # those


def solve_epoch(
    jobs: JobSequence, epoch: int, solvers: Sequence[Solver], tree: Tree = PROGRAM, periods: int = PERIODS
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
        taken, left, nb_wide = waiting, len(free), 0
        for at, (_, hosts, _) in enumerate(waiting):  # those that the window takes, from the front
            nb_wide += hosts > 1
            left -= hosts
            if left < 0 or nb_wide > _JOBS:
                taken = waiting[:at]
                break
        wide = np.array([job for _, hosts, job in taken if hosts > 1], np.int64)
        if len(wide):
            groups = groups_of(tree.down, free // tree.down[0])
            window = WindowJobs(tree, groups, size[wide], np.uint64(first_word(epoch, number)))
            held = np.zeros((len(wide), int(window.sizes.max())), np.int64)
            found = []
            for at, solver in enumerate(solvers):
                held[:] = 0
                began = perf_counter()
                worths = solver.solve(window, held)
                seconds[at] += perf_counter() - began
                found += [tree.cost(window.sizes, each) for each in worths]
            costs += found
            windows.append(window)
            for j, job in enumerate(wide):
                free_at[free[held[j, : size[job]]]] = now + runtime[job]
        for _, hosts, job in taken:
            if hosts == 1:
                free_at[np.flatnonzero(free_at <= now)[0]] = now + runtime[job]
        waiting = [(waited - 1, hosts, job) for waited, hosts, job in waiting[len(taken) :]]
    return Solved(costs / periods, seconds / max(len(windows), 1), windows)


# Models of a window by the static strategy: the paper's rows, set packing, and the dynamic program.
#
# The paper's rows (3) to (5) have a binary for each job and start and one for each job and entry, and a row for each
# start and each entry that it takes. As printed they lack that no entry is of two jobs; the published program has that,
# and that a job has no more entries than it needs. Set packing (`decision.policies.placement.windows`) has a binary for
# each size and start, and a row for each entry. Both are solved by HiGHS, where the paper has SCIP.

DYNAMIC_PROGRAM, _PACKING, _ROWS = "dynamic program", "set packing, HiGHS", "the paper's rows, HiGHS"


def solve_models(windows: Sequence[WindowJobs], limit: float) -> Result:
    """Seconds and worth of each window by each model; no worth where the time was over.

    Args:
        windows: to be placed.
        limit: seconds for a window by the paper's rows.
    """
    models: dict[str, Callable[[WindowJobs], float | None]] = {
        DYNAMIC_PROGRAM: lambda w: float(EXACT.solve(w, np.zeros((len(w.sizes), int(w.sizes.max())), np.int64))[0])
    }
    if not need_of_highs():
        models |= {
            _PACKING: lambda w: place_by_highs(w.groups, w.tree.switches, w.sizes, np.cumsum(w.sizes) - w.sizes).found,
            _ROWS: lambda w: _by_rows(w, limit),
        }
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


def _by_rows(window: WindowJobs, limit: float) -> float | None:
    import highspy

    kinds = kinds_of(window.groups, window.tree.switches, window.sizes)
    worth = kinds.worth[np.searchsorted(kinds.size, window.sizes)]  # (jobs, N)
    # first a binary y for each job and start, then an x for each job and entry
    jobs, length = worth.shape
    y, x = np.arange(jobs * length).reshape(jobs, length), np.arange(jobs * length).reshape(jobs, length) + worth.size
    rows: list[tuple[Ints, list[float], float, float]] = []  # columns, coefficients, lower, upper
    for job, size in enumerate(window.sizes.tolist()):
        rows.append((y[job], [1.0] * length, 1.0, 1.0))
        rows.append((x[job], [1.0] * length, size, size))
        for start in range(length):
            for entry in (start + np.arange(size)) % length:
                rows.append((np.array([y[job, start], x[job, entry]]), [1.0, -1.0], -math.inf, 0.0))
    rows += [(x[:, entry], [1.0] * jobs, -math.inf, 1.0) for entry in range(length)]
    places, values, lower, upper = zip(*rows, strict=True)
    worth_of_all = np.concatenate([worth.ravel(), np.zeros(worth.size)])
    bounds = np.array(lower), np.array(upper)
    program = binary_program(worth_of_all, *bounds, places, np.concatenate(values), by_row=True)
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", limit), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(solver.getInfo().objective_function_value)


# Results of Lan et al.: FCFS and backfilling of Fig. 6 to the digit, better hosts without windows, and solvers.
#
# The list of jobs is ``hpcschedule_jobs.txt``, from the program that the authors published; `rules` says by
# which rules its figures come out, and `windows` what solvers are compared on.

HPCSCHEDULE_JOBS = "hpcschedule_jobs.txt"
PUBLISHED_EPOCHS = {  # cost in thousandths of a hop and wait in seconds, by epoch
    "FCFS": (
        (35077, 35382, 35509, 35123, 32324, 35506, 36387, 33129, 34388, 36199),
        (93, 207, 195, 36, 100, 399, 71, 4, 251, 298),
    ),
    "BF": (
        (35077, 35354, 35432, 34904, 32619, 35415, 36387, 33129, 34359, 36249),
        (93, 204, 195, 35, 97, 394, 71, 4, 250, 290),
    ),
}
WINDOWS = {"windows of 10 s": (31352, 186), "windows of 60 s": (30599, 259)}  # means of the published files
PLACES: dict[str, Place] = {"first-fit": lowest, "contiguous": contiguous, "tree": best_of_tree}
_NOTES = """\
Cost in thousandths of a hop and wait in seconds, means of {epochs} epochs of 300 jobs. {same} of the 40 published \
figures come out to the digit, by the rules of the published program: 25 pods of 4 switches of 10 hosts, 1, 3 or 5 \
hops, each pair once. The second table changes nothing but which free hosts a job gets under FCFS (95 % bootstrap \
intervals over epochs), next to the published means of windows with NSA, which wait for the cost that they save: the \
best hosts of the tree, one job at a time, cost {tree:,.0f} at the waiting time of FCFS, {than} than all windows.
The third table has the mean cost of a window over {windows} epochs of 100 periods, the same windows for all solvers, \
with 95 % intervals of what they cost less than jobs in turn. {sa}"""
SA_NOTE = """\
The published SA undoes no move that it rejects. One that does costs {undone:.2%} less with 500 steps than the \
published one with 1,000, where NSA-500 is published as 1.34 % less: undoing alone gives {more} than the published \
network. The best static window, which takes a fraction of a millisecond, costs {exact:.2%} less still."""


def reproduce_hpcschedule(
    data: Path, window_epochs: int = EPOCHS, progress: Callable[[int, int], None] = lambda done, of: None
) -> Findings:
    """Simulate all epochs.

    Args:
        data: folder of the list of jobs.
        window_epochs: epochs of the third table.
        progress: is called with how many of them of how many are done.

    Raises:
        InputError: if the list is not there or is another one.
    """
    jobs = read_job_list(data / HPCSCHEDULE_JOBS)
    epochs = {name: [simulate_epoch(jobs, epoch, name == "BF") for epoch in range(EPOCHS)] for name in PUBLISHED_EPOCHS}
    placed = {
        name: epochs["FCFS"] if place is lowest else [simulate_epoch(jobs, e, False, place) for e in range(EPOCHS)]
        for name, place in PLACES.items()
    }
    costs = np.empty((window_epochs, len(SOLVERS)))
    for epoch in range(window_epochs):
        costs[epoch] = solve_epoch(jobs, epoch, SOLVERS).costs
        progress(epoch + 1, window_epochs)
    tree, same = float(np.mean([epoch.cost for epoch in placed["tree"]])), 0
    for name, published in PUBLISHED_EPOCHS.items():
        for found, cost, wait in zip(epochs[name], *published, strict=True):
            same += (int(found.cost) == cost) + (int(found.wait) == wait)
    mean = dict(zip((solver.name for solver in SOLVERS), costs.mean(axis=0), strict=True))
    undone = 1 - mean["SA that undoes, 500"] / mean["SA of the program, 1000"]
    annealing_note = SA_NOTE.format(
        undone=undone,
        more="more" if undone > 0.0134 else "not more",
        exact=1 - mean["exact"] / mean["SA that undoes, 500"],
    )
    notes = _NOTES.format(
        epochs=EPOCHS,
        same=same,
        tree=tree,
        windows=window_epochs,
        sa=annealing_note,
        than="less" if tree < min(cost for cost, _ in WINDOWS.values()) else "not less",
    )
    hosts = []
    for name, own in placed.items():
        mean_cost, low, high = bootstrap_mean(np.array([[each.cost] for each in own]), np.random.default_rng(0))
        mean_wait = np.mean([each.wait for each in own])
        hosts.append((f"FCFS, {name}", f"{mean_cost:,.0f}", f"{low:,.0f} - {high:,.0f}", f"{mean_wait:,.0f}"))
    hosts += [(f"{name}, NSA (published)", f"{cost:,}", "", f"{wait:,}") for name, (cost, wait) in WINDOWS.items()]
    which = ResultTable("which hosts", ("", "cost", "95 %", "wait"), hosts)
    return Findings((_by_epoch(epochs), which, _by_solver(costs)), notes)


def _by_epoch(epochs: dict[str, list[Epoch]]) -> ResultTable:
    columns = ["epoch", *(f"{name} {what}" for name in epochs for what in ("cost", "published", "wait", "published"))]
    rows = []
    for number in range(EPOCHS):
        row = [str(number + 1)]
        for name, found in epochs.items():
            costs, waits = PUBLISHED_EPOCHS[name]
            figures = int(found[number].cost), costs[number], int(found[number].wait), waits[number]
            row += [f"{figure:,}" for figure in figures]
        rows.append(row)
    return ResultTable("Fig. 6, by the program's rules", columns, rows)


def _by_solver(costs: Floats) -> ResultTable:
    """Of (epochs, solvers) mean costs."""
    rows, first = [], SOLVERS[0].published or 0.0
    for i, solver in enumerate(SOLVERS):
        saved = bootstrap_mean(100 * (1 - costs[:, i] / costs[:, 0])[:, None], np.random.default_rng(0))
        published = ("", "") if solver.published is None else _published(solver.published, first)
        interval = f"{saved[0]:.1f} ({saved[1]:.1f} - {saved[2]:.1f})" if i else ""
        rows.append((solver.name, f"{costs[:, i].mean():,.0f}", interval, *published))
    rows.append(("NSA of 500 steps", "", "", *_published(NSA, first)))
    return ResultTable("Tables III and IV", ("", "cost", "% less (95 %)", "published", "% less"), rows)


def _published(cost: float, first: float) -> tuple[str, str]:
    return f"{cost:,.0f}", f"{100 * (1 - cost / first):.1f}" if cost != first else ""
