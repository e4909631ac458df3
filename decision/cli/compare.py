"""``decision compare``: policies x workloads x engines x runs, side by side."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .options import (
    DEFAULT_TIMEOUT,
    INPUT,
    EnergyOption,
    NodesOption,
    PlatformOption,
    PolicySettings,
    ProcessesOption,
    TimeoutOption,
    WalltimeName,
    WalltimeOption,
    read_settings,
)
from .run import Batsim

RUNS = "Runs"
DEFAULT_METRICS = ("bounded_slowdown", "wait", "utilization")


class ComparedEngine(StrEnum):
    """Who can simulate in a comparison."""

    EMBEDDED = "embedded"
    REFERENCE = "reference"
    BATSIM = "batsim"


Workloads = Annotated[
    list[Path],
    typer.Option(
        "--workload",
        "-w",
        help="Batsim's JSON, or .swf; repeated: one after the other, each compared by itself.",
        metavar="FILE",
        rich_help_panel=INPUT,
    ),
]
Policies = Annotated[
    list[str], typer.Option("--policy", help="As for decision run; repeated, what is compared.", metavar="POLICY")
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", help="The policy that the others must beat; the first if absent.", metavar="POLICY"),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", help="One of the names below; repeated.", metavar="METRIC", show_default="three of them"),
]
Engines = Annotated[
    list[ComparedEngine] | None,
    typer.Option("--engine", help="Who simulates; repeated, each of them.", show_default="embedded"),
]
Windows = Annotated[
    int,
    typer.Option(
        "--windows", help="So many random sequences of each workload's jobs; 0: all jobs.", min=0, rich_help_panel=RUNS
    ),
]
Length = Annotated[int, typer.Option("--length", help="Jobs in a sequence.", min=1, rich_help_panel=RUNS)]
Draw = Annotated[
    int, typer.Option("--draw", help="Seed of the sequences and of the bootstrap.", min=0, rich_help_panel=RUNS)
]
Seeds = Annotated[
    int,
    typer.Option(
        "--seeds", help="So many runs of each, for policies that draw at random.", min=1, rich_help_panel=RUNS
    ),
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for tables and finished runs.", metavar="FOLDER")]


def compare(
    platform: PlatformOption,
    workload: Workloads,
    policy: Policies,
    option: PolicySettings = None,
    baseline: Baseline = None,
    metric: Metrics = None,
    engine: Engines = None,
    batsim: Batsim = "batsim",
    energy: EnergyOption = False,
    nodes: NodesOption = None,
    walltime: WalltimeOption = WalltimeName.REQUESTED,
    windows: Windows = 0,
    length: Length = 1024,
    draw: Draw = 0,
    seeds: Seeds = 1,
    jobs: ProcessesOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    output: Output = Path("out/compare"),
) -> None:
    """Compare policies over workloads, random sequences, seeds and engines.

    Runs side by side. A finished run is kept in FOLDER/runs and not run again:
    the same command goes on after Ctrl-C, and with more sequences or policies
    only runs what is new. Prints, for each metric, the interquartile mean of
    the runs and the probability of beating the baseline, with 95 % bootstrap
    intervals; writes FOLDER/comparison.csv, .md, .json, runs.csv and report.html,
    one page with pictures, tables and how it was run; it needs no network.

    Metrics: bounded_slowdown, slowdown, per_processor_slowdown, wait, max_wait,
    turnaround, makespan, end, utilization, queue_length, job_load, throughput,
    fairness, hops, rejected; with --energy also energy, idle_energy,
    switching_energy, energy_waste, switches.

    Examples:

      decision compare -p cluster.xml -w log.swf --policy easy \\
          --policy sjf+easy --windows 100 --length 1024

      decision compare -p platforms/taurus.xml -w a.json -w b.json -E \\
          --policy easy --policy easy,power=idle-timeout,idle_timeout=300 \\
          --metric energy_waste --metric wait
    """
    from decision.analysis.comparison import compare as boil_down
    from decision.analysis.comparison_files import write_comparison
    from decision.analysis.measures import find_metric
    from decision.cores import available_cores
    from decision.drivers.comparing import run_comparison
    from decision.drivers.comparison_plan import Plan, describe_setup, find_baseline, read_workloads
    from decision.drivers.inputs import SwfOptions

    from .progress import announce_compilation, counting
    from .tables import print_comparison, print_dropped
    from .terminal import stdout

    plan = Plan(
        platform=platform,
        workloads=tuple(dict.fromkeys(workload)),
        policies=tuple(dict.fromkeys(policy)),
        settings=read_settings(option),
        engines=tuple(name.value for name in dict.fromkeys(engine or [ComparedEngine.EMBEDDED])),
        batsim=batsim,
        energy=energy,
        swf=SwfOptions(nodes=nodes, walltime=walltime.value),
        windows=windows,
        length=length,
        draw=draw,
        seeds=seeds,
        timeout=timeout,
    )
    metrics = [find_metric(name) for name in dict.fromkeys(metric or DEFAULT_METRICS)]
    against = find_baseline(plan, baseline)
    logs = read_workloads(plan)
    print_dropped(logs)
    announce_compilation()
    with counting("runs") as show:
        outcomes = run_comparison(plan, output, processes=jobs or available_cores(), progress=show)
    comparison = boil_down(outcomes, metrics, against, seed=draw, setup=describe_setup(plan, logs))
    print_comparison(comparison)
    write_comparison(output, comparison)
    stdout().print(f"comparison.csv, .md, .json and runs.csv are in {output}", highlight=False, soft_wrap=True)
    _report(output)


def _report(folder: Path) -> None:
    """Write the page, or say why there is none: the comparison itself needs no pictures."""
    from decision.analysis.extras import require_matplotlib
    from decision.model.errors import ConfigError

    from .progress import working
    from .terminal import stderr, stdout

    try:
        require_matplotlib()
    except ConfigError as error:
        stderr().print(f"no report.html: {error}", highlight=False, soft_wrap=True)
        return
    from decision.analysis.comparison_report import write_comparison_report

    with working("drawing"):
        report = write_comparison_report(folder)
    stdout().print(f"pictures, tables and how it was run: {report}", highlight=False, soft_wrap=True)
