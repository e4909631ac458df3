"""What a plan's runs say: windows and days by their interquartile means, whole workloads by their shaken copies."""

from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from decision.analysis.comparison import MeasuredRun, PolicyComparison, compare_runs, default_metrics
from decision.analysis.judged import judge_runs
from decision.analysis.metric_list import METRICS, Metric
from decision.analysis.whole import blocks_text, counted_text
from decision.model.demand import submit_times
from decision.model.resample import shake_of
from decision.model.workload import Workload

from .chunks import task_key
from .compare import COPIES, RUNS, counted_part, outcome_of, windows_of, with_record
from .comparison_plan import ComparisonPlan, workload_name
from .planned_runs import PlannedRuns
from .store import ResultStore


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
    said = "windows begin with idle hosts and are short: starvation cannot show in them"
    whole = _finished_whole(plan, workloads, windowed, folder)
    if whole is None:
        return f"{said}; the same command without --windows judges the whole workloads"
    verdicts = {(row.metric, row.workload, row.contender): row.verdict for row in whole.rows}
    apart = []
    for row in windowed.rows:
        other = verdicts.get((row.metric, row.workload, row.contender), row.verdict)
        if other != row.verdict:
            words = ("no different" if verdict == "open" else verdict for verdict in (row.verdict, other))
            both = f"{' in windows, '.join(words)} on the whole"
            apart.append(f"{row.contender} in {row.metric} on {row.workload} ({both})")
    if not apart:
        return f"{said}; the whole workloads say the same of each policy"
    return f"{said}; they and the whole workloads disagree on {'; '.join(apart)}"


def _finished_whole(
    plan: ComparisonPlan, workloads: Sequence[Workload], windowed: PolicyComparison, folder: Path
) -> PolicyComparison | None:
    """The comparison of the whole workloads on the usual copies, if all of its runs are there."""
    whole = replace(plan, windows=0, shake=COPIES)
    runs = list(PlannedRuns(whole))
    with closing(ResultStore(folder / RUNS)) as store:
        results = [store.get(task_key(run)) for run in runs]
    outcomes = [outcome_of(whole, run, found) for run, found in zip(runs, results, strict=True) if found is not None]
    if len(outcomes) < len(runs):
        return None
    metrics = [METRICS[name] for name in dict.fromkeys(row.metric for row in windowed.rows)]
    return judge_plan(whole, outcomes, workloads, windowed.baseline, metrics=metrics)
