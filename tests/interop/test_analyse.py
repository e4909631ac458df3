"""``decision analyse`` as it is typed."""

import pytest
from typer.testing import CliRunner

from decision.cli.app import app

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def runs(root, tmp_path_factory):
    """Two runs of the toy, as decision run leaves them."""
    folder = tmp_path_factory.mktemp("runs")
    for policy in ("easy", "fcfs"):
        inputs = [
            "-p",
            str(root / "platforms" / "taurus.xml"),
            "-w",
            str(root / "workloads" / "taurus_week_flops.json"),
        ]
        typed("run", *inputs, "--policy", policy, "--energy", "-o", str(folder / policy))
    return folder


def typed(*words: str):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_it_writes_pictures_and_one_page_that_holds_them(runs, root, tmp_path, suffix):
    platform = str(root / "platforms" / "taurus.xml")
    said = typed("analyse", str(runs), "-p", platform, "-o", str(tmp_path / "report"), "--format", suffix)
    names = {path.name for path in (tmp_path / "report").iterdir()}
    common = {f"{name}.{suffix}" for name in ("load", "waits", "slowdowns", "reservations", "energy")}
    assert names == {*common, f"schedule-easy.{suffix}", f"schedule-fcfs.{suffix}", "report.html"}
    assert "report.html and 7 pictures" in " ".join(said.split())
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("<figure>") == len(common)


def test_it_says_what_it_cannot_read(runs, tmp_path):
    for words, message in (
        ([str(tmp_path)], "no run there"),
        ([str(runs / "easy"), "-p", str(tmp_path / "no.xml")], "cannot be read"),
    ):
        result = CliRunner().invoke(app, ["analyse", *words, "-o", str(tmp_path / "report")])
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
        assert not (tmp_path / "report").exists()
