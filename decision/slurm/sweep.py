"""Other parameters on the same jobs: which setting is better, and how surely."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.compiling.bundle import F8
from decision.computer.cores import available_cores
from decision.formats.files import write_files
from decision.model.errors import ConfigError

from .agree import REPEAT, Progress, block_error, blocks_of, calibrated, policy_waits, run_phase, waits_of
from .case import Case
from .goals import Goal, Guard, areas
from .parameters import PARAMETERS, Settings, checked
from .phases import Phase

Change = dict[str, str]  # parameters by name, as they were written

_CONFIDENCE = 0.95
_HELD_OUT = 1 / 3  # share of the log, its end, that decides
_MODEL_ERROR = 0.15  # standard error of a predicted change, as a share of it: of changes recorded in pairs
_POLICIES = ("easy", "conservative", "sjf+easy", "saf+easy", "f1+easy")
_DEFAULT_STEPS: Mapping[str, tuple[float, ...]] = {
    "bf_interval": (0.5, 2, 4),
    "bf_window": (0.5, 2),
    "bf_max_job_test": (0.5, 2),
    "bf_resolution": (0.5, 5),
}
_WEIGHTS = ("PriorityWeightAge", "PriorityWeightJobSize", "PriorityWeightFairshare", "PriorityWeightQOS")


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


def read_vary(text: str) -> list[Change]:
    """All settings of ``a=1,2;b=3,4``: each value of a with each of b; with ``&`` for ``;`` the first with the first.

    Raises:
        ConfigError: for a parameter that there is not, or lists of different lengths.
    """
    return [{k: v for part in parts for k, v in part.items()} for parts in product(*map(_together, text.split(";")))]


def _together(text: str) -> list[Change]:
    columns: dict[str, list[str]] = {}
    for part in text.split("&"):
        name, equals, values = part.strip().partition("=")
        if not equals or not values:
            raise ConfigError(f"{part!r} is not a parameter to vary; write it as bf_interval=30,60", field="vary")
        checked({name: ""})
        columns[name] = [value.strip() for value in values.split(",")]
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise ConfigError(f"{text!r}: parameters that change together need equally many values", field="vary")
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


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
        show: is called with how many of how many settings are done.

    Raises:
        ConfigError: for a value that cannot be read.
    """
    for change in changes:
        _check(settings.changing(change))
    numbers = [n for n, job in enumerate(case.jobs) if job.started]
    unknown = without_cycles(case)
    chosen = [phase for _, phase in calibrated(unknown, settings, runs, seed)]
    phases = [Phase(changes, ()) for changes in free_phases(chosen, settings)]
    runner = _Runner(unknown, settings, numbers, phases, folder)
    base, _ = runner.waits({})
    tried = []
    for done, change in enumerate(changes, 1):
        waits, tested = runner.waits(change)
        tried.append(measure_change(case, numbers, goal, guards, base, waits, change, tested, len(changes)))
        if show is not None:
            show(done, len(changes))
    runtime, area = _runtimes(case, numbers), areas(case, numbers)
    reached = {name: goal.of(_filled(policy_waits(case, numbers, name)), runtime, area) for name in _POLICIES}
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
        facts = msgspec.json.encode((msgspec.structs.replace(case, folder=""), sorted(settings.conf.keys.items())))
        guesses = msgspec.json.encode([phase.changes for phase in phases])
        self._digest = hashlib.sha256(facts + guesses + _sources()).hexdigest()

    def waits(self, change: Change) -> tuple[F8, float]:
        """(R, K) seconds waited in each run, and the jobs tested by backfill per second."""
        path = self._path(change)
        if path is not None and path.is_file():
            kept = msgspec.json.decode(path.read_bytes())
            return np.array(kept["waits"]), float(kept["tested"])
        results = list(self._run(change))
        waits = np.stack([waits for waits, _ in results])
        tested = float(np.mean([tested for _, tested in results]))
        if path is not None:
            document = {"set": change, "tested": tested, "waits": waits.tolist()}
            write_files({path: [msgspec.json.encode(document)]})
        return waits, tested

    def _run(self, change: Change) -> Iterator[tuple[F8, float]]:
        settings = self._settings.changing(change)
        span = max(1.0, max(job.end for job in self._case.jobs) - self._case.begin)
        with ThreadPoolExecutor(available_cores()) as pool:
            for run in pool.map(lambda phase: run_phase(self._case, settings, phase), self._phases):
                yield waits_of(run, self._numbers), run.tested / span

    def _path(self, change: Change) -> Path | None:
        if self._folder is None:
            return None
        name = hashlib.sha256((self._digest + repr(sorted(change.items()))).encode()).hexdigest()[:16]
        return self._folder / "runs" / f"{name}.json"


def _sources() -> bytes:
    """The model's sources: a run of another version is not the same run."""
    return b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))


def _runtimes(case: Case, numbers: Sequence[int]) -> F8:
    return np.array([case.jobs[n].runtime for n in numbers])


def _filled(waits: F8) -> F8:
    """Waits without gaps: jobs that a policy could not run count as the longest."""
    return np.nan_to_num(waits, nan=float(np.nanmax(waits)))


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
    runtime, area = _runtimes(case, numbers), areas(case, numbers)
    before = np.array([goal.of(row, runtime, area) for row in base])
    after = np.array([goal.of(row, runtime, area) for row in waits])
    mean = goal.sign * float((after - before).mean())
    error = _error(case, numbers, goal, base, waits, after - before, float(before.mean()), float(after.mean()))
    half = NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / 2 / max(1, nb_settings)) * error if waits is not base else 0.0
    half = 0.0 if np.array_equal(base, waits) else half
    return Tried(
        set=change,
        mean=mean,
        interval=(mean - half, mean + half),
        held_out=_held_out(case, numbers, goal, base, waits, runtime, area),
        broken=tuple(guard.goal.text for guard in guards if _breaks(guard, base, waits, runtime, area)),
        tested=tested,
    )


def _error(
    case: Case,
    numbers: Sequence[int],
    goal: Goal,
    base: F8,
    waits: F8,
    changes: F8,
    before: float,
    after: float,
) -> float:
    """Standard error of a change: phases, blocks of the log, a real Slurm's own spread, and the model's."""
    runtime = _runtimes(case, numbers)
    chosen = [numbers[k] for k in goal.places]
    per_job = goal.per_job(waits.mean(0), runtime) - goal.per_job(base.mean(0), runtime)
    blocks = block_error(per_job, blocks_of(case, chosen))
    if goal.figure == "utilization":
        blocks *= after / max(1.0, float((waits.mean(0) + runtime).max()))
    phases = float(changes.std(ddof=1)) if len(changes) > 1 else 0.0
    repeats = REPEAT * float(np.hypot(before, after))
    return float(np.sqrt(phases**2 + blocks**2 + repeats**2 + (_MODEL_ERROR * changes.mean()) ** 2))


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


def _breaks(guard: Guard, base: F8, waits: F8, runtime: F8, area: F8) -> bool:
    before = np.mean([guard.goal.of(row, runtime, area) for row in base])
    after = np.mean([guard.goal.of(row, runtime, area) for row in waits])
    worse = guard.goal.sign * float(after - before)
    return worse > guard.share * abs(float(before))


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
