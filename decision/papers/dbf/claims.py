"""What DBF's paper claims of windows and splits, and what is known of each claim, by the rule of all papers.

Compared are interquartile means over runs; an interval holds 95 % of the ratios over bootstrap samples of the runs,
drawn apart for either side. A heuristic has one run. Changes within `MARGINS` count as equal.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.experiments.statistics import Estimate, interquartile_mean, middle_mean
from decision.papers.campaign import VERDICT_COLUMNS, Kind, ResultTable, markdown_table, verdicts
from decision.rl.envs import EPISODE_METRICS, PlacedJobs

# Results of DBF's runs: a row for each run, and a table of the policies with confidence intervals.

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
    """Means over the episodes in a file of `decision.rl.envs.write_metrics`."""
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
    """Mean waits by type of job from the files of several runs together."""
    found: dict[tuple[int, float], tuple[int, float]] = {}
    for path in files:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                kind, jobs = (int(row["cores"]), float(row["walltime"])), int(row["jobs"])
                count, waited = found.get(kind, (0, 0.0))
                found[kind] = count + jobs, waited + jobs * float(row["waiting_time"])
    return {kind: (count, waited / count) for kind, (count, waited) in found.items()}


MARGINS = {"waiting_time": 0.02, "queue_length": 0.02, "utilization": 0.01}  # as shares
_NAMES = {"waiting_time": "wait", "queue_length": "queue", "utilization": "utilization"}
_SAMPLES, _LEVELS = 1000, (0.025, 0.975)
_SPLIT, _WIDE = 20, 32  # jobs of the window of which the best split is asked for; and of those that beat all others


class _Claim(NamedTuple):
    """What is said of a change."""

    what: str
    kind: Kind
    metric: str
    found: Estimate  # as a share
    beside: float = 0.0  # what it is compared with


def judged_claims(results: Results, as_written: bool) -> ResultTable:
    """Each claim that there are runs for, with its change and what that says.

    Args:
        results: of the policies.
        as_written: whether networks and steps are the paper's.
    """
    rows = []
    for claim in (*_tails(results), *_best_split(results), *_wide(results)):
        value, low, high = (100 * each for each in claim.found)
        beside = Estimate(*(each - claim.beside for each in claim.found))
        known = verdicts(claim.kind, beside, MARGINS[claim.metric], as_written=as_written)
        rows.append((claim.what, f"{value:+.0f} % ({low:+.0f} to {high:+.0f})", *known))
    margins = ", ".join(f"{_NAMES[name]} {margin:.0%}" for name, margin in MARGINS.items())
    return ResultTable(f"Claims (95 %); equal within: {margins}", ("claim", "change", *VERDICT_COLUMNS), rows)


def mean_change(own: Sequence[Result], other: Sequence[Result], metric: str) -> Estimate:
    """By which share the interquartile mean over runs is larger than that of others."""
    rng = np.random.default_rng(0)
    sides = [np.array([run.means[metric] for run in runs]) for runs in (own, other)]
    drawn = []
    for _ in range(_SAMPLES):
        one, two = (side[rng.integers(len(side), size=len(side))] for side in sides)
        drawn.append(middle_mean(one) / middle_mean(two) - 1)
    low, high = np.quantile(drawn, _LEVELS).tolist()
    return Estimate(middle_mean(sides[0]) / middle_mean(sides[1]) - 1, low, high)


def _tails(results: Results) -> Iterator[_Claim]:
    """One slot at the tail already helps."""
    known = _windows(results)
    for (head, tail), policy in known.items():
        if tail == 1 and (whole := known.get((head + 1, 0))):
            for metric in ("waiting_time", "queue_length"):
                found = mean_change(results[policy], results[whole], metric)
                yield _Claim(f"{policy} has less {_NAMES[metric]} than {whole}", Kind.BELOW, metric, found)


def _best_split(results: Results) -> Iterator[_Claim]:
    """The best split of a window of 20 halves wait and queue."""
    known = _windows(results)
    splits = [policy for (head, tail), policy in known.items() if head + tail == _SPLIT and tail]
    if whole := known.get((_SPLIT, 0)):
        for policy in splits[:1]:  # results are sorted by waiting time
            for metric in ("waiting_time", "queue_length"):
                found = mean_change(results[policy], results[whole], metric)
                what = f"{policy} has half the {_NAMES[metric]} of {whole}"
                yield _Claim(what, Kind.EQUAL, metric, found, beside=-0.5)


def _wide(results: Results) -> Iterator[_Claim]:
    """Windows of 32 and more wait less, with shorter queues, than all others, and use as much of the machine."""
    others = [policy for policy, runs in results.items() if runs[0].window is None]
    for (head, tail), policy in _windows(results).items():
        if head + tail < _WIDE:
            continue
        for metric, kind in (
            ("waiting_time", Kind.BELOW),
            ("queue_length", Kind.BELOW),
            ("utilization", Kind.NO_WORSE),
        ):
            sign = -1 if kind == Kind.NO_WORSE else 1
            rival = min(others, key=lambda name: sign * middle_mean(_values(results[name], metric)))
            found = mean_change(results[policy], results[rival], metric)
            said = "no less" if kind == Kind.NO_WORSE else "less"
            what = f"{policy} has {said} {_NAMES[metric]} than the best other ({rival})"
            yield _Claim(what, kind, metric, found)


def _values(runs: Sequence[Result], metric: str) -> np.ndarray:
    return np.array([run.means[metric] for run in runs])


def _windows(results: Results) -> dict[tuple[int, int], str]:
    """Policy by window, those whose jobs wait least first."""
    return {runs[0].window: policy for policy, runs in results.items() if runs[0].window}
