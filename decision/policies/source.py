"""What a package gives that has policies of its own, and what answers Batsim's messages itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .catalogue import OptionLine, PolicyLine

Loader = Callable[[str, Mapping[str, Any]], Any]


class PolicySource(NamedTuple):
    """A package's policies."""

    names: Sequence[str]  # of policies, or patterns of names, like ``*.ckpt``
    load: Loader  # makes a policy from its name and options
    lines: Callable[[], Iterable[PolicyLine]]  # of the catalogue
    answers_messages: bool = False  # what `load` makes is a `MessageAgent`
    options: Callable[[str], Iterable[OptionLine]] = lambda _: ()  # of the policy of a name


class MessageAgent(Protocol):
    """A scheduler that answers Batsim's messages itself, one run long."""

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""

    @property
    def now(self) -> float:
        """Simulated time of the last message, seconds."""

    @property
    def state(self) -> None:
        """Nothing: it keeps its own books."""

    @property
    def window_gap(self) -> float:
        """nan: nothing is known of its windows."""

    def predictions(self, ids: Iterable[str]) -> None:
        """Nothing is known of what it expects."""

    def get_ready(self) -> None:
        """Load what the first reply needs, while Batsim starts."""

    def handle(self, question: bytes) -> bytes:
        """The reply to one of Batsim's messages."""
