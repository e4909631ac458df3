"""A long JSON array of objects read in parts.

A part ends where one object seems to end and the next to begin. The decoder shows that it is so: text that is whole
values cuts no string and no object. All parts, and the rest of the document decoded with an empty array in their place,
are then the whole document. Where that cannot be shown, the document has an error or is unusual, and is to be read as a
whole.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Raw

from .json_text import DECODE_ERRORS

PART = 4 << 20  # bytes
_WINDOW = 1 << 16  # bytes at the end of a part in which its last object should end
_TRIES = 8  # places where an object may end
_OBJECTS = msgspec.json.Decoder(list[Raw])
_NEXT = re.compile(rb"\}([ \t\r\n]*,[ \t\r\n]*)\{")
_LAST = re.compile(rb"\}([ \t\r\n]*)\]")


class NotInPartsError(Exception):
    """The document cannot be read in parts."""


class ArrayPart(NamedTuple):
    """Some of the array's objects."""

    begin: int  # byte of the document at which the text begins
    text: bytes  # the objects, with commas between them
    objects: list[Raw]


class ArrayInParts:
    """The array of objects that is `key` of a JSON object.

    Args:
        file: the document, at its beginning.
        key: of the document.
    """

    def __init__(self, file: BinaryIO, key: str) -> None:
        self._file = file
        self._key = f'"{key}"'.encode()
        self.rest = b""  # the document with an empty array; once all parts have been read

    def __iter__(self) -> Iterator[ArrayPart]:
        """The parts. Raises NotInPartsError."""
        head, text = self._head()
        begin, more = len(head), b" "
        while more:
            more = self._file.read(PART)
            text += more
            if found := _whole(text, islice(_LAST.finditer(text), _TRIES)):
                self.rest = head + text[found[1] :] + self._file.read()
                if self.rest.count(self._key) > 1:
                    raise NotInPartsError
                yield ArrayPart(begin, *found[0])
                return
            ends = list(_NEXT.finditer(text, max(0, len(text) - _WINDOW)))
            found = _whole(text, ends[: -_TRIES - 1 : -1])
            if not found:
                raise NotInPartsError
            yield ArrayPart(begin, *found[0])
            begin, text = begin + found[1], text[found[1] :]
        raise NotInPartsError

    def _head(self) -> tuple[bytes, bytes]:
        """The document up to the array's bracket, and what was read of it after that."""
        text, found = b"", None
        while not found:
            more = self._file.read(PART)
            text += more
            found = re.search(re.escape(self._key) + rb"[ \t\r\n]*:[ \t\r\n]*\[", text)
            if not more and not found:
                raise NotInPartsError
        head = text[: found.end()]
        try:
            msgspec.json.decode(head + b"]}")  # the key is of the document, and not of an object or text in it
        except DECODE_ERRORS:
            raise NotInPartsError from None
        return head, text[found.end() :]


def _whole(text: bytes, ends: Iterable[re.Match[bytes]]) -> tuple[tuple[bytes, list[Raw]], int] | None:
    """The text up to the first of the ends that leaves whole objects, these objects, and where the text goes on."""
    for end in ends:
        part = text[: end.start() + 1]
        try:
            return (part, _OBJECTS.decode(b"[" + part + b"]")), end.end(1)
        except DECODE_ERRORS:
            continue
    return None
