"""``decision train``: learn a scheduler."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    JobsOption,
    LogOption,
    NodesOption,
    PlatformOption,
    WalltimeName,
    WalltimeOption,
    read_range,
)
from .terminal import stderr

LEARNING = "Learning"


class What(StrEnum):
    """What can be learned."""

    DBF = "dbf"
    RLSCHEDULER = "rlscheduler"
    INSPECTOR = "inspector"
    RANKING = "ranking"


Learned = Annotated[What, typer.Argument(help="What to learn.")]
Folder = Annotated[Path, typer.Option("--output", "-o", help="Folder for checkpoint and curves.", metavar="FOLDER")]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="[bold]dbf-compact[/bold] (dbf's default), [bold]dbf-paper[/bold], [bold]rlscheduler[/bold], "
        "[bold]inspector[/bold], [bold]ranking[/bold], or a file.toml like theirs.",
        metavar="NAME",
        rich_help_panel=LEARNING,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Change a value of the preset; may be repeated.", metavar="KEY=VALUE", rich_help_panel=LEARNING
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps", help="Environment steps; with ranking, jobs that are placed.", min=1, rich_help_panel=LEARNING
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", help="Of weights, episodes and draws.", min=0, max=2**32 - 1, rich_help_panel=LEARNING),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where the run in FOLDER stopped.", rich_help_panel=LEARNING)
]


def train(
    what: Learned,
    platform: PlatformOption,
    workload: LogOption,
    output: Folder,
    preset: Preset = None,
    changes: Changes = None,
    steps: Steps = None,
    seed: Seed = 0,
    resume: Resume = False,
    jobs: JobsOption = None,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
) -> None:
    """Learn a scheduler from a workload, by trial in the embedded engine.

    dbf is split-window deep back-filling, which starts jobs of a window of the
    queue; rlscheduler gives jobs priorities, and others are backfilled by rule;
    inspector (SchedInspector) accepts or refuses the next job of an order;
    ranking is list scheduling whose order and reservations evolve.

    Writes the checkpoint, FOLDER/dbf.ckpt or so, which is a policy wherever one
    is named; the curves, FOLDER/progress.csv and TensorBoard's event files; and
    what --resume goes on from. Ctrl-C ends it cleanly: the same command with
    --resume then gives what an undisturbed run would have given.

    Examples:

      decision train dbf -p cluster.xml -w log.swf --jobs :5000 -o learned

      decision train dbf -p cluster.xml -w work.json -o learned --steps 500000 \\
          --set env.head=9 --set env.tail=1 --set learn.lr=1e-4

      decision train inspector -p cluster.xml -w log.swf -o over-f1 \\
          --set env.base=f1

      decision run -p cluster.xml -w log.swf --policy learned/dbf.ckpt
    """
    from decision.drivers.inputs import Inputs, SwfOptions, load, writable_folder
    from decision.drivers.signals import stop_on_signals
    from decision.learn import with_torch
    from decision.learn.checkpoint import file_facts
    from decision.learn.config import SCHEDULERS, load_config
    from decision.model.errors import ConfigError

    from .learning_tables import learning, print_curve
    from .progress import announce_compilation
    from .tables import print_dropped

    changes = [*(changes or ()), *([f"{SCHEDULERS[what].sections[-1]}.steps={steps}"] if steps else ())]
    preset = preset or SCHEDULERS[what].preset
    config = load_config(preset, changes, seed=seed)
    if config.scheduler != what:
        raise ConfigError(f"--preset {preset} is for {config.scheduler}: train that, or choose a preset for {what}")
    swf = SwfOptions(jobs=read_range(jobs), nodes=nodes, walltime=walltime.value)
    case = load(Inputs(platform=platform, workloads=(workload,), swf=swf))
    print_dropped(case.workloads)
    learner = with_torch("schedulers")
    announce_compilation()
    files = [file_facts(path) for path in (platform, workload)]
    folder = writable_folder(output)
    with stop_on_signals() as request, learning(config.steps) as show:
        checkpoint = learner.train_scheduler(
            case.platform,
            case.workloads[0],
            config,
            files,
            folder,
            resume=resume,
            stop=lambda: bool(request.signal),
            report=lambda done: show(done.steps, done.rate, done.row),
        )
    print_curve(folder / "progress.csv")
    stderr().print(f"learned: {checkpoint}", highlight=False, soft_wrap=True)
    request.check()
