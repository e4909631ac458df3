"""``decision advise``: which policy suits a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from decision.model.computer import find_platform
from decision.model.errors import ConfigError

from .command import Chosen, typed_command
from .declared import Option
from .options import (
    JsonOption,
    OutputFolder,
    PdfOption,
    SelectOption,
    ShakeOption,
    Spread,
    TimeFieldOption,
    TimeZoneOption,
    WorkloadOption,
    read_pairs,
)

if TYPE_CHECKING:
    from decision.experiments.advise import Advice, AdviceRow
    from decision.experiments.statistics import Estimate

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
Baseline = Annotated[str, Option("--baseline", help="What you run now.", metavar="POLICY")]
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
    baseline: Baseline = "easy",
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
    from decision.experiments.advise import METRIC_NAMES, Wish, advice_heading, find_advice, load_of, overload_text
    from decision.experiments.metric_list import RENAMED
    from decision.experiments.whole import Log

    from .tables import print_json, simple_table
    from .terminal import announce_compilation, can_draw, counting, note, printed, say, stdout

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
    _write(output, advice)
    page = None
    if can_draw("no advice.html"):
        from decision.report.advice import write_advice_page

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
    table = simple_table(header[0], *(f">{name}" for name in header[1:]))
    for row in rows:
        table.add_row(*row)
    stdout().print(table)
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
    rows = [
        [
            row.policy,
            *(rounded(row.metrics[name])[0] if name in row.metrics else "-" for name in metrics),
            f"{max(row.longest_wait):.2f}",
            "advised" if row.policy == advice.policy else _standing(row, advice.pictures["bound"]),
        ]
        for row in advice.rows
    ]
    return ["policy", *units, "longest wait,\ntimes at most", ""], rows


def _standing(row: "AdviceRow", bound: float) -> str:
    """Whether a policy keeps the bound on its longest wait."""
    if row.keeps_bound:
        return ""
    return "above" if max(row.longest_wait) > bound else "perhaps above"


def _about(log: dict[str, Any]) -> str:
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


def _write(folder: Path, advice: "Advice") -> None:
    import msgspec

    from decision.files.text import json_bytes, write_files

    text = msgspec.json.format(json_bytes(as_data(advice)), indent=2)
    write_files({folder / "advice.json": [text, b"\n"]})
