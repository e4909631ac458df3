"""``decision slurm``: what if, for an operator's own Slurm."""

from pathlib import Path
from typing import Annotated

import typer

from .command import Group, add_command, typed_command
from .options import SeedOption
from .slurm_read import read_command
from .slurm_tables import named_change, print_agreement, print_sweep

_CASE = typer.Argument(help="Folder that decision slurm read made.", metavar="CASE", file_okay=False)


CaseArgument = Annotated[Path, _CASE]
RunsOption = Annotated[
    int, typer.Option("--runs", help="Guesses at what the log does not say.", min=2, max=1000, metavar="N")
]
StartsFile = Annotated[
    Path | None, typer.Option("--starts", help="Write the simulated starts as CSV.", metavar="FILE", dir_okay=False)
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the result as JSON.", metavar="FILE", dir_okay=False)
]
VaryOption = Annotated[
    str | None,
    typer.Option(
        "--vary",
        help="Parameters and values: ; between those of which all combinations are tried, & between those that "
        "change together.",
        metavar="'A=1,2;B=3,4'",
        show_default="a set for this configuration",
    ),
]
GoalOption = Annotated[
    str,
    typer.Option(
        "--goal", help="What is to get better: mean-wait, p95-wait, slowdown or utilization, of all or of a group."
    ),
]
GuardOption = Annotated[
    list[str] | None,
    typer.Option(
        "--not-worse", help="What must not get worse, and by how much: partition=debug:mean-wait:5%. May be repeated."
    ),
]
SweepFolder = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for slurm.conf.diff and finished runs.", metavar="FOLDER")
]


def agree_command(
    case: CaseArgument, runs: RunsOption = 20, starts: StartsFile = None, json: JsonFile = None, seed: SeedOption = 0
) -> None:
    """Say how well the model of Slurm agrees with what happened.

    Simulates the log with its recorded run times. What a log does not say is
    guessed: when cycles of backfill and calculations of priorities began, and
    how long nodes completed. Three times as many guesses as --runs says are
    tried, and those that agree best with the recorded starts are kept. If the
    case was made with --cycles, the best guess alone is kept.

    The interval of the mean wait covers the guesses, blocks of the log, and
    that a real Slurm that repeats the same jobs differs from itself by 2.5 %.

    The verdict is "agrees" if the interval holds the recorded mean and 85 % of
    the starts are within 5 minutes; "agrees in the mean, not per job" if the
    interval holds it and it is at most 15 % off; or "does not agree: do not use
    the sweep".

    Example:

      decision slurm agree CASE --json agree.json --starts starts.csv
    """
    from decision.slurm.agree import agree
    from decision.slurm.agreement_report import agreement_document, starts_lines
    from decision.slurm.case_folder import load_case

    from .progress import announce_compilation, counting

    loaded = load_case(case)
    announce_compilation()
    with counting("runs") as show:
        found = agree(loaded, loaded.settings, runs, seed, show)
    _write(json, agreement_document(loaded, found))
    if starts is not None:
        _write_text(starts, "\n".join(starts_lines(loaded, found.best)) + "\n")
    print_agreement(loaded, found)


def _write(path: Path | None, document: object) -> None:
    import msgspec

    from decision.formats.json_text import json_bytes

    if path is not None:
        _write_text(path, msgspec.json.format(json_bytes(document), indent=1).decode() + "\n")


def _write_text(path: Path, text: str) -> None:
    from decision.formats.files import utf8, write_files

    write_files({path: [utf8(text)]})


def sweep_command(
    context: typer.Context,
    case: CaseArgument,
    vary: VaryOption = None,
    goal: GoalOption = "mean-wait",
    not_worse: GuardOption = None,
    runs: RunsOption = 20,
    output: SweepFolder = None,
    json: JsonFile = None,
    seed: SeedOption = 0,
) -> None:
    """Try other parameters of slurm.conf on the same jobs, and say which are better.

    Differences are paired: the same jobs and the same guesses, as decision
    slurm agree makes them. Intervals hold for all settings together, and cover
    guesses, blocks of the log, the spread of a real Slurm and the model's
    error. The last third of the log decides: a setting that is not better
    there is not recommended.

    With -o, slurm.conf.diff changes your file to the best setting that is
    surely better, and finished runs are kept for the next time.

    Examples:

      decision slurm sweep CASE --vary 'bf_interval=30,60,120' -o out/sweep

      decision slurm sweep CASE --goal partition=debug:mean-wait \\
          --vary 'PriorityWeightAge=0,1000;PriorityWeightJobSize=0,1000'
    """
    from decision.slurm.case_folder import load_case
    from decision.slurm.changes import default_settings, read_vary
    from decision.slurm.goals import read_goal, read_goal_guard
    from decision.slurm.recommend import conf_diff
    from decision.slurm.sweep import sweep, sweep_document

    from .progress import announce_compilation, counting
    from .terminal import say

    loaded = load_case(case)
    announce_compilation()
    settings = loaded.settings
    changes = read_vary(vary) if vary else default_settings(settings)
    numbers = [n for n, job in enumerate(loaded.jobs) if job.started]
    chosen = read_goal(goal, loaded, numbers)
    guards = [read_goal_guard(text, loaded, numbers) for text in not_worse or ()]
    say(f"{len(changes)} settings, {runs} runs each: {'; '.join(named_change(change) for change in changes)}")
    with counting("runs") as show:
        found = sweep(loaded, settings, changes, chosen, guards, runs=runs, seed=seed, folder=output, show=show)
    command = typed_command(context)
    _write(json, sweep_document(found, command))
    if output is not None:
        _write_text(output / "slurm.conf.diff", conf_diff(case, loaded.conf, found, command))
    print_sweep(found, output)


OrderArgument = Annotated[
    str,
    typer.Option(
        "--order",
        help="Order to come near to: fcfs, sjf, saf, f1 to f4, ..., or a CSV with the columns job and number.",
    ),
]
ScriptFolder = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for slurm.conf.diff and job_submit.lua.", metavar="FOLDER")
]


def order_command(
    context: typer.Context,
    case: CaseArgument,
    order: OrderArgument,
    runs: RunsOption = 20,
    output: ScriptFolder = None,
    json: JsonFile = None,
    seed: SeedOption = 0,
) -> None:
    """Say how near Slurm comes to another order of jobs, and what that brings.

    Fits the priority's weights of size and age to the order: how well they
    agree is Kendall's tau over jobs that waited at the same time. From 0.9 on
    the weights are recommended, as slurm.conf.diff. Below that a job_submit.lua
    is written, which gives each job its place as site factor.

    All of them are simulated. An order that no formula says, a learned one, is
    given as a CSV with the columns job and number, the lowest first.

    Example:

      decision slurm order CASE --order f1 -o out/f1
    """
    from decision.slurm.case_folder import load_case
    from decision.slurm.order import approximate
    from decision.slurm.recommend import diff_of

    from .progress import announce_compilation, counting
    from .tables import number, simple_table
    from .terminal import say, stdout

    loaded = load_case(case)
    announce_compilation()
    with counting("runs") as show:
        found = approximate(loaded, loaded.settings, order, runs, seed, show)
    rows = {"order itself": found.exact, "weights": found.by_weights, "job_submit.lua": found.by_script}
    _write(
        json,
        {
            "order": order,
            "tau": found.tau,
            "base": found.base,
            "weights": found.weights,
            "changes": {
                name: {"mean": each.mean, "interval": list(each.interval)} for name, each in rows.items() if each
            },
            "lost": None if found.chosen is None else found.lost,
        },
    )
    if output is not None:
        _write_text(output / "slurm.conf.diff", diff_of(case, loaded.conf, found, typed_command(context)))
        if found.script:
            _write_text(output / "job_submit.lua", found.script)
    table = simple_table("as", "change, s", "from", "to", title=f"mean wait, {number(found.base)} s as configured")
    for name, each in rows.items():
        if each is not None:
            table.add_row(name, *(number(value) for value in (each.mean, *each.interval)))
    stdout().print(table)
    say(f"Kendall's tau of the best weights: {found.tau:.2f} ({named_change(found.weights)})")
    if found.chosen is None:
        say("weights do not express this order, and no formula of it is known: nothing is recommended")
    else:
        how = "weights" if not found.script else "job_submit.lua"
        say(f"take {how}: {number(found.lost)} s of the mean wait are lost against the order itself")
    if found.script and output is None:
        say(found.script)


app = typer.Typer(cls=Group, no_args_is_help=True, help="What if, for your own Slurm.")
add_command(app, "read", read_command)
add_command(app, "agree", agree_command)
add_command(app, "sweep", sweep_command)
add_command(app, "order", order_command)
