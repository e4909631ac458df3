"""Every event of Batsim's protocol, as its documentation and source write it, survives the codec."""

import json
import math

import pytest

from decision.protocol import CodecError, JsonCodec, Message
from decision.protocol.messages import (
    AdditionalIoJob,
    ExecuteJob,
    ExecuteJobData,
    JobDescription,
    NotifyData,
    RequestedCall,
    event_type,
)

JOB = {"id": "w0!1", "subtime": 10, "res": 2, "walltime": 60, "profile": "p", "user": "ada", "deps": [1, 2.0, None]}
PROFILE = {"type": "parallel", "cpu": [5000000, 0.0], "com": [1e6, 0, 0, 2]}
PROGRESS = {
    "w0!1": {"profile_name": "a", "progress": 0.52},
    "w0!2": {"profile_name": "b", "current_task_index": -1},
    "w0!3": {
        "profile_name": "c",
        "current_task_index": 2,
        "current_task": {
            "profile_name": "b",
            "current_task_index": 3,
            "current_task": {"profile_name": "a", "progress": 0.75},
        },
    },
}
WAIT = {"job_id": "w!17", "job": {"res": 1, "walltime": 12}}
MAPPING = {"0": "0", "1": "0", "2": "1", "3": 1}
IO = {"alloc": "2-3 5-6", "profile_name": "io", "profile": PROFILE}
CONFIG = {
    "redis-enabled": False,
    "redis-hostname": "127.0.0.1",
    "redis-port": 6379,
    "redis-prefix": "default",
    "profiles-forwarded-on-submission": False,
    "dynamic-jobs-enabled": True,
    "dynamic-jobs-acknowledged": True,
    "profile-reuse-enabled": False,
    "sched-config": '{"a": "b"}',
    "forward-unknown-events": False,
}
HOST = {"id": 0, "name": "n0", "state": "idle", "properties": {"role": ""}, "zone_properties": {"rack": "7"}}
BEGINS = {
    "nb_resources": 2,
    "nb_compute_resources": 1,
    "nb_storage_resources": 1,
    "allow_compute_sharing": False,
    "allow_storage_sharing": True,
    "config": CONFIG,
    "compute_resources": [HOST],
    "storage_resources": [{**HOST, "id": 1, "name": "disk"}],
    "workloads": {"w0": "w0.json"},
    "profiles": {"w0": {"p": PROFILE, "q": {"type": "delay", "delay": 10}}},
}

EVENTS = [
    ("QUERY", {"requests": {"consumed_energy": {}}}),
    ("QUERY", {"requests": {"estimate_waiting_time": WAIT}}),
    ("ANSWER", {"consumed_energy": 12500.0}),
    ("ANSWER", {"estimate_waiting_time": {"job_id": "w!17", "estimated_waiting_time": 56.0}}),
    ("NOTIFY", {"type": "no_more_static_job_to_submit"}),
    ("NOTIFY", {"type": "no_more_external_event_to_occur"}),
    ("NOTIFY", {"type": "event_machine_available", "resources": "0 5-8"}),
    ("NOTIFY", {"type": "event_machine_unavailable", "resources": "0 5-8"}),
    ("NOTIFY", {"timestamp": 3, "type": "heatwave", "resources": [1], "degrees": 41.0, "self": {"x": None}}),
    ("NOTIFY", {"type": "registration_finished"}),
    ("NOTIFY", {"type": "continue_registration"}),
    ("SIMULATION_BEGINS", BEGINS),
    ("SIMULATION_ENDS", {}),
    ("JOB_SUBMITTED", {"job_id": "w0!1", "job": JOB}),
    ("JOB_SUBMITTED", {"job_id": "w0!1", "job": JOB, "profile": PROFILE}),
    ("JOB_COMPLETED", {"job_id": "w0!1", "job_state": "COMPLETED_FAILED", "return_code": -1, "alloc": "0-1 5"}),
    ("JOB_KILLED", {"job_ids": list(PROGRESS), "job_progress": PROGRESS}),
    ("RESOURCE_STATE_CHANGED", {"resources": "1 2 3-5", "state": "42"}),
    ("REQUESTED_CALL", {}),
    ("FROM_JOB_MSG", {"job_id": "w0!1", "msg": {"any": ["json", 1]}}),
    ("REJECT_JOB", {"job_id": "w12!45"}),
    ("EXECUTE_JOB", {"job_id": "w12!45", "alloc": "2-3"}),
    ("EXECUTE_JOB", {"job_id": "w12!45", "alloc": "2-3", "mapping": MAPPING}),
    ("EXECUTE_JOB", {"job_id": "w12!45", "alloc": "2-3", "storage_mapping": {"pfs": 2}}),
    ("EXECUTE_JOB", {"job_id": "w12!45", "alloc": "2-3", "additional_io_job": IO}),
    ("CALL_ME_LATER", {"timestamp": 25.5}),
    ("KILL_JOB", {"job_ids": ["w0!1", "w0!2"]}),
    ("REGISTER_JOB", {"job_id": "w0!1", "job": JOB}),
    ("REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": "d", "profile": PROFILE}),
    ("SET_RESOURCE_STATE", {"resources": "1 2 3-5", "state": "42"}),
    ("SET_JOB_METADATA", {"job_id": "w0!1", "metadata": "a string"}),
    ("CHANGE_JOB_STATE", {"job_id": "w0!1", "job_state": "COMPLETED_KILLED", "kill_reason": "asked to"}),
    ("TO_JOB_MSG", {"job_id": "w0!1", "msg": "an answer"}),
]


def in_message(kind: str, data: dict) -> bytes:
    return json.dumps({"now": 10.0, "events": [{"timestamp": 10.0, "type": kind, "data": data}]}).encode()


def exactly(data: bytes) -> str:
    """The JSON in a form in which 60 and 60.0 differ and the order of keys does not count."""
    return json.dumps(json.loads(data), sort_keys=True)


@pytest.mark.parametrize(("kind", "data"), EVENTS, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(EVENTS)])
def test_an_event_is_read_under_its_name_and_written_back_as_it_was(kind, data):
    wire = in_message(kind, data)
    message = JsonCodec().decode(wire)
    assert event_type(message.events[0]) == kind
    assert exactly(JsonCodec().encode(message)) == exactly(wire)


def test_a_job_description_gives_typed_fields_and_keeps_the_others():
    job = JsonCodec().decode(in_message("JOB_SUBMITTED", {"job_id": "w0!1", "job": JOB})).events[0].data.job
    assert (job.id, job.res, job.subtime, job.walltime, job.profile) == ("w0!1", 2, 10.0, 60.0, "p")
    assert job.fields["deps"] == [1, 2.0, None]
    assert job == JobDescription(**JOB)
    assert job != JobDescription(**{**JOB, "user": "bob"})


@pytest.mark.parametrize("fields", [{}, {"walltime": -1}, {"walltime": -1.0}])
def test_a_job_without_walltime_has_an_infinite_one(fields):
    assert JobDescription(id="w0!1", subtime=0, res=1, profile="p", **fields).walltime == math.inf


def test_a_notification_gives_its_hosts():
    assert NotifyData(type="event_machine_available", resources="0 5-8").resources == "0 5-8"
    assert NotifyData(type="registration_finished").resources == ""


def test_progress_of_nested_sequences_is_typed():
    killed = JsonCodec().decode(in_message("JOB_KILLED", {"job_ids": ["w0!3"], "job_progress": PROGRESS})).events[0]
    assert killed.data.job_progress["w0!3"].current_task.current_task.progress == 0.75


def test_job_killed_without_progress_is_read():
    killed = JsonCodec().decode(in_message("JOB_KILLED", {"job_ids": ["w0!3"]})).events[0]
    assert killed.data.job_progress == {}


def test_what_is_not_set_is_not_written():
    data = ExecuteJobData("w0!1", "0", additional_io_job=AdditionalIoJob("0", "io"))
    wire = json.loads(JsonCodec().encode(Message(1.0, (ExecuteJob(1.0, data), RequestedCall(1.0)))))
    assert wire["events"][0]["data"] == {
        "job_id": "w0!1",
        "alloc": "0",
        "additional_io_job": {"alloc": "0", "profile_name": "io"},
    }
    assert wire["events"][1] == {"type": "REQUESTED_CALL", "timestamp": 1.0, "data": {}}


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        ("NOP", {}, r"Invalid value 'NOP' - at `\$.events\[0\].type`"),
        ("JOB_SUBMITTED", {"job_id": "w0!1"}, "missing required field `job`"),
        (
            "JOB_SUBMITTED",
            {"job_id": "w0!1", "job": []},
            r"Expected `object`, got `list` - at `\$.events\[0\].data.job`",
        ),
        ("JOB_SUBMITTED", {"job_id": "w0!1", "job": {**JOB, "res": "2"}}, r"`int`, got `str` - at `\$.res`"),
        ("JOB_SUBMITTED", {"job_id": "w0!1", "job": {**JOB, "res": -2}}, r">= 0 - at `\$.res`"),
        ("JOB_SUBMITTED", {"job_id": "w0!1", "job": {"id": "w0!1", "res": 1, "profile": "p"}}, "field `subtime`"),
        ("JOB_COMPLETED", {"job_id": "1", "job_state": "DONE", "return_code": 0, "alloc": "0"}, "'DONE'"),
        ("NOTIFY", {"resources": "0"}, r"field `type` - at `\$.events\[0\].data`"),
        ("QUERY", {"requests": {"air_temperature_all": {}}}, "air_temperature_all"),
        ("CALL_ME_LATER", {"timestamp": "soon"}, "Expected `float`"),
    ],
)
def test_an_event_of_the_wrong_form_is_refused_with_the_place(kind, data, says):
    with pytest.raises(CodecError, match=says):
        JsonCodec().decode(in_message(kind, data))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b'{"now": 1.0, "events": [{"timestamp": 1.0, "ty', "truncated"),
        (b'{"now": 1.0}', "events"),
        (b'{"now": NaN, "events": []}', "malformed"),
        (b'{"now": 1e999, "events": []}', "out of range"),
        (b'{"now": 1.0, "events": []} and more', "trailing"),
        (b'{"now": 1.0, "events": "\xff"}', "decode|array"),
        (b'{"now": 1.0, "events": ' + b"[" * 100_000, "."),
        (b"\x18\x00\x00\x00BATP", "Batsim 5"),
        (b'{"now": 0, "events": [{"timestamp": 0, "event_type": "BatsimHelloEvent", "event": {}}]}', "Batsim 5"),
        (
            b'{"now": 0, "events": [{"timestamp": 0, "type": "X", "data": {"resources_data": []}}]}',
            "older than Batsim 3",
        ),
    ],
)
def test_bytes_that_are_no_message_are_refused_in_one_line(data, says):
    with pytest.raises(CodecError, match=says) as caught:
        JsonCodec().decode(data)
    assert "\n" not in str(caught.value)


def test_a_text_that_is_no_unicode_cannot_be_written():
    with pytest.raises(CodecError, match="surrogates"):
        JsonCodec().encode(Message(0.0, (ExecuteJob(0.0, ExecuteJobData("w0!\ud800", "0")),)))
