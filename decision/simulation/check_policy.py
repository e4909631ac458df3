"""Check that a policy keeps the rules of every policy, on small generated workloads.

What Gymnasium's `check_env` is to environments.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import Bundle
from decision.engine.embedded import EmbeddedEngine
from decision.engine.options import EngineOptions
from decision.model.errors import DecideTimeoutError, DecisionError, PolicyError
from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.model.record import RunRecord
from decision.model.workload import Delay, Job, MachineEvent, Workload
from decision.policies.failures import reset_policy
from decision.policies.policy import Plan, Policy
from decision.policies.traits import traits_of
from decision.state.plan_arrays import START
from decision.state.view import ClusterView

from .simulate import simulate_on

_PATIENCE = 2_000  # decisions without a start while jobs wait
_DECIDE_LIMIT = 5.0  # seconds


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One of the small runs."""

    name: str
    platform: Platform
    workload: Workload
    events: tuple[MachineEvent, ...] = ()
    energy: bool = False


def try_policy(make: Callable[[], Policy], decide_limit: float = _DECIDE_LIMIT) -> list[str]:
    """Try a policy on small workloads.

    Args:
        make: makes a fresh policy.
        decide_limit: seconds that a policy in Python may take for a decision; after one that took longer, nothing more
            is tried. 0 means no limit.

    Returns:
        One clear line for each rule that it breaks, with the first trial that found it; none if it keeps them all.

    Raises:
        ConfigError: if the policy cannot be made.
    """
    findings: dict[str, str] = {}  # the trial that found it first
    for trial in trials(without_walltime=not traits_of(make()).needs_walltime):
        watched = _Watched(make())
        try:
            found = _try(trial, watched, make, decide_limit)
        except DecideTimeoutError as error:
            findings |= dict.fromkeys((*watched.findings, str(error)), trial.name)
            break
        findings |= {finding: trial.name for finding in found if finding not in findings}
    return [f"{trial}: {finding}" for finding, trial in findings.items()]


def _try(trial: Trial, watched: "_Watched", make: Callable[[], Policy], decide_limit: float) -> list[str]:
    try:
        first, again = (_simulate(trial, watched, decide_limit) for _ in range(2))
        fresh = _simulate(trial, _Watched(make()), decide_limit)
    except DecideTimeoutError:
        raise
    except DecisionError as error:
        return [*watched.findings, str(error)]
    findings = list(watched.findings)
    if difference := _difference(first, fresh):
        findings.append(f"two runs with the same seed differ: {difference}")
    elif difference := _difference(first, again):
        findings.append(f"reset does not forget the run before: {difference}")
    return findings


def _simulate(trial: Trial, policy: Policy, decide_limit: float) -> RunRecord:
    engine = EmbeddedEngine(trial.platform, [trial.workload], trial.events, EngineOptions(energy=trial.energy))
    reset_policy(policy, trial.platform, 1)
    simulate_on(engine, policy, decide_limit=decide_limit)
    return engine.record()


def _difference(one: RunRecord, other: RunRecord) -> str:
    """The first job that two runs treat differently, in words; nothing if there is none."""
    a, b = ({row[0]: row[1:] for row in _rows(record)} for record in (one, other))
    for job, (start, hosts) in a.items():
        if (start, hosts) != b.get(job):
            then = b.get(job)
            elsewhere = f"at {then[0]:g} s on {then[1]}" if then else "never"
            return f"{job} starts at {start:g} s on {hosts}, or {elsewhere}"
    return ""


def _rows(record: RunRecord) -> Iterator[tuple[str, float, str]]:
    starts = np.nan_to_num(record.jobs.start_time, nan=-1.0).tolist()
    return zip(record.jobs.id, starts, record.jobs.allocation, strict=True)


class _Watched:
    """A policy whose effects are observed: what it does to the state, and whether it ever starts a job."""

    def __init__(self, policy: Policy) -> None:
        self.__wrapped__ = policy  # whose failures these are
        self._idle = 0
        self.findings: list[str] = []

    def reset(self, platform: Platform, seed: int) -> None:
        self._idle = 0
        self.__wrapped__.reset(platform, seed)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        before = [array.tobytes() for array in cluster.arrays.arrays().values()]
        self.__wrapped__.decide(cluster, plan)
        for field in _changed(before, cluster.arrays):
            finding = f"it writes the state ({field}), which it may only read"
            if finding not in self.findings:
                self.findings.append(finding)
        starts = START in plan.arrays.kind[: plan.arrays.nb_actions]
        self._idle = 0 if starts or cluster.arrays.nb_queued == 0 else self._idle + 1
        if self._idle > _PATIENCE:
            raise PolicyError(f"t={cluster.now:g} s: asked {_PATIENCE} times, and jobs still wait")


def _changed(before: Sequence[bytes], arrays: Bundle) -> list[str]:
    """The fields whose values are others now; 0 and -0 are the same."""
    pairs = ((field, was, now) for was, (field, now) in zip(before, arrays.arrays().items(), strict=True))
    return [field for field, was, now in pairs if was != now.tobytes() and not _same(was, now)]


def _same(was: bytes, now: NDArray[Any]) -> bool:
    return np.array_equal(np.frombuffer(was, now.dtype), now.ravel(), equal_nan=True)


# --- The trials ---------------------------------------------------------------------------------------------------


def trials(without_walltime: bool) -> Iterator[Trial]:
    """All of them; the one whose jobs have no walltime only for policies that need none."""
    rng = np.random.default_rng(2)
    small, large = _platform(4), _platform(16)
    yield Trial(name="one job", platform=small, workload=_workload([(1.0, 2, 10.0, 20.0)]))
    ties = [(float(i // 10), int(rng.integers(1, 9)), float(rng.integers(1, 6)), 5.0) for i in range(60)]
    yield Trial(name="many things at one instant", platform=large, workload=_workload(ties))
    early = [(i * 3.0, int(rng.integers(1, 17)), rng.uniform(1, 30), 60.0) for i in range(80)]
    yield Trial(name="jobs that end early", platform=large, workload=_workload(early))
    late = [(i * 3.0, int(rng.integers(1, 17)), rng.uniform(20, 90), 50.0) for i in range(40)]
    yield Trial(name="jobs that reach their walltime", platform=large, workload=_workload(late))
    burst = [(0.0, int(rng.integers(1, 5)), rng.uniform(1, 10), 10.0) for _ in range(300)]
    yield Trial(name="300 jobs at once on 4 hosts", platform=small, workload=_workload(burst))
    wide = [(i * 2.0, 16 if i % 3 == 0 else 1, 10.0, 12.0) for i in range(40)]
    yield Trial(name="jobs as large as the platform", platform=large, workload=_workload(wide))
    away = (
        MachineEvent(timestamp=20.0, type="machine_unavailable", hosts=(0, 1, 2, 3, 4, 5)),
        MachineEvent(timestamp=300.0, type="machine_available", hosts=(0, 1, 2, 3, 4, 5)),
    )
    yield Trial(name="hosts that leave and return", platform=large, workload=_workload(early), events=away)
    sparse = [(i * 200.0, int(rng.integers(1, 5)), rng.uniform(1, 100), 120.0) for i in range(20)]
    yield Trial(name="hosts that can sleep", platform=_platform(4, True), workload=_workload(sparse), energy=True)
    if without_walltime:
        endless = [(i * 3.0, int(rng.integers(1, 17)), rng.uniform(1, 30), math.inf) for i in range(40)]
        yield Trial(name="jobs without walltime", platform=large, workload=_workload(endless))


def _workload(jobs: list[tuple[float, int, float, float]]) -> Workload:
    """From (submission, hosts, runtime, walltime), times in seconds."""
    return Workload(
        name="w0",
        jobs=[
            Job(id=f"w0!{i}", submit_time=submit, size=size, walltime=walltime, profile=f"p{i}")
            for i, (submit, size, _, walltime) in enumerate(jobs)
        ],
        profiles={f"p{i}": Delay(duration=runtime) for i, (_, _, runtime, _) in enumerate(jobs)},
        nb_res=max(job[1] for job in jobs),
    )


def _platform(hosts: int, sleeps: bool = False) -> Platform:
    """Equal hosts; those that sleep take 5 s to fall asleep and 20 s to wake."""
    awake = PowerState(speed=1e9, idle=95.0, epsilon=95.0, full=190.0)
    asleep, down, up = (
        PowerState(speed=s, idle=w, epsilon=w, full=w) for s, w in ((1e9, 9.0), (0.2, 100.0), (0.05, 125.0))
    )
    return Platform(
        hosts=tuple(
            Host(
                id=i,
                name=f"host-{i:02}",
                pstates=(awake, asleep, down, up) if sleeps else (awake,),
                sleep=(SleepState(pstate=1, switch_off=2, switch_on=3),) if sleeps else (),
                has_power=True,
            )
            for i in range(hosts)
        )
    )
