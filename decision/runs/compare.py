"""``decision compare``: the runs of a plan are done and measured, each once."""

import functools
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np
from msgspec import to_builtins
from msgspec.structs import replace

from decision.analysis.comparison import MeasuredRun, PolicyComparison
from decision.analysis.groups import SHOWN_GROUPS, GroupFigures, Membership, group_figures, memberships
from decision.analysis.metric_list import measure_run
from decision.analysis.recorded import RECORDED, agreement, recorded_jobs, standing
from decision.analysis.whole import LogPart, judge_run, part_of
from decision.compiling.jit import is_warm
from decision.formats import write_workload
from decision.formats.outputs_read import read_run_record
from decision.formats.selection import Selection
from decision.model.columns import columns_of
from decision.model.dates import DAY_LEAD
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.errors import ConfigError, DecisionError
from decision.model.record import RunRecord
from decision.model.sessions import find_sessions
from decision.model.workload import Workload

from . import Engine
from .batsim_run import RealBatsim
from .comparison_plan import ComparisonPlan, contender, contenders, workload_name
from .engines import compiled_kernels
from .inputs import Inputs, LoadedInputs, one_speed, writable_folder
from .planned_runs import ComparedRun, PlannedRuns, fastest_speed, inputs_of, whole_case, workload_case
from .run import run_inputs, run_to_folder
from .store import Result
from .tasks import How, Progress, run_tasks

RUNS = "runs"  # folder of the cached results


def read_workloads(plan: ComparisonPlan) -> list[Workload]:
    """The workloads, whole. Raises InputError, or ConfigError if the platform cannot be used."""
    cases = [workload_case(plan, workload) for workload in plan.workloads]
    for case in cases:
        if RECORDED in plan.policies:
            recorded_jobs(case.workloads[0])
        if plan.feedback:
            find_sessions(case.workloads[0], one_speed(case.platform))
    return [case.workloads[0] for case in cases]


def run_comparison(
    plan: ComparisonPlan, folder: Path, *, progress: Progress = lambda done, of: None, **how: Unpack[How]
) -> list[MeasuredRun]:
    """Do all runs of a plan that have no result in ``folder/runs`` yet; `how` is that of `run_tasks`.

    The windows are drawn once for each workload, so that every policy gets the same; times in a window are those of
    the workload.

    Raises:
        ConfigError: if the plan is not valid, before anything is run.
        RunsFailedError: if runs have failed, when all others are done; these stay in the folder.
        Interrupted: if a signal asked for the end; likewise.
    """
    if Engine.DOCKER in plan.engines:
        raise ConfigError("a comparison cannot run Batsim in Docker; choose another engine", field="engine")
    if plan.feedback and plan.days is not None:
        raise ConfigError("days are run alone, and sessions reach over them; leave feedback or days out")
    if plan.events and (plan.windows or plan.days is not None):
        raise ConfigError("external events have their times in whole workloads; leave them or the parts out")
    kernels = {
        (each.name, engine): compiled_kernels(engine, each.policy, each.settings)
        for each in contenders(plan)
        if each.policy not in plan.own
        for engine in plan.engines
    }
    runs, results_folder = PlannedRuns(plan), writable_folder(folder / RUNS)
    first = _compiling(runs, kernels)
    results = run_tasks(perform_run, runs, results_folder, first=first, progress=progress, **how)
    return [outcome_of(plan, run, result) for run, result in zip(runs, results, strict=True)]


def perform_run(run: ComparedRun) -> Result:
    """The metrics of one run by name, those that have a value.

    Raises:
        DecisionError: of the kind that the run failed with; the message names the run.
    """
    try:
        case = inputs_of(run)
        in_batsim = bool(run.batsim) and run.choice.policy != RECORDED
        record = _run_batsim(case, run) if in_batsim else run_inputs(case, run.choice, engine=run.engine)
    except DecisionError as error:
        error.args = (f"{run.title}: {error}",)
        raise
    digests = run.digests[: 2 + len(run.inputs.events)]
    begin = None if run.midnight is None else DAY_LEAD
    metrics = measure_run(record, case.platform, *_known_of_jobs(run.inputs, digests), begin)
    if run.near_record and run.choice.policy != RECORDED:
        metrics |= agreement(record, inputs_of(msgspec.structs.replace(run, copy=0)).workloads[0])
    whole = run.window is None and run.midnight is None
    groups = group_figures(record.jobs, _members(run.inputs, digests)) if whole else []
    found = {_GROUPS: [to_builtins(row) for row in groups]} if groups else {}
    if not run.copy:
        return _known(metrics) | found
    part = _counted_part(run.inputs, digests)
    judged = judge_run(record.jobs, part, len(case.platform.hosts))
    return {**_known(metrics | judged.metrics), **found, _WITHOUT: judged.without, _SCHEDULE: judged.schedule}


def _known(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


COPIES = 10  # shaken ones of a whole workload, by default
_WITHOUT, _SCHEDULE, _GROUPS = "without", "schedule", "groups"  # in a whole log's result, besides its metrics


@functools.lru_cache(maxsize=8)
def _counted_part(inputs: Inputs, digests: tuple[str, ...]) -> LogPart:
    return _part_of_case(whole_case(inputs, digests))


def counted_part(plan: ComparisonPlan, workload: Path) -> LogPart:
    """The part of a workload that counts where it is judged whole."""
    return _part_of_case(workload_case(plan, workload))


def _part_of_case(case: LoadedInputs) -> LogPart:
    """The part of a case's first workload that counts; all of it where only Batsim knows how long its jobs run."""
    workload = case.workloads[0]
    try:
        seconds = runtimes(workload, fastest_speed(case))
    except ConfigError:
        seconds = np.zeros(len(workload.jobs))
    return part_of(submit_times(workload), sizes(workload), seconds)


def with_record(plan: ComparisonPlan, workloads: Sequence[Workload], comparison: PolicyComparison) -> PolicyComparison:
    """The comparison with how far what really happened can be compared, where it stands among the policies."""
    if RECORDED not in plan.policies:
        return comparison
    found = []
    for path, workload in zip(plan.workloads, workloads, strict=True):
        name = workload_name(plan, path)
        runs = [(run.contender, run.metrics) for run in comparison.outcomes if run.workload == name]
        found.append(standing(workload, name, runs))
    return replace(comparison, recorded=found)


@functools.lru_cache(maxsize=8)
def _known_of_jobs(inputs: Inputs, digests: tuple[str, ...]) -> tuple[Mapping[str, str], Mapping[str, float]]:
    """By id, of all jobs: who submitted each, and its run time on the fastest hosts, had it no need to communicate.

    No run time is there where only Batsim knows it.
    """
    case = whole_case(inputs, digests)
    workload = case.workloads[0]
    jobs = columns_of(workload.jobs)
    ids = list(jobs.id)
    try:
        seconds = runtimes(workload, fastest_speed(case))
    except ConfigError:
        seconds = np.zeros(0)
    return dict(zip(ids, jobs.user, strict=True)), dict(zip(ids, seconds.tolist(), strict=len(seconds) > 0))


@functools.lru_cache(maxsize=8)
def _members(inputs: Inputs, digests: tuple[str, ...]) -> Mapping[str, Membership]:
    """Whose the jobs are; of each kind the groups with most of them."""
    return memberships(whole_case(inputs, digests).workloads[:1], SHOWN_GROUPS)


def _run_batsim(case: LoadedInputs, run: ComparedRun) -> RunRecord:
    with tempfile.TemporaryDirectory(prefix="decision-") as folder:
        path = Path(folder) / "workload.json"
        write_workload(path, replace(case.workloads[0], trace=None))  # what really happened is not for a scheduler
        written = replace(case, inputs=replace(case.inputs, workloads=(path,), selection=Selection()))
        batsim = RealBatsim(command=run.batsim, timeout=run.timeout)
        run_to_folder(written, run.choice, Path(folder), engine=run.engine, batsim=batsim)
        return read_run_record(folder)


def outcome_of(plan: ComparisonPlan, run: ComparedRun, result: Result) -> MeasuredRun:
    """A run and what it came to."""
    return MeasuredRun(
        workload=workload_name(plan, run.inputs.workloads[0]),
        contender=contender(plan, run.name, run.engine),
        first_job=run.window[0] if run.window else 0,
        seed=run.choice.seed,
        copy=run.copy,
        metrics={name: value for name, value in result.items() if name not in (_WITHOUT, _SCHEDULE, _GROUPS)},
        without=result.get(_WITHOUT, {}),
        schedule=result.get(_SCHEDULE, ""),
        groups=msgspec.convert(result.get(_GROUPS, []), list[GroupFigures]),
    )


def windows_of(plan: ComparisonPlan, workloads: Sequence[Workload]) -> tuple[int, dict[str, int]] | None:
    """The jobs in a window and in each workload, as `compare_runs` takes them; None where all of each is run."""
    if not plan.windows:
        return None
    sizes = zip(plan.workloads, workloads, strict=True)
    return plan.length, {workload_name(plan, path): len(workload.jobs) for path, workload in sizes}


def _compiling(
    runs: Iterable[ComparedRun], kernels: Mapping[tuple[str, Engine], list[Callable[..., Any]]]
) -> list[ComparedRun]:
    """The runs that compile what has not been compiled yet on this machine."""
    compiling, cold = [], {kernel for some in kernels.values() for kernel in some if not is_warm(kernel)}
    for run in runs if cold else ():
        compiled = cold.intersection(kernels.get((run.name, run.engine), ()))
        if compiled:
            compiling.append(run)
            cold -= compiled
    return compiling
