"""``decision train`` and ``decision evaluate``: learned schedulers."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
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
    ShakeOption,
    TimeFieldOption,
    WalltimeName,
    WalltimeOption,
    WorkloadOption,
    read_days,
    read_selection,
)
from .spread import Spread, spreads
from .sweep import read_seeds, train_combinations

if TYPE_CHECKING:
    from decision.learn.config import TrainConfig
    from decision.learn.schedulers import EpisodeComparison
    from decision.runs.inputs import LoadedInputs
    from decision.runs.tasks import How

_LEARNING = "Learning"
_EPISODES = "Episodes"


Learned = Annotated[
    str,
    typer.Argument(
        help="Scheduler to train: dbf, rlscheduler, inspector, ranking, repair, packing, prices, deepscheduling, green "
        "or your own; or one of its presets.",
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
        help="Setting that replaces the preset's; may be repeated. Several values, KEY=A,B, are a training each.",
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
TrainingSeeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        help="A training for each random seed from A to B - 1, and for each value of --set.",
        metavar="A:B",
        rich_help_panel=_LEARNING,
    ),
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


@spreads
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
    seeds: TrainingSeeds = None,
    resume: Resume = False,
    jobs: SelectOption = None,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
    time_field: TimeFieldOption = None,
    missing_walltime: MissingWalltimeOption = "none",
    days: LearnedDays = None,
    events: EventsOption = None,
    *,
    spread: Spread,
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

    With --seeds A:B, or several values in --set, there is a training for each
    combination, in FOLDER/trainings, -j at a time, here or on a cluster (--on).
    The same command goes on where each of them stood; FOLDER/trainings.csv has a
    row of each, and FOLDER/report.html their curves. One training by evolution
    lets the workers of --on play its candidates.

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

      decision train dbf-compact -p cluster.xml -w log.swf -o rates \\
          --seeds 0:5 --set learn.lr=1e-3,3e-4 --on slurm -j 10
    """
    from decision.learn import require_learning
    from decision.learn.config import alternatives, load_config, preset_names
    from decision.model.errors import ConfigError
    from decision.runs.inputs import Inputs, load_inputs
    from decision.schedulers import find_scheduler

    from .tables import print_dropped

    if preset is None and scheduler in preset_names():
        preset, scheduler = scheduler, load_config(scheduler).scheduler
    preset = preset or find_scheduler(scheduler).default_preset
    changes = [*(changes or ()), *([f"learn.steps={steps}"] if steps else ())]
    if days is not None:
        changes.append(f"env.days={_checked_days(scheduler, days)}")
    many = seeds is not None or any(len(alternatives(change)) > 1 for change in changes)
    config = load_config(preset, [alternatives(change)[0] for change in changes], seed=seed)
    if config.scheduler != scheduler:
        advice = f"train that, or choose a preset for {scheduler}"
        raise ConfigError(f"--preset {preset} is for {config.scheduler}: {advice}")
    selection = read_selection(jobs, nodes, walltime, time_field, missing_walltime)
    energy = find_scheduler(scheduler).energy
    supply = tuple(events or ())
    inputs = Inputs(platform=platform, workloads=(workload,), events=supply, energy=energy, selection=selection)
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    require_learning()
    if many:
        refuse_unused(context, {"audit": False}, "what is done again goes on where it stood")
        refuse_unused(context, {"seed": seeds is None}, "--seeds names them")
        train_combinations(preset, changes, read_seeds(seeds) or [seed], inputs, output, data, spread, as_json)
        return
    several = "it needs --seeds, or several values in --set"
    refuse_unused(context, dict.fromkeys(("limit", "share", "audit"), False), several)
    refuse_unused(context, dict.fromkeys(("processes", "submit", "wait"), spread.elsewhere), f"{several}, or --on")
    _train_one(context, case, config, output, data, resume, spread, as_json)


def _train_one(
    context: typer.Context,
    case: "LoadedInputs",
    config: "TrainConfig",
    output: Path,
    data: Path | None,
    resume: bool,
    spread: Spread,
    as_json: bool,
) -> None:
    """Do one training, and print its curve."""
    from decision.batsim.signals import stop_on_signals
    from decision.runs.elsewhere import share_out
    from decision.runs.inputs import first_log
    from decision.runs.training import check_resumable, train_to_folder

    from .learning_tables import learning, print_curve, read_curve
    from .progress import announce_compilation
    from .tables import print_json
    from .terminal import note

    if resume:
        check_resumable(output)
    announce_compilation()
    crew: AbstractContextManager[How] = spread.begun() if spread.elsewhere else nullcontext({})
    with stop_on_signals() as request, learning(config.steps) as show, crew as how:
        executor = how.get("executor")
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
            share_out=None if executor is None else partial(share_out, executor),
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
    shake: ShakeOption = 10,
    episodes: Episodes = None,
    placed: Placed = None,
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
        selection=read_selection(jobs, nodes, walltime, time_field, missing_walltime),
        energy=energy,
    )
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    chosen = read_days(days)
    if RECORDED in policies and in_episodes:
        raise ConfigError(f"{RECORDED}: nothing is simulated, so there are no episodes; leave them out", field="policy")
    warn_of_seen_jobs(policies, [on_days(w, slice(*chosen)) for w in case.workloads] if chosen else case.workloads)
    announce_compilation()
    if chosen is not None or judged:
        _compare_runs(case, policies, chosen, shake if judged else 0, seed, decide_limit, output, as_json)
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
    from decision.runs.compare import ComparisonPlan, read_workloads, run_comparison
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
