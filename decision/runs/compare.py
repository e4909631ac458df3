"""``decision compare``: a plan (policies x workloads x engines x windows x seeds), its runs, and their metrics."""

import datetime
import functools
import itertools
import math
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.analysis.comparison import MeasuredRun, PolicyComparison
from decision.analysis.metric_list import measure_run
from decision.analysis.recorded import RECORDED, agreement, recorded_jobs, standing
from decision.analysis.whole import LogPart, judge_run, part_of
from decision.batsim.process import find_batsim
from decision.compiling.jit import is_warm
from decision.computer.room import check_memory
from decision.estimates.history import with_estimates
from decision.formats import write_workload
from decision.formats.input_facts import file_facts
from decision.formats.outputs_read import read_run_record
from decision.formats.selection import Selection
from decision.formats.workload import is_log
from decision.model.columns import JobColumns, columns_of
from decision.model.dates import DAY_LEAD, BusyDay, chosen_days, of_day
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.errors import ConfigError, DecisionError
from decision.model.record import RunRecord
from decision.model.resample import shaken
from decision.model.reshape import dropped_text
from decision.model.sessions import find_sessions
from decision.model.workload import Job, Workload
from decision.policies.outlook import ESTIMATE
from decision.policies.outlook import OUTLOOK_OPTIONS as OUTLOOK_OPTIONS
from decision.policies.registry import without_estimate

from . import Engine
from .chunks import file_digest
from .engines import compiled_kernels
from .inputs import (
    Inputs,
    LoadedInputs,
    PolicyChoice,
    load_inputs,
    one_speed,
    option_files,
    policy_file,
    writable_folder,
)
from .run import RealBatsim, run_inputs, run_to_folder
from .store import Result
from .tasks import How, Progress, run_tasks

RUNS = "runs"  # folder of the cached results

_RUN_SIZE = 2000.0  # bytes that are kept of a run
_MOST_REPEATED = 1000  # windows, also of a workload that has fewer different ones


class ComparisonPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared."""

    platform: Path
    workloads: tuple[Path, ...]  # one after the other, not together
    policies: tuple[str, ...]
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


class Contender(NamedTuple):
    """A policy that is compared."""

    name: str
    policy: str
    settings: dict[str, str]
    perfect: bool = False  # whether its jobs say their own run times


_PERFECT = " (perfect)"  # what the name of a policy with perfect predictions ends with


def contenders(plan: ComparisonPlan) -> list[Contender]:
    """The policies of a plan; where their worth is asked for, with their twins."""
    every = [Contender(policy, policy, plan.settings) for policy in plan.policies]
    if plan.worth:
        every += [twin for policy in simulated(plan) for twin in twins(plan, policy)]
    return list({each.name: each for each in every}.values())


def simulated(plan: ComparisonPlan) -> list[str]:
    """The policies that are simulated."""
    return [policy for policy in plan.policies if policy != RECORDED]


def twins(plan: ComparisonPlan, policy: str) -> tuple[Contender, Contender]:
    """A policy by walltimes, and by perfect predictions."""
    plain = without_estimate(policy)
    settings = {name: value for name, value in plan.settings.items() if name not in OUTLOOK_OPTIONS}
    own = Contender(plain, plain, settings)
    if ESTIMATE in plan.settings:
        own = own._replace(name=f"{plain},estimate=walltime", policy=f"{plain},estimate=walltime")
    return own, Contender(plain + _PERFECT, f"{plain},estimate=given", settings, perfect=True)


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
            "selection": msgspec.to_builtins(self.inputs.selection),
            "window": self.window,
            "perfect": self.perfect,
            "digests": self.digests,
            **({} if self.midnight is None else {"midnight": self.midnight}),
            **({"near_record": True} if self.near_record else {}),
            **({"copy": self.copy} if self.copy else {}),
            **({"feedback": True} if self.inputs.feedback else {}),
            **({} if self.choice.own is None else {"own": id(self.choice.own)}),  # nothing knows it in another process
        }


def read_workloads(plan: ComparisonPlan) -> list[Workload]:
    """The workloads, whole. Raises InputError, or ConfigError if the platform cannot be used."""
    cases = [_read(plan, workload) for workload in plan.workloads]
    for case in cases:
        if RECORDED in plan.policies:
            recorded_jobs(case.workloads[0])
        if plan.feedback:
            find_sessions(case.workloads[0], one_speed(case.platform))
    return [case.workloads[0] for case in cases]


def describe_setup(plan: ComparisonPlan, workloads: Sequence[Workload], command: str = "") -> dict[str, str]:
    """How a plan is run, in words: what was chosen, and as what.

    Args:
        plan: what is compared.
        workloads: those of `read_workloads`.
        command: what the user typed.
    """
    files = list(zip(plan.workloads, workloads, strict=True))
    facts = {
        "command": command,
        "platform": f"{plan.platform} (sha256 {file_facts(plan.platform).sha256})",
        "workloads": ", ".join(
            f"{path} ({len(workload.jobs):,} jobs, sha256 {file_facts(path).sha256})" for path, workload in files
        ),
        **{f"left out of {path}": dropped_text(workload) for path, workload in files if workload.dropped},
        "jobs": _describe_windows(plan),
        "policies": "; ".join(plan.policies),
        "options of every policy": ", ".join(f"{name}={value}" for name, value in plan.settings.items()),
        "seeds of the policies": "0" if plan.seeds == 1 else f"0 to {plan.seeds - 1}",
        "engine": ", ".join(plan.engines),
        "energy": "simulated" if plan.energy else "not simulated",
        "external events": ", ".join(f"{path} (sha256 {file_facts(path).sha256})" for path in plan.events),
        **{f"notes on {path}": "; ".join(workload.notes) for path, workload in files if workload.notes},
        "jobs left out": _describe_sizes(plan, workloads),
        "walltimes": _describe_walltimes(plan, workloads),
        "submissions": "users' later sessions by the ends of their earlier jobs (feedback)" if plan.feedback else "",
        "package": f"decision {__version__}",
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
    }
    return {name: text for name, text in facts.items() if text}


def _describe_windows(plan: ComparisonPlan) -> str:
    cut = plan.selection.jobs != (0, None)
    if plan.days is not None:
        first, last = plan.days
        which = f"days {first}:{'' if last is None else last} of each workload, of those with two submissions or more"
        return f"{which}; each is a run of its own, which begins an hour before midnight and is counted from then on"
    among = f"jobs {plan.selection.texts()['jobs']} of each workload" if cut else "each workload"
    if not plan.windows:
        every = among if cut else f"all of {among}"
        return f"{every}, on {plan.shake:,} copies with shaken submissions" if plan.shake else every
    each = f"{plan.windows:,} random sequences of {plan.length:,} jobs of {among.removeprefix('jobs ')}"
    return f"{each}, drawn with seed {plan.draw}, the same for all policies"


def _describe_sizes(plan: ComparisonPlan, workloads: Sequence[Workload]) -> str:
    if plan.selection.nodes is not None:
        return f"those larger than {plan.selection.nodes:,} hosts"
    return "of logs, those larger than the machine in the header" if any(map(is_log, workloads)) else ""


def _describe_walltimes(plan: ComparisonPlan, workloads: Sequence[Workload]) -> str:
    if plan.selection.walltime == "requested" and not any(map(is_log, workloads)):
        return ""
    field = plan.selection.time_field
    return plan.selection.walltime + ("" if field is None else f", those of logs in field {field}")


def contender(plan: ComparisonPlan, policy: str, engine: Engine) -> str:
    """A policy's name in a comparison: with its engine where there are several."""
    return policy if len(plan.engines) == 1 else f"{policy} @{engine}"


def find_baseline(plan: ComparisonPlan, name: str | None) -> str:
    """The contender that is called `name`, or is that policy on the first engine; the first of all if None.

    Raises:
        ConfigError: if it is unknown.
    """
    names = [each.name for each in contenders(plan)]
    every = [contender(plan, policy, engine) for policy in names for engine in plan.engines]
    first = [contender(plan, policy, plan.engines[0]) for policy in names]
    named = dict(zip(names, first, strict=True)) | dict(zip(every, every, strict=True))
    if name is None:
        return every[0]
    if name not in named:
        compared = ", ".join(every)
        raise ConfigError(f"the baseline {name!r} is not compared (compared are {compared})", field="baseline")
    return named[name]


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
    inputs, own = _inputs(plan, workload), plan.own.get(each.policy)
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


def _inputs(plan: ComparisonPlan, workload: Path) -> Inputs:
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
        days = chosen_days(_read(plan, workload).workloads[0], slice(*plan.days))
        return [((day.first, day.jobs), day.midnight) for day in days]
    if not plan.windows:
        return [(None, None)]
    jobs = len(_read(plan, workload).workloads[0].jobs)
    if jobs < plan.length:
        raise ConfigError(f"{workload}: has {jobs} jobs, too few for windows of {plan.length}")
    different = jobs - plan.length + 1
    if plan.windows > max(different, _MOST_REPEATED):
        there_are = f"there are {different:,} different sequences of {plan.length:,} jobs"
        most = max(different, _MOST_REPEATED)
        raise ConfigError(f"{workload}: {there_are}; choose at most {most:,} windows", field="windows")
    starts = np.random.default_rng(plan.draw).integers(0, different, plan.windows)
    return [((int(start), plan.length), None) for start in starts]


def _read(plan: ComparisonPlan, workload: Path) -> LoadedInputs:
    inputs = _inputs(plan, workload)
    return _whole_case(inputs, tuple(map(file_digest, (plan.platform, workload, *plan.events))))


@functools.lru_cache(maxsize=8)
def _whole_case(inputs: Inputs, digests: tuple[str, ...]) -> LoadedInputs:
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
    case = _whole_case(run.inputs, run.digests[: 2 + len(run.inputs.events)])
    workload = case.workloads[0]
    if run.midnight is not None and run.window is not None:
        workload = of_day(workload, BusyDay(run.midnight, *run.window))
    elif run.window is not None:
        workload = cut(workload, *run.window)
    elif run.choice.policy != RECORDED:  # what really happened cannot be shaken
        workload = shaken(workload, run.copy)
    if run.perfect:
        workload = with_estimates(workload, runtimes(workload, _fastest(case)))
    return replace(case, workloads=[workload])


def cut(workload: Workload, first: int, length: int) -> Workload:
    """`length` jobs from number `first` on, of a workload whose jobs are in order of submission; their times stay."""
    return replace(workload, jobs=workload.jobs[first : first + length])


def run_comparison(
    plan: ComparisonPlan, folder: Path, *, progress: Progress = lambda done, of: None, **how: Unpack[How]
) -> list[MeasuredRun]:
    """Do all runs of a plan that have no result in ``folder/runs`` yet; `how` is that of `run_tasks`.

    The windows are drawn once for each workload, so that every policy gets the same; times in a window are those of
    the workload.

    Raises:
        ConfigError: if the plan is not valid, before anything is run.
        RunsFailedError: if runs have failed, when all others are done; these stay in the folder.
        Interrupted: if a signal asked for the end; likewise.
    """
    if Engine.DOCKER in plan.engines:
        raise ConfigError("a comparison cannot run Batsim in Docker; choose another engine", field="engine")
    if plan.feedback and plan.days is not None:
        raise ConfigError("days are run alone, and sessions reach over them; leave feedback or days out")
    if plan.events and (plan.windows or plan.days is not None):
        raise ConfigError("external events have their times in whole workloads; leave them or the parts out")
    kernels = {
        (each.name, engine): compiled_kernels(engine, each.policy, each.settings)
        for each in contenders(plan)
        if each.policy not in plan.own
        for engine in plan.engines
    }
    runs, results_folder = PlannedRuns(plan), writable_folder(folder / RUNS)
    first = _compiling(runs, kernels)
    results = run_tasks(perform_run, runs, results_folder, first=first, progress=progress, **how)
    return [outcome_of(plan, run, result) for run, result in zip(runs, results, strict=True)]


def perform_run(run: ComparedRun) -> Result:
    """The metrics of one run by name, those that have a value.

    Raises:
        DecisionError: of the kind that the run failed with; the message names the run.
    """
    try:
        case = inputs_of(run)
        in_batsim = bool(run.batsim) and run.choice.policy != RECORDED
        record = _run_batsim(case, run) if in_batsim else run_inputs(case, run.choice, engine=run.engine)
    except DecisionError as error:
        error.args = (f"{run.title}: {error}",)
        raise
    digests = run.digests[: 2 + len(run.inputs.events)]
    begin = None if run.midnight is None else DAY_LEAD
    metrics = measure_run(record, case.platform, *_known_of_jobs(run.inputs, digests), begin)
    if run.near_record and run.choice.policy != RECORDED:
        metrics |= agreement(record, inputs_of(msgspec.structs.replace(run, copy=0)).workloads[0])
    if not run.copy:
        return _known(metrics)
    part = _counted_part(run.inputs, digests)
    judged = judge_run(record.jobs, part, len(case.platform.hosts))
    return {**_known(metrics | judged.metrics), _WITHOUT: judged.without, _SCHEDULE: judged.schedule}


def _known(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not math.isnan(value)}


COPIES = 10  # shaken ones of a whole workload, by default
_WITHOUT, _SCHEDULE = "without", "schedule"  # in the result of a whole log's run, beside its metrics


@functools.lru_cache(maxsize=8)
def _counted_part(inputs: Inputs, digests: tuple[str, ...]) -> LogPart:
    return _part_of_case(_whole_case(inputs, digests))


def counted_part(plan: ComparisonPlan, workload: Path) -> LogPart:
    """The part of a workload that counts where it is judged whole."""
    return _part_of_case(_read(plan, workload))


def _part_of_case(case: LoadedInputs) -> LogPart:
    """The part of a case's first workload that counts; all of it where only Batsim knows how long its jobs run."""
    workload = case.workloads[0]
    try:
        seconds = runtimes(workload, _fastest(case))
    except ConfigError:
        seconds = np.zeros(len(workload.jobs))
    return part_of(submit_times(workload), sizes(workload), seconds)


def with_record(plan: ComparisonPlan, workloads: Sequence[Workload], comparison: PolicyComparison) -> PolicyComparison:
    """The comparison with how far what really happened can be compared, where it stands among the policies."""
    if RECORDED not in plan.policies:
        return comparison
    found = []
    for path, workload in zip(plan.workloads, workloads, strict=True):
        name = workload_name(plan, path)
        runs = [(run.contender, run.metrics) for run in comparison.outcomes if run.workload == name]
        found.append(standing(workload, name, runs))
    return replace(comparison, recorded=found)


@functools.lru_cache(maxsize=8)
def _known_of_jobs(inputs: Inputs, digests: tuple[str, ...]) -> tuple[Mapping[str, str], Mapping[str, float]]:
    """By id, of all jobs: who submitted each, and its run time on the fastest hosts, had it no need to communicate.

    No run time is there where only Batsim knows it.
    """
    case = _whole_case(inputs, digests)
    workload = case.workloads[0]
    jobs = columns_of(workload.jobs)
    ids = list(jobs.id)
    try:
        seconds = runtimes(workload, _fastest(case))
    except ConfigError:
        seconds = np.zeros(0)
    return dict(zip(ids, jobs.user, strict=True)), dict(zip(ids, seconds.tolist(), strict=len(seconds) > 0))


def _fastest(case: LoadedInputs) -> float:
    """flop/s of the fastest host."""
    return max(host.pstates[host.initial_pstate].speed for host in case.platform.hosts)


def _run_batsim(case: LoadedInputs, run: ComparedRun) -> RunRecord:
    with tempfile.TemporaryDirectory(prefix="decision-") as folder:
        path = Path(folder) / "workload.json"
        write_workload(path, replace(case.workloads[0], trace=None))  # what really happened is not for a scheduler
        written = replace(case, inputs=replace(case.inputs, workloads=(path,), selection=Selection()))
        batsim = RealBatsim(command=run.batsim, timeout=run.timeout)
        run_to_folder(written, run.choice, Path(folder), engine=run.engine, batsim=batsim)
        return read_run_record(folder)


def outcome_of(plan: ComparisonPlan, run: ComparedRun, result: Result) -> MeasuredRun:
    """A run and what it came to."""
    return MeasuredRun(
        workload=workload_name(plan, run.inputs.workloads[0]),
        contender=contender(plan, run.name, run.engine),
        first_job=run.window[0] if run.window else 0,
        seed=run.choice.seed,
        copy=run.copy,
        metrics={name: value for name, value in result.items() if name not in (_WITHOUT, _SCHEDULE)},
        without=result.get(_WITHOUT, {}),
        schedule=result.get(_SCHEDULE, ""),
    )


def workload_name(plan: ComparisonPlan, path: Path) -> str:
    """A workload's name in a comparison: its file's, or the path where several have that."""
    namesakes = sum(other.stem == path.stem for other in plan.workloads)
    return path.stem if namesakes == 1 else str(path)


def windows_of(plan: ComparisonPlan, workloads: Sequence[Workload]) -> tuple[int, dict[str, int]] | None:
    """The jobs in a window and in each workload, as `compare_runs` takes them; None where all of each is run."""
    if not plan.windows:
        return None
    sizes = zip(plan.workloads, workloads, strict=True)
    return plan.length, {workload_name(plan, path): len(workload.jobs) for path, workload in sizes}


def _compiling(
    runs: Iterable[ComparedRun], kernels: Mapping[tuple[str, Engine], list[Callable[..., Any]]]
) -> list[ComparedRun]:
    """The runs that compile what has not been compiled yet on this machine."""
    compiling, cold = [], {kernel for some in kernels.values() for kernel in some if not is_warm(kernel)}
    for run in runs if cold else ():
        compiled = cold.intersection(kernels.get((run.name, run.engine), ()))
        if compiled:
            compiling.append(run)
            cold -= compiled
    return compiling
