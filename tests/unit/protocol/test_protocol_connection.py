"""Whose turn it is, that time does not go back, and who is to blame."""

import pytest
from helpers.protocol_samples import begins, call, completed, execute, message, submitted, talk, wire

from decision.protocol import Connection, ConversationPhase, LocalProtocolError, RemoteProtocolError, Role
from decision.protocol.messages import NoData, RequestedCall, SimulationEnds

BEGUN = (message(0.0, begins()), message(0.0))
SUBMITTED = (*BEGUN, message(5.0, submitted("w0!1", 5.0)))
DONE = (
    *SUBMITTED,
    message(5.0, execute("w0!1", 5.0)),
    message(9.0, completed("w0!1", 9.0)),
    message(9.0),
    message(9.0, SimulationEnds(9.0)),
)
ENDED = (*DONE, message(9.0))

OUT_OF_TURN = {
    "a reply before any question": ((), Role.DECISION, message(0.0), "the decision process sends the first message"),
    "no SIMULATION_BEGINS": ((), Role.BATSIM, message(0.0, submitted("w0!1")), "Batsim does not begin with"),
    "an empty beginning": ((), Role.BATSIM, message(0.0), "Batsim does not begin with SIMULATION_BEGINS"),
    "SIMULATION_BEGINS too late": (
        (),
        Role.BATSIM,
        message(0.0, submitted("w0!1"), begins()),
        "Batsim does not begin with SIMULATION_BEGINS",
    ),
    "a second SIMULATION_BEGINS": (
        BEGUN,
        Role.BATSIM,
        message(0.0, begins()),
        r"Batsim sends SIMULATION_BEGINS at 0\.0 s: the simulation has already begun",
    ),
    "a second question": (
        SUBMITTED,
        Role.BATSIM,
        message(6.0),
        "Batsim sends another question before the first is answered",
    ),
    "a second reply": (BEGUN, Role.DECISION, message(0.0), "the decision process sends a message without a question"),
    "events after SIMULATION_ENDS": (
        BEGUN,
        Role.BATSIM,
        message(9.0, SimulationEnds(9.0), submitted("w0!1", 9.0)),
        "Batsim sends more events after SIMULATION_ENDS",
    ),
    "two SIMULATION_ENDS": (
        BEGUN,
        Role.BATSIM,
        message(9.0, SimulationEnds(9.0), SimulationEnds(9.0)),
        "the simulation has already ended",
    ),
    "a question before SIMULATION_ENDS is answered": (DONE, Role.BATSIM, message(9.0), "SIMULATION_ENDS is answered"),
    "commands after SIMULATION_ENDS": (
        DONE,
        Role.DECISION,
        message(9.0, call(20.0, 9.0)),
        r"the decision process sends CALL_ME_LATER at 9\.0 s in answer to SIMULATION_ENDS, which takes no commands",
    ),
    "a question after the end": (
        ENDED,
        Role.BATSIM,
        message(10.0),
        "Batsim sends a message after the end of the simulation",
    ),
    "a reply after the end": (ENDED, Role.DECISION, message(10.0), "process sends a message after the end"),
    "Batsim's event from the decision process": (
        SUBMITTED,
        Role.DECISION,
        message(5.0, RequestedCall(5.0, NoData())),
        r"REQUESTED_CALL at 5\.0 s: only the other side may send this event",
    ),
    "a command from Batsim": (
        (*SUBMITTED, message(5.0)),
        Role.BATSIM,
        message(5.0, execute("w0!1", 5.0)),
        r"Batsim sends EXECUTE_JOB at 5\.0 s: only the other side may send this event",
    ),
    "a question earlier than the reply before it": (
        (*SUBMITTED[:-1], message(5.0, submitted("w0!1", 5.0)), message(7.0)),
        Role.BATSIM,
        message(6.0),
        r"Batsim goes back in time: its message is from 6\.0 s, after one from 7\.0 s",
    ),
    "an event earlier than the question before it": (
        (*SUBMITTED, message(5.0)),
        Role.BATSIM,
        message(6.0, submitted("w0!2", 4.0)),
        r"Batsim goes back in time: it sends JOB_SUBMITTED at 4\.0 s, after 5\.0 s",
    ),
    "a reply earlier than its question": (SUBMITTED, Role.DECISION, message(4.0), r"from 4\.0 s, after one from 5\.0"),
    "a command earlier than its question": (
        SUBMITTED,
        Role.DECISION,
        message(5.0, execute("w0!1", 4.0)),
        r"the decision process goes back in time: it sends EXECUTE_JOB at 4\.0 s, after 5\.0 s",
    ),
    "events in descending order": (
        BEGUN,
        Role.BATSIM,
        message(9.0, submitted("w0!1", 8.0), submitted("w0!2", 7.0)),
        r"sends JOB_SUBMITTED at 7\.0 s, after 8\.0 s",
    ),
    "an event later than its message": (
        SUBMITTED,
        Role.DECISION,
        message(6.0, execute("w0!1", 6.5)),
        r"EXECUTE_JOB at 6\.5 s in a message of 6\.0 s: an event cannot be later than its message",
    ),
    "a negative time": ((), Role.BATSIM, message(-1.0, begins(-1.0)), "Batsim goes back in time"),
}


@pytest.mark.parametrize("case", OUT_OF_TURN.values(), ids=OUT_OF_TURN)
@pytest.mark.parametrize("blame", [LocalProtocolError, RemoteProtocolError])
def test_a_message_out_of_turn_is_refused_and_its_sender_blamed(case, blame):
    history, sender, bad, says = case
    us = sender if blame is LocalProtocolError else sender.peer
    connection = talk(us, *history)
    with pytest.raises(blame, match=says) as caught:
        if us is sender:
            connection.send(bad)
        else:
            connection.receive(wire(bad.now, *bad.events))
    assert type(caught.value) is blame
    assert "\n" not in str(caught.value)
    assert connection.phase is ConversationPhase.BROKEN


@pytest.mark.parametrize("now", [float("nan"), float("inf")])
def test_a_time_that_is_no_number_is_not_sent(now):
    with pytest.raises(LocalProtocolError, match="goes back in time"):
        talk(Role.DECISION, *SUBMITTED).send(message(now))
    with pytest.raises(LocalProtocolError, match="EXECUTE_JOB"):
        talk(Role.DECISION, *SUBMITTED).send(message(5.0, execute("w0!1", now)))


def test_a_reply_after_30_000_years_is_the_decision_processes_fault():
    with pytest.raises(RemoteProtocolError, match=r"sends a message of 1e\+30 s, later than 1e\+12 s"):
        talk(Role.BATSIM, *SUBMITTED).receive(wire(1e30))


def test_times_that_batsim_rounded_to_six_decimals_are_no_fault():
    connection = talk(Role.DECISION, *SUBMITTED, message(5.12345678))
    connection.receive(wire(5.123456, submitted("w0!2", 4.9999995)))
    connection.send(message(5.123456, execute("w0!1", 5.1234555)))
    with pytest.raises(RemoteProtocolError, match="goes back in time"):
        connection.receive(wire(5.12345))


def test_what_happened_while_the_decision_process_thought_may_be_told_after():
    connection = talk(Role.DECISION, *SUBMITTED, message(7.0))
    question = connection.receive(wire(7.0, submitted("w0!2", 6.0), submitted("w0!3", 6.5)))
    assert [event.timestamp for event in question.events] == [6.0, 6.5]


def test_nonsense_is_blamed_on_the_peer_and_breaks_the_connection():
    connection = Connection(Role.DECISION)
    with pytest.raises(RemoteProtocolError, match=r"Batsim sends bytes that cannot be read: .*truncated"):
        connection.receive(b'{"now": 0.0, "events": [')
    with pytest.raises(LocalProtocolError, match="is broken: Batsim sends bytes that cannot be read"):
        connection.receive(wire(0.0, begins()))
    with pytest.raises(LocalProtocolError, match="the connection is broken: "):
        connection.send(message(0.0))


def test_what_cannot_be_written_is_blamed_on_us():
    connection = talk(Role.BATSIM, *BEGUN)
    with pytest.raises(LocalProtocolError, match="Batsim sends a message that cannot be written"):
        connection.send(message(0.0, submitted("w0!\ud800")))


def test_batsim_with_redis_is_refused():
    with pytest.raises(RemoteProtocolError, match="start Batsim without --enable-redis"):
        Connection(Role.DECISION).receive(wire(0.0, begins(redis_enabled=True)))


def test_our_two_ends_hold_a_conversation():
    batsim, decision = Connection(Role.BATSIM), Connection(Role.DECISION)
    heard = []
    for number, turn in enumerate(ENDED):
        speaker, listener = (decision, batsim) if number % 2 else (batsim, decision)
        assert not listener.ended
        heard.append(listener.receive(speaker.send(turn)))
    assert heard == list(ENDED)
    assert batsim.ended and decision.ended
