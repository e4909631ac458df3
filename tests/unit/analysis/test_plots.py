"""The picture of a schedule: what is on it, measured on its axes."""

import numpy as np
import pytest
from helpers.run_samples import THREE, job_table

from decision.model.errors import ConfigError

plots = pytest.importorskip("decision.analysis.plots.schedules")


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
    assert spans == [(10.0, -0.5, 110.0, 1.5), (30.0, 2.5, 31.0, 3.5), (110.0, -0.5, 160.0, 3.5)]


def test_axes_say_what_they_show_and_in_which_unit(drawn):
    figure, file = drawn(THREE, 4)
    assert [axes.get_ylabel() for axes in figure.axes] == ["host", "busy hosts", "waiting jobs"]
    assert figure.axes[-1].get_xlabel() == "simulated time (seconds)"
    assert figure.get_suptitle() == "easy on toy: 3 jobs on 4 hosts"
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("seconds", "unit"), [(7000.0, "seconds"), (86400.0, "hours"), (7 * 86400.0, "days"), (1e9, "days")]
)
def test_the_unit_of_time_fits_the_run(drawn, seconds, unit):
    figure, _ = drawn(job_table((0.0, 1, 0.0, seconds, "0")), 1)
    assert figure.axes[-1].get_xlabel() == f"simulated time ({unit})"


def test_a_run_in_which_no_job_ran_is_drawn_too(drawn):
    _, file = drawn(job_table((0.0, 9, np.nan, np.nan, "")), 4)
    assert file.stat().st_size > 1000


def test_a_picture_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match=r"schedule\.png: cannot be written \(.*out is not a folder\)"):
        plots.draw_schedule(THREE, 4, tmp_path / "out" / "schedule.png", "t")
