"""Which policy suits a log: whole runs of all that are worth it, and the best that keeps a bound on waiting.

A copy of the log is run under every candidate, and a second one under the better half. The best of those that keep the
bound there go on to all copies, `MOST_ROWS` - 1 besides the baseline, and if none of them can be advised so many more,
as long as there are better ones than the baseline; the advised policy is the best of those that keep it on every copy,
and would on another one for all that their spread says (`_keeps`). The best is the one with the least wait, or of those
that wait hardly longer the one with the least of what is weighed (`_ranked`). Policies that are asked for run on all
copies besides.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np

from decision.model.columns import columns_of
from decision.model.dates import clock_at_zero, date_text
from decision.model.demand import offered_load
from decision.model.errors import ConfigError
from decision.model.reshape import dropped_text, shake_of
from decision.model.table import Table
from decision.policies.registry import find_policy

from .audit import Unsimulated, better_command
from .compare import COPIES
from .comparison import Runs, change, estimate, first_alike, times_as_long
from .inputs import writable_folder
from .metrics import GroupFigures, mean_figures
from .statistics import Estimate, student
from .tasks import How, Progress, Result, run_tasks
from .whole import WEEK, Log, LogRead, WholeRun, counted_text, duration, perform_whole_run

# What is advised, what it rests on, and how that is said.

MEAN_METRICS = ("wait", "bounded_slowdown")
OTHERS = ("p95_wait", "p99_wait", "max_wait", "late_starts", "arrival_utilization")
METRIC_NAMES = (*MEAN_METRICS, *OTHERS)
_SHORT, _IDLE, _NO_WAIT = 28 * 86_400.0, 0.5, 60.0  # seconds, load, seconds


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants of a policy: what counts, how much, and the longest wait that is allowed."""

    baseline: str = "easy"
    longest_wait: float = 1.5  # times the baseline's
    weights: Mapping[str, float] = msgspec.field(default_factory=lambda: {"wait": 1.0, "slowdown": 1.0})
    policies: tuple[str, ...] = ()  # further candidates; names of several are those that are tried anyway
    copies: int = COPIES
    metrics: tuple[str, ...] = METRIC_NAMES


class AdviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on all copies."""

    policy: str
    metrics: dict[str, Estimate]  # in each metric's unit; those that it has
    change: dict[str, Estimate]  # of means, against the baseline: -0.2 is a fifth less
    longest_wait: list[float]  # times the baseline's, by copy
    keeps_bound: bool


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What is advised, and what it rests on."""

    policy: str
    baseline: str
    change: dict[str, Estimate]  # per metric, of the advised policy against the baseline
    rows: list[AdviceRow]  # the baseline first, then from the best
    cannot: list[str]  # what this log cannot say
    not_simulated: list[Unsimulated]  # what the log says and no run looks at, from the largest share of host-seconds
    better: str  # the commands that simulate those; "" where none do
    sentence: str
    log: dict[str, Any]  # description
    payers: list[str]
    pictures: dict[str, Any]  # what they are drawn from
    groups: dict[str, list[GroupFigures]] = {}  # what users and the like had under the baseline and the advised policy

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"

    def _repr_html_(self) -> str:
        header = ("policy", *(f"{name}, change" for name in WEIGHED))
        changes = [[row.change.get(metric) for metric in WEIGHED.values()] for row in self.rows]
        texts = [["-" if each is None else f"{each.value:+.1%}" for each in part] for part in changes]
        rows = [(row.policy, *part) for row, part in zip(self.rows, texts, strict=True)]
        return Table(self.sentence, header, rows).html()


def weighed_changes(row: AdviceRow, wish: Wish) -> list[Estimate]:
    """The changes of what counts."""
    return [row.change[metric] for name, metric in WEIGHED.items() if wish.weights.get(name, 0.0) > 0]


WEIGHED = dict(zip(("wait", "slowdown"), MEAN_METRICS, strict=True))


_CLASS_NAMES = [
    f"{size} {length}" for size in ("small", "middle-sized", "large") for length in ("short", "middle-long", "long")
]


def percent(change: Estimate, less: str, more: str) -> str:
    """``20 % less (95 %: 15 to 24)``; where the interval holds no change, that it is not for sure."""
    low, high = 100 * change.low, 100 * change.high
    if change.high < 0:
        return f"{-100 * change.value:.0f} % {less} (95 %: {-high:.0f} to {-low:.0f})"
    if change.low > 0:
        return f"{100 * change.value:.0f} % {more} (95 %: {low:.0f} to {high:.0f})"
    word = less if change.value < 0 else more
    return f"{100 * abs(change.value):.0f} % {word} (95 %: {low:+.0f} to {high:+.0f} %, so not for sure)"


def advice_sentence(best: AdviceRow, wish: Wish, payers: Sequence[str]) -> str:
    """Whether to change the policy, and what that brings."""
    if best.policy == wish.baseline:
        return (
            f"Keep {wish.baseline}: no policy that was tried is better and keeps the longest wait below "
            f"{wish.longest_wait:g} times its own."
        )
    longest = f"{np.mean(best.longest_wait):.2f} times {wish.baseline}'s (at most {max(best.longest_wait):.2f})"
    paid_by = f"; who pays: {', '.join(payers)}" if payers else "; no group of jobs waits longer"
    begin = "Use" if any(each.high < 0 for each in weighed_changes(best, wish)) else "Perhaps use"
    return (
        f"{begin} {best.policy}: the mean wait is {percent(best.change['wait'], 'shorter', 'longer')} than under "
        f"{wish.baseline}, the mean bounded slowdown {percent(best.change['bounded_slowdown'], 'lower', 'higher')}, "
        f"and the longest wait {longest}{paid_by}."
    )


def advice_heading(advice: Advice) -> str:
    """What to do, in a line: ``Use f3+easy: waits 53 % less than easy``."""
    if advice.policy == advice.baseline:
        return f"Keep {advice.baseline}: no policy that was tried is better"
    begin = advice.sentence.partition(advice.policy)[0].strip()
    change = advice.change["wait"].value
    if not np.isfinite(change):
        return f"{begin} {advice.policy}"
    how = f"{100 * abs(change):.0f} % {'less' if change < 0 else 'more'}"
    return f"{begin} {advice.policy}: waits {how} than {advice.baseline}"


def find_payers(own: Sequence[Result], baseline: Sequence[Result]) -> list[str]:
    """Which classes of jobs and which users wait longer than under the baseline, the most first."""
    found: list[tuple[float, str]] = []
    mine, theirs = (np.mean([result["class_waits"] for result in each], axis=0) for each in (own, baseline))
    jobs = np.array(own[0]["class_jobs"])
    for at in range(len(jobs)):
        if jobs[at] >= 20 and mine[at] > 1.05 * theirs[at] and mine[at] - theirs[at] > 60 * jobs[at]:
            times = mine[at] / max(theirs[at], 1.0)
            found.append((mine[at] - theirs[at], f"{_CLASS_NAMES[at]} jobs ({times:.1f} times)"))
    text = [name for _, name in sorted(found, reverse=True)[:3]]
    worse = [
        user
        for user in own[0]["users"]
        if _of_user(own, user) > 1.05 * _of_user(baseline, user) + 60 * own[0]["users"][user][0]
    ]
    return [*text, f"users {', '.join(worse[:3])}"] if worse else text


def groups_under(results: Sequence[Result]) -> list[GroupFigures]:
    """What users and the like had, the mean over copies; nothing where the log does not say whose jobs are."""
    return mean_figures([msgspec.convert(result.get("groups", []), list[GroupFigures]) for result in results])


def _of_user(results: Sequence[Result], user: str) -> float:
    return float(np.mean([result["users"].get(user, [0.0, 0.0])[1] for result in results]))


def describe_log(log: Log, read: LogRead) -> dict[str, Any]:
    """The log in numbers, as the advice says them."""
    platform, workload, part = read.platform, read.workload, read.part
    jobs, clock = columns_of(workload.jobs), clock_at_zero([workload])
    return {
        "workload": log.workload.name,
        "begin": "" if clock is None else date_text(clock),
        "jobs": len(jobs),
        "hosts": len(platform.hosts),
        "days": float(np.ptp(jobs.submit_time)) / 86_400,
        "load": load_of(read),
        "offered_load_by_log": offered_load(workload, read.runtimes),
        "warm_up_days": part.warm_up / 86_400,
        "not_counted": len(jobs) - len(part.rows(jobs.submit_time)),
        "counted": counted_text(part),
        "shake": shake_of(jobs.submit_time),
        "blocks": part.blocks,
        "block": "week" if part.block == WEEK else "day",
        "left_out": dropped_text(workload),
        "machine": log.platform.name if log.platform else f"a flat machine of {len(platform.hosts):,} hosts",
    }


def load_of(read: LogRead) -> float:
    """What jobs take of the machine's time between submissions; their host-seconds where all come at once."""
    jobs = columns_of(read.workload.jobs)
    return float(read.runtimes @ jobs.size) / max(float(np.ptp(jobs.submit_time)) * len(read.platform.hosts), 1.0)


def passed_over(first: AdviceRow, best: AdviceRow, wish: Wish) -> list[str]:
    """What came before the advised policy and is shown to be worse in something that counts, if something did."""
    if first.policy in (best.policy, wish.baseline) or not any(each.low > 0 for each in weighed_changes(first, wish)):
        return []
    texts = zip(MEAN_METRICS, (("shorter", "longer"), ("lower", "higher")), strict=True)
    changes = [f"{name.replace('_', ' ')} {percent(first.change[name], *words)}" for name, words in texts]
    return [f"{first.policy} came first and is not advised: {', '.join(changes)}"]


def what_cannot_be_told(read: LogRead, baseline: AdviceRow, described: Mapping[str, Any], wish: Wish) -> list[str]:
    """What a reader of the advice should doubt, a line each."""
    caveats, seconds = [], described["days"] * 86_400
    if seconds < _SHORT:
        caveats.append(f"the log is short ({duration(seconds)}): how seasons change the answer is not known")
    if described["blocks"] == 1:
        caveats.append("it is too short for blocks of days: intervals are of shaken copies alone, and narrow")
    if overload := overload_text(described["load"]):
        caveats.append(overload)
    elif described["load"] < _IDLE or baseline.metrics["wait"].value < _NO_WAIT:
        wait = baseline.metrics["wait"].value
        caveats.append(
            f"the machine is idle for much of the time (load {described['load']:.2f}, mean wait {wait:.0f} s):"
        )
        caveats[-1] += " at a higher load the answer may be another"
    if read.missing > 0:
        caveats.append(
            f"{100 * read.missing:.0f} % of the jobs have no requested time, and their run times took its place:"
        )
        caveats[-1] += " what users' estimates do to backfilling is not known"
    if not any(columns_of(read.workload.jobs).user.labels):
        caveats.append("the log does not say who submitted which job: whether single users pay is not known")
    if wish.copies < 3:
        caveats.append(f"so few shaken copies ({wish.copies}) say little of how much chance decides; use --shake 10")
    caveats.append("jobs come as they came: that users submit more where they wait less is not simulated")
    return caveats


def overload_text(load: float) -> str:
    """That jobs ask for more than the machine has; nothing if they do not."""
    if load <= 1:
        return ""
    text = f"jobs ask for more than the machine has (load {load:.2f}): waits grow until the end."
    return f"{text} Is the number of hosts right?"


def mean_over_copies(results: Sequence[Result], metric: str) -> float:
    """A metric's mean over copies of the log."""
    return float(np.mean([result[metric] for result in results]))


def pictures_data(
    own: list[Result], baseline: list[Result], looked_at: Mapping[str, list[Result]], wish: Wish, read: LogRead
) -> dict[str, Any]:
    """What pictures of the advice are drawn from."""
    clock = clock_at_zero([read.workload])
    jobs = np.maximum(np.array(own[0]["block_jobs"], np.float64), 1)
    both = {"advised": own, "baseline": baseline}
    classes = np.maximum(np.array(own[0]["class_jobs"], np.float64), 1)
    return {
        "weeks": {
            who: (np.mean([r["block_waits"] for r in each], axis=0) / jobs).tolist() for who, each in both.items()
        },
        "jobs": own[0]["block_jobs"],
        "block_seconds": read.part.block,
        "begin": None if clock is None else clock + read.part.begin,
        "classes": {
            who: (np.mean([r["class_waits"] for r in each], axis=0) / classes).tolist() for who, each in both.items()
        },
        "class_names": _CLASS_NAMES,
        "plane": {
            name: [mean_over_copies(each, metric) for metric in ("wait", "max_wait")]
            for name, each in looked_at.items()
        },
        "bound": wish.longest_wait,
    }


ORDERS = (*("fcfs", "lcfs", "sjf", "ljf", "saf", "laf", "sqf", "lqf"), *("f1", "f2", "f3", "f4", "wfp3", "unicep"))
_BACKFILLS = ("first-fit", "easy")
SHIPPED = ("learned",)
MOST_ROWS = 8
_SURE = 0.95  # how sure it must be that one more copy keeps the bound


def heuristics(longest_wait: float | None) -> list[str]:
    """Every order with every way of backfilling, without and (unless it is None) with a bound on waiting."""
    plain = [f"{order}+{backfill}" for order in ORDERS for backfill in _BACKFILLS] + ["conservative"]
    plain[plain.index("fcfs+easy")] = "easy"
    if longest_wait is None:
        return plain
    bound = f",guard={longest_wait:g}x"
    return plain + [f"{name}{bound}" for name in plain if name not in ("easy", "conservative")]


def expanded(names: Sequence[str], longest_wait: float = Wish().longest_wait) -> list[str]:
    """The names of policies; ``heuristics`` stands for all of these, ``shipped`` for what the package learned."""
    several = {"heuristics": heuristics(longest_wait), "shipped": [*SHIPPED]}
    return list(dict.fromkeys(each for name in names for each in several.get(name, [name])))


def find_advice(
    log: Log, wish: Wish, folder: Path, *, progress: Callable[[str], Progress] | None = None, **how: Unpack[How]
) -> Advice:
    """Find the policy. Finished runs are kept in ``folder/runs``.

    Args:
        log: is looked at.
        wish: of its operator.
        folder: gets the finished runs.
        progress: called with what is counted, gives what is called with the number of finished runs and of all.
        how: as of `decision.experiments.tasks.run_tasks`.

    Raises:
        ConfigError: if a policy or the wish makes no sense.
        InputError: if the log cannot be read.
        Interrupted: if a signal asked for the end; finished runs are kept.
    """
    _check(wish)
    runs = writable_folder(folder / "runs")
    asked = expanded(wish.policies, wish.longest_wait)
    shipped = [each for name in SHIPPED for each in (name, f"{name},guard={wish.longest_wait:g}x")]
    names = list(dict.fromkeys([wish.baseline, *heuristics(wish.longest_wait), *shipped, *asked]))
    for name in names:
        find_policy(name)
    read = log.read()
    show = progress or (lambda what: lambda done, of: None)

    def results(policies: Sequence[str], copies: int) -> dict[str, list[Result]]:
        tasks = [WholeRun(log=log, policy=name, copy=k) for k in range(1, copies + 1) for name in policies]
        found = run_tasks(perform_whole_run, tasks, runs, first=tasks[:1], progress=show(f"{copies} copies"), **how)
        return {name: [r for t, r in zip(tasks, found, strict=True) if t.policy == name] for name in policies}

    looked_at = results(names, 1)
    candidates, _ = _candidates(looked_at, wish)
    nb_asked = sum(name in wish.policies for name in candidates)  # they come first, and take nobody's place
    half = [wish.baseline, *candidates[: nb_asked + (len(names) - nb_asked) // 2]]
    twice = results(half, min(2, wish.copies))
    candidates, promising = _candidates(twice, wish)
    found: dict[str, list[Result]] = {}
    first = nb_asked + MOST_ROWS - 1
    for end in (first, *range(first + MOST_ROWS - 1, promising + MOST_ROWS - 1, MOST_ROWS - 1)):
        found |= results([wish.baseline, *(name for name in candidates[:end] if name not in found)], wish.copies)
        rows = [_row(name, each, found[wish.baseline], wish) for name, each in found.items()]
        kept = _in_order([row for row in rows if row.keeps_bound], wish)
        good = [row for row in kept if _may_be_advised(row, wish)]
        best = good[0] if good else rows[0]
        if any(row.policy not in wish.policies for row in good):
            break
    shown = sorted(rows[1:], key=lambda row: (row is not best, row.policy not in wish.policies, not row.keeps_bound))
    rows = [rows[0], *_in_order(shown[: MOST_ROWS - 1], wish)]
    payers = find_payers(found[best.policy], found[wish.baseline])
    described = describe_log(log, read)
    return Advice(
        policy=best.policy,
        baseline=wish.baseline,
        change=best.change,
        rows=rows,
        cannot=[*passed_over(kept[0], best, wish), *what_cannot_be_told(read, rows[0], described, wish)],
        not_simulated=read.not_simulated,
        better=better_command(read.workload, read.not_simulated),
        sentence=advice_sentence(best, wish, payers),
        log=described,
        payers=payers,
        pictures=pictures_data(found[best.policy], found[wish.baseline], looked_at | twice, wish, read),
        groups={name: groups_under(found[name]) for name in dict.fromkeys((wish.baseline, best.policy))},
    )


def _check(wish: Wish) -> None:
    if not wish.longest_wait >= 1 or math.isinf(wish.longest_wait):
        raise ConfigError(f"longest_wait: must be at least 1; found {wish.longest_wait:g}", field="longest_wait")
    unknown = set(wish.weights) - {"wait", "slowdown"}
    if unknown or not wish.weights or min(wish.weights.values()) < 0 or not 0 < sum(wish.weights.values()) < math.inf:
        raise ConfigError("weight: give wait=NUMBER,slowdown=NUMBER, not below 0 and finite, one above", field="weight")
    if wish.copies < 1:
        raise ConfigError(f"shake: must be at least 1; found {wish.copies}", field="shake")
    for name in wish.metrics:
        if name not in METRIC_NAMES:
            raise ConfigError(f"unknown metric {name!r} (known are {', '.join(METRIC_NAMES)})", field="metrics")


def _candidates(found: Mapping[str, list[Result]], wish: Wish) -> tuple[list[str], int]:
    """Different policies but the baseline, and behind how many of them none is better that may keep the bound.

    First come those that were asked for, then the others that may keep the bound, having kept it on every copy so far,
    from the best.
    """
    alike = first_alike({name: tuple(run["schedule"] for run in runs) for name, runs in found.items()})
    asked = [name for name in wish.policies if name in found]
    names = list(dict.fromkeys([wish.baseline, *alike.values(), *asked]))
    base, logs, longest = found[wish.baseline], {}, {}
    for name in names:
        longest[name] = max(longest_waits(found[name], base))
        logs[name] = [
            math.log(max(mean_over_copies(found[name], metric), 1e-3) / max(mean_over_copies(base, metric), 1e-3))
            for metric in MEAN_METRICS
        ]
    ranked = _ranked({name: logs[name] for name in names if longest[name] <= wish.longest_wait}, wish)
    others = sorted((name for name in names if name not in ranked), key=lambda name: longest[name])
    ordered = [name for name in dict.fromkeys([*asked, *ranked, *others]) if name != wish.baseline]
    better = [at for at, name in enumerate(ordered, 1) if name in ranked and _cost(logs[name], wish) < -_LEAST]
    return ordered, max(better, default=0)


def _ranked(logs: Mapping[str, Sequence[float]], wish: Wish) -> list[str]:
    """Names from the best: again and again the one of the least weighted sum among those that wait hardly longer.

    Hardly longer than the one of those left that waits least: `_NEAR` times the weight of slowdown over that of wait.
    So weights say for how much more wait less slowdown is taken; no slowdown makes up for a wait that is much longer.

    Args:
        logs: the logarithms of mean wait and of mean bounded slowdown, over the baseline's, by name.
        wish: says the weights.
    """
    wait, slowdown = (wish.weights.get(name, 0.0) for name in WEIGHED)
    near = _NEAR * slowdown / wait if wait else math.inf
    left, ranked = sorted(logs, key=lambda name: logs[name][0]), []
    while left:
        close = [name for name in left if logs[name][0] <= logs[left[0]][0] + near]
        ranked.append(min(close, key=lambda name: _cost(logs[name], wish)))
        left.remove(ranked[-1])
    return ranked


def _row(name: str, own: list[Result], baseline: list[Result], wish: Wish) -> AdviceRow:
    runs = {metric: runs_of(own, metric) for metric in METRIC_NAMES if all(metric in result for result in own)}
    changes = {metric: change(each, runs_of(baseline, metric)) for metric, each in runs.items()}
    for metric in MEAN_METRICS:
        changes[metric] = changes[metric] or Estimate(math.inf, math.inf, math.inf)  # nothing waits under the baseline
    longest = longest_waits(own, baseline)
    return AdviceRow(
        policy=name,
        metrics={metric: estimate(each) for metric, each in runs.items()},
        change={metric: each for metric, each in changes.items() if each is not None},
        longest_wait=longest,
        keeps_bound=name == wish.baseline or _keeps(longest, wish.longest_wait),
    )


def _keeps(longest: Sequence[float], bound: float) -> bool:
    """Whether all copies keep the bound, and a further one would with `_SURE`: Student's limit, of logarithms.

    How far below the baseline's a longest wait is says nothing of how far above it may be, and does not count.

    Args:
        longest: longest waits over the baseline's, by copy.
        bound: on them.
    """
    logs, limit = np.log(np.maximum(longest, 1.0)), math.log(bound) + 1e-9
    further = float(logs.mean())
    if len(logs) > 1:
        spread = float(logs.std(ddof=1)) * math.sqrt(1 + 1 / len(logs))
        further += student(len(logs) - 1, 2 * _SURE - 1) * spread
    return max(float(logs.max()), further) <= limit


def longest_waits(own: Sequence[Result], baseline: Sequence[Result]) -> list[float]:
    """Of results of `perform_whole_run`: the longest waits over the baseline's, by copy."""
    return times_as_long([result["max_wait"] for result in own], [result["max_wait"] for result in baseline])


def runs_of(results: Sequence[Result], metric: str) -> Runs:
    """Of results of `perform_whole_run`: a metric by copy, and without each block of time."""
    return Runs.of([result[metric] for result in results], [result["without"].get(metric, []) for result in results])


def _may_be_advised(row: AdviceRow, wish: Wish) -> bool:
    """Whether it is better as far as can be seen, and shown to be worse in nothing that counts."""
    return _cost(_logs(row), wish) < -_LEAST and not any(each.low > 0 for each in weighed_changes(row, wish))


def _in_order(rows: Sequence[AdviceRow], wish: Wish) -> list[AdviceRow]:
    by_name = {row.policy: row for row in rows}
    return [by_name[name] for name in _ranked({row.policy: _logs(row) for row in rows}, wish)]


def _logs(row: AdviceRow) -> list[float]:
    """Of each of the means over the baseline's; of nothing a very small one."""
    return [math.log(max(1 + row.change[metric].value, 1e-9)) for metric in MEAN_METRICS]


_NEAR = 0.03  # by which the logarithm of the mean wait may be above the least: copies of one log differ by as much
_LEAST = 0.02  # by which the logarithm of what counts must fall: less is not worth a change


def _cost(logs: Sequence[float], wish: Wish) -> float:
    return sum(wish.weights.get(name, 0.0) * each for name, each in zip(WEIGHED, logs, strict=True))
