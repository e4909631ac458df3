"""The report as a person uses it, in headless Chromium."""

import math
import time

import numpy as np
import pytest
from helpers.browser import browser, missing

from decision.experiments.comparison import MeasuredRun, compare_runs
from decision.experiments.metric_list import METRICS
from decision.experiments.results import LearningCurve, NamedRun, named_run
from decision.model.record import FinalState, HostTable, JobTable, RunRecord
from decision.report.comparison import write_comparison
from decision.report.pages import write_report
from decision.report.plots import Paper, drawn_for

LEFT, TOP, BOTTOM = 52, 6, 24  # pixels around a chart, as in the page's script


def run(name: str, jobs: JobTable, nb_hosts: int) -> NamedRun:
    states = HostTable(time=np.zeros(0), counts=np.zeros((0, 6), np.int64))
    record = RunRecord(nb_hosts=nb_hosts, jobs=jobs, host_states=states, time_in_state=np.zeros(6))
    return named_run(name, record)


def table(submit, start, runtime, walltime, allocation, size) -> JobTable:
    n = len(submit)
    return JobTable(
        id=[f"w0!{i}" for i in range(n)],
        profile=["p"] * n,
        submit_time=np.array(submit, float),
        size=np.array(size, np.int64),
        walltime=np.array(walltime, float),
        final_state=np.full(n, FinalState.COMPLETED_SUCCESSFULLY, np.int64),
        start_time=np.array(start, float),
        runtime=np.array(runtime, float),
        allocation=allocation,
        energy=np.full(n, -1.0),
        metadata=[""] * n,
    )


# A job on hosts 0 and 1 for the first half, one on 0 to 3 that waits for it; the other policy starts it later
TWO = table([0, 100], [0, 500], [500, 500], [600, math.inf], ["0-1", "0-3"], [2, 4])
LATER = table([0, 100], [0, 600], [500, 400], [600, math.inf], ["0-1", "0-3"], [2, 4])


def crowd(nb_jobs: int, nb_hosts: int) -> JobTable:
    """Jobs in scattered pieces, about four each."""
    rng = np.random.default_rng(7)
    hosts = rng.integers(0, nb_hosts // 4 - 1, (nb_jobs, 4)) + np.arange(4) * (nb_hosts // 4)
    start = np.sort(rng.uniform(0, 7 * 86400, nb_jobs))
    runtime = rng.lognormal(6, 1.5, nb_jobs)
    places = [" ".join(map(str, row)) for row in hosts.tolist()]
    return table(np.maximum(0, start - 1000), start, runtime, 2 * runtime, places, np.full(nb_jobs, 4))


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    if missing():
        pytest.skip(missing())
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def show(window, tmp_path):
    """Opens the report of some runs."""

    def opened(*runs: NamedRun):
        (tmp_path / "report.html").write_bytes(b"".join(write_report(runs, [])))
        window.open(tmp_path / "report.html")
        window.settle()
        return window

    return opened


def place(window, chart: int, x: float, y: float) -> tuple[float, float]:
    """A place in a chart, as shares of its width and height, in pixels of the window."""
    frame = window.run(
        f"const c = document.querySelectorAll('canvas')[{chart}]; c.scrollIntoView({{block: 'center'}});"
        "const r = c.getBoundingClientRect(); return [r.left, r.top, r.width, r.height];"
    )
    left, top, width, height = frame
    return left + LEFT + x * (width - LEFT - 8), top + TOP + y * (height - TOP - BOTTOM)


def colour_at(chart: int, x: float, y: float) -> str:
    """A script for the colour at a place in a chart, read from a copy, with the page left where it is."""
    return (
        f"const c = document.querySelectorAll('canvas')[{chart}], r = c.getBoundingClientRect();"
        "const copy = document.createElement('canvas');"
        "copy.width = c.width; copy.height = c.height;"
        "const pen = copy.getContext('2d', {willReadFrequently: true});"
        "pen.drawImage(c, 0, 0);"
        f"const x = {LEFT} + {x} * (r.width - {LEFT + 8}), y = {TOP} + {y} * (r.height - {TOP + BOTTOM});"
        "return [...pen.getImageData(x * c.width / r.width, y * c.height / r.height, 1, 1).data];"
    )


def drag(window, begin: float, end: float) -> None:
    """Take the first chart at one share of its width and let it go at another."""
    x, y = place(window, 0, begin, 0.5)
    there = {"type": "pointerMove", "duration": 0, "x": round(place(window, 0, end, 0.5)[0]), "y": round(y)}
    window.point(x, y, {"type": "pointerDown", "button": 0}, there, {"type": "pointerUp", "button": 0})


def view(window) -> list[float]:
    return window.run("return [view.begin, view.end, view.low, view.high];")


def tip(window) -> str:
    return window.run("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent;")


def test_pointing_at_a_job_shows_what_it_asked_for_and_got(show):
    window = show(run("easy", TWO, 4))
    window.point(*place(window, 0, 0.75, 0.6))
    assert tip(window).splitlines() == [
        "job w0!1",
        "size      4 hosts",
        "wait      6 min 40 s",
        "walltime  none",
        "ran       8 min 20 s, from 8 min 20 s",
    ]
    window.point(*place(window, 0, 0.25, 0.3))
    assert "job w0!0" in tip(window)
    assert "walltime  10 min" in tip(window)
    window.point(*place(window, 0, 0.25, 0.9))  # a free host
    assert tip(window) == ""


def test_the_wheel_zooms_all_charts_around_the_pointer(show):
    window = show(run("easy", TWO, 4), run("later", LATER, 4))
    window.wheel(*place(window, 1, 0.5, 0.5), -100)
    begin, end, low, high = view(window)
    assert (begin, end) == (pytest.approx(100, abs=2), pytest.approx(900, abs=2))
    assert (low, high) == (0, 4)
    # in the first chart, a tenth from its left edge is now t=180 s
    window.point(*place(window, 0, 0.1, 0.1))
    assert window.run("return pointed.time;") == pytest.approx(180, abs=4)
    window.run("document.getElementById('whole').click();")
    window.settle()
    assert view(window) == [0, 1000, 0, 4]


def test_shift_and_the_wheel_zoom_hosts_and_keys_move(show):
    window = show(run("easy", TWO, 4))
    x, y = place(window, 0, 0.5, 0.5)
    turn = f"new WheelEvent('wheel', {{deltaY: -100, shiftKey: true, clientX: {x}, clientY: {y}}})"
    window.run(f"document.querySelector('canvas').dispatchEvent({turn});")
    assert view(window) == pytest.approx([0, 1000, 0.4, 3.6], abs=0.05)
    for key in ("ArrowDown", "+", "ArrowRight"):
        window.run(f"document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}));")
    assert view(window) == pytest.approx([180, 980, 0.72, 3.92], abs=0.05)
    window.run("document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: '0'}));")
    assert view(window) == [0, 1000, 0, 4]


def test_a_drag_moves_the_clock_and_stops_at_its_ends(show):
    window = show(run("easy", TWO, 4))
    window.run("document.getElementById('closer').click();")
    assert view(window)[:2] == [250, 750]
    drag(window, 0.5, 0.3)
    assert view(window)[0] == pytest.approx(350, abs=3)
    drag(window, 0.9, 0.1)
    assert view(window)[:2] == pytest.approx([500, 1000])


def test_a_job_has_its_colour_and_its_mark_in_every_run(show):
    window = show(run("easy", TWO, 4), run("later", LATER, 4))
    colours = "return charts.map(chart => colors[chart.run.color[chart.index.get('w0!1')]]);"
    assert len(set(window.run(colours))) == 1
    window.point(*place(window, 0, 0.9, 0.6))
    assert window.waits_for(colour_at(1, 0.8, 0.3), [0, 0, 0, 255])


def test_ten_thousand_jobs_on_256_hosts_are_redrawn_at_once(show):
    began = time.monotonic()
    window = show(run("crowd", crowd(10_000, 256), 256))
    assert time.monotonic() - began < 10
    for _ in range(5):
        window.wheel(*place(window, 0, 0.4, 0.4), -100)
    assert view(window)[1] - view(window)[0] < 0.4 * 7 * 86400
    frame = float(window.run("return document.body.dataset.frame;"))
    assert frame < 100  # milliseconds, on a machine without graphics hardware
    window.point(*place(window, 0, 0.4, 0.4))
    assert float(window.run("return document.body.dataset.frame;")) < 100


def test_the_page_is_silent_and_may_ask_nobody(show):
    window = show(run("</script><script>alert(1)</script>", TWO, 4))
    assert window.messages() == []
    assert window.run("return document.querySelector('h3').textContent;") == "</script><script>alert(1)</script>"
    window.run("fetch('http://127.0.0.1:9/').catch(() => {});")
    refusals = window.messages()
    assert refusals and all("Content Security Policy" in refusal or "9/" in refusal for refusal in refusals)


IMAGES = "return [...document.images].map(image => [image.alt, image.complete && image.naturalWidth > 600]);"


def test_a_comparisons_page_shows_its_pictures_and_fits_the_window(window, tmp_path):
    report = pytest.importorskip("decision.report.pages")
    outcomes = [
        MeasuredRun(
            workload="log", contender=name, first_job=0, seed=seed, metrics={"wait": seed + wait, "fairness": 0.5}
        )
        for name, wait in (("easy", 10), ("easy,power=idle-timeout,idle_timeout=300", 20), ("<b>sjf", 5))
        for seed in range(5)
    ]
    found = compare_runs(outcomes, [METRICS["wait"], METRICS["fairness"]], "easy", setup={"policies": "x" * 200})
    write_comparison(tmp_path, found)
    window.open(report.write_comparison_report(tmp_path))
    window.settle()
    assert [shown for _, shown in window.run(IMAGES)] == [True, True]
    assert window.messages() == []
    assert window.run("return document.querySelector('tbody tr:nth-child(3) td').textContent;") == "<b>sjf"
    assert window.run("return document.documentElement.scrollWidth <= window.innerWidth;")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_trainings_page_shows_its_curves(window, tmp_path, suffix):
    analyse = pytest.importorskip("decision.report.pages").analyse
    columns = {"steps": np.array([100.0, 200.0]), "reward": np.array([-1.0, -0.5])}
    with drawn_for(Paper(suffix=suffix)):
        (*_, page) = analyse([], [LearningCurve("learned", [columns])], tmp_path, None)
    window.open(page)
    window.settle()
    assert window.run(IMAGES) == [["Learning curves of learned. Last mean reward of a step: learned -0.5.", True]]
    assert window.messages() == []
    assert window.run("return document.title;") == "learned"
