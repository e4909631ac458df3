"""``decision evaluate``: what is learned and policies side by side, in episodes or over whole workloads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import refuse_unused
from .grouped import Chosen, with_groups
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DaysOption,
    DecideLimitOption,
    EnergyOption,
    EventsOption,
    JsonOption,
    PlatformOption,
    SeedOption,
    ShakeOption,
    WorkloadOption,
    read_days,
)

if TYPE_CHECKING:
    from decision.learn.schedulers import EpisodeComparison
    from decision.runs.inputs import LoadedInputs

_EPISODES = "Episodes"

Policies = Annotated[list[str], typer.Argument(help="Checkpoints, policies as for decision run.", metavar="POLICY...")]
Episodes = Annotated[
    int | None,
    typer.Option(
        "--episodes",
        help="Run so many episodes in place of the whole workload; 100 with --placed or --offline.",
        min=1,
        rich_help_panel=_EPISODES,
    ),
]
Placed = Annotated[
    int | None,
    typer.Option(
        "--placed",
        help="Number of jobs that an episode places.",
        min=1,
        show_default="1000",
        rich_help_panel=_EPISODES,
    ),
]
Offline = Annotated[
    bool,
    typer.Option("--offline", help="Submit only the jobs that the episode places.", rich_help_panel=_EPISODES),
]
Whole = Annotated[bool, typer.Option("--whole", help="Run the workload once, as it is, and count all jobs.")]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="CSV file for the metrics of each episode, or run.", metavar="FILE"),
]


@with_groups
def evaluate_command(
    context: typer.Context,
    policies: Policies,
    platform: PlatformOption,
    workload: WorkloadOption,
    shake: ShakeOption = 10,
    episodes: Episodes = None,
    placed: Placed = None,
    seed: SeedOption = 0,
    offline: Offline = False,
    whole: Whole = False,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    output: MetricsFile = None,
    *,
    chosen: Chosen,
    days: DaysOption = None,
    energy: EnergyOption = False,
    events: EventsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare learned policies with heuristics on the same jobs.

    Each policy runs the whole workload on ten shaken copies, as decision compare
    does, which keeps finished runs, has more figures and writes a page; the first
    policy is the baseline. --whole runs the workload once, as it is, with the
    figures of decision run, and --days each day alone.

    With --episodes parts are run in place of the whole: an episode begins at a
    random job and ends when --placed jobs have been placed; the last job is
    followed by the first again. Metrics are those of Wang, Harwood and Rodriguez
    (HPCC 2022), averages over time, the mean bounded slowdown of the placed
    jobs, and the longest waits, of jobs that still wait, too. An episode begins
    with idle hosts and leaves the queue's rest behind, so that policies that let
    large jobs wait look well.

    Examples:

      decision evaluate easy ranking saf+easy -p cluster.xml -w log.swf

      decision evaluate easy learned/dbf.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --select 5000:

      decision evaluate fcfs easy -p cluster.xml -w work.json -o metrics.csv

      decision evaluate learned/inspector.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --placed 128 --offline
    """
    from decision.analysis.recorded import RECORDED
    from decision.model.dates import on_days
    from decision.model.errors import ConfigError
    from decision.runs.inputs import Inputs, load_inputs

    from .progress import announce_compilation
    from .tables import print_dropped, warn_of_seen_jobs

    refuse_unused(context, {"energy": days is not None}, "it needs --days")
    in_episodes = offline or episodes is not None or placed is not None
    parts = dict.fromkeys(("episodes", "placed", "offline"), False)
    if days is not None:
        refuse_unused(context, {**parts, "whole": False}, "--days runs each day")
    if whole:
        refuse_unused(context, parts, "--whole runs the workload as it is")
    judged = not (whole or in_episodes or days is not None)
    refuse_unused(context, {"shake": judged}, "it is for the whole workload, without --whole")
    refuse_unused(context, {"events": whole or judged}, "it is for the whole workload")
    inputs = Inputs(
        platform=platform,
        workloads=(workload,),
        events=tuple(events or ()),
        selection=chosen.read(),
        energy=energy,
    )
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    alone = read_days(days)
    if RECORDED in policies and in_episodes:
        raise ConfigError(f"{RECORDED}: nothing is simulated, so there are no episodes; leave them out", field="policy")
    warn_of_seen_jobs(policies, [on_days(w, slice(*alone)) for w in case.workloads] if alone else case.workloads)
    announce_compilation()
    if alone is not None or judged:
        _compare_runs(case, policies, alone, shake if judged else 0, seed, decide_limit, output, as_json)
    elif whole:
        _evaluate_whole(case, policies, seed, decide_limit, output, as_json)
    else:
        from decision.learn import require_learning

        require_learning()
        from decision.learn.schedulers import EpisodeComparison

        comparison = EpisodeComparison(
            case.platform,
            case.workloads[0],
            placed or _PLACED,
            episodes or _EPISODES_RUN,
            seed,
            online=not offline,
            decide_limit=decide_limit,
        )
        _evaluate_episodes(comparison, policies, output, as_json)


_PLACED, _EPISODES_RUN = 1000, 100  # jobs of an episode and episodes, where one of them is given


def _compare_runs(
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
    from decision.runs.compare import read_workloads, run_comparison
    from decision.runs.comparison_plan import ComparisonPlan
    from decision.runs.judging import judge_plan

    from .progress import counting
    from .tables import print_comparison, print_json

    inputs = case.inputs
    plan = ComparisonPlan(
        platform=inputs.platform,
        workloads=inputs.workloads,
        policies=tuple(dict.fromkeys(policies)),
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


def _evaluate_whole(
    case: "LoadedInputs", policies: list[str], seed: int, decide_limit: float, output: Path | None, as_json: bool
) -> None:
    """One run of the whole workload under each policy."""
    from decision.analysis.metrics import summarise
    from decision.analysis.recorded import standing_of_tables
    from decision.envs import write_metrics
    from decision.runs.inputs import PolicyChoice
    from decision.runs.run import run_inputs

    from .progress import working
    from .tables import print_json, print_summaries, summary_columns, summary_rows

    summaries, tables = {}, {}
    for policy in policies:
        with working(policy):
            record = run_inputs(case, PolicyChoice(policy=policy, seed=seed, decide_limit=decide_limit))
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


def _evaluate_episodes(
    comparison: "EpisodeComparison", policies: list[str], output: Path | None, as_json: bool
) -> None:
    from decision.envs import write_metrics

    from .learning_tables import estimate_means, evaluation_rows, print_evaluation, warn_of_few_blocks
    from .progress import working
    from .tables import print_json

    metrics = {}
    for policy in policies:
        with working(policy):
            metrics[policy] = comparison.metrics(policy)
    if output is not None:
        write_metrics(output, metrics)
    warn_of_few_blocks(metrics, comparison.first, comparison.jobs)
    estimates, episodes = estimate_means(metrics, comparison.first, comparison.jobs), len(comparison.first)
    if as_json:
        print_json({"episodes": episodes, "policies": evaluation_rows(estimates, episodes)})
    else:
        print_evaluation(estimates, episodes)
