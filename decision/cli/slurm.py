"""``decision slurm``: a cluster's own Slurm as a case, how well the model agrees with it, and what changes would do."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from decision.model.table import Table

from .command import Group, add_command, typed_command
from .declared import Argument, Option
from .options import SeedOption, TimeZoneOption
from .starts import slurm_starts_command

if TYPE_CHECKING:
    from decision.slurm.agree import Agreement
    from decision.slurm.case import Case
    from decision.slurm.sweep import Sweep

# ``decision slurm read``: a case of a slurm.conf, a job log, and what else is known of the cluster.

_files_option = partial(Option, panel="More files of the cluster")


def _file(name: str, text: str) -> object:
    return _files_option(name, help=text, metavar="FILE", dir_okay=False)


ConfOption = Annotated[
    Path, Option("--conf", help="Slurm's configuration, slurm.conf.", metavar="FILE", dir_okay=False)
]
JobsOption = Annotated[
    Path, Option("--jobs", help="The log: what sacct -P or sacct --json prints.", metavar="FILE", dir_okay=False)
]
NodesOption = Annotated[Path | None, _file("--nodes", "What scontrol show node prints, with or without -o.")]
PartitionsOption = Annotated[Path | None, _file("--partitions", "What scontrol show partition prints.")]
AssocOption = Annotated[Path | None, _file("--assoc", "What sacctmgr -P show assoc prints.")]
QosOption = Annotated[Path | None, _file("--qos", "What sacctmgr -P show qos prints.")]
SharesOption = Annotated[Path | None, _file("--shares", "What sshare -a -l -P prints when the log begins.")]
CyclesOption = Annotated[Path | None, _file("--cycles", "When backfill ran: slurmctld's log, or one time a line.")]
NodeEventsOption = Annotated[Path | None, _file("--events", "What sacctmgr -P show event prints of nodes.")]
ReservationsOption = Annotated[Path | None, _file("--reservations", "What scontrol show res prints.")]
TopologyOption = Annotated[
    Path | None,
    _file("--topology", "Its switches, topology.conf; with topology/tree, the one next to slurm.conf by default."),
]
ConfigOption = Annotated[Path | None, _file("--config", "What scontrol show config prints: version, values as taken.")]
VersionOption = Annotated[
    str | None,
    _files_option("--slurm-version", help="Version of Slurm, where --config does not say it: 25.05.", metavar="TEXT"),
]
OldTimeZoneOption = Annotated[  # the name of 0.1.0, accepted until the next release
    str | None, Option("--timezone", help="The former name of --time-zone.", metavar="ZONE", hidden=True)
]
AnonymousOption = Annotated[bool, Option("--anonymous", help="Hide names of users, accounts and jobs.")]
CaseFolder = Annotated[Path, Option("--output", "-o", help="Folder of the case.", metavar="CASE")]


def read_command(
    conf: ConfOption,
    jobs: JobsOption,
    output: CaseFolder,
    nodes: NodesOption = None,
    partitions: PartitionsOption = None,
    assoc: AssocOption = None,
    qos: QosOption = None,
    shares: SharesOption = None,
    cycles: CyclesOption = None,
    events: NodeEventsOption = None,
    reservations: ReservationsOption = None,
    topology: TopologyOption = None,
    config: ConfigOption = None,
    slurm_version: VersionOption = None,
    time_zone: TimeZoneOption = None,
    old_time_zone: OldTimeZoneOption = None,
    anonymous: AnonymousOption = False,
) -> None:
    """Make a case of a slurm.conf and a job log: platform, workload and case.json.

    Rules and defaults are those of the cluster's version: give what scontrol
    show config prints as --config, or --slurm-version.

    The log is what this prints, with the dates of your own weeks:

      sacct -a -P -X -D -S 2026-03-02 -E 2026-03-09 -o JobIDRaw,JobID,User,\\
      Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,\\
      TimelimitRaw,State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,\\
      NodeList,Priority,Reason,Flags,Constraints,Reservation,Suspended,\\
      SubmitLine > sacct.txt

    Columns may be in any order; SubmitLine stands last. What the other files
    are is said at their options; without them slurm.conf and the log speak.

    Example:

      decision slurm read --conf slurm.conf --jobs sacct.txt \\
          --qos qos.txt --shares sshare.txt -o CASE
    """
    from decision.slurm.case import Sources, hide_names, read_case, write_case

    from .tables import count
    from .terminal import note, say

    case, found = read_case(
        Sources(
            conf=conf,
            jobs=jobs,
            nodes=nodes,
            partitions=partitions,
            assoc=assoc,
            qos=qos,
            shares=shares,
            cycles=cycles,
            events=events,
            reservations=reservations,
            topology=topology,
            config=config,
            version=slurm_version or "",
            time_zone=time_zone or old_time_zone or "",
        )
    )
    if anonymous:
        case = hide_names(case)
    write_case(case, found, output)
    for line in (*case.notes, *case.keys.words()):
        note(line)
    parts = (count(len(case.jobs), "job"), count(len(case.nodes), "node"), count(len(case.partitions), "partition"))
    say(f"{output}: {', '.join(parts)}, Slurm {case.slurm}")


# What the commands about Slurm print: how well a model agrees, and what a sweep found.


def print_agreement(case: "Case", found: "Agreement") -> None:
    """Waits as recorded and as simulated, the largest differences, and the verdict."""
    import numpy as np

    from decision.slurm.agree import agreement_notes, job_groups, start_differences, wait_figures
    from decision.slurm.unstarted import never_lines

    from .tables import number, print_table
    from .terminal import say

    runtime = np.array([case.jobs[n].runtime for n in found.started])
    columns = ("group", "jobs", "who", "mean wait, s", "median", "p90", "bounded slowdown")
    rows, simulated = [], found.simulated.mean(0)
    for name, places in job_groups(case, found.started).items():
        for who, waits in (("recorded", found.recorded), ("simulated", simulated)):
            row = wait_figures(waits[places], runtime[places])
            rows.append((name, f"{row.jobs:,}", who, *(number(value) for value in row[1:])))
    print_table(Table("Recorded and simulated", columns, rows), names=3)
    means, (low, high) = found.means, found.interval
    worth = []
    for name, mean in means.items():
        known = name != "recorded" and means["recorded"] > 0
        off = f"{100 * (mean / means['recorded'] - 1):+.1f} %" if known else ""
        worth.append((name, number(mean), off))
    print_table(Table("What the model is worth", ("", "mean wait, s", "off"), worth))
    say(
        "easy and conservative are other schedulers on the same jobs: they plan at every event with exact ends and no "
        "limit, in order of submission, on whole hosts or cores, without priorities, partitions and cycles"
    )
    say(f"rules of Slurm {case.slurm}")
    say(f"simulated mean wait {number(means['simulated'])} s, interval {number(low)} to {number(high)} s")
    say("starts within " + ", ".join(f"{name}: {100 * share:.0f} %" for name, share in found.close.items()))
    recorded, model = found.utilization
    say(f"utilization: recorded {100 * recorded:.1f} %, simulated {100 * model:.1f} %")
    for late in start_differences(case, found):
        say(f"job {late.job}: recorded {late.recorded}, simulated {late.simulated} ({late.reason})")
    for line in never_lines(case, case.settings, found.best, found.started):
        say(line)
    for line in (*agreement_notes(case, found), *case.keys.words()):
        say(line)
    say(f"verdict: {found.verdict}")


def named_change(change: "dict[str, str]") -> str:
    """A change of parameters as text: ``bf_interval=30, bf_window=1440``."""
    return ", ".join(f"{name}={value}" for name, value in change.items())


_COSTLY = ("bf_interval", "bf_max_job_test")


def print_sweep(found: "Sweep", output: Path | None) -> None:
    """What each setting changes, and which is the best; `output` is the folder of slurm.conf.diff."""
    from .tables import number, print_table
    from .terminal import say

    rows = []
    for each in found.tried:
        low, high = each.interval
        verdict = f"breaks {', '.join(each.broken)}" if each.broken else "better" if each.better else ""
        shown = (number(each.mean), number(low), number(high), number(each.held_out))
        rows.append((named_change(each.set), *shown, f"{each.tested:.2f}", verdict))
    for name, value in found.policies.items():
        rows.append((f"policy {name}", number(found.goal.sign * (value - found.base)), "", "", "", "", ""))
    columns = ("setting", "change", "from", "to", "last third", "tested/s", "")
    print_table(Table(f"{found.goal.text}, {number(found.base)} as configured", columns, rows))
    say("policies plan at every event, without Slurm's cycles, limits and partitions: what they reach is no promise")
    if any(name in each.set for each in found.tried for name in _COSTLY):
        say("bf_interval and bf_max_job_test load the controller: tested/s is how many jobs backfill tests a second")
    if found.best is None:
        say("no setting is better than yours")
    else:
        say(f"best: {named_change(found.best.set)}" + (f"; see {output}/slurm.conf.diff" if output else ""))


_CASE = Argument(help="Folder that decision slurm read made.", metavar="CASE", file_okay=False)


CaseArgument = Annotated[Path, _CASE]
RunsOption = Annotated[
    int, Option("--runs", help="Guesses at what the log does not say.", min=2, max=1000, metavar="N")
]
StartsFile = Annotated[
    Path | None, Option("--starts", help="Write the simulated starts as CSV.", metavar="FILE", dir_okay=False)
]
JsonFile = Annotated[Path | None, Option("--json", help="Write the result as JSON.", metavar="FILE", dir_okay=False)]
VaryOption = Annotated[
    str | None,
    Option(
        "--vary",
        help="Parameters and values: ; between those of which all combinations are tried, & between those that "
        "change together.",
        metavar="'A=1,2;B=3,4'",
        show_default="a set for this configuration",
    ),
]
GoalOption = Annotated[
    str,
    Option("--goal", help="What is to get better: mean-wait, p95-wait, slowdown or utilization, of all or of a group."),
]
GuardOption = Annotated[
    list[str] | None,
    Option(
        "--not-worse", help="What must not get worse, and by how much: partition=debug:mean-wait:5%. May be repeated."
    ),
]
SweepFolder = Annotated[
    Path | None, Option("--output", "-o", help="Folder for slurm.conf.diff and finished runs.", metavar="FOLDER")
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
    from decision.slurm.agree import agree, agreement_document, starts_lines
    from decision.slurm.case import load_case

    from .terminal import announce_compilation, counting

    loaded = load_case(case)
    announce_compilation()
    with counting("runs", kept=False) as show:
        found = agree(loaded, loaded.settings, runs, seed, show)
    _write(json, agreement_document(loaded, found))
    if starts is not None:
        _write_text(starts, "\n".join(starts_lines(loaded, found.best)) + "\n")
    print_agreement(loaded, found)


def _write(path: Path | None, document: object) -> None:
    import msgspec

    from decision.files.text import json_bytes

    if path is not None:
        _write_text(path, msgspec.json.format(json_bytes(document), indent=1).decode() + "\n")


def _write_text(path: Path, text: str) -> None:
    from decision.files.text import utf8, write_files

    write_files({path: [utf8(text)]})


def sweep_command(
    context: click.Context,
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
    from decision.slurm.agree import compared_jobs
    from decision.slurm.case import load_case
    from decision.slurm.recommend import conf_diff
    from decision.slurm.sweep import default_settings, read_goal, read_goal_guard, read_vary, sweep, sweep_document

    from .terminal import announce_compilation, counting, say

    loaded = load_case(case)
    announce_compilation()
    settings = loaded.settings
    changes = read_vary(vary) if vary else default_settings(settings)
    numbers = compared_jobs(loaded)
    chosen = read_goal(goal, loaded, numbers)
    guards = [read_goal_guard(text, loaded, numbers) for text in not_worse or ()]
    say(f"{len(changes)} settings, {runs} runs each: {'; '.join(named_change(change) for change in changes)}")
    with counting("runs", kept=output is not None) as show:
        found = sweep(loaded, settings, changes, chosen, guards, runs=runs, seed=seed, folder=output, show=show)
    command = typed_command(context)
    _write(json, sweep_document(found, command))
    if output is not None:
        _write_text(output / "slurm.conf.diff", conf_diff(case, loaded.conf, found, command))
    print_sweep(found, output)


OrderArgument = Annotated[
    str,
    Option(
        "--order",
        help="Order to come near to: fcfs, sjf, saf, f1 to f4, ..., or a CSV with the columns job and number.",
    ),
]
ScriptFolder = Annotated[
    Path | None, Option("--output", "-o", help="Folder for slurm.conf.diff and job_submit.lua.", metavar="FOLDER")
]


def order_command(
    context: click.Context,
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
    from decision.slurm.case import load_case
    from decision.slurm.recommend import approximate, diff_of

    from .tables import number, print_table
    from .terminal import announce_compilation, counting, say

    loaded = load_case(case)
    announce_compilation()
    with counting("runs", kept=False) as show:
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
    body = [(name, *map(number, (each.mean, *each.interval))) for name, each in rows.items() if each is not None]
    title = f"mean wait, {number(found.base)} s as configured"
    print_table(Table(title, ("as", "change, s", "from", "to"), body))
    say(f"Kendall's tau of the best weights: {found.tau:.2f} ({named_change(found.weights)})")
    if found.chosen is None:
        say("weights do not express this order, and no formula of it is known: nothing is recommended")
    else:
        how = "weights" if not found.script else "job_submit.lua"
        say(f"take {how}: {number(found.lost)} s of the mean wait are lost against the order itself")
    if found.script and output is None:
        say(found.script)


app = Group("slurm", no_args_is_help=True, help="What if, for your own Slurm.")
add_command(app, "read", read_command)
add_command(app, "agree", agree_command)
add_command(app, "sweep", sweep_command)
add_command(app, "order", order_command)
add_command(app, "starts", slurm_starts_command)
