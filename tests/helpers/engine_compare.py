"""Both engines in one conversation, and what differs."""

import math
from typing import Any

import msgspec
import numpy as np

from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.model.errors import DecisionError
from decision.model.record import RunRecord
from decision.protocol import JsonCodec, Message
from helpers.engine_worlds import Capricious, World
from helpers.invariants import violations

LIMIT = 5000  # questions in a run


def converse(world: World) -> list[str]:
    """Give both engines the replies of one decision process; returns what differs, or is wrong, at the first point."""
    made = (world.platform, world.workloads, world.events, world.options)
    reference, embedded = ReferenceEngine(*made), EmbeddedEngine(*made)
    process, reply = Capricious(world), None
    for number in range(LIMIT):
        wanted, found = _ask(reference, reply), _ask(embedded, reply)
        differences = _differences(wanted, found)
        if isinstance(found, Message):
            differences += violations(embedded.state, embedded.facts)
        if differences:
            return [f"question {number} after {reply}: {difference}" for difference in differences]
        if wanted is None:
            return compare_records(reference.record(), embedded.record())
        if isinstance(wanted, DecisionError):
            return []
        reply = process.reply(wanted)
    raise RuntimeError("the run does not end")


def _ask(engine: Any, reply: Message | None) -> Message | DecisionError | None:
    try:
        if reply is not None:
            engine.answer(reply)
        return engine.ask()
    except DecisionError as error:
        return error


def _differences(wanted: Any, found: Any) -> list[str]:
    if isinstance(wanted, Message) and isinstance(found, Message):
        if wanted == found:
            return []
        codec = JsonCodec()
        same = _close(msgspec.json.decode(codec.encode(wanted)), msgspec.json.decode(codec.encode(found)))
    else:
        same = type(wanted) is type(found) and _words(wanted) == _words(found)
    return [] if same else [f"wanted {wanted!r}, found {found!r}"]


def _words(error: DecisionError | None) -> list[str]:
    """What an error says. Jobs that a reply registers later than at its question are not named in the same order."""
    return sorted(str(error).replace(",", "").split())


def _close(wanted: Any, found: Any) -> bool:
    """Whether two JSON values are equal, numbers up to the last of Batsim's six decimals."""
    match wanted, found:
        case dict(), dict():
            return wanted.keys() == found.keys() and all(_close(wanted[key], found[key]) for key in wanted)
        case list(), list():
            return len(wanted) == len(found) and all(map(_close, wanted, found))
        case float(), float():
            return math.isclose(wanted, found, rel_tol=1e-9, abs_tol=1.5e-6)
    return bool(wanted == found)


# --- Records -------------------------------------------------------------------------------------------------


def compare_records(wanted: RunRecord, found: RunRecord) -> list[str]:
    """The columns in which two records differ."""
    return _compare("", msgspec.structs.asdict(wanted), msgspec.structs.asdict(found))


def _compare(place: str, wanted: Any, found: Any) -> list[str]:
    if isinstance(wanted, msgspec.Struct) and isinstance(found, msgspec.Struct):
        wanted, found = msgspec.structs.asdict(wanted), msgspec.structs.asdict(found)
    if isinstance(wanted, dict):
        return [line for key in wanted for line in _compare(f"{place}.{key}", wanted[key], found[key])]
    if _equal(wanted, found):
        return []
    return [f"{place}: wanted {wanted!r}, found {found!r}"]


def _equal(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, (np.ndarray, float)):
        a, b = np.asarray(wanted), np.asarray(found)
        return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-6, equal_nan=True)
    return bool(wanted == found)
