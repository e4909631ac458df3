"""``decision reproduce``: published or recorded results, and what this package gives for them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from decision.analysis.plots.paper import Paper, drawn_for
from decision.shipped import find_workload

from .command import Group, add_command
from .options import (
    PAPER,
    DpiOption,
    FormatOption,
    JsonOption,
    MissingWalltimeOption,
    PictureFormat,
    TimeFieldOption,
    TypeSizeOption,
    WidthOption,
)
from .spread import Spread, spreads

if TYPE_CHECKING:
    from decision.reproduce import Findings, Parts
    from decision.runs.tasks import How

Data = Annotated[Path, typer.Option("--data", help="Folder of the inputs, which are not shipped.", metavar="FOLDER")]
PartsFolder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Folder for finished parts and results; out/NAME by default.", metavar="FOLDER"
    ),
]
Log = Annotated[
    Path, typer.Option("--swf", help="Log lublin_256, or another one in the Standard Workload Format.", metavar="FILE")
]
RealLog = Annotated[
    Path | None,
    typer.Option("--swf", help="Real log whose weeks are drawn, too, in the Standard Workload Format.", metavar="FILE"),
]
Budget = Annotated[
    Literal["smoke", "standard", "splits", "full"],
    typer.Option("--budget", help="Number of runs: minutes, hours or days."),
]
PackingBudget = Annotated[
    Literal["smoke", "standard", "full"],
    typer.Option("--budget", help="Number and length of trainings: a minute, hours or days."),
]
Finished = Annotated[bool, typer.Option("--finished", help="Train nothing; show the finished runs.")]
Seeds = Annotated[int, typer.Option("--seeds", help="Number of rankings to train.", min=1)]
PlacedJobs = Annotated[
    int | None, typer.Option("--steps", help="Number of jobs that are placed to train a ranking.", min=1)
]
OldName = Annotated[
    Literal["grid5000-2016", "rlscheduler-table", "hpcschedule"], typer.Argument(help="Result to reproduce.")
]


def grid5000_2016_command(data: Data = Path(), as_json: JsonOption = False) -> None:
    """What OAR did on 32 hosts of Grid'5000, and the errors of simulations.

    Example:

      decision reproduce grid5000-2016 --data data/grid5000-2016
    """
    from decision.reproduce.grid5000 import reproduce_grid5000

    _reproduce("parts", lambda progress: reproduce_grid5000(data), as_json)


@spreads
def rlscheduler_table_command(
    data: Data = Path(),
    output: PartsFolder = None,
    *,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """RLScheduler's table of bounded slowdowns, by its simulator's rules and by the usual ones.

    Example:

      decision reproduce rlscheduler-table --data data
    """
    from decision.reproduce.rlscheduler import reproduce_rlscheduler

    _reproduce(
        "parts",
        lambda how, progress: reproduce_rlscheduler(data, _parts(output, "rlscheduler", how, progress)),
        as_json,
        spread,
    )


def hpcschedule_command(data: Data = Path(), as_json: JsonOption = False) -> None:
    """The paper on topology-aware allocation by neural simulated annealing.

    FCFS and backfilling to the digit, better hosts without windows, and solvers
    of windows: the published search, one that undoes rejected moves, and exact.

    The list of jobs is hpcschedule_jobs.txt.

    Example:

      decision reproduce hpcschedule --data data
    """
    from decision.reproduce.hpcschedule import reproduce_hpcschedule

    _reproduce("parts", lambda progress: reproduce_hpcschedule(data, progress=progress), as_json)


@spreads
def dbf_command(
    swf: Log,
    budget: Budget = "smoke",
    output: PartsFolder = None,
    *,
    spread: Spread,
    finished: Finished = False,
    suffix: FormatOption = PictureFormat.PNG,
    width: WidthOption = PAPER.width,
    type_size: TypeSizeOption = PAPER.type_size,
    dpi: DpiOption = PAPER.dpi,
    as_json: JsonOption = False,
) -> None:
    """DBF's paper: windows, splits and seeds, against heuristics and two other learned schedulers.

    Policies are trained on the first half of the log and compared on the second.
    Finished runs are cached; Ctrl-C loses at most a minute of training.

    Examples:

      decision reproduce dbf --swf lublin_256.swf

      decision reproduce dbf --swf lublin_256.swf --budget standard -o out/dbf
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.dbf_runs import BudgetName, reproduce_dbf

    name = BudgetName(budget)
    with drawn_for(Paper(width, type_size, dpi, f".{suffix}")):
        _reproduce(
            "runs",
            lambda how, progress: reproduce_dbf(
                swf, _parts(output, "dbf", how, progress), name, only_finished=finished
            ),
            as_json,
            spread,
        )


def ranking_command(
    swf: Log,
    output: PartsFolder = None,
    seeds: Seeds = 5,
    steps: PlacedJobs = None,
    as_json: JsonOption = False,
) -> None:
    """Learned rankings against every order with backfilling, on held-out jobs.

    Example:

      decision reproduce ranking --swf lublin_256.swf -o out/ranking
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.ranking_comparison import reproduce_ranking

    _reproduce(
        "steps",
        lambda progress: reproduce_ranking(swf, _parts(output, "ranking", {}, progress), seeds=seeds, steps=steps),
        as_json,
    )


def packer_command(
    output: PartsFolder = None,
    generations: Annotated[
        int | None, typer.Option("--generations", help="Number of generations of sixteen candidates.", min=1)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evolve the policy packing, on made workloads of many kinds.

    They are like those of decision reproduce packing, but of other seeds and
    other shares of single-node jobs. A second run goes on where the first was
    stopped.

    Example:

      decision reproduce packer -o out/packer
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.packer import GENERATIONS, reproduce_packer

    _reproduce(
        "generations",
        lambda progress: reproduce_packer(
            _parts(output, "packer", {}, progress), generations=generations or GENERATIONS
        ),
        as_json,
    )


def green_command(output: PartsFolder = None, as_json: JsonOption = False) -> None:
    """Evolve the policy green, and compare it with heuristics where power comes and goes.

    On made jobs and supplies for 10, 50 and 100 hosts together; then on others,
    beside 49 heuristics and beside what no schedule can exceed. A second run goes
    on where the first was stopped.

    Example:

      decision reproduce green -o out/green
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.green import reproduce_green

    _reproduce("parts", lambda progress: reproduce_green(_parts(output, "green", {}, progress)), as_json)


@spreads
def learned_command(
    data: Data = Path(),
    output: PartsFolder = None,
    *,
    spread: Spread,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the evolution.", min=0)] = 0,
    generations: Annotated[
        int | None, typer.Option("--generations", help="Number of generations of twelve candidates.", min=1)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evolve the policy learned, on first halves of public logs and made jobs.

    FOLDER has lublin_256.swf, lublin_256_2.swf, NASA-iPSC-1993-3.1-cln.swf,
    theta_argonne.swf and curie_25days.swf. A second run goes on where the first
    was stopped.

    Example:

      decision reproduce learned --data traces -o out/learned
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.learned_order import GENERATIONS, reproduce_learned

    _reproduce(
        "candidates",
        lambda how, progress: reproduce_learned(
            data, _parts(output, "learned", how, progress), seed=seed, generations=generations or GENERATIONS
        ),
        as_json,
        spread,
    )


@spreads
def topology_command(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Folder of the authors' hpcschedule_jobs.txt, which is not shipped.", metavar="FOLDER"
        ),
    ] = None,
    budget: Annotated[
        Literal["smoke", "standard", "full"], typer.Option("--budget", help="Number of runs: seconds, an hour or days.")
    ] = "smoke",
    output: PartsFolder = None,
    *,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Claims on topology-aware allocation: networks, searches, exact windows, run times.

    Each is held or refuted on two trees, that of the authors' program and that
    of their text. A second run goes on where the first was stopped. Without
    --data, jobs of the authors' generator take the place of their list. A
    program named batsim, where there is one, runs jobs that communicate, too.

    Example:

      decision reproduce topology --data data --budget standard -o out/topology
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.findings import BudgetName
    from decision.reproduce.topology import reproduce_topology

    _reproduce(
        "parts",
        lambda how, progress: reproduce_topology(_parts(output, "topology", how, progress), BudgetName(budget), data),
        as_json,
        spread,
    )


@spreads
def held_out_command(
    data: Data = Path(),
    output: PartsFolder = None,
    policy: Annotated[str, typer.Option("--policy", help="Checkpoint, or any other policy.")] = "learned",
    *,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """A learned policy against every heuristic, on held-out halves of public logs.

    Shows the best heuristic in hindsight, changes with 95 % intervals, and how
    far the policy is from a lower bound. FOLDER is that of decision reproduce
    learned. Finished logs are kept.

    Example:

      decision reproduce held-out --data traces -o out/held-out
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.held_out import reproduce_held_out

    _reproduce(
        "logs",
        lambda how, progress: reproduce_held_out(data, _parts(output, "held-out", how, progress), policy),
        as_json,
        spread,
    )


@spreads
def predictsim_command(
    swf: Annotated[
        Path, typer.Option("--swf", help="Log in the Standard Workload Format, with walltimes.", metavar="FILE")
    ],
    name: Annotated[
        str,
        typer.Option(
            "--published",
            help="Log whose published figures are shown, where the file's name does not begin with it: KTH-SP2, "
            "CTC-SP2, SDSC-SP2 or SDSC-BLUE.",
            metavar="NAME",
        ),
    ] = "",
    time_field: TimeFieldOption = None,
    output: PartsFolder = None,
    *,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """EASY with predicted run times, beside what the simulator predictsim gave.

    Walltimes, perfect predictions and predictors, with candidates in order of
    arrival and shortest first. Finished runs are kept.

    Examples:

      decision reproduce predictsim --swf KTH-SP2-1996-2.1-cln.swf

      decision reproduce predictsim --swf theta_argonne.swf --time-field 6
    """
    from decision.formats.swf import REQUESTED_TIME
    from decision.reproduce.predictsim import reproduce_predictsim

    field = time_field or REQUESTED_TIME
    _reproduce(
        "runs",
        lambda how, progress: reproduce_predictsim(swf, _parts(output, "predictsim", how, progress), name, field),
        as_json,
        spread,
    )


def recorded_command(
    logs: Annotated[
        list[Path], typer.Argument(help="Logs with recorded starts.", metavar="LOG...", parser=find_workload)
    ],
    missing_walltime: MissingWalltimeOption = "none",
    as_json: JsonOption = False,
) -> None:
    """What really happened in logs, beside EASY on the same jobs.

    Waits as recorded and as simulated, how near they are job by job, and how much
    of the waiting was beside enough free hosts: the guide's page on what really
    happened explains why the two are not to be compared.

    Example:

      decision reproduce recorded UniLu-Gaia-2014-1.swf COARE-2020-cln.swf
    """
    from decision.reproduce.recorded import reproduce_recorded

    _reproduce("logs", lambda progress: reproduce_recorded(logs, missing_walltime, progress), as_json)


@spreads
def packing_command(
    budget: PackingBudget = "smoke",
    output: PartsFolder = None,
    *,
    spread: Spread,
    finished: Finished = False,
    as_json: JsonOption = False,
) -> None:
    """Packing for utilization with predicted run times, against chance.

    Heuristics, an upper bound, chance and trained networks on five made pairs of
    WL1 and WL2; tables 4, 5 and 6 of the paper, and its claims counted again; and
    the policy packing, one for all, on twenty. A second run goes on where the
    first was stopped.

    Examples:

      decision reproduce packing

      decision reproduce packing --budget standard -o out/packing
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.findings import BudgetName
    from decision.reproduce.packing import reproduce_packing

    _reproduce(
        "parts",
        lambda how, progress: reproduce_packing(
            _parts(output, "packing", how, progress), BudgetName(budget), only_finished=finished
        ),
        as_json,
        spread,
    )


@spreads
def deepscheduling_command(
    budget: PackingBudget = "smoke",
    output: PartsFolder = None,
    *,
    spread: Spread,
    finished: Finished = False,
    as_json: JsonOption = False,
) -> None:
    """DeepScheduling on servers that sleep, against rules, claim by claim.

    Days like those of orion, graphite and econome; trained networks, First-Fit,
    EASY and SAF as the authors have them, and a grid of rules (order, packing,
    patience, timeout); each claim of the paper with its number on held-out days,
    and its figures 2 to 4. A second run goes on where the first was stopped.

    Examples:

      decision reproduce deepscheduling

      decision reproduce deepscheduling --budget standard -o out/deepscheduling
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.deepscheduling import reproduce_deepscheduling
    from decision.reproduce.findings import BudgetName

    _reproduce(
        "parts",
        lambda how, progress: reproduce_deepscheduling(
            _parts(output, "deepscheduling", how, progress), BudgetName(budget), only_finished=finished
        ),
        as_json,
        spread,
    )


@spreads
def launchpad_command(
    budget: Annotated[
        Literal["smoke", "standard", "steady", "full"],
        typer.Option(
            "--budget",
            help="Number and length of trainings: a minute, hours or days; steady is standard with full power.",
        ),
    ] = "smoke",
    output: PartsFolder = None,
    *,
    spread: Spread,
    finished: Finished = False,
    as_json: JsonOption = False,
) -> None:
    """Launchpad's green datacenter: heuristics, cloning, offline and online learning, claim by claim.

    Values of heuristics, with suspensions and without, and of what was learned
    from them, on 10 to 100 hosts whose power comes and goes; no schedule exceeds
    the bound beside them. Each claim holds, fails or is undecided; figures 3 to 8
    and tables 1 and 2 are made again. A second run goes on where the first was
    stopped.

    Examples:

      decision reproduce launchpad

      decision reproduce launchpad --budget standard -o out/launchpad
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.launchpad import BudgetName, reproduce_launchpad

    _reproduce(
        "parts",
        lambda how, progress: reproduce_launchpad(
            _parts(output, "launchpad", how, progress), BudgetName(budget), only_finished=finished
        ),
        as_json,
        spread,
    )


@spreads
def coverage_command(
    swf: RealLog = None, output: PartsFolder = None, *, spread: Spread, as_json: JsonOption = False
) -> None:
    """How often 95 % intervals hold the truth, on generated logs.

    Schedules windows of 200 logs with five policies, and those of 1,000 other
    logs, from which the truth is known: logs of a model, logs whose load has a
    memory of 500 jobs, and with --swf weeks of that log, drawn again. Finished
    logs are kept.

    Example:

      decision reproduce coverage -o out/coverage
    """
    from decision.learn import require_learning

    require_learning()
    from decision.reproduce.coverage import reproduce_coverage

    _reproduce(
        "batches",
        lambda how, progress: reproduce_coverage(_parts(output, "coverage", how, progress), log=swf),
        as_json,
        spread,
    )


@spreads
def experiment_command(name: OldName, data: Data = Path(), output: PartsFolder = None, *, spread: Spread) -> None:
    """Old name of [bold]decision reproduce[/bold]."""
    if name == "grid5000-2016":
        grid5000_2016_command(data)
    elif name == "hpcschedule":
        hpcschedule_command(data)
    else:
        rlscheduler_table_command(data, output, **spread._asdict())


def _parts(output: Path | None, name: str, how: "How", progress: Callable[[int, int], None]) -> "Parts":
    from decision.reproduce import Parts

    return Parts(output or Path("out") / name, progress=progress, others=how)


def _reproduce(parts: str, run: "Callable[..., Findings]", as_json: bool, spread: Spread | None = None) -> None:
    """Show what a function finds that takes a progress display; before it, with `spread`, how runs are done."""
    from .progress import announce_compilation, counting
    from .tables import print_findings

    announce_compilation()
    with counting(parts) as show:
        if spread is None:
            findings = run(show)
        else:
            with spread.begun() as how:
                findings = run(how, show)
    print_findings(findings, as_json)


app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Reproduce a published or recorded result and print its tables."
)
add_command(app, "grid5000-2016", grid5000_2016_command)
add_command(app, "rlscheduler-table", rlscheduler_table_command)
add_command(app, "hpcschedule", hpcschedule_command)
add_command(app, "dbf", dbf_command)
add_command(app, "ranking", ranking_command)
add_command(app, "learned", learned_command)
add_command(app, "topology", topology_command)
add_command(app, "held-out", held_out_command)
add_command(app, "predictsim", predictsim_command)
add_command(app, "recorded", recorded_command)
add_command(app, "packer", packer_command)
add_command(app, "green", green_command)
add_command(app, "packing", packing_command)
add_command(app, "deepscheduling", deepscheduling_command)
add_command(app, "launchpad", launchpad_command)
add_command(app, "coverage", coverage_command)
