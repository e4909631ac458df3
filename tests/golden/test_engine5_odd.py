"""Odd inputs, which the engine answers as Batsim 5.0.0-rc2 does, or refuses where that one crashes."""

import csv
import json

import pytest
from helpers.batsim5 import build_engine5, talk5

from decision.files.outputs_write import write_run_of_5
from decision.model.errors import InputError, PolicyError
from decision.protocol import RemoteProtocolError

SLEEP = "1Gf, 0.5Gf, 1e-9Mf, 0.5f, 0.25f"  # two speeds, sleep, 2 s to fall asleep and 4 s to wake
WATTS = "95:95:190, 80:80:150, 9:9:9, 100:100:100, 120:120:120"
HOST = f"""<host id="n%d" coordinates="0 0 0" speed="{SLEEP}"><prop id="wattage_per_state" value="{WATTS}"/>
<prop id="wattage_off" value="9"/><prop id="sleep_pstates" value="2:3:4"/></host>"""
HOSTS = "\n".join(HOST % number for number in range(4))
PLATFORM = f"""<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Vivaldi"><host id="master_host" coordinates="0 0 0" speed="1Gf">
<prop id="wattage_per_state" value="1:1:2"/></host>{HOSTS}</zone></platform>
"""
JOB = {"id": "1", "subtime": 1, "res": 1, "profile": "d"}
PROFILES = {"d": {"type": "DelayProfile", "delay": 10}}


def start(job, hosts):
    executors = {
        "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": {"strategy": "SpreadOverHostsFirst"},
    }
    return "ExecuteJobEvent", {"job_id": job, "allocation": {"host_allocation": hosts, **executors}}


def call(name, time):
    return "CallMeLaterEvent", {"call_me_later_id": name, "when_type": "OneShot", "when": {"time": time}}


@pytest.fixture
def world(tmp_path):
    """An engine for jobs and profiles, lists of external events, and Batsim's options."""

    def make(jobs=(JOB,), profiles=PROFILES, lists=(), options=""):
        (tmp_path / "platform.xml").write_text(PLATFORM)
        work = {"nb_res": 4, "jobs": jobs, "profiles": profiles}
        (tmp_path / "w.json").write_text(json.dumps(work))
        words = f"batsim -w w.json {options}"
        for number, times in enumerate(lists):
            events = [json.dumps({"type": "generic", "timestamp": time, "data": "x"}) + "\n" for time in times]
            (tmp_path / f"e{number}").write_text("".join(events))
            words += f" --ee e{number}"
        (tmp_path / "command.txt").write_text(words)
        return build_engine5(tmp_path)

    return make


def of(told, kind, *fields):
    """The events of a kind: the message's time, and fields."""
    found = [(question["now"], e["event"]) for question in told for e in question["events"] if e["event_type"] == kind]
    return [(now, *(event[field] for field in fields)) for now, event in found]


def test_a_change_of_speed_makes_one_row_of_energy(world, tmp_path):
    change = ("ChangeHostsPStateEvent", {"host_ids": "2", "pstate": 1})
    both = ("ChangeHostsPStateEvent", {"host_ids": "2-3", "pstate": 0})
    engine = world(options="--energy-host")
    told = talk5(engine, {1: [start("w0!1", "0"), change, call("c", 5)], 5: [both]})
    assert of(told, "HostsPStateChangedEvent", "host_ids", "pstate") == [(1.0, "2", 1), (5.0, "2-3", 0)]
    write_run_of_5(f"{tmp_path}/out_", engine.record(), "v5.0.0-rc2", machine_states=False, pstate_changes=False)
    rows = [
        (float(row["time"]), row["event_type"]) for row in csv.DictReader((tmp_path / "out_consumed_energy.csv").open())
    ]
    assert rows == [(1, "s"), (1, "p"), (5, "p"), (11, "e")]


@pytest.mark.parametrize("options", ["", "--energy-host"])
def test_a_host_is_switched_off_and_on_again_with_and_without_energy(world, options):
    off, on = (("TurnOnOffHostsEvent", {"host_ids": "2", "state": state}) for state in (2, 0))
    told = talk5(world(options=options), {1: [start("w0!1", "0"), off, call("c", 5)], 5: [on]})
    assert of(told, "HostsTurnedOnOffEvent", "host_ids", "state") == [(3.0, "2", 2), (9.0, "2", 0)]


@pytest.mark.parametrize(
    ("kind", "profile", "end"),
    [
        ("ParallelTaskProfile", {"computation_vector": [2e9]}, 3),
        ("ParallelTaskProfile", {"communication_matrix": [0]}, 1),
        ("ParallelTaskHomogeneousProfile", {"computation_amount": 2e9}, 3),
        ("SequentialCompositionProfile", {"profile_ids": ["w0!d"]}, 11),
    ],
)
def test_a_registered_profile_may_leave_fields_out(world, kind, profile, end):
    said = {"id": "w0!n", "profile_type": kind, "profile": profile}
    job = {"resource_request": 1, "profile_id": "w0!n", "walltime": 50}
    script = [
        start("w0!1", "0"),
        ("RegisterProfileEvent", {"profile": said}),
        ("RegisterJobEvent", {"job_id": "w0!new", "job": job}),
        ("FinishRegistrationEvent", {}),
    ]
    told = talk5(
        world(), {0.9: script, 1: [start("w0!new", "1")]}, dynamic_registration=True, acknowledge_dynamic_jobs=True
    )
    assert ("w0!new", 50) in [
        (name, job["walltime"]) for _, name, job in of(told, "JobSubmittedEvent", "job_id", "job")
    ]
    assert (end, "w0!new") in [(now, job) for now, job in of(told, "JobCompletedEvent", "job_id")]


@pytest.mark.parametrize(
    ("fields", "extra"),
    [
        ({}, ""),
        ({"partition": "gpu", "user": "ada"}, ""),
        ({"extra_data": "any text"}, "any text"),
        ({"extra_data": {"user": "ada"}}, '{"user":"ada"}'),
        ({"extra_data": {"user": "äda"}, "partition": "gpu"}, '{"user":"äda"}'),
        ({"extra_data": [1, "b"]}, '[1,"b"]'),
    ],
)
def test_only_extra_data_is_extra_data(world, fields, extra):
    told = talk5(world(jobs=[{**JOB, **fields}]), {1: [start("w0!1", "0")]})
    assert [job["extra_data"] for _, job in of(told, "JobSubmittedEvent", "job")] == [extra]


def test_a_profile_may_be_named_as_another_workloads(world):
    told = talk5(world(jobs=[{**JOB, "profile": "w1!q"}], profiles={"w1!q": PROFILES["d"]}), {1: [start("w0!1", "0")]})
    assert [job["profile_id"] for _, job in of(told, "JobSubmittedEvent", "job")] == ["w0!w1!q"]


def test_a_call_for_once_cannot_be_stopped(world):
    stops = [("StopCallMeLaterEvent", {"call_me_later_id": name}) for name in "cd"]
    told = talk5(world(), {0.9: [start("w0!1", "0"), call("c", 3), call("d", 1), *stops], 1: stops})
    assert of(told, "RequestedCallEvent", "call_me_later_id") == [(1.0, "d"), (3.0, "c")]


@pytest.mark.parametrize(
    ("lists", "first"), [([[0, 5], [0], [7]], ["ee0!0", "ee1!0"]), ([[0], [0]], ["ee0!0", "ee1!0"])]
)
def test_events_of_several_lists_at_0_s_come_with_the_begin(world, lists, first):
    told = talk5(world(lists=lists), {1: [start("w0!1", "0")]})
    assert [name for _, name in of(told[:1], "ExternalEventOccurredEvent", "id")] == first


def test_to_forward_all_profiles_is_refused_where_batsim_has_forgotten_one(world):
    engine = world(profiles={**PROFILES, "unused": PROFILES["d"]})
    with pytest.raises(PolicyError, match="no job has profile 'unused' of w0: Batsim"):
        talk5(engine, {}, forward_profiles_on_simulation_begins=True)


def test_a_registered_walltime_of_0_is_reached_at_once(world):
    script = [
        start("w0!1", "0"),
        ("RegisterJobEvent", {"job_id": "w0!n", "job": {"resource_request": 1, "profile_id": "d", "walltime": 0}}),
        ("FinishRegistrationEvent", {}),
    ]
    told = talk5(
        world(), {0.9: script, 1: [start("w0!n", "1")]}, dynamic_registration=True, acknowledge_dynamic_jobs=True
    )
    assert [job["walltime"] for _, job in of(told, "JobSubmittedEvent", "job")] == [None, None]
    ends = of(told, "JobCompletedEvent", "job_id", "state")
    assert ends == [(1.0, "w0!n", "COMPLETED_WALLTIME_REACHED"), (11.0, "w0!1", "COMPLETED_SUCCESSFULLY")]


FLOPS = {"flops": {"type": "ParallelTaskHomogeneousProfile", "cpu": 2e9, "com": 0}}
FLOPS["twice"] = {"type": "SequentialCompositionProfile", "seq": ["flops"], "repeat": 2}


def by_hand(*places):
    return {"executor_placement_type": "CustomExecutorToHostMapping", "executor_placement": {"mapping": [*places]}}


@pytest.mark.parametrize(
    ("profile", "hosts", "placement", "overrides", "end"),
    [
        ("flops", "0-3", {}, [], 3),
        ("flops", "0-1", {}, [], 5),  # two executors on each
        ("flops", "0-2", {}, [], 5),
        ("d", "1", {}, [], 11),
        ("flops", "0-3", by_hand(0, 0, 0, 1), [], 7),
        ("flops", "0-3", by_hand(2), [], 3),
        ("twice", "0-3", {}, [("w0!flops", "0-1", {})], 9),
        ("twice", "0-3", {}, [("w0!flops", "2-3", by_hand(1, 1, 1))], 13),
    ],
)
def test_executors_are_put_on_hosts_by_number_by_hand_and_by_part(world, profile, hosts, placement, overrides, end):
    job = {"id": "1", "subtime": 1, "res": 4, "profile": profile}
    _, said = start("w0!1", hosts)
    said["allocation"] |= placement
    plain = {name: value for name, value in start("", "")[1]["allocation"].items() if name != "host_allocation"}
    if overrides:
        said["profile_allocation_override"] = [
            {"profile_id": name, "host_allocation": some, **(other or plain)} for name, some, other in overrides
        ]
    engine = world(jobs=[job], profiles=FLOPS | PROFILES)
    told = talk5(engine, {1: [("ExecuteJobEvent", said)]})
    assert of(told, "JobCompletedEvent", "state") == [(end, "COMPLETED_SUCCESSFULLY")]
    assert engine.record().jobs.allocation[0] == hosts


def test_a_part_on_hosts_that_the_job_does_not_have_is_refused(world):
    _, said = start("w0!1", "0")
    job, override = {**JOB, "profile": "flops"}, {"profile_id": "w0!flops", **start("", "3")[1]["allocation"]}
    said["profile_allocation_override"] = [override]
    with pytest.raises(PolicyError, match="host 3, which the job does not have: that is not supported"):
        talk5(world(jobs=[job], profiles=FLOPS), {1: [("ExecuteJobEvent", said)]})


# --- A job's end and a stroke of the periodic clock at one instant ---------------------------------------------------
#
# As rc2's `periodic.cpp` and `jobs_execution.cpp` have it: who began to wait first acts first, but each host that is
# not measured yet takes a round. The job measures all hosts of the platform, the clock those of its probes. The clock
# waits anew once the server has heard of a stroke, which is before the answer to that.

EVERY_5 = {"period": 5, "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": 3}}
CALLS = ("CallMeLaterEvent", {"call_me_later_id": "c", "when_type": "Periodic", "when": EVERY_5})


def probe(hosts):
    accumulation = {"reset_mode_type": "NoReset", "reset_mode": {}, "cumulative_function": "Sum"}
    return "CreateProbeEvent", {
        "probe_id": "p",
        "metrics": "Power",
        "resources_type": "HostResources",
        "resources": {"host_ids": hosts},
        "data_accumulation_strategy_type": "ProbeDataAccumulation",
        "data_accumulation_strategy": {**accumulation, "temporal_normalization": False},
        "measurement_triggering_policy_type": "TemporalTriggerWrapper",
        "measurement_triggering_policy": {"temporal_trigger_type": "Periodic", "temporal_trigger": EVERY_5},
        "resources_aggregation_function_type": "NoResourcesAggregation",
        "resources_aggregation_function": {},
        "temporal_aggregation_function_type": "NoTemporalAggregation",
        "temporal_aggregation_function": {},
        "emission_filtering_policy_type": "NoFiltering",
        "emission_filtering_policy": {},
    }


@pytest.mark.parametrize(
    ("asked", "began", "order"),
    [
        ([CALLS], 1, ["JobCompletedEvent", "RequestedCallEvent"]),
        ([CALLS], 5, ["RequestedCallEvent", "JobCompletedEvent"]),
        ([probe("0-3")], 1, ["JobCompletedEvent", "ProbeDataEmittedEvent"]),
        ([probe("1-3")], 1, ["JobCompletedEvent", "ProbeDataEmittedEvent"]),
        ([probe("2-3")], 1, ["JobCompletedEvent", "ProbeDataEmittedEvent"]),  # the clock measures one for the job
        ([probe("3")], 1, ["ProbeDataEmittedEvent", "JobCompletedEvent"]),
        ([probe("0")], 1, ["ProbeDataEmittedEvent", "JobCompletedEvent"]),
        ([CALLS, probe("0-3")], 5, ["RequestedCallEvent", "ProbeDataEmittedEvent", "JobCompletedEvent"]),
        ([CALLS, probe("0-3")], 1, ["JobCompletedEvent", "RequestedCallEvent", "ProbeDataEmittedEvent"]),
    ],
)
def test_a_job_ends_at_a_stroke_of_the_clock(world, asked, began, order):
    jobs = [{**JOB, "profile": f"to{began}"}]
    profiles = {f"to{begin}": {"type": "DelayProfile", "delay": 10 - begin} for begin in (1, 5)}
    energy = "--energy-host" if any(kind == "CreateProbeEvent" for kind, _ in asked) else ""
    told = talk5(world(jobs=jobs, profiles=profiles, options=energy), {0: asked, began: [start("w0!1", "0")]})
    assert [event["event_type"] for question in told if question["now"] == 10 for event in question["events"]] == order


# --- What was found with a real 5.0.0-rc2 ----------------------------------------------------------------------------


def kill(*jobs):
    return "KillJobsEvent", {"job_ids": jobs}


STOP = ("ForceSimulationStopEvent", {})
STOP_CALL = ("StopCallMeLaterEvent", {"call_me_later_id": "c"})


def test_a_job_that_is_killed_at_the_instant_of_the_stop_is_in_no_file(world):
    engine = world(jobs=[JOB, {**JOB, "id": "2", "profile": "flops"}], profiles=PROFILES | FLOPS)
    script = {1: [start("w0!1", "0"), start("w0!2", "1"), call("c", 2)], 2: [kill("w0!1", "w0!2"), STOP]}
    assert talk5(engine, script)[-1]["now"] == 2
    assert list(engine.record().jobs.id) == []


def test_a_stop_is_at_its_own_time(world):
    script = {1: [start("w0!1", "0"), call("c", 3)], 3: [1, (*kill("w0!1"), 0.8), (*STOP, 0.5)]}
    engine = world()
    assert talk5(engine, script)[-1]["now"] == 3.5
    assert list(engine.record().jobs.id) == ["w0!1"]


AGAIN = {"period": 4, "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": 3}}
EVERY_4 = ("CallMeLaterEvent", {"call_me_later_id": "c", "when_type": "Periodic", "when": AGAIN})


@pytest.mark.parametrize(("takes", "calls"), [(0, []), (3, [4]), (4, [5]), (6, [7]), (7, [8, 8])])
def test_a_call_comes_while_a_reply_takes_time_and_at_the_instant_of_its_stop(world, takes, calls):
    told = talk5(world(), {0: [EVERY_4], 1: [takes, start("w0!1", "0"), STOP_CALL]})
    assert of(told, "RequestedCallEvent", "call_me_later_id") == [(now, "c") for now in calls]


def test_a_kill_of_none_has_the_time_of_what_came_before_it(world):
    told = talk5(world(), {1: [start("w0!1", "0"), call("c", 6)], 6: [6, kill("w0!1")]})
    stamps = [(e["timestamp"], q["now"]) for q in told for e in q["events"] if e["event_type"] == "JobsKilledEvent"]
    assert stamps == [(11, 12)]


def test_a_mapping_of_a_delay_means_nothing(world):
    _, said = start("w0!1", "0-1")
    said["allocation"] |= by_hand(0, 5)
    assert of(talk5(world(), {1: [("ExecuteJobEvent", said)]}), "JobCompletedEvent", "job_id") == [(11, "w0!1")]


def test_a_profile_is_forwarded_with_what_batsim_knows_of_it(world):
    profile = {"type": "DelayProfile", "delay": 3, "zebra": 1, "extra_data": {"a": [1]}}
    told = talk5(world(profiles={"d": profile}), {1: [start("w0!1", "0")]}, forward_profiles_on_job_submission=True)
    forwarded = {"id": "w0!d", "profile_type": "DelayProfile", "profile": {"delay": 3}, "extra_data": '{"a":[1]}'}
    assert of(told, "JobSubmittedEvent", "profile") == [(1, forwarded)]


@pytest.mark.parametrize(
    ("job", "profiles", "said"),
    [
        ({"profile": "slow0"}, {"slow0": PROFILES["d"]}, "'slow0' contains 'w0'"),
        ({"extra_data": 3}, PROFILES, "field 'extra_data': must be a text, an object or a list; found 3"),
        ({}, {"d": {**PROFILES["d"], "extra_data": None}}, "profile 'd', field 'extra_data'"),
    ],
)
def test_a_workload_that_batsim_5_does_not_load_is_refused(world, job, profiles, said):
    with pytest.raises(InputError, match=said):
        world(jobs=[{**JOB, **job}], profiles=profiles)


def test_a_profile_may_be_named_with_its_workload(world):
    told = talk5(world(jobs=[{**JOB, "profile": "w0!d"}]), {1: [start("w0!1", "0")]})
    assert [job["profile_id"] for _, job in of(told, "JobSubmittedEvent", "job")] == ["w0!d"]


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("DelayProfile", {"delay": 2, "zebra": 1}, "no field 'zebra'"),
        ("SequentialCompositionProfile", {"profile_ids": ["d"]}, "its part 'd' is not of the form WORKLOAD!NAME"),
    ],
)
def test_a_registered_profile_at_which_batsim_5_aborts_is_refused(world, kind, fields, said):
    script = {0: [("RegisterProfileEvent", {"profile": {"id": "w0!p", "profile_type": kind, "profile": fields}})]}
    with pytest.raises(RemoteProtocolError, match=said):
        talk5(world(), script, dynamic_registration=True)


def test_a_task_that_does_nothing_is_refused_as_batsim_5_crashes(world):
    idle = {"flops": {"type": "ParallelTaskHomogeneousProfile", "cpu": 0, "com": 0}}
    with pytest.raises(PolicyError, match="profile 'flops' neither computes nor sends"):
        talk5(world(jobs=[{**JOB, "profile": "flops"}], profiles=idle), {1: [start("w0!1", "0")]})
