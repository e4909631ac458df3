"""What differs between the versions of the protocol, and that nobody above needs to know."""

import json

import pytest
from helpers.protocol_samples import begins, completed, execute, kill, message, submitted, talk, wire

from decision.model.errors import ConfigError
from decision.protocol import Connection, JsonCodec, RemoteProtocolError, Role, version_named

V3_ONLY_LACKS = {"sched-config", "profile-reuse-enabled"}


def test_a_release_names_its_version():
    assert version_named("3.1").name == version_named("3.1.0").name == "3.1"
    assert version_named("4.2.1") is version_named("4.0.0") is version_named("4")


@pytest.mark.parametrize("name", ["5.0.0", "3.0", "2", "", "four"])
def test_an_unknown_release_is_the_users_mistake(name):
    with pytest.raises(ConfigError, match=r"known are 3\.1\.0, 4\.0\.0, 4\.1\.0, 4\.2\.0, 4\.2\.1"):
        version_named(name)


def test_batsim_3_1_does_not_send_what_came_with_4_0():
    data = json.loads(JsonCodec(version_named("3.1")).encode(message(0.0, begins())))["events"][0]["data"]
    newer = json.loads(JsonCodec().encode(message(0.0, begins())))["events"][0]["data"]
    assert newer["config"].keys() - data["config"].keys() == V3_ONLY_LACKS
    assert "zone_properties" in newer["compute_resources"][0]
    assert "zone_properties" not in data["compute_resources"][0]


def test_the_version_is_seen_in_simulation_begins_and_the_message_is_the_same():
    told = {}
    for release in ("3.1.0", "4.2.1"):
        connection = Connection(Role.DECISION)
        told[release] = connection.receive(JsonCodec(version_named(release)).encode(message(0.0, begins())))
        assert connection.version is version_named(release)
    assert told["3.1.0"] == told["4.2.1"]


def test_an_unreadable_key_that_nobody_needs_does_not_hide_the_version():
    connection = Connection(Role.DECISION)
    connection.receive(wire(0.0, begins()).replace(b'"config":{', b'"config":{"\xff":0,'))
    assert connection.version is version_named("4.2.1")


def test_batsims_end_speaks_the_version_it_was_given():
    sent = Connection(Role.BATSIM, "3.1").send(message(0.0, begins()))
    assert V3_ONLY_LACKS.isdisjoint(json.loads(sent)["events"][0]["data"]["config"])


def test_a_peer_of_another_version_than_agreed_is_refused():
    with pytest.raises(RemoteProtocolError, match=r"Batsim speaks the protocol of version 4, not that of 3\.1"):
        Connection(Role.DECISION, "3.1").receive(wire(0.0, begins()))


@pytest.mark.parametrize("version", ["3.1", "4.2.1"])
def test_only_batsim_4_forgets_jobs_that_have_ended(version):
    connection = talk(
        Role.BATSIM,
        message(0.0, begins()),
        message(0.0),
        message(0.0, submitted("w0!1")),
        message(0.0, execute("w0!1")),
        message(9.0, completed("w0!1", 9.0)),
        version=version,
    )
    late_kill = wire(9.0, kill("w0!1", t=9.0))
    if version == "3.1":
        connection.receive(late_kill)
    else:
        with pytest.raises(RemoteProtocolError, match="job w0!1 is killed, but it has ended"):
            connection.receive(late_kill)
