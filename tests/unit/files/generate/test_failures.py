"""Failures of machines: how often, for how long, and the file that Batsim reads."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.files import load_events
from decision.files.generate.events import FailureModel, availability, failures


@pytest.mark.parametrize(("shape", "repair_shape"), [(1.0, 1.0), (0.7, 2.0)])
def test_means_are_those_of_the_model_whatever_the_shapes(shape: float, repair_shape: float) -> None:
    model = FailureModel(mtbf=9000, repair=1000, shape=shape, repair_shape=repair_shape, length=1e7)
    found = failures(np.random.default_rng(1), 20, model)
    assert np.mean([each.end - each.begin for each in found]) == pytest.approx(1000, rel=0.05)
    assert availability(found, 20, 1e7) == pytest.approx(0.9, rel=0.01)


def test_a_machine_is_repaired_before_it_fails_again() -> None:
    found = failures(np.random.default_rng(2), 3, FailureModel(mtbf=10, repair=50, length=5000))
    for machine in range(3):
        own = [each for each in found if each.machine == machine]
        assert all(before.end < after.begin for before, after in pairwise(own))
    assert all(each.begin < 5000 for each in found)


def test_hosts_of_a_server_fail_together_and_all_come_back(tmp_path: Path, root: Path) -> None:
    path, again = tmp_path / "f.txt", tmp_path / "again.txt"
    options = ("--mtbf", "50000", "--repair", "900", "-p", f"{root}/platforms/orion_cores.xml", "--length", "200000")
    for file in (path, again):
        made = CliRunner().invoke(app, ["workload", "failures", *options, "-o", str(file), "--json"])
        assert made.exit_code == 0, made.stderr
    facts = json.loads(made.stdout)
    assert path.read_bytes() == again.read_bytes()
    events = load_events(path)
    assert (facts["machines"], len(events)) == (4, 2 * facts["failures"])
    assert {len(event.hosts) for event in events} == {12}
    away: set[int] = set()
    for event in events:
        away = away - set(event.hosts) if event.type == "machine_available" else away | set(event.hosts)
    assert not away


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--length", "9"), "give --hosts or --platform"),
        (("--hosts", "2"), "give --length, or with --for the workload"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_file(tmp_path: Path, words, message: str) -> None:
    options = ("--mtbf", "9", "--repair", "9", "-o", str(tmp_path / "f.txt"))
    made = CliRunner().invoke(app, ["workload", "failures", *options, *words])
    assert (made.exit_code, message in made.stderr) == (2, True), made.stderr
    assert not (tmp_path / "f.txt").exists()
