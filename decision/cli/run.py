"""``decision run``, ``showcase``, ``again``: policies over a workload; ``serve``, ``replay``: by Batsim's messages."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click

from decision.batsim.process import Ahead, command_of_4, run_decision, started_ahead
from decision.experiments import Engine, Verbosity
from decision.model.table import Table

from .command import Chosen, Drawing, is_given, refuse_unused, typed_command
from .declared import Argument, Option
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DEFAULT_TIMEOUT,
    BatsimOption,
    DecideLimitOption,
    EnergyOption,
    EventsOption,
    FeedbackOption,
    ForceOption,
    JsonOption,
    OutputFolder,
    PlatformOption,
    PolicyOption,
    SeedOption,
    SettingsOption,
    SharingOption,
    TimeoutOption,
    WorkloadOption,
    WorkloadsOption,
    read_pairs,
    simulator_option,
)

_SHOWN = ("fcfs", "easy", "conservative", "sjf+easy", "saf+easy")


EngineOption = Annotated[Engine, Option("--engine", help="Simulator.")]
Image = Annotated[
    str, simulator_option("--image", help="Batsim's Docker image, for --engine docker.", metavar="NAME:TAG")
]
LogLevel = Annotated[Verbosity, simulator_option("--batsim-verbosity", help="What Batsim writes to FOLDER/batsim.log.")]


class CallUnit(StrEnum):
    """What times of calls are rounded to."""

    US = "us"
    MS = "ms"


Calls = Annotated[
    CallUnit,
    Option("--calls", help="Round the times at which a policy is called again: ms is up to Batsim 5's milliseconds."),
]
ScheduleTrace = Annotated[
    bool, simulator_option("--schedule-trace", help="Let Batsim write FOLDER/out_schedule.trace (Paje); may be large.")
]
Plot = Annotated[bool, Option("--plot", help="Draw the schedule in FOLDER/schedule.png (or .svg, .pdf).")]


def run_command(
    context: click.Context,
    platform: PlatformOption,
    workload: WorkloadsOption,
    policy: PolicyOption,
    settings: SettingsOption = None,
    engine: EngineOption = Engine.EMBEDDED,
    batsim: BatsimOption = "batsim",
    image: Image = "oarteam/batsim:latest",
    batsim_verbosity: LogLevel = Verbosity.QUIET,
    schedule_trace: ScheduleTrace = False,
    energy: EnergyOption = False,
    compute_sharing: SharingOption = False,
    calls: Calls = CallUnit.US,
    events: EventsOption = None,
    *,
    chosen: Chosen,
    feedback: FeedbackOption = False,
    seed: SeedOption = 0,
    force: ForceOption = False,
    output: OutputFolder = Path("out"),
    plot: Plot = False,
    drawing: Drawing,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    as_json: JsonOption = False,
) -> None:
    """Run one policy over a workload on a platform.

    Prints a summary and writes Batsim's output files, out_jobs.csv and others,
    to FOLDER. --engine batsim starts Batsim on a free port, --engine docker
    starts a published image of Batsim; the other engines need nothing
    installed.

    Examples:

      decision run -p platforms/taurus.xml -w workloads/taurus_week_flops.json \\
          --policy easy --energy

      decision run -p cluster.xml -w log.swf --select 0:1000 --policy saf+easy

      decision run -p taurus -w taurus_week --policy easy --plot --format pdf \\
          --width 3.5

      decision run -p cluster.xml -w work.json --policy ./mine.py:Mine \\
          --engine batsim --batsim /opt/bin/batsim
    """
    real_engine = engine in (Engine.BATSIM, Engine.DOCKER)
    needs = {"batsim": engine is Engine.BATSIM, "image": engine is Engine.DOCKER}
    needs |= dict.fromkeys(("batsim_verbosity", "schedule_trace", "timeout"), real_engine)
    refuse_unused(context, needs, f"it does nothing with --engine {engine}")
    plot = plot or is_given(context, "suffix")
    refuse_unused(context, dict.fromkeys(Drawing._fields, plot), "it needs --plot")
    ahead = _batsim_ahead(context) if engine is Engine.BATSIM else None

    from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
    from decision.experiments.run import RealBatsim, run_to_folder
    from decision.policies.registry import shown_name
    from decision.report.plots import schedule_drawer
    from decision.rl.learning.checkpoint import require_gates

    from .tables import print_json, print_logs, print_summaries, summary_rows
    from .terminal import announce_compilation, working

    if not force:
        require_gates(policy)
    inputs = Inputs(
        platform=platform,
        workloads=tuple(workload),
        events=tuple(events or ()),
        energy=energy,
        compute_sharing=compute_sharing,
        calls=calls.value,
        selection=chosen.read(),
        feedback=feedback,
    )
    choice = PolicyChoice(policy=policy, settings=read_pairs(settings), seed=seed, decide_limit=decide_limit)
    real = RealBatsim(
        command=batsim,
        image=image,
        timeout=timeout,
        verbosity=batsim_verbosity,
        schedule_trace=schedule_trace,
        ahead=ahead,
    )
    case = load_inputs(inputs)
    print_logs(case.platform, case.workloads, [policy])
    announce_compilation()
    draw = schedule_drawer() if plot else None
    with working(policy) as show, drawing.begun():
        typed = typed_command(context)
        summary = run_to_folder(case, choice, output, engine=engine, batsim=real, draw=draw, show=show, command=typed)
    shown = {shown_name(policy): summary}
    if as_json:
        print_json({"runs": summary_rows(shown)})
    else:
        print_summaries(shown)


# Where one of these is given, or the policy has options, Batsim's files or switches may be others than those named
_CHANGES = (
    *("settings", "events", "jobs", "nodes", "walltime", "time_field", "time_zone", "missing_walltime", "feedback"),
)
_RECORDS = (b'"recorded"', b'"request"')  # fields of jobs that `decision.files.batsim_json` leaves out for Batsim


def _batsim_ahead(context: click.Context) -> Ahead | None:
    """The Batsim of a plain run, which reads its files while we load what the run needs; None where it is not plain."""
    given = context.params
    # a look at the text: to parse it would load policies, and with them numba, before Batsim starts
    plain = "," not in given["policy"] and not any(is_given(context, name) for name in _CHANGES)
    if not plain or any(path.suffix != ".json" or not path.is_file() for path in given["workload"]):
        return None

    def command(executable: str, fresh: Path) -> list[str]:
        workloads = list(given["workload"])
        for i, path in enumerate(workloads):
            data = path.read_bytes()
            if any(name in data for name in _RECORDS):
                from decision.files.batsim_json import without_trace

                workloads[i] = fresh / f"w{i}.json"
                workloads[i].write_bytes(without_trace(data))
        return command_of_4(
            [executable],
            [("-p", given["platform"].absolute()), *(("-w", path.absolute()) for path in workloads)],
            fresh,
            verbosity=given["batsim_verbosity"].value,
            schedule_trace=given["schedule_trace"],
            switches=[
                *(["-E"] if given["energy"] else []),
                *(["--enable-compute-sharing"] if given["compute_sharing"] else []),
            ],
        )

    return context.with_resource(started_ahead(given["batsim"], given["output"], command))


def showcase_command(
    context: click.Context,
    platform: PlatformOption = Path("taurus"),
    workload: WorkloadOption = Path("taurus_week_flops"),
    output: OutputFolder = Path("out"),
    *,
    drawing: Drawing,
    as_json: JsonOption = False,
) -> None:
    """Compare five policies on a cluster like Grid'5000's and a week of jobs.

    Prints one table and writes, for each policy, Batsim's output files and a
    picture to FOLDER/POLICY.

    Examples:

      decision showcase

      decision showcase -p taurus -w log.swf -o out/log
    """
    from decision.experiments.inputs import Inputs, PolicyChoice, load_inputs
    from decision.experiments.run import run_to_folder
    from decision.report.plots import schedule_drawer

    from .tables import print_dropped, print_json, print_summaries, summary_rows
    from .terminal import announce_compilation, can_draw, say, working

    case = load_inputs(Inputs(platform=platform, workloads=(workload,), energy=True))
    print_dropped(case.workloads)
    draw = schedule_drawer() if can_draw("no pictures") else None
    announce_compilation()
    summaries = {}
    for n, policy in enumerate(_SHOWN, 1):
        with working(f"{policy}, {n} of {len(_SHOWN)} policies") as show, drawing.begun():
            choice, typed = PolicyChoice(policy=policy), typed_command(context)
            summaries[policy] = run_to_folder(case, choice, output / policy, draw=draw, show=show, command=typed)
    if as_json:
        print_json({"runs": summary_rows(summaries)})
        return
    say(f"{workload.stem} on {platform.stem}")
    print_summaries(summaries)
    files = "Batsim's output files" + (f" and schedule.{drawing.suffix}" if draw else "")
    say(f"{files} of each policy are in {output}/POLICY")


# ``decision again``: what a folder says that was done, done once more.

_LISTED = 20  # differences in a table; --json has all


def again_command(
    place: Annotated[
        Path, Argument(help="A run.json, or the output folder of a run or a campaign.", metavar="RUN.JSON")
    ],
    output: OutputFolder,
    as_json: JsonOption = False,
) -> None:
    """Run the same thing again, into a new folder, and say what differs.

    Takes the command from run.json (of decision run, showcase, train, compare,
    advise, evaluate or reproduce), and runs it in this folder: names of files
    are as they were typed. Compared are the version, the inputs' SHA-256, the
    policy and the seed; of a run the tables and the checkpoint that it wrote, and
    of a campaign the result of each run. How long it took is not.

    Examples:

      decision again out/run.json -o out-again

      decision again out/compare -o again --json
    """
    import shlex

    from decision.experiments.folder import check_new, commands_of, compare_folders, folder_of, into
    from decision.files.outputs_read import RUN, campaign_of

    from .tables import count, print_json, print_table
    from .terminal import note, say

    before = folder_of(place)
    commands = commands_of(before)
    check_new(output)
    for words in commands:
        typed = into(words, output)
        note(f"decision {shlex.join(typed)}")
        if code := run_decision(typed, aside=as_json):
            raise click.exceptions.Exit(code)
    alone = (output / RUN).is_file() or campaign_of(output) is not None
    found = compare_folders(before, output if alone else output / before.name)  # a folder of showcase's
    if as_json:
        print_json({"same": not found.results, "found": found})
        return
    for title, rows in (("how it was made", found.setup), ("what was found", found.results)):
        if rows:
            body = [(row.what, row.before, row.again) for row in rows[:_LISTED]]
            print_table(Table("", (title, "before", "again"), body))
        if len(rows) > _LISTED:
            say(f"and {len(rows) - _LISTED:,} more; --json lists all")
    how = "" if found.setup else "; made in the same way"
    what = "file" if campaign_of(before) is None else "run"
    results = f"differ in {count(len(found.results), 'place')}" if found.results else "are the same"
    say(f"results {results} ({count(found.compared, what)} compared{how})")


# ``decision serve`` and ``replay``: the decision process for a Batsim, or for the recording of one.

Endpoint = Annotated[
    str, Option("--endpoint", "-s", help="ZeroMQ endpoint to listen at; Batsim's default port.", metavar="ENDPOINT")
]
KnownPlatform = Annotated[
    Path | None,
    Option(
        "--platform",
        "-p",
        help="Platform that Batsim simulates, for policies that use speeds, power or topology, which Batsim does not "
        "send.",
        metavar="FILE",
    ),
]
Recording = Annotated[
    Path | None, Option("--record", help="Record all messages to this file (JSON lines).", metavar="FILE")
]
Session = Annotated[Path, Argument(help="Recording made by decision serve --record.", metavar="SESSION.jsonl")]


def serve_command(
    policy: PolicyOption,
    settings: SettingsOption = None,
    endpoint: Endpoint = "tcp://127.0.0.1:28000",
    platform: KnownPlatform = None,
    record: Recording = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    as_json: JsonOption = False,
) -> None:
    """Schedule for a Batsim that you start yourself.

    Listens, answers each of Batsim's messages with the policy's decisions, and
    ends when the simulation ends. Ctrl-C ends it earlier; the recording then
    holds all messages up to that point.

    Examples:

      decision serve --policy easy

      decision serve --policy conservative --record session.jsonl --timeout 60

    and then, in another terminal:

      batsim -p platform.xml -w workload.json -e session
    """
    from decision.batsim.agent import make_agent
    from decision.batsim.zeromq import check_endpoint, serve
    from decision.files import load_platform
    from decision.rl.learning.checkpoint import require_gates

    from .tables import print_conversation, print_json
    from .terminal import announce_compilation, note

    check_endpoint(endpoint)  # before all that takes longer
    if not force:
        require_gates(policy)
    facts = load_platform(platform) if platform else None
    announce_compilation()
    agent = make_agent(policy, read_pairs(settings), platform=facts, seed=seed, decide_limit=decide_limit)
    conversation = serve(
        agent,
        endpoint,
        timeout=timeout,
        record=record,
        ready=lambda where: note(f"{policy} waits for Batsim at {where}"),
    )
    if as_json:
        print_json(conversation)
    else:
        print_conversation(conversation)


def replay_command(
    session: Session,
    policy: PolicyOption,
    settings: SettingsOption = None,
    platform: KnownPlatform = None,
    seed: SeedOption = 0,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    as_json: JsonOption = False,
) -> None:
    """Send a recorded session to a policy and compare its decisions.

    Stops at the first difference: the recording does not hold what Batsim would
    have answered to other decisions.

    Example:

      decision replay session.jsonl --policy easy
    """
    from decision.batsim.agent import make_agent
    from decision.batsim.conversation import replay
    from decision.files import load_platform

    from .tables import print_json, print_replay

    facts = load_platform(platform) if platform else None
    agent = make_agent(policy, read_pairs(settings), platform=facts, seed=seed, decide_limit=decide_limit)
    found = replay(session, agent)
    if as_json:
        print_json(found)
    else:
        print_replay(found)
