"""The functions of ``import decision``: whole runs, comparisons, trainings and environments in one call.

Design
------
Nothing is computed here. Each function turns names and paths into what the packages below take, calls them, and gives
their result a face: tables as pandas DataFrames where pandas is installed, pictures as matplotlib figures. Where a
platform or a workload is asked for, a file's path or a shipped one's name will do; `simulate` takes objects, too.

Rejected: methods for all that the packages can do. Their own functions are public and take the same objects
(`SimulationResult.record` is a `decision.model.record.RunRecord`).
"""

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from decision.model.columns import Column
from decision.model.errors import ConfigError, how_to_install
from decision.model.platform import Platform
from decision.model.record import FinalState, JobTable, RunRecord
from decision.model.workload import MachineEvent, Workload

if TYPE_CHECKING:
    from gymnasium import Env
    from gymnasium.vector import VectorEnv
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from decision.analysis.comparison import PolicyComparison
    from decision.analysis.metrics import Summary
    from decision.formats.selection import Selection
    from decision.learn.training import Report
    from decision.model.reshape import Walltimes
    from decision.policies import Policy
    from decision.runs.inputs import LoadedInputs

Source = str | os.PathLike[str]  # a file's path, or the name of a shipped platform or workload


class SimulationResult:
    """What a run came to.

    Attributes:
        record: all columns that Batsim writes about a run.
        platform: the hosts.
        title: policy and platform, for pictures.
    """

    def __init__(self, record: RunRecord, platform: Platform, title: str) -> None:
        self.record, self.platform, self.title = record, platform, title

    @cached_property
    def jobs(self) -> "DataFrame | JobTable":
        """Finished and rejected jobs in the order in which they ended.

        A pandas DataFrame with the columns ``id``, ``profile``, ``submit_time``, ``size``, ``walltime``,
        ``final_state``, ``start_time``, ``runtime``, ``allocation`` (host ids, ``"0-3 7"``), ``energy`` and
        ``metadata``; times in seconds, energy in joules (-1 where it was not simulated). Without pandas a
        `decision.model.record.JobTable`, which has the same columns as attributes.
        """
        if find_spec("pandas") is None:
            return self.record.jobs
        table = msgspec.structs.asdict(self.record.jobs)
        columns = {name: list(column) if isinstance(column, Column) else column for name, column in table.items()}
        return _table(columns | {"final_state": [FinalState(state).name for state in columns["final_state"]]})

    def summary(self) -> "Summary":
        """Makespan, waiting times, bounded slowdown, utilization and energy; fields say their units."""
        from decision.analysis.metrics import summarise
        from decision.analysis.runs import waste_of

        record, hosts, waste = self.record, len(self.platform.hosts), waste_of(self.record, self.platform)
        joules = math.nan if record.energy is None else record.joules
        return summarise(record.jobs, hosts, joules, record.window_gap, record.worth, record.supply, waste=waste)

    def plot(
        self, path: Source | None = None, *, width: float = 7.0, type_size: float = 8.0, dpi: float = 200.0
    ) -> "Figure":
        """Draw which host ran what, how many hosts were busy and how many jobs waited.

        Args:
            path: also write the picture there: ``.png``, ``.svg`` or ``.pdf``.
            width: inches.
            type_size: points.
            dpi: pixels per inch of PNG.

        Raises:
            ConfigError: if matplotlib is not installed or the file cannot be written.
        """
        from decision.analysis.plots import require_matplotlib

        require_matplotlib()
        from decision.analysis.plots.figures import save
        from decision.analysis.plots.paper import Paper, drawn_for
        from decision.analysis.plots.schedules import schedule_figure

        with drawn_for(Paper(width, type_size, dpi)):
            figure = schedule_figure(self.record.jobs, len(self.platform.hosts), self.title)
            if path is not None:
                save(figure, Path(path))
        return figure

    def write(self, folder: Source) -> None:
        """Write Batsim's output files, ``out_jobs.csv``, ``out_schedule.csv`` and the others, into a folder."""
        from decision.formats import write_run
        from decision.formats.run_facts import forget_run

        write_run(Path(folder) / "out", self.record)
        forget_run(Path(folder))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}, {len(self.record.jobs.id):,} jobs>"


class ComparisonResult:
    """What a comparison of policies came to.

    Attributes:
        comparison: baseline, rows and outcomes of all runs, as `decision.analysis.comparison` has them.
    """

    def __init__(self, comparison: "PolicyComparison") -> None:
        self.comparison = comparison

    @cached_property
    def table(self) -> "DataFrame | list[dict[str, Any]]":
        """One row per metric, workload and policy: interquartile mean with its 95 % interval, and the verdict.

        ``p_better`` is the probability that a run is better than one of the baseline's. A pandas DataFrame, or a list
        of dicts without pandas.
        """
        return _table(
            [
                {
                    "metric": row.metric,
                    "workload": row.workload,
                    "policy": row.contender,
                    "runs": row.runs,
                    "score": row.score.value,
                    "low": row.score.low,
                    "high": row.score.high,
                    "p_better": row.improvement.value,
                    "verdict": row.verdict,
                }
                for row in self.comparison.rows
            ]
        )

    @cached_property
    def runs(self) -> "DataFrame | list[dict[str, Any]]":
        """One row per run: workload, policy, first job, seed, and every metric that has a value."""
        return _table(
            [
                {"workload": o.workload, "policy": o.contender, "first_job": o.first_job, "seed": o.seed, **o.metrics}
                for o in self.comparison.outcomes
            ]
        )

    def write(self, folder: Source) -> None:
        """Write ``comparison.csv``, ``.md`` and ``.json``, ``runs.csv``, and ``report.html`` if matplotlib is there."""
        from decision.analysis.comparison import write_comparison

        write_comparison(Path(folder), self.comparison)
        if find_spec("matplotlib") is not None:
            from decision.analysis.report import write_comparison_report

            write_comparison_report(Path(folder))

    def __repr__(self) -> str:
        policies = dict.fromkeys(row.contender for row in self.comparison.rows)
        return f"<{type(self).__name__}: {', '.join(policies)}; {len(self.comparison.outcomes):,} runs>"


def simulate(
    platform: Platform | Source,
    workload: Workload | Source | Sequence[Workload | Source],
    policy: "str | Policy",
    options: Mapping[str, Any] | None = None,
    *,
    energy: bool = False,
    events: Iterable[MachineEvent] | Source = (),
    seed: int = 0,
) -> SimulationResult:
    """Run a policy over a workload on the embedded engine.

    Args:
        platform: the hosts, a SimGrid XML file, or a shipped platform's name (``"taurus"``).
        workload: the jobs, a file of Batsim's (``.json``) or a log (``.swf``), a shipped workload's name; or several.
        policy: a name that ``decision policies`` lists, ``"module:Class"``, ``"./file.py:Class"``, a checkpoint's file;
            ``"pybatsim:module:Class"``; or the policy itself, any object with `Policy`'s two methods.
        options: options of a named policy.
        energy: simulate power states and energy; a platform that is given as an object must have been loaded with it.
        events: what happens to the platform from outside, or the file of it.
        seed: of a policy that draws at random.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.
        PolicyError: if the policy decides something impossible, or nothing while jobs wait.
    """
    from decision.formats import load_events, load_platform
    from decision.runs.inputs import Inputs, LoadedInputs

    if isinstance(policy, type):
        raise ConfigError(f"the policy is a class, not an object: give {policy.__name__}() instead", field="policy")
    if not isinstance(policy, str) and not (hasattr(policy, "reset") and hasattr(policy, "decide")):
        wanted = "a policy's name, or an object with the methods reset and decide"
        raise ConfigError(f"policy: give {wanted}, not an object of type {type(policy).__name__}", field="policy")
    if not isinstance(options or {}, Mapping):
        raise ConfigError(f'options: must be a mapping like {{"guard": "auto"}}; found {options!r}', field="options")
    hosts = platform if isinstance(platform, Platform) else load_platform(platform, energy=energy)
    case = LoadedInputs(
        inputs=Inputs(platform=Path(hosts.path), workloads=(), energy=energy),
        platform=hosts,
        workloads=_workloads(workload),
        events=load_events(events, supply=True) if isinstance(events, str | os.PathLike) else list(events),
    )
    name = policy if isinstance(policy, str) else type(policy).__name__
    title = f"{name} on {Path(hosts.path).stem}" if hosts.path else name
    return SimulationResult(_run(case, policy, options or {}, seed), hosts, title)


def _run(case: "LoadedInputs", policy: "str | Policy", options: Mapping[str, Any], seed: int) -> RunRecord:
    from decision.engine.options import EngineOptions
    from decision.runs.inputs import PolicyChoice
    from decision.runs.run import simulate_inputs
    from decision.simulation import simulate_workloads

    if isinstance(policy, str):
        settings = {name: str(value) for name, value in options.items()}
        return simulate_inputs(case, PolicyChoice(policy=policy, settings=settings, seed=seed))
    engine_options = EngineOptions(energy=case.inputs.energy)
    return simulate_workloads(
        case.platform, case.workloads, policy, events=case.events, engine_options=engine_options, seed=seed
    )


def compare(
    platform: Source,
    workload: Source | Sequence[Source],
    policies: Sequence[str],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    energy: bool = False,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    windows: int = 0,
    length: int = 1024,
    draw: int = 0,
    seeds: int = 1,
    processes: int = 1,
    folder: Source | None = None,
) -> ComparisonResult:
    """Run policies over the same jobs and compare them with a baseline, metric by metric.

    Runs read their inputs from files, which is how finished ones are known again; objects are not accepted here.

    Args:
        platform: a SimGrid XML file, or a shipped platform's name.
        workload: a file or a shipped workload's name; or several, each compared by itself.
        policies: what is compared, each as ``decision run --policy`` takes it.
        baseline: the policy that the others are compared with; the first if None.
        metrics: names; `decision.analysis` says how each is computed, and has the default in `DEFAULT_METRICS`.
        options: options of every policy.
        energy: simulate power states and energy.
        jobs: which jobs of each workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of a log's jobs without a requested time: ``none``, ``runtime``, ``longest`` or a model.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        windows: random sequences of jobs of each workload; 0 takes all jobs once.
        length: jobs in a window.
        draw: seed of the windows and of the bootstrap.
        seeds: runs of each policy on each window, for policies that draw at random.
        processes: runs at a time. With more than 1, protect a script's entry: ``if __name__ == "__main__":``.
        folder: keeps finished runs, so that a later call with more policies or windows runs only what is new.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.
        PolicyError: if a policy decides something impossible.
    """
    from decision.analysis.comparison import compare_runs, default_metrics
    from decision.analysis.metric_list import find_metric
    from decision.runs.compare import (
        ComparisonPlan,
        describe_setup,
        find_baseline,
        read_workloads,
        run_comparison,
        windows_of,
        with_record,
    )
    from decision.shipped import find_platform, find_workload

    plan = ComparisonPlan(
        platform=find_platform(platform),
        workloads=tuple(dict.fromkeys(find_workload(each) for each in _several(workload))),
        policies=tuple(dict.fromkeys(policies)),
        settings=dict(options or {}),
        energy=energy,
        selection=_selection(jobs, nodes, walltime, time_field, missing_walltime),
        windows=windows,
        length=length,
        draw=draw,
        seeds=seeds,
    )
    chosen = [find_metric(name) for name in dict.fromkeys(metrics)]
    logs = read_workloads(plan)
    against = find_baseline(plan, baseline)
    setup = describe_setup(plan, logs)
    with tempfile.TemporaryDirectory(prefix="decision-") as temporary:
        outcomes = run_comparison(plan, Path(folder or temporary), processes=processes)
    chosen = chosen or default_metrics(outcomes)
    where = windows_of(plan, logs)
    comparison = compare_runs(outcomes, chosen, against, seed=draw, setup=setup, windows=where)
    return ComparisonResult(with_record(plan, logs, comparison))


def train(
    scheduler: str,
    platform: Source,
    workload: Source,
    folder: Source,
    *,
    preset: str | None = None,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
    seed: int = 0,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    time_field: int | None = None,
    resume: bool = False,
    report: "Callable[[Report], None]" = lambda _: None,
) -> Path:
    """Train a learned scheduler in the embedded engine.

    Args:
        scheduler: ``dbf``, ``rlscheduler``, ``inspector`` or ``ranking``.
        platform: a SimGrid XML file, or a shipped platform's name.
        workload: a file or a shipped workload's name; all jobs need a walltime.
        folder: gets the checkpoint, the curves, and the state from which a stopped training resumes.
        preset: a preset's name or a TOML file; by default the scheduler's.
        changes: values of the preset to change, ``{"learn.lr": 1e-4}``.
        steps: environment steps; for ``ranking``, jobs that are placed. By default the preset's.
        seed: of weights, episodes and draws.
        jobs, nodes, walltime, time_field: which jobs it learns from, as `compare` takes them.
        resume: go on from the state in the folder.
        report: called after each iteration.

    Returns:
        The checkpoint, whose path is a policy's name.

    Raises:
        ConfigError: if PyTorch is not installed, an input does not fit, or the folder holds another run.
    """
    from decision.learn import require_learning

    require_learning()
    from decision.learn.config import load_config
    from decision.runs.inputs import Inputs, first_log, load_inputs
    from decision.runs.training import train_to_folder
    from decision.schedulers import find_scheduler
    from decision.shipped import find_platform, find_workload

    record = find_scheduler(scheduler)
    given = dict(changes or {}) | ({} if steps is None else {"learn.steps": steps})
    config = load_config(preset or record.default_preset, [f"{key}={value}" for key, value in given.items()], seed=seed)
    if config.scheduler != scheduler:
        raise ConfigError(f"the preset {preset} is for {config.scheduler}, not for {scheduler}", field="preset")
    files = [find_platform(platform), find_workload(workload)]
    selection = _selection(jobs, nodes, walltime, time_field)
    case = load_inputs(Inputs(platform=files[0], workloads=(files[1],), selection=selection))
    return train_to_folder(first_log(case), config, Path(folder), resume=resume, report=report)


def make_env(
    scheduler: str,
    platform: Platform | Source | None,
    workload: Workload | Source,
    *,
    num_envs: int | None = None,
    **options: Any,
) -> "Env[Any, Any] | VectorEnv[Any, Any, Any]":
    """Make a Gymnasium environment of a learned scheduler.

    Args:
        scheduler: ``dbf``, ``rlscheduler`` or ``inspector``: the environment ``decision/DBF-v0`` and so on.
        platform: the hosts, a file or a shipped platform's name; None: equal hosts, as many as the workload asks for.
        workload: the jobs, a file or a shipped workload's name; all jobs need a walltime.
        num_envs: so many side by side, as one vector environment; a single environment if None.
        options: of `decision.envs.make_setup`: ``head``, ``tail``, ``jobs``, ``online``, ...

    Raises:
        ConfigError: if Gymnasium is not installed, there is no such environment, or an option makes no sense.
    """
    if find_spec("gymnasium") is None:
        raise ConfigError(f"environments need gymnasium: {how_to_install('learn')}")
    import gymnasium

    import_module("decision.envs")  # registers the environments
    ids = {spec.name.lower(): name for name, spec in gymnasium.registry.items() if spec.namespace == "decision"}
    if scheduler.lower() not in ids:
        raise ConfigError(f"there is no environment {scheduler!r} (there are {', '.join(ids)})", field="scheduler")
    given = {"platform": platform, "workload": workload, **options}
    if num_envs is None:
        return gymnasium.make(ids[scheduler.lower()], **given)
    return gymnasium.make_vec(ids[scheduler.lower()], num_envs, "vector_entry_point", **given)


def _workloads(given: Workload | Source | Sequence[Workload | Source]) -> list[Workload]:
    from decision.formats import load_workload

    return [
        each if isinstance(each, Workload) else load_workload(each, f"w{number}")
        for number, each in enumerate(_several(given))
    ]


def _selection(
    jobs: slice | None, nodes: int | None, walltime: "Walltimes", time_field: int | None, missing: str = "none"
) -> "Selection":
    """Which jobs are used. Raises ConfigError for a range that counts from the end or in steps."""
    from decision.formats.selection import Selection

    jobs = jobs or slice(None)
    first, last = jobs.start or 0, jobs.stop
    if jobs.step not in (None, 1) or min(first, last or 0) < 0:
        wanted = "a range like slice(0, 5000), counted from the first job"
        raise ConfigError(f"jobs: must be {wanted}; found {jobs}", field="jobs")
    return Selection(jobs=(first, last), nodes=nodes, walltime=walltime, time_field=time_field, missing=missing)


def _several(given: Any) -> Sequence[Any]:
    """One as a list of one."""
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | os.PathLike) else [given]


def _table(columns: Any) -> Any:
    """As a pandas DataFrame, or as it is where pandas is not installed."""
    if find_spec("pandas") is None:
        return columns
    import pandas

    return pandas.DataFrame(columns)
