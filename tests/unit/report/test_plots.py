"""The picture of a schedule: what is on it, measured on its axes."""

import json
import re

import numpy as np
import pytest
from helpers.run_samples import THREE, job_table

from decision.experiments.results import named_run
from decision.model.errors import ConfigError
from decision.model.record import HostTable, RunRecord

plots = pytest.importorskip("decision.report.plots.schedules")
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.image import imread  # noqa: E402

from decision.report.pages import write_report  # noqa: E402


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draws, and gives the figure that was saved and its file."""
    kept = []
    save = plots.save
    monkeypatch.setattr(plots, "save", lambda figure, path: (kept.append(figure), save(figure, path)))

    def draw(jobs, nb_hosts):
        plots.draw_schedule(jobs, nb_hosts, tmp_path / "schedule.png", "easy on toy")
        return kept[-1], tmp_path / "schedule.png"

    return draw


def test_every_job_that_ran_has_a_rectangle_on_each_of_its_hosts(drawn):
    figure, _ = drawn(THREE, 4)
    (collection,) = figure.axes[0].collections
    corners = [path.vertices for path in collection.get_paths()]
    spans = sorted((*box[:4].min(axis=0), *box[:4].max(axis=0)) for box in corners)
    assert spans == [(0.0, -0.5, 100.0, 1.5), (20.0, 2.5, 21.0, 3.5), (100.0, -0.5, 150.0, 3.5)]  # first submission: 10
    assert figure.axes[0].get_ylim() == (3.5, -0.5)  # host 0 above, as in the page


def test_axes_say_what_they_show_and_in_which_unit(drawn):
    figure, file = drawn(THREE, 4)
    assert [axes.get_ylabel() for axes in figure.axes] == ["host", "busy hosts", "waiting jobs"]
    assert figure.axes[-1].get_xlabel() == "seconds since the first submission (at 10 s)"
    assert figure.get_suptitle() == "easy on toy: 3 jobs on 4 hosts, 1 rejected"
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("seconds", "unit"), [(7000.0, "seconds"), (86400.0, "hours"), (7 * 86400.0, "days"), (1e9, "days")]
)
def test_the_unit_of_time_fits_the_run(drawn, seconds, unit):
    figure, _ = drawn(job_table((0.0, 1, 0.0, seconds, "0")), 1)
    assert figure.axes[-1].get_xlabel() == f"{unit} since the first submission"


def test_a_job_has_the_colour_that_it_has_in_the_page(drawn):
    figure, _ = drawn(THREE, 4)
    (collection,) = figure.axes[0].collections
    states = HostTable(time=np.zeros(0), counts=np.zeros((0, 6), np.int64))
    record = RunRecord(nb_hosts=4, jobs=THREE, host_states=states, time_in_state=np.zeros(6))
    page = b"".join(write_report([named_run("easy", record)], [])).decode()
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])
    (charted,) = data["runs"]
    colors = {job: data["colors"][color] for job, color in zip(charted["id"], charted["color"], strict=True)}
    assert [to_hex(color) for color in collection.get_facecolors()] == [colors[f"w0!{job}"] for job in range(3)]
    assert len(set(colors.values())) == 3


def test_a_job_that_is_narrower_than_a_pixel_leaves_ink(drawn):
    rows = [(0.0, 1, 0.0, 1e6, "0"), *((5e4 * i, 1, 5e4 * i + 5e3, 1.0, "1") for i in range(1, 19))]
    figure, file = drawn(job_table(*rows), 2)
    pixels = imread(file)[:, :, :3]
    gantt = figure.axes[0]
    for _, _, start, _, _ in rows[1:]:
        x, y = gantt.transData.transform((start / 86_400, 1.0))
        around = pixels[round(len(pixels) - y), round(x) - 2 : round(x) + 3]
        assert around.min() < 0.9  # white is 1


def test_a_run_that_begins_late_is_drawn_from_its_first_submission(drawn):
    figure, _ = drawn(job_table((1.6e9, 1, 1.6e9 + 5, 95.0, "0")), 1)
    assert figure.axes[-1].get_xlim() == (0, 100)
    assert figure.axes[-1].get_xlabel() == "seconds since the first submission (at 1,600,000,000 s)"


def test_a_run_in_which_no_job_ran_is_drawn_too(drawn):
    _, file = drawn(job_table((0.0, 9, np.nan, np.nan, "")), 4)
    assert file.stat().st_size > 1000


def test_a_picture_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match=r"schedule\.png: cannot be written \(.*out is not a folder\)"):
        plots.draw_schedule(THREE, 4, tmp_path / "out" / "schedule.png", "t")
