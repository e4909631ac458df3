"""A conversation: who takes part, how it is answered until the simulation ends, recorded, and decided again."""

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from decision.model.errors import ConfigError, InputError
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.record import RunRecord
from decision.protocol import Message, Role
from decision.protocol.batsim5.codec import says_size
from decision.protocol.recording import RecordedMessage, read_recording, record_line
from decision.state.cluster import ClusterState

from .transport import Transport


class Responder(Protocol):
    """A decision process without I/O: one of Batsim's messages in, the reply out."""

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""

    @property
    def now(self) -> float:
        """Simulated time of the last message, seconds."""

    @property
    def state(self) -> ClusterState | None:
        """What it knows about the cluster, to be read only; None where it does not know or share it."""

    def get_ready(self) -> None:
        """Load what the first reply needs, while the other end starts."""

    def handle(self, question: bytes) -> bytes:
        """Decide.

        Raises:
            RemoteProtocolError: if the message is not a valid question.
            PolicyError: if the policy decides something impossible.
        """


class Simulator(Protocol):
    """Batsim's side of the conversation, without I/O."""

    def ask(self) -> Message | None:
        """The next question; None once the end was answered."""

    def answer(self, message: Message) -> None:
        """Take the reply to the question that was asked last."""

    def record(self) -> RunRecord:
        """The tables of the run."""


_COLLECT_AFTER = 200_000  # objects made and not freed, between two garbage collections of a conversation


class Conversation(msgspec.Struct):
    """How many messages a conversation had, and how long it took."""

    messages: int = 0  # questions that were answered
    deciding: float = 0.0  # wall-clock seconds from receiving a question to having its reply
    total: float = 0.0  # wall-clock seconds in all, waiting included


class Recorder:
    """A file of JSON lines that is complete and valid after each exchange; without a path it does nothing.

    Raises:
        ConfigError: if the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            self._file = path.open("wb", buffering=0) if path else None
        except OSError as error:
            raise self._failure(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def exchange(self, question: bytes, reply: bytes) -> None:
        """Record a question of Batsim and its reply."""
        if self._file is not None:
            self._write(self._file, f"{record_line(Role.BATSIM, question)}\n{record_line(Role.DECISION, reply)}\n")

    def unanswered(self, question: bytes) -> None:
        """Record a question that got no reply, unless it is none."""
        if self._file is None:
            return
        try:
            msgspec.json.decode(question.rstrip(b"\0"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not says_size(question):
                return
        self._write(self._file, record_line(Role.BATSIM, question) + "\n")

    def _write(self, file: FileIO, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> ConfigError:
        return ConfigError(f"recording {self._path}: cannot be written ({error.strerror}); choose another file")


def answer_all(
    agent: Responder, transport: Transport, recorder: Recorder, watch: Callable[[], None] | None = None
) -> Conversation:
    """Answer what comes through `transport` until the simulation ends."""
    conversation = Conversation()
    began = time.perf_counter()
    agent.get_ready()
    # messages make no cycles, so that looking for some is wasted; policies in Python may make a few
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        while not agent.finished:
            question = transport.receive(watch)
            received = time.perf_counter()
            try:
                reply = agent.handle(question)
            except BaseException:
                recorder.unanswered(question)
                raise
            conversation.deciding += time.perf_counter() - received
            conversation.messages += 1
            transport.send(reply)
            recorder.exchange(question, reply)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
    conversation.total = time.perf_counter() - began
    return conversation


# --- A recorded conversation, decided again ---

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
    try:
        lines = session.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{session}: cannot be read ({error})") from None
    entries = list(enumerate(read_recording(lines, str(session)), start=1))
    if len(entries) < 2:
        raise InputError(f"{session}: it has no question with its reply")
    for (line, question), (_, reply) in zip(entries[::2], entries[1::2], strict=False):
        if (question.sender, reply.sender) != (Role.BATSIM, Role.DECISION):
            raise InputError(f"{session}, message {line}: questions and replies do not alternate; is a line missing?")
        yield line, question, reply


def _decoded(reply: bytes) -> list[dict[str, Any]]:
    """The events of a reply, as JSON."""
    events: list[dict[str, Any]] = msgspec.json.decode(reply.rstrip(b"\0"))["events"]
    return events


def _parts(event: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An event's type and what it says, in either wire form."""
    return (event["type"], event["data"]) if "type" in event else (event["event_type"], event["event"])


def _events(reply: bytes) -> list[str]:
    """The events of a reply, written in one way each, without the times at which they were decided."""
    parts = (_parts(event) for event in _decoded(reply))
    normal = [{"type": kind, "data": _normal_data(data)} for kind, data in parts]
    return [msgspec.json.encode(event, order="sorted").decode() for event in normal]


def _normal_data(data: Any) -> Any:
    """What an event says, with host sets in one spelling."""
    if not isinstance(data, dict):
        return data
    normal = {name: _normal_data(value) for name, value in data.items()}
    for name in _HOSTS:
        if isinstance(normal.get(name), str):
            with suppress(ConfigError):  # not a host set: it differs from any valid one
                normal[name] = format_hosts(parse_hosts(normal[name]))
    return normal


def _without(events: list[str], others: list[str]) -> list[str]:
    return list((Counter(events) - Counter(others)).elements())
