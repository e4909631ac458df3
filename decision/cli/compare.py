"""``decision compare``: policies x workloads x engines x runs, side by side; ``advise``: which policy suits a log."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from decision.experiments import Engine
from decision.model.computer import find_platform
from decision.model.errors import ConfigError
from decision.model.table import Table

from .command import Chosen, Drawing, is_given, read_config, refuse_unused, typed_command
from .declared import Option
from .options import (
    DEFAULT_DECIDE_LIMIT,
    DEFAULT_TIMEOUT,
    BatsimOption,
    DaysOption,
    DecideLimitOption,
    EnergyOption,
    EventsOption,
    FeedbackOption,
    JsonOption,
    OutputFolder,
    PdfOption,
    PlatformOption,
    SelectOption,
    SettingsOption,
    ShakeOption,
    Spread,
    TimeFieldOption,
    TimeoutOption,
    TimeZoneOption,
    WorkloadOption,
    WorkloadsOption,
    read_days,
    read_pairs,
)

if TYPE_CHECKING:
    from decision.experiments.advise import Advice
    from decision.experiments.compare import PredictionsWorth
    from decision.experiments.comparison import PolicyComparison
    from decision.experiments.plan import ComparisonPlan
    from decision.experiments.statistics import Estimate
    from decision.model.workload import Workload

# Options of ``decision compare`` alone: what is compared, and the runs of each.

_runs_option = partial(Option, panel="Runs")

Policies = Annotated[
    list[str],
    Option(
        "--policy",
        help="Policy to compare, as for decision run; recorded: what really happened; heuristics: every order and "
        "backfilling, with and without a bound on waiting; shipped: what the package learned. May be repeated.",
        metavar="POLICY",
    ),
]
Baseline = Annotated[
    str | None,
    Option("--baseline", help="Policy that the others are compared with; the first if absent.", metavar="POLICY"),
]
Metrics = Annotated[
    list[str] | None,
    Option(
        "--metric",
        help="Metric that [bold]decision -v compare --help[/bold] names, or a function of your own, ./mine.py:f; may "
        "be repeated.",
        metavar="METRIC",
        show_default="the first eight; of whole workloads all of them but utilization",
    ),
]
Engines = Annotated[
    list[Engine] | None, Option("--engine", help="Simulator, all but docker; may be repeated.", show_default="embedded")
]
Windows = Annotated[int, _runs_option("--windows", help="Number of random sequences of each workload's jobs.", min=0)]
Whole = Annotated[bool, _runs_option("--whole", help="Run each workload once, as it is, and count all jobs.")]
Length = Annotated[int, _runs_option("--length", help="Jobs in a sequence.", min=1)]
Draw = Annotated[int, _runs_option("--draw", help="Random seed of the sequences and the bootstrap.", min=0)]
Seeds = Annotated[
    int, _runs_option("--seeds", help="Number of policy seeds, for policies that use random numbers.", min=1)
]
PlotRows = Annotated[
    bool, Option("--plot", help="Also write the report's pictures to FOLDER, one file per metric and workload.")
]

WorthOption = Annotated[
    bool,
    _runs_option(
        "--worth",
        help="Compare each policy with itself by walltimes and by perfect predictions, too; writes FOLDER/worth.csv.",
    ),
]

Config = Annotated[
    Path | None,
    Option(
        "--config",
        help="TOML file with options: their long names without dashes, and values, lists where they may be repeated. "
        "What is typed goes first.",
        metavar="FILE",
        callback=read_config,
        is_eager=True,
    ),
]


def compare_command(
    context: click.Context,
    platform: PlatformOption,
    workload: WorkloadsOption,
    policy: Policies,
    config: Config = None,
    settings: SettingsOption = None,
    baseline: Baseline = None,
    metrics: Metrics = None,
    engine: Engines = None,
    batsim: BatsimOption = "batsim",
    energy: EnergyOption = False,
    events: EventsOption = None,
    *,
    chosen: Chosen,
    days: DaysOption = None,
    feedback: FeedbackOption = False,
    whole: Whole = False,
    worth: WorthOption = False,
    shake: ShakeOption = 10,
    windows: Windows = 0,
    length: Length = 1024,
    draw: Draw = 0,
    seeds: Seeds = 1,
    plot: PlotRows = False,
    drawing: Drawing,
    pdf: PdfOption = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
    decide_limit: DecideLimitOption = DEFAULT_DECIDE_LIMIT,
    output: OutputFolder = Path("out/compare"),
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Compare policies over whole workloads, or parts of them.

    Each workload is compared separately; runs are parallel. Finished runs are
    cached in FOLDER/runs: the same command resumes after Ctrl-C, and with more
    copies, sequences or policies only the new runs are made.

    Each policy runs the whole workload on ten copies whose submissions are
    shaken by up to a minute (--shake). Jobs of a warm-up and of a cool-down do
    not count. Prints, for each metric, the mean over copies and the change
    against the baseline, with 95 % confidence intervals from blocks of weeks (or
    days) and copies together. With --feedback or --whole each workload is run
    once, as it is: one run has no interval.

    With --windows random sequences of jobs are run in place of the whole, each
    from an empty machine; for each metric there are the interquartile mean and
    the probability of improvement over the baseline. Sequences that share jobs
    count together in the intervals. A long wait cannot show in a short sequence.

    With --days each day of the workload is a run of its own: it begins an hour
    before midnight, so that idle servers sleep by then, and its energy is
    counted from midnight until the last server is off.

    Writes FOLDER/comparison.csv, .md, .json, runs.csv and report.html, a page
    with pictures, tables and the setup that works without a network.

    Metrics: bounded_slowdown, wait, p95_wait, p99_wait, max_wait, late_starts,
    arrival_utilization, utilization, slowdown, per_processor_slowdown,
    turnaround, makespan, end, queue_length, job_load, throughput, fairness,
    hops, stretch, wait_over_walltime, rejected, prediction_error, underpredicted,
    corrections, broken, lost_work, value, value_share, violations, grid; with --energy also
    energy, idle_energy, switching_energy, energy_waste, waste_bound,
    switches, carbon, cost, peak_power.

    Examples:

      decision compare -p cluster.xml -w log.swf --policy easy \\
          --policy sjf+easy

      decision compare -p cluster.xml -w log.swf --policy easy \\
          --policy sjf+easy --windows 100 --length 1024

      decision compare -p platforms/taurus.xml -w a.json -w b.json -E \\
          --policy easy --policy easy,power=idle-timeout,idle_timeout=300 \\
          --metric energy_waste --metric wait

      decision compare -p orion.xml -w days.json -E --days 0:300 \\
          --policy first-fit,start=bound,power=idle-timeout \\
          --policy saf+first-fit,start=bound,power=idle-timeout,allocation=pack \\
          --metric energy_waste --metric switches --metric wait

      decision compare --config study.toml, a file like

        platform = "taurus"
        workload = ["a.json", "b.json"]
        policy = ["easy", "saf+easy"]
        windows = 50
    """
    from decision.experiments.advise import expanded
    from decision.experiments.compare import describe_setup, judge_plan, read_workloads, run_comparison
    from decision.experiments.metric_list import find_metric
    from decision.experiments.own_metrics import own_metric
    from decision.experiments.plan import ComparisonPlan, find_baseline
    from decision.files import load_platform
    from decision.policies.registry import named_policies

    from .tables import print_json, print_logs, warn_of_seen_jobs
    from .terminal import announce_compilation, counting, printed

    engines = tuple(dict.fromkeys(engine or [Engine.EMBEDDED]))
    by_copies = not (whole or windows or feedback or days is not None)
    _refuse_what_does_nothing(context, Engine.BATSIM in engines, whole, windows > 0, days is not None, by_copies)
    called = named_policies(expanded(policy))
    own = {name: own_metric(name) for name in dict.fromkeys(metrics or ()) if ":" in name}
    wanted = [find_metric(own[name].name if name in own else name) for name in dict.fromkeys(metrics or ())]
    plan = ComparisonPlan(
        platform=platform,
        workloads=tuple(dict.fromkeys(workload)),
        policies=tuple(called),
        specs={name: spec for name, spec in called.items() if name != spec},
        settings=read_pairs(settings),
        engines=engines,
        batsim=batsim,
        energy=energy,
        events=tuple(events or ()),
        selection=chosen.read(),
        feedback=feedback,
        shake=shake if by_copies else 0,
        windows=windows,
        length=length,
        draw=draw,
        days=read_days(days),
        seeds=seeds,
        timeout=timeout,
        decide_limit=decide_limit,
        worth=worth,
        own_metrics=tuple(own.values()),
    )
    against = find_baseline(plan, baseline)
    logs = read_workloads(plan)
    print_logs(load_platform(platform, energy=energy), logs, called.values())
    warn_of_seen_jobs(called.values(), logs)
    announce_compilation()
    with counting("runs") as show, spread.begun() as how:
        outcomes = run_comparison(plan, output, progress=show, **how)
    setup = describe_setup(plan, logs, typed_command(context))
    asked = [name for name, spec in called.items() if spec in policy]
    named = [*asked, *(plan.policies if engines[1:] or worth else ())]
    comparison = judge_plan(plan, outcomes, logs, against, metrics=wanted, named=named, setup=setup)
    rows = _worth_of_predictions(plan, comparison, output) if worth else []
    _note_limits(plan, comparison, logs, output)
    with drawing.begun():
        report = _write(output, comparison, plot or is_given(context, "suffix"))
        paper = printed(report, pdf)
    if as_json:
        print_json(comparison)
    else:
        _print(comparison, rows, output, report, paper)


def _print(
    comparison: "PolicyComparison",
    rows: "list[PredictionsWorth]",
    output: Path,
    report: Path | None,
    paper: Path | None,
) -> None:
    """The tables of a comparison, and where its files are."""
    from .tables import print_comparison, print_worth
    from .terminal import say

    print_comparison(comparison)
    print_worth(rows)
    say(f"comparison.csv, .md, .json and runs.csv are in {output}")
    if report is not None:
        say(f"report with pictures, tables and setup: {report}" + (f", printed: {paper}" if paper else ""))


def _worth_of_predictions(
    plan: "ComparisonPlan", comparison: "PolicyComparison", output: Path
) -> "list[PredictionsWorth]":
    """What predicted run times are worth, written to ``worth.csv``."""
    from decision.experiments.compare import worth_of_predictions, write_worth

    rows = worth_of_predictions(plan, comparison)
    write_worth(output / "worth.csv", rows)
    return rows


def _note_limits(plan: "ComparisonPlan", comparison: "PolicyComparison", logs: "list[Workload]", output: Path) -> None:
    """Say what these runs cannot show."""
    from decision.experiments.compare import beside_whole
    from decision.report.comparison import too_few_blocks

    from .terminal import note

    if text := too_few_blocks(comparison):
        note(f"warning: {text}")
    if plan.windows:
        note(beside_whole(plan, comparison, logs, output))


def _write(output: Path, comparison: "PolicyComparison", pictures: bool) -> Path | None:
    """Write the files of a comparison, and its page; or say why there is none, for which pictures are needed."""
    from decision.report.comparison import write_comparison

    from .terminal import can_draw, working

    write_comparison(output, comparison)
    if not can_draw("no report.html"):
        return None
    from decision.report.pages import write_comparison_pictures, write_comparison_report

    with working("drawing"):
        if pictures:
            write_comparison_pictures(output)
        return write_comparison_report(output)


def _refuse_what_does_nothing(
    context: click.Context, in_batsim: bool, whole: bool, in_windows: bool, by_day: bool, by_copies: bool
) -> None:
    """Refuse options that the others make useless."""
    refuse_unused(context, dict.fromkeys(("batsim", "timeout"), in_batsim), "it needs --engine batsim")
    refuse_unused(context, {"windows": not whole}, "--whole runs each workload once")
    refuse_unused(context, {"windows": not by_day, "whole": not by_day}, "--days runs each day alone")
    refuse_unused(context, {"length": in_windows}, "it needs --windows")
    refuse_unused(context, {"shake": by_copies}, "it is for whole workloads, without --whole and --feedback")


# ``decision advise``: which policy suits a log.

Platform = Annotated[
    Path | None,
    Option(
        "--platform",
        "-p",
        help="SimGrid platform (XML), or a shipped platform's name.",
        metavar="FILE",
        parser=find_platform,
    ),
]
Hosts = Annotated[
    int | None,
    Option("--hosts", help="Hosts of a flat machine, in place of a platform; as many as the log says.", min=1),
]
AdvisedBaseline = Annotated[str, Option("--baseline", help="What you run now.", metavar="POLICY")]
LongestWait = Annotated[
    float, Option("--longest-wait", help="The longest wait may be so many times the baseline's.", min=1.0)
]
Weight = Annotated[
    str,
    Option(
        "--weight", help="What is to become less; slowdown decides where waits are near.", metavar="wait=W,slowdown=S"
    ),
]
Metric = Annotated[list[str] | None, Option("--metric", help="Metric in the table; may be repeated.", metavar="METRIC")]
More = Annotated[
    list[str] | None,
    Option(
        "--policy",
        help="One more policy to try; may be repeated. Those of heuristics and shipped are tried anyway.",
        metavar="POLICY",
    ),
]


def advise_command(
    context: click.Context,
    workload: WorkloadOption,
    platform: Platform = None,
    hosts: Hosts = None,
    baseline: AdvisedBaseline = "easy",
    longest_wait: LongestWait = 1.5,
    weight: Weight = "wait=1,slowdown=1",
    metrics: Metric = None,
    policy: More = None,
    jobs: SelectOption = None,
    time_field: TimeFieldOption = None,
    time_zone: TimeZoneOption = None,
    shake: ShakeOption = 10,
    *,
    output: OutputFolder = Path("out/advise"),
    pdf: PdfOption = False,
    spread: Spread,
    as_json: JsonOption = False,
) -> None:
    """Say which policy suits a log.

    Runs every heuristic, with and without a bound on waiting, and what the
    package learned, over the whole log; the best of those that keep the longest
    wait within --longest-wait times the baseline's on ten copies whose
    submissions are shaken by up to a minute. The best waits least in the mean;
    among those that wait up to 3 % longer (times the weight of slowdown over
    that of wait) it has the least of both. Prints one sentence, at most eight
    rows, and what this log cannot say. FOLDER/advice.html is a page
    with four pictures, FOLDER/advice.json what --json prints. Finished runs are
    kept in FOLDER/runs: with one more --policy only its runs are new.

    Metrics: wait, bounded_slowdown, p95_wait, p99_wait, max_wait, late_starts,
    arrival_utilization.

    Examples:

      decision advise -w log.swf

      decision advise -w log.swf.gz --hosts 256 --longest-wait 1.2

      decision advise -w log.swf -p cluster.xml --weight wait=1,slowdown=0 --policy sjf+easy
    """
    import msgspec

    from decision.experiments.advise import METRIC_NAMES, Wish, advice_heading, find_advice, load_of, overload_text
    from decision.experiments.metric_list import RENAMED
    from decision.experiments.whole import Log
    from decision.files.text import json_bytes, write_files

    from .tables import print_json, print_table
    from .terminal import announce_compilation, can_draw, counting, note, printed, say

    if platform is not None and hosts is not None:
        raise ConfigError("give a platform or a number of hosts, not both", field="hosts")
    log = Log(
        workload=workload,
        platform=platform,
        hosts=hosts or 0,
        selection=Chosen(jobs=jobs, time_field=time_field, time_zone=time_zone, missing_walltime="runtime").read(),
    )
    wish = Wish(
        baseline=baseline,
        longest_wait=longest_wait,
        weights={name: _number(value) for name, value in read_pairs(weight.split(","), "--weight").items()},
        policies=tuple(dict.fromkeys(policy or ())),
        copies=shake,
        metrics=tuple(dict.fromkeys(RENAMED.get(name, name) for name in metrics or METRIC_NAMES)),
    )
    if overload := overload_text(load_of(log.read())):
        note(overload)  # now: a queue that never ends takes hours
    announce_compilation()
    with counting("runs") as show, spread.begun() as how:
        advice = find_advice(log, wish, output, progress=lambda _: show, **how)
    header, rows = advice_table(advice, wish.metrics)
    text = msgspec.json.format(json_bytes(as_data(advice)), indent=2)
    write_files({output / "advice.json": [text, b"\n"]})
    page = None
    if can_draw("no advice.html"):
        from decision.report.answers import write_advice_page

        standings = [row[-1] for row in rows]
        page = write_advice_page(
            output, advice, advice_heading(advice), wish.metrics, standings, typed_command(context)
        )
    paper = printed(page, pdf)
    if as_json:
        print_json(as_data(advice))
        return
    say(advice.sentence)
    say(_about(advice.log))
    print_table(Table("", [header[0], *(f">{name}" for name in header[1:])], rows))
    say("What this log cannot say:\n" + "\n".join(f"- {line}" for line in advice.cannot))
    if lines := [f"- {text}" for text in (*(each.text() for each in advice.not_simulated), advice.better) if text]:
        say("What it says and is not simulated:\n" + "\n".join(lines))
    if page is not None:
        say(f"page with pictures: {page}" + (f", printed: {paper}" if paper else ""))


def as_data(advice: "Advice") -> dict[str, Any]:
    """The advice as ``--json`` prints it."""
    from msgspec import to_builtins

    return {
        "policy": advice.policy,
        "baseline": advice.baseline,
        "change": _estimates(advice.change),
        "rows": [
            {
                "policy": row.policy,
                **_estimates(row.metrics),
                "change": _estimates(row.change),
                "longest_wait": row.longest_wait,
                "keeps_bound": row.keeps_bound,
            }
            for row in advice.rows
        ],
        "cannot": advice.cannot,
        "not_simulated": [to_builtins(each) for each in advice.not_simulated],
        "better": advice.better,
        "sentence": advice.sentence,
        "log": advice.log,
        "payers": advice.payers,
    }


def _estimates(found: "dict[str, Estimate]") -> dict[str, Any]:
    return {name: {"estimate": each.value, "interval": [each.low, each.high]} for name, each in found.items()}


def advice_table(advice: "Advice", metrics: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each metric without the digits that are noise, and the longest wait against the baseline's."""
    from decision.experiments.comparison import rounded
    from decision.experiments.metric_list import METRICS

    units = [f"{name}\n{METRICS[name].unit}".rstrip() for name in metrics]
    rows = []
    for row in advice.rows:
        texts = (rounded(row.metrics[name])[0] if name in row.metrics else "-" for name in metrics)
        longest = max(row.longest_wait)
        bound = "above" if longest > advice.pictures["bound"] else "perhaps above"
        standing = "advised" if row.policy == advice.policy else "" if row.keeps_bound else bound
        rows.append([row.policy, *texts, f"{longest:.2f}", standing])
    return ["policy", *units, "longest wait,\ntimes at most", ""], rows


def _about(log: dict[str, Any]) -> str:
    """The log, and which of its jobs count."""
    from decision.experiments.whole import duration

    left_out = f"; left out: {log['left_out']}" if log["left_out"] else ""
    return (
        f"{log['jobs']:,} jobs in {duration(86_400 * log['days'])} on {log['machine']}, load {log['load']:.2f}"
        f"{left_out}. Submissions move by up to {log['shake']:.3g} s; {log['counted']}."
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"weight: {text!r} is not a number; write wait=1,slowdown=1", field="weight") from None
