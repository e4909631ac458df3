"""One run of the model over a log."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.errors import InternalError
from decision.slurm.kernels import clock as replay

from .build import build_world, zero_of
from .case import Case
from .conf import Settings
from .text import read_hosts

# beyond any time limit: a job that can never start does not keep the run going
_AFTER = 400 * 86_400  # seconds after the last submission at which a run ends in any case


class Simulated(NamedTuple):
    """What became of the jobs, in the order of the case."""

    start: F8  # (J,) seconds since 1970 of the last run, nan where a job never ran
    submit: F8  # (J,) seconds since 1970, of the last run
    reason: I8  # (J,) who started it
    requeues: I8  # (J,)
    tested: int  # jobs tested by backfill
    cycles: int

    @property
    def wait(self) -> F8:
        """(J,) seconds from each job's last submission to its start, nan where it never ran."""
        return self.start - self.submit


def simulate_case(
    case: Case,
    settings: Settings,
    cycles: Sequence[int] = (),
    priorities: F8 | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Simulated:
    """Run the log with its recorded run times.

    Args:
        case: the cluster and its jobs.
        settings: the parameters.
        cycles: seconds since 1970 at which backfill begins; none: as bf_interval says.
        priorities: (J,) that the jobs have instead of computed ones.
        fixed: what `fixed_parts` made of the case and the parameters, to make it once for many runs.
    """
    world = build_world(case, settings, cycles, fixed)
    if priorities is not None:
        world.entry_base[:] = priorities[world.entry_job]
        world.ages = 0
    begin = zero_of(case)
    replay.run_log(world, int(world.submit.max()) + _AFTER)
    counters = (number for name, number in world.arrays().items() if name.startswith("nb_") and not number.ndim)
    if min(counters) < 0:
        raise InternalError("a counter of the model of Slurm is negative")
    return Simulated(
        start=np.where(world.start >= 0, world.start + float(begin), np.nan),
        submit=(world.submit + begin).astype(np.float64),
        reason=world.reason.copy(),
        requeues=world.requeues.copy(),
        tested=world.nb_tested,
        cycles=world.nb_cycles,
    )


# What a log does not say: when periodic work of slurmctld began, and how long nodes completed.
#
# Periodic are cycles of backfill, calculations of priorities, and main loops over the whole queue.
#
# Cycles that started a job show in the log, where sacct's Flags say SchedBackfill: others lie between them, bf_interval
# apart. The rest is drawn at random, or, where the times of cycles were recorded, tried.

_OVERHEAD = 0.25  # seconds that a cycle takes on average beyond bf_interval, where nobody knows
_FEWEST = 5  # starts by backfill that show when its cycles were
_COMPLETING = (1, 2, 3)  # seconds from a job's end until its nodes are back, where the log shows no more
# each is a run of the log: more of them find a better best one
_TRIED = 240  # guesses at random, where the times of cycles were recorded
_ORDERS = 48  # of jobs that are preempted together
_ALONG = 60  # guesses at one of them, with the others as in the best guess
_SHOWS_MORE = 5  # seconds between jobs on a node from which they show how long it completes


class Phase(NamedTuple):
    """One guess at what the log does not say."""

    changes: dict[str, str]
    cycles: Sequence[int]  # seconds since 1970; empty: as bf_interval says


def drawn_phases(case: Case, settings: Settings, runs: int, seed: int, *, anchored: bool) -> list[Phase]:
    """Guesses at random, the same ones for the same seed.

    Args:
        case: the log.
        settings: the parameters as configured.
        runs: how many.
        seed: of the draws.
        anchored: whether cycles are put where the log shows them; not if parameters are to change them.
    """
    rng = np.random.default_rng(seed)
    interval = settings.number("bf_interval")
    phases = []
    seconds = completing_times(case)
    for _ in range(runs):
        # slurmctld's threads began at times that no log has
        changes = _periodic(rng, settings, seconds)
        begin, overhead = rng.uniform(0, interval), rng.uniform(0, 2 * _OVERHEAD)
        cycles = shown_cycles(case, settings, overhead) if anchored else ()
        if not cycles:
            changes |= {"bf_phase": f"{begin:.3f}", "cycle_cost": f"{overhead:.3f}"}
        phases.append(Phase(_kept(changes, settings), cycles))
    return phases


def _kept(changes: dict[str, str], settings: Settings) -> dict[str, str]:
    """The changes but those that the user made himself."""
    return {name: value for name, value in changes.items() if name not in settings.changed}


def _periodic(rng: np.random.Generator, settings: Settings, seconds: Sequence[int]) -> dict[str, str]:
    changes = {
        "completing": str(rng.choice(seconds)),
        "calc_phase": str(int(rng.uniform(0, settings.calc_period))),
        "main_phase": str(int(rng.uniform(0, settings.number("sched_interval")))),
    }
    if settings.requeues_in_any_order:
        changes["requeue_order"] = str(rng.integers(_ORDERS))
    return changes


def tried_phases(case: Case, settings: Settings, seed: int = 0) -> Iterator[Phase]:
    """Guesses where the times of cycles were recorded: the rest at random, the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    seconds = completing_times(case)
    for _ in range(_TRIED):
        yield Phase(_kept(_periodic(rng, settings, seconds), settings), case.cycles)


def nearby_phases(case: Case, settings: Settings, best: Phase, name: str) -> list[Phase]:
    """Guesses that differ from the best one in one thing.

    Args:
        case: the log.
        settings: the parameters as configured.
        best: the best guess so far.
        name: of what differs: main_phase, calc_phase, completing or requeue_order; none where the user gave it.
    """
    if name not in best.changes or (name == "calc_phase" and not settings.multifactor):
        return []
    values: Sequence[int]
    if name == "completing":
        values = completing_times(case)
    elif name == "requeue_order":
        values = range(_ORDERS)
    else:
        period = settings.calc_period if name == "calc_phase" else max(1, settings.whole("sched_interval"))
        # all of a short period, else evenly, and all that are next to the best one
        step, now = -(-period // _ALONG), int(best.changes[name])
        near = range(now - step + 1, now + step)
        values = sorted({value % period for value in (*range(now % step, period, step), *near)})
    return [
        Phase({**best.changes, name: str(value)}, best.cycles) for value in values if str(value) != best.changes[name]
    ]


def completing_times(case: Case) -> Sequence[int]:
    """Seconds from a job's end until its nodes are back: `_COMPLETING`, or about the shortest pause between jobs."""
    ends: dict[str, float] = {}
    pauses = []
    for job in sorted((job for job in case.jobs if job.started), key=lambda job: job.start):
        for host in read_hosts(job.hosts):
            if host in ends and job.start >= ends[host]:
                pauses.append(job.start - ends[host])
            ends[host] = max(ends.get(host, 0.0), job.start + job.runtime)
    if not pauses:
        return _COMPLETING
    # not the very shortest pause: two dates that are rounded may make it too short
    least = round(float(np.quantile(pauses, 0.02)))
    return _COMPLETING if least < _SHOWS_MORE else (least - 1, least, least + 1)


def shown_cycles(case: Case, settings: Settings, overhead: float = _OVERHEAD) -> list[int]:
    """Cycles as starts by backfill show them, seconds since 1970; none where too few do."""
    anchors = sorted({job.start for job in case.jobs if job.started and job.by_backfill})
    if len(anchors) < _FEWEST or settings.builtin:
        return []
    period = settings.number("bf_interval") + overhead
    end = max(job.start for job in case.jobs if job.started) + 1
    times = [anchors[0] - k * period for k in range(1, int((anchors[0] - case.begin) / period) + 1)]
    for first, last in pairwise([*anchors, end + int(period)]):
        # up to the next one that is known: evenly, or until a pause before it
        count = max(1, round((last - first) / period))
        step = (last - first) / count
        # cycles are not evenly between: there were times without waiting jobs, after which cycles began anew
        if abs(step - period) > period / 60 + 1:
            step = period
        times += [first + k * step for k in range(count) if first + k * step <= last - period / 2 or k == 0]
    return sorted({round(time) for time in times})
