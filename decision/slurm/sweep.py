"""Other parameters on the same jobs: which setting is better, and how surely."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.compiling.bundle import F8
from decision.formats.files import write_files
from decision.formats.json_text import json_bytes

from .agree import Counted, Progress, calibrated, policy_waits, run_phases, waits_of
from .case import Case
from .changes import Change
from .goals import Goal, Guard, areas
from .measured_change import Tried, measure_change, recorded_runtimes
from .parameters import PARAMETERS, Settings
from .phases import Phase

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
    numbers = [n for n, job in enumerate(case.jobs) if job.started]
    unknown = without_cycles(case)
    counted = Counted(show)
    found = calibrated(unknown, settings, runs, seed, counted.followed_by((1 + len(changes)) * runs))
    phases = [Phase(changes, ()) for changes in free_phases([phase for _, phase in found], settings)]
    runner = _Runner(unknown, settings, numbers, phases, folder)
    base, _ = runner.waits({}, counted.followed_by(len(changes) * len(phases)))
    tried = []
    for left, change in zip(reversed(range(len(changes))), changes, strict=True):
        waits, tested = runner.waits(change, counted.followed_by(left * len(phases)))
        tried.append(measure_change(case, numbers, goal, guards, base, waits, change, tested, len(changes)))
    runtime, area = recorded_runtimes(case, numbers), areas(case, numbers)
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
        facts = json_bytes((msgspec.structs.replace(case, folder=""), sorted(settings.conf.keys.items())))
        guesses = json_bytes([phase.changes for phase in phases])
        self._digest = hashlib.sha256(facts + guesses + _sources()).hexdigest()

    def waits(self, change: Change, show: Progress) -> tuple[F8, float]:
        """(R, K) seconds waited in each run, and the jobs tested by backfill per second."""
        path = self._path(change)
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

    def _path(self, change: Change) -> Path | None:
        if self._folder is None:
            return None
        name = hashlib.sha256((self._digest + repr(sorted(change.items()))).encode()).hexdigest()[:16]
        return self._folder / "runs" / f"{name}.json"


def _sources() -> bytes:
    """The model's sources: a run of another version is not the same run."""
    return b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))


def _filled(waits: F8) -> F8:
    """Waits without gaps: jobs that a policy could not run count as the longest."""
    return np.nan_to_num(waits, nan=float(np.nanmax(waits)))


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
