"""Results of DBF's runs: a row for each run, and a table of the policies with confidence intervals."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.analysis.statistics import Estimate, interquartile_mean
from decision.envs import EPISODE_METRICS, PlacedJobs

from ..findings import ResultTable, markdown_table

METRIC_COLUMNS = (  # metric, what it is called, scale
    ("waiting_time", "wait, s", 1.0),
    ("queue_length", "queue, jobs", 1.0),
    ("utilization", "utilization, %", 100.0),
    ("job_load", "load, core-h", 1 / 3600),
)
BY_HORIZON = {"waiting_time": "wait, s", "bounded_slowdown": "slowdown"}  # what is shown by the episodes' length
_LENGTH_STEP = 4.0  # the longest walltime of a type over that of the next shorter one

Types = dict[tuple[int, float], tuple[int, float]]  # (cores, seconds) at most -> (jobs, their mean wait in seconds)


class Result(NamedTuple):
    """A run that is finished: a heuristic, or what was learned with one seed."""

    policy: str
    window: tuple[int, int] | None  # of DBF: jobs from the queue's head and tail
    seed: int | None  # None of a heuristic
    means: dict[str, float]  # of each of EPISODE_METRICS, over the episodes


Horizons = Mapping[int, Sequence[float]]  # by the jobs that an episode places, 0 for the whole half: BY_HORIZON
Results = Mapping[str, Sequence[Result]]  # by policy


def read_means(metrics: Path) -> dict[str, float]:
    """Means over the episodes in a file of `decision.envs.write_metrics`."""
    with metrics.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: float(np.mean([float(row[name]) for row in rows])) for name in EPISODE_METRICS}


def by_policy(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The runs of each policy; the policy whose jobs wait least comes first."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.policy, []).append(result)
    return dict(sorted(found.items(), key=lambda item: metric_estimate(item[1], "waiting_time").value))


def metric_estimate(results: Sequence[Result], metric: str, scale: float = 1.0) -> Estimate:
    """The interquartile mean over the runs of one policy."""
    values = np.array([[scale * result.means[metric]] for result in results])
    return interquartile_mean(values, np.random.default_rng(0))


def summary(results: Results) -> ResultTable:
    """Policy, runs, and each of `METRIC_COLUMNS`."""
    rows = [
        [
            policy,
            str(len(runs)),
            *(_interval(metric_estimate(runs, name, scale), len(runs)) for name, _, scale in METRIC_COLUMNS),
        ]
        for policy, runs in results.items()
    ]
    columns = ("policy", "runs", *(title for _, title, _ in METRIC_COLUMNS))
    return ResultTable("IQM over the runs, with 95 % confidence intervals", columns, rows)


def _interval(found: Estimate, runs: int) -> str:
    """The value with its interval, which several runs have, even equal ones."""
    digits = 0 if found.value >= 1000 else 1
    value, low, high = (f"{number:,.{digits}f}" for number in found)
    return f"{value} ({low} to {high})" if runs > 1 else value


def horizons_csv(found: Horizons) -> str:
    """A row for each horizon."""
    lines = [",".join(("horizon", *BY_HORIZON)), *(f"{at},{','.join(map(repr, row))}" for at, row in found.items())]
    return "\n".join((*lines, ""))


def read_horizons(path: Path) -> Horizons:
    """What `horizons_csv` wrote; nothing where there is no file, of a run of an earlier version."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {int(row["horizon"]): [float(row[name]) for name in BY_HORIZON] for row in csv.DictReader(file)}


def horizon_table(found: Mapping[str, Sequence[Horizons]]) -> ResultTable:
    """Each policy's figures by horizon: means over the runs, each over its episodes."""
    horizons = list(dict.fromkeys(at for runs in found.values() for run in runs for at in run))
    columns = [f"{title}: {f'{at:,} jobs' if at else 'whole'}" for title in BY_HORIZON.values() for at in horizons]
    rows = [
        [policy, *(_figure([run[at][k] for run in runs if run]) for k in range(len(BY_HORIZON)) for at in horizons)]
        for policy, runs in found.items()
    ]
    title = "Figures by the jobs that an episode places from an idle cluster, and in one run of the whole half; means"
    return ResultTable(title, ("policy", *columns), rows)


def _figure(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = float(np.mean(values))
    return f"{mean:,.0f}" if mean >= 1000 else f"{mean:.1f}"


def results_csv(results: Results) -> str:
    """A row for each run."""
    lines = [",".join(("policy", "head", "tail", "seed", *EPISODE_METRICS))]
    for run in (run for runs in results.values() for run in runs):
        head, tail = run.window or ("", "")
        seed = "" if run.seed is None else run.seed
        lines.append(",".join(map(str, (run.policy, head, tail, seed, *(run.means[name] for name in EPISODE_METRICS)))))
    return "\n".join((*lines, ""))


def table_markdown(
    results: Results, more: Sequence[ResultTable], facts: Mapping[str, str], missing: Mapping[str, int]
) -> str:
    """The table, with what was run, what tails are good for, and how many runs of which policy are not there yet."""
    gains, table = _gains(results), summary(results)
    lines = ["# Deep backfilling: windows and splits", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [
        "",
        "Interquartile means over the runs, with 95 % confidence intervals where there are several.",
        "",
        *markdown_table(table.columns, table.rows),
    ]
    for each in more:
        lines += ["", f"## {each.title}", "", *markdown_table(each.columns, each.rows)]
    if gains:
        lines += ["", "## Tails, against windows of the same size without one", ""]
        lines += markdown_table(("policy", "without a tail", "wait", "queue"), gains)
    if missing:
        lines += ["", "## Runs that are not finished", "", *(f"- {policy}: {runs}" for policy, runs in missing.items())]
    return "\n".join((*lines, ""))


def _gains(results: Results) -> list[list[str]]:
    """For each window with a tail: by how much waiting time and queue are less than with all of it at the head."""
    known = {runs[0].window: policy for policy, runs in results.items()}
    rows = []
    for head, tail in filter(None, known):
        whole = known.get((head + tail, 0))
        if tail and whole:
            both = results[known[head, tail]], results[whole]
            rows.append(
                [known[head, tail], whole, *(_change(*both, name) for name in ("waiting_time", "queue_length"))]
            )
    return rows


def _change(split: Sequence[Result], whole: Sequence[Result], metric: str) -> str:
    return f"{100 * (metric_estimate(split, metric).value / metric_estimate(whole, metric).value - 1):+.1f} %"


def types_csv(placed: Sequence[PlacedJobs]) -> str:
    """Jobs by type, a row each: cores up to a power of two, walltime up to a power of four, number, mean wait."""
    size, walltime, wait = (np.concatenate(parts) for parts in zip(*placed, strict=True))
    kind = np.stack([_exponent(size, 2.0), _exponent(walltime, _LENGTH_STEP)])
    found, place, count = np.unique(kind, axis=1, return_inverse=True, return_counts=True)
    mean = np.bincount(place.ravel(), weights=wait) / count
    lines = ["cores,walltime,jobs,waiting_time"]
    for cores, seconds, jobs, waited in zip(*found, count, mean.tolist(), strict=True):
        lines.append(f"{2**cores},{_LENGTH_STEP**seconds:g},{jobs},{waited}")
    return "\n".join((*lines, ""))


def _exponent(values: np.ndarray, base: float) -> np.ndarray:
    """The least exponent whose power of `base` is not below the value; values are 1 or more."""
    return np.maximum(np.ceil(np.log(values) / np.log(base) - 1e-9), 0).astype(np.int64)


def read_types(files: Sequence[Path]) -> Types:
    """Of several runs together."""
    found: dict[tuple[int, float], tuple[int, float]] = {}
    for path in files:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                kind, jobs = (int(row["cores"]), float(row["walltime"])), int(row["jobs"])
                count, waited = found.get(kind, (0, 0.0))
                found[kind] = count + jobs, waited + jobs * float(row["waiting_time"])
    return {kind: (count, waited / count) for kind, (count, waited) in found.items()}
