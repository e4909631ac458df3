"""Writes a conversation down while it goes on.

A recorded conversation, decided again.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from decision.model.errors import ConfigError, InputError
from decision.model.hosts import format_hosts, parse_hosts
from decision.protocol.messages import Role
from decision.protocol.recording import RecordedMessage, read_recording

from .roles import Responder

_STARTS = ("EXECUTE_JOB", "ExecuteJobEvent")
_HOSTS = ("alloc", "resources", "host_allocation", "host_ids")


class FirstDifference(msgspec.Struct, frozen=True):
    """The first question to which the policy gives another reply than the recorded one."""

    now: float  # seconds
    line: int  # of the question in the recording
    recorded: list[str]  # the events of the recorded reply that the policy's has not, as JSON
    decided: list[str]  # the events of the policy's reply that the recorded one has not


class Replay(msgspec.Struct, frozen=True):
    """The result of a replay."""

    messages: int  # questions that got the recorded reply
    difference: FirstDifference | None = None  # None where all of them did


def replay(session: Path, agent: Responder) -> Replay:
    """Feed the questions of a recording to `agent` until its reply differs from the recorded one.

    Replies are compared by their events, whatever their order and whatever simulated time deciding took.

    Raises:
        InputError: if the file is not a recording.
        RemoteProtocolError, PolicyError: as `Responder.handle`.
    """
    same = 0
    for line, question, recorded in _exchanges(session):
        reply = agent.handle(question.data)
        if question.greets:  # each decision process has a name of its own
            continue
        decided, wanted = _events(reply), _events(recorded.data)
        if Counter(decided) != Counter(wanted):
            now = msgspec.json.decode(question.message)["now"]
            return Replay(same, FirstDifference(now, line, _without(wanted, decided), _without(decided, wanted)))
        same += 1
    return Replay(same)


def recorded_starts(session: Path) -> tuple[dict[str, float], int]:
    """When each job was started (seconds), by id, no matter who decided it; and how many replies there were.

    Raises:
        InputError: if the file is not a recording.
    """
    starts: dict[str, float] = {}
    replies = 0
    for _, question, reply in _exchanges(session):
        if question.greets:
            continue
        replies += 1
        for event in _decoded(reply.data):
            kind, data = _parts(event)
            if kind in _STARTS:
                starts[data["job_id"]] = float(event["timestamp"])
    return starts, replies


def _exchanges(session: Path) -> Iterator[tuple[int, RecordedMessage, RecordedMessage]]:
    """Each question's place in the recording, the question, and the recorded reply."""
    entries = list(enumerate(_read(session), start=1))
    for (line, question), (_, reply) in zip(entries[::2], entries[1::2], strict=False):
        if (question.sender, reply.sender) != (Role.BATSIM, Role.DECISION):
            raise InputError(f"{session}, message {line}: questions and replies do not alternate; is a line missing?")
        yield line, question, reply


def _read(session: Path) -> list[RecordedMessage]:
    try:
        lines = session.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{session}: cannot be read ({error})") from None
    entries = list(read_recording(lines, str(session)))
    if len(entries) < 2:
        raise InputError(f"{session}: it has no question with its reply")
    return entries


def _decoded(reply: bytes) -> list[dict[str, Any]]:
    """The events of a reply, as JSON."""
    events: list[dict[str, Any]] = msgspec.json.decode(reply.rstrip(b"\0"))["events"]
    return events


def _parts(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An event's type and what it says, in either wire form."""
    return (event["type"], event["data"]) if "type" in event else (event["event_type"], event["event"])


def _events(reply: bytes) -> list[str]:
    """The events of a reply, written in one way each, without the times at which they were decided."""
    return [msgspec.json.encode(_normal(event), order="sorted").decode() for event in _decoded(reply)]


def _normal(event: dict[str, Any]) -> dict[str, Any]:
    kind, said = _parts(event)
    return {"type": kind, "data": _normal_data(said)}


def _normal_data(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    return {name: _normal_hosts(value) if name in _HOSTS else _normal_data(value) for name, value in said.items()}


def _normal_hosts(text: Any) -> Any:
    if not isinstance(text, str):
        return _normal_data(text)
    try:
        return format_hosts(parse_hosts(text))
    except ConfigError:
        return text  # not a host set: it differs from any valid one


def _without(events: list[str], others: list[str]) -> list[str]:
    return list((Counter(events) - Counter(others)).elements())
