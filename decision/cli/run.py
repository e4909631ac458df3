"""``decision run`` and ``decision showcase``: policies over a workload on a platform, from files to files."""

import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from decision.batsim.process import Ahead, command_of_4, started_ahead
from decision.experiments import Engine, Verbosity
from decision.experiments.folder import HOST_LETTERS
from decision.files.run_facts import Status
from decision.model.record import HostState

from .command import Chosen, Drawing, is_given, refuse_unused, typed_command, with_groups
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
    TimeoutOption,
    WorkloadOption,
    WorkloadsOption,
    read_pairs,
)

_SHOWN = ("fcfs", "easy", "conservative", "sjf+easy", "saf+easy")


EngineOption = Annotated[Engine, typer.Option("--engine", help="Simulator.")]
Image = Annotated[str, typer.Option("--image", help="Batsim's Docker image, for --engine docker.", metavar="NAME:TAG")]
LogLevel = Annotated[Verbosity, typer.Option("--batsim-verbosity", help="What Batsim writes to FOLDER/batsim.log.")]


class CallUnit(StrEnum):
    """What times of calls are rounded to."""

    US = "us"
    MS = "ms"


Calls = Annotated[
    CallUnit,
    typer.Option(
        "--calls", help="Round the times at which a policy is called again: ms is up to Batsim 5's milliseconds."
    ),
]
ScheduleTrace = Annotated[
    bool, typer.Option("--schedule-trace", help="Let Batsim write FOLDER/out_schedule.trace (Paje); may be large.")
]
Plot = Annotated[bool, typer.Option("--plot", help="Draw the schedule in FOLDER/schedule.png (or .svg, .pdf).")]


@with_groups
def run_command(
    context: typer.Context,
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

    from .tables import print_dropped, print_json, print_machines, print_summaries, print_unsimulated, summary_rows
    from .terminal import announce_compilation, working

    if not force:
        require_gates(policy)
    inputs = Inputs(
        platform=platform,
        workloads=tuple(workload),
        events=tuple(events or ()),
        energy=energy,
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
    print_dropped(case.workloads)
    print_machines(case.platform, case.workloads)
    print_unsimulated(case.workloads, [policy])
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


def _batsim_ahead(context: typer.Context) -> Ahead | None:
    """The Batsim of a plain run, which reads its files while we load what the run needs; None where it is not plain."""
    given = context.params
    # a look at the text: to parse it would load policies, and with them numba, before Batsim starts
    plain = "," not in given["policy"] and not any(is_given(context, name) for name in _CHANGES)
    if not plain or any(path.suffix != ".json" or not path.is_file() for path in given["workload"]):
        return None

    def command(executable: str, fresh: Path) -> list[str]:
        workloads = [_as_batsim_reads_it(path, fresh / f"w{i}.json") for i, path in enumerate(given["workload"])]
        return command_of_4(
            [executable],
            [("-p", given["platform"].absolute()), *(("-w", path.absolute()) for path in workloads)],
            fresh,
            verbosity=given["batsim_verbosity"].value,
            schedule_trace=given["schedule_trace"],
            switches=["-E"] if given["energy"] else [],
        )

    return context.with_resource(started_ahead(given["batsim"], given["output"], command))


def _as_batsim_reads_it(path: Path, changed: Path) -> Path:
    """The workload, or where it has records of what happened, `changed`, a file without these."""
    data = path.read_bytes()
    if not any(name in data for name in _RECORDS):
        return path
    from decision.files.batsim_json import without_trace

    changed.write_bytes(without_trace(data))
    return changed


@with_groups
def showcase_command(
    context: typer.Context,
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


# A running simulation in the terminal: clock, queue, host map, power.

_LOOKS = {  # colour, and a sign that does without it
    HostState.COMPUTING: ("blue", "■"),
    HostState.IDLE: ("yellow", "□"),
    HostState.SLEEPING: ("bright_black", "·"),
    HostState.SWITCHING_ON: ("red", "▲"),
    HostState.SWITCHING_OFF: ("magenta", "▼"),
    HostState.UNAVAILABLE: ("white", "x"),
}
_BARS = " ▁▂▃▄▅▆▇█"
_MOST_CELLS = 1024  # larger clusters: a cell is several hosts
_SILENT = 10.0  # seconds without an update after which a run seems dead


def frame(status: Status, queue: Sequence[int], width: int) -> RenderableType:
    """One picture of a run.

    Args:
        status: its progress.
        queue: how many jobs waited at the last updates, the latest last.
        width: columns of the terminal.
    """
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    for name, value in _facts(status):
        facts.add_row(name, value)
    room = max(16, width - 4)
    facts.add_row("queue", _sparkline(queue, room - 12))
    return Panel(Group(facts, Text(), _host_map(status.hosts, room), _legend(status.hosts)), title=_title(status))


def _title(status: Status) -> str:
    silent = time.time() - status.written
    return status.policy if silent < _SILENT else f"{status.policy}: no update for {silent:,.0f} s"


def _facts(status: Status) -> list[tuple[str, str]]:
    over = status.submitted - status.waiting - status.running
    power = "unknown" if status.watts is None else f"{status.watts / 1e3:,.2f} kW with busy hosts at full load"
    return [
        ("clock", _clock(status.now)),
        ("jobs", f"{status.submitted:,} of {status.jobs:,} submitted, {over:,} ended"),
        ("", f"{status.waiting:,} waiting, {status.running:,} running"),
        ("power", power),
    ]


def _clock(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}  ({seconds:,.0f} s)"


def _sparkline(values: Sequence[int], width: int) -> str:
    shown = values[-width:]
    top = max([1, *shown])
    return "".join(_BARS[-(-value * (len(_BARS) - 1) // top)] for value in shown)


def _host_map(hosts: str, width: int) -> Text:
    """A cell for each host, or for the state of most of several."""
    each = _hosts_in_a_cell(hosts)
    cells = [Counter(hosts[i : i + each]).most_common(1)[0][0] for i in range(0, len(hosts), each)]
    across = next((columns for columns in (64, 32, 16) if columns <= width), width)
    text = Text()
    for at, letter in enumerate(cells):
        if at and at % across == 0:
            text.append("\n")
        color, sign = _LOOKS[_state(letter)]
        text.append(sign, style=color)
    return text


def _hosts_in_a_cell(hosts: str) -> int:
    return -(-len(hosts) // _MOST_CELLS)


def _legend(hosts: str) -> Text:
    text = Text()
    for letter, count in sorted(Counter(hosts).items(), key=lambda item: -item[1]):
        state = _state(letter)
        color, sign = _LOOKS[state]
        text.append(f"{sign} ", style=color).append(f"{count:,} {state.name.lower().replace('_', ' ')}   ")
    if (each := _hosts_in_a_cell(hosts)) > 1:
        text.append(f"\na cell: the state of most of {each:,} hosts", style="dim")
    return text


def _state(letter: str) -> HostState:
    return HostState(HOST_LETTERS.index(letter))
