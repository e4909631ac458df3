"""Texts on all figures: plain ones, whatever is drawn, and dates where they are known."""

import inspect
import pkgutil
import re
from importlib import import_module

import numpy as np
import pytest
from helpers.advice_samples import sample_advice
from helpers.run_samples import THREE, job_table, run_facts

from decision.experiments.comparison import Row
from decision.experiments.results import LearningCurve, NamedRun, SearchTrial, named_run
from decision.experiments.statistics import Estimate
from decision.files.generate.platforms import simple_cluster
from decision.model.record import EnergyTable, HostTable, RunRecord, SupplyTable
from decision.model.workload import Delay, Job, Workload
from decision.rl.learning.config import Range, Space

pytest.importorskip("matplotlib")
from matplotlib.text import Text

from decision.report import plots
from decision.report.plots import figures, platforms, results, schedules, search, workloads
from decision.report.plots import figures as axes

MONDAY = 736_992_000.0  # 1993-05-10 00:00 UTC
RAW = re.compile(r"\$\\|mathdefault")


def run(name: str = "easy", jobs=THREE, clock: float | None = None) -> NamedRun:
    states = HostTable(time=np.array([0.0, 100.0]), counts=np.array([[0, 0, 0, 4, 0, 0], [1, 0, 0, 1, 2, 0]]))
    energy = EnergyTable(
        time=np.array([0.0, 200.0]), energy=np.array([0.0, 4e5]), event=["s", "e"], wattmin=np.zeros(2)
    )
    supply = SupplyTable(time=np.array([0.0]), hosts=np.array([2.0]))
    record = RunRecord(
        nb_hosts=4, jobs=jobs, host_states=states, energy=energy, time_in_state=np.zeros(6), joules=4e5, supply=supply
    )
    return named_run(name, record, run_facts(clock=clock))


def queue(length: int):
    """Jobs that come at once, and run one after the other."""
    return job_table(*((0.0, 4, 3600.0 * at, 3600.0, "0-3") for at in range(length)))


def rows(low: float, high: float, unit_change: float | None = None) -> list[Row]:
    change = None if unit_change is None else Estimate(unit_change, -unit_change, 2 * unit_change)
    both = {"improvement": Estimate(0.5, 0.4, 0.6)} if change is None else {"improvement": None, "change": change}
    return [
        Row(metric="wait", workload="log", contender=name, runs=8, score=Estimate(at, at, at), verdict=verdict, **both)
        for name, at, verdict in (("easy", low, "baseline"), ("sjf", high, "open"))
    ]


def workload(*runtimes: float, unix_start: float | None = None) -> Workload:
    jobs = [
        Job(id=f"w0!{at}", submit_time=3600.0 * at, size=1, walltime=2 * s, profile=str(s), user="u")
        for at, s in enumerate(runtimes)
    ]
    return Workload(
        name="w0", jobs=jobs, profiles={str(s): Delay(s) for s in runtimes}, nb_res=4, unix_start=unix_start
    )


def curve(first: float, last: float) -> LearningCurve:
    steps = np.linspace(1e3, 2e7, 5)
    return LearningCurve("seed", [{"steps": steps, "reward": np.linspace(first, last, 5)}])


TRIALS = [
    SearchTrial(
        number=at, settings={"learn.lr": lr, "learn.envs": "8"}, state=state, judged={"validation_waiting_time": wait}
    )
    for at, (lr, state, wait) in enumerate(
        [("1e-05", "finished", 1e9 + 1), ("0.001", "pruned", 1e9), ("0.0004", "finished", 1e9 + 2)], 1
    )
]
SPACE = Space((), {"learn.lr": Range(1e-5, 1e-3, whole=False, log=True), "learn.envs": ["8", "16"]})
SHORT_AND_LONG = [run(jobs=queue(40)), run("sjf", queue(2))]
DRAWN = {
    schedules.load_over_time: [(SHORT_AND_LONG,), ([run(clock=MONDAY)],)],
    schedules.hosts_and_power: [([run()], None)],
    schedules.reservation_timeline: [(SHORT_AND_LONG,)],
    results.waits_by_size_and_length: [(SHORT_AND_LONG,)],
    results.slowdown_buckets: [(SHORT_AND_LONG,)],
    workloads.power_over_time: [([run()],)],
    results.draw_rows: [
        (rows(20, 700), "s"),
        (rows(0.02, 0.9), ""),
        (rows(1e-7, 1e9), "s"),
        (rows(5e6, 4e8), "J"),
        (rows(1e9 + 1, 1e9 + 2), "s"),
        (rows(20, 900, 1e-12), "s"),
    ],
    results.learning_curves: [([curve(1e9 + 1, 1e9 + 2)],), ([curve(-1e-9, 1e-9)],)],
    schedules.schedule_figure: [(THREE, 4, "title"), (queue(40), 4, "title", 0.0, MONDAY)],
    workloads.workload_figure: [
        (workload(*times, unix_start=start), np.array(times), "title")
        for times in ([100.0, 150.0, 400.0], [1.0, 5.0, 9e5])
        for start in (None, MONDAY)
    ],
    platforms.platform_figure: [(simple_cluster(7), "title")],
    search.search_picture: [(TRIALS, SPACE)],
    results.advice_pictures: [(sample_advice(),), (sample_advice(None, 1e-3),)],
}
HELPERS = {figures.drawn, plots.drawn_for}


def test_every_function_that_draws_is_looked_at_here():
    modules = [import_module(f"{plots.__name__}.{found.name}") for found in pkgutil.iter_modules(plots.__path__)]
    styled = {
        function
        for module in modules
        for _, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and hasattr(function, "__wrapped__")
    }
    assert styled - HELPERS == set(DRAWN)


def figures_of(made):
    found = made.values() if isinstance(made, dict) else [made]
    return [getattr(each, "figure", each) if not hasattr(each, "savefig") else each for each in found]


@pytest.mark.parametrize(
    ("draw", "given"), [pytest.param(draw, given, id=draw.__name__) for draw, every in DRAWN.items() for given in every]
)
def test_no_text_of_a_figure_is_raw_tex(draw, given):
    for figure in figures_of(draw(*given)):
        for ending in (".png", ".svg", ".pdf"):
            figures.drawn(figure, ending)
        texts = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
        assert not [text for text in texts if RAW.search(text)]
        assert "mathdefault" not in figures.drawn(figure, ".svg").decode()


def test_logarithmic_axes_are_made_in_one_place(root):
    found = {
        str(path.relative_to(root / "decision"))
        for path in (root / "decision").rglob("*.py")
        if re.search(r"""[xy]scale(\(|=)["']log["']""", path.read_text("utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (200, 700, [200, 300, 500, 700]),
        (0.9, 1200, [1, 10, 100, 1000]),
        (1e-3, 1e9, [1e-3, 1e-1, 1e1, 1e3, 1e5, 1e7, 1e9]),
        (440, 560, [450, 475, 500, 525, 550]),
        (5, 5, [5]),
    ],
)
def test_a_logarithmic_axis_has_a_few_round_ticks(low, high, ticks):
    found = axes.RoundTicks().tick_values(low, high)
    assert found == pytest.approx(ticks)


def ticks_of(picture) -> set[str]:
    picture.figure.draw_without_rendering()
    return {label.get_text() for each in picture.figure.axes for label in each.get_xticklabels()}


def test_axes_of_time_show_the_dates_that_the_log_says():
    shown = ticks_of(schedules.load_over_time([run(jobs=queue(100), clock=MONDAY)]))
    assert {"May-11", "May-13"} <= shown or {"11", "13"} <= shown
    picture = schedules.load_over_time([run(jobs=queue(100), clock=MONDAY), run("sjf", queue(100))])
    assert picture.figure._supxlabel.get_text().startswith("days since the first submission")  # one has none
    figure = schedules.schedule_figure(queue(100), 4, "t", 0.0, MONDAY)
    assert figure.axes[-1].get_xlabel() == "time by the machine's clock"
    figure.draw_without_rendering()
    assert figure.axes[-1].xaxis.get_offset_text().get_text() == "1993-May"


def test_ticks_of_dates_stand_at_midnights_also_where_the_first_job_came_at_noon():
    noon = MONDAY + 43_200
    found = axes.DateTicks(86_400.0, noon).tick_values(0.0, 5.0)
    assert [value % 1 for value in found] == pytest.approx([0.5] * len(found)) and len(found) >= 3


def test_a_run_says_what_the_clock_showed_at_its_first_submission():
    assert run(clock=MONDAY).clock == MONDAY + 10  # that of THREE
    assert run().clock is None


def test_names_stand_in_a_legend_and_not_over_points():
    (axes_of_plane,) = results.advice_pictures(sample_advice())["plane"].figure.axes
    assert not axes_of_plane.texts
    assert axes_of_plane.get_xlabel() == "mean wait (h)"
