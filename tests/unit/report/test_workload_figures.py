"""What a workload is like: figures counted by hand, and what the picture shows."""

import math
from pathlib import Path

import numpy as np
import pytest

from decision.experiments.descriptions import WorkloadFigures, seven_figures, workload_figures
from decision.files import load_oar, load_swf
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, Workload

MONDAY = 736_992_000.0  # 1993-05-10 00:00 UTC

#        submission, size, run time, walltime, user
JOBS = ((0.0, 1, 60.0, 60.0, "a"), (3600.0, 2, 60.0, 120.0, "b"), (7200.0, 3, 90.0, 60.0, "a"))
LAST = (100_000.0, 4, 90.0, math.inf, "")


def workload(*rows: tuple[float, int, float, float, str], unix_start: float | None = MONDAY) -> Workload:
    jobs = tuple(
        Job(id=f"w0!{i}", submit_time=at, size=size, walltime=limit, profile=f"d{run:g}", user=user)
        for i, (at, size, run, limit, user) in enumerate(rows)
    )
    profiles = {"d60": Delay(60.0), "d90": Delay(90.0)}
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=4, path="w.json", unix_start=unix_start)


def described(found: Workload) -> WorkloadFigures:
    return workload_figures(found, runtimes(found))


def test_figures_are_those_counted_by_hand() -> None:
    facts = described(workload(*JOBS, LAST))
    assert (facts.jobs, facts.nb_res, facts.span) == (4, 4, 100_000.0)
    assert facts.load == pytest.approx((60 + 120 + 180 + 360) / (4 * 100_000))
    assert (facts.serial, facts.powers) == (0.25, pytest.approx(2 / 3))
    assert (facts.limited, facts.exact, facts.stopped) == (0.75, pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert (facts.accuracy.least, facts.accuracy.largest) == (0.5, 1.0)
    assert (facts.gap.median, facts.gap.largest) == (3600.0, 92_800.0)
    assert facts.by_hour[[0, 1, 2, 3]].tolist() == [0.25, 0.25, 0.25, 0.25]
    assert facts.by_weekday.tolist() == [0.75, 0.25, 0, 0, 0, 0, 0]
    assert (facts.jobs_by_user.tolist(), facts.area_by_user.tolist()) == ([2, 1], [240.0, 120.0])


def test_a_spread_has_the_quantiles() -> None:
    found = seven_figures(np.arange(101.0))
    assert (found.least, found.quarter, found.median, found.most_of, found.largest, found.mean) == (
        *(0.0, 25.0, 50.0, 95.0, 100.0),
        50.0,
    )
    assert math.isnan(seven_figures(np.array([])).mean)


def test_what_nobody_knows_is_nan() -> None:
    facts = described(workload(LAST))
    assert all(map(math.isnan, (facts.load, facts.exact, facts.stopped, facts.accuracy.mean, facts.gap.mean)))
    assert len(facts.jobs_by_user) == 0


def test_known_logs_have_their_known_figures(shared: Path) -> None:
    nasa = described(load_swf(shared / "data/NASA-iPSC-1993-3.1-cln.swf"))
    assert (nasa.powers, len(nasa.jobs_by_user)) == (1.0, 69)  # a hypercube has no other sizes
    assert nasa.by_weekday[5:].sum() < 0.5 * nasa.by_weekday[:2].sum()
    assert nasa.by_hour[9:18].sum() > 0.7
    gantt = described(load_oar(shared / "data/grid5000-2016/oar_gantt_seed0.csv"))
    assert (gantt.jobs, gantt.nb_res) == (800, 32)


pictures = pytest.importorskip("decision.report.plots.workloads")


@pytest.mark.parametrize("rows", [(*JOBS, LAST), (LAST,), (JOBS[0],), (JOBS[0], JOBS[0])], ids=len)
@pytest.mark.parametrize("unix_start", [None, MONDAY])
def test_any_workload_has_a_picture(rows, unix_start, tmp_path: Path) -> None:
    found = workload(*rows, unix_start=unix_start)
    pictures.draw_workload(found, runtimes(found), tmp_path / "w.svg", "title")
    text = (tmp_path / "w.svg").read_text()
    assert text.count("axes_") >= 7
    assert list(tmp_path.iterdir()) == [tmp_path / "w.svg"]


def test_a_picture_of_a_format_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    found = workload(*JOBS)
    with pytest.raises(ConfigError, match=r"w\.foo: pictures are \.png, \.svg, \.pdf"):
        pictures.draw_workload(found, runtimes(found), tmp_path / "w.foo", "title")
    assert not list(tmp_path.iterdir())
