"""``decision report``: finished runs, running ones, trainings and checkpoints."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from decision.model.errors import ConfigError

from .command import Drawing, Group, add_command, typed_command
from .declared import Argument, Option
from .options import JsonOption, OutputFile, OutputFolder, PdfOption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, RenderableType

    from decision.files.outputs_read import Status
    from decision.files.text import InputFacts
    from decision.rl.learning.checkpoint import Manifest

_PERIOD = 0.25  # seconds between two looks


Runs = Annotated[
    list[Path],
    Argument(
        help="Folder or file prefix of a run, or folder of a training; a folder of folders includes all of them.",
        metavar="RUN",
    ),
]
PowerPlatform = Annotated[
    Path | None, Option("--platform", "-p", help="Platform, to split power by host state.", metavar="FILE")
]
RunFolder = Annotated[Path, Argument(help="Output folder of a run.", metavar="FOLDER")]
Live = Annotated[bool, Option("--live", help="Update until the run ends.")]
Checkpoint = Annotated[Path, Argument(help="Checkpoint made by decision train.", metavar="CKPT")]


def analyse_command(
    context: click.Context,
    runs: Runs,
    platform: PowerPlatform = None,
    output: OutputFolder = Path("report"),
    *,
    drawing: Drawing,
    pdf: PdfOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw runs or trainings side by side, as pictures and one page.

    Reads the output files of decision run, decision showcase or Batsim (3 to 5).
    Writes pictures and report.html, one file with all of them, a table, and
    Gantt charts with zoom; the page works without a network.

    For folders of decision train it draws the learning curves: three or more
    trainings that differ only in their seed as their mean and a band from the
    lowest to the highest, others as one line each.

    Examples:

      decision report analyse out

      decision report analyse out/easy out/fcfs -p platforms/taurus.xml

      decision report analyse learned/seed0 learned/seed1 learned/seed2
    """
    from decision.experiments.audit import standing_of_tables
    from decision.experiments.inputs import writable_folder
    from decision.experiments.results import load_runs, load_trainings
    from decision.files import load_platform
    from decision.report.plots import require_matplotlib
    from decision.rl.learning.checkpoint import kind_of

    from .tables import count, print_json, print_summaries, summary_rows
    from .terminal import printed, say, working

    require_matplotlib()
    from decision.experiments.results import summaries_of
    from decision.report.pages import analyse, split

    with working("drawing"), drawing.begun():
        hosts = None if platform is None else load_platform(platform, energy=True)
        places, folders = split(runs)
        found, learned = load_runs(places), load_trainings(folders, kind_of)
        for run in found:
            if hosts is not None and run.record.nb_hosts > len(hosts.hosts):
                has = f"has {len(hosts.hosts)} hosts, and {run.name} used a platform of {run.record.nb_hosts}"
                raise ConfigError(f"{hosts.path}: {has}; give the platform of the run", field="platform")
        files = analyse(found, learned, writable_folder(output), hosts, typed_command(context))
    paper = printed(files[-1], pdf)
    tables = {run.name: run.record.jobs for run in found}
    beside = standing_of_tables(tables, found[0].record.nb_hosts, "these runs") if found else None
    if as_json:
        listed = {"recorded": [beside]} if beside else {}
        made = [*files, paper] if paper else files
        print_json({"runs": summary_rows(summaries_of(found, hosts)), "files": made, **listed})
        return
    if found:
        print_summaries(summaries_of(found, hosts), beside)
    say(f"{files[-1]} and {count(len(files) - 1, 'picture')} in the same folder")
    if paper:
        say(f"printed: {paper}")


def evalys_command(
    runs: Runs, output: OutputFolder = Path("evalys"), *, drawing: Drawing, as_json: JsonOption = False
) -> None:
    """Draw runs with evalys 4.0.7: its own pictures, as its users know them.

    Of each run the Gantt chart, series (busy and wanted hosts), details (with
    the life of each job), fragmentation, and with energy the states of hosts;
    of several also one Gantt chart over the other. Needs the extra evalys,
    and takes minutes for ten thousand jobs. decision report analyse needs
    neither, and puts runs side by side.

    Examples:

      decision report evalys out

      decision report evalys out/easy out/fcfs -o out/evalys --format pdf
    """
    from decision.experiments.inputs import writable_folder
    from decision.experiments.results import records_of
    from decision.report.evalys import draw_pictures, require_evalys, to_evalys

    from .tables import count, print_json
    from .terminal import say, working

    require_evalys()
    with working("drawing"), drawing.begun():
        found = {name: to_evalys(record) for name, record in records_of(runs).items()}
        files = draw_pictures(found, writable_folder(output))
    if as_json:
        print_json({"files": files})
    else:
        say(f"{count(len(files), 'picture')} by evalys in {output}")


def export_command(
    folder: Annotated[
        Path, Argument(help="Output folder of decision compare, evaluate or reproduce.", metavar="FOLDER")
    ],
    output: OutputFile,
) -> None:
    """Write the results of all runs of a campaign as one table.

    A row for each run, in order of its key: what defines the run, on which host
    it was done, and what was found. FILE.csv, or with pyarrow FILE.parquet.

    Example:

      decision report export out/compare -o runs.parquet
    """
    from decision.experiments.store import export_runs

    from .tables import count
    from .terminal import say

    say(f"{count(export_runs(folder, output), 'run')} in {output}")


def view_command(folder: RunFolder, live: Live = False, as_json: JsonOption = False) -> None:
    """Show the progress of a run: clock, queue, host map, power.

    Reads the output folder (-o) of decision run, from another terminal. For
    finished runs, prints the summary.

    Examples:

      decision report view out

      decision report view out --live
    """
    from decision.experiments.results import load_runs, summaries_of
    from decision.files.outputs_read import is_locked, read_status

    from .tables import print_json, print_summaries, summary_rows
    from .terminal import PAGE, stderr, stdout

    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; give the output folder (-o) of decision run")
    if live:
        _watch(folder, stderr() if as_json else stdout())
    status = read_status(folder) if is_locked(folder) else None
    if status is None:
        summaries = summaries_of(load_runs([folder]))
        if as_json:
            print_json({"runs": summary_rows(summaries)})
        else:
            print_summaries(summaries)
    elif as_json:
        print_json({"status": status})
    else:
        console = stdout()
        width = console.width if console.is_terminal else min(console.width, PAGE)
        console.print(frame(status, [status.waiting], width), width=width)


def show_checkpoint_command(checkpoint: Checkpoint, as_json: JsonOption = False) -> None:
    """Show what a checkpoint was learned from, how, and for how many steps.

    Example:

      decision report show learned/dbf.ckpt

      decision report show dbf
    """
    from decision.rl.learning import existing_checkpoint
    from decision.rl.learning.checkpoint import read_manifest

    from .tables import print_json

    manifest = read_manifest(existing_checkpoint(str(checkpoint)))
    if as_json:
        print_json(manifest)
    else:
        print_manifest(manifest)


def print_manifest(manifest: "Manifest") -> None:
    """Print a checkpoint's manifest, one line per fact."""
    from msgspec import to_builtins

    from .tables import number, print_facts

    def input_text(facts: "InputFacts") -> str:
        return f"{facts.name}, sha256 {facts.sha256[:16]}" if facts.sha256 else facts.name

    def listed(values: "Mapping[str, Any]") -> str:
        texts = {name: f"{each:.6g}" if isinstance(each, float) else str(each) for name, each in values.items()}
        return ", ".join(f"{name} {text}" for name, text in texts.items())

    config, facts = manifest.config, list[tuple[str, str]]()
    facts.append(("scheduler", config.scheduler))
    facts.append(
        ("algorithm", f"{manifest.algorithm}, {manifest.steps:,} of {config.steps:,} steps, seed {config.seed}")
    )
    facts.append(("made by", f"decision {manifest.decision}, checkpoint format {manifest.format}"))
    facts.append(("encoder", listed(manifest.encoder)))
    facts.append(("platform", f"{input_text(manifest.platform)}, {manifest.nb_hosts} hosts"))
    for workload in manifest.workloads:
        facts.append(("workload", input_text(workload)))
    if manifest.selection is not None:
        for name, text in manifest.selection.texts().items():
            facts.append((name.replace("_", " "), text))
    facts.append(("env", listed(config.settings)))
    for section in config.sections:
        facts.append((section, listed(to_builtins(getattr(config, section)))))
    if manifest.scores:
        facts.append(("last episodes", ", ".join(f"{name} {number(value)}" for name, value in manifest.scores.items())))
    print_facts(facts)


def _watch(folder: Path, console: "Console") -> None:
    """Show the run until it ends; waits for one where none has begun."""
    import time

    from rich.live import Live as Screen

    from decision.files.outputs_read import is_locked, read_status

    from .terminal import note

    if not _has_begun(folder):
        note(f"waiting for a run in {folder}; Ctrl-C ends it")
    queue: list[int] = []
    with Screen(f"waiting for a run in {folder}", console=console, transient=True, auto_refresh=False) as screen:
        while is_locked(folder) or not _has_begun(folder):
            if (status := read_status(folder)) is not None:
                queue.append(status.waiting)
                screen.update(frame(status, queue, console.width), refresh=True)
            time.sleep(_PERIOD)


# One picture of a running simulation: clock, queue, host map, power.

_LOOKS = {  # by letter of a status: colour, a sign that does without it, and what it says
    "C": ("blue", "■", "computing"),
    "I": ("yellow", "□", "idle"),
    "S": ("bright_black", "·", "sleeping"),
    "N": ("red", "▲", "switching on"),
    "F": ("magenta", "▼", "switching off"),
    "U": ("white", "x", "unavailable"),
}
_BARS = " ▁▂▃▄▅▆▇█"
_MOST_CELLS = 1024  # larger clusters: a cell is several hosts
_SILENT = 10.0  # seconds without an update after which a run seems dead


def frame(status: "Status", queue: "Sequence[int]", width: int) -> "RenderableType":
    """One picture of a run.

    Args:
        status: its progress.
        queue: how many jobs waited at the last updates, the latest last.
        width: columns of the terminal.
    """
    import time
    from collections import Counter

    from rich.console import Group as Rows
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    days, rest = divmod(int(status.now), 86_400)
    clock = f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    over = status.submitted - status.waiting - status.running
    facts.add_row("clock", f"{clock}  ({status.now:,.0f} s)")
    facts.add_row("jobs", f"{status.submitted:,} of {status.jobs:,} submitted, {over:,} ended")
    facts.add_row("", f"{status.waiting:,} waiting, {status.running:,} running")
    power = "unknown" if status.watts is None else f"{status.watts / 1e3:,.2f} kW with busy hosts at full load"
    facts.add_row("power", power)
    room = max(16, width - 4)
    shown = queue[12 - room :]
    top = max([1, *shown])
    facts.add_row("queue", "".join(_BARS[-(-value * (len(_BARS) - 1) // top)] for value in shown))
    silent = time.time() - status.written
    title = status.policy if silent < _SILENT else f"{status.policy}: no update for {silent:,.0f} s"
    # A cell for each host, or for the state of most of several; and what the signs say.
    each = -(-len(status.hosts) // _MOST_CELLS)
    cells = [Counter(status.hosts[i : i + each]).most_common(1)[0][0] for i in range(0, len(status.hosts), each)]
    across = next((columns for columns in (64, 32, 16) if columns <= room), room)
    text, legend = Text(), Text()
    for at, letter in enumerate(cells):
        if at and at % across == 0:
            text.append("\n")
        color, sign, _ = _LOOKS[letter]
        text.append(sign, style=color)
    for letter, number in sorted(Counter(status.hosts).items(), key=lambda item: -item[1]):
        color, sign, state = _LOOKS[letter]
        legend.append(f"{sign} ", style=color).append(f"{number:,} {state}   ")
    if each > 1:
        legend.append(f"\na cell: the state of most of {each:,} hosts", style="dim")
    return Panel(Rows(facts, Text(), text, legend), title=title)


def _has_begun(folder: Path) -> bool:
    from decision.files.outputs_read import RUN

    return any(folder.glob("*jobs.csv")) or (folder / RUN).exists()


app = Group("report", no_args_is_help=True, help="Draw and show runs, trainings and checkpoints.")
add_command(app, "analyse", analyse_command)
add_command(app, "evalys", evalys_command)
add_command(app, "export", export_command)
add_command(app, "view", view_command)
add_command(app, "show", show_checkpoint_command)
