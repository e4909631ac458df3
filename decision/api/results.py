"""What the functions of ``import decision`` return: tables as pandas DataFrames, pictures as matplotlib figures."""

import math
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decision.model.errors import ConfigError, a_path, amount
from decision.model.platform import Platform
from decision.model.record import RunRecord
from decision.model.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from decision.experiments.comparison import PolicyComparison
    from decision.experiments.metric_list import Summary
    from decision.experiments.own_metrics import JobResults
    from decision.experiments.results import SearchTrial
    from decision.report.evalys import EvalysRun
    from decision.rl.learning.config import Space

_SHOWN = 20  # rows of a comparison that a notebook shows

Place = str | os.PathLike[str]


_Drawings = tuple["Callable[[Axes], None]", "Callable[[], Figure]"]


class _Drawn:
    """A result that is drawn whole, a run or a search."""

    def plot(
        self,
        path: Place | None = None,
        *,
        ax: "Axes | None" = None,
        width: float = 7.0,
        type_size: float = 8.0,
        dpi: float = 200.0,
    ) -> "Figure":
        """Draw it.

        Of a run, which host ran what, how many hosts were busy and how many jobs waited; of a search, the values of its
        trials, the curves of their validations, and a panel for each setting.

        Args:
            path: also write the picture there: ``.png``, ``.svg``, ``.pdf``, or ``.pgf`` where LaTeX is installed.
            ax: axes of a figure of yours, where which host ran what, or the values by trial, are drawn in that figure's
                style, and nothing else; the other arguments do nothing then.
            width: inches.
            type_size: points.
            dpi: pixels per inch of PNG.

        Raises:
            ConfigError: if matplotlib is not installed or the file cannot be written.
        """
        from decision.report.plots import require_matplotlib

        require_matplotlib()
        into_axes, figure = self._drawings()
        if ax is None:
            return _drawn(figure, path, width, type_size, dpi)
        _refuse_path(path)
        into_axes(_axes(ax))
        return ax.figure  # type: ignore[return-value]

    def _drawings(self) -> _Drawings:
        """What draws it into axes, and as a figure of its own."""
        raise NotImplementedError


class SimulationResult(_Drawn):
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
        has it) and ``bounded_slowdown`` (run times under 10 s count as 10 s); times in seconds, energy in joules (nan
        where it was not simulated). Without pandas an object that has the same columns as attributes.
        """
        from decision.experiments.own_metrics import job_results, jobs_table

        return job_results(self.record.jobs) if find_spec("pandas") is None else jobs_table(self.record.jobs)

    def summary(self) -> "Summary":
        """Makespan, waiting times, bounded slowdown, utilization and energy; printed, it is a table."""
        from decision.experiments.energy import emitted, paid
        from decision.experiments.metric_list import summarise
        from decision.experiments.results import waste_of

        record, waste = self.record, waste_of(self.record, self.platform)
        rated = emitted(record), paid(record)
        hosts = record.nb_hosts if self.platform is None else len(self.platform.hosts)
        joules = math.nan if record.energy is None else record.joules
        return summarise(
            record.jobs, hosts, joules, record.window_gap, record, waste=waste, rated=rated, lost_work=record.lost_work
        )

    def _drawings(self) -> "_Drawings":
        from decision.report.plots.schedules import draw_gantt, schedule_figure

        jobs, hosts = self.record.jobs, self.record.nb_hosts
        return (lambda axes: draw_gantt(axes, jobs, hosts, self.title)), lambda: schedule_figure(
            jobs, hosts, self.title
        )

    def write(self, folder: Place) -> None:
        """Write Batsim's output files, ``out_jobs.csv``, ``out_schedule.csv`` and the others, into a folder."""
        from decision.files import write_run
        from decision.files.outputs_read import forget_run

        place = a_path("folder", folder)
        write_run(place / "out", self.record)
        forget_run(place)

    def to_evalys(self) -> "EvalysRun":
        """The run as evalys 4.0.7 has it, without a file between: ``jobs`` is its ``JobSet``.

        Returns:
            A named tuple: ``jobs``, ``machine_states``, ``energy``, ``pstates`` (its ``PowerStatesChanges``),
            ``pstate_changes``, ``schedule``; all equal to what evalys and pandas read from the files of `write`.

        Raises:
            ConfigError: if evalys is not installed.
        """
        from decision.report.evalys import to_evalys

        return to_evalys(self.record)

    @classmethod
    def from_evalys(cls, run: "EvalysRun", title: str = "evalys") -> "SimulationResult":
        """What evalys has of a run, back: as `decision.read_run` of its files.

        Args:
            run: what `to_evalys` gave, changed or not.
            title: for pictures.

        Raises:
            ConfigError: if a table lacks a column, or has what no run can have.
        """
        from decision.report.evalys import from_evalys

        return cls(from_evalys(run), None, title)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}, {len(self.record.jobs.id):,} jobs>"

    def _repr_html_(self) -> str:
        return self.summary().as_html(repr(self).strip("<>"))


def _drawn(draw: "Callable[[], Figure]", path: Place | None, width: float, type_size: float, dpi: float) -> "Figure":
    """A figure of that width, size of type and resolution, written to `path` where there is one."""
    file = None if path is None else a_path("path", path)
    from decision.report.plots import Paper, drawn_for
    from decision.report.plots.figures import save

    wanted = amount("width", width, 2, 20), amount("type_size", type_size, 4, 24), amount("dpi", dpi, 50, 600)
    with drawn_for(Paper(*wanted)):
        figure = draw()
        if file is not None:
            save(figure, file)
    return figure


def _axes(given: Any) -> "Axes":
    """Axes of matplotlib. Raises ConfigError if it is something else."""
    from matplotlib.axes import Axes

    if not isinstance(given, Axes):
        raise ConfigError(f"ax: must be one of matplotlib's axes; found {type(given).__name__}", field="ax")
    return given


def _refuse_path(path: Place | None) -> None:
    if path is not None:
        raise ConfigError("path: the axes are of a figure of yours; save that one, or leave ax out", field="path")


class ComparisonResult:
    """What a comparison of policies came to.

    Attributes:
        comparison: baseline, rows and outcomes of all runs, as `decision.experiments.comparison` has them.

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
        """One row per metric, workload and policy, with the columns of ``comparison.csv``.

        ``estimate``, ``estimate_low`` and ``estimate_high`` are a figure with its 95 % interval: of whole workloads the
        mean over copies, and ``change``, ``change_low`` and ``change_high`` compare it with the baseline's, -0.2 being
        a fifth less; else an interquartile mean, and ``improvement`` with its bounds is the probability that a run is
        better than one of the baseline's. A pandas DataFrame, or a list of dicts without pandas.
        """
        from decision.report.comparison import row_values

        rows = [row_values(row) for row in self.comparison.rows]
        return as_table(
            [{name: math.nan if v is None else v for name, v in row.items() if name != "blocks"} for row in rows]
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

    def plot(
        self,
        metric: str | None = None,
        workload: str | None = None,
        *,
        path: Place | None = None,
        ax: "Axes | None" = None,
        width: float = 7.0,
        type_size: float = 8.0,
        dpi: float = 200.0,
    ) -> "Figure":
        """Draw the policies in one metric: estimates with 95 % intervals, and what they are against the baseline's.

        Args:
            metric: the first one if None.
            workload: the first one if None, which of several is all of them together.
            path: also write the picture there: ``.png``, ``.svg``, ``.pdf``, or ``.pgf`` where LaTeX is installed.
            ax: axes of a figure of yours, where the estimates are drawn in that figure's style, and nothing else; the
                arguments below do nothing then.
            width: inches.
            type_size: points.
            dpi: pixels per inch of PNG.

        Raises:
            ConfigError: if matplotlib is not installed, the comparison has no such metric or workload, or the file
                cannot be written.
        """
        from decision.experiments.metric_list import find_metric, metric_named
        from decision.report.plots import require_matplotlib

        require_matplotlib()
        from decision.report.plots.results import draw_rows, draw_scores

        rows = self.comparison.rows
        wanted = rows[0].metric if metric is None else find_metric(metric).name
        rows = [row for row in rows if row.metric == wanted]
        if not rows:
            there = ", ".join(dict.fromkeys(row.metric for row in self.comparison.rows))
            raise ConfigError(f"metric: {metric} is not compared (compared are {there})", field="metric")
        where = rows[0].workload if workload is None else workload
        chosen = [row for row in rows if row.workload == where]
        if not chosen:
            there = ", ".join(dict.fromkeys(row.workload for row in rows))
            raise ConfigError(f"workload: {workload} is not compared (compared are {there})", field="workload")
        unit = metric_named(wanted).unit
        if ax is not None:
            _refuse_path(path)
            draw_scores(_axes(ax), chosen, unit)
            return ax.figure  # type: ignore[return-value]
        return _drawn(lambda: draw_rows(chosen, unit).figure, path, width, type_size, dpi)

    def write(self, folder: Place) -> None:
        """Write ``comparison.csv``, ``.md`` and ``.json``, ``runs.csv``, and ``report.html`` if matplotlib is there."""
        from decision.report.comparison import write_comparison

        place = a_path("folder", folder)
        write_comparison(place, self.comparison)
        if find_spec("matplotlib") is not None:
            from decision.report.pages import write_comparison_report

            write_comparison_report(place)

    def to_latex(self, metric: str | None = None) -> str:
        """A table for a paper, in LaTeX with booktabs: a row per policy, a column per metric, estimates with intervals.

        Args:
            metric: this one alone; all if None.

        Raises:
            ConfigError: if the comparison has no such metric.
        """
        from decision.report.comparison import latex_table

        return latex_table(self.comparison, metric)

    def __repr__(self) -> str:
        policies = dict.fromkeys(row.contender for row in self.comparison.rows)
        return f"<{type(self).__name__}: {', '.join(policies)}; {len(self.comparison.outcomes):,} runs>"

    def _repr_html_(self) -> str:
        header = ("metric", "workload", "policy", "estimate", "95 % interval", "verdict")
        rows = [
            (
                *(row.metric, row.workload, row.contender, f"{row.score.value:,.4g}"),
                *(f"{row.score.low:,.4g} to {row.score.high:,.4g}", row.verdict),
            )
            for row in self.comparison.rows[:_SHOWN]
        ]
        more = len(self.comparison.rows) - len(rows)
        return Table(repr(self).strip("<>") + (f"; {more:,} more rows in table" if more else ""), header, rows).html()


class SearchResult(_Drawn):
    """What a search for settings came to.

    Attributes:
        trials: each with ``number``, ``settings``, ``state`` (``finished``, ``pruned``, ``refused``), ``steps``,
            ``judged`` (the last validation, by name) and ``folders``.
        best: the finished one with the best validation.
        settings: the best one's, by name.
        checkpoint: the best one's (of its first seed), whose path is a policy's name.
    """

    def __init__(self, trials: "Sequence[SearchTrial]", space: "Space", file: Path) -> None:
        from decision.experiments.results import best_trial

        self.trials, self._space = trials, space
        self.best = best_trial(trials)
        self.settings = dict(self.best.settings)
        self.checkpoint = self.best.folders[0] / f"{file.name}.ckpt"

    @cached_property
    def table(self) -> "DataFrame | list[dict[str, Any]]":
        """One row per trial, with the columns of ``search.csv``."""
        from decision.experiments.results import table_rows

        return as_table(table_rows(self.trials))

    def _drawings(self) -> "_Drawings":
        from decision.report.plots.search import draw_trials, search_picture

        return (lambda axes: draw_trials(axes, self.trials)), lambda: search_picture(self.trials, self._space).figure

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.trials):,} trials, the best with {self.best.changes}>"

    def _repr_html_(self) -> str:
        from decision.experiments.results import table_rows

        rows = table_rows(self.trials)
        cells = [[f"{v:,.4g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows[:_SHOWN]]
        return Table(repr(self).strip("<>"), [*rows[0]], cells).html()


def as_table(columns: Any) -> Any:
    """As a pandas DataFrame, or as it is where pandas is not installed."""
    if find_spec("pandas") is None:
        return columns
    import pandas

    return pandas.DataFrame(columns)
