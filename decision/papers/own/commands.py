"""``decision reproduce`` of what is this package's own: how shipped policies were made, and what they are worth."""

from pathlib import Path
from typing import Annotated

from decision.cli.declared import Argument, Option
from decision.cli.options import JsonOption, MissingWalltimeOption, Spread
from decision.model.computer import find_workload
from decision.papers.commands import Data, Log, PartsFolder, reproduce

RealLog = Annotated[
    Path | None,
    Option("--swf", help="Real log whose weeks are drawn, too, in the Standard Workload Format.", metavar="FILE"),
]
Seeds = Annotated[int, Option("--seeds", help="Number of rankings to train.", min=1)]
PlacedJobs = Annotated[int | None, Option("--steps", help="Number of jobs that are placed to train a ranking.", min=1)]
EvolutionSeed = Annotated[int, Option("--seed", help="Seed of the evolution.", min=0)]


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
    from decision.rl.learning import require_learning

    require_learning()
    from .coverage import reproduce_coverage

    reproduce("coverage", output, lambda parts: reproduce_coverage(parts, log=swf), as_json, spread, counted="batches")


def timetable_command(output: PartsFolder = None, as_json: JsonOption = False) -> None:
    """Evolve the policy timetable, and compare it with heuristics where power comes and goes.

    On made jobs and supplies for 10, 50 and 100 hosts together; then on others,
    beside 49 heuristics and beside what no schedule can exceed. A second run goes
    on where the first was stopped.

    Example:

      decision reproduce timetable -o out/timetable
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .evolved import reproduce_timetable

    reproduce("timetable", output, reproduce_timetable, as_json)


def held_out_command(
    data: Data = Path(),
    output: PartsFolder = None,
    policy: Annotated[str, Option("--policy", help="Checkpoint, or any other policy.")] = "learned",
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
    from decision.rl.learning import require_learning

    require_learning()
    from .held_out import reproduce_held_out

    reproduce(
        "held-out", output, lambda parts: reproduce_held_out(data, parts, policy), as_json, spread, counted="logs"
    )


def learned_command(
    data: Data = Path(),
    output: PartsFolder = None,
    *,
    seed: EvolutionSeed = 0,
    generations: Annotated[
        int | None, Option("--generations", help="Number of generations of twelve candidates.", min=1)
    ] = None,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Evolve the policy learned, on first halves of public logs and made jobs.

    FOLDER has lublin_256.swf, lublin_256_2.swf, NASA-iPSC-1993-3.1-cln.swf,
    theta_argonne.swf and curie_25days.swf. A second run goes on where the first
    was stopped.

    Example:

      decision reproduce learned --data traces -o out/learned
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .learned import LEARNED_GENERATIONS, reproduce_learned

    reproduce(
        "learned",
        output,
        lambda parts: reproduce_learned(data, parts, seed=seed, generations=generations or LEARNED_GENERATIONS),
        as_json,
        spread,
        counted="candidates",
    )


def left_out_command(
    data: Data = Path(),
    output: PartsFolder = None,
    *,
    seed: EvolutionSeed = 0,
    generations: Annotated[
        int | None, Option("--generations", help="Number of generations of twelve candidates in each fold.", min=1)
    ] = None,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Evolve the policy learned with logs left out, and judge it on these.

    Four times the logs of a fold are left out. On ten shaken copies of each log:
    what was learned without it, beside EASY, every order with and without a bound
    on waiting, and a weekly choice among the bounded ones; and how much longer
    than under EASY single jobs wait under each. FOLDER has the logs that
    decision/papers/own/README.md names. A second run goes on where the first was
    stopped.

    Example:

      decision reproduce left-out --data traces -o out/left-out
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .held_out import GENERATIONS, reproduce_left_out

    reproduce(
        "left-out",
        output,
        lambda parts: reproduce_left_out(data, parts, seed=seed, generations=generations or GENERATIONS),
        as_json,
        spread,
        counted="candidates and runs",
    )


def packer_command(
    output: PartsFolder = None,
    generations: Annotated[
        int | None, Option("--generations", help="Number of generations of sixteen candidates.", min=1)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Evolve the policy packer, on made workloads of many kinds.

    They are like those of decision reproduce packing, but of other seeds and
    other shares of single-node jobs. A second run goes on where the first was
    stopped.

    Example:

      decision reproduce packer -o out/packer
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .evolved import PACKER_GENERATIONS, reproduce_packer

    reproduce(
        "packer",
        output,
        lambda parts: reproduce_packer(parts, generations=generations or PACKER_GENERATIONS),
        as_json,
        counted="generations",
    )


def ranking_command(
    swf: Log, output: PartsFolder = None, seeds: Seeds = 5, steps: PlacedJobs = None, as_json: JsonOption = False
) -> None:
    """Learned rankings against every order with backfilling, on held-out jobs.

    Example:

      decision reproduce ranking --swf lublin_256.swf -o out/ranking
    """
    from decision.rl.learning import require_learning

    require_learning()
    from .ranking import reproduce_ranking

    reproduce(
        "ranking",
        output,
        lambda parts: reproduce_ranking(swf, parts, seeds=seeds, steps=steps),
        as_json,
        counted="steps",
    )


def recorded_command(
    logs: Annotated[list[Path], Argument(help="Logs with recorded starts.", metavar="LOG...", parser=find_workload)],
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
    from .judged import reproduce_recorded

    reproduce(
        "recorded",
        None,
        lambda parts: reproduce_recorded(logs, missing_walltime, parts.progress),
        as_json,
        counted="logs",
    )
