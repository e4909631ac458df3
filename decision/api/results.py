"""What the functions of ``import decision`` return: tables as pandas DataFrames, pictures as matplotlib figures."""

import math
import os
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from decision.model.arguments import a_path, amount
from decision.model.column import Column
from decision.model.platform import Platform
from decision.model.record import FinalState, Floats, JobTable, RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from decision.analysis.comparison import PolicyComparison, Row
    from decision.analysis.summary import Summary

Place = str | os.PathLike[str]


class JobResults(JobTable, kw_only=True):
    """A `JobTable` with what `decision.analysis.metrics` makes of it; nan where a job was rejected."""

    finish_time: Floats  # seconds
    waiting_time: Floats  # seconds, from the submission to the start
    turnaround_time: Floats  # seconds, from the submission to the end
    stretch: Floats  # turnaround time over run time, as in Batsim's ``out_jobs.csv``
    bounded_slowdown: Floats  # runtimes under 10 s count as 10 s


def job_results(jobs: JobTable) -> JobResults:
    """The jobs, with their times and slowdowns."""
    from decision.analysis import metrics

    return JobResults(
        **{name: getattr(jobs, name) for name in jobs.__struct_fields__},
        finish_time=jobs.start_time + jobs.runtime,
        waiting_time=metrics.waiting_times(jobs),
        turnaround_time=metrics.turnaround_times(jobs),
        stretch=metrics.slowdowns(jobs),
        bounded_slowdown=metrics.bounded_slowdowns(jobs),
    )


class SimulationResult:
    """What a run came to.

    Attributes:
        record: all columns that Batsim writes about a run.
        platform: the hosts; None where a run was read without them.
        title: policy and platform, for pictures.

    Examples:
        >>> import decision as d
        >>> result = d.simulate("toy", "toy", "easy")
        >>> result
        <SimulationResult: easy on toy, 5 jobs>
        >>> result.write("out")
    """

    def __init__(self, record: RunRecord, platform: Platform | None, title: str) -> None:
        self.record, self.platform, self.title = record, platform, title

    @cached_property
    def jobs(self) -> "DataFrame | JobResults":
        """Finished and rejected jobs in the order in which they ended.

        A pandas DataFrame with the columns ``id``, ``profile``, ``submit_time``, ``size``, ``walltime``,
        ``final_state``, ``start_time``, ``runtime``, ``allocation`` (host ids, ``"0-3 7"``), ``energy``, ``metadata``,
        ``finish_time``, ``waiting_time``, ``turnaround_time``, ``stretch`` (turnaround time over run time, as Batsim
        has it) and ``bounded_slowdown`` (run times under 10 s count as 10 s); times in seconds, energy in joules (-1
        where it was not simulated). Without pandas an object that has the same columns as attributes.
        """
        jobs = job_results(self.record.jobs)
        if find_spec("pandas") is None:
            return jobs
        table = msgspec.structs.asdict(jobs)
        columns = {name: list(column) if isinstance(column, Column) else column for name, column in table.items()}
        return as_table(columns | {"final_state": [FinalState(state).name for state in columns["final_state"]]})

    def summary(self) -> "Summary":
        """Makespan, waiting times, bounded slowdown, utilization and energy; printed, it is a table."""
        from decision.analysis.rates import emitted, paid
        from decision.analysis.runs import waste_of
        from decision.analysis.summary import summarise

        record, waste = self.record, waste_of(self.record, self.platform)
        rated = emitted(record), paid(record)
        hosts = record.nb_hosts if self.platform is None else len(self.platform.hosts)
        joules = math.nan if record.energy is None else record.joules
        return summarise(
            record.jobs, hosts, joules, record.window_gap, record, waste=waste, rated=rated, lost_work=record.lost_work
        )

    def plot(
        self, path: Place | None = None, *, width: float = 7.0, type_size: float = 8.0, dpi: float = 200.0
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
        file = None if path is None else a_path("path", path)
        from decision.analysis.plots.figures import save
        from decision.analysis.plots.paper import Paper, drawn_for
        from decision.analysis.plots.schedules import schedule_figure

        wanted = amount("width", width, 2, 20), amount("type_size", type_size, 4, 24), amount("dpi", dpi, 50, 600)
        with drawn_for(Paper(*wanted)):
            figure = schedule_figure(self.record.jobs, self.record.nb_hosts, self.title)
            if file is not None:
                save(figure, file)
        return figure

    def write(self, folder: Place) -> None:
        """Write Batsim's output files, ``out_jobs.csv``, ``out_schedule.csv`` and the others, into a folder."""
        from decision.formats import write_run
        from decision.formats.run_facts import forget_run

        place = a_path("folder", folder)
        write_run(place / "out", self.record)
        forget_run(place)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}, {len(self.record.jobs.id):,} jobs>"


class ComparisonResult:
    """What a comparison of policies came to.

    Attributes:
        comparison: baseline, rows and outcomes of all runs, as `decision.analysis.comparison` has them.

    Examples:
        >>> import decision as d
        >>> result = d.compare("toy", "toy", ["fcfs", "easy"], metrics=["makespan"], whole=True)
        >>> result.runs[["policy", "makespan"]].values.tolist()
        [['fcfs', 10.0], ['easy', 8.0]]
        >>> result.write("comparison")
    """

    def __init__(self, comparison: "PolicyComparison") -> None:
        self.comparison = comparison

    @cached_property
    def table(self) -> "DataFrame | list[dict[str, Any]]":
        """One row per metric, workload and policy: ``score`` with its 95 % interval, and the verdict.

        Of whole workloads the score is the mean over copies, and ``change``, ``change_low`` and ``change_high`` compare
        it with the baseline's, -0.2 being a fifth less; else it is an interquartile mean, and ``p_better`` is the
        probability that a run is better than one of the baseline's. A pandas DataFrame, or a list of dicts without
        pandas.
        """
        return as_table(
            [
                {
                    "metric": row.metric,
                    "workload": row.workload,
                    "policy": row.contender,
                    "runs": row.runs,
                    "score": row.score.value,
                    "low": row.score.low,
                    "high": row.score.high,
                    **_against(row),
                    "verdict": row.verdict,
                }
                for row in self.comparison.rows
            ]
        )

    @cached_property
    def runs(self) -> "DataFrame | list[dict[str, Any]]":
        """One row per run: workload, policy, first job, copy, seed, and every metric that has a value."""
        return as_table(
            [
                {
                    "workload": o.workload,
                    "policy": o.contender,
                    "first_job": o.first_job,
                    "copy": o.copy,
                    "seed": o.seed,
                    **o.metrics,
                }
                for o in self.comparison.outcomes
            ]
        )

    def write(self, folder: Place) -> None:
        """Write ``comparison.csv``, ``.md`` and ``.json``, ``runs.csv``, and ``report.html`` if matplotlib is there."""
        from decision.analysis.comparison_files import write_comparison

        place = a_path("folder", folder)
        write_comparison(place, self.comparison)
        if find_spec("matplotlib") is not None:
            from decision.analysis.comparison_report import write_comparison_report

            write_comparison_report(place)

    def __repr__(self) -> str:
        policies = dict.fromkeys(row.contender for row in self.comparison.rows)
        return f"<{type(self).__name__}: {', '.join(policies)}; {len(self.comparison.outcomes):,} runs>"


def _against(row: "Row") -> dict[str, float]:
    """What a row is against the baseline's."""
    if row.improvement is not None:
        return {"p_better": row.improvement.value}
    change = (math.nan,) * 3 if row.change is None else row.change
    return dict(zip(("change", "change_low", "change_high"), change, strict=True))


def as_table(columns: Any) -> Any:
    """As a pandas DataFrame, or as it is where pandas is not installed."""
    if find_spec("pandas") is None:
        return columns
    import pandas

    return pandas.DataFrame(columns)
