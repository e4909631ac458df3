"""Replaying a recording: what counts as the same decision, and where the first other one is."""

import json

import pytest
from helpers.driver_fakes import Agent

from decision.batsim.conversation import replay
from decision.model.errors import InputError, PolicyError


def execute(job, alloc, at=1.0):
    return {"timestamp": at, "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}}


def message(now, *events):
    return {"now": now, "events": list(events)}


@pytest.fixture
def session(tmp_path):
    """Writes a recording of these replies, each to a question of its own second."""

    def write(*replies):
        lines = []
        for second, reply in enumerate(replies):
            lines.append({"from": "batsim", "message": message(float(second))})
            lines.append({"from": "decision", "message": reply})
        path = tmp_path / "session.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


def deciding(*replies):
    """An agent that gives these replies."""
    waiting = iter(replies)
    return Agent(lambda question: json.dumps(next(waiting)).encode())


def test_the_same_decisions_are_the_same(session):
    replies = [message(0.0), message(1.0, execute("w0!1", "0-3"))]
    result = replay(session(*replies), deciding(*replies))
    assert (result.messages, result.difference) == (2, None)


def test_neither_the_order_nor_the_spelling_nor_the_time_of_decisions_matters(session):
    recorded = message(1.5, execute("w0!1", "0,1,2"), execute("w0!2", "3-4", at=1.5))
    decided = message(1.0, execute("w0!2", "3 4"), execute("w0!1", "0-2"))
    assert replay(session(recorded), deciding(decided)).difference is None


def test_the_first_other_decision_is_named_and_ends_the_replay(session):
    agent = deciding(message(0.0), message(1.0, execute("w0!1", "4-7")), message(2.0))
    same = execute("w0!0", "0")
    path = session(message(0.0), message(1.0, same, execute("w0!1", "0-3")), message(2.0))
    agent = deciding(message(0.0), message(1.0, execute("w0!1", "4-7"), same))
    result = replay(path, agent)
    assert result.messages == 1
    assert (result.difference.now, result.difference.line) == (1.0, 3)
    assert [json.loads(event)["data"]["alloc"] for event in result.difference.recorded] == ["0-3"]
    assert [json.loads(event)["data"]["alloc"] for event in result.difference.decided] == ["4-7"]
    assert len(agent.questions) == 2


def test_deciding_the_same_thing_twice_is_a_difference(session):
    once, twice = message(0.0, execute("w0!1", "0")), message(0.0, execute("w0!1", "0"), execute("w0!1", "0"))
    difference = replay(session(once), deciding(twice)).difference
    assert len(difference.decided) == 1
    assert difference.recorded == []


def test_an_interrupted_recording_is_replayed_up_to_its_last_reply(session):
    path = session(message(0.0), message(1.0))
    with path.open("a") as file:
        file.write(json.dumps({"from": "batsim", "message": message(2.0)}) + "\n")
    agent = deciding(message(0.0), message(1.0))
    assert replay(path, agent).messages == 2


def test_an_impossible_decision_is_the_policys_fault(session):
    def fail(question):
        raise PolicyError("t=0 s: w0!1 runs already")

    with pytest.raises(PolicyError, match="runs already"):
        replay(session(message(0.0)), Agent(fail))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no question with its reply"),
        ('{"now": 0, "events": []}\n', "line 1: not a recorded message"),
        ('{"from": "batsim", "message": {"now": 0.0, "events": []}}\n{"from": "ba', "line 2"),
        ('{"from": "batsim", "message": {"now": 0.0, "events": []}}\n' * 2, "do not alternate"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_its_line(tmp_path, text, complaint):
    path = tmp_path / "session.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=f"session.jsonl.*{complaint}"):
        replay(path, Agent())


def test_a_recording_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"absent\.jsonl: cannot be read"):
        replay(tmp_path / "absent.jsonl", Agent())
