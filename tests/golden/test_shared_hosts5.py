"""Several jobs on one host in the place of a Batsim 5.0.0-rc2, as its sources have it: it lets any job start there.

What tasks get of a host is SimGrid's, as sessions of a real Batsim 4.2.1 hold it (`sessions/shared_hosts`).
"""

import csv
import json

import pytest
from helpers.batsim5 import build_engine5, talk5

from decision.files.outputs_write import write_run_of_5

WATTS = '<prop id="wattage_per_state" value="100:110:200"/>'  # of two cores; one draws 155
PLATFORM = f"""<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Vivaldi"><host id="master_host" coordinates="0 0 0" speed="1Gf"/>
<host id="a" coordinates="0 0 0" core="2" speed="1Gf">{WATTS}</host>
<host id="b" coordinates="0 0 0" core="2" speed="1Gf">{WATTS}</host></zone></platform>
"""
PROFILES = {
    "ten": {"type": "ParallelTaskHomogeneousProfile", "cpu": 10e9, "com": 0},
    "wait": {"type": "DelayProfile", "delay": 10},
    "twice": {"type": "SequentialCompositionProfile", "seq": ["ten", "wait"]},
}


@pytest.fixture
def ends(tmp_path):
    """When each job ends, given profile, hosts asked for, and where it starts: a placement, at second 1."""

    def run(*jobs, options=""):
        (tmp_path / "platform.xml").write_text(PLATFORM)
        described = [{"id": str(i), "subtime": 1, "res": res, "profile": name} for i, (name, res, _) in enumerate(jobs)]
        (tmp_path / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": described, "profiles": PROFILES}))
        (tmp_path / "command.txt").write_text(f"batsim -w w.json {options}")
        engine = build_engine5(tmp_path)
        starts = [("ExecuteJobEvent", {"job_id": f"w0!{i}", **place}) for i, (_, _, place) in enumerate(jobs)]
        told = talk5(engine, {1: starts})
        write_run_of_5(f"{tmp_path}/out_", engine.record(), "v5.0.0-rc2", machine_states=True, pstate_changes=False)
        events = [(question["now"], event) for question in told for event in question["events"]]
        return {e["event"]["job_id"]: now for now, e in events if e["event_type"] == "JobCompletedEvent"}

    return run


def spread(hosts):
    placement = {"executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper"}
    return {"allocation": {"host_allocation": hosts, **placement, "executor_placement": {}}}


def by_hand(hosts, *mapping):
    placement = {"executor_placement_type": "CustomExecutorToHostMapping", "executor_placement": {"mapping": mapping}}
    return {"allocation": {"host_allocation": hosts, **placement}}


def test_jobs_share_the_cores_of_a_host(ends):
    assert ends(("ten", 1, spread("0")), ("ten", 1, spread("0"))) == {"w0!0": 11, "w0!1": 11}
    three = ends(*[("ten", 1, spread("0"))] * 3)
    assert three == {name: pytest.approx(16) for name in ("w0!0", "w0!1", "w0!2")}


def test_executors_mapped_by_hand_have_a_core_each(ends):
    assert ends(("ten", 2, by_hand("0", 0, 0))) == {"w0!0": 11}
    assert ends(("ten", 3, by_hand("0-1", 1, 1, 1))) == {"w0!0": pytest.approx(16)}
    assert ends(("ten", 2, by_hand("0", 0, 0)), ("ten", 2, by_hand("0-1", 0, 1))) == {
        "w0!0": pytest.approx(16),
        "w0!1": pytest.approx(16),
    }


def test_a_part_of_a_sequence_is_mapped_by_hand(ends):
    override = {"profile_id": "w0!ten", **by_hand("1", 0, 0, 0, 0)["allocation"]}
    assert ends(("twice", 4, spread("0-1") | {"profile_allocation_override": [override]})) == {"w0!0": 31}


def test_a_delay_shares_nothing(ends):
    assert ends(("wait", 1, spread("0")), ("ten", 2, by_hand("0", 0, 0))) == {"w0!0": 11, "w0!1": 11}


def test_a_job_is_charged_for_its_host_whoever_else_computes_there(ends, tmp_path):
    ends(("ten", 1, spread("0")), ("twice", 1, spread("0")), options="--energy-host")
    jobs = {row["job_id"]: float(row["consumed_energy"]) for row in csv.DictReader((tmp_path / "out_jobs.csv").open())}
    assert jobs == {"0": 10 * 200, "1": 10 * 200 + 10 * 100}
    # To rc2 a host that has computed computes until it switches.
    states = list(csv.DictReader((tmp_path / "out_machine_states.csv").open()))
    assert [(float(row["time"]), row["nb_computing"], row["nb_idle"]) for row in states] == [
        (1, "1", "1"),
        (1, "1", "1"),
        (11, "1", "1"),
        (21, "1", "1"),
    ]
