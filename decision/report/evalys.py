"""Runs as evalys 4.0.7 has them, and its own pictures of them.

evalys reads Batsim's files. `to_evalys` gives what it makes of them without a file between, from the same text, so
that both are equal; `from_evalys` is the way back. `draw_pictures` asks evalys' visualisations for figures that are
written, since its functions show a window; where one of them fails with any pandas, a comment says so.
"""

import contextlib
import importlib.util
import io
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decision.files.outputs_read import read_run_record
from decision.files.outputs_write import run_tables
from decision.model.errors import ConfigError, InputError, how_to_install
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.record import RunRecord

from .plots import paper

if TYPE_CHECKING:
    from evalys.jobset import JobSet
    from evalys.pstates import PowerStatesChanges
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_MOST_LABELS = 100  # jobs, above which a Gantt chart says no job's id
_SWITCHING_ON, _SWITCHING_OFF = -1, -2  # Batsim's marks of hosts under way, in the place of a pstate


def require_evalys() -> None:
    """Check that evalys can be used.

    Raises:
        ConfigError: if it is not installed, with how to install it.
    """
    for name in ("evalys", "seaborn"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"this needs {name}, which is not installed: {how_to_install('evalys')}")


class EvalysRun(NamedTuple):
    """A run as evalys has it."""

    jobs: "JobSet"  # evalys.jobset.JobSet, with all columns of ``jobs.csv``
    machine_states: "DataFrame"  # columns of ``machine_states.csv``, one row for each time, as evalys' class has them
    energy: "DataFrame | None"  # columns of ``consumed_energy.csv``; None where energy was not simulated
    pstates: "PowerStatesChanges | None"  # evalys.pstates.PowerStatesChanges; None where energy was not simulated
    pstate_changes: "DataFrame | None"  # columns of ``pstate_changes.csv``, of which it is made
    schedule: "DataFrame"  # one row: Batsim's figures of the run, ``schedule.csv``


_TEXTS = dict.fromkeys(("job_id", "workload_name", "profile", "metadata"), str)


def to_evalys(record: RunRecord) -> EvalysRun:
    """What evalys makes of Batsim's files of a run, without the files.

    Times have the six decimals that Batsim writes.

    Raises:
        ConfigError: if evalys is not installed.
    """
    require_evalys()
    import pandas as pd
    from evalys.jobset import JobSet
    from evalys.pstates import PowerStatesChanges
    from procset import ProcSet

    tables = {name: io.BytesIO(b"".join(chunks)) for name, chunks in run_tables(record).items()}
    jobs = pd.read_csv(tables["jobs"], converters={**_TEXTS, "allocated_resources": ProcSet.from_str})
    states = pd.read_csv(tables["machine_states"])
    energy, changes = tables.get("consumed_energy"), tables.get("pstate_changes")
    with _silent():
        jobset = JobSet(jobs, resource_bounds=(0, record.nb_hosts - 1))
        pstates = PowerStatesChanges(io.BytesIO(changes.getvalue())) if changes is not None else None
    return EvalysRun(
        jobs=jobset,
        machine_states=states.drop_duplicates(keep="last", subset="time"),
        energy=None if energy is None else pd.read_csv(energy, keep_default_na=False),
        pstates=pstates,
        pstate_changes=None if changes is None else pd.read_csv(changes, dtype={"machine_id": str}),
        schedule=pd.read_csv(tables["schedule"]),
    )


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """evalys prints which hosts change at 0 s, and calls what procset, numpy and pandas call old."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def from_evalys(run: EvalysRun) -> RunRecord:
    """The run that evalys has, as it would be read from Batsim's files.

    Raises:
        ConfigError: if a table lacks a column, or has what no run can have.
    """
    jobs = run.jobs.df.rename(columns={"jobID": "job_id"}).drop(columns="proc_alloc", errors="ignore")
    jobs = jobs.assign(allocated_resources=jobs["allocated_resources"].map(lambda hosts: format_hosts(hosts)))
    tables = {"jobs": jobs, "machine_states": run.machine_states, "schedule": run.schedule}
    tables |= {} if run.energy is None else {"consumed_energy": run.energy}
    tables |= {} if run.pstate_changes is None else {"pstate_changes": run.pstate_changes}
    with tempfile.TemporaryDirectory() as folder:  # one reader for all that is of Batsim
        for name, table in tables.items():
            none = "nan" if name == "schedule" else ""  # as Batsim writes what is not known
            table.to_csv(Path(folder) / f"out_{name}.csv", index=False, float_format="%.6f", na_rep=none)
        try:
            return read_run_record(Path(folder) / "out")
        except InputError as error:
            raise ConfigError(f"evalys' tables: {str(error).removeprefix(f'{folder}/out_')}", field="run") from None


# --- Pictures ---------------------------------------------------------------------------------------------------------


def draw_pictures(runs: dict[str, EvalysRun], folder: Path) -> list[Path]:
    """Write evalys' pictures of runs, in the paper's size and format; returns the files.

    For each run its Gantt chart, series (busy and wanted hosts), details (the same over the life of each job and the
    Gantt chart) and fragmentation, with energy the states of hosts; for several also one Gantt chart over the other.

    Raises:
        ConfigError: if a file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    from .plots.figures import save

    pictures: dict[str, Callable[[], Figure]] = {}
    for name, run in runs.items():
        stem = re.sub(r"[^\w.+=-]+", "_", name).strip("_")
        ways: dict[str, Callable[[EvalysRun], Figure]] = {"gantt": _gantt, "series": _series, "details": _details}
        ways["fragmentation"] = _fragmentation
        if run.pstate_changes is not None and len(run.pstate_changes) > 0:
            ways["states"] = _states
        pictures |= {f"{stem}_{kind}": partial(draw, run) for kind, draw in ways.items()}
    if len(runs) > 1:
        pictures["gantt_of_all"] = partial(_gantt_of_all, {name: run.jobs for name, run in runs.items()})
    files = []
    settings: Any = {"font.size": paper().type_size, "figure.dpi": paper().dpi}
    before = mpl.get_backend()
    for stem, draw in pictures.items():
        with mpl.rc_context(settings):  # evalys asks pyplot for a figure; it is shown by nobody
            plt.switch_backend("agg")
            try:
                with _silent():
                    figure = draw()
                figure.set_size_inches(paper().width, figure.get_figheight() * paper().width / figure.get_figwidth())
                figure.tight_layout()
                plt.close(figure)
            finally:
                plt.switch_backend(before)
        files.append(folder / f"{stem}{paper().suffix}")
        save(figure, files[-1])
    return files


def _ran(jobs: "JobSet") -> "JobSet":
    """The jobs that ran: a rejected one has no place in a picture, and evalys would refuse its empty times."""
    from evalys.jobset import JobSet

    return JobSet(jobs.df[jobs.df["starting_time"].notna()], resource_bounds=(jobs.res_bounds.inf, jobs.res_bounds.sup))


def _gantt(run: EvalysRun) -> "Figure":
    from evalys.visu import core

    layout = core.SimpleLayout()
    _inject_gantt(layout, "all", _ran(run.jobs))
    return _named(layout.fig, hosts=layout.fig.axes, times=layout.fig.axes)


def _inject_gantt(layout: Any, place: str, jobs: "JobSet") -> None:
    from evalys.visu import gantt

    plot = layout.inject(gantt.GanttVisualization, spskey=place)
    if len(jobs.df) > _MOST_LABELS:
        plot.labeler = gantt.NOLABEL
    plot.build(jobs)


def _series(run: EvalysRun) -> "Figure":
    from evalys.visu import core, series
    from matplotlib.gridspec import GridSpec

    layout, jobs = core.EvalysLayout(), _ran(run.jobs)
    for place, name in enumerate(("utilization", "queue")):
        layout.sps[name] = GridSpec(nrows=2, ncols=1)[place]
        layout.inject(series.SeriesVisualization.factory(name), spskey=name).build(jobs, name)
    return _sharing_time(layout.fig)


def _details(run: EvalysRun) -> "Figure":
    # plot_details of 4.0.7 gives its series no label, which they need, and shares axes by what matplotlib 3.8 removed
    from evalys.visu import details, lifecycle, series

    layout, jobs = details.DetailsLayout(), _ran(run.jobs)
    for name in ("utilization", "queue"):
        layout.inject(series.SeriesVisualization.factory(name), spskey=name).build(jobs, name)
    layout.inject(lifecycle.LifecycleVisualization, spskey="lifecycle").build(jobs)
    _inject_gantt(layout, "gantt", jobs)
    width, height = layout.fig.get_size_inches()
    layout.fig.set_size_inches(width, 2.2 * height)
    return _sharing_time(layout.fig)


def _fragmentation(run: EvalysRun) -> "Figure":
    # JobSet.fragmentation of 4.0.7 calls Series.set_value, which pandas 1.0 removed, and plot_fragmentation calls
    # seaborn.distplot and statsmodels: its gaps, its formula (Gehr and Schneider, CCGRID 2009), its three panels
    import numpy as np
    from matplotlib import pyplot as plt

    gaps = _ran(run.jobs).free_resources_gaps(begin_time=float(run.jobs.df["submission_time"].min()))
    shares = np.array([1 - (gap**2).sum() / gap.sum() ** 2 if gap.sum() > 0 else 0.0 for gap in gaps])
    figure, (by_host, distribution, ecdf) = plt.subplots(nrows=3)
    by_host.plot(range(run.jobs.res_bounds.inf, run.jobs.res_bounds.sup + 1), shares)
    by_host.set(title="Fragmentation over resources", xlabel="host", ylabel="fragmentation")
    distribution.hist(shares, bins=20)
    distribution.set(title="Fragmentation distribution", xlabel="fragmentation", ylabel="hosts")
    ecdf.step(np.sort(shares), np.arange(1, len(shares) + 1) / len(shares), where="post")
    ecdf.set(title="Fragmentation ecdf", xlabel="fragmentation", ylabel="share of hosts")
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, 1.4 * height)
    return figure


def _states(run: EvalysRun) -> "Figure":
    from evalys.visu import legacy
    from matplotlib import pyplot as plt

    figure, (gantt, states) = plt.subplots(nrows=2, sharex=True)
    asleep, under_way = set[int](), set[int]()  # the pstates that hosts have after they were switched off
    changes: Any = run.pstate_changes
    for hosts, pstate in zip(changes["machine_id"], changes["new_pstate"], strict=True):
        chosen = set(parse_hosts(str(hosts)))
        if pstate == _SWITCHING_OFF:
            under_way |= chosen
        elif chosen & under_way:
            asleep.add(int(pstate))
            under_way -= chosen
    marks = {"off_pstates": asleep, "son_pstates": {_SWITCHING_ON}, "soff_pstates": {_SWITCHING_OFF}}
    jobs = _ran(run.jobs)
    legacy.plot_gantt_pstates(
        jobs, run.pstates, gantt, "Jobs and switched hosts", len(jobs.df) <= _MOST_LABELS, **marks
    )
    legacy.plot_mstates(run.machine_states, ax=states, title="Machine states")
    states.legend(loc="upper right")
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, 1.3 * height)
    return _named(figure, hosts=[gantt, states], times=[states])


def _gantt_of_all(jobsets: dict[str, "JobSet"]) -> "Figure":
    from evalys.visu import core, gantt

    layout = core.SimpleLayout()
    ran = {name: _ran(jobs) for name, jobs in jobsets.items()}
    layout.inject(gantt.DiffGanttVisualization, spskey="all").build(ran)
    return _named(layout.fig, hosts=layout.fig.axes, times=layout.fig.axes)


def _sharing_time(figure: "Figure") -> "Figure":
    """All panels over one time, in seconds, which the last one says."""
    limits = [axes.get_xlim() for axes in figure.axes]
    for axes in figure.axes:
        axes.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    return _named(figure, hosts=(), times=figure.axes[-1:])


def _named(figure: "Figure", hosts: "Sequence[Axes]", times: "Sequence[Axes]") -> "Figure":
    """The figure with units at axes, where evalys names none."""
    for each in hosts:
        each.set_ylabel("hosts")
    for each in times:
        each.set_xlabel("time (s)")
    return figure
