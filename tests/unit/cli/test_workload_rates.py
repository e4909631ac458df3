"""What energy emits and costs: from people's tables to the metrics of a run."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.experiments.energy import emitted, paid, peak_power
from decision.files.outputs_read import read_run_record
from decision.model.record import EnergyTable

CARBON = "timestamp,WND,avg_CI\n2022-01-01 00:00:00+00:00,1,360\n2022-01-01 00:01:00+00:00,1,720\n"
PRICE = "time;EUR\n0;72\n60;-36\n"


def invoke(*words: object):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One host of 95 W idle and 190 W at full load that computes from 30 to 90 s."""
    host = '<host id="h" speed="1Gf"><prop id="wattage_per_state" value="95:95:190"/></host>'
    zone = f'<zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>{host}</zone>'
    (tmp_path / "p.xml").write_text(f'<platform version="4.1">{zone}</platform>')
    jobs = [{"id": name, "subtime": at, "res": 1, "walltime": 70, "profile": "c"} for name, at in (("a", 0), ("b", 30))]
    work = {"nb_res": 1, "jobs": jobs, "profiles": {"c": {"type": "parallel_homogeneous", "cpu": 3e10, "com": 0}}}
    (tmp_path / "w.json").write_text(json.dumps(work))
    (tmp_path / "ci.csv").write_text(CARBON)
    (tmp_path / "eur.csv").write_text(PRICE)
    return tmp_path


def test_a_run_emits_and_costs_what_its_energy_does(folder: Path) -> None:
    assert invoke("workload", "carbon", folder / "ci.csv", "-o", folder / "c.txt").exit_code == 0
    assert invoke("workload", "price", folder / "eur.csv", "--per-mwh", "-o", folder / "e.txt").exit_code == 0
    files = (
        "-p",
        folder / "p.xml",
        "-w",
        folder / "w.json",
        "--events",
        folder / "c.txt",
        "--events",
        folder / "e.txt",
    )
    result = invoke("run", *files, "-E", "--policy", "fcfs", "-o", folder / "out", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["runs"][0]
    assert found["energy"] == pytest.approx(190 * 60)  # all before the table's second minute
    assert found["carbon"] == pytest.approx(190 * 60 / 3.6e6 * 360)
    assert found["cost"] == pytest.approx(190 * 60 / 3.6e6 * 0.072)
    record = read_run_record(folder / "out")
    assert (emitted(record), paid(record)) == pytest.approx((found["carbon"], found["cost"]))
    assert peak_power(record) == pytest.approx(190)


def test_rates_hold_until_the_next_and_energy_counts_from_the_first_submission(folder: Path) -> None:
    for name in ("carbon", "price"):
        table = folder / ("ci.csv" if name == "carbon" else "eur.csv")
        assert invoke("workload", name, table, "--begin", *BEGIN[name], "-o", folder / f"{name}.txt").exit_code == 0
    files = ("-p", folder / "p.xml", "-w", folder / "w.json", "-E", "--policy", "fcfs", "-o", folder / "out", "--json")
    events = ("--events", folder / "carbon.txt", "--events", folder / "price.txt")
    found = json.loads(invoke("run", *files, *events).stdout)["runs"][0]
    joules = 190 * np.array([20, 40])  # the simulation begins 40 s into the table
    assert found["carbon"] == pytest.approx(float(joules @ [360, 720]) / 3.6e6)
    assert found["cost"] == pytest.approx(float(joules @ [72, -36]) / 3.6e6)


BEGIN = {"carbon": ["2022-01-01T00:00:40Z"], "price": ["40"]}


def test_power_peaks_over_what_lasts(folder: Path) -> None:
    invoke("run", "-p", folder / "p.xml", "-w", folder / "w.json", "-E", "--policy", "fcfs", "-o", folder / "out")
    record = read_run_record(folder / "out")
    assert np.isnan([emitted(record), paid(record)]).all()
    time, joules = np.array([0.0, 10, 10 + 1e-9, 20, 30]), np.array([0.0, 100, 101, 301, 401])
    record.energy = EnergyTable(time=time, energy=joules, event=["s"] * 5, wattmin=np.zeros(5))
    assert peak_power(record) == pytest.approx(20)
    record.energy = None
    assert np.isnan(peak_power(record))


def test_what_makes_no_sense_is_one_line(folder: Path) -> None:
    result = invoke("workload", "carbon", folder / "eur.csv", "-o", folder / "c.txt")
    assert (result.exit_code, "row 2, 'EUR': must be finite and not below 0" in result.stderr) == (2, True)
    jobs = [{"id": "a", "subtime": 600, "res": 1, "walltime": 70, "profile": "c"}]
    work = {"nb_res": 1, "jobs": jobs, "profiles": {"c": {"type": "delay", "delay": 1}}}
    (folder / "late.json").write_text(json.dumps(work))
    result = invoke("workload", "price", folder / "eur.csv", "--for", folder / "late.json", "-o", folder / "c.txt")
    assert (result.exit_code, "--gaps" in result.stderr) == (2, True), result.stderr
    assert "has no value from 120 to 600 s" in result.stderr
    assert not (folder / "c.txt").exists()
    (folder / "bad.txt").write_text('{"type": "energy_price", "timestamp": 0, "value": "much"}')
    files = ("-p", folder / "p.xml", "-w", folder / "w.json", "--events", folder / "bad.txt")
    result = invoke("run", *files, "--policy", "fcfs", "-o", folder / "out")
    assert "line 1, field 'value': must be a finite number; found 'much'" in result.stderr
