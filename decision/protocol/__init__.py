"""Batsim's protocol without any I/O: bytes to typed events and commands and back, for both ends.

>>> from decision.protocol import Connection, Message, Role
>>> from decision.protocol.messages import CallMeLater, CallMeLaterData
>>> us = Connection(Role.DECISION)
>>> question = us.receive(data)                                       # doctest: +SKIP
>>> call = CallMeLater(question.now, CallMeLaterData(question.now + 60))  # doctest: +SKIP
>>> reply = us.send(Message(question.now, (call,)))                   # doctest: +SKIP

Design
------
Sans-I/O, in the manner of h11: a `Connection` turns bytes into messages and messages into bytes, and holds the
conversation to its rules; who owns the socket does not matter to it. Both roles are the same code, so that tests join
our two ends without a socket and the embedded engine can serve somebody else's scheduler.

Four layers, each of which can be read alone: `messages` (the types), `versions` and `batsim5` (the wire forms, of
versions up to 4 and of 5), `rules` (what is true of jobs, calls and queries, and what each end may send), `connection`
(whose turn it is, time, blame). What differs between versions of Batsim is in `versions` and nowhere else; another wire
form is chosen by version. `recording` is a conversation as lines of text.

An error names who is to blame: `RemoteProtocolError` the peer, `LocalProtocolError` ourselves. Where Batsim would stop
on a command (a job executed twice, a call in the past, metadata with a double quote) the rule is Batsim's own and is
applied before the command leaves. Whether an allocation makes sense is not decided here: that needs the state of the
cluster.

Rejected: a typed struct for a job's description, which would lose the fields that a workload's author added
(`JobDescription` keeps them all and checks those that matter); ``msgspec.Raw`` for profiles, which would leave checking
them to the first reader; rolling back after a refused message (an end that has misunderstood the other cannot go on).
"""

from decision.model.errors import LocalProtocolError, ProtocolError, RemoteProtocolError

from . import messages
from .connection import SLACK, Connection, ConversationPhase
from .messages import Message, Role
from .recording import RecordedMessage, read_recording, record_line
from .versions import NEWEST, Codec, CodecError, JsonCodec, Version, version_named

__all__ = [
    "NEWEST",
    "SLACK",
    "Codec",
    "CodecError",
    "Connection",
    "ConversationPhase",
    "JsonCodec",
    "LocalProtocolError",
    "Message",
    "ProtocolError",
    "RecordedMessage",
    "RemoteProtocolError",
    "Role",
    "Version",
    "messages",
    "read_recording",
    "record_line",
    "version_named",
]
