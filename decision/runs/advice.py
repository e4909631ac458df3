"""What is advised, what it rests on, and how that is said."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from decision.analysis.groups import GroupFigures, mean_figures
from decision.analysis.statistics import Estimate
from decision.analysis.unsimulated import Unsimulated
from decision.analysis.whole import WEEK, counted_text, duration
from decision.model.columns import columns_of
from decision.model.dates import clock_at_zero, date_text
from decision.model.demand import offered_load
from decision.model.resample import shake_of
from decision.model.reshape import dropped_text

from .compare import COPIES
from .tasks import Result
from .whole import Log, LogRead

MEAN_METRICS = ("wait", "bounded_slowdown")
OTHERS = ("p95_wait", "p99_wait", "max_wait", "late_starts", "arrival_utilization")
METRIC_NAMES = (*MEAN_METRICS, *OTHERS)
_SHORT, _IDLE, _NO_WAIT = 28 * 86_400.0, 0.5, 60.0  # seconds, load, seconds


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted."""

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
    sentence: str
    log: dict[str, Any]  # description
    payers: list[str]
    pictures: dict[str, Any]  # what they are drawn from
    groups: dict[str, list[GroupFigures]] = {}  # what users and the like had under the baseline and the advised policy

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"


def _is_shown(row: AdviceRow, wish: Wish) -> bool:
    """Whether it is shown to be better in something that counts."""
    return any(each.high < 0 for each in weighed_changes(row, wish))


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
    who = f"; who pays: {', '.join(payers)}" if payers else "; no group of jobs waits longer"
    begin = "Use" if _is_shown(best, wish) else "Perhaps use"
    return (
        f"{begin} {best.policy}: the mean wait is {percent(best.change['wait'], 'shorter', 'longer')} than under "
        f"{wish.baseline}, the mean bounded slowdown {percent(best.change['bounded_slowdown'], 'lower', 'higher')}, "
        f"and the longest wait {longest}{who}."
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
    """The log in numbers."""
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
    said, seconds = [], described["days"] * 86_400
    if seconds < _SHORT:
        said.append(f"the log is short ({duration(seconds)}): how seasons change the answer is not known")
    if described["blocks"] == 1:
        said.append("it is too short for blocks of days: intervals are of shaken copies alone, and narrow")
    if overload := overload_text(described["load"]):
        said.append(overload)
    elif described["load"] < _IDLE or baseline.metrics["wait"].value < _NO_WAIT:
        wait = baseline.metrics["wait"].value
        said.append(f"the machine is idle for much of the time (load {described['load']:.2f}, mean wait {wait:.0f} s):")
        said[-1] += " at a higher load the answer may be another"
    if read.missing > 0:
        said.append(
            f"{100 * read.missing:.0f} % of the jobs have no requested time, and their run times took its place:"
        )
        said[-1] += " what users' estimates do to backfilling is not known"
    if not any(columns_of(read.workload.jobs).user.labels):
        said.append("the log does not say who submitted which job: whether single users pay is not known")
    if wish.copies < 3:
        said.append(f"so few shaken copies ({wish.copies}) say little of how much chance decides; use --shake 10")
    said.append("jobs come as they came: that users submit more where they wait less is not simulated")
    return said


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
