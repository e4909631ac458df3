"""Errors of the JSON decoder, reworded for people."""

import re
from typing import Any

import msgspec
from msgspec import Raw

DECODE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "int | str": "a whole number or text",
    "str": "text",
    "object": "an object {...}",
    "array": "an array [...]",
}
_BOUNDS = {">=": "of at least", ">": "above", "<=": "of at most"}


def compact(source: Raw | bytes) -> bytes:
    """The same JSON without whitespace; numbers keep their spelling."""
    return msgspec.json.format(bytes(source), indent=-1)


def explain_text(error: Exception, data: bytes) -> str:
    """Why `data` is not JSON, with the line that the decoder reports."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "text that is not UTF-8; save the file as UTF-8"
    byte = re.search(r" \(byte (\d+)\)", str(error))
    if byte:
        line = data.count(b"\n", 0, int(byte[1])) + 1
        return f"{str(error)[: byte.start()]} in line {line} (byte {byte[1]})"
    return f"{error}; is the file complete?"


def split_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """A validation error as what is wrong and where: ``("must be a number", "jobs[3].subtime")``."""
    text, _, where = str(error).partition(" - at `$")
    return _reword(text), where.strip(".`")


def explain_value(place: str, error: msgspec.ValidationError, source: Raw | bytes) -> str:
    """What is wrong with the JSON object at `place`: ``PLACE, field 'res': must be a whole number; found 1.5``."""
    text, field = split_error(error)
    return f"{place}, field {field!r}: {text}{found_text(field_value(source, field))}" if field else f"{place}: {text}"


def field_value(source: Raw | bytes, field: str) -> Any:
    """A field of a JSON object for an error message, or None where it does not exist."""
    try:
        value = msgspec.json.decode(source)
    except DECODE_ERRORS:
        return None
    return value.get(field) if isinstance(value, dict) else None


def found_text(value: Any) -> str:
    """The end of an error message: the value that was found, if it is known and short."""
    text = repr(value)
    return f"; found {text}" if value is not None and len(text) < 60 else ""


def _reword(text: str) -> str:
    missing = re.fullmatch("Object missing required field `(.*)`", text)
    if missing:
        return f"the field {missing[1]!r} is missing; add it"
    kind = re.match(r"Expected `([^`]*)`", text)
    if not kind or kind[1] not in _KINDS:
        return text
    bound = re.search(r"(of length )?(>=|>|<=) ([-\d.]+)$", text)
    if not bound:
        return f"must be {_KINDS[kind[1]]}"
    return f"must be {_KINDS[kind[1]]} {bound[1] or ''}{_BOUNDS[bound[2]]} {float(bound[3]):g}"
