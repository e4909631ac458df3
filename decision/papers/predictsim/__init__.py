"""What predicted run times are worth to backfilling: the published figures of predictsim, and the same policies here.

Gaussier, Glesser, Reis and Trystram, Improving Backfilling by Using Machine Learning to Predict Running Times, SC 2015.
Their simulator, predictsim, is pyss with predictions; its authors published the mean bounded slowdown of each run on
logs of the Parallel Workloads Archive. With ``correction=walltime`` a job that outlives its prediction is expected to
take its walltime, as there. 5,756 of their runs are triples of a linear predictor (by loss and weights), a correction
and an order of candidates; the best of them is one in hindsight for each log, which nobody could have chosen before.
"""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from decision.experiments.gates import measure
from decision.experiments.inputs import writable_folder
from decision.experiments.statistics import Estimate
from decision.experiments.store import Result
from decision.experiments.tasks import file_digest, run_tasks
from decision.files import load_workload
from decision.files.swf import REQUESTED_TIME
from decision.model.demand import runtimes
from decision.model.errors import InputError
from decision.model.hosts import nearest
from decision.model.workload import Workload
from decision.papers.campaign import Findings, Kind, Parts, ResultTable, judge
from decision.policies.runtimes.predictors import with_estimates
from decision.rl.envs import equal_hosts
from decision.simulation import simulate_workloads

_PERFECT = "perfect"  # estimate: each job's own run time
_BY_SJF = "easy,backfill_order=sjf"
POLICIES = (  # with an estimate, or none
    ("easy", ""),
    ("easy", _PERFECT),
    ("easy", "last2"),
    (_BY_SJF, ""),
    (_BY_SJF, "last2"),
    ("easy++", ""),
    (_BY_SJF, _PERFECT),
    (_BY_SJF, "regression"),
    (_BY_SJF, "quantiles,shadow=0.5,fill=0.8"),
    (_BY_SJF, "quantiles,shadow=0.95,fill=0.35,guard=auto"),
)
_IN_ORDER, _SHORTEST = (0, 1), (3, 6)  # by walltimes and by perfect predictions: the gap that predictions may recover


class Published(NamedTuple):
    """Mean bounded slowdowns that predictsim's authors published for a log; None where there is none."""

    policies: tuple[float | None, ...]  # the first of POLICIES
    best: float  # of the linear triples, in hindsight
    median: float


PUBLISHED = {  # by what the names of the archive's files begin with
    "KTH-SP2": Published((92.58, 71.72, 65.72, 69.41, 62.86, 63.50, 49.85), 45.80, 69.7),
    "CTC-SP2": Published((49.57, 37.17, 35.32, 30.04, 26.53, None, 17.57), 15.15, 30.8),
    "SDSC-SP2": Published((87.87, 70.48, 79.21, 84.89, 65.06, 79.40, 56.84), 65.02, 85.0),
    "SDSC-BLUE": Published((36.52, None, None, 19.83, None, None, 13.18), 10.62, 17.4),
}
_MARGIN = 0.01  # of a mean bounded slowdown: what differs by a smaller share counts as equal
_REGRESSION = f"{_BY_SJF},estimate=regression"
_CLAIMS = (  # the first has a lower slowdown than the second
    ("easy,estimate=last2", "easy"),
    ("easy++", "easy"),
    (_REGRESSION, "easy++"),
    (f"{_BY_SJF},estimate={_PERFECT}", _REGRESSION),
)
_NOTES = """\
Mean bounded slowdowns (run times under 10 s count as 10 s). Recovered: the share of the way from walltimes \
to perfect predictions with candidates in the same order. Longest: the longest wait. {theirs}"""


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """A policy on a log."""

    log: Path
    digest: str  # of the log
    time_field: int  # of the log, that holds requested times
    policy: str
    estimate: str

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        fields = msgspec.structs.asdict(self)
        del fields["log"]
        return {"experiment": "predictsim", **fields}

    @property
    def name(self) -> str:
        """As ``--policy`` takes it, but for perfect predictions."""
        return f"{self.policy},estimate={self.estimate}" if self.estimate else self.policy


def reproduce_predictsim(log: Path, parts: Parts, name: str = "", time_field: int = REQUESTED_TIME) -> Findings:
    """Run all policies on a log.

    Args:
        log: with walltimes, in the Standard Workload Format.
        parts: where finished runs are kept, and how many are done at a time.
        name: of `PUBLISHED`, if the file's name does not begin with it.
        time_field: the field that holds the requested time, counted from 1.

    Raises:
        InputError: if the log cannot be read, or there are no figures of that name.
        ConfigError: if a job has no walltime.
        Interrupted: if a signal asked for the end; what is finished is kept.
    """
    theirs = find_published(log, name)
    digest = file_digest(log)
    runs = [
        _Run(log=log, digest=digest, time_field=time_field, policy=policy, estimate=estimate)
        for policy, estimate in POLICIES
    ]
    kept = writable_folder(parts.folder)
    found = run_tasks(do_run, runs, kept / "runs", first=runs[:1], progress=parts.progress, **parts.how)
    said = "Nothing is published for this log."
    if theirs is not None:
        better = sum(own["slowdown"] < theirs.best for own in found)
        best = (
            f"The best of 5,756 linear triples in hindsight has {theirs.best:,.2f}, their median {theirs.median:,.1f}"
        )
        said = f"{best}; {better} of the policies here have less than the best."
    published = (*(theirs.policies if theirs else ()), *(None for _ in runs))
    figures, longest = [own["slowdown"] for own in found], found[0]["longest"]
    shown = []
    for run, own, figure in zip(runs, found, published, strict=False):
        slowdown, (walltimes, perfect) = own["slowdown"], _IN_ORDER if run.policy == "easy" else _SHORTEST
        gap = figures[walltimes] - figures[perfect]
        shown.append(
            (
                run.name,
                "" if figure is None else f"{figure:,.2f}",
                f"{slowdown:,.2f}",
                "" if figure is None else f"{slowdown / figure - 1:+.2%}",
                f"{(figures[walltimes] - slowdown) / gap:.2f}" if gap > 0 else "",
                f"{own['wait']:,.0f}",
                f"{own['longest'] / longest:.2f}" if longest > 0 else "",
            )
        )
    columns = ("policy", "published", "here", "change", "recovered", "mean wait, s", "longest / easy's")
    # what predictions are worth on this log; one run of a whole log has no interval
    slowdowns, rows = {run.name: own["slowdown"] for run, own in zip(runs, found, strict=True)}, []
    for one, other in _CLAIMS:
        off = slowdowns[one] / slowdowns[other] - 1
        known = judge(Kind.BELOW, Estimate(off, off, off), _MARGIN).value
        rows.append((f"{one} has less slowdown than {other}", f"{off:+.1%}", known))
    title = f"Claims, on this log; within {_MARGIN:.0%} they are equal"
    claims = ResultTable(title, ("claim", "change", "verdict"), rows)
    return Findings((ResultTable("mean bounded slowdown", columns, shown), claims), _NOTES.format(theirs=said))


def find_published(log: Path, name: str) -> Published | None:
    """The figures for a log, by a name or by the file's. Raises InputError for a name that has none."""
    if name and name not in PUBLISHED:
        raise InputError(
            f"{name}: nothing is published for that log{nearest(name, PUBLISHED)} ({', '.join(PUBLISHED)})"
        )
    names = [each for each in PUBLISHED if each == name or (not name and log.name.startswith(each))]
    return PUBLISHED[names[0]] if names else None


def do_run(run: _Run) -> Result:
    """Mean wait and longest wait in seconds, and the mean bounded slowdown."""
    workload, policy = _read(run.log, run.time_field), run.name
    if run.estimate == _PERFECT:
        workload, policy = with_estimates(workload, runtimes(workload)), f"{run.policy},estimate=given"
    table = simulate_workloads(equal_hosts(workload.nb_res), [workload], policy).jobs
    found = measure(table, workload.nb_res)
    return {"wait": found.wait, "slowdown": found.slowdown, "longest": found.longest}


@functools.lru_cache(maxsize=1)
def _read(log: Path, time_field: int) -> Workload:
    return load_workload(log, "w0", time_field=time_field, missing_walltime="runtime")
