"""The three ways of ``decision evaluate``: days or shaken copies, the whole workload once, episodes."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decision.learn.schedulers import EpisodeComparison
    from decision.runs.inputs import LoadedInputs


def evaluate_runs(
    case: "LoadedInputs",
    policies: list[str],
    days: tuple[int, int | None] | None,
    shake: int,
    seed: int,
    decide_limit: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Runs of each day, or of each shaken copy of the whole, under each policy, and what they say."""
    import tempfile

    import numpy as np

    from decision.analysis.comparison import default_metrics
    from decision.analysis.metric_list import METRICS
    from decision.computer.cores import available_workers
    from decision.envs import write_metrics
    from decision.policies.registry import named_policies
    from decision.runs.compare import read_workloads, run_comparison
    from decision.runs.comparison_plan import ComparisonPlan
    from decision.runs.judging import judge_plan

    from .progress import counting
    from .tables import print_comparison, print_json

    inputs, called = case.inputs, named_policies(policies)
    plan = ComparisonPlan(
        platform=inputs.platform,
        workloads=inputs.workloads,
        policies=tuple(called),
        specs={name: spec for name, spec in called.items() if name != spec},
        energy=inputs.energy,
        events=inputs.events,
        selection=inputs.selection,
        days=days,
        shake=shake,
        draw=seed,
        decide_limit=decide_limit,
    )
    with tempfile.TemporaryDirectory(prefix="decision-") as folder, counting("runs") as show:
        outcomes = run_comparison(plan, Path(folder), processes=available_workers(), progress=show)
    energetic = [METRICS[name] for name in ("energy_waste", "waste_bound", "switches") if inputs.energy]
    metrics = [*default_metrics(outcomes), *energetic]
    if output is not None:
        columns = {
            policy: {m.name: np.array([r.metrics[m.name] for r in outcomes if r.contender == policy]) for m in metrics}
            for policy in plan.policies
        }
        write_metrics(output, columns)
    comparison = judge_plan(plan, outcomes, read_workloads(plan), plan.policies[0], metrics=metrics)
    if as_json:
        print_json(comparison)
    else:
        print_comparison(comparison)


def evaluate_whole(
    case: "LoadedInputs", policies: list[str], seed: int, decide_limit: float, output: Path | None, as_json: bool
) -> None:
    """One run of the whole workload under each policy."""
    from decision.analysis.recorded import standing_of_tables
    from decision.analysis.summary import summarise
    from decision.envs import write_metrics
    from decision.policies.registry import named_policies
    from decision.runs.inputs import PolicyChoice
    from decision.runs.run import run_inputs

    from .progress import working
    from .summary_tables import print_summaries, summary_columns, summary_rows
    from .tables import print_json

    summaries, tables = {}, {}
    for policy, spec in named_policies(policies).items():
        with working(policy):
            record = run_inputs(case, PolicyChoice(policy=spec, seed=seed, decide_limit=decide_limit))
        tables[policy] = record.jobs
        summaries[policy] = summarise(
            record.jobs,
            len(case.platform.hosts),
            window_gap=record.window_gap,
            known=record,
            lost_work=record.lost_work,
        )
    if output is not None:
        write_metrics(output, summary_columns(summaries))
    beside = standing_of_tables(tables, case.workloads[0].nb_res, case.inputs.workloads[0].stem)
    if as_json:
        print_json({"runs": summary_rows(summaries)} | ({"recorded": [beside]} if beside else {}))
    else:
        print_summaries(summaries, beside)


def evaluate_episodes(comparison: "EpisodeComparison", policies: list[str], output: Path | None, as_json: bool) -> None:
    """Episodes under each policy, and the means over them."""
    from decision.envs import write_metrics
    from decision.policies.registry import named_policies

    from .learning_tables import estimate_means, evaluation_rows, print_evaluation, warn_of_few_blocks
    from .progress import working
    from .tables import print_json

    metrics = {}
    for policy, spec in named_policies(policies).items():
        with working(policy):
            metrics[policy] = comparison.metrics(spec)
    if output is not None:
        write_metrics(output, metrics)
    warn_of_few_blocks(metrics, comparison.first, comparison.jobs)
    estimates, episodes = estimate_means(metrics, comparison.first, comparison.jobs), len(comparison.first)
    if as_json:
        print_json({"episodes": episodes, "policies": evaluation_rows(estimates, episodes)})
    else:
        print_evaluation(estimates, episodes)
