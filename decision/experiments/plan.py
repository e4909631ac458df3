"""What is compared, and the runs that follow: what each reads and depends on, and the inputs that it simulates."""

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.batsim.process import find_batsim
from decision.experiments import Engine
from decision.files.workload import Selection
from decision.model.columns import JobColumns
from decision.model.computer import check_memory
from decision.model.dates import BusyDay, chosen_days, of_day
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.reshape import shaken
from decision.model.workload import Job, Workload
from decision.policies.registry import without_estimate
from decision.policies.runtimes.predictors import with_estimates
from decision.policies.traits import ESTIMATE, OUTLOOK_OPTIONS

from .audit import RECORDED
from .inputs import Inputs, LoadedInputs, PolicyChoice, load_inputs, option_files
from .own_metrics import OwnMetric
from .tasks import file_digest

# What is compared: a plan of policies, workloads, engines, windows and seeds, and the contenders that it names.


class ComparisonPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared: policies on workloads, and in which kind of runs."""

    platform: Path
    workloads: tuple[Path, ...]  # one after the other, not together
    policies: tuple[str, ...]  # their names in the comparison
    specs: dict[str, str] = {}  # what those of them are that have a name of their own, by name
    own: dict[str, Any] = {}  # those of them that are objects, by name
    settings: dict[str, str] = {}  # options of every policy
    engines: tuple[Engine, ...] = (Engine.EMBEDDED,)  # not DOCKER: an image has no content to hash
    batsim: str = "batsim"  # the command
    energy: bool = False
    events: tuple[Path, ...] = ()  # external ones, of every run
    selection: Selection = Selection()  # of each workload
    windows: int = 0  # random sequences of jobs of each workload; 0 takes the whole workload
    length: int = 1024  # jobs in a window
    draw: int = 0  # seed of the windows
    shake: int = 0  # shaken copies on which whole workloads are judged; 0 runs each once, as it is
    days: tuple[int, int | None] | None = None  # those of the days with two submissions or more; each is run alone
    seeds: int = 1  # of the policies, 0, 1, ...
    timeout: float = 0.0  # seconds to wait for Batsim
    decide_limit: float = 0.0  # as of `PolicyChoice`
    worth: bool = False  # whether each policy is compared with itself by walltimes and by perfect predictions, too
    feedback: bool = False  # whether users' later sessions come when their earlier jobs have ended
    own_metrics: tuple[OwnMetric, ...] = ()  # of the user, besides those that are known


class Contender(NamedTuple):
    """A policy that is compared."""

    name: str
    policy: str
    settings: dict[str, str]
    perfect: bool = False  # whether its jobs say their own run times


_PERFECT = " (perfect)"  # what the name of a policy with perfect predictions ends with


def contenders(plan: ComparisonPlan) -> list[Contender]:
    """The policies of a plan; where their worth is asked for, with their twins."""
    every = [Contender(policy, spec_of(plan, policy), plan.settings) for policy in plan.policies]
    if plan.worth:
        every += [twin for policy in simulated(plan) for twin in twins(plan, policy)]
    return list({each.name: each for each in every}.values())


def spec_of(plan: ComparisonPlan, policy: str) -> str:
    """What a policy of the plan is, as users name it."""
    return plan.specs.get(policy, policy)


def simulated(plan: ComparisonPlan) -> list[str]:
    """The policies that are simulated."""
    return [policy for policy in plan.policies if policy != RECORDED]


def twins(plan: ComparisonPlan, policy: str) -> tuple[Contender, Contender]:
    """A policy by walltimes, and by perfect predictions."""
    plain = without_estimate(spec_of(plan, policy))
    settings = {name: value for name, value in plan.settings.items() if name not in OUTLOOK_OPTIONS}
    contender = Contender(plain, plain, settings)
    if ESTIMATE in plan.settings:
        contender = contender._replace(name=f"{plain},estimate=walltime", policy=f"{plain},estimate=walltime")
    return contender, Contender(plain + _PERFECT, f"{plain},estimate=given", settings, perfect=True)


def contender(plan: ComparisonPlan, policy: str, engine: Engine) -> str:
    """A policy's name in a comparison: with its engine where there are several."""
    return policy if len(plan.engines) == 1 else f"{policy} @{engine}"


def find_baseline(plan: ComparisonPlan, name: str | None) -> str:
    """The contender that is called `name`, or is that policy on the first engine; the first of all if None.

    Raises:
        ConfigError: if it is unknown.
    """
    names = [each.name for each in contenders(plan)]
    name = next((shown for shown, spec in plan.specs.items() if spec == name), name)
    every = [contender(plan, policy, engine) for policy in names for engine in plan.engines]
    first = [contender(plan, policy, plan.engines[0]) for policy in names]
    named = dict(zip(names, first, strict=True)) | dict(zip(every, every, strict=True))
    if name is None:
        return every[0]
    if name not in named:
        compared = ", ".join(every)
        raise ConfigError(f"the baseline {name!r} is not compared (compared are {compared})", field="baseline")
    return named[name]


def workload_name(plan: ComparisonPlan, path: Path) -> str:
    """A workload's name in a comparison: its file's, or the path where several have that."""
    namesakes = sum(other.stem == path.stem for other in plan.workloads)
    return path.stem if namesakes == 1 else str(path)


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
    own_metrics: tuple[OwnMetric, ...] = ()
    digests: tuple[str, ...]  # of the files: platform, workload, the policy's own, Batsim's

    @property
    def title(self) -> str:
        """The task as progress and failures name it."""
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
            **({"metrics": [each.definition() for each in self.own_metrics]} if self.own_metrics else {}),
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
        own_metrics=plan.own_metrics,
        digests=tuple(map(digest_of, _files(inputs, choice, batsim))),
    )


def _files(inputs: Inputs, choice: PolicyChoice, batsim: str) -> list[Path]:
    """The files of a run: platform, workload, events, the policy's own and those of its options, Batsim's."""
    files = [*([inputs.platform] if inputs.platform else []), *inputs.workloads, *inputs.events]
    code = choice.spec.file if choice.own is None else None
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
