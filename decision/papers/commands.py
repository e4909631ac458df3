"""Commands of papers, by the entry points of the group ``decision.papers``; and the options that they share.

Each imports what it runs when it is called: ``decision reproduce --help`` imports this module for the list.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.measure import Measurement
from rich.table import Table

from decision.cli.command import Chosen, Drawing
from decision.cli.declared import Argument, Option
from decision.cli.options import JsonOption, Spread, TimeFieldOption
from decision.cli.tables import FittedTable, print_json
from decision.cli.terminal import announce_compilation, counting, stdout

if TYPE_CHECKING:
    from decision.experiments.tasks import How

    from .campaign import Campaign, Findings, Parts, ResultTable

Data = Annotated[Path, Option("--data", help="Folder of the inputs, which are not shipped.", metavar="FOLDER")]
PartsFolder = Annotated[
    Path | None,
    Option("--output", "-o", help="Folder for finished parts and results; out/NAME by default.", metavar="FOLDER"),
]
Log = Annotated[
    Path, Option("--swf", help="Log lublin_256, or another one in the Standard Workload Format.", metavar="FILE")
]
BudgetOption = Annotated[
    Literal["smoke", "standard", "first", "full"],
    Option(
        "--budget",
        help="Number and length of trainings: a minute or hours; first and full: the paper's, days or weeks.",
    ),
]
Finished = Annotated[bool, Option("--finished", help="Train nothing; show the finished runs.")]


# What commands do alike: parts in a folder, a count while they run, and findings as tables or JSON.


def reproduce(
    name: str,
    output: Path | None,
    run: "Callable[[Parts], Findings]",
    as_json: bool,
    spread: Spread | None = None,
    *,
    counted: str = "parts",
) -> None:
    """Run a reproduction and show what it finds.

    Args:
        name: of the reproduction.
        output: folder of its parts; None is ``out/NAME``.
        run: takes where its parts are kept, and how they are done.
        as_json: whether one JSON document is printed in place of tables.
        spread: the options for many machines, of a command that has them.
        counted: what is counted while it runs.
    """
    from .campaign import Parts

    announce_compilation()
    begun: AbstractContextManager[How] = spread.begun() if spread else nullcontext({})
    with counting(counted) as show, begun as how:
        findings = run(Parts(output or Path("out") / name, progress=show, others=how))
    if as_json:
        print_json({"tables": [table.as_data() for table in findings.tables], "notes": findings.notes})
        return
    tables: Sequence[Table] = [_result_table(table, whole=findings.side_by_side) for table in findings.tables]
    if findings.side_by_side:
        grid = Table.grid(padding=(0, 2))
        grid.add_row(*tables)
        if Measurement.get(stdout(), stdout().options, grid).maximum < stdout().width:
            tables = [grid]
    for table in tables:
        stdout().print(table)
    stdout().print(findings.notes, highlight=False)


def _by_budget(name: str, budgets: Any) -> "Callable[[Callable[[], Campaign[Any, Any]]], Callable[..., None]]":
    """Make a command of a function that says which campaign it runs: all of them have the same options.

    Args:
        name: of the reproduction.
        budgets: the option of its budgets.
    """

    def make(campaign: "Callable[[], Campaign[Any, Any]]") -> Callable[..., None]:
        def command(
            budget: budgets = "smoke",
            output: PartsFolder = None,
            *,
            finished: Finished = False,
            spread: Spread,
            as_json: JsonOption = False,
        ) -> None:
            from decision.rl.learning import require_learning

            require_learning()
            chosen = campaign()
            reproduce(
                name, output, lambda parts: chosen.reproduce(parts, budget, only_finished=finished), as_json, spread
            )

        command.__doc__ = campaign.__doc__
        return command

    return make


def _result_table(found: "ResultTable", whole: bool) -> Table:
    """`whole`: no cell wraps; otherwise those of the first column do not."""
    table = FittedTable(title=found.title)
    table.collapse_padding = True
    columns = zip(*found.rows, strict=True) if found.rows else [()] * len(found.columns)  # of what has no rows yet
    for at, (header, cells) in enumerate(zip(found.columns, columns, strict=True)):
        words = any(cell[:1].isalpha() for cell in cells)
        table.add_column(header, justify="left" if words else "right", no_wrap=whole or at == 0)
    for row in found.rows:
        table.add_row(*row)
    return table


# The papers, by name.

_DbfBudget = Annotated[
    Literal["smoke", "standard", "splits", "first", "full"],
    Option("--budget", help="Number of runs: minutes or hours; first and full: the paper's networks, days or weeks."),
]


def dbf_command(
    swf: Log,
    budget: _DbfBudget = "smoke",
    output: PartsFolder = None,
    *,
    finished: Finished = False,
    drawing: Drawing,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """DBF's paper: windows, splits and seeds, against heuristics and two other learned schedulers.

    Policies are trained on the first half of the log and compared on the second.
    Finished runs are cached; Ctrl-C loses at most a minute of training.

    Examples:

      decision reproduce dbf --swf lublin_256.swf

      decision reproduce dbf --swf lublin_256.swf --budget standard -o out/dbf
    """
    from decision.rl.learning import require_learning

    require_learning()
    from decision.papers.dbf import reproduce_dbf

    with drawing.begun():
        reproduce(
            "dbf",
            output,
            lambda parts: reproduce_dbf(swf, parts, budget, only_finished=finished),
            as_json,
            spread,
            counted="runs",
        )


@_by_budget("deepscheduling", BudgetOption)
def deepscheduling_command() -> "Campaign[Any, Any]":
    """DeepScheduling on servers that sleep, against rules, claim by claim.

    Days like those of orion, graphite and econome; trained networks, First-Fit,
    EASY and SAF as the authors have them, and a grid of rules (order, packing,
    patience, timeout); each claim of the paper with its number on held-out days,
    and its figures 2 to 4. A second run goes on where the first was stopped.

    Examples:

      decision reproduce deepscheduling

      decision reproduce deepscheduling --budget standard -o out/deepscheduling
    """
    from decision.papers.deepscheduling import DEEPSCHEDULING

    return DEEPSCHEDULING


def grid5000_2016_command(data: Data = Path(), as_json: JsonOption = False) -> None:
    """What OAR did on 32 hosts of Grid'5000, and the errors of simulations.

    Example:

      decision reproduce grid5000-2016 --data data/grid5000-2016
    """
    from decision.papers.grid5000 import reproduce_grid5000

    reproduce("grid5000-2016", None, lambda parts: reproduce_grid5000(data), as_json)


_LaunchpadBudget = Annotated[
    Literal["smoke", "standard", "steady", "battery", "violations", "first", "full"],
    Option(
        "--budget",
        help="Number and length of trainings: standard: hours, steady: with full power, battery: with one, violations: "
        "late jobs cost their value; first and full: the paper's, days.",
    ),
]


@_by_budget("launchpad", _LaunchpadBudget)
def launchpad_command() -> "Campaign[Any, Any]":
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
    from decision.papers.launchpad import LAUNCHPAD

    return LAUNCHPAD


_PackingBudget = Annotated[
    Literal["smoke", "standard", "first", "tuned", "full"],
    Option(
        "--budget", help="Number and length of trainings: a minute or hours; first, full, tuned (a grid): the paper's."
    ),
]


@_by_budget("packing", _PackingBudget)
def packing_command() -> "Campaign[Any, Any]":
    """Packing for utilization with predicted run times, against chance.

    Heuristics, an upper bound, chance and trained networks on five made pairs of
    WL1 and WL2; tables 4, 5 and 6 of the paper, and its claims counted again; and
    the policy packer, one for all, on twenty. A second run goes on where the
    first was stopped.

    Examples:

      decision reproduce packing

      decision reproduce packing --budget standard -o out/packing
    """
    from decision.papers.packing import PACKING

    return PACKING


def predictsim_command(
    swf: Annotated[Path, Option("--swf", help="Log in the Standard Workload Format, with walltimes.", metavar="FILE")],
    name: Annotated[
        str,
        Option(
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
    from decision.files.swf import REQUESTED_TIME
    from decision.papers.predictsim import reproduce_predictsim

    field = time_field or REQUESTED_TIME
    reproduce(
        "predictsim",
        output,
        lambda parts: reproduce_predictsim(swf, parts, name, field),
        as_json,
        spread,
        counted="runs",
    )


def rlscheduler_table_command(
    data: Data = Path(), output: PartsFolder = None, *, spread: Spread, as_json: JsonOption = False
) -> None:
    """RLScheduler's table of bounded slowdowns, by its simulator's rules and by the usual ones.

    Example:

      decision reproduce rlscheduler-table --data data
    """
    from decision.papers.rlscheduler import reproduce_rlscheduler

    reproduce("rlscheduler", output, lambda parts: reproduce_rlscheduler(data, parts), as_json, spread)


def topology_command(
    data: Annotated[
        Path | None,
        Option("--data", help="Folder of the authors' hpcschedule_jobs.txt, which is not shipped.", metavar="FOLDER"),
    ] = None,
    budget: Annotated[
        Literal["smoke", "standard", "first", "full"],
        Option("--budget", help="Number of runs: a minute or an hour; first and full: the paper's networks, days."),
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

    decision reproduce hpcschedule gives the published program's figures to the
    digit.

    Example:

      decision reproduce topology --data data --budget standard -o out/topology
    """
    from decision.rl.learning import require_learning

    require_learning()
    from decision.papers.topology.claims import reproduce_topology

    reproduce("topology", output, lambda parts: reproduce_topology(parts, budget, data), as_json, spread)


def hpcschedule_command(data: Data = Path(), as_json: JsonOption = False) -> None:
    """The paper on topology-aware allocation by neural simulated annealing.

    FCFS and backfilling to the digit, better hosts without windows, and solvers
    of windows: the published search, one that undoes rejected moves, and exact.

    The list of jobs is hpcschedule_jobs.txt.

    Example:

      decision reproduce hpcschedule --data data
    """
    from decision.papers.topology.windows import reproduce_hpcschedule

    reproduce("hpcschedule", None, lambda parts: reproduce_hpcschedule(data, progress=parts.progress), as_json)


# Forecasts of starts.

StartsLogs = Annotated[
    list[Path],
    Argument(
        help="Logs of any known format, cases of decision slurm read, and recordings of a Slurm (folders with "
        "slurm.conf and sacct.txt; cycles.txt.xz says what backfill planned).",
        metavar="LOG...",
        exists=True,
    ),
]
LogPolicy = Annotated[str, Option("--policy", help="The policy of logs that are no Slurm's.", metavar="POLICY")]
LogHosts = Annotated[int | None, Option("--hosts", help="Hosts of such a log; as many as it says.", min=1)]
ByRecorded = Annotated[
    bool, Option("--recorded", help="Judge by the starts that logs recorded; by those under the policy else.")
]
MomentsOption = Annotated[int, Option("--moments", help="Moments of each log that are judged.", min=5)]
FuturesOption = Annotated[int, Option("--futures", help="Futures of each moment.", min=10)]
StartsFolder = Annotated[Path, Option("--output", "-o", help="Folder of table.md and pictures.", metavar="FOLDER")]


def judge_starts_command(
    logs: StartsLogs,
    policy: LogPolicy = "easy",
    hosts: LogHosts = None,
    recorded: ByRecorded = False,
    moments: MomentsOption = 200,
    futures: FuturesOption = 100,
    output: StartsFolder = Path("out/starts"),
    *,
    chosen: Chosen,
    as_json: JsonOption = False,
) -> None:
    """How good forecasts of starts are, beside those that others make.

    At moments of each log, every job that waits is forecast from what was known
    then: by futures (decision starts, decision slurm starts), by limits alone,
    by Slurm's own plan where its log has it, by the waits of like jobs in the
    last four weeks, and by gradient boosting (needs scikit-learn). A quarter as
    many moments come before those that are judged, to calibrate. What is finished
    of a log is kept, so that a second run goes on with the next one.

    Example:

      decision reproduce starts log.swf --policy easy -o out/starts
    """
    from decision.papers.starts import LogAsked, reproduce_starts

    asked = [
        LogAsked(
            path=log,
            policy=policy,
            hosts=hosts,
            as_recorded=recorded,
            selection=chosen.read(),
            moments=moments,
            futures=futures,
        )
        for log in logs
    ]
    reproduce(
        "starts",
        output,
        lambda parts: reproduce_starts(asked, parts.folder, parts.progress),
        as_json,
        counted="moments",
    )
