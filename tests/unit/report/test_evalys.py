"""Runs as evalys has them, back again, and its pictures."""

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.golden import SESSIONS
from helpers.run_samples import THREE

import decision as d
from decision.cli.app import app
from decision.files.outputs_read import read_run_record
from decision.files.outputs_write import write_run
from decision.model.errors import ConfigError
from decision.model.record import HostTable, RunRecord
from decision.report.evalys import from_evalys, to_evalys

REJECTED = RunRecord(
    nb_hosts=4,
    jobs=THREE,
    host_states=HostTable(time=np.array([0.0]), counts=np.array([[0, 0, 0, 4, 0, 0]])),
    time_in_state=np.zeros(6),
    joules=12.5,
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:evalys")
RECORDS = {"three": REJECTED, **dict.fromkeys(("energy_sleep", "kill", "two_workloads", "external_events"))}


@pytest.fixture(params=RECORDS)
def record(request):
    """Runs with a rejected job, with energy and hosts that sleep, with kills, of two workloads, with failures."""
    pytest.importorskip("evalys.jobset")
    return RECORDS[request.param] or read_run_record(SESSIONS / request.param)


def test_evalys_gets_what_it_would_read_from_the_files(record, tmp_path):
    import pandas as pd
    from evalys.jobset import JobSet

    write_run(tmp_path / "out", record)
    read = JobSet.from_csv(str(tmp_path / "out_jobs.csv"), resource_bounds=(0, record.nb_hosts - 1))
    run = to_evalys(record)
    told = ["metadata"]  # a text here, and nothing or a number where evalys reads a text of digits or none
    pd.testing.assert_frame_equal(run.jobs.df.drop(columns=told), read.df.drop(columns=told), check_dtype=False)
    assert run.jobs.res_bounds == read.res_bounds
    assert run.machine_states["time"].is_unique
    if record.energy is not None:
        from evalys.pstates import PowerStatesChanges

        same = PowerStatesChanges(str(tmp_path / "out_pstate_changes.csv"))
        pd.testing.assert_frame_equal(run.pstates.pseudo_jobs, same.pseudo_jobs)
        assert len(run.energy) == len(record.energy.time)


def test_what_goes_to_evalys_comes_back(record, tmp_path):
    write_run(tmp_path / "out", record)
    there, back = read_run_record(tmp_path / "out"), from_evalys(to_evalys(record))
    for name in there.jobs.__struct_fields__:
        np.testing.assert_array_equal(getattr(back.jobs, name), getattr(there.jobs, name), err_msg=name)
    last = {time: row for row, time in enumerate(there.host_states.time.tolist())}  # evalys keeps one row for each time
    np.testing.assert_array_equal(back.host_states.counts, there.host_states.counts[list(last.values())])
    np.testing.assert_array_equal(back.time_in_state, there.time_in_state)
    assert (back.nb_hosts, back.joules, back.nb_switches) == (there.nb_hosts, there.joules, there.nb_switches)
    if there.energy is not None:
        np.testing.assert_array_equal(back.energy.energy, there.energy.energy)
        assert back.energy.event == there.energy.event
        assert back.pstates.hosts == there.pstates.hosts
        np.testing.assert_array_equal(back.pstates.time, there.pstates.time)


def test_a_result_goes_to_evalys_and_back():
    pytest.importorskip("evalys.jobset")
    result = d.simulate("toy", "toy", "easy")
    run = result.to_evalys()
    assert run.jobs.utilisation.load.max() == 4
    assert run.jobs.mean_utilisation() == pytest.approx(result.summary().utilization * 4)
    back = d.SimulationResult.from_evalys(run)
    assert back.jobs.astype({"size": "int32"}).equals(result.jobs)
    assert back.summary().wait == result.summary().wait


def test_the_command_writes_evalys_pictures_of_each_run_and_of_all(tmp_path):
    pytest.importorskip("evalys.jobset")
    for policy in ("easy", "fcfs"):
        d.simulate("toy", "toy", policy).write(tmp_path / "runs" / policy)
    arguments = [tmp_path / "runs", SESSIONS / "energy_sleep", "-o", tmp_path / "made", "--format", "svg"]
    done = CliRunner().invoke(app, ["report", "evalys", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    kinds = ("gantt", "series", "details", "fragmentation")
    wanted = {f"{run}_{kind}.svg" for run in ("easy", "fcfs", "energy_sleep") for kind in kinds}
    assert {file.name for file in (tmp_path / "made").iterdir()} == {
        *wanted,
        "energy_sleep_states.svg",
        "gantt_of_all.svg",
    }
    assert "14 pictures by evalys" in done.stdout


def test_without_evalys_one_line_says_how_to_install_it(monkeypatch):
    found = __import__("importlib.util", fromlist=["find_spec"]).find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "evalys" else found(name))
    with pytest.raises(ConfigError, match=r"this needs evalys, which is not installed: pip install .*evalys") as caught:
        d.simulate("toy", "toy", "easy").to_evalys()
    assert "\n" not in str(caught.value)
