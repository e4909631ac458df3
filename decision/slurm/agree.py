"""How well the model agrees with what happened."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.compiling.bundle import F8
from decision.model.computer import available_cores
from decision.model.errors import InputError, heeding_nothing
from decision.simulation import simulate_workloads
from decision.slurm.kernels.world import BY_BACKFILL, BY_MAIN

from .build import fixed_parts
from .case import Case, case_platform, case_workload, engine_hosts, engine_size, limit_of
from .conf import Settings
from .priority import YEAR
from .simulate import Phase, Simulated, drawn_phases, nearby_phases, simulate_case, tried_phases
from .text import write_date
from .unstarted import never_lines

CLOSE = (("30 s", 30.0), ("5 min", 300.0), ("1 h", 3600.0))
# measured: the same 90 jobs under the same configuration, four times on a 22.05.8: 1,260, 1,308, 1,281, 1,332 s
REPEAT = 0.025  # relative standard deviation of the mean wait of a real Slurm that repeats the same jobs (measured)
_TWO_SIDED = 1.96  # standard deviations
_BLOCKS = 10  # of a log, at least
_DAY = 86_400
# each guess is a run of the log
_CANDIDATES = 3  # phases tried for each one kept
_LARGE = 5_000  # jobs: of a larger log no more guesses are tried than are kept
_FEWEST = 3  # guesses, of a larger log whose cycles are known
# the first one is what single starts need to be trusted, the second one how far the mean may be off where they are not
_AGREES, _IN_THE_MEAN = 0.85, 0.15  # share of starts within 5 min; relative difference of the mean wait

Progress = Callable[[int, int], None]


class Agreement(NamedTuple):
    """What was recorded, what the model makes of it, and how far they are apart."""

    started: list[int]  # numbers of the jobs that are compared
    recorded: F8  # (K,) seconds waited
    simulated: F8  # (R, K) in each run
    best: Simulated  # the run that comes closest
    phase: Phase
    close: Mapping[str, float]  # share of starts within so much, of the best run
    interval: tuple[float, float]  # of the mean wait, seconds
    easy: F8  # (K,)
    conservative: F8
    utilization: tuple[float, float]  # recorded and simulated
    verdict: str

    @property
    def means(self) -> dict[str, float]:
        """The mean wait as recorded, as simulated, and under decision's own policies, seconds."""
        return {
            "recorded": float(self.recorded.mean()),
            "simulated": float(self.simulated.mean()),
            "easy": float(np.nanmean(self.easy)),
            "conservative": float(np.nanmean(self.conservative)),
        }


def agree(case: Case, settings: Settings, runs: int, seed: int = 0, show: Progress | None = None) -> Agreement:
    """Simulate the log and compare.

    Args:
        case: the cluster and its log.
        settings: its parameters.
        runs: how many guesses at the phases are kept, where the times of cycles are not known.
        seed: of the guesses.
        show: is called with how many of how many runs are done.
    """
    # jobs that were cancelled while they waited are simulated, and have no start to compare
    numbers = compared_jobs(case)
    recorded_start = np.array([case.jobs[n].start for n in numbers], float)
    recorded = np.array([case.jobs[n].wait for n in numbers])
    scored = calibrated(case, settings, runs, seed, show)
    best, phase = scored[0]
    refuse_no_start(case, settings, best, numbers)
    simulated = np.stack([waits_of(run, numbers) for run, _ in scored])
    apart = np.abs(best.start[numbers] - recorded_start)
    close = {name: float(np.mean(np.where(np.isnan(apart), False, apart <= seconds))) for name, seconds in CLOSE}
    low, high = mean_interval(case, numbers, recorded, simulated, seed)
    # the share of the hosts' time that jobs take, from the first submission to the last recorded end
    jobs = [case.jobs[n] for n in numbers]
    begin, end = case.begin, max(job.start + job.runtime for job in jobs)
    size = np.array([engine_size(case, job) for job in jobs], float)
    runtime = np.array([job.runtime for job in jobs])
    taken = []
    for starts in (recorded_start, best.start[numbers]):
        inside = np.clip(np.minimum(starts + runtime, end) - np.maximum(starts, begin), 0, None)
        taken.append(float(np.nansum(size * inside) / (len(engine_hosts(case)) * max(1.0, end - begin))))
    mean = float(recorded.mean())
    off = abs(float(simulated.mean()) - mean) / max(mean, 1.0)
    # the mean may be right by chance, and single starts may be off while the mean holds: two questions, two answers
    verdict = "does not agree: do not use the sweep"
    if low <= mean <= high and close["5 min"] >= _AGREES:
        verdict = "agrees"
    elif low <= mean <= high and off <= _IN_THE_MEAN:
        verdict = "agrees in the mean, not per job"
    return Agreement(
        started=numbers,
        recorded=recorded,
        simulated=simulated,
        best=best,
        phase=phase,
        close=close,
        interval=(low, high),
        easy=policy_waits(case, numbers, "easy"),
        conservative=policy_waits(case, numbers, "conservative"),
        utilization=(taken[0], taken[1]),
        verdict=verdict,
    )


def compared_jobs(case: Case) -> list[int]:
    """The numbers of the jobs that have a recorded start. Raises InputError where none has one."""
    numbers = [n for n, job in enumerate(case.jobs) if job.started]
    if not numbers:
        reason = "no job of the log has a start (Start) and nodes (NodeList), so there is nothing to compare with"
        raise InputError(f"{case.folder}: {reason}; is it a list of submissions?")
    return numbers


def refuse_no_start(case: Case, settings: Settings, run: Simulated, numbers: Sequence[int]) -> None:
    """Refuse to compare where none of the jobs starts in the simulation. Raises InputError, which says why."""
    if np.isnan(run.start[list(numbers)]).all():
        reasons = "; ".join(never_lines(case, settings, run, numbers))
        raise InputError(f"{case.folder}: nothing is compared, as no job starts in the simulation: {reasons}")


def calibrated(
    case: Case, settings: Settings, runs: int, seed: int = 0, show: Progress | None = None
) -> list[tuple[Simulated, Phase]]:
    """Runs with the guesses at the phases that agree best with the log, the best one first.

    Where the times of cycles were recorded, only the best one: the log says the rest.
    """
    # with recorded cycles a wrong guess shows at once, and so the best of many is taken; without them guesses that show
    # cycles in the log and free ones take turns, because a sweep can only use free ones
    if case.cycles and len(case.jobs) <= _LARGE:
        return [_best_along(case, settings, list(tried_phases(case, settings, seed)), show)]
    if case.cycles or settings.builtin:
        phases = list(tried_phases(case, settings, seed))
        kept = 1 if case.cycles else min(runs, len(phases))
    else:
        half = _CANDIDATES * runs // 2
        shown = drawn_phases(case, settings, half, seed, anchored=True)
        others = drawn_phases(case, settings, _CANDIDATES * runs - half, seed + 1, anchored=False)
        phases = [phase for pair in zip(others, shown, strict=False) for phase in pair]
        kept = runs
    # a long log averages over phases by itself
    if len(case.jobs) > _LARGE:
        phases = phases[:: max(1, len(phases) // max(kept, _FEWEST))]
    results = run_phases(case, settings, phases, show)
    order = sorted(range(len(phases)), key=lambda i: -score(case, results[i]))
    return [(results[i], phases[i]) for i in order[:kept]]


_ALONG = ("main_phase", "calc_phase", "completing", "requeue_order", "main_phase", "calc_phase", "requeue_order")


def _best_along(
    case: Case, settings: Settings, phases: Sequence[Phase], show: Progress | None
) -> tuple[Simulated, Phase]:
    """The best of these guesses, made better in one thing after the other."""
    # a main loop or a calculation some seconds off lets other jobs start, and all that follows differs: of guesses at
    # random few are right in both
    counted = Counted(show)
    results = run_phases(case, settings, phases, counted.followed_by(0))
    best, phase = max(zip(results, phases, strict=True), key=lambda pair: score(case, pair[0]))
    for name in _ALONG:
        tried = nearby_phases(case, settings, phase, name)
        for run, other in zip(run_phases(case, settings, tried, counted.followed_by(0)), tried, strict=True):
            if score(case, run) > score(case, best):
                best, phase = run, other
    return best, phase


def run_phases(
    case: Case, settings: Settings, phases: Sequence[Phase], show: Progress | None = None, priorities: F8 | None = None
) -> list[Simulated]:
    """Runs on all cores: the model runs outside of Python's lock."""
    if show is not None:
        show(0, len(phases))
    if not phases:
        return []
    # what the guesses do not change is made once: it is Python's work, and so one thread's
    fixed = fixed_parts(case, settings)
    # threads do: kernels release Python's lock, and the case is not copied
    with heeding_nothing(), ThreadPoolExecutor(available_cores()) as pool:
        results = [
            pool.submit(simulate_case, case, settings.changing(phase.changes), phase.cycles, priorities, fixed)
            for phase in phases
        ]
        try:
            for done, _ in enumerate(as_completed(results), 1):
                if show is not None:
                    show(done, len(phases))
            return [each.result() for each in results]
        finally:
            pool.shutdown(cancel_futures=True)


class Counted:
    """Several groups of runs, one after the other, shown as one count.

    Args:
        show: is called with how many of how many runs are done.
    """

    def __init__(self, show: Progress | None) -> None:
        self._show = show
        self._before, self._own = 0, 0  # runs of finished groups, and of the present one

    def followed_by(self, runs: int) -> Progress:
        """What shows the next group, after which there are so many runs in others."""
        self._before, self._own = self._before + self._own, 0

        def show(done: int, of: int) -> None:
            self._own = of
            if self._show is not None:
                self._show(self._before + done, self._before + of + runs)

        return show


def score(case: Case, run: Simulated) -> float:
    """How well a run agrees: the share of starts within 30 s, and of two equal ones the smaller mean difference."""
    starts = np.array([job.start if job.started else np.nan for job in case.jobs], float)
    known = ~np.isnan(starts)
    # a job that never started counts as 1e6 s off, which makes at most a hundredth here
    apart = np.nan_to_num(np.abs(run.start - starts)[known], nan=1e6)
    return float(np.mean(apart <= CLOSE[0][1]) - 1e-8 * apart.mean())


def waits_of(run: Simulated, numbers: Iterable[int]) -> F8:
    """Seconds waited; a job that never started in a run waited until its end."""
    wait = run.wait[list(numbers)]
    last = np.nanmax(run.start) if not np.isnan(run.start).all() else 0.0
    never = last - run.submit[list(numbers)]
    return np.where(np.isnan(wait), np.maximum(never, 0), wait)


def blocks_of(case: Case, numbers: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The block of the log that each job is in: days, or tenths of a log of less than ten days, by submission."""
    submit = np.array([case.jobs[n].submitted for n in numbers], float)
    # jobs of one day share its load, so that single jobs are no independent draws
    length = min(_DAY, (submit.max() - submit.min() + 1) / _BLOCKS)
    return ((submit - submit.min()) // length).astype(np.int64)


def block_error(values: F8, blocks: np.ndarray[Any, np.dtype[np.int64]], seed: int = 0, draws: int = 1000) -> float:
    """Standard error of a mean over jobs, from draws of whole blocks."""
    count = int(blocks.max()) + 1
    sums = np.bincount(blocks, values, count)
    sizes = np.bincount(blocks, minlength=count)
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    chosen = np.random.default_rng(seed).integers(0, len(sums), (draws, len(sums)))
    return float(np.std(sums[chosen].sum(1) / sizes[chosen].sum(1)))


def mean_interval(
    case: Case, numbers: Sequence[int], recorded: F8, simulated: F8, seed: int = 0
) -> tuple[float, float]:
    """Interval of 95 % of the recorded mean wait that the model expects.

    It covers phases, blocks of the log (of how far each job is off), and that a real Slurm that repeats the same jobs
    differs from itself.
    """
    mean = float(simulated.mean())
    # three causes that are independent: squares add
    runs = float(simulated.mean(1).std(ddof=1)) if len(simulated) > 1 else 0.0
    blocks = block_error(simulated.mean(0) - recorded, blocks_of(case, numbers), seed)
    half = _TWO_SIDED * float(np.sqrt(runs**2 + blocks**2 + (REPEAT * mean) ** 2))
    return max(0.0, mean - half), mean + half


def policy_waits(case: Case, numbers: Sequence[int], policy: str) -> F8:
    """Seconds that the jobs wait under one of decision's own policies; nan for those that it cannot run."""
    # policies need a limit for each job
    record = simulate_workloads(case_platform(case), [case_workload(case, longest=YEAR)], policy)
    jobs = record.jobs
    # jobs that the policy cannot run are not in the record
    waits = dict(zip(jobs.id, jobs.start_time - jobs.submit_time, strict=True))
    return np.array([waits.get(f"slurm!{case.jobs[n].id}", np.nan) for n in numbers])


# Waits of groups of jobs: by partition, QOS, account and size.

_SIZES = ("small", "middle", "large")
SHORTEST = 10.0  # seconds: a shorter job counts as so long in its slowdown


class WaitFigures(NamedTuple):
    """Of a group of jobs, seconds."""

    jobs: int
    mean: float
    median: float
    p90: float
    slowdown: float


def wait_figures(wait: F8, runtime: F8) -> WaitFigures:
    """Mean, median and p90 of waits, and the mean bounded slowdown."""
    slowdown = np.maximum(1.0, (wait + runtime) / np.maximum(runtime, SHORTEST))
    return WaitFigures(
        len(wait), float(wait.mean()), float(np.median(wait)), float(np.quantile(wait, 0.9)), float(slowdown.mean())
    )


def job_groups(case: Case, numbers: Sequence[int]) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Places of the compared jobs by group: all, and by partition, QOS, account and size where there are several."""
    whole = len(engine_hosts(case))
    sizes = [engine_size(case, case.jobs[n]) / whole for n in numbers]
    labels = {
        "partition": [case.jobs[n].partition for n in numbers],
        "qos": [case.jobs[n].qos for n in numbers],
        "account": [case.jobs[n].account for n in numbers],
        # shares of the cluster: at most a sixteenth, at most a quarter, more
        "size": [_SIZES[np.searchsorted((1 / 16, 1 / 4), size)] for size in sizes],
    }
    groups = {"all": np.arange(len(numbers))}
    for kind, names in labels.items():
        if len(set(names)) > 1:
            column = np.array(names)
            groups |= {f"{kind}={name}": np.flatnonzero(column == name) for name in sorted(set(names))}
    return groups


# An agreement in a report: the starts that differ most, and all that is written as JSON or CSV.


_WHO = {BY_MAIN: "by the main loop", BY_BACKFILL: "by backfill"}


class StartDifference(msgspec.Struct, frozen=True):
    """A job whose start differs."""

    job: str
    recorded: str
    simulated: str
    seconds: float
    reason: str


def start_differences(case: Case, found: Agreement, count: int = 10) -> list[StartDifference]:
    """The jobs that differ most, by more than 30 s, and in front of them the first one that does."""
    starts = np.array([case.jobs[n].start for n in found.started], float)
    apart = found.best.start[found.started] - starts
    missing = np.isnan(apart)
    order = np.argsort(-np.where(missing, np.inf, np.abs(apart)), kind="stable")
    rows = [int(k) for k in islice(order, count) if missing[k] or abs(apart[k]) > CLOSE[0][1]]
    # the first job that differs is where to look: those behind it follow from it
    late = [k for k in np.argsort(starts, kind="stable") if missing[k] or abs(apart[k]) > CLOSE[0][1]]
    if late:
        rows = [int(late[0]), *(k for k in rows if k != late[0])]
    differences = []
    for k in rows:
        number = found.started[k]
        job, start = case.jobs[number], found.best.start[number]
        recorded = "by backfill" if job.by_backfill else "by the main loop"
        waited = "" if job.reason in ("", "None") else f", waited for {job.reason}"
        simulated = _WHO.get(int(found.best.reason[number]), "not started")
        differences.append(
            StartDifference(
                job=job.id,
                recorded=write_date(job.start),
                simulated="never" if np.isnan(start) else write_date(start),
                seconds=float(apart[k]),
                reason=f"recorded {recorded}{waited}; simulated {simulated}",
            )
        )
    return differences


def starts_lines(case: Case, run: Simulated) -> list[str]:
    """The starts of a run as CSV: job and start; jobs that never started have no line."""
    started = ((job, start) for job, start in zip(case.jobs, run.start, strict=True) if not np.isnan(start))
    return ["job,start", *(f"{job.id},{write_date(start)}" for job, start in started)]


def agreement_document(case: Case, found: Agreement) -> dict[str, Any]:
    """What ``decision slurm agree --json`` writes; all times are in seconds."""
    runtime = np.array([case.jobs[n].runtime for n in found.started])
    groups = {}
    for name, places in job_groups(case, found.started).items():
        shown = wait_figures(found.recorded[places], runtime[places])
        model = wait_figures(found.simulated.mean(0)[places], runtime[places])
        groups[name] = {"recorded": shown._asdict(), "simulated": model._asdict()}
    means = found.means
    return {
        "jobs": len(found.started),
        "runs": len(found.simulated),
        "cycles": "given" if case.cycles else "unknown",
        "mean_wait": {**means, "interval": list(found.interval)},
        "starts_within": dict(found.close),
        "utilization": dict(zip(("recorded", "simulated"), found.utilization, strict=True)),
        "groups": groups,
        "differences": [msgspec.structs.asdict(each) for each in start_differences(case, found)],
        "verdict": found.verdict,
        "slurm_version": case.slurm,
        "not_simulated": list(case.keys.may_matter),
        "never_started": never_lines(case, case.settings, found.best, found.started),
        "notes": [*case.notes, *agreement_notes(case, found)],
    }


def agreement_notes(case: Case, found: Agreement) -> list[str]:
    """What is to be said of a comparison."""
    notes = []
    if endless := sum(math.isinf(limit_of(case, case.jobs[n])) for n in found.started):
        notes.append(f"{endless:,} jobs have no limit: they are planned with a year, also in the rows of policies")
    if not found.recorded.any():
        notes.append("all recorded starts are the submissions, as in events of a simulator: no wait to agree with")
    return notes
