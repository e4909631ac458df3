"""What `decision compare` is to run: policies x workloads x engines x windows x seeds."""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.model.errors import ConfigError
from decision.model.reshape import dropped_text
from decision.model.workload import Workload

from .inputs import Case, Choice, Inputs, SwfOptions, is_swf, load
from .kept import digest
from .whole_run import find_batsim

EngineName = Literal["embedded", "reference", "batsim"]


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


def read_workloads(plan: Plan) -> list[Workload]:
    """The workloads, whole. Raises InputError, or ConfigError if the platform cannot be used."""
    return [_read(plan, workload).workloads[0] for workload in plan.workloads]


def describe_setup(plan: Plan, workloads: Sequence[Workload]) -> dict[str, str]:
    """How a plan is run, in words: what was chosen, and as what. `workloads` are those of `read_workloads`."""
    files = list(zip(plan.workloads, workloads, strict=True))
    facts = {
        "platform": str(plan.platform),
        "workloads": ", ".join(f"{path} ({len(workload.jobs):,} jobs)" for path, workload in files),
        **{f"left out of {path}": dropped_text(workload) for path, workload in files if workload.dropped},
        "jobs": _describe_windows(plan),
        "policies": "; ".join(plan.policies),
        "options of every policy": ", ".join(f"{name}={value}" for name, value in plan.settings.items()),
        "seeds of the policies": "0" if plan.seeds == 1 else f"0 to {plan.seeds - 1}",
        "engine": ", ".join(plan.engines),
        "energy": "simulated" if plan.energy else "not simulated",
        "logs (.swf)": _describe_logs(plan) if any(map(is_swf, plan.workloads)) else "",
        "package": f"decision {__version__}",
    }
    return {name: text for name, text in facts.items() if text}


def _describe_windows(plan: Plan) -> str:
    if not plan.windows:
        return "all of each workload"
    each = f"{plan.windows:,} random sequences of {plan.length:,} jobs of each workload"
    return f"{each}, drawn with seed {plan.draw}, the same for all policies"


def _describe_logs(plan: Plan) -> str:
    machine = "the machine in their header" if plan.swf.nodes is None else f"{plan.swf.nodes:,} hosts"
    return f"jobs larger than {machine} are left out; walltimes: {plan.swf.walltime}"


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


def runs_of(plan: Plan) -> list[Run]:
    """All runs of a plan, those of one window together. Raises ConfigError if a file or the plan makes no sense."""
    digest_of = functools.cache(digest)
    return [
        _run(plan, workload, engine, window, Choice(policy=policy, settings=plan.settings, seed=seed), digest_of)
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
    digest_of: Callable[[Path], str],
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
        digests=tuple(map(digest_of, files)),
    )


def _inputs(plan: Plan, workload: Path) -> Inputs:
    return Inputs(platform=plan.platform, workloads=(workload,), energy=plan.energy, swf=plan.swf)


def _windows(plan: Plan, workload: Path) -> Sequence[tuple[int, int] | None]:
    """The windows of a workload, first job and number of jobs; None is all of it."""
    if not plan.windows:
        return [None]
    jobs = len(_read(plan, workload).workloads[0].jobs)
    if jobs < plan.length:
        raise ConfigError(f"{workload}: has {jobs} jobs, too few for windows of {plan.length}")
    starts = np.random.default_rng(plan.draw).integers(0, jobs - plan.length + 1, plan.windows)
    return [(int(start), plan.length) for start in starts]


def _read(plan: Plan, workload: Path) -> Case:
    return _whole_case(_inputs(plan, workload), (digest(plan.platform), digest(workload)))


@functools.lru_cache(maxsize=8)
def _whole_case(inputs: Inputs, digests: tuple[str, ...]) -> Case:
    """What is simulated, jobs in order of submission, read once in each process for the same content."""
    case = load(inputs)
    jobs = sorted(case.workloads[0].jobs, key=lambda job: job.submit_time)
    return replace(case, workloads=[replace(case.workloads[0], jobs=jobs)])


def case_of(run: Run) -> Case:
    """What a run simulates, read from its files. Raises InputError."""
    case = _whole_case(run.inputs, run.digests[:2])
    return case if run.window is None else replace(case, workloads=[cut(case.workloads[0], *run.window)])


def cut(workload: Workload, first: int, length: int) -> Workload:
    """`length` jobs from number `first` on, of a workload whose jobs are in order of submission; their times stay."""
    return replace(workload, jobs=workload.jobs[first : first + length])
