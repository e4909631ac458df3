"""The report's page: what is in it, and what runs are called."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.run_samples import THREE, job_table

from decision.experiments.results import NamedRun, load_runs, named_run, short_names
from decision.files import write_run
from decision.model.errors import ConfigError, InputError
from decision.model.record import HostTable, JobTable, RunRecord

pytest.importorskip("matplotlib")
from decision.report.pages import write_report
from decision.report.plots.figures import Picture
from decision.report.plots.results import slowdown_buckets


def record(jobs: JobTable = THREE) -> RunRecord:
    states = HostTable(time=np.array([0.0]), counts=np.array([[0, 0, 0, 4, 0, 0]]))
    return RunRecord(nb_hosts=4, jobs=jobs, host_states=states, time_in_state=np.zeros(6))


def page(*runs: NamedRun, pictures: tuple[Picture, ...] = ()) -> str:
    return b"".join(write_report(runs, pictures)).decode()


def run(name: str, jobs: JobTable = THREE) -> NamedRun:
    return named_run(name, record(jobs))


def data(text: str) -> list[dict]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)["runs"]


def test_the_charts_have_every_job_that_ran_in_order_of_start():
    (drawn,) = data(page(run("easy")))
    assert drawn["id"] == ["w0!0", "w0!2", "w0!1"]
    assert drawn["start"] == [0, 20, 100]  # since the first submission
    assert drawn["walltime"] == [None, None, None]
    assert drawn["span"] == [0, 0, 1, 1, 3, 3, 2, 0, 3]  # number, first and last host


def test_the_page_asks_for_nothing_from_outside():
    shown = replace(slowdown_buckets([run("easy")]), alt='easy is "<fast>".')
    text = page(run("easy"), run("fcfs"), pictures=(shown,))
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|src=\"(?!data:)|href=\"(?!data:)|@import|url\(", text)
    size = "min-width: 6.51in; max-width: 10.5in"
    assert f'alt="easy is &quot;&lt;fast&gt;&quot;." style="{size}" src="data:image/png;base64,iVBORw' in text
    assert f"<figcaption>{shown.caption}</figcaption>" in text


def test_no_name_can_leave_its_place_in_the_page():
    evil = "</script><b>"
    text = page(run(evil))
    assert evil not in text
    assert data(text)[0]["name"] == evil


def test_the_best_of_each_column_is_marked_where_runs_differ():
    slower = job_table((10.0, 2, 10.0, 100.0, "0-1"), (20.0, 4, 210.0, 50.0, "0-3"), (30.0, 1, 30.0, 1.0, "3"))
    text = page(run("a"), run("b", slower))
    cells = [re.findall(r"<td( class=\"best\")?>([^<]*)</td>", row) for row in re.findall(r"<tr><td>.*?</tr>", text)]
    best = [[value for mark, value in row if mark] for row in cells]
    assert best == [
        ["150", "30", "81", "88", "90", "1.60", "66.8"],
        ["0"],
    ]  # b rejected no job, and is worse in all else
    assert "class" not in page(run("a")).partition("<tbody>")[2].partition("</tbody>")[0]


def test_runs_have_the_shortest_names_that_tell_them_apart():
    assert short_names([Path("out/easy"), Path("out/fcfs")]) == ["easy", "fcfs"]
    assert short_names([Path("a/easy"), Path("b/easy")]) == ["a/easy", "b/easy"]
    assert short_names([Path("out/easy")]) == ["easy"]


def test_a_folder_of_folders_is_all_runs_in_it(tmp_path):
    for name in ("easy", "fcfs"):
        write_run(tmp_path / name / "out", record())
    (tmp_path / "notes").mkdir()
    assert [run.name for run in load_runs([tmp_path])] == ["easy", "fcfs"]
    assert [run.name for run in load_runs([tmp_path / "fcfs"])] == ["fcfs"]
    write_run(tmp_path / "fcfs" / "again", record())
    with pytest.raises(InputError, match="2 runs"):
        load_runs([tmp_path])


def test_what_cannot_be_looked_at_is_refused(tmp_path):
    write_run(tmp_path / "easy" / "out", record())
    write_run(tmp_path / "none" / "out", record(job_table((0.0, 9, np.nan, np.nan, ""))))
    with pytest.raises(ConfigError, match="named twice"):
        load_runs([tmp_path / "easy", tmp_path / "easy"])
    with pytest.raises(InputError, match="no job ran"):
        load_runs([tmp_path / "none"])
    with pytest.raises(InputError, match="no run there"):
        load_runs([tmp_path / "nothing"])
