"""Policies x workloads x engines x runs: what `decision compare` runs side by side."""

import functools
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from decision.analysis.batsim_files import read_run
from decision.analysis.comparison import Outcome
from decision.analysis.measures import measure
from decision.formats import write_workload
from decision.jit import is_warm
from decision.model.errors import ConfigError, DecisionError
from decision.model.record import RunRecord
from decision.model.workload import Workload
from decision.policies import ComposedPolicy, find_policy

from .inputs import Case, Choice, Inputs, SwfOptions, load, writable_folder
from .kept import Result, digest
from .pybatsim import PREFIX
from .side_by_side import do_all
from .whole_run import find_batsim, run_there, simulate_here

EngineName = Literal["embedded", "reference", "batsim"]
Progress = Callable[[int, int], None]

_RUNS = "runs"  # folder of the results that are kept


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared."""

    platform: Path
    workloads: tuple[Path, ...]  # one after the other, not together
    policies: tuple[str, ...]
    settings: dict[str, str] = {}  # options of every policy
    engines: tuple[EngineName, ...] = ("embedded",)
    batsim: str = "batsim"  # the command
    energy: bool = False
    swf: SwfOptions = SwfOptions()
    windows: int = 0  # random sequences of jobs of each workload; 0 takes the whole workload
    length: int = 1024  # jobs in a window
    draw: int = 0  # seed of the windows
    seeds: int = 1  # of the policies, 0, 1, ...
    timeout: float = 0.0  # seconds to wait for Batsim


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison."""

    inputs: Inputs
    choice: Choice
    engine: EngineName
    batsim: str
    window: tuple[int, int] | None  # first job and number of jobs, in order of submission
    timeout: float
    digests: tuple[str, ...]  # of the files: platform, workload, the policy's own, Batsim's

    def definition(self) -> dict[str, Any]:
        """All that the result depends on."""
        return {
            "policy": self.choice.policy,
            "settings": self.choice.settings,
            "seed": self.choice.seed,
            "engine": self.engine,
            "energy": self.inputs.energy,
            "nodes": self.inputs.swf.nodes,
            "walltime": self.inputs.swf.walltime,
            "window": self.window,
            "digests": self.digests,
        }


def run_comparison(
    plan: Plan, folder: Path, *, processes: int = 1, progress: Progress = lambda done, of: None
) -> list[Outcome]:
    """Do all runs of a plan that are not kept in ``folder/runs`` yet.

    The windows are drawn once for each workload, so that every policy gets the same; times in a window are those of
    the workload.

    Raises:
        ConfigError: if the plan makes no sense, before anything is run.
        PolicyError, PeerError: if a run fails; what has been finished is kept.
        Interrupted: if a signal asked for the end; likewise.
    """
    kinds = {(p, engine): _kind(p, plan.settings, engine) for p in plan.policies for engine in plan.engines}
    runs = _runs(plan)
    kept = writable_folder(folder / _RUNS)
    first = {kind: run for run in reversed(runs) if not is_warm(kind := kinds[run.choice.policy, run.engine])}
    results = do_all(simulate, runs, kept, processes=processes, first=list(first.values()), progress=progress)
    return [_outcome(plan, run, result) for run, result in zip(runs, results, strict=True)]


def simulate(run: Run) -> Result:
    """All metrics of one run, by name.

    Raises:
        DecisionError: of the kind that the run failed with; the message names the run.
    """
    try:
        case = _case(run)
        record = _run_batsim(case, run) if run.engine == "batsim" else _run_here(case, run)
    except DecisionError as error:
        raise type(error)(f"{_name(run)}: {error}") from None
    users = {job.id: job.user for job in case.workloads[0].jobs}
    return measure(record, case.platform, users)


def _run_here(case: Case, run: Run) -> RunRecord:
    return simulate_here(case, run.choice, reference=run.engine == "reference")


def _run_batsim(case: Case, run: Run) -> RunRecord:
    with tempfile.TemporaryDirectory(prefix="decision-") as folder:
        path = Path(folder) / "workload.json"
        write_workload(path, case.workloads[0])
        written = msgspec.structs.replace(case, inputs=msgspec.structs.replace(case.inputs, workloads=(path,)))
        run_there(written, run.choice, Path(folder), run.batsim, timeout=run.timeout)
        return read_run(folder)


def _name(run: Run) -> str:
    jobs = f" jobs {run.window[0]}:{sum(run.window)}" if run.window else ""
    return f"{run.choice.policy} on {run.inputs.workloads[0]}{jobs}, seed {run.choice.seed}"


def _outcome(plan: Plan, run: Run, result: Result) -> Outcome:
    path = run.inputs.workloads[0]
    namesakes = sum(other.stem == path.stem for other in plan.workloads)
    return Outcome(
        workload=path.stem if namesakes == 1 else str(path),
        contender=contender(plan, run.choice.policy, run.engine),
        first_job=run.window[0] if run.window else 0,
        seed=run.choice.seed,
        metrics={name: math.nan if value is None else value for name, value in result.items()},  # JSON knows no nan
    )


def contender(plan: Plan, policy: str, engine: EngineName) -> str:
    """What a policy is called in a comparison: with its engine where there are several."""
    return policy if len(plan.engines) == 1 else f"{policy} @{engine}"


def find_baseline(plan: Plan, name: str | None) -> str:
    """The contender that is called `name`, or is that policy on the first engine; the first of all if None.

    Raises:
        ConfigError: if there is none.
    """
    every = [contender(plan, policy, engine) for policy in plan.policies for engine in plan.engines]
    first = [contender(plan, policy, plan.engines[0]) for policy in plan.policies]
    named = dict(zip(plan.policies, first, strict=True)) | dict(zip(every, every, strict=True))
    if name is None:
        return every[0]
    if name not in named:
        raise ConfigError(f"--baseline {name}: is not compared (compared are {', '.join(every)})")
    return named[name]


# --- What there is to run ---------------------------------------------------------------------------------------------


def _runs(plan: Plan) -> list[Run]:
    """All runs, those of one window together."""
    name = functools.cache(digest)
    return [
        _run(plan, workload, engine, window, Choice(policy=policy, settings=plan.settings, seed=seed), name)
        for workload in plan.workloads
        for window in _windows(plan, workload)
        for seed in range(plan.seeds)
        for policy in plan.policies
        for engine in plan.engines
    ]


def _run(
    plan: Plan,
    workload: Path,
    engine: EngineName,
    window: tuple[int, int] | None,
    choice: Choice,
    name: Callable[[Path], str],
) -> Run:
    files = [plan.platform, workload]
    own = Path(re.split("[:,]", choice.policy)[0])  # ./mine.py:Class, run.ckpt
    if own.is_file():
        files.append(own)
    batsim = find_batsim(plan.batsim) if engine == "batsim" else ""
    if batsim:
        files.append(Path(batsim))
    return Run(
        inputs=_inputs(plan, workload),
        choice=choice,
        engine=engine,
        batsim=batsim,
        window=window,
        timeout=plan.timeout,
        digests=tuple(map(name, files)),
    )


def _inputs(plan: Plan, workload: Path) -> Inputs:
    return Inputs(platform=plan.platform, workloads=(workload,), energy=plan.energy, swf=plan.swf)


def _windows(plan: Plan, workload: Path) -> Sequence[tuple[int, int] | None]:
    """The windows of a workload, first job and number of jobs; None is all of it."""
    if not plan.windows:
        return [None]
    jobs = len(load(_inputs(plan, workload)).workloads[0].jobs)
    if jobs < plan.length:
        raise ConfigError(f"{workload}: has {jobs} jobs, too few for windows of {plan.length}")
    starts = np.random.default_rng(plan.draw).integers(0, jobs - plan.length + 1, plan.windows)
    return [(int(start), plan.length) for start in starts]


@functools.lru_cache(maxsize=8)
def _whole_case(inputs: Inputs, digests: tuple[str, ...]) -> Case:
    """What is simulated, read once in each process for the same content."""
    return load(inputs)


def _case(run: Run) -> Case:
    case = _whole_case(run.inputs, run.digests[:2])
    if run.window is None:
        return case
    return msgspec.structs.replace(case, workloads=[cut(case.workloads[0], *run.window)])


def cut(workload: Workload, first: int, length: int) -> Workload:
    """The jobs from number `first` on, in order of submission; their times stay."""
    jobs = sorted(workload.jobs, key=lambda job: job.submit_time)[first : first + length]
    return msgspec.structs.replace(workload, jobs=jobs)


def _kind(policy: str, settings: dict[str, str], engine: EngineName) -> str:
    """The outermost compiled function of such runs. Raises ConfigError if there is no such policy."""
    if policy.startswith(PREFIX):
        return "server.advance"
    if not isinstance(find_policy(policy, settings), ComposedPolicy):
        return "check.first_fault"
    return "episode.run_episode" if engine == "embedded" else "decider._decide_and_check"
