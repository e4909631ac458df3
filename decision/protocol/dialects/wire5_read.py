"""A message of Batsim 5 as it is on the wire, with the names that Batsim's schema gives its fields."""

from msgspec import Struct

from .wire5_batsim import BatsimWire
from .wire5_decision import DecisionWire


class WireMessage(Struct, frozen=True):
    """A message of either end."""

    events: tuple[BatsimWire | DecisionWire, ...]
    now: float = 0.0


class WireReply(WireMessage, frozen=True, forbid_unknown_fields=True):
    """A message of the decision process."""
