"""``decision train``: one training of a scheduler, or one for each of several seeds and settings."""

import csv
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from decision.model.errors import ConfigError
from decision.model.table import Table

from .command import Chosen, refuse_unused, typed_command
from .declared import Argument, Option
from .options import (
    EpisodeOptions,
    EventsOption,
    JsonOption,
    OutputFile,
    OutputFolder,
    PlatformOption,
    SeedOption,
    Spread,
    WorkloadOption,
    read_days,
)
from .tables import number, print_table
from .terminal import Pace, has_bars, paced, stderr

if TYPE_CHECKING:
    from decision.experiments.inputs import LoadedInputs
    from decision.experiments.tasks import How
    from decision.rl.learning.config import TrainConfig

# Options of ``decision train`` alone: what is trained, from which settings, seeds, days and recorded choices.

_learning_option = partial(Option, panel="Learning")


Learned = Annotated[
    str,
    Argument(
        help="Scheduler to train: dbf, rlscheduler, inspector, ranking, repair, packing, prices, deepscheduling, green "
        "or your own; or one of its presets.",
        metavar="SCHEDULER",
    ),
]
Preset = Annotated[
    str | None,
    _learning_option(
        "--preset",
        help="Settings: [bold]dbf-compact[/bold] (the default of dbf), [bold]dbf-paper[/bold], "
        "[bold]rlscheduler[/bold], [bold]inspector[/bold], [bold]ranking[/bold], [bold]deepscheduling-compact[/bold], "
        "[bold]deepscheduling-paper[/bold], or a file.toml of the same form.",
        metavar="NAME",
    ),
]
Changes = Annotated[
    list[str] | None,
    _learning_option(
        "--set",
        help="Setting that replaces the preset's; may be repeated. Several values, KEY=A,B, are a training each; with "
        "--search also ranges, KEY=LOW..HIGH and KEY=LOW..HIGH:log.",
        metavar="KEY=VALUE",
    ),
]
Steps = Annotated[
    int | None,
    _learning_option(
        "--steps",
        help="Number of environment steps; for ranking, prices and joint, of jobs that are placed; for bc and crr, of "
        "updates.",
        min=1,
    ),
]
LearnedDays = Annotated[
    str | None,
    _learning_option(
        "--days",
        help="Learn from these days alone, deepscheduling and joint: A to B - 1 of those with two submissions or more.",
        metavar="A:B",
    ),
]
TrainingSeed = Annotated[int, _learning_option("--seed", help="Random seed.", min=0, max=2**32 - 1)]
TrainingSeeds = Annotated[
    str | None,
    _learning_option(
        "--seeds", help="A training for each random seed from A to B - 1, and for each value of --set.", metavar="A:B"
    ),
]
SearchOption = Annotated[
    str | None,
    _learning_option(
        "--search",
        help="Search the values of --set with so many trainings, by optuna from those before, or N:random.",
        metavar="N",
    ),
]
Data = Annotated[
    Path | None,
    _learning_option(
        "--data",
        help="Recorded choices, made by decision collect, for learn.method=bc, crr or sac.",
        metavar="FILE.choices",
    ),
]
Resume = Annotated[
    bool, _learning_option("--resume", help="Resume the training in FOLDER; a larger --steps extends it.")
]


def train_command(
    context: click.Context,
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
    *,
    search: SearchOption = None,
    chosen: Chosen,
    days: LearnedDays = None,
    events: EventsOption = None,
    simulator: EpisodeOptions,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Train a scheduler on a workload, in the embedded engine or a Batsim.

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

    --engine batsim starts a Batsim for each episode, so that what is learned from
    is SimGrid's simulation; with --resume it goes on from a training that began in
    the embedded engine, which shows the same in a fraction of the time.

    With --seeds A:B, or several values in --set, there is a training for each
    combination, in FOLDER/trainings, -j at a time, here or on a cluster (--on).
    The same command goes on where each of them stood; FOLDER/trainings.csv has a
    row of each, and FOLDER/report.html their curves. One training by evolution
    lets the workers of --on play its candidates.

    With --search N, there are N trainings with values from the ranges in --set,
    each proposed by optuna from what those before came to by their validation.
    One that falls behind is given up. The same command goes on; FOLDER/search.csv
    has a row of each, and FOLDER/report.html pictures.

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

      decision train dbf -p cluster.xml -w log.swf --select :5000 -o learned \\
          --resume --steps 12000000 --engine batsim --batsim /opt/bin/batsim

      decision train dbf-compact -p cluster.xml -w log.swf -o rates \\
          --seeds 0:5 --set learn.lr=1e-3,3e-4 --on slurm -j 10

      decision train dbf-compact -p cluster.xml -w log.swf -o searched \\
          --search 20 --set learn.lr=1e-5..1e-3:log --set learn.envs=8,16,32
    """
    from decision.experiments.inputs import Inputs, load_inputs
    from decision.rl.learning import require_learning
    from decision.rl.learning.config import alternatives, load_config, preset_names, range_of, read_space
    from decision.rl.schedulers import find_scheduler

    from .many_trainings import Many, read_search, read_seeds, search_combinations, train_combinations
    from .tables import print_dropped

    if preset is None and scheduler in preset_names():
        preset, scheduler = scheduler, load_config(scheduler).scheduler
    preset = preset or find_scheduler(scheduler).default_preset
    changes = [*(changes or ()), *([f"learn.steps={steps}"] if steps else ())]
    if days is not None:
        if "days" not in find_scheduler(scheduler).Settings.__struct_fields__:
            raise ConfigError(f"--days: {scheduler} does not learn by days; leave the option out", field="days")
        begin, end = read_days(days) or (0, None)
        changes.append(f"env.days={[begin] if end is None else [begin, end]}")
    searched = None if search is None else (*read_search(search), read_space(changes))
    if searched is None and (ranges := [change for change in changes if range_of(change)]):
        raise ConfigError(f"{ranges[0]} is a range; say with --search how many trainings look for its best value")
    many = searched is not None or seeds is not None or any(len(alternatives(change)) > 1 for change in changes)
    first = [alternatives(change)[0] for change in changes] if searched is None else searched[2].first
    config = load_config(preset, first, seed=seed)
    if config.scheduler != scheduler:
        advice = f"train that, or choose a preset for {scheduler}"
        raise ConfigError(f"--preset {preset} is for {config.scheduler}: {advice}")
    energy, supply = find_scheduler(scheduler).energy, tuple(events or ())
    inputs = Inputs(platform=platform, workloads=(workload,), events=supply, energy=energy, selection=chosen.read())
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    require_learning()
    if many:
        of_batsim = dict.fromkeys(("engine", "batsim", "batsim_args", "image", "timeout"), False)
        refuse_unused(context, of_batsim, "many trainings run in the embedded engine")
        refuse_unused(context, {"audit": False}, "what is done again goes on where it stood")
        refuse_unused(context, {"seed": seeds is None}, "--seeds names them")
        asked = Many(preset, read_seeds(seeds) or [seed], inputs, output, data, spread, as_json, typed_command(context))
        if searched is None:
            train_combinations(asked, changes)
        else:
            refuse_unused(context, {"share": False}, "what is tried next depends on all trainings before")
            search_combinations(asked, *searched)
        return
    several = "it needs --seeds, or several values in --set"
    refuse_unused(context, dict.fromkeys(("limit", "share", "audit"), False), several)
    refuse_unused(context, dict.fromkeys(("processes", "submit", "wait"), spread.elsewhere), f"{several}, or --on")
    _train_one(context, case, config, output, data, resume, spread, simulator, as_json)


def _train_one(
    context: click.Context,
    case: "LoadedInputs",
    config: "TrainConfig",
    output: Path,
    data: Path | None,
    resume: bool,
    spread: Spread,
    simulator: EpisodeOptions,
    as_json: bool,
) -> None:
    """Do one training, and print its curve."""
    from decision.batsim.signals import stop_on_signals
    from decision.experiments.inputs import first_log
    from decision.experiments.tasks import share_out
    from decision.experiments.training import Players, check_resumable, train_to_folder

    from .tables import print_json
    from .terminal import announce_compilation, note

    if resume:
        check_resumable(output)
    batsim = simulator.read()
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
            players=Players(batsim, None if executor is None else partial(share_out, executor)),
        )
    curve = read_curve(checkpoint.parent / "progress.csv")
    if as_json:
        print_json({"checkpoint": checkpoint, "curve": curve})
    else:
        print_curve(curve)
    note(f"learned: {checkpoint}")
    request.check()


# What is shown of a training: its progress while it runs, and its curve.


@contextmanager
def learning(steps: int) -> Iterator[Callable[[int, float, Mapping[str, float]], None]]:
    """Show a training on stderr; the yielded function takes steps, steps/s and the curves' newest values.

    Where stderr is not a terminal, it is a line a minute.
    """
    columns = (
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    validated, pace = "", Pace("training", "steps")
    bars = Progress(*columns, console=stderr(), transient=True, disable=not has_bars())
    with bars as bar, paced(pace):
        task = bar.add_task("validating", total=steps)

        def show(done: int, rate: float, row: Mapping[str, float]) -> None:
            nonlocal validated
            if shown := [text.format(number(row[name])) for name, text in _SHOWN.items() if name in row]:
                validated = f"validation: {', '.join(shown)}"
            text = ", ".join(part for part in (f"{rate:,.0f} steps/s" if rate else "", validated) if part)
            pace.set(min(done, steps), steps, text)
            bar.update(task, completed=min(done, steps), description=text)

        yield show


def read_curve(path: Path) -> list[dict[str, float]]:
    """The rows of ``progress.csv``; nan where there is no value."""
    with path.open(newline="") as file:
        return [{name: float(value or "nan") for name, value in row.items()} for row in csv.DictReader(file)]


def print_curve(rows: list[dict[str, float]], parts: int = 8) -> None:
    """A training's curve in a few rows: before the first step, then the mean over each part of it.

    Of the validation each row has the newest values.
    """
    known = rows[0] if rows else {}
    columns = [each for each in _AVERAGED if each[0] in known or each[0] not in _OF_PRICES]
    headers = [">steps", *(text for name, text in _VALIDATED.items() if name in known)]
    headers += [">episodes", *(text for _, text, _ in columns)] if "episodes" in known else []
    headers += [text for name, text, _ in _MEANS if name in known]
    first = [row for row in rows if not row["steps"]]
    bounds = sorted({round(len(rows[len(first) :]) * k / parts) for k in range(parts + 1)})
    shown = [first] * bool(first) + [rows[len(first) :][begin:end] for begin, end in pairwise(bounds)]
    body = []
    for part in shown:
        cells = [f"{int(part[-1]['steps']):,}"]
        for name in (each for each in _VALIDATED if each in part[0]):
            newest = [row[name] for row in part if not isnan(row[name])]
            cells.append(number(newest[-1]) if newest else "-")
        if "episodes" in part[0]:
            episodes = [0 if isnan(row["episodes"]) else int(row["episodes"]) for row in part]
            cells.append(f"{sum(episodes):,}")
            for name, _, scale in columns:
                measured = sum(episodes) if name in part[0] else 0  # some schedulers have no such curve
                total = sum(n * row[name] for n, row in zip(episodes, part, strict=True) if n and measured)
                cells.append(number(scale * total / measured) if measured else "-")
        for name, _, digits in _MEANS:
            if name in part[0]:
                mean = sum(row[name] for row in part) / len(part)
                cells.append("-" if isnan(mean) else f"{mean:.{digits}f}")
        body.append(cells)
    print_table(Table("", headers, body))


_VALIDATED = {
    "validation_waiting_time": ">validation\nwait, s",
    "validation_bounded_slowdown": ">validation\nslowdown",
    "validation_value_share": ">validation\nvalue share",
    "validation_violated_share": ">validation\nviolated share",
}
_SHOWN = {  # of these, while it learns
    "validation_waiting_time": "wait {} s",
    "validation_bounded_slowdown": "slowdown {}",
    "validation_value_share": "value share {}",
}
_OF_PRICES = ("hops", "stretch")  # curves that others do not have
_MEANS = (  # column of the curves, header, digits; mean over iterations
    ("reward", ">reward", 4),
    ("entropy", ">entropy\nnats", 3),
    ("agreement", ">agreement", 3),
    ("agreement_of_choices", ">where there\nis a choice", 3),
)
_AVERAGED = (  # column of the curves, header, scale; mean over episodes
    ("hops", ">hops", 1),
    ("stretch", ">stretch", 1),
    ("waiting_time", ">wait\ns", 1),
    ("queue_length", ">queue\njobs", 1),
    ("utilization", ">util.\n%", 100),
)


# ``decision collect``: what policies choose, to learn from.

_MOST = 100_000_000

Policies = Annotated[
    list[str] | None, Argument(help="Heuristics, as for decision run.", metavar="POLICY...", show_default=False)
]
Session = Annotated[
    Path | None,
    Option(
        "--from",
        help="Instead: what any scheduler did in a session that decision serve --record (or another recorder) wrote, "
        "or in a run of Batsim's: its folder, or the prefix of its files.",
        metavar="SESSION.jsonl|RUN",
    ),
]
Transitions = Annotated[
    int, Option("--transitions", help="Number of starts and decisions in all, at least.", min=1, max=_MOST)
]
Shares = Annotated[
    list[float] | None,
    Option("--share", help="Share of each policy, in their order; equal by default.", metavar="SHARE"),
]
ForPreset = Annotated[
    str, Option("--for", help="Preset of the scheduler that will learn; its episodes are recorded.", metavar="PRESET")
]
Minari = Annotated[
    str | None,
    Option(
        "--minari",
        help="Also give Minari a data set of what the preset's network sees, for learners of other libraries.",
        metavar="GROUP/NAME-v0",
    ),
]


def collect_command(
    platform: PlatformOption,
    workload: WorkloadOption,
    output: OutputFile,
    policies: Policies = None,
    session: Session = None,
    transitions: Transitions = 200_000,
    shares: Shares = None,
    preset: ForPreset = "dbf-bc",
    changes: Changes = None,
    minari: Minari = None,
    seed: SeedOption = 0,
    *,
    chosen: Chosen,
    events: EventsOption = None,
    simulator: EpisodeOptions,
    as_json: JsonOption = False,
) -> None:
    """Record what policies choose, for decision train --data.

    Each policy schedules random episodes of the workload, as long as those of the
    preset, until it has its share of the transitions (a transition is a start, or
    a decision). The file keeps where episodes began and how long their jobs
    waited. What a network sees is made again from that when it learns, so the
    file serves any observation, and 200,000 transitions take less than 1 MB.
    --engine batsim plays the episodes in a Batsim.

    --from takes one episode, the whole workload, from a recorded session instead,
    or from the out_jobs.csv that Batsim wrote (--from out/out).

    Examples:

      decision collect sjf+easy -p cluster.xml -w log.swf -o sjf.choices

      decision collect easy sjf+easy --share 0.75 --share 0.25 -p cluster.xml \\
          -w log.swf --transitions 100000 -o mixed.choices

      decision collect qos+first-fit fcfs --for green-bc -p ten.xml -w green.json \\
          --events supply.txt -o two.choices

      decision collect --from session.jsonl -p cluster.xml -w work.json \\
          -o theirs.choices

      decision collect sjf+easy -p cluster.xml -w log.swf -o sjf.choices \\
          --minari batsim/sjf-v0
    """
    from decision.experiments.inputs import Inputs, first_log, load_inputs
    from decision.files.workload import Selection
    from decision.rl.learning import require_learning
    from decision.rl.learning.config import load_config

    from .tables import print_dropped, print_json
    from .terminal import announce_compilation, note, working

    if bool(policies) == (session is not None):
        raise ConfigError("name policies, or a recorded session with --from, and not both")
    config = load_config(preset, changes or ())
    selection = chosen.read()
    supply = tuple(events or ())
    case = load_inputs(Inputs(platform=platform, workloads=(workload,), events=supply, selection=selection))
    print_dropped(case.workloads)
    require_learning()
    if minari is not None:
        from decision.rl.learning.choices import check_minari, export_minari

        check_minari(minari)
    from decision.batsim.conversation import recorded_starts
    from decision.rl.learning.choices import collect, from_session, run_starts, whole_episode, write_choices
    from decision.rl.learning.schedulers import choosing_setup

    batsim = simulator.read()
    announce_compilation()
    log = first_log(case)
    if session is not None:
        config = whole_episode(config, log.workload)
    setup = choosing_setup(config, log.workload, log.platform, log.events, batsim)
    with working("recording"):
        if session is not None:
            recorded = recorded_starts(session) if session.is_file() else run_starts(session)
            sources, schedules = from_session(session.name, *recorded, setup)
        else:
            sources, schedules = collect(_shares(policies or [], shares), setup, transitions, seed)
    write_choices(output, schedules, setup, log.files, selection, sources, seed)
    if minari is not None:
        given = {"workload": workload, "platform": platform, **({"events": supply[0]} if supply else {})}
        paths = given if selection == Selection() and len(supply) < 2 else {}
        episodes = export_minari(minari, schedules, setup, ", ".join(source.policy for source in sources), paths)
        note(f"{minari}: {episodes:,} episodes that minari.load_dataset reads")
    if as_json:
        print_json({"choices": output, "bytes": Path(output).stat().st_size, "sources": sources})
        return
    rows = [(source.policy, f"{source.episodes:,}", f"{source.transitions:,}") for source in sources]
    print_table(Table("", ("policy", ">episodes", ">transitions"), rows))
    note(f"{output}: {Path(output).stat().st_size:,} bytes")
    if session is not None:
        note(f"one episode: train with --set env.jobs={setup.rules.jobs} --set env.online=false")


def _shares(policies: list[str], shares: list[float] | None) -> dict[str, float]:
    """Each policy's share. Raises ConfigError if they are not one positive number each, or a policy is named twice."""
    given = shares or [1.0] * len(policies)
    if len(set(policies)) < len(policies):
        raise ConfigError("a policy is named twice; name it once, with the share that it shall have")
    if len(given) != len(policies) or not all(0 < share < float("inf") for share in given):
        raise ConfigError(f"--share: each of the {len(policies)} policies needs one, above 0; found {given}")
    return {policy: share / sum(given) for policy, share in zip(policies, given, strict=True)}
