"""DeepScheduling against First-Fit, EASY, SAF and a grid of rules, on days like those of its paper's clusters.

The paper (Casagrande et al., AINA 2020) has one agent for each cluster, no tables, and neither seeds nor intervals. The
days here are made (`decision workload preset grid5000-like`), for the real ones are not public; servers switch as fast
as in the authors' platform. The first 80 % of the days are learned from, and the rest is compared.
"""

import functools
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.engine.rules import EngineOptions
from decision.experiments.energy import waste_bound
from decision.experiments.inputs import LogOnHosts
from decision.experiments.training import train_to_folder
from decision.files.generate.grid5000 import find_cluster
from decision.files.generate.paper_workloads import PUBLISHED_TRACES, grid5000_days
from decision.files.generate.platforms import SwitchTimes, Wanted, grid5000_cluster
from decision.files.text import InputFacts
from decision.model.dates import DAY_LEAD, SEQUENTIAL, busy_days, of_day
from decision.model.demand import runtimes, sizes, submit_times, walltimes
from decision.model.platform import Platform
from decision.model.record import Floats
from decision.model.workload import Workload
from decision.papers.campaign import (
    VERDICT_COLUMNS,
    Asked,
    Campaign,
    Kind,
    PaperAgent,
    Part,
    ResultTable,
    Shown,
    TrainingHours,
    counted,
    price_line,
    training_folder,
    verdicts,
    write_arrays,
)
from decision.rl.envs import PlacedJobs, Setup, evaluate, make_setup
from decision.rl.learning.config import load_config
from decision.rl.learning.deploy import LearnedPolicy, learned_policy
from decision.simulation import simulate_workloads

from . import claims
from .claims import SIMPLE_RULES, Change, Days, Jobs, Statistic, compare_days, play_days, rule

# The joint policy that ships beside DeepScheduling's rules, and the least waste of any shutdown of the same starts.
#
# It was learned from the first 80 % of days like those of each cluster, of which the rest is held out. It is held
# against the rule of the grid that wastes least, chosen with hindsight on the days compared, on the same terms: no more
# switches than first-fit with a timeout of 5 minutes, and at most 10 % more wait.

JOINT, FIRST_FIT = "joint", "first-fit,start=bound,power=idle-timeout"
WAIT = 1.1  # times that of first-fit
_ENERGY = EngineOptions(energy=True)
_TERMS: tuple[tuple[str, Statistic], ...] = (
    ("waste", claims.waste),
    ("wait", claims.pooled_wait),
    ("switches", claims.server_switches),
)


def bounds(policy: str, platform: Platform, workload: Workload, first: int) -> Floats:
    """(D,) joules: `waste_bound` of the schedule of each day from `first` on, 0 before."""
    days = busy_days(workload)
    found = np.zeros(len(days))
    for k, day in enumerate(days[first:], first):
        record = simulate_workloads(platform, [of_day(workload, day)], policy, engine_options=_ENERGY)
        found[k] = waste_bound(record, platform, DAY_LEAD)
    return found


def joint_rows(test: dict[str, list[Days]], rule: str, jobs: Jobs, samples: int) -> list[tuple[str, str, str]]:
    """Part of a table: the joint policy beside first-fit, a rule of the grid, and the least waste of any shutdown."""
    rows = [
        (
            f"{what}, joint against first-fit",
            "",
            str(compare_days(statistic, test[JOINT], test[FIRST_FIT], jobs, samples)),
        )
        for what, statistic in _TERMS
    ]
    rows.append(("best rule with hindsight and at most 10 % more wait", "", rule or "none"))
    if rule:
        against: Sequence[Days] = test[rule]
        change = compare_days(claims.waste, test[JOINT], against, jobs, samples)
        rows.append(("waste, joint against this rule", "", str(change)))
    for name, label in ((FIRST_FIT, "first-fit"), (JOINT, "joint")):
        (days,) = test[name]
        rows.append((f"waste over waste_bound, {label}", "", f"{days.waste.sum() / days.bound.sum():.2f}"))
    return rows


_STEPS = 100_000  # choices of a day at most
_LEARNED = 0.8  # share of the days
_SWITCHES = SwitchTimes(wake=60.0, sleep=180.0)  # as in the authors' platform
_HELD_OUT, _FIRST_FIT = "learned", "First-Fit"
_PAPERS_AGENT = "deepscheduling-paper"  # without a mask, discount 0.97, three GRUs, 25 million steps


class _Budget(NamedTuple):
    """How many clusters, days, seeds and steps a budget of the command line means."""

    clusters: tuple[str, ...]
    days: int | None  # of each; None for all
    seeds: int
    steps: int  # of a training
    preset: str = "deepscheduling-compact"
    changes: tuple[str, ...] = ()  # to the preset
    timeouts: tuple[int, ...] = (0, 60, 120, 300)  # seconds
    patience: tuple[int, ...] = (0, 300, 600, 900, 1200)  # seconds
    samples: int = claims.SAMPLES  # of the bootstrap


_ALL = ("orion", "graphite", "econome")
_SHORT = ("learn.envs=4", "learn.rollout=64", "learn.minibatch=128", "learn.epochs=1")
_BUDGETS = {
    "smoke": _Budget(("orion",), 20, 1, 512, changes=_SHORT, timeouts=(300,), patience=(0, 300), samples=10),
    "standard": _Budget(_ALL, None, 5, 2_000_000),
    "first": _Budget(("orion",), None, 1, 25_000_000, preset=_PAPERS_AGENT),
    "full": _Budget(_ALL, None, 10, 25_000_000, preset=_PAPERS_AGENT),
}
_ORDERS, _ALLOCATIONS = ("fcfs", "sjf", "saf"), ("first-fit", "pack")


class DeepSchedulingPart(Part, frozen=True, kw_only=True):
    """All days of a cluster, as somebody schedules them."""

    experiment = "deepscheduling"

    budget: _Budget
    cluster: str
    who: str  # "rules"; "grid ORDER ALLOCATION"; "learned"; "joint"

    @property
    def file(self) -> Path:
        """The file of its days, by policy."""
        return self.folder / f"{self.cluster}-{self.who.replace(' ', '-')}-{self.seed}.npz"


def _parts_of(budget: _Budget, folder: Path) -> list[DeepSchedulingPart]:
    """Those that take longest are begun first."""
    grid = [f"grid {order} {allocation}" for order, allocation in product(_ORDERS, _ALLOCATIONS)]
    learned = [(cluster, _HELD_OUT, seed) for seed in range(budget.seeds) for cluster in budget.clusters]
    others = [(cluster, who, 0) for cluster in budget.clusters for who in ("rules", JOINT, *grid)]
    all_of_them = (*learned, *others)
    return [
        DeepSchedulingPart(budget=budget, cluster=c, who=who, seed=seed, folder=folder) for c, who, seed in all_of_them
    ]


def _do_part(task: DeepSchedulingPart) -> None:
    """Learn, if there is something to learn, and play all days."""
    kind, _, which = task.who.partition(" ")
    if kind == _HELD_OUT:
        platform, workload = case(task.cluster, task.budget.days)
        days = f"env.days=[0, {_learned_days(workload)}]"
        changes = (days, f"learn.steps={task.budget.steps}", "learn.threads=1", *task.budget.changes)
        config = load_config(task.budget.preset, changes, seed=task.seed)
        facts = InputFacts(name=task.cluster, sha256=""), InputFacts(name=f"days like {task.cluster}'s", sha256="")
        checkpoint = train_to_folder(LogOnHosts(platform, workload, facts), config, training_folder(task), resume=True)
        policy = learned_policy(checkpoint)
        assert isinstance(policy, LearnedPolicy)
        policy.actor.reset(task.seed)
        setup, together = _setup(task.cluster, task.budget.days, encoder=policy.encoder), policy.actor.together
        played = play_days(setup, setup.beginnings.row.tolist(), lambda _, out: together(out.observation, out.mask))
        found = {_HELD_OUT: played}
    elif kind == "grid":
        setup = _setup(task.cluster, task.budget.days)
        found = {name: _play_policy(setup, name) for name in grid_of(task.budget, *which.split())}
    elif kind == JOINT:
        platform, workload = case(task.cluster, task.budget.days)
        setup, first = _setup(task.cluster, task.budget.days), _learned_days(workload)  # the bound is of held-out days
        names = FIRST_FIT, JOINT
        found = {n: _play_policy(setup, n)._replace(bound=bounds(n, platform, workload, first)) for n in names}
    else:
        setup = _setup(task.cluster, task.budget.days)
        found = {name: play_days(setup, setup.beginnings.row.tolist(), rule(name)) for name in SIMPLE_RULES}
    arrays = {f"{name}/{field}": value for name, each in found.items() for field, value in each._asdict().items()}
    write_arrays(task.file, arrays)


def grid_of(budget: _Budget, order: str, allocation: str) -> list[str]:
    """Rules of an order and an allocation, as ``--policy`` takes them."""
    bound = f"{order}+first-fit,start=bound,allocation={allocation},power=idle-timeout"
    pairs = product(budget.timeouts, budget.patience)
    return [f"{bound},idle_timeout={timeout},patience={patience}" for timeout, patience in pairs]


# --- Days, and who schedules them ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def case(cluster: str, days: int | None) -> tuple[Platform, Workload]:
    """Servers and days of a cluster."""
    made = grid5000_days(np.random.default_rng(0), PUBLISHED_TRACES[cluster], slice(0, days))
    wanted = Wanted(cluster=find_cluster(cluster), by_core=True, power=True, switch_times=_SWITCHES)
    return grid5000_cluster(wanted), made


def _setup(cluster: str, days: int | None, **options: object) -> Setup:
    platform, workload = case(cluster, days)
    return make_setup(workload, platform, **{"encoder": "deepscheduling", "steps": _STEPS, **options})  # type: ignore[arg-type]


def _learned_days(workload: Workload) -> int:
    return int(_LEARNED * len(busy_days(workload)))


def _play_policy(setup: Setup, name: str) -> Days:
    placed: list[PlacedJobs] = []
    found = evaluate(name, setup, first=setup.beginnings.row, placed=placed)
    jobs, none = np.array([len(day.wait) for day in placed]), np.zeros(len(placed))
    waits = np.concatenate([day.wait for day in placed])
    return Days(jobs, found["energy_waste"], found["switches"], none, none, none, waits)


def _jobs(workload: Workload) -> Jobs:
    """Of the days with two submissions or more."""
    submit, days = submit_times(workload), busy_days(workload)
    rows = np.concatenate([np.arange(day.first, day.first + day.jobs) for day in days])
    day = np.repeat(np.arange(len(days)), [day.jobs for day in days])
    close = np.diff(submit[rows], prepend=-np.inf) < SEQUENTIAL
    close[1:] &= day[1:] == day[:-1]
    run = np.minimum(runtimes(workload), walltimes(workload))[rows]
    return Jobs(day, sizes(workload)[rows].astype(float), run, close.astype(float))


# --- Tables and figures --------------------------------------------------------------------------------------------

ByName = Mapping[str, list[Days]]  # by seed


_PER_CORE, _SEQUENTIAL = claims.per_processor, claims.sequential_slowdown
_WASTE = "orion -6.5 %, graphite -7.0 %, econome +2.9 %"
_LESS, _MORE, _SAME = Kind.BELOW, Kind.ABOVE, Kind.EQUAL  # of the one against the other, by the paper
_CLAIMS: tuple[tuple[str, str, Kind | None, Statistic, str, str], ...] = (
    ("waste, learned against EASY", _WASTE, _LESS, claims.waste, _HELD_OUT, "EASY"),
    ("waste, learned against First-Fit", "", None, claims.waste, _HELD_OUT, _FIRST_FIT),
    ("waste, EASY against First-Fit", "about the same", _SAME, claims.waste, "EASY", _FIRST_FIT),
    ("waste, SAF against First-Fit", "about the same", _SAME, claims.waste, "SAF", _FIRST_FIT),
    ("switches, learned against First-Fit", "", None, claims.server_switches, _HELD_OUT, _FIRST_FIT),
    ("wait 10-90 %, learned against First-Fit", "-5.8 %", _LESS, claims.trimmed_wait, _HELD_OUT, _FIRST_FIT),
    ("wait 10-90 %, learned against EASY", "-27 %", _LESS, claims.trimmed_wait, _HELD_OUT, "EASY"),
    ("wait 10-90 %, learned against SAF", "-27 %", _LESS, claims.trimmed_wait, _HELD_OUT, "SAF"),
    ("wait of all, learned against First-Fit", "", None, claims.pooled_wait, _HELD_OUT, _FIRST_FIT),
    ("wait of all, learned against EASY", "", None, claims.pooled_wait, _HELD_OUT, "EASY"),
    ("wait of all, learned against SAF", "", None, claims.pooled_wait, _HELD_OUT, "SAF"),
    ("wait, IQM over days, learned against First-Fit", "", None, claims.daily_wait, _HELD_OUT, _FIRST_FIT),
    ("slowdown per processor, learned against First-Fit", "alike", _SAME, _PER_CORE, _HELD_OUT, _FIRST_FIT),
    ("slowdown per processor, EASY against First-Fit", "worse on econome", None, _PER_CORE, "EASY", _FIRST_FIT),
    ("jobs in slowdowns 1 to 5, learned against First-Fit", "more", _MORE, claims.share_slowed, _HELD_OUT, _FIRST_FIT),
    ("sequential jobs' slowdown, learned against First-Fit", "most", _MORE, _SEQUENTIAL, _HELD_OUT, _FIRST_FIT),
    ("sequential jobs' slowdown, EASY against First-Fit", "more", _MORE, _SEQUENTIAL, "EASY", _FIRST_FIT),
)
_ON = {  # what the paper says of one cluster alone
    ("waste, learned against EASY", "econome"): _MORE,
    ("slowdown per processor, EASY against First-Fit", "econome"): _MORE,
}
_MARGIN = 0.02  # of waste, waits, slowdowns and counts: what counts as equal


def _table(cluster: str, budget: _Budget, found: ByName) -> ResultTable:
    """Each claim with its number, on the held-out days."""
    _, workload = case(cluster, budget.days)
    jobs, learned = _jobs(workload), _learned_days(workload)
    days = len(found[_FIRST_FIT][0].jobs)
    test = {name: [some_days(each, jobs, learned, days)[0] for each in seeds] for name, seeds in found.items()}
    train = {name: [some_days(each, jobs, 0, learned)[0] for each in seeds] for name, seeds in found.items()}
    rest, before = (
        some_days(found[_FIRST_FIT][0], jobs, learned, days)[1],
        some_days(found[_FIRST_FIT][0], jobs, 0, learned)[1],
    )
    judged, agent = [], PaperAgent(budget.preset, budget.preset == _PAPERS_AGENT, budget.steps / _PRICE.steps)
    for label, published, kind, statistic, own, other in _CLAIMS:
        change = compare_days(statistic, test[own], test[other], rest, budget.samples)
        said = _ON.get((label, cluster), kind)
        runs = (
            len(test[own]) if own == _HELD_OUT else days - learned
        )  # rules have no chance in them: days are their runs
        known: tuple[str, str, str] = ("", "", "")  # where the paper claims nothing
        if said is not None:
            known = verdicts(said, change, _MARGIN, agent=agent if own == _HELD_OUT else None, runs=runs)
        judged.append((label, published, str(change), *known))
    rows: list[tuple[str, str, str]] = []
    first_fit = test[_FIRST_FIT][0]
    rows.append(("waste of all energy, First-Fit", "", f"{first_fit.waste.sum() / first_fit.joules.sum():.1%}"))
    used = [float(each.used.sum()) for name in (*SIMPLE_RULES, _HELD_OUT) for each in test[name]]
    rows.append(("sum that tau pays, most over least - 1", "", f"{max(used) / min(used) - 1:.1e}"))
    rows += _grid_rows("chosen on the days learned from", best_rule(train, before), test, rest, budget.samples)
    rows += _grid_rows("with hindsight", best_rule(test, rest), test, rest, budget.samples)
    rows += joint_rows(test, best_rule(test, rest, FIRST_FIT, WAIT), rest, budget.samples)
    seeds = counted(len(found[_HELD_OUT]), "seed")
    title = f"{cluster}: {days - learned} held-out days, {seeds} (95 % over seeds and days)"
    return ResultTable(
        title, ("claim", "paper", "here", *VERDICT_COLUMNS), [*judged, *((*row, "", "", "") for row in rows)]
    )


def some_days(days: Days, jobs: Jobs, first: int, last: int) -> tuple[Days, Jobs]:
    """Some of the days, and their jobs."""
    chosen = (jobs.day >= first) & (jobs.day < last)
    by_day = {name: column[first:last] for name, column in days._asdict().items() if name != "wait"}
    return Days(**by_day, wait=days.wait[chosen]), Jobs(jobs.day[chosen] - first, *(each[chosen] for each in jobs[1:]))


def best_rule(found: ByName, jobs: Jobs, beside: str = _FIRST_FIT, wait: float = 1.0) -> str:
    """The rule of the grid that wastes least, of those with so much of another's wait and no more of its switches.

    "" where there is none.
    """

    def value(name: str, statistic: Statistic) -> float:
        (days,) = found[name]
        return statistic(days, jobs, np.ones(len(days.jobs)))

    limits = [(claims.pooled_wait, wait * value(beside, claims.pooled_wait))]
    limits.append((claims.server_switches, value(beside, claims.server_switches)))
    rules = [name for name in found if "patience" in name and all(value(name, s) <= most for s, most in limits)]
    return min(rules, key=lambda name: value(name, claims.waste), default="")


def _grid_rows(how: str, name: str, test: ByName, jobs: Jobs, samples: int) -> list[tuple[str, str, str]]:
    label = f"best rule {how}"
    if not name:
        return [(label, "", "none waits and switches no more than First-Fit")]
    rows = [(label, "", name)]
    for what, statistic in (
        ("waste", claims.waste),
        ("wait", claims.pooled_wait),
        ("switches", claims.server_switches),
    ):
        change: Change = compare_days(statistic, test[name], test[_FIRST_FIT], jobs, samples)
        rows.append((f"its {what} against First-Fit", "", str(change)))
    return rows


_PRICE = TrainingHours(25e6, per_core=930.0, per_gpu=0.0)


def _left(asked: Asked[_Budget, DeepSchedulingPart]) -> str:
    """What the paper's own trainings of all clusters and seeds take."""
    full, done = _BUDGETS["full"], 0.0
    if asked.budget.preset == _PAPERS_AGENT:
        done = sum(part.who == _HELD_OUT for part in asked.done) * asked.budget.steps / _PRICE.steps
    return price_line([(_PRICE, full.seeds * len(full.clusters) - done)])


def _show(asked: Asked[_Budget, DeepSchedulingPart]) -> Shown:
    """Each claim with its number; figures 2 to 4 of the clusters that there are parts for."""
    from decision.report.plots.figures import drawn

    from .figures import cumulative, sequential_slowdowns, slowdown_shares

    by_cluster: dict[str, dict[str, list[Days]]] = {}  # days of each policy
    for task in asked.done:
        arrays = np.load(task.file)
        for name in dict.fromkeys(key.rpartition("/")[0] for key in arrays.files):
            days = Days(*(arrays[f"{name}/{field}"] for field in Days._fields))
            by_cluster.setdefault(task.cluster, {}).setdefault(name, []).append(days)
    tables, budget = [], asked.budget
    files: dict[str, bytes] = {}
    for cluster, found in by_cluster.items():
        if not {_HELD_OUT, JOINT, *SIMPLE_RULES} <= found.keys():
            continue
        tables.append(_table(cluster, budget, found))
        _, workload = case(cluster, budget.days)
        jobs, some = _jobs(workload), {name: found[name] for name in (*SIMPLE_RULES, _HELD_OUT)}
        figures = {
            "figure-2": cumulative(cluster, some, jobs, _learned_days(workload)),
            "figure-3": slowdown_shares(cluster, some, jobs),
            "figure-4": sequential_slowdowns(cluster, some, jobs),
        }
        files |= {f"{cluster}-{name}.svg": drawn(figure, ".svg") for name, figure in figures.items()}
    return Shown(tuple(tables), files)


DEEPSCHEDULING = Campaign(
    _BUDGETS,
    _parts_of,
    _do_part,
    _show,
    few=lambda budget: f"few days ({budget.days}) and steps ({budget.steps})",
    price=_left,
)

# DeepScheduling (Casagrande et al., AINA 2020): servers that sleep, one learned agent for each cluster.
