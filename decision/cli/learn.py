"""``decision train`` and ``decision evaluate``: learned schedulers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import refuse_unused, typed_command
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DaysOption,
    DecideLimitOption,
    EnergyOption,
    EventsOption,
    JsonOption,
    MissingWalltimeOption,
    NodesOption,
    OutputFolder,
    PlatformOption,
    SeedOption,
    SelectOption,
    TimeFieldOption,
    WalltimeName,
    WalltimeOption,
    WorkloadOption,
    read_days,
    read_selection,
)

if TYPE_CHECKING:
    from decision.learn.schedulers import EpisodeComparison
    from decision.runs.inputs import LoadedInputs

_LEARNING = "Learning"
_EPISODES = "Episodes"


Learned = Annotated[
    str,
    typer.Argument(
        help="Scheduler to train: dbf, rlscheduler, inspector, ranking, repair, packing, prices, deepscheduling, green "
        "or your own.",
        metavar="SCHEDULER",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Settings: [bold]dbf-compact[/bold] (the default of dbf), [bold]dbf-paper[/bold], "
        "[bold]rlscheduler[/bold], [bold]inspector[/bold], [bold]ranking[/bold], [bold]deepscheduling-compact[/bold], "
        "[bold]deepscheduling-paper[/bold], or a file.toml of the same form.",
        metavar="NAME",
        rich_help_panel=_LEARNING,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Setting that replaces the preset's; may be repeated.",
        metavar="KEY=VALUE",
        rich_help_panel=_LEARNING,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps",
        help="Number of environment steps; for ranking, prices and joint, of jobs that are placed; for bc and crr, of "
        "updates.",
        min=1,
        rich_help_panel=_LEARNING,
    ),
]
LearnedDays = Annotated[
    str | None,
    typer.Option(
        "--days",
        help="Learn from these days alone, deepscheduling and joint: A to B - 1 of those with two submissions or more.",
        metavar="A:B",
        rich_help_panel=_LEARNING,
    ),
]
TrainingSeed = Annotated[
    int,
    typer.Option("--seed", help="Random seed.", min=0, max=2**32 - 1, rich_help_panel=_LEARNING),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Recorded choices, made by decision collect, for learn.method=bc, crr or sac.",
        metavar="FILE.choices",
        rich_help_panel=_LEARNING,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Resume the training in FOLDER; a larger --steps extends it.", rich_help_panel=_LEARNING
    ),
]

Policies = Annotated[list[str], typer.Argument(help="Checkpoints, policies as for decision run.", metavar="POLICY...")]
Episodes = Annotated[int, typer.Option("--episodes", help="Number of episodes.", min=1, rich_help_panel=_EPISODES)]
Placed = Annotated[
    int, typer.Option("--placed", help="Number of jobs that an episode places.", min=1, rich_help_panel=_EPISODES)
]
Offline = Annotated[
    bool,
    typer.Option("--offline", help="Submit only the jobs that the episode places.", rich_help_panel=_EPISODES),
]
Whole = Annotated[
    bool,
    typer.Option("--whole", help="Run the whole workload once, as it is, instead.", rich_help_panel=_EPISODES),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="CSV file for the metrics of each episode, or run.", metavar="FILE"),
]


def train_command(
    context: typer.Context,
    scheduler: Learned,
    platform: PlatformOption,
    workload: WorkloadOption,
    output: OutputFolder,
    preset: Preset = None,
    changes: Changes = None,
    steps: Steps = None,
    data: Data = None,
    seed: TrainingSeed = 0,
    resume: Resume = False,
    jobs: SelectOption = None,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
    time_field: TimeFieldOption = None,
    missing_walltime: MissingWalltimeOption = "none",
    days: LearnedDays = None,
    events: EventsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a scheduler on a workload, in the embedded engine.

    dbf is split-window deep backfilling, which starts jobs from a window of the
    queue; rlscheduler gives jobs priorities, and the others are backfilled by
    rule; inspector (SchedInspector) accepts or rejects the next job of an order;
    ranking is list scheduling with evolved priorities and reservations; repair
    places the jobs of windows on a fat-tree; packing chooses which job starts,
    for utilization, by requested and predicted run times; prices says what free
    hosts of a fat-tree are worth to later jobs, for allocation=tree,prices=FILE.ckpt;
    deepscheduling chooses which job starts and which waits on servers that sleep,
    day by day; joint decides starts, waking and sleeping, and learns by evolution;
    green chooses which job starts, or takes the hosts of one that is worth less,
    as power comes and goes (--events).

    With --data, choices that decision collect recorded are learned from: bc clones
    them, crr clones the better ones, sac goes on from there by itself.

    Writes FOLDER/NAME.ckpt, usable anywhere as --policy FILE.ckpt; the learning
    curves, FOLDER/progress.csv and TensorBoard's event files; the state for
    --resume; and FOLDER/run.json, which says what made them. Shown from the
    first minute on, except for prices and joint, are mean waiting time and bounded slowdown
    of a validation: 16 sequences of 250, or days, of what is learned from. After
    Ctrl-C the same command with --resume gives the result that an uninterrupted
    training would have given.

    Examples:

      decision train dbf -p cluster.xml -w log.swf --select :5000 -o learned

      decision train dbf -p cluster.xml -w work.json -o learned --steps 500000 \\
          --set env.head=9 --set env.tail=1 --set learn.lr=1e-4

      decision train inspector -p cluster.xml -w log.swf -o over-f1 \\
          --set env.base=f1

      decision train dbf --preset dbf-bc -p cluster.xml -w log.swf -o cloned \\
          --data sjf.choices

      decision run -p cluster.xml -w log.swf --policy learned/dbf.ckpt

      decision train deepscheduling -p orion.xml -w days.json --days :1600 -o nights

      decision train joint -p orion.xml -w days.json --days :1600 -o joint
    """
    from decision.batsim.signals import stop_on_signals
    from decision.learn import require_learning
    from decision.learn.config import load_config
    from decision.model.errors import ConfigError
    from decision.runs.inputs import Inputs, first_log, load_inputs
    from decision.schedulers import find_scheduler

    from .learning_tables import learning, print_curve, read_curve
    from .progress import announce_compilation
    from .tables import print_dropped, print_json
    from .terminal import note

    changes = [*(changes or ()), *([f"learn.steps={steps}"] if steps else ())]
    if days is not None:
        changes.append(f"env.days={_checked_days(scheduler, days)}")
    preset = preset or find_scheduler(scheduler).default_preset
    config = load_config(preset, changes, seed=seed)
    if config.scheduler != scheduler:
        advice = f"train that, or choose a preset for {scheduler}"
        raise ConfigError(f"--preset {preset} is for {config.scheduler}: {advice}")
    selection = read_selection(jobs, nodes, walltime, time_field, missing_walltime)
    energy = getattr(find_scheduler(scheduler), "energy", False)
    supply = tuple(events or ())
    inputs = Inputs(platform=platform, workloads=(workload,), events=supply, energy=energy, selection=selection)
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    require_learning()
    from decision.runs.training import check_resumable, train_to_folder

    if resume:
        check_resumable(output)
    announce_compilation()
    with stop_on_signals() as request, learning(config.steps) as show:
        checkpoint = train_to_folder(
            first_log(case),
            config,
            output,
            data=data,
            resume=resume,
            stop=lambda: bool(request.signal),
            report=lambda done: show(done.steps, done.rate, done.row),
            note=note,
            command=typed_command(context),
        )
    curve = read_curve(checkpoint.parent / "progress.csv")
    if as_json:
        print_json({"checkpoint": checkpoint, "curve": curve})
    else:
        print_curve(curve)
    note(f"learned: {checkpoint}")
    request.check()


def _checked_days(scheduler: str, text: str) -> list[int]:
    """The days of ``--days``, as the setting ``env.days`` has them. Raises ConfigError if there is no such setting."""
    from decision.model.errors import ConfigError
    from decision.schedulers import find_scheduler

    if "days" not in find_scheduler(scheduler).Settings.__struct_fields__:
        raise ConfigError(f"--days: {scheduler} does not learn by days; leave the option out", field="days")
    first, last = read_days(text) or (0, None)
    return [first] if last is None else [first, last]


def evaluate_command(
    context: typer.Context,
    policies: Policies,
    platform: PlatformOption,
    workload: WorkloadOption,
    episodes: Episodes = 100,
    placed: Placed = 1000,
    seed: SeedOption = 0,
    offline: Offline = False,
    whole: Whole = False,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    output: MetricsFile = None,
    jobs: SelectOption = None,
    days: DaysOption = None,
    energy: EnergyOption = False,
    events: EventsOption = None,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
    time_field: TimeFieldOption = None,
    missing_walltime: MissingWalltimeOption = "none",
    as_json: JsonOption = False,
) -> None:
    """Compare learned policies with heuristics over the same episodes.

    An episode begins at a random job of the workload and ends when --placed
    jobs have been placed; the last job is followed by the first again. Metrics
    are those of Wang, Harwood and Rodriguez (HPCC 2022), averages over time, the
    mean bounded slowdown of the placed jobs, and the longest waits, of jobs that
    still wait, too. An episode begins with idle hosts and leaves the queue's rest
    behind, so that policies that let large jobs wait look well: --whole runs the
    workload as it is, to the last job, with the figures of decision run. --days
    runs each day alone, as decision compare does, which has more figures.

    Examples:

      decision evaluate ranking easy saf+easy -p cluster.xml -w log.swf --whole

      decision evaluate learned/dbf.ckpt easy sjf+easy \\
          -p cluster.xml -w log.swf --select 5000:

      decision evaluate fcfs easy -p cluster.xml -w work.json -o metrics.csv

      decision evaluate learned/inspector.ckpt sjf+easy \\
          -p cluster.xml -w log.swf --placed 128 --offline
    """
    from decision.learn import require_learning

    require_learning()
    from decision.analysis.recorded import RECORDED
    from decision.model.dates import on_days
    from decision.model.errors import ConfigError
    from decision.runs.inputs import Inputs, load_inputs

    from .progress import announce_compilation
    from .tables import print_dropped, warn_of_seen_jobs

    refuse_unused(context, {"energy": days is not None}, "it needs --days")
    if days is not None:
        refuse_unused(context, dict.fromkeys(("episodes", "placed", "offline", "whole"), False), "--days runs each day")
    refuse_unused(
        context, dict.fromkeys(("episodes", "placed", "offline"), not whole), "--whole runs the workload as it is"
    )
    refuse_unused(context, {"events": whole}, "it needs --whole")
    inputs = Inputs(
        platform=platform,
        workloads=(workload,),
        events=tuple(events or ()),
        selection=read_selection(jobs, nodes, walltime, time_field, missing_walltime),
        energy=energy,
    )
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    chosen = read_days(days)
    if RECORDED in policies and chosen is None and not whole:
        raise ConfigError(f"{RECORDED}: nothing is simulated, so there are no episodes; give --whole", field="policy")
    warn_of_seen_jobs(policies, [on_days(w, slice(*chosen)) for w in case.workloads] if chosen else case.workloads)
    announce_compilation()
    if chosen is not None:
        _evaluate_days(case, policies, chosen, seed, decide_limit, output, as_json)
    elif whole:
        _evaluate_whole(case, policies, seed, decide_limit, output, as_json)
    else:
        from decision.learn.schedulers import EpisodeComparison

        comparison = EpisodeComparison(
            case.platform, case.workloads[0], placed, episodes, seed, online=not offline, decide_limit=decide_limit
        )
        _evaluate_episodes(comparison, policies, output, as_json)


def _evaluate_days(
    case: "LoadedInputs",
    policies: list[str],
    days: tuple[int, int | None],
    seed: int,
    decide_limit: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """A run of each day under each policy, and the means over days."""
    import tempfile

    import numpy as np

    from decision.analysis.comparison import compare_runs, default_metrics
    from decision.analysis.metric_list import METRICS
    from decision.cores import available_workers
    from decision.envs import write_metrics
    from decision.runs.compare import ComparisonPlan, run_comparison

    from .progress import counting
    from .tables import print_comparison, print_json

    inputs = case.inputs
    plan = ComparisonPlan(
        platform=inputs.platform,
        workloads=inputs.workloads,
        policies=tuple(dict.fromkeys(policies)),
        energy=inputs.energy,
        selection=inputs.selection,
        days=days,
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
    comparison = compare_runs(outcomes, metrics, plan.policies[0], seed=seed)
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
    from decision.runs.run import simulate_inputs

    from .progress import working
    from .tables import print_json, print_summaries, summary_columns, summary_rows

    summaries, tables = {}, {}
    for policy in policies:
        with working(policy):
            record = simulate_inputs(case, PolicyChoice(policy=policy, seed=seed, decide_limit=decide_limit))
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
