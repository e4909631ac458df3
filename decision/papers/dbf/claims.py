"""What DBF's paper claims of windows and splits, and what is known of each claim, by the rule of all papers.

Compared are interquartile means over runs; an interval holds 95 % of the ratios over bootstrap samples of the runs,
drawn apart for either side. A heuristic has one run. Changes within `MARGINS` count as equal.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.experiments.statistics import Estimate, interquartile_mean, middle_mean
from decision.papers.campaign import (
    RUNS_OF_A_VERDICT,
    VERDICT_COLUMNS,
    Kind,
    PaperAgent,
    ResultTable,
    TrainingHours,
    Verdict,
    hours_of,
    verdicts,
)
from decision.rl.envs import EPISODE_METRICS, PlacedJobs

# Results of DBF's runs: a row for each run, and a table of the policies with confidence intervals.

METRIC_COLUMNS = (  # metric, what it is called, scale
    ("waiting_time", "wait, s", 1.0),
    ("queue_length", "queue, jobs", 1.0),
    ("utilization", "utilization, %", 100.0),
    ("job_load", "load, core-h", 1 / 3600),
)
PAPER_STEPS = 299_700_000  # of 100,000 episodes
CHECKPOINT_METRICS = ("waiting_time", "queue_length", "utilization")  # of the paper's figure 3
BY_HORIZON = {"waiting_time": "wait, s", "bounded_slowdown": "slowdown"}  # what is shown by the episodes' length
_LENGTH_STEP = 4.0  # the longest walltime of a type over that of the next shorter one

Types = dict[tuple[int, float], tuple[int, float]]  # (cores, seconds) at most -> (jobs, their mean wait in seconds)


class Result(NamedTuple):
    """A run that is finished: a heuristic, or what was learned with one seed."""

    policy: str
    window: tuple[int, int] | None  # of DBF: jobs from the queue's head and tail
    seed: int | None  # None of a heuristic
    means: dict[str, float]  # of each of EPISODE_METRICS, over the episodes
    steps: int = 0  # learned from


Checkpoints = Mapping[int, Sequence[float]]  # by steps: mean and deviation over episodes of each of CHECKPOINT_METRICS
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
    """Policy, runs, the share of the paper's steps that they have, and each of `METRIC_COLUMNS`."""
    rows = []
    for policy, runs in results.items():
        cells = []
        for name, _, scale in METRIC_COLUMNS:
            found = metric_estimate(runs, name, scale)
            digits = 0 if found.value >= 1000 else 1
            value, low, high = (f"{number:,.{digits}f}" for number in found)
            cells.append(f"{value} ({low} to {high})" if len(runs) > 1 else value)  # even equal ones have an interval
        rows.append([policy, str(len(runs)), f"{_share(runs):.2%}" if runs[0].steps else "", *cells])
    columns = ("policy", "runs", "of the paper's steps", *(title for _, title, _ in METRIC_COLUMNS))
    return ResultTable("IQM over the runs, with 95 % confidence intervals", columns, rows)


def _share(runs: Sequence[Result]) -> float:
    """Of the paper's steps, that each of the runs has at least."""
    return min(run.steps for run in runs) / PAPER_STEPS


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


def checkpoints_csv(found: Checkpoints) -> str:
    """A row for each checkpoint of a training."""
    names = [f"{name}{kind}" for name in CHECKPOINT_METRICS for kind in ("", "_deviation")]
    lines = [",".join(("steps", *names)), *(f"{at},{','.join(map(repr, row))}" for at, row in found.items())]
    return "\n".join((*lines, ""))


def read_checkpoints(path: Path) -> Checkpoints:
    """What `checkpoints_csv` wrote; nothing where there is no file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {int(row.pop("steps")): [float(value) for value in row.values()] for row in csv.DictReader(file)}


def horizon_table(found: Mapping[str, Sequence[Horizons]]) -> ResultTable:
    """Each policy's figures by horizon: means over the runs, each over its episodes."""
    horizons = list(dict.fromkeys(at for runs in found.values() for run in runs for at in run))
    columns = [f"{title}: {f'{at:,} jobs' if at else 'whole'}" for title in BY_HORIZON.values() for at in horizons]
    rows = []
    for policy, runs in found.items():
        values = [[run[at][k] for run in runs if run] for k in range(len(BY_HORIZON)) for at in horizons]
        means = (float(np.mean(each)) if each else None for each in values)
        rows.append([policy, *("" if x is None else f"{x:,.0f}" if x >= 1000 else f"{x:.1f}" for x in means)])
    title = "Figures by the jobs that an episode places from an idle cluster, and in one run of the whole half; means"
    return ResultTable(title, ("policy", *columns), rows)


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
    known, gains = {runs[0].window: policy for policy, runs in results.items()}, []
    for head, tail in filter(None, known):
        split, whole = known[head, tail], known.get((head + tail, 0))
        if tail and whole:
            row = [split, whole]
            for metric in ("waiting_time", "queue_length"):
                own, other = (metric_estimate(results[policy], metric).value for policy in (split, whole))
                row.append(f"{100 * (own / other - 1):+.1f} %")
            gains.append(row)
    lines = ["# Deep backfilling: windows and splits", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    lines += [
        "",
        "Interquartile means over the runs, with 95 % confidence intervals where there are several.",
        "",
        *summary(results).markdown(),
    ]
    for each in more:
        lines += ["", f"## {each.title}", "", *each.markdown()]
    if gains:
        title = "Tails, against windows of the same size without one"
        lines += ["", *ResultTable(title, ("policy", "without a tail", "wait", "queue"), gains).markdown(2)[:-1]]
    if missing:
        lines += ["", "## Runs that are not finished", "", *(f"- {policy}: {runs}" for policy, runs in missing.items())]
    return "\n".join((*lines, ""))


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


def large_jobs(types: Path) -> float:
    """Share of the placed jobs that have more than 128 cores, from a file of `types_csv`."""
    with types.open(newline="") as file:
        rows = [(int(row["cores"]), int(row["jobs"])) for row in csv.DictReader(file)]
    return sum(jobs for cores, jobs in rows if cores > _LARGE) / sum(jobs for _, jobs in rows)


_LARGE = 128  # cores; types are powers of two
MARGINS = {  # as shares
    "waiting_time": 0.02,
    "queue_length": 0.02,
    "utilization": 0.01,
    "job_load": 0.02,
    "bounded_slowdown": 0.02,
    "large_jobs": 0.02,
}
_NAMES = {
    "waiting_time": "wait",
    "queue_length": "queue",
    "utilization": "utilization",
    "job_load": "load",
    "bounded_slowdown": "slowdown",
    "large_jobs": "placed jobs of more than 128 cores",
}
_SAMPLES, _LEVELS = 1000, (0.025, 0.975)
_SPLIT, _WIDE = 20, 32  # jobs of the window of which the best split is asked for; and of those that beat all others
_MORE_TAIL = (20, 32, 64)  # jobs of the windows that too many jobs from the tail make worse, by the paper
_TYPED = 10  # jobs of the windows of which the paper shows the types of jobs that they place
_SJF, _OVER_SJF = "sqf+easy", "SchedInspector over SJF"
_INSPECTOR = "SchedInspector"  # how the names of its policies begin
EARLY, _MOST = 0.05, 0.5  # of a training, after which most of the gain is there: 5,000 of the paper's 100,000 episodes


class _Claim(NamedTuple):
    """What is said of a change."""

    what: str
    kind: Kind
    metric: str
    found: Estimate  # as a share
    runs: int  # of the learned side that has fewest
    beside: float = 0.0  # what it is compared with
    share: float = 0.0  # of the paper's steps, that all of its learned sides have; 0 where that is not known


# What the paper claims of windows, where these have no runs yet: what is said, and what must learn for it.
_ON_WINDOWS: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = (
    ("9-1 has less wait and queue than 10-0", ((9, 1), (10, 0))),
    ("10-10 has at most half the wait and queue of 20-0", ((10, 10), (20, 0))),
    *(
        (f"0-{slots} has more wait than {slots // 2}-{slots // 2}", ((0, slots), (slots // 2, slots // 2)))
        for slots in (20, 32, 64)
    ),
    *(
        (f"{slots}-0 has less wait and queue than all others, the best heuristic more utilization", ((slots, 0),))
        for slots in (32, 64, 128)
    ),
    ("0-10 has fewer placed jobs of more than 128 cores than 9-1", ((0, 10), (9, 1))),
)
_EARLY_GAIN = "20-0 has most of its gain in wait after 5,000 of 100,000 episodes (figure 3)"


def judged_claims(
    results: Results,
    agent: PaperAgent,
    checkpoints: Mapping[str, Sequence[Checkpoints]],
    prices: Mapping[str, TrainingHours] | None = None,
) -> ResultTable:
    """Each claim that there are runs for, with its change and what that says.

    Args:
        results: of the policies.
        agent: who learned.
        checkpoints: by policy, of each of its runs.
        prices: of one training: "DBF", and how the other learned policies' names begin. With them the paper's claims
            for which nothing has learned have a row each, with the hours of three trainings of each policy.
    """
    rows: list[tuple[str, ...]] = []
    whole = not agent.own or agent.share >= 1  # a shorter training has another end to gain
    for claim in (*_claims_on(results), *(_soon(checkpoints) if whole else ())):
        value, low, high = (100 * each for each in claim.found)
        beside = Estimate(*(each - claim.beside for each in claim.found))
        who = agent._replace(share=claim.share or agent.share)
        known = verdicts(claim.kind, beside, MARGINS[claim.metric], agent=who, runs=claim.runs)
        rows.append((claim.what, f"{value:+z.0f} % ({low:+z.0f} to {high:+z.0f})", *known))
    rows += _not_tried(results, prices, whole) if prices is not None else []
    by_share: dict[float, list[str]] = {}
    for name, margin in MARGINS.items():
        by_share.setdefault(margin, []).append(_NAMES[name])
    margins = "; ".join(f"{', '.join(names)} {margin:.0%}" for margin, names in by_share.items())
    return ResultTable(f"Claims (95 %); equal within: {margins}", ("claim", "change", *VERDICT_COLUMNS), rows)


def _not_tried(results: Results, prices: Mapping[str, TrainingHours], early: bool) -> list[tuple[str, ...]]:
    """Rows of the claims that lack a policy, each with what the trainings of those would take.

    `early`: whether the row on what is gained early is there already, where its window is.
    """
    known, seeds = _windows(results), RUNS_OF_A_VERDICT
    lacking = [(what, [("DBF", seeds)] * sum(each not in known for each in needed)) for what, needed in _ON_WINDOWS]
    if not early or (20, 0) not in known:
        lacking.append((_EARLY_GAIN, [("DBF", seeds)]))
    for name in (f"{_INSPECTOR} over {base}" for base in ("SJF", "F1")):
        if name not in results:
            lacking.append((f"{name}, online and offline, has less utilization than all others", [(_INSPECTOR, seeds)]))
    return [
        (what, "", f"{Verdict.NOT_TRIED}: {hours_of([(prices[name], number) for name, number in trainings])}", "", "")
        for what, trainings in lacking
        if trainings
    ]


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


def _claim(
    what: str, kind: Kind, metric: str, own: Sequence[Result], other: Sequence[Result], beside: float = 0.0
) -> _Claim:
    """Of a change from one policy to another; heuristics have no chance in them, so that one run of them is enough."""
    learned = [runs for runs in (own, other) if runs[0].seed is not None]
    share = min(map(_share, learned))
    return _Claim(what, kind, metric, mean_change(own, other, metric), min(map(len, learned)), beside, share)


def _claims_on(results: Results) -> Iterator[_Claim]:
    """The paper's claims on figures over the episodes, those that there are policies for."""
    known = _windows(results)  # those whose jobs wait least first
    for (head, tail), policy in known.items():
        if tail == 1 and (whole := known.get((head + 1, 0))):  # one slot at the tail already helps
            for metric in ("waiting_time", "queue_length"):
                what = f"{policy} has less {_NAMES[metric]} than {whole}"
                yield _claim(what, Kind.BELOW, metric, results[policy], results[whole])
    # the best split of a window of 20 halves wait and queue, or does better
    splits = [policy for (head, tail), policy in known.items() if head + tail == _SPLIT and tail]
    if splits and (whole := known.get((_SPLIT, 0))):
        for metric in ("waiting_time", "queue_length"):
            what = f"{splits[0]} has at most half the {_NAMES[metric]} of {whole}"
            yield _claim(what, Kind.NO_MORE, metric, results[splits[0]], results[whole], beside=-0.5)
    # at larger windows too many jobs from the tail make it worse
    for slots in _MORE_TAIL:
        splits = [policy for (head, tail), policy in known.items() if head + tail == slots and head and tail]
        if splits and (whole := known.get((0, slots))):
            what = f"{whole} has more wait than the best split ({splits[0]})"
            yield _claim(what, Kind.ABOVE, "waiting_time", results[whole], results[splits[0]])
    # windows of 32 and more wait less, with shorter queues, than all others
    wide = [policy for (head, tail), policy in known.items() if head + tail >= _WIDE]
    others = [policy for policy, runs in results.items() if runs[0].window is None]
    for policy, metric in product(wide, ("waiting_time", "queue_length")):
        rival = min(others, key=_middle(results, metric))
        what = f"{policy} has less {_NAMES[metric]} than the best other ({rival})"
        yield _claim(what, Kind.BELOW, metric, results[policy], results[rival])
    # the best heuristic uses the machine slightly better, with less load in the queue, than those windows
    rules = [policy for policy, runs in results.items() if runs[0].seed is None]
    for policy in wide if rules else ():
        most, least = max(rules, key=_middle(results, "utilization")), min(rules, key=_middle(results, "job_load"))
        for best, metric, kind, said in (
            (most, "utilization", Kind.ABOVE, "more"),
            (least, "job_load", Kind.BELOW, "less"),
        ):
            what = f"the best heuristic ({best}) has {said} {_NAMES[metric]} than {policy}"
            yield _claim(what, kind, metric, results[best], results[policy])
    # SchedInspector uses least of the machine; over SJF its slowdown is below SJF's
    inspectors = [policy for policy in results if policy.startswith(_INSPECTOR)]
    others = [policy for policy in results if policy not in inspectors]
    for policy in inspectors if others else ():
        rival = min(others, key=_middle(results, "utilization"))
        what = f"{policy} has less utilization than all others ({rival})"
        yield _claim(what, Kind.BELOW, "utilization", results[policy], results[rival])
    if _OVER_SJF in results and _SJF in results:
        what = f"{_OVER_SJF} has less slowdown than SJF ({_SJF})"
        yield _claim(what, Kind.BELOW, "bounded_slowdown", results[_OVER_SJF], results[_SJF])
    # a window of the tail alone places fewer large jobs
    only, split = known.get((0, _TYPED)), known.get((_TYPED - 1, 1))
    if only and split:
        what = f"{only} has fewer {_NAMES['large_jobs']} than {split}"
        yield _claim(what, Kind.BELOW, "large_jobs", results[only], results[split])


def _soon(checkpoints: Mapping[str, Sequence[Checkpoints]]) -> Iterator[_Claim]:
    """Most of what a training gains in waiting time is there after a twentieth of it."""
    for policy, runs in checkpoints.items():
        shares = []  # of the gain from the first checkpoint to the last, of runs with an early one that gain something
        for run in runs:
            steps = sorted(run)
            first, last = (run[at][0] for at in (steps[0], steps[-1]))
            early = min(steps, key=lambda at: abs(at - EARLY * steps[-1]))
            if steps[0] < EARLY * steps[-1] and first > last:
                shares.append((first - run[early][0]) / (first - last))
        if shares:
            found = interquartile_mean(np.array(shares)[:, None], np.random.default_rng(0))
            what = f"{policy} has most of its gain in wait after {EARLY:.0%} of its training"
            yield _Claim(what, Kind.ABOVE, "waiting_time", Estimate(*found), len(shares), _MOST)


def _middle(results: Results, metric: str) -> Callable[[str], float]:
    """What policies are ordered by: the interquartile mean over their runs."""
    return lambda policy: middle_mean(np.array([run.means[metric] for run in results[policy]]))


def _windows(results: Results) -> dict[tuple[int, int], str]:
    """Policy by window, those whose jobs wait least first."""
    return {runs[0].window: policy for policy, runs in results.items() if runs[0].window}
