"""Whatever a peer sends, the connection answers with a message or with an error of its own."""

import json
import random
from pathlib import Path

import pytest
from helpers.cases import by_day
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decision.protocol import (
    Connection,
    ConversationPhase,
    JsonCodec,
    LocalProtocolError,
    Message,
    RemoteProtocolError,
    read_recording,
)
from decision.protocol.messages import (
    CallMeLater,
    CallMeLaterData,
    ExecuteJob,
    ExecuteJobData,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobSubmitted,
    JobSubmittedData,
    KillJob,
    KillJobData,
    Notify,
    NotifyData,
    RejectJob,
    RejectJobData,
    SimulationEnds,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "sessions"
SESSIONS = {
    path.parent.name: list(read_recording(path.read_text().splitlines()))
    for path in sorted(GOLDEN.glob("*/session.jsonl"))
}
quick = settings(deadline=None, max_examples=by_day(200, of=2000), suppress_health_check=[HealthCheck.too_slow])


def listener(name: str, turns: int, speaks: bool = False) -> Connection:
    """A connection that is about to hear, or speak, the message number `turns` of a recorded session."""
    session = SESSIONS[name]
    sender = session[turns].sender
    connection, codec = Connection(sender if speaks else sender.peer), JsonCodec()
    for entry in session[:turns]:
        if entry.sender is connection.role:
            connection.send(codec.decode(entry.data))
        else:
            connection.receive(entry.data)
    return connection


def hear(connection: Connection, data: bytes) -> None:
    """Receive; what is accepted can be written again, what is refused is the peer's fault in one line."""
    try:
        message = connection.receive(data)
    except RemoteProtocolError as error:
        assert "\n" not in str(error)
        assert connection.phase is ConversationPhase.BROKEN
    else:
        assert JsonCodec().decode(JsonCodec().encode(message)) == message


places = st.tuples(st.sampled_from(sorted(SESSIONS)), st.integers(0, 12))
times = st.sampled_from([0.0, 1.0, 2.5, 1e9, -1.0, 5e-324]) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.sampled_from(["w0!j0", "w0!j1", "0", "0-3 5", "", "9-2", "w0", '"', "\n"]) | st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@quick
@given(places, st.binary(max_size=200))
def test_random_bytes_never_crash_the_connection(place, data):
    hear(listener(*place), data)


def paths(value, path=()):
    """The places in a JSON value, as sequences of keys."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


def mutate(message: dict, rng: random.Random, value: object) -> object:
    """The message with one place removed, doubled or replaced by `value`."""
    path = rng.choice(list(paths(message)))
    if not path:
        return value
    parent = message
    for key in path[:-1]:
        parent = parent[key]
    action = rng.choice(["remove", "replace", "double"])
    if action == "remove":
        del parent[path[-1]]
    elif action == "double" and isinstance(parent, list):
        parent.append(parent[path[-1]])
    else:
        parent[path[-1]] = value
    return message


@quick
@given(places, st.randoms(use_true_random=False), values)
def test_mutated_real_messages_never_crash_the_connection(place, rng, value):
    name, turns = place
    message = json.loads(SESSIONS[name][turns].data)
    hear(listener(name, turns), json.dumps(mutate(message, rng, value)).encode())


@quick
@given(places, st.data())
def test_real_messages_cut_or_spliced_never_crash_the_connection(place, data):
    name, turns = place
    real = SESSIONS[name][turns].data
    cut = data.draw(st.integers(0, len(real)))
    hear(
        listener(name, turns),
        real[:cut] + data.draw(st.binary(max_size=3)) + real[data.draw(st.integers(cut, len(real))) :],
    )


jobs = st.builds(
    lambda **fields: JobDescription(**fields),
    id=texts,
    res=st.integers(0, 2**31 - 1),
    subtime=times,
    profile=texts,
    walltime=times | st.just(-1),
)
endings = st.sampled_from(["COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"])
events = st.one_of(
    st.builds(JobSubmitted, times, st.builds(JobSubmittedData, texts, jobs)),
    st.builds(JobCompleted, times, st.builds(JobCompletedData, texts, endings, st.integers(-1, 1), texts)),
    st.builds(Notify, times, st.builds(lambda kind: NotifyData(type=kind), texts)),
    st.builds(SimulationEnds, times),
    st.builds(ExecuteJob, times, st.builds(ExecuteJobData, texts, texts)),
    st.builds(RejectJob, times, st.builds(RejectJobData, texts)),
    st.builds(KillJob, times, st.builds(KillJobData, st.lists(texts, max_size=2).map(tuple))),
    st.builds(CallMeLater, times, st.builds(CallMeLaterData, times)),
)
messages = st.builds(Message, times, st.lists(events, max_size=3).map(tuple))


@quick
@given(places, messages)
def test_well_formed_nonsense_never_crashes_the_connection(place, message):
    hear(listener(*place), JsonCodec().encode(message))


@quick
@given(places, messages)
def test_both_ends_agree_on_what_may_be_said(place, message):
    hearer, speaker = listener(*place), listener(*place, speaks=True)
    try:
        data = speaker.send(message)
    except LocalProtocolError as ours:
        with pytest.raises(RemoteProtocolError) as theirs:
            hearer.receive(JsonCodec().encode(message))
        assert str(ours) == f"not sent: {theirs.value}"
    else:
        assert hearer.receive(data) == message
