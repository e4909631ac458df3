"""``decision report analyse`` as it is typed."""

import shutil
import subprocess
import sys

import msgspec
import pytest
from click.testing import CliRunner
from helpers.run_samples import run_facts

from decision.cli.app import app

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def runs(root, tmp_path_factory):
    """Two runs of the toy, as decision run leaves them."""
    folder = tmp_path_factory.mktemp("runs")
    for policy in ("easy", "fcfs"):
        inputs = ["-p", str(root / "platforms" / "taurus.xml")]
        inputs += ["-w", str(root / "workloads" / "taurus_week_flops.json"), "--select", ":150"]
        typed("run", *inputs, "--policy", policy, "--energy", "-o", str(folder / policy))
    return folder


def typed(*words: str):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("suffix", ["png", "svg", pytest.param("pdf", marks=pytest.mark.nightly)])
def test_it_writes_pictures_and_one_page_that_holds_them(runs, root, tmp_path, suffix):
    platform = str(root / "platforms" / "taurus.xml")
    said = typed("report", "analyse", str(runs), "-p", platform, "-o", str(tmp_path / "report"), "--format", suffix)
    names = {path.name for path in (tmp_path / "report").iterdir()}
    common = {f"{name}.{suffix}" for name in ("load", "waits", "slowdowns", "reservations", "energy")}
    assert names == {*common, f"schedule-easy.{suffix}", f"schedule-fcfs.{suffix}", "report.html"}
    assert "report.html and 7 pictures" in " ".join(said.split())
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("<figure>") == len(common)


def test_pictures_of_an_older_report_go_with_it(runs, tmp_path):
    tmp_path.joinpath("schedule-mine.png").write_text("mine")
    typed("report", "analyse", str(runs), "-o", str(tmp_path))
    typed("report", "analyse", str(runs / "easy"), "-o", str(tmp_path))
    assert {path.name for path in tmp_path.glob("schedule-*")} == {"schedule-easy.png", "schedule-mine.png"}
    page = (tmp_path / "report.html").read_text()
    assert "How easy was run" in page and "How fcfs was run" not in page
    assert "<td>platform</td><td>taurus.xml, sha256 " in page


def test_a_run_without_the_trace_of_its_hosts_has_all_pictures_but_that_of_the_energy(runs, tmp_path):
    shutil.copytree(runs / "easy", tmp_path / "easy")
    (tmp_path / "easy" / "out_machine_states.csv").unlink()
    typed("report", "analyse", str(tmp_path / "easy"), "-o", str(tmp_path / "report"))
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names >= {"load.png", "report.html"}
    assert "energy.png" not in names


def test_a_run_that_failed_is_refused_with_its_reason_alone_or_among_others(runs, tmp_path):
    shutil.copytree(runs / "easy", tmp_path / "easy")
    (tmp_path / "fcfs").mkdir()
    facts = run_facts(state="failed", reason="Batsim ended")
    (tmp_path / "fcfs" / "run.json").write_bytes(msgspec.json.encode(facts))
    for place in (tmp_path, tmp_path / "fcfs"):
        result = CliRunner().invoke(app, ["report", "analyse", str(place), "-o", str(tmp_path / "report")])
        assert result.exit_code == 2
        assert "the last run in this folder failed (Batsim ended)" in " ".join(result.output.split())


def test_it_says_what_it_cannot_read(runs, tmp_path):
    for words, message in (
        ([str(tmp_path)], "no run (*jobs.csv) and no training (progress.csv) there"),
        ([str(tmp_path / "nothing")], "no run there"),
        ([str(runs / "easy"), "-p", str(tmp_path / "no.xml")], "cannot be read"),
        (
            [str(runs / "easy"), "-p", "toy"],
            "has 4 hosts, and easy used a platform of 16; give the platform of the run",
        ),
    ):
        result = CliRunner().invoke(app, ["report", "analyse", *words, "-o", str(tmp_path / "report")])
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
        assert not (tmp_path / "report").exists()


def train(folder, *rewards: float):
    folder.mkdir()
    rows = (f"{i + 1},{100 * (i + 1)},0,{reward},0.5\n" for i, reward in enumerate(rewards))
    (folder / "progress.csv").write_text("".join(("iteration,steps,episodes,reward,entropy\n", *rows)))
    return folder


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_trainings_are_drawn_as_curves_without_charts_of_jobs(tmp_path, suffix):
    (tmp_path / "learned").mkdir()
    for name in ("a", "b"):
        train(tmp_path / "learned" / name, -1.0, -0.5)
    said = typed("report", "analyse", str(tmp_path / "learned"), "-o", str(tmp_path / "report"), "--format", suffix)
    assert {path.name for path in (tmp_path / "report").iterdir()} == {f"learning.{suffix}", "report.html"}
    assert "report.html and 1 picture in the same folder" in " ".join(said.split()) and "makespan" not in said
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<title>a and b</title>" in page and page.count("<figure>") == 1
    assert "canvas" not in page.partition("</style>")[2] and "<script" not in page


def test_runs_and_trainings_share_a_page(runs, tmp_path):
    learned = train(tmp_path / "learned", -1.0, -0.5)
    typed("report", "analyse", str(runs / "easy"), str(learned), "-o", str(tmp_path / "report"))
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<title>easy and learned</title>" in page
    assert '<section id="gantt">' in page and 'alt="Learning curves of learned.' in page


def test_curves_are_drawn_without_torch(tmp_path):
    arguments = ["report", "analyse", str(train(tmp_path / "a", -1.0)), "-o", str(tmp_path / "report")]
    script = f"""
import sys
from decision.cli.app import app
app({arguments!r}, standalone_mode=False)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert (tmp_path / "report" / "learning.png").is_file()
