"""``decision starts`` and ``decision slurm starts`` as they are typed."""

import json
from pathlib import Path

from click.testing import CliRunner

from decision.cli.app import app

_SMALL = ["--futures", "10", "--moments", "2"]


def test_starts_of_a_log_are_printed_as_json_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["starts", "-p", "cluster256", "-w", "lublin_10000", "--policy", "easy", "--at", "1869931", *_SMALL]
    result = CliRunner().invoke(app, [*words, "--before", "1890000", "--json", "--page", str(page)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert len(found["jobs"]) == 6
    first = found["jobs"][0]
    assert 0 < first["starts_in"]["0.1"] <= first["starts_in"]["0.5"] <= first["starts_in"]["0.9"]
    assert 0 <= first["chance"] <= 1
    assert page.read_text().count("<svg") == 1 + 6  # the axis, and a bar for each job


def test_a_watched_page_must_be_named_and_quantiles_must_ascend(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["slurm", "starts", str(tmp_path), "--watch", "5"])
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["slurm", "starts", str(tmp_path), "--quantiles", "90,10"])
    assert result.exit_code == 2
