"""The conversation as a state machine without I/O: what may be said when, and who is to blame.

==========  =====================================  ================================================
phase       whose turn                             what follows
==========  =====================================  ================================================
OPENING     Batsim: INIT alone                     OPENED (these two only with Batsim 5)
OPENED      the decision process: HELLO alone      BEGINNING
BEGINNING   Batsim: SIMULATION_BEGINS first        ASKED
ASKED       the decision process: any commands     ANSWERED
ANSWERED    Batsim: any events                     ASKED; ENDING with SIMULATION_ENDS, its last event
ENDING      the decision process: no commands      ENDED
ENDED       nobody
BROKEN      nobody: an error was raised before
==========  =====================================  ================================================

Time does not go back: within a message events ascend and none is later than its ``now``; a reply is not
earlier than its question; a question is not earlier than the reply before it; and its events, which may have
happened while the decision process was deciding, are not earlier than the question before it. Batsim prints
times with six decimals, so that across messages a difference of `SLACK` is accepted.

What every message passes compares members of enums by names of this module: as attributes of their class they take ten
times as long.
"""

import math
from collections.abc import Callable, Mapping
from enum import Enum

from decision.model.errors import LocalProtocolError, ProtocolError, RemoteProtocolError

from .messages import Event, Hello, Init, Message, Role, SimulationBegins, SimulationEnds
from .rules import LATEST, Ledger, RefusalError, describe_event, rules_of
from .versions import NEWEST, V4, V5, Codec, CodecError, JsonCodec, Version, detect, version_named

SLACK = 1e-6  # seconds: Batsim prints times with six decimals

_NAMES = {Role.BATSIM: "Batsim", Role.DECISION: "the decision process"}


class ConversationPhase(Enum):
    """Where the conversation is, and whose turn it is there."""

    OPENING = "opening", Role.BATSIM
    OPENED = "opened", Role.DECISION
    BEGINNING = "beginning", Role.BATSIM
    ASKED = "asked", Role.DECISION
    ANSWERED = "answered", Role.BATSIM
    ENDING = "ending", Role.DECISION
    ENDED = "ended", None
    BROKEN = "broken", None

    def __init__(self, _name: str, turn: Role | None) -> None:
        self.turn = turn  # who may send


_BATSIM, _DECISION = Role
_OPENING, _OPENED, _BEGINNING, _ASKED, _ANSWERED, _ENDING, _ENDED, _BROKEN = ConversationPhase


OUT_OF_TURN: Mapping[tuple[ConversationPhase, Role], str] = {
    (ConversationPhase.OPENING, Role.DECISION): "sends the first message, which must come from Batsim",
    (ConversationPhase.OPENED, Role.BATSIM): "sends a question before its INIT is answered",
    (ConversationPhase.BEGINNING, Role.DECISION): "sends the first message, which must come from Batsim",
    (ConversationPhase.ASKED, Role.BATSIM): "sends another question before the first is answered",
    (ConversationPhase.ANSWERED, Role.DECISION): "sends a message without a question",
    (ConversationPhase.ENDING, Role.BATSIM): "sends another question before its SIMULATION_ENDS is answered",
    (ConversationPhase.ENDED, Role.BATSIM): "sends a message after the end of the simulation",
    (ConversationPhase.ENDED, Role.DECISION): "sends a message after the end of the simulation",
}


class Connection:
    """One end of a conversation, `role`; bytes in and messages out, messages in and bytes out.

    `version` is a release of Batsim such as ``"4.2.1"``. Without it the decision process takes the version
    that the first message shows, and Batsim's end speaks the newest. `schema` gives that of binary messages, should
    a decision process for Batsim 5 want them.

    After an error the connection is broken and takes nothing more.
    """

    def __init__(self, role: Role, version: str | None = None, schema: Callable[[], str | None] = lambda: None) -> None:
        self.role = Role(role)
        self._peer = self.role.peer
        self._detecting = version is None
        self._schema = schema
        self._choose(NEWEST if version is None else version_named(version))
        self._question_now = 0.0  # seconds, of the latest question
        self._reply_now = 0.0  # seconds, of the latest reply
        self._fault = ""

    @property
    def version(self) -> Version:
        """The version that is spoken; certain once SIMULATION_BEGINS has been sent."""
        return self._version

    @property
    def ending(self) -> bool:
        """Whether SIMULATION_ENDS waits for its answer."""
        return self.phase is _ENDING

    @property
    def ended(self) -> bool:
        """Whether SIMULATION_ENDS was sent and answered."""
        return self.phase is _ENDED

    def receive(self, data: bytes) -> Message:
        """The message in these bytes from the peer.

        Raises:
            RemoteProtocolError: if the peer may not send this now, or it is not a message.
            LocalProtocolError: if the connection is broken.
        """
        self._check_intact()
        try:
            self._check_turn(self._peer)
            if self._detecting and self.phase is _BEGINNING:
                self._listen(data)
            message = self._codec.decode(data)
            if self.phase is _BEGINNING and _begins(message):  # else `_enter` refuses it
                version = detect(data) if self._version.encoding == "json" else self._version
                if self._detecting:
                    self._choose(version)
                elif version is not self._version:
                    mine, theirs = self._version.name, version.name
                    raise RefusalError(f"speaks the protocol of version {theirs}, not that of {mine}")
            self._enter(self._peer, message)
        except CodecError as error:
            raise self._broken(RemoteProtocolError, f"sends bytes that cannot be read: {error}") from None
        except RefusalError as refusal:
            raise self._broken(RemoteProtocolError, str(refusal)) from None
        return message

    def send(self, message: Message) -> bytes:
        """The bytes to send to the peer for this message.

        Raises:
            LocalProtocolError: if we may not send this now, or it cannot be written.
        """
        self._check_intact()
        try:
            self._check_turn(self.role)
            self._enter(self.role, message)
            return self._codec.encode(message)
        except CodecError as error:
            raise self._broken(LocalProtocolError, f"sends a message that cannot be written: {error}") from None
        except RefusalError as refusal:
            raise self._broken(LocalProtocolError, str(refusal)) from None

    def _listen(self, data: bytes) -> None:
        """Choose the newest of the versions whose first message this may be.

        Raises:
            CodecError: if it is of a Batsim that is not supported.
        """
        from decision.protocol.batsim5.codec import says_flags_first, says_size

        if says_flags_first(data):
            raise CodecError("the handshake of early 2025 (flags first), before Batsim 5.0.0-rc0; use 5.0.0-rc2")
        heard = V5 if says_size(data) else V4
        if heard.begins_with_init:  # only a Batsim 5 does; 3.1 and 4 are told apart by SIMULATION_BEGINS
            self._detecting = False
        if heard is not self._version:
            self._choose(heard)

    def _choose(self, version: Version) -> None:
        self._version = version
        self.phase = _OPENING if version.begins_with_init else _BEGINNING
        self._codec: Codec
        if version.encoding == "json":
            self._codec = JsonCodec(version)
        else:
            from decision.protocol.batsim5.codec import Json5Codec  # which no run without a Batsim 5 needs

            self._codec = Json5Codec(version, self._schema, self._peer)
        self._ledger = Ledger(version, rules_of(version))

    def _check_intact(self) -> None:
        if self.phase is _BROKEN:
            raise LocalProtocolError(f"the connection is broken: {self._fault}")

    def _check_turn(self, sender: Role) -> None:
        if self.phase.turn is not sender:
            raise RefusalError(OUT_OF_TURN[self.phase, sender])

    def _broken(self, kind: type[ProtocolError], why: str) -> ProtocolError:
        to_blame = self.role if kind is LocalProtocolError else self._peer
        self._fault = f"{_NAMES[to_blame]} {why}"
        self.phase = _BROKEN
        return kind(f"not sent: {self._fault}" if kind is LocalProtocolError else self._fault)

    def _enter(self, sender: Role, message: Message) -> None:
        if sender is _BATSIM:
            self._enter_question(message)
        else:
            self._enter_reply(message)

    def _enter_question(self, message: Message) -> None:
        if self.phase is _OPENING:
            self._enter_greeting(_BATSIM, message, Init)
            return
        if self.phase is _BEGINNING and not _begins(message):
            raise RefusalError("does not begin with SIMULATION_BEGINS")
        self._enter_events(_BATSIM, message, not_before=self._question_now, now_not_before=self._reply_now)
        self._question_now = message.now
        self.phase = _ASKED
        if self._ledger.over:
            self.phase = _ENDING
            if not isinstance(message.events[-1], SimulationEnds):
                raise RefusalError("sends more events after SIMULATION_ENDS")

    def _enter_greeting(self, sender: Role, message: Message, kind: type[Event]) -> None:
        """INIT or HELLO, which is alone in its message."""
        if [type(event) for event in message.events] != [kind]:
            events = ", ".join(map(describe_event, message.events)) or "no event"
            raise RefusalError(f"must begin with one {kind.__struct_config__.tag} alone, and sends {events}")
        self._enter_events(sender, message, not_before=0.0, now_not_before=0.0)
        self.phase = _OPENED if sender is _BATSIM else _BEGINNING

    def _enter_reply(self, message: Message) -> None:
        if self.phase is _OPENED:
            self._enter_greeting(_DECISION, message, Hello)
            return
        if self.phase is _ENDING and message.events:
            raise RefusalError(
                f"sends {describe_event(message.events[0])} in answer to SIMULATION_ENDS, which takes no commands"
            )
        if max(LATEST, self._question_now) < message.now < math.inf:
            raise RefusalError(f"sends a message of {message.now} s, later than {LATEST:g} s")
        self._enter_events(_DECISION, message, not_before=self._question_now, now_not_before=self._question_now)
        self._reply_now = max(message.now, self._question_now)
        self.phase = _ENDED if self.phase is _ENDING else _ANSWERED

    def _enter_events(self, sender: Role, message: Message, not_before: float, now_not_before: float) -> None:
        """Check times and enter events in the ledger; both bounds are in seconds, less `SLACK`."""
        now = message.now
        if not now_not_before - SLACK <= now < math.inf:
            raise RefusalError(f"goes back in time: its message is from {now} s, after one from {now_not_before} s")
        latest = not_before - SLACK
        enter = self._ledger.enter
        for event in message.events:
            if event.timestamp > now:
                later = f"in a message of {now} s: an event cannot be later than its message"
                raise RefusalError(f"sends {describe_event(event)} {later}")
            if not latest <= event.timestamp:
                after = max(latest, not_before)
                raise RefusalError(f"goes back in time: it sends {describe_event(event)}, after {after} s")
            latest = event.timestamp
            try:
                enter(sender, event)
            except RefusalError as refusal:
                raise RefusalError(f"sends {describe_event(event)}: {refusal}") from None


def _begins(message: Message) -> bool:
    return bool(message.events) and isinstance(message.events[0], SimulationBegins)
