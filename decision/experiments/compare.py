"""``decision compare``: the runs of a plan, each done and measured once; what they say, and how it was set up."""

import csv
import datetime
import functools
import io
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Unpack

import msgspec
import numpy as np
from msgspec import to_builtins
from msgspec.structs import replace

from decision import __version__
from decision.compiling.jit import is_warm
from decision.experiments import Engine
from decision.files.text import file_facts, utf8, write_files
from decision.files.workload import is_log
from decision.model.columns import columns_of
from decision.model.dates import DAY_LEAD
from decision.model.demand import find_sessions, runtimes, sizes, submit_times
from decision.model.errors import ConfigError, DecisionError
from decision.model.reshape import dropped_text, shake_of
from decision.model.workload import Workload

from .audit import RECORDED, agreement, recorded_jobs, standing
from .comparison import MeasuredRun, PolicyComparison, compare_runs, default_metrics, judge_runs
from .inputs import Inputs, LoadedInputs, one_speed, writable_folder
from .metric_list import Metric, measure_run, metric_named
from .metrics import SHOWN_GROUPS, GroupFigures, Membership, group_figures, memberships
from .plan import (
    ComparedRun,
    ComparisonPlan,
    PlannedRuns,
    contender,
    contenders,
    fastest_speed,
    inputs_of,
    simulated,
    twins,
    whole_case,
    workload_case,
    workload_name,
)
from .run import RealBatsim, compiled_kernels, run_in_batsim, run_inputs
from .store import Result, ResultStore
from .tasks import How, Progress, run_tasks, task_key
from .whole import LogPart, blocks_text, counted_text, judge_run, part_of

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
    # Those runs come first that compile what has not been compiled yet on this machine
    first, cold = [], {kernel for some in kernels.values() for kernel in some if not is_warm(kernel)}
    for run in runs if cold else ():
        if compiled := cold.intersection(kernels.get((run.name, run.engine), ())):
            first.append(run)
            cold -= compiled
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
        if in_batsim:
            batsim = RealBatsim(command=run.batsim, timeout=run.timeout)
            record = run_in_batsim(case, run.choice, run.engine, batsim)
        else:
            record = run_inputs(case, run.choice, engine=run.engine)
    except DecisionError as error:
        error.args = (f"{run.title}: {error}",)
        raise
    digests = run.digests[: 2 + len(run.inputs.events)]
    begin = None if run.midnight is None else DAY_LEAD
    metrics = measure_run(record, case.platform, *_known_of_jobs(run.inputs, digests), begin)
    metrics |= {own.name: own.of_run(record.jobs, len(case.platform.hosts)) for own in run.own_metrics}
    if run.near_record and run.choice.policy != RECORDED:
        metrics |= agreement(record, inputs_of(msgspec.structs.replace(run, copy=0)).workloads[0])
    whole = run.window is None and run.midnight is None
    groups = group_figures(record.jobs, _members(run.inputs, digests)) if whole else []
    found = {_GROUPS: [to_builtins(row) for row in groups]} if groups else {}
    if not run.copy:
        return _known(metrics) | found
    part = _counted_part(run.inputs, digests)
    judged = judge_run(record.jobs, part, len(case.platform.hosts))
    for own in run.own_metrics:
        judged.metrics[own.name], judged.without[own.name] = own.of_part(record.jobs, part, len(case.platform.hosts))
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


# What a plan's runs say: windows and days by their interquartile means, whole workloads by their shaken copies.


def judge_plan(
    plan: ComparisonPlan,
    outcomes: Sequence[MeasuredRun],
    workloads: Sequence[Workload],
    baseline: str,
    *,
    metrics: Sequence[Metric] = (),
    named: Collection[str] = (),
    setup: dict[str, str] | None = None,
) -> PolicyComparison:
    """The comparison of a plan's runs.

    Args:
        plan: what was run.
        outcomes: the runs.
        workloads: those of `read_workloads`.
        baseline: the contender that the others are compared with.
        metrics: what is compared; the default ones if none.
        named: contenders that have rows even if their schedules are those of others; all if none.
        setup: how they were run.

    Raises:
        ConfigError: if a metric has no value in some run.
    """
    chosen = metrics or default_metrics(outcomes, plan.feedback)
    if plan.shake:
        if not metrics:  # until the last end, it tells of one job
            chosen = [metric for metric in chosen if metric.name != "utilization"]
        listed = named or {run.contender for run in outcomes}
        lines = [*how_judged(plan, workloads), *few_copies(plan)]
        compared = judge_runs(outcomes, chosen, baseline, named=listed, setup=setup, reading=lines)
    else:
        where = windows_of(plan, workloads)
        compared = compare_runs(outcomes, chosen, baseline, seed=plan.draw, setup=setup, windows=where)
    return with_record(plan, workloads, compared)


def how_judged(plan: ComparisonPlan, workloads: Sequence[Workload]) -> list[str]:
    """What counts, how submissions move and what intervals are made of: a line for each workload."""
    lines = []
    for path, workload in zip(plan.workloads, workloads, strict=True):
        part, most = counted_part(plan, path), shake_of(submit_times(workload))
        lines.append(
            f"{workload_name(plan, path)}: {counted_text(part)}; submissions move by up to {most:.3g} s (input "
            f"shaking, Tsafrir et al. 2007); intervals: 95 %, from {blocks_text(part)}"
        )
    return lines


def few_copies(plan: ComparisonPlan) -> list[str]:
    """That so few copies say little."""
    if plan.shake * plan.seeds > 2:
        return []
    return [f"{plan.shake} shaken {'copy says' if plan.shake == 1 else 'copies say'} little of how much chance decides"]


def beside_whole(plan: ComparisonPlan, windowed: PolicyComparison, workloads: Sequence[Workload], folder: Path) -> str:
    """What windows cannot show: where they and the whole workloads disagree, if these have been run in the folder.

    Args:
        plan: of the windows.
        windowed: what they say.
        workloads: those of `read_workloads`.
        folder: of the comparison.
    """
    caveat = "windows begin with idle hosts and are short: starvation cannot show in them"
    whole = replace(plan, windows=0, shake=COPIES)  # on the usual copies
    runs = list(PlannedRuns(whole))
    with closing(ResultStore(folder / RUNS)) as store:
        results = [store.get(task_key(run)) for run in runs]
    outcomes = [outcome_of(whole, run, found) for run, found in zip(runs, results, strict=True) if found is not None]
    if len(outcomes) < len(runs):
        return f"{caveat}; the same command without --windows judges the whole workloads"
    metrics = [metric_named(name) for name in dict.fromkeys(row.metric for row in windowed.rows)]
    judged = judge_plan(whole, outcomes, workloads, windowed.baseline, metrics=metrics)
    verdicts = {(row.metric, row.workload, row.contender): row.verdict for row in judged.rows}
    apart = []
    for row in windowed.rows:
        other = verdicts.get((row.metric, row.workload, row.contender), row.verdict)
        if other != row.verdict:
            words = ("no different" if verdict == "open" else verdict for verdict in (row.verdict, other))
            both = f"{' in windows, '.join(words)} on the whole"
            apart.append(f"{row.contender} in {row.metric} on {row.workload} ({both})")
    if not apart:
        return f"{caveat}; the whole workloads say the same of each policy"
    return f"{caveat}; they and the whole workloads disagree on {'; '.join(apart)}"


# How a comparison is set up, in words for its report: what was chosen, and as what.


def describe_setup(plan: ComparisonPlan, workloads: Sequence[Workload], command: str = "") -> dict[str, str]:
    """How a plan is run, in words: what was chosen, and as what.

    Args:
        plan: what is compared.
        workloads: those of `read_workloads`.
        command: what the user typed.
    """
    files, selection, logs = (
        list(zip(plan.workloads, workloads, strict=True)),
        plan.selection,
        any(map(is_log, workloads)),
    )
    sizes = "of logs, those larger than the machine in the header" if logs else ""
    walltimes = str(selection.walltime) if logs or selection.walltime != "requested" else ""
    if walltimes and selection.time_field is not None:
        walltimes += f", those of logs in field {selection.time_field}"
    facts = {
        "command": command,
        "platform": f"{plan.platform} (sha256 {file_facts(plan.platform).sha256})",
        "workloads": ", ".join(
            f"{path} ({len(workload.jobs):,} jobs, sha256 {file_facts(path).sha256})" for path, workload in files
        ),
        **{f"left out of {path}": dropped_text(workload) for path, workload in files if workload.dropped},
        "jobs": _describe_windows(plan),
        "policies": "; ".join(f"{name} ({plan.specs[name]})" if name in plan.specs else name for name in plan.policies),
        "options of every policy": ", ".join(f"{name}={value}" for name, value in plan.settings.items()),
        "seeds of the policies": "0" if plan.seeds == 1 else f"0 to {plan.seeds - 1}",
        "engine": ", ".join(plan.engines),
        "energy": "simulated" if plan.energy else "not simulated",
        "external events": ", ".join(f"{path} (sha256 {file_facts(path).sha256})" for path in plan.events),
        **{f"notes on {path}": "; ".join(workload.notes) for path, workload in files if workload.notes},
        "jobs left out": sizes if selection.nodes is None else f"those larger than {selection.nodes:,} hosts",
        "walltimes": walltimes,
        "submissions": "users' later sessions by the ends of their earlier jobs (feedback)" if plan.feedback else "",
        "package": f"decision {__version__}",
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
    }
    return {name: text for name, text in facts.items() if text}


def _describe_windows(plan: ComparisonPlan) -> str:
    cut = plan.selection.jobs != (0, None)
    if plan.days is not None:
        first, last = plan.days
        which = f"days {first}:{'' if last is None else last} of each workload, of those with two submissions or more"
        return f"{which}; each is a run of its own, which begins an hour before midnight and is counted from then on"
    among = f"jobs {plan.selection.texts()['jobs']} of each workload" if cut else "each workload"
    if not plan.windows:
        every = among if cut else f"all of {among}"
        return f"{every}, on {plan.shake:,} copies with shaken submissions" if plan.shake else every
    each = f"{plan.windows:,} random sequences of {plan.length:,} jobs of {among.removeprefix('jobs ')}"
    return f"{each}, drawn with seed {plan.draw}, the same for all policies"


# ``decision compare --worth``: what predictions do to policies, against walltimes and perfect predictions.


class PredictionsWorth(msgspec.Struct, frozen=True, kw_only=True):
    """What predictions do to a metric of a policy, as means over its runs on a workload."""

    workload: str
    policy: str
    metric: str
    walltimes: float  # the policy by walltimes
    predictions: float  # as it is
    perfect: float  # by perfect predictions
    recovered: float  # share of the way from walltimes to perfect predictions; nan where there is none


def worth_of_predictions(plan: ComparisonPlan, comparison: PolicyComparison) -> list[PredictionsWorth]:
    """What each policy's predictions are worth, by workload, policy on an engine, and metric."""
    found: dict[tuple[str, str], list[MeasuredRun]] = {}
    for run in comparison.outcomes:
        found.setdefault((run.workload, run.contender), []).append(run)
    rows = []
    metrics = dict.fromkeys(row.metric for row in comparison.rows)
    for workload in dict.fromkeys(run.workload for run in comparison.outcomes):
        for policy in simulated(plan):
            plain, perfect = twins(plan, policy)
            for engine in plan.engines:
                three = [found[workload, contender(plan, name, engine)] for name in (plain.name, policy, perfect.name)]
                for metric in metrics:
                    plainly, predicted, best = (
                        float(np.mean([run.metrics.get(metric, math.nan) for run in runs])) for runs in three
                    )
                    gap = plainly - best
                    rows.append(
                        PredictionsWorth(
                            workload=workload,
                            policy=contender(plan, policy, engine),
                            metric=metric,
                            walltimes=plainly,
                            predictions=predicted,
                            perfect=best,
                            recovered=(plainly - predicted) / gap if gap else math.nan,
                        )
                    )
    return rows


def write_worth(path: Path, rows: Sequence[PredictionsWorth]) -> None:
    """Write the rows as CSV. Raises ConfigError if the file cannot be written."""
    columns = PredictionsWorth.__struct_fields__
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([getattr(row, column) for column in columns] for row in rows)
    write_files({path: [utf8(text.getvalue())]})
