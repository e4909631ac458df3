"""Launchpad's claims on a green datacenter: heuristics, cloning, offline and online learning, at several sizes.

Each value is a share of the value that was submitted: the interquartile mean of rollouts that nobody learned from, so
many of each seed, with its interval. `worlds` has jobs and power, `learned` the learners, and
`claims` how a claim is judged. Budgets differ in how much is learned: a unit is that many updates for a
thousand of the paper's, so that the ratios are the paper's.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.files.text import write_files
from decision.papers.campaign import Asked, Campaign, Part, Shown, training_folder

from . import claims as tables
from .claims import PUBLISHED_AGREEMENT
from .learned import (
    BC,
    BOTH,
    BOUND,
    LEARNED_WORLD,
    MIXES,
    OFFLINE,
    ONLINE,
    RULES,
    Effort,
    GreenWorld,
    Learner,
    bound_shares,
    heuristic_shares,
    learn_and_play,
    most_agreement,
    record_data,
    world,
)


class _Budget(NamedTuple):
    """What that means."""

    learners: Mapping[int, tuple[Learner, ...]]  # by hosts
    seeds: int
    rollouts: int  # of each seed
    effort: Effort
    intermittent: bool = True  # power
    learned_jobs: int = 20_000  # of the world that is learned in
    samples: int = 1000  # of the bootstrap


_ALL = (
    *(Learner(method, mix) for method in (BC, OFFLINE) for mix in MIXES),
    Learner(ONLINE, ""),
    *(Learner(BOTH, mix) for mix in MIXES),
)
_THREE = (Learner(BC, "qos"), Learner(OFFLINE, "combo"), Learner(ONLINE, ""))
_STANDARD = {
    10: _ALL,
    30: _THREE,
    50: (*_THREE, Learner(BC, "combo")),
    100: (Learner(BC, "qos"), Learner(OFFLINE, "combo"), Learner(BOTH, "qos")),
}
_PRESETS = {BC: "green-bc", OFFLINE: "green-crr", ONLINE: "green-sac", BOTH: "green-offline-online"}
_EFFORT = Effort(unit=16, transitions=100_000, jobs=1000, presets=_PRESETS)
_SMOKE = Effort(0.1, 800, 40, _PRESETS, ("learn.batch=32",), ("learn.envs=2", "learn.warmup=64"))
_PAIRS = ((BC, "qos"), (BC, "combo"), (OFFLINE, "combo"), (ONLINE, ""), (BOTH, "qos"))
_FEW = tuple(Learner(method, data) for method, data in _PAIRS)
_SIZES = (10, 20, 30, 40, 50, 100)
_PAPERS_AGENT = "green-paper"  # with the image, the convolutions, one encoder
_PAPER = Effort(1000, 200_000, 1000, dict.fromkeys(_PRESETS, _PAPERS_AGENT))
_BUDGETS = {
    "smoke": _Budget({10: _FEW}, 1, 2, _SMOKE, learned_jobs=400, samples=20),
    "standard": _Budget(_STANDARD, 5, 10, _EFFORT),
    "steady": _Budget(_STANDARD, 5, 10, _EFFORT, intermittent=False),
    "full": _Budget(dict.fromkeys(_SIZES, _ALL), 5, 10, _PAPER),
}
_RULES, _POSSIBLE = "rules", "possible"


class LaunchpadPart(Part, frozen=True, kw_only=True):
    """What somebody gets, or what is learned, with so many hosts."""

    experiment = "launchpad"

    budget: _Budget
    hosts: int
    who: Learner | str  # or RULES, or POSSIBLE

    def definition(self) -> dict[str, Any]:
        """All that its result depends on: not on who else learns."""
        budget = {name: value for name, value in self.budget._asdict().items() if name != "learners"}
        return {"experiment": "launchpad", "hosts": self.hosts, "who": self.who, "number": self.seed, **budget}

    @property
    def file(self) -> Path:
        """Numbers by name."""
        return self.folder / f"{self.hosts}-{self.who}-{self.seed}.npz"


def _parts_of(budget: _Budget, folder: Path) -> list[LaunchpadPart]:
    """Whole seeds first, so that an interrupted run compares all with all."""
    smallest = min(budget.learners)

    def task(hosts: int, who: Learner | str, seed: int) -> LaunchpadPart:
        return LaunchpadPart(budget=budget, hosts=hosts, who=who, seed=seed, folder=folder)

    tasks = [task(hosts, _RULES, seed) for seed in range(budget.seeds) for hosts in budget.learners]
    tasks.append(task(smallest, _POSSIBLE, 0))
    for seed in range(budget.seeds):
        tasks += [task(hosts, who, seed) for hosts, some in budget.learners.items() for who in some]
    return tasks


def _do_part(task: LaunchpadPart) -> None:
    """Play heuristics, or learn and play."""
    budget, effort = task.budget, task.budget.effort
    if isinstance(task.who, Learner):
        found = _learn(task, task.who)
    elif task.who == _POSSIBLE:
        mixes = PUBLISHED_AGREEMENT[BC]
        found = {mix: most_agreement(_tested(task), mix, effort) for mix in mixes}
    else:
        tested = _tested(task)
        found = {name: heuristic_shares(tested, rule, budget.rollouts, effort.jobs) for name, rule in RULES.items()}
        found[BOUND] = bound_shares(tested, budget.rollouts, effort.jobs)
    content = io.BytesIO()
    np.savez_compressed(content, **found)  # type: ignore[arg-type]  # its option is not among the names
    write_files({task.file: [content.getvalue()]})


def _tested(task: LaunchpadPart) -> GreenWorld:
    """The world of the rollouts of a seed."""
    jobs = task.budget.rollouts * task.budget.effort.jobs
    return world(task.hosts, task.budget.intermittent, LEARNED_WORLD + 1 + task.seed, jobs)


def _learn(task: LaunchpadPart, who: Learner) -> dict[str, NDArray[np.float64]]:
    budget, folder = task.budget, training_folder(task)
    learned = world(task.hosts, budget.intermittent, LEARNED_WORLD, budget.learned_jobs)
    data = task.folder / f"{task.hosts}-{who.data}.choices"
    if who.data and not data.exists():
        record_data(learned, who.data, budget.effort, data)
    outcome = learn_and_play(who, budget.effort, task.seed, learned, _tested(task), budget.rollouts, data, folder)
    return {name: np.asarray(value) for name, value in outcome._asdict().items()}


def results_of(done: Sequence[LaunchpadPart], budget: _Budget) -> tables.Results:
    """The numbers of finished parts."""
    smallest = min(budget.learners)
    own = set(budget.effort.presets.values()) == {_PAPERS_AGENT}
    found = tables.Results({}, {}, {}, {}, {}, budget.samples, own)
    for task in done:
        numbers = dict(np.load(task.file))
        if task.who == _POSSIBLE:
            found.possible.update(numbers)
        elif task.who == _RULES:
            for name, shares in numbers.items():
                _put(found.values, task.hosts, name, task.seed, shares)
        else:
            name = str(task.who)
            _put(found.values, task.hosts, name, task.seed, numbers["share"])
            if len(numbers["early"]):
                _put(found.early, task.hosts, name, task.seed, numbers["early"])
            if task.hosts == smallest:
                found.moments.setdefault(name, {})[task.seed] = numbers["moments"]
                found.agreement.setdefault(name, {})[task.seed] = numbers["agreement"]
    return found


def _put(values: tables.Values, hosts: int, name: str, seed: int, shares: NDArray[np.float64]) -> None:
    values.setdefault(hosts, {}).setdefault(name, {})[seed] = shares


def _show(asked: Asked[_Budget, LaunchpadPart]) -> Shown:
    """Nothing until there are heuristics to compare with."""
    if not any(task.who == _RULES for task in asked.done):
        return Shown(())
    found = results_of(asked.done, asked.budget)
    made = [tables.value_table, tables.claim_table]
    if found.moments:
        made += [tables.agreement_table, tables.fit_table, tables.time_table]
    return Shown(tuple(make(found) for make in made), _figures(found))


def _figures(found: tables.Results) -> dict[str, bytes]:
    """Figures 3 to 8, and their numbers."""
    from decision.report.plots.figures import drawn

    from .figures import value_bars

    files: dict[str, bytes] = {}
    for number in tables.FIGURES:
        values = tables.figure_values(found, number)
        if any(values.values()):
            files[f"figure-{number}.csv"] = tables.figure_csv(values)
            files[f"figure-{number}.svg"] = drawn(value_bars(f"as figure {number}", values), ".svg")
    return files


LAUNCHPAD = Campaign(
    _BUDGETS, _parts_of, _do_part, _show, few=lambda budget: f"short trainings and rollouts ({budget.effort.jobs} jobs)"
)
