"""The two ends of a conversation, without I/O: who answers Batsim's questions, and who asks them."""

from typing import Protocol

from decision.model.record import RunRecord
from decision.protocol import Message
from decision.state.cluster import ClusterState


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
        """Take the reply."""

    def record(self) -> RunRecord:
        """The tables of the run."""
