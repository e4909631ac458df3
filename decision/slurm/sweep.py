"""Other parameters on the same jobs: which setting is better, and how surely."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8
from decision.files.text import json_bytes, write_files
from decision.model.errors import ConfigError
from decision.model.hosts import nearest

from .agree import (
    REPEAT,
    SHORTEST,
    Counted,
    Progress,
    block_error,
    blocks_of,
    calibrated,
    compared_jobs,
    job_groups,
    policy_waits,
    refuse_no_start,
    run_phases,
    waits_of,
)
from .case import Case, engine_size
from .conf import PARAMETERS, Settings, checked
from .simulate import Phase

# Changes of parameters that a sweep tries: those that are named, or each parameter by itself.

Change = dict[str, str]  # parameters by name, as they were written
# factors of what is configured: wide enough to show, few enough to wait for
_DEFAULT_STEPS: Mapping[str, tuple[float, ...]] = {
    "bf_interval": (0.5, 2, 4),
    "bf_window": (0.5, 2),
    "bf_max_job_test": (0.5, 2),
    "bf_resolution": (0.5, 5),
}
_WEIGHTS = ("PriorityWeightAge", "PriorityWeightJobSize", "PriorityWeightFairshare", "PriorityWeightQOS")


def read_vary(text: str) -> list[Change]:
    """All settings of ``a=1,2;b=3,4``: each value of a with each of b; with ``&`` for ``;`` the first with the first.

    Raises:
        ConfigError: for a parameter that there is not, or lists of different lengths.
    """
    groups: list[list[Change]] = []
    for group in text.split(";"):
        columns: dict[str, list[str]] = {}
        for part in group.split("&"):
            name, equals, values = part.strip().partition("=")
            if not equals or not values:
                raise ConfigError(f"{part!r} is not a parameter to vary; write it as bf_interval=30,60", field="vary")
            checked({name: ""})
            columns[name] = [value.strip() for value in values.split(",")]
        if len({len(values) for values in columns.values()}) > 1:
            raise ConfigError(f"{group!r}: parameters that change together need equally many values", field="vary")
        groups.append([dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)])
    return [{k: v for part in parts for k, v in part.items()} for parts in product(*groups)]


def default_settings(settings: Settings) -> list[Change]:
    """The settings that are tried where none are named: each parameter by itself."""
    found: list[Change] = []
    if not settings.builtin:
        for name, factors in _DEFAULT_STEPS.items():
            value = settings.number(name)
            found += [{name: f"{max(1, round(value * factor))}"} for factor in factors]
    if settings.multifactor:
        for name in _WEIGHTS:
            value = settings.number(name)
            steps = (0, value * 5) if value else (1000, 5000)
            found += [{name: f"{round(step)}"} for step in steps]
    return found


# What a setting is to be good at, over all jobs or over a group of them.

GOALS = ("mean-wait", "p95-wait", "slowdown", "utilization")
_KINDS = ("partition", "qos", "account", "size", "user")


class Goal(NamedTuple):
    """A figure of a group of jobs; less is better, but for utilization."""

    text: str
    figure: str
    places: NDArray[np.int64]  # of the compared jobs
    sign: float  # +1 where less is better

    def of(self, wait: F8, runtime: F8, area: F8) -> float:
        """The figure of jobs with these waits.

        Args:
            wait: (K,) seconds.
            runtime: (K,) seconds.
            area: (K,) hosts x seconds that each job takes, for the utilization.
        """
        wait, runtime, area = wait[self.places], runtime[self.places], area[self.places]
        if self.figure == "mean-wait":
            return float(wait.mean())
        if self.figure == "p95-wait":
            return float(np.quantile(wait, 0.95))
        if self.figure == "slowdown":
            return float(np.maximum(1, (wait + runtime) / np.maximum(runtime, SHORTEST)).mean())
        return float(area.sum() / max(1.0, (wait + runtime).max()))

    def per_job(self, wait: F8, runtime: F8) -> F8:
        """What each job contributes to a mean; of the others an approximation by waits, for the interval."""
        wait, runtime = wait[self.places], runtime[self.places]
        if self.figure == "slowdown":
            return np.maximum(1, (wait + runtime) / np.maximum(runtime, SHORTEST))
        return wait


def read_goal(text: str, case: Case, numbers: Sequence[int], field: str = "goal") -> Goal:
    """A goal from ``mean-wait`` or ``partition=debug:mean-wait``.

    Raises:
        ConfigError: naming the figure or group that there is not.
    """
    group, _, figure = text.rpartition(":")
    if figure not in GOALS:
        raise ConfigError(f"there is no goal {figure!r}{nearest(figure, GOALS)}; it is {', '.join(GOALS)}", field=field)
    kind, _, name = group.partition("=")
    if group and kind not in _KINDS:
        raise ConfigError(f"{group!r} is not a group of jobs; write it as {_KINDS[0]}=NAME", field=field)
    if not group:
        places = np.arange(len(numbers))
    elif kind == "size":
        places = job_groups(case, numbers).get(group, np.zeros(0, np.int64))
    else:
        places = np.flatnonzero([getattr(case.jobs[n], kind) == name for n in numbers])
    if group and not len(places):
        raise ConfigError(f"no job that started is of {group}", field=field)
    return Goal(text, figure, places, -1.0 if figure == "utilization" else 1.0)


class Guard(NamedTuple):
    """What must not get worse by more than a share."""

    goal: Goal
    share: float

    def is_broken(self, base: F8, waits: F8, runtime: F8, area: F8) -> bool:
        """Whether the goal is worse in the runs with `waits` than in those with `base`, (R, K) each, by more."""
        before = np.mean([self.goal.of(row, runtime, area) for row in base])
        after = np.mean([self.goal.of(row, runtime, area) for row in waits])
        return self.goal.sign * float(after - before) > self.share * abs(float(before))


def read_goal_guard(text: str, case: Case, numbers: Sequence[int]) -> Guard:
    """A guard from ``partition=debug:mean-wait:5%``. Raises ConfigError."""
    goal, _, share = text.rpartition(":")
    try:
        value = float(share.removesuffix("%")) / 100
        if not 0 <= value < math.inf:
            raise ValueError(share)
    except ValueError:
        raise ConfigError(f"{text!r}: write it as partition=debug:mean-wait:5%", field="not_worse") from None
    return Guard(read_goal(goal, case, numbers, "not_worse"), value)


def areas(case: Case, numbers: Sequence[int]) -> F8:
    """Hosts x seconds of each job."""
    return np.array([engine_size(case, case.jobs[n]) * case.jobs[n].runtime for n in numbers])


# What a setting changes in paired runs, and how surely.

_CONFIDENCE = 0.95
# a setting chosen among many looks better than it is; jobs that did not choose it say whether it is
_HELD_OUT = 1 / 3  # share of the log, its end, that decides
# of two recorded pairs (the same jobs under two configurations) a prototype missed the change by 10 and 25 %
_MODEL_ERROR = 0.15  # standard error of a predicted change, as a share of it: of changes recorded in pairs


class Tried(NamedTuple):
    """What a setting changes, against the configuration as it is."""

    set: Change
    mean: float  # of the goal
    interval: tuple[float, float]
    held_out: float  # the change in the last third of the log
    broken: tuple[str, ...]  # guards that it breaks
    tested: float  # jobs tested by backfill per second of the log

    @property
    def better(self) -> bool:
        """Whether it surely lowers the goal, also where it was not chosen, and breaks no guard."""
        return self.interval[1] < 0 and self.held_out < 0 and not self.broken


def recorded_runtimes(case: Case, numbers: Sequence[int]) -> F8:
    """Seconds that these jobs ran."""
    return np.array([case.jobs[n].runtime for n in numbers])


def measure_change(
    case: Case,
    numbers: Sequence[int],
    goal: Goal,
    guards: Sequence[Guard],
    base: F8,
    waits: F8,
    change: Change,
    tested: float,
    nb_settings: int,
) -> Tried:
    """What a setting changes, from the waits of its runs and of those as configured, (R, K) each."""
    runtime, area = recorded_runtimes(case, numbers), areas(case, numbers)
    before = np.array([goal.of(row, runtime, area) for row in base])
    after = np.array([goal.of(row, runtime, area) for row in waits])
    mean = goal.sign * float((after - before).mean())
    # paired: what the same job gains, so that the load of its day cancels out
    per_job = goal.per_job(waits.mean(0), runtime) - goal.per_job(base.mean(0), runtime)
    blocks = block_error(per_job, blocks_of(case, [numbers[k] for k in goal.places]))
    if goal.figure == "utilization":
        blocks *= float(after.mean()) / max(1.0, float((waits.mean(0) + runtime).max()))
    changes = after - before
    # independent causes: phases, blocks of the log, a real Slurm's own spread, and the model's
    phases = float(changes.std(ddof=1)) if len(changes) > 1 else 0.0
    repeats = REPEAT * float(np.hypot(float(before.mean()), float(after.mean())))
    error = float(np.sqrt(phases**2 + blocks**2 + repeats**2 + (_MODEL_ERROR * changes.mean()) ** 2))
    # Bonferroni: all intervals of a sweep hold together
    half = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / 2 / max(1, nb_settings)) * error if waits is not base else 0.0
    # a parameter that changes nothing is known to change nothing
    half = 0.0 if np.array_equal(base, waits) else half
    return Tried(
        set=change,
        mean=mean,
        interval=(mean - half, mean + half),
        held_out=_held_out(case, numbers, goal, base, waits, runtime, area),
        broken=tuple(guard.goal.text for guard in guards if guard.is_broken(base, waits, runtime, area)),
        tested=tested,
    )


def _held_out(case: Case, numbers: Sequence[int], goal: Goal, base: F8, waits: F8, runtime: F8, area: F8) -> float:
    """The change of the goal among the jobs of the last third of the log, signed so that less is better."""
    submit = np.array([case.jobs[n].submitted for n in numbers], float)
    late = np.flatnonzero(submit >= submit.max() - _HELD_OUT * (submit.max() - submit.min()))
    kept = goal._replace(places=np.intersect1d(goal.places, late))
    if not len(kept.places):
        return 0.0
    changes = [
        kept.of(after, runtime, area) - kept.of(before, runtime, area)
        for before, after in zip(base, waits, strict=True)
    ]
    return goal.sign * float(np.mean(changes))


_POLICIES = ("easy", "conservative", "sjf+easy", "saf+easy", "f1+easy")


class Sweep(NamedTuple):
    """A finished sweep; changes are signed so that less is better."""

    goal: Goal
    base: float  # the goal as simulated with the configuration as it is
    tried: tuple[Tried, ...]  # best first
    policies: Mapping[str, float]  # what other policies reach
    runs: int  # for each setting

    @property
    def best(self) -> Tried | None:
        """The setting to recommend; None where none is better."""
        return next((each for each in self.tried if each.better), None)


def sweep(
    case: Case,
    settings: Settings,
    changes: Sequence[Change],
    goal: Goal,
    guards: Sequence[Guard] = (),
    *,
    runs: int = 20,
    seed: int = 0,
    folder: Path | None = None,
    show: Progress | None = None,
) -> Sweep:
    """Try settings on the log.

    Differences are paired: the same jobs and the same guesses at phases, chosen as in `agree`. Intervals hold for all
    settings together.

    Args:
        case: the cluster and its log.
        settings: its parameters.
        changes: what is tried.
        goal: what is to get better.
        guards: what must not get worse.
        runs: guesses at the phases.
        seed: of these.
        folder: where finished runs are kept.
        show: is called with how many of how many runs are done.

    Raises:
        ConfigError: for a value that cannot be read.
    """
    for change in changes:
        _check(settings.changing(change))
    numbers = compared_jobs(case)
    # recorded cycles belong to the configuration as it was
    unknown = without_cycles(case)
    counted = Counted(show)
    found = calibrated(unknown, settings, runs, seed, counted.followed_by((1 + len(changes)) * runs))
    refuse_no_start(case, settings, found[0][0], numbers)
    phases = [Phase(changes, ()) for changes in free_phases([phase for _, phase in found], settings)]
    runner = _Runner(unknown, settings, numbers, phases, folder)
    base, _ = runner.waits({}, counted.followed_by(len(changes) * len(phases)))
    tried = []
    for left, change in zip(reversed(range(len(changes))), changes, strict=True):
        waits, tested = runner.waits(change, counted.followed_by(left * len(phases)))
        tried.append(measure_change(case, numbers, goal, guards, base, waits, change, tested, len(changes)))
    runtime, area = recorded_runtimes(case, numbers), areas(case, numbers)
    # jobs that a policy could not run count as its longest
    reached = {}
    for name in _POLICIES:
        wait = policy_waits(case, numbers, name)
        reached[name] = goal.of(np.nan_to_num(wait, nan=float(np.nanmax(wait))), runtime, area)
    return Sweep(
        goal=goal,
        base=float(np.mean([goal.of(row, runtime, area) for row in base])),
        tried=tuple(sorted(tried, key=lambda each: each.mean)),
        policies=reached,
        runs=len(phases),
    )


def _check(settings: Settings) -> None:
    """Read every value once, so that a mistake is found before anything runs."""
    for name in settings.changed:
        parameter = PARAMETERS[name]
        is_weight = parameter.name.startswith("PriorityWeight") and parameter.name != "PriorityWeightTRES"
        if is_weight or parameter.unit in ("s", "jobs", "us"):
            settings.number(parameter.name)


def without_cycles(case: Case) -> Case:
    """The case as if the times of its cycles were unknown: other parameters have other cycles."""
    return msgspec.structs.replace(case, cycles=())


def free_phases(chosen: Sequence[Phase], settings: Settings) -> list[Change]:
    """Guesses without the cycles that the log shows, spread evenly where they had those."""
    interval = settings.number("bf_interval")
    # the golden ratio spreads any number of phases evenly over the interval
    return [
        {"bf_phase": f"{interval * (k * 0.618 % 1):.3f}", "cycle_cost": "0.25", **phase.changes}
        if phase.cycles
        else phase.changes
        for k, phase in enumerate(chosen)
    ]


class _Runner:
    """Runs settings, and keeps their waits."""

    def __init__(
        self, case: Case, settings: Settings, numbers: Sequence[int], phases: Sequence[Phase], folder: Path | None
    ) -> None:
        self._case, self._settings, self._numbers, self._phases = case, settings, numbers, phases
        self._folder = folder
        facts = json_bytes((msgspec.structs.replace(case, folder=""), sorted(settings.conf.keys.items())))
        guesses = json_bytes([phase.changes for phase in phases])
        # a run of another version of the model is not the same run
        sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))
        self._digest = hashlib.sha256(facts + guesses + sources).hexdigest()

    def waits(self, change: Change, show: Progress) -> tuple[F8, float]:
        """(R, K) seconds waited in each run, and the jobs tested by backfill per second."""
        name = hashlib.sha256((self._digest + repr(sorted(change.items()))).encode()).hexdigest()[:16]
        path = None if self._folder is None else self._folder / "runs" / f"{name}.json"
        if path is not None and path.is_file():
            kept = msgspec.json.decode(path.read_bytes())
            show(len(self._phases), len(self._phases))
            return np.array(kept["waits"]), float(kept["tested"])
        span = max(1.0, max(job.end for job in self._case.jobs) - self._case.begin)
        results = run_phases(self._case, self._settings.changing(change), self._phases, show)
        waits = np.stack([waits_of(run, self._numbers) for run in results])
        tested = float(np.mean([run.tested / span for run in results]))
        if path is not None:
            document = {"set": change, "tested": tested, "waits": waits.tolist()}
            write_files({path: [json_bytes(document)]})
        return waits, tested


def sweep_document(found: Sweep, command: str) -> dict[str, Any]:
    """What ``--json`` writes; changes of the goal in its own unit, less is better."""
    return {
        "goal": found.goal.text,
        "base": found.base,
        "runs": found.runs,
        "command": command,
        "settings": [
            {
                "set": each.set,
                "change": {"mean": each.mean, "interval": list(each.interval)},
                "held_out": each.held_out,
                "better": each.better,
                "breaks": list(each.broken),
                "tested_per_second": each.tested,
            }
            for each in found.tried
        ],
        "policies": dict(found.policies),
        "best": None if found.best is None else found.best.set,
    }
