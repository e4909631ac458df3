"""Pictures of runs side by side: what is on them, measured on their axes and in their files."""

import base64
import io
import math
import re
import shutil

import numpy as np
import pytest
from helpers.run_samples import THREE, job_table
from msgspec.structs import replace

from decision.experiments.metrics import only_ran
from decision.experiments.results import NamedRun, Steps, averaged, later, named_run
from decision.model.errors import ConfigError
from decision.model.record import EnergyTable, HostTable, JobTable, RunRecord
from decision.report.plots import Paper, drawn_for

matplotlib = pytest.importorskip("matplotlib")
figures = pytest.importorskip("decision.report.plots.figures")
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.image import imread  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from decision.report.plots import results, schedules  # noqa: E402

ALL = (
    schedules.load_over_time,
    schedules.reservation_timeline,
    results.waits_by_size_and_length,
    results.slowdown_buckets,
    lambda runs: schedules.hosts_and_power(runs, None),
)
UNIX = 1_668_693_697.0  # seconds: a log that begins in 2022


def run(name="easy", jobs=THREE, nb_hosts=4) -> NamedRun:
    states = HostTable(time=np.array([0.0, 100.0]), counts=np.array([[0, 0, 0, 4, 0, 0], [1, 0, 0, 1, 2, 0]]))
    energy = EnergyTable(
        time=np.array([0.0, 200.0]), energy=np.array([0.0, 400e3]), event=["s", "e"], wattmin=np.zeros(2)
    )
    record = RunRecord(
        nb_hosts=nb_hosts, jobs=jobs, host_states=states, energy=energy, time_in_state=np.zeros(6), joules=400e3
    )
    return named_run(name, record)


def crowd(number: int, first: float = 0.0) -> JobTable:
    """So many jobs of a second to an hour in ninety days; each hundredth waits for up to 40 days."""
    rng = np.random.default_rng(11)
    submit = first + np.sort(rng.uniform(0, 90 * 86_400, number))
    wait = np.where(np.arange(number) % 100, rng.exponential(3600.0, number), rng.uniform(0, 40 * 86_400, number))
    runtime = np.exp(rng.uniform(0, np.log(3600), number))
    rows = zip(submit.tolist(), [1] * number, (submit + wait).tolist(), runtime.tolist(), ["0"] * number, strict=True)
    return replace(job_table(*rows), walltime=2 * runtime)


def test_averages_keep_the_area_under_a_step_function():
    steps = Steps(np.array([0.0, 30.0, 100.0]), np.array([2.0, 5.0, 0.0]))
    means = averaged(steps, np.linspace(0.0, 100.0, 201))
    assert means[:60] == pytest.approx(2) and means[60:] == pytest.approx(5)
    assert averaged(steps, np.array([-10.0, 10.0, 100.0, 200.0])) == pytest.approx([1, (40 + 350) / 90, 0])


def test_times_are_counted_from_the_first_submission_whatever_it_is():
    early, late = run(), run(jobs=later(THREE, UNIX - 10))
    assert (early.first, late.first) == (10, UNIX)
    assert early.jobs.start_time.tolist() == late.jobs.start_time.tolist() == [0, 100, 20]
    assert late.record.energy.time.tolist() == [-UNIX, 200 - UNIX]


@pytest.mark.parametrize("picture", [schedules.load_over_time, schedules.reservation_timeline])
def test_a_log_in_unix_time_fills_its_axes_and_says_when_it_began(picture):
    figure = picture([run(jobs=crowd(50, UNIX))]).figure
    assert figure.axes[0].get_xlim()[0] == 0 and 50 < figure.axes[0].get_xlim()[1] < 140
    assert figure._supxlabel.get_text().startswith("days since the first submission (at 1,66")


def test_waits_are_averaged_by_powers_of_two_of_hosts_and_by_runtime():
    # two jobs on 3 and 4 hosts that run 2 and 9 minutes, one on one host that runs 30 s
    jobs = job_table((0.0, 3, 10.0, 120.0, "0-2"), (0.0, 4, 30.0, 540.0, "0-3"), (0.0, 1, 7.0, 30.0, "0"))
    means, counts = results._wait_cells(jobs, 3)
    assert counts.tolist()[:2] == [[1, 0, 0], [0, 0, 2]] and counts.sum() == 3
    assert means[1, 2] == 20 and means[0, 0] == 7
    assert math.isnan(means[0, 1])


@pytest.mark.parametrize(
    ("means", "scale"),
    [
        ([2e4, 1e6, 0, np.nan], (2e4, 1e6)),  # what is there
        ([1.0, 1e6], (1e3, 1e6)),  # three powers of ten at most
        ([5e5, 1e6], (1e5, 1e6)),  # one at least
        ([0, np.nan], (1.0, 10.0)),
    ],
)
def test_the_colours_of_waits_fit_the_data(means, scale):
    assert results._shades([np.array(means)]) == scale


@pytest.mark.parametrize(("power", "text"), [(0, "1"), (1, "2"), (2, "3-4"), (3, "5-8"), (8, "129-256")])
def test_sizes_are_named_by_their_range(power, text):
    assert results._size_range(power) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (4.26, "4.3 s"), (59, "59 s"), (90, "1.5 min"), (46_800, "13 h"), (86_400, "1.0 d")],
)
def test_durations_are_short(seconds, text):
    assert figures.short_duration(seconds) == text


def test_each_run_has_a_bar_in_each_range_of_slowdowns():
    # bounded slowdowns of the three jobs: 1, 2.8 and 1
    axes = results.slowdown_buckets([run("a"), run("b")]).figure.axes
    shares = [[bar.get_width() for bar in panel.patches] for panel in axes]
    assert shares == [pytest.approx([share] * 2) for share in (200 / 3, 0, 100 / 3, 0, 0, 0)]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in axes[0].texts] == ["66.7", "66.7"]


def test_a_row_of_the_raster_waits_runs_and_leaves_the_rest_of_its_walltime():
    jobs = replace(only_ran(later(THREE, -10)), walltime=np.array([140.0, math.inf, 5.0]))
    image = schedules.raster(jobs, 160.0, rows=3, columns=16)  # a column is 10 s
    waits, reserved, runs = schedules._WAITS, schedules._RESERVED, schedules._RUNS
    assert image.tolist() == [
        [runs] * 10 + [reserved] * 4 + [0] * 2,
        [0] + [waits] * 9 + [runs] * 5 + [0],
        [0] * 2 + [runs] + [0] * 13,  # one second, and its reservation of five ends in the same column
    ]
    assert schedules.raster(jobs, 160.0, rows=1, columns=16)[0].tolist() == [runs] * 15 + [0]


@pytest.mark.parametrize("dpi", [80.0, 200.0])
def test_every_job_of_a_run_leaves_ink_in_the_file(dpi):
    runs = [run("a", crowd(3000)), run("b", crowd(3000))]
    with drawn_for(Paper(dpi=dpi)):
        figure = schedules.reservation_timeline(runs).figure
        pixels = imread(io.BytesIO(figures.drawn(figure, ".png")))[:, :, :3]
    blue = np.abs(pixels - to_rgb(schedules._STEPS[schedules._RUNS][0])).max(axis=2) < 0.02
    for axes, (_, _, jobs, *_) in zip(figure.axes, runs, strict=True):
        places = np.column_stack((jobs.start_time / 86_400, np.arange(3000) + 0.5))
        x, y = axes.transData.transform(places).T
        column, row = x.astype(int), (len(pixels) - y).astype(int)
        around = [(up, aside) for up in (-2, -1, 0, 1, 2) for aside in (-2, -1, 0, 1, 2)]
        near = np.array([blue[np.maximum(row + up, 0), np.maximum(column + aside, 0)] for up, aside in around])
        assert near.any(axis=0).all()


def test_vector_pictures_have_the_raster_as_it_is():
    figure = schedules.reservation_timeline([run("a", crowd(3000))]).figure
    (image,) = figure.axes[0].images
    svg = figures.drawn(figure, ".svg").decode()
    (embedded,) = re.findall(r'"data:image/png;base64,([^"]*)"', svg)
    pixels = imread(io.BytesIO(base64.b64decode(embedded)))[:, :, :3]
    blue = np.abs(pixels - to_rgb(schedules._STEPS[schedules._RUNS][0])).max(axis=2) < 0.02
    assert pixels.shape[:2] == image.get_array().shape
    assert blue.sum() == (image.get_array() == schedules._RUNS).sum()


def test_power_and_host_states_are_averages_over_time():
    figure = schedules.hosts_and_power([run()], None).figure
    top, bottom = figure.axes
    assert top.get_ylim() == (0, 4)
    assert top.get_title(loc="left") == "easy: 0 MJ"
    (everything,) = bottom.collections
    assert everything.get_paths()[0].vertices[:, 1].max() == pytest.approx(2.0)  # 400 kJ in 200 s


def test_all_pictures_share_one_clock():
    late = job_table((0.0, 1, 0.0, 10_000.0, "0"))
    figure = schedules.reservation_timeline([run("a"), run("b", late)]).figure
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim() == (0, pytest.approx(10_000 / 3600))
    assert schedules.load_over_time([run("a"), run("b", late)]).figure._supxlabel.get_text().startswith("hours since")


def test_twelve_runs_have_twelve_looks_with_and_without_colours():
    looks = [look for look, _ in zip(figures.looks(), range(24), strict=False)]
    assert len({(look.color, look.line) for look in looks}) == 24
    assert len({look.marker for look in looks[:12]}) == 12


NAMES = ["easy,power=idle-timeout,idle_timeout=600", "conservative,allocation=contiguous", "$a$", *map(str, range(9))]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "paper",
    [pytest.param(Paper(), marks=pytest.mark.nightly), Paper(width=3.5), Paper(width=10.0, type_size=12.0)],
    ids=str,
)
@pytest.mark.parametrize("picture", ALL)
def test_no_text_is_cut_and_no_title_lies_over_another(picture, paper):
    with drawn_for(paper):
        figure = picture([run(name) for name in NAMES]).figure
        figure.draw_without_rendering()
    frame = figure.bbox.padded(1)
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    beyond = _beyond(figure)
    drawn = [text for text in texts if text not in beyond]
    assert not [text.get_text() for text in drawn if "mathdefault" in text.get_text()]
    assert not [text.get_text() for text in drawn if not _within(text.get_window_extent(), frame)]
    titles = [axes._left_title for axes in figure.axes if axes._left_title.get_text()]
    boxes = [title.get_window_extent() for title in titles]
    assert not [titles[at].get_text() for at, a in enumerate(boxes) for b in boxes[:at] if a.overlaps(b)]
    legends = [legend.get_window_extent() for legend in figure.legends]
    assert not [axes for axes in figure.axes for legend in legends if legend.overlaps(axes.bbox)]


def _beyond(figure) -> set[Text]:
    """Labels of ticks that are not drawn because they are outside of their axis."""
    beyond = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            beyond |= {tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high}
    return beyond


def _within(box, frame) -> bool:
    return frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1


@pytest.mark.parametrize("picture", ALL)
def test_captions_and_alternative_texts_are_sentences_that_name_the_runs(picture):
    shown = picture([run("easy"), run("fcfs")])
    for text in (shown.caption, shown.alt):
        assert text[0].isupper() and text.endswith(".") and len(text.split()) > 5 and "  " not in text
    assert "easy" in shown.alt and "fcfs" in shown.alt


@pytest.mark.parametrize(("width", "dpi"), [(7.0, 200.0), (3.5, 100.0), (2.5, 200.0)])
def test_files_have_the_width_that_was_asked_for(width, dpi):
    with drawn_for(Paper(width=width, dpi=dpi)):
        figure = results.slowdown_buckets([run()]).figure
        png, svg, pdf = (figures.drawn(figure, ending) for ending in (".png", ".svg", ".pdf"))
    assert imread(io.BytesIO(png)).shape[1] == round(width * dpi)
    assert f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="{72 * width:g}pt"'.encode() in svg
    assert f"/MediaBox [ 0 0 {72 * width:g} ".encode() in pdf


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_same_runs_give_the_same_file(ending):
    once, again = (figures.drawn(schedules.load_over_time([run()]).figure, ending) for _ in range(2))
    assert once == again


def test_what_the_user_sets_of_matplotlib_is_kept_and_all_else_is_as_in_all_pictures():
    with matplotlib.rc_context({"font.family": ["serif"], "lines.linewidth": 3.5}):
        figure = schedules.schedule_figure(THREE, 4, "title")
        fonts = {text.get_fontfamily()[0] for text in figure.findobj(Text) if text.get_text()}
        assert fonts == {"serif"}
    assert {text.get_fontfamily()[0] for text in schedules.schedule_figure(THREE, 4, "title").findobj(Text)} == {
        "DejaVu Sans"
    }


def test_a_pgf_has_the_texts_for_the_fonts_of_the_document(tmp_path):
    figure = schedules.schedule_figure(THREE, 4, "100 % of w_0 on taurus")
    if not any(map(shutil.which, figures._TEX)):
        pytest.skip("needs LaTeX: apt install texlive-xetex")
    figures.save(figure, tmp_path / "a.pgf")
    text = (tmp_path / "a.pgf").read_text()
    assert "100 % of w_0 on taurus" in text
    assert "\\familydefault" in text and "DejaVu" not in text.partition("\\begingroup")[2]
    with pytest.raises(ConfigError, match=r"b\.pgf: \w+latex cannot set the texts, as of names with #"):
        figures.save(schedules.schedule_figure(THREE, 4, "half $ of & it"), tmp_path / "b.pgf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pgf"]


def test_without_latex_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"a\.pgf: \.pgf needs LaTeX, and xelatex is not installed; install"):
        figures.save(schedules.schedule_figure(THREE, 4, "title"), tmp_path / "a.pgf")
    assert not any(tmp_path.iterdir())
