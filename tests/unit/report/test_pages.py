"""What all pages have in common: who made them, tables that can be saved, and groups of jobs."""

import base64
import csv
import io
import re

import numpy as np
import pytest
from helpers.advice_samples import ADVISED, sample_advice
from helpers.run_samples import THREE, job_table

from decision.experiments.advise import METRIC_NAMES, advice_heading
from decision.experiments.metrics import (
    GroupFigures,
    folded,
    group_figures,
    mean_figures,
    memberships,
    read_groups,
    write_groups,
)
from decision.model.columns import labelled
from decision.model.hosts import without_folders
from decision.model.trace import Trace
from decision.model.workload import Delay, Job, Workload

pytest.importorskip("matplotlib")
from decision.report.answers import write_advice_page
from decision.report.pages import Cell, analyse, group_sections, page, table


def saved(text: str) -> dict[str, list[dict[str, str]]]:
    """The CSV files in a page, by name."""
    found = re.findall(r'download="([^"]*)" href="data:text/csv;charset=utf-8;base64,([^"]*)"', text)
    return {name: list(csv.DictReader(io.StringIO(base64.b64decode(data).decode()))) for name, data in found}


def log(users: str = "aab", partitions: str = "") -> Workload:
    jobs = [
        Job(id=f"w0!{at}", submit_time=0.0, size=1, walltime=9.0, profile="p", user=user)
        for at, user in enumerate(users)
    ]
    request = {"partition": labelled(list(partitions))} if partitions else {}
    trace = Trace(id=[job.id for job in jobs], wait=np.full(len(jobs), np.nan), request=request)
    return Workload(name="w0", jobs=jobs, profiles={"p": Delay(5.0)}, nb_res=4, trace=trace)


def test_a_page_says_what_made_it_and_no_folder_of_the_machine():
    text = page("<t>", [], "decision compare -p /home/me/c.xml -w log.swf", "2026-01-02").decode()
    assert "<code>decision compare -p c.xml -w log.swf</code>" in text
    assert "2026-01-02" in text and re.search(r"decision \d", text) and "<h1>&lt;t&gt;</h1>" in text
    assert 'name="viewport"' in text and "@media print" in text


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("-w=/x/y.swf --policy slurm,conf=/etc/slurm/slurm.conf", "-w=y.swf --policy slurm,conf=slurm.conf"),
        ("/home/a/mine.py:Class", "mine.py:Class"),
        ("'/home/a b/x.swf'", "'x.swf'"),
        ("1/64 of the machine; out/compare and w / walltime", "1/64 of the machine; out/compare and w / walltime"),
    ],
)
def test_files_have_their_names_alone(text, short):
    assert without_folders(text) == short


def test_a_table_is_saved_with_the_values_behind_its_texts():
    text = table(["a<br>s", "b"], [("1,234", Cell("x", best=True))], "some table", values=[{"a": 1234.5, "b": "x,y"}])
    assert saved(text) == {"some-table.csv": [{"a": "1234.5", "b": "x,y"}]}
    assert saved(table(["a<br>s", "b"], [("1,234", "<")], "t")) == {"t.csv": [{"a s": "1,234", "b": "<"}]}


def test_groups_are_of_what_the_log_says_where_it_says_two():
    assert memberships([log("aaa")]) == {}
    found = group_figures(THREE, memberships([log("aab", "xyy")]))
    assert [(row.by, row.name, row.jobs, row.host_seconds, row.mean_wait, row.max_wait) for row in found] == [
        ("user", "a", 2, 400, 45, 90),
        ("user", "b", 1, 1, 0, 0),
        ("partition", "y", 2, 201, 45, 90),
        ("partition", "x", 1, 200, 0, 0),
    ]


def test_all_but_the_largest_groups_are_one():
    rows = group_figures(job_table(*((0.0, 1, 2.0 * at, 9.0 - at, "0") for at in range(4))), memberships([log("abcd")]))
    assert [row.name for row in rows] == ["a", "b", "c", "d"]
    *_, rest = folded(rows, ["a", "b"])
    assert (rest.name, rest.jobs, rest.host_seconds, rest.mean_wait, rest.max_wait) == ("2 others", 2, 13, 5, 6)
    names = memberships([log("aabbccd")], most=2)["user"].names
    assert names == ["a", "b", "2 others"]
    assert mean_figures([rows[:1], rows[:1]]) == rows[:1]


def test_groups_are_kept_beside_a_run(tmp_path):
    assert write_groups(tmp_path, THREE, [log("aaa")]) == [] and read_groups(tmp_path) == []
    write_groups(tmp_path, THREE, [log("aab")])
    assert read_groups(tmp_path) == group_figures(THREE, memberships([log("aab")]))
    write_groups(tmp_path, THREE, [log("aaa")])
    assert read_groups(tmp_path) == []


def test_pages_show_ten_groups_and_save_all():
    rows = [
        GroupFigures(by="user", name=f"<u{at}>", jobs=1, host_seconds=3600.0 * (20 - at), mean_wait=60, max_wait=7200)
        for at in range(15)
    ]
    (text,) = group_sections({"easy": rows})
    assert text.count("<tr><td>") == 11 and "&lt;u9&gt;" in text and "5 others" in text
    assert len(saved(text)["by-user.csv"]) == 15
    assert "By user on log" in next(group_sections({"easy": rows}, "log"))


def test_an_advice_says_what_to_do_what_was_not_simulated_and_one_unit_of_waits(tmp_path):
    advice = sample_advice()
    path = write_advice_page(
        tmp_path, advice, advice_heading(advice), METRIC_NAMES, ["", "advised"], "decision advise -w /x/log.swf"
    )
    text = path.read_text()
    assert f"<h1>Use {ADVISED}: waits 53 % less than easy</h1>" in text
    assert "<code>decision advise -w log.swf</code>" in text
    assert "partitions (7 jobs, 50 % of the host-hours: debug): &lt;b&gt;none&lt;/b&gt;" in text
    assert "<th>wait<br>h</th>" in text and "<td>6.0</td>" in text
    assert saved(text)["policies.csv"][0]["wait"] == "21600.0"
    assert text.count("<figure>") == 4


@pytest.mark.parametrize(("change", "heading"), [(-0.531, "53 % less"), (0.1, "10 % more")])
def test_the_heading_says_how_much(change, heading):
    from msgspec.structs import replace

    from decision.experiments.statistics import Estimate

    advice = replace(sample_advice(), change={"wait": Estimate(change, change, change)})
    assert advice_heading(advice) == f"Use {ADVISED}: waits {heading} than easy"
    kept = replace(advice, policy="easy", sentence="Keep easy: ...")
    assert advice_heading(kept) == "Keep easy: no policy that was tried is better"


def test_a_report_says_the_command(tmp_path):
    from decision.experiments.results import LearningCurve

    columns = {"steps": np.array([100.0, 200.0]), "reward": np.array([-1.0, -0.5])}
    analyse([], [LearningCurve("seed", [columns])], tmp_path, None, "decision report analyse learned")
    assert "<code>decision report analyse learned</code>" in (tmp_path / "report.html").read_text()


def test_a_notebook_shows_what_is_advised_and_each_policys_change():
    shown = sample_advice()._repr_html_()
    assert sample_advice().sentence in shown and "slowdown, change" in shown
    assert shown.count(">-53.0%<") == 4 and f">{ADVISED}<" in shown
