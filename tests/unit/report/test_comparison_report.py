"""The page of a comparison: what is drawn, and what stands in it."""

import re

import pytest
from msgspec.structs import replace

from decision.experiments.comparison import MeasuredRun, Row, compare_runs
from decision.experiments.metric_list import METRICS, definition, symbols
from decision.experiments.statistics import Estimate
from decision.model.errors import InputError
from decision.report.comparison import write_comparison
from decision.report.plots import Paper, drawn_for

picture = pytest.importorskip("decision.report.plots.results")
report = pytest.importorskip("decision.report.pages")
from decision.report.pages import prose  # noqa: E402


def row(name, score, chance, verdict) -> Row:
    return Row(
        metric="wait",
        workload="log",
        contender=name,
        runs=8,
        score=Estimate(*score),
        improvement=Estimate(*chance),
        verdict=verdict,
    )


ROWS = [
    row("easy", (20, 15, 25), (0.5, 0.4, 0.6), "baseline"),
    row("sjf", (10, 8, 12), (0.9, 0.8, 1.0), "better"),
    row("fcfs", (40, 30, 50), (0.2, 0.1, 0.6), "open"),
]


def lines(axes) -> list[tuple[list[float], str]]:
    """Bars and dots: where from and to, and in which colour."""
    return [(list(line.get_xdata()), line.get_color()) for line in axes.lines if line.get_linestyle() != "--"]


def test_dots_and_intervals_are_the_rows_and_the_baseline_is_marked():
    scores, chances = picture.draw_rows(ROWS, "s").figure.axes
    colors = [picture.COLORS[row.verdict] for row in ROWS]
    assert lines(scores) == [
        ([15, 25], colors[0]),
        ([20], colors[0]),
        ([8, 12], colors[1]),
        ([10], colors[1]),
        ([30, 50], colors[2]),
        ([40], colors[2]),
    ]
    assert [x for x, _ in lines(chances)] == [[0.8, 1.0], [0.9], [0.1, 0.6], [0.2]]
    dashed = [line.get_xdata()[0] for axes in (scores, chances) for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == [20, 0.5]
    assert [text.get_text() for text in scores.get_yticklabels()] == ["easy", "sjf", "fcfs"]
    assert scores.get_ylim() == (2.5, -0.5)  # as in the table, the first above
    assert scores.get_xlabel() == "wait, interquartile mean (s)" and scores.get_xlim()[0] == 0


def test_verdicts_are_marked_by_their_shape_and_named():
    others = row("lifo", (90, 80, 99), (0, 0, 0), "worse"), row("recorded", (70, 70, 70), (1, 1, 1), "not comparable")
    figure = picture.draw_rows([*ROWS, *others], "s").figure
    scores, chances = ([line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1] for axes in figure.axes)
    assert scores == ["D", "^", "o", "v", "x"]
    assert chances == ["^", "o", "v"]  # none of what really happened
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set(picture._MEANINGS.values())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("paper", [Paper(), Paper(width=3.5), Paper(width=5.0, type_size=10.0)], ids=str)
@pytest.mark.parametrize("number", [1, 12])
def test_there_is_room_for_one_row_and_for_twelve_on_any_paper(paper, number):
    rows = [row(f"easy,power=idle-timeout,idle_timeout={i}", (i, i, i + 1), (0.5, 0, 1), "open") for i in range(number)]
    with drawn_for(paper):
        figure = picture.draw_rows(rows, "s").figure
        figure.draw_without_rendering()
    names = [[label.get_window_extent() for label in axes.get_yticklabels()] for axes in figure.axes]
    assert not [a for boxes in names for at, a in enumerate(boxes) for b in boxes[:at] if a.overlaps(b)]
    for axes in figure.axes:
        label = axes.xaxis.label.get_window_extent()
        assert axes.get_tightbbox().x0 >= 0 and label.x1 <= figure.bbox.width
        assert axes.bbox.width > 0.25 * figure.bbox.width


def test_energy_is_drawn_in_megajoules_on_an_axis_that_says_where_it_does_not_begin():
    rows = [row("a", (871.6e6, 871.5e6, 871.9e6), (0.5, 0.5, 0.5), "baseline")]
    shown = picture.draw_rows(rows, "J")
    axes = shown.figure.axes[0]
    shown.figure.draw_without_rendering()
    assert axes.get_xlabel() == "wait, interquartile mean (MJ)\nthe axis does not begin at 0"
    assert "871.6" in [label.get_text() for label in axes.get_xticklabels()]
    assert shown.alt == "Interquartile means in J: a 871.6 M (baseline)."


@pytest.mark.parametrize(
    ("low", "high", "scale"), [(8, 50, "linear"), (1, 50, "log"), (0, 50, "linear"), (-1, 50, "linear")]
)
def test_a_scale_is_logarithmic_where_scores_are_far_apart_and_above_nothing(low, high, scale):
    rows = [row("easy", (low, low, low), (0.5, 0.5, 0.5), "baseline"), row("b", (high, high, high), (0, 0, 0), "worse")]
    assert picture.draw_rows(rows, "").figure.axes[0].get_xscale() == scale


def outcomes(workload: str, **scores) -> list[MeasuredRun]:
    return [
        MeasuredRun(
            workload=workload, contender=name, first_job=0, seed=i, metrics={"wait": value, "bounded_slowdown": 2}
        )
        for name, values in scores.items()
        for i, value in enumerate(values)
    ]


@pytest.fixture
def comparison():
    runs = outcomes("a", easy=[5, 6, 7, 8], sjf=[1, 2, 3, 4]) + outcomes("b", easy=[5, 6, 7, 8], sjf=[6, 7, 8, 9])
    setup = {"policies": "easy; sjf", "left out of a.swf": "3 <too large>"}
    return compare_runs(runs, [METRICS["wait"], METRICS["bounded_slowdown"]], "easy", setup=setup)


@pytest.fixture
def text(comparison, tmp_path) -> str:
    write_comparison(tmp_path, comparison)
    return report.write_comparison_report(tmp_path).read_text()


def test_the_page_has_a_picture_and_a_table_for_each_metric_and_workload(text):
    titles = re.findall(r"<h2>([^<]*)</h2>\n<figure>", text)
    assert titles == [
        "wait (s) on a, lower is better",
        "wait (s) on b, lower is better",
        "wait on all, lower is better",
        "bounded_slowdown on a, lower is better",
        "bounded_slowdown on b, lower is better",
        "bounded_slowdown on all, lower is better",
    ]
    assert text.count('src="data:image/svg+xml;base64,') == len(titles) == text.count('<table class="figures">')
    assert "<tr><td>sjf</td><td>2.500</td><td>" in text  # without the least and the greatest of 1, 2, 3, 4


def test_the_page_says_how_it_was_run_and_what_metrics_mean(text):
    assert "<tr><td>policies</td><td>easy; sjf</td></tr>" in text
    assert "<tr><td>left out of a.swf</td><td>3 &lt;too large&gt;</td></tr>" in text
    assert "<td><code>t - s</code> of each job, seconds.</td>" in text
    assert "<code>max(1, (w + p) / max(p, bound))</code>" in text
    assert "s is its submission time" in text
    assert "utilization" not in re.findall(r'<section id="metrics">.*?</table>', text, re.DOTALL)[0]


def test_the_page_asks_for_nothing_from_outside(text):
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|src=\"(?!data:)|href=\"(?!data:)|@import|url\(|<script", text)


def test_the_setup_is_kept_with_the_comparison_and_older_ones_have_none(comparison, tmp_path):
    write_comparison(tmp_path, comparison)
    kept = tmp_path / "comparison.json"
    older = re.sub(rb',"setup":\{[^}]*\}', b"", kept.read_bytes())
    assert b"setup" not in older
    kept.write_bytes(older)
    assert report.read_comparison(tmp_path) == replace(comparison, setup={})
    assert "<h2>wait (s) on a" in report.write_comparison_report(tmp_path).read_text()


def test_no_comparison_no_page(tmp_path):
    with pytest.raises(InputError, match=r"comparison\.json: cannot be read"):
        report.write_comparison_report(tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_metric_that_is_computed_from_jobs_has_its_formula():
    without = {name for name in METRICS if not definition(name)}
    assert without == {"switches", "rejected", "corrections"}  # counts, which their summaries define
    assert "w = t - s its waiting time" in " ".join(symbols().split())


def test_code_in_docstrings_is_code_in_the_page():
    assert prose("``a < b`` as\n `x`, it's") == "<code>a &lt; b</code> as <code>x</code>, it's"
