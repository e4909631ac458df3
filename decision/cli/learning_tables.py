"""What the commands about learning print: tables, or data in their place."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from decision.files.text import InputFacts
from decision.rl.learning.checkpoint import GateCheck, Manifest

from .tables import FittedTable, number, print_by_policy, simple_table
from .terminal import stdout

if TYPE_CHECKING:
    from decision.experiments.comparison import EpisodeMeans
    from decision.experiments.statistics import Estimate


_USUAL = (  # metric, header, scale, whether with its interval
    ("waiting_time", "wait\ns", 1.0, True),
    ("bounded_slowdown", "bounded\nslowdown", 1.0, True),
    ("queue_length", "queue\njobs", 1.0, False),
    ("utilization", "util.\n%", 100.0, False),
    ("job_load", "job load\nMcore s", 1e-6, False),
)
_TAIL = (
    ("p95_wait", "p95 wait\ns", 1.0, False),
    ("p99_wait", "p99 wait\ns", 1.0, False),
    ("max_wait", "max wait\ns", 1.0, False),
    ("late_starts", "late starts\njobs", 1.0, False),
    ("arrival_utilization", "util. until\nlast arrival, %", 100.0, False),
)
_NOTES = """\
mean over the episodes, with its 95 % confidence interval; episodes that share
jobs count together. Late starts: jobs that had not begun at the last arrival"""


def print_evaluation(estimates: "EpisodeMeans", episodes: int) -> None:
    """One row per policy in each of two tables: the usual figures, and what the means do not tell."""
    for columns, caption in ((_USUAL, None), (_TAIL, _NOTES)):
        rows = {
            policy: [_cell(found[name], scale, interval and episodes > 1) for name, _, scale, interval in columns]
            for policy, found in estimates.items()
        }
        print_by_policy([header for _, header, _, _ in columns], rows, caption)


def evaluation_rows(estimates: "EpisodeMeans", episodes: int) -> list[dict[str, Any]]:
    """The rows of `print_evaluation` as data: mean and confidence interval of every metric, null of one episode."""

    def row(found: "Estimate") -> dict[str, float | None]:
        low, high = (found.low, found.high) if episodes > 1 else (None, None)
        return {"mean": found.value, "low": low, "high": high}

    return [
        {"policy": policy, **{name: row(each) for name, each in found.items()}} for policy, found in estimates.items()
    ]


def _cell(found: "Estimate", scale: float, interval: bool) -> str:
    value, low, high = (number(scale * each) for each in found)
    return f"{value} ({low} to {high})" if interval else value


def print_gates(check: GateCheck) -> None:
    """What a policy did on a log, and what is allowed."""
    table = simple_table("gate", "found", "at most", "passed", title=check.workload.name)
    for gate in check.gates:
        table.add_row(gate.name, number(gate.found), number(gate.most), "yes" if gate.passed else "no")
    stdout().print(table)


def print_manifest(manifest: Manifest) -> None:
    """A checkpoint's manifest, one line per fact."""
    table = FittedTable(plain=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _manifest_rows(manifest):
        table.add_row(name, value)
    stdout().print(table)


def _manifest_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    config = manifest.config
    yield "scheduler", config.scheduler
    yield "algorithm", f"{manifest.algorithm}, {manifest.steps:,} of {config.steps:,} steps, seed {config.seed}"
    yield "made by", f"decision {manifest.decision}, checkpoint format {manifest.format}"
    yield "encoder", _listed(manifest.encoder)
    yield "platform", f"{_input(manifest.platform)}, {manifest.nb_hosts} hosts"
    for workload in manifest.workloads:
        yield "workload", _input(workload)
    if manifest.selection is not None:
        for name, text in manifest.selection.texts().items():
            yield name.replace("_", " "), text
    yield "env", _listed(config.settings)
    for section in config.sections:
        yield section, _listed(to_builtins(getattr(config, section)))
    if manifest.scores:
        yield "last episodes", ", ".join(f"{name} {number(value)}" for name, value in manifest.scores.items())


def _input(facts: InputFacts) -> str:
    return f"{facts.name}, sha256 {facts.sha256[:16]}" if facts.sha256 else facts.name


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in values.items())


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
