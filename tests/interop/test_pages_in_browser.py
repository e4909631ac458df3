"""Pages as people hand them on: on a phone, on a desk, on paper, and saved."""

import shutil
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.advice_samples import sample_advice
from helpers.browser import browser, missing
from helpers.run_samples import THREE, job_table

from decision.cli.app import app
from decision.experiments.advise import METRIC_NAMES
from decision.experiments.metrics import GroupFigures
from decision.experiments.results import named_run
from decision.model.record import HostTable, RunRecord
from decision.report import browser as printing

pytest.importorskip("matplotlib")
from decision.report.answers import write_advice_page
from decision.report.pages import analyse

A4 = 703  # pixels between the margins
CUT = """
const right = document.documentElement.clientWidth + 1, cut = [];
for (const part of document.querySelectorAll('h1, p, li, th, td, img, canvas, figcaption')) {
  if (part.getBoundingClientRect().right > right) cut.push(part.textContent || part.alt || part.tagName);
}
for (const part of document.querySelectorAll('th, td')) {
  if (part.scrollWidth > part.clientWidth + 1) cut.push(`in a cell: ${part.textContent}`);
}
return cut;
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    if missing():
        pytest.skip(missing())
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report of runs with all that pages have, and an advice."""
    folder = tmp_path_factory.mktemp("pages")
    states = HostTable(time=np.zeros(0), counts=np.zeros((0, 6), np.int64))
    groups = [
        GroupFigures(by="user", name=f"somebody{at}", jobs=1e6, host_seconds=3.6e9, mean_wait=9e4, max_wait=9e6)
        for at in range(20)
    ]
    late = job_table((0.0, 4, 9e6, 1e6, "0-3"), (5.0, 2, 1e7, 1e5, "0-1"))
    runs = [
        named_run(name, RunRecord(nb_hosts=4, jobs=jobs, host_states=states, time_in_state=np.zeros(6)))
        for name, jobs in (("easy,power=idle-timeout,idle_timeout=300", late), ("sjf+easy,guard=1.5x", THREE))
    ]
    report = analyse([run._replace(groups=groups) for run in runs], [], folder / "report", None, "decision report")[-1]
    advice = sample_advice()
    (folder / "advice").mkdir()
    return {
        "report": report,
        "advice": write_advice_page(folder / "advice", advice, "Use f3", METRIC_NAMES, ["", "advised"]),
    }


@pytest.mark.parametrize("name", ["report", "advice"])
def test_nothing_is_cut_off_on_paper(window, pages, name):
    window.open(pages[name])
    window.lay_out(A4, "print")
    assert window.run(CUT) == []


@pytest.mark.parametrize("name", ["report", "advice"])
@pytest.mark.parametrize("width", [400, 1400])
def test_a_page_fits_the_screen_and_has_margins(window, pages, name, width):
    window.open(pages[name])
    window.lay_out(width)
    assert window.run("return document.documentElement.scrollWidth <= innerWidth;")
    left = (
        "return Math.min(...[...document.querySelectorAll('h1, p, table')].map(e => e.getBoundingClientRect().left));"
    )
    assert window.run(left) >= 10
    narrow = "return Math.min(...[...document.querySelectorAll('td:first-child')].map(e => e.clientWidth));"
    assert window.run(narrow) >= 40  # no name is set in a column of letters
    assert window.messages() == []


def test_a_table_is_saved_without_a_network(window, pages):
    window.open(pages["advice"])
    href = window.run("return document.querySelector('a[download=\"policies.csv\"]').href;")
    assert href.startswith("data:text/csv")


def test_a_page_is_printed_whole(pages):
    if not any(map(shutil.which, printing.BROWSERS)):
        pytest.skip("needs a browser that prints")
    paper = printing.print_page(pages["advice"])
    assert paper == pages["advice"].with_suffix(".pdf") and paper.read_bytes().startswith(b"%PDF-")
    assert [path.name for path in paper.parent.iterdir() if path.name.startswith(".")] == []
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", "-layout", paper, "-"], capture_output=True, text=True, check=True).stdout
        assert {"advised", "longest", "most"} <= set(text.split()) and "save as CSV" not in text


@pytest.mark.parametrize(
    ("browser_is", "said"), [("nowhere", "no Chromium or Chrome is here"), ("broken", "chromium did not print it")]
)
def test_without_a_browser_a_line_says_how_to_print(tmp_path, monkeypatch, root, browser_is, said):
    (tmp_path / "bin").mkdir()
    if browser_is == "broken":
        (tmp_path / "bin/chromium").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin/chromium").chmod(0o755)
    toy = ["-p", str(root / "platforms/toy.xml"), "-w", str(root / "workloads/toy.json"), "--policy", "easy"]
    result = CliRunner().invoke(app, ["run", *toy, "-o", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    result = CliRunner().invoke(app, ["report", "analyse", str(tmp_path / "run"), "-o", str(tmp_path / "r"), "--pdf"])
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stderr.splitlines() if "no PDF" in line]
    assert said in line and "Ctrl-P" in line
    assert not list((tmp_path / "r").glob("*.pdf"))
