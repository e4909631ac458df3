"""``decision train``: learned schedulers."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .command import refuse_unused, typed_command
from .grouped import Chosen, with_groups
from .options import EventsOption, JsonOption, OutputFolder, PlatformOption, WorkloadOption
from .readers import read_days
from .spread import Spread
from .sweep import read_seeds, train_combinations
from .train_options import Changes, Data, Learned, LearnedDays, Preset, Resume, Steps, TrainingSeed, TrainingSeeds

if TYPE_CHECKING:
    from decision.learn.config import TrainConfig
    from decision.runs.inputs import LoadedInputs
    from decision.runs.tasks import How


@with_groups
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
    *,
    chosen: Chosen,
    days: LearnedDays = None,
    events: EventsOption = None,
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
    from decision.learned import find_scheduler
    from decision.model.errors import ConfigError
    from decision.runs.inputs import Inputs, load_inputs

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
    selection = chosen.read()
    energy = find_scheduler(scheduler).energy
    supply = tuple(events or ())
    inputs = Inputs(platform=platform, workloads=(workload,), events=supply, energy=energy, selection=selection)
    case = load_inputs(inputs)
    print_dropped(case.workloads)
    require_learning()
    if many:
        refuse_unused(context, {"audit": False}, "what is done again goes on where it stood")
        refuse_unused(context, {"seed": seeds is None}, "--seeds names them")
        train_combinations(
            preset, changes, read_seeds(seeds) or [seed], inputs, output, data, spread, as_json, typed_command(context)
        )
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

    from .progress import announce_compilation
    from .tables import print_json
    from .terminal import note
    from .training_curve import learning, print_curve, read_curve

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
    from decision.learned import find_scheduler
    from decision.model.errors import ConfigError

    if "days" not in find_scheduler(scheduler).Settings.__struct_fields__:
        raise ConfigError(f"--days: {scheduler} does not learn by days; leave the option out", field="days")
    first, last = read_days(text) or (0, None)
    return [first] if last is None else [first, last]
