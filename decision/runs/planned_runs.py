"""The runs of a plan: which there are, what each reads and depends on, and the inputs that it simulates."""

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.analysis.recorded import RECORDED
from decision.batsim.process import find_batsim
from decision.computer.room import check_memory
from decision.estimates.history import with_estimates
from decision.model.columns import JobColumns
from decision.model.dates import BusyDay, chosen_days, of_day
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.resample import shaken
from decision.model.workload import Job, Workload

from . import Engine
from .chunks import file_digest
from .comparison_plan import ComparisonPlan, Contender, contenders
from .inputs import Inputs, LoadedInputs, PolicyChoice, load_inputs, option_files, policy_file

_RUN_SIZE = 2000.0  # bytes that are kept of a run
_MOST_REPEATED = 1000  # windows, also of a workload that has fewer different ones


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison."""

    inputs: Inputs
    choice: PolicyChoice
    engine: Engine
    batsim: str
    window: tuple[int, int] | None  # first job and number of jobs, in order of submission
    midnight: float | None  # seconds: when the day begins that is run alone
    timeout: float
    name: str  # of the contender
    perfect: bool
    near_record: bool  # whether it is compared with what really happened
    copy: int  # of a workload that is judged whole, shaken; 0 for the workload as it is
    digests: tuple[str, ...]  # of the files: platform, workload, the policy's own, Batsim's

    @property
    def title(self) -> str:
        """For people."""
        jobs = f" jobs {self.window[0]}:{sum(self.window)}" if self.window else ""
        copy = f", copy {self.copy}" if self.copy else ""
        return f"{self.name} on {self.inputs.workloads[0]}{jobs}{copy}, seed {self.choice.seed}"

    def files(self) -> list[tuple[Path, str]]:
        """What it reads, each with its digest."""
        return list(zip(_files(self.inputs, self.choice, self.batsim), self.digests, strict=True))

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        return {
            "policy": self.choice.policy,
            "settings": self.choice.settings,
            "seed": self.choice.seed,
            "engine": self.engine,
            "energy": self.inputs.energy,
            "selection": self.inputs.selection.facts(),
            "window": self.window,
            "perfect": self.perfect,
            "digests": self.digests,
            **({} if self.midnight is None else {"midnight": self.midnight}),
            **({"near_record": True} if self.near_record else {}),
            **({"copy": self.copy} if self.copy else {}),
            **({"feedback": True} if self.inputs.feedback else {}),
            **({} if self.choice.own is None else {"own": id(self.choice.own)}),  # nothing knows it in another process
        }


class PlannedRuns(Collection[ComparedRun]):
    """All runs of a plan, those of one window together; made log by log, each time that they are gone through.

    Raises:
        ConfigError: if a file or the plan is not valid.
    """

    def __init__(self, plan: ComparisonPlan) -> None:
        self._plan, self._contenders = plan, contenders(plan)
        self._copies = range(1, plan.shake + 1) if plan.shake else range(1)
        self._each = plan.seeds * len(self._contenders) * len(plan.engines) * len(self._copies)  # runs of a window
        self._digest_of = functools.cache(file_digest)
        check_memory("runs", len(self), _RUN_SIZE)

    def __len__(self) -> int:
        return self._each * sum(len(_windows(self._plan, workload)) for workload in self._plan.workloads)

    def __iter__(self) -> Iterator[ComparedRun]:
        plan = self._plan
        for workload in plan.workloads:
            for window, midnight in _windows(plan, workload):
                for copy, seed in itertools.product(self._copies, range(plan.seeds)):
                    for each, engine in itertools.product(self._contenders, plan.engines):
                        part = _Part(window, midnight, copy)
                        yield _run(plan, workload, engine, part, each, seed, self._digest_of)

    def __contains__(self, run: object) -> bool:
        return any(run == each for each in self)


def _run(
    plan: ComparisonPlan,
    workload: Path,
    engine: Engine,
    part: "_Part",
    each: Contender,
    seed: int,
    digest_of: Callable[[Path], str],
) -> ComparedRun:
    inputs, own = inputs_for(plan, workload), plan.own.get(each.policy)
    batsim = find_batsim(plan.batsim) if engine is Engine.BATSIM else ""
    choice = PolicyChoice(
        policy=each.policy, settings=each.settings, seed=seed, decide_limit=plan.decide_limit, own=own
    )
    return ComparedRun(
        inputs=inputs,
        choice=choice,
        engine=engine,
        batsim=batsim,
        window=part.window,
        midnight=part.midnight,
        copy=part.copy,
        timeout=plan.timeout,
        name=each.name,
        perfect=each.perfect,
        near_record=RECORDED in plan.policies,
        digests=tuple(map(digest_of, _files(inputs, choice, batsim))),
    )


def _files(inputs: Inputs, choice: PolicyChoice, batsim: str) -> list[Path]:
    """The files of a run: platform, workload, events, the policy's own and those of its options, Batsim's."""
    files = [*([inputs.platform] if inputs.platform else []), *inputs.workloads, *inputs.events]
    code = policy_file(choice.policy) if choice.own is None else None
    files += [] if code is None else [code]
    return [*files, *option_files(choice), *([Path(batsim)] if batsim else [])]


def inputs_for(plan: ComparisonPlan, workload: Path) -> Inputs:
    return Inputs(
        platform=plan.platform,
        workloads=(workload,),
        events=plan.events,
        energy=plan.energy,
        selection=plan.selection,
        feedback=plan.feedback,
    )


class _Part(NamedTuple):
    """What is run of a workload."""

    window: tuple[int, int] | None
    midnight: float | None
    copy: int


_Window = tuple[tuple[int, int] | None, float | None]


def _windows(plan: ComparisonPlan, workload: Path) -> Sequence[_Window]:
    """The windows of a workload: first job and number of jobs, None for all of it; and of a day its midnight."""
    if plan.days is not None:
        days = chosen_days(workload_case(plan, workload).workloads[0], slice(*plan.days))
        return [((day.first, day.jobs), day.midnight) for day in days]
    if not plan.windows:
        return [(None, None)]
    jobs = len(workload_case(plan, workload).workloads[0].jobs)
    if jobs < plan.length:
        raise ConfigError(f"{workload}: has {jobs} jobs, too few for windows of {plan.length}")
    different = jobs - plan.length + 1
    if plan.windows > max(different, _MOST_REPEATED):
        there_are = f"there are {different:,} different sequences of {plan.length:,} jobs"
        most = max(different, _MOST_REPEATED)
        raise ConfigError(f"{workload}: {there_are}; choose at most {most:,} windows", field="windows")
    starts = np.random.default_rng(plan.draw).integers(0, different, plan.windows)
    return [((int(start), plan.length), None) for start in starts]


def workload_case(plan: ComparisonPlan, workload: Path) -> LoadedInputs:
    inputs = inputs_for(plan, workload)
    return whole_case(inputs, tuple(map(file_digest, (plan.platform, workload, *plan.events))))


@functools.lru_cache(maxsize=8)
def whole_case(inputs: Inputs, digests: tuple[str, ...]) -> LoadedInputs:
    """What is simulated, jobs in order of submission, read once in each process for the same content."""
    case = load_inputs(inputs)
    jobs = case.workloads[0].jobs
    if isinstance(jobs, JobColumns):
        ordered: Sequence[Job] = jobs.take(np.argsort(jobs.submit_time, kind="stable"))
    else:
        ordered = sorted(jobs, key=lambda job: job.submit_time)
    return replace(case, workloads=[replace(case.workloads[0], jobs=ordered)])


def inputs_of(run: ComparedRun) -> LoadedInputs:
    """What a run simulates, read from its files. Raises InputError."""
    case = whole_case(run.inputs, run.digests[: 2 + len(run.inputs.events)])
    workload = case.workloads[0]
    if run.midnight is not None and run.window is not None:
        workload = of_day(workload, BusyDay(run.midnight, *run.window))
    elif run.window is not None:
        workload = cut(workload, *run.window)
    elif run.choice.policy != RECORDED:  # what really happened cannot be shaken
        workload = shaken(workload, run.copy)
    if run.perfect:
        workload = with_estimates(workload, runtimes(workload, fastest_speed(case)))
    return replace(case, workloads=[workload])


def cut(workload: Workload, first: int, length: int) -> Workload:
    """`length` jobs from number `first` on, of a workload whose jobs are in order of submission; their times stay."""
    return replace(workload, jobs=workload.jobs[first : first + length])


def fastest_speed(case: LoadedInputs) -> float:
    """flop/s of the fastest host."""
    return max(host.pstates[host.initial_pstate].speed for host in case.platform.hosts)
