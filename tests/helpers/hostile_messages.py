"""Messages that have gone wrong: mutants of real ones, as JSON, as bytes and as ZeroMQ's frames."""

import json
import random
from typing import Any

JOB_IDS = ["w0!0", "w0!1", "w1!0", "w0!dyn", "w0!", "!", "w9!9", "0", 'w0!a"b', "w0!" + "x" * 3000]
HOST_SETS = [
    "0",
    "0-1",
    "0 1",
    "0-99999999999",
    "0-0 " * 2000,
    "1-0",
    "-1",
    "\u00b2",
    "9" * 5000,
    "",
    " ",
    "0-1-2",
    "a",
]
NUMBERS = [0, 1, -1, 0.5, -0.0, 1e-320, 1e308, -1e308, 2**31 - 1, 2**31, 2**63, -(2**63), 10**30, 5, 1e6]
TEXTS = [
    "",
    "\x00",
    "\n",
    "COMPLETED_FAILED",
    "sleeping",
    "1",
    "-1",
    "99",
    "1e9",
    "\U0001f600",
    "registration_finished",
]
TYPES = [
    "event_machine_unavailable",
    "event_machine_available",
    "no_more_static_job_to_submit",
    "continue_registration",
]
DEEP = "[" * 3000 + "]" * 3000
PLACEHOLDER = '"\u2020"'  # where the deep one goes


def mutant(message: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """One of a message's mutants; `others` are messages from which parts may come."""
    if rng.random() < 0.25:
        return mutate_bytes(message, rng, others)
    value = json.loads(message)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        value = _mutate_value(value, rng, others)
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).replace(PLACEHOLDER, DEEP).encode(errors="replace")


def frames(message: bytes, rng: random.Random) -> list[bytes]:
    """A message as frames that ZeroMQ should not have sent, for a socket that makes its own envelopes."""
    return rng.choice([[message], [b"x", message], [], [b"", message, b""], [b"", b"", message], [b"x", b"", message]])


def mutate_bytes(message: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Bytes of which some are missing, others, doubled or from elsewhere."""
    data = bytearray(message)
    at, until = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    match rng.randrange(6):
        case 0:
            return bytes(data[:at])
        case 1:
            return bytes(data[:at] + data[until:])
        case 2:
            other = rng.choice(others)
            return bytes(data[:at]) + other[rng.randrange(len(other) + 1) :]
        case 3:
            return bytes(data[:at]) + rng.randbytes(rng.randrange(1, 9)) + bytes(data[at:])
        case 4:
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            return bytes(data)
    return rng.randbytes(rng.randrange(200))


def _mutate_value(value: Any, rng: random.Random, others: list[bytes]) -> Any:
    """The value with one place removed, doubled, moved or replaced."""
    path = rng.choice(list(_paths(value)))
    if not path:
        return _hostile(value, rng, others) if rng.random() < 0.1 else value
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    match rng.randrange(8):
        case 0:
            del parent[path[-1]]
        case 1 if isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), parent[path[-1]])
        case 2 if isinstance(parent, list):
            rng.shuffle(parent)
        case 3 if isinstance(parent, dict):
            parent[rng.choice(TEXTS)] = parent.pop(path[-1])
        case 4 if isinstance(parent[path[-1]], int | float):
            parent[path[-1]] += rng.choice([1e-7, -1e-7, 1, -1, 1000])
        case _:
            parent[path[-1]] = _hostile(parent[path[-1]], rng, others)
    return value


def _hostile(old: Any, rng: random.Random, others: list[bytes]) -> Any:
    if rng.random() < 0.7 and isinstance(old, str):
        return rng.choice(rng.choice([JOB_IDS, HOST_SETS, TEXTS, TYPES]))
    if rng.random() < 0.7 and isinstance(old, int | float):
        return rng.choice(NUMBERS)
    if rng.random() < 0.3:
        other = json.loads(rng.choice(others))
        for key in rng.choice(list(_paths(other))):
            other = other[key]
        return other
    return rng.choice([None, True, [], {}, "\u2020", rng.choice(NUMBERS), rng.choice(HOST_SETS), [old] * 3, {"a": old}])


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The places in a JSON value, as sequences of keys."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _paths(child, (*path, key))
