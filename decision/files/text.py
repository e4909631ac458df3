"""Whole files and the text in them: read with clear errors, written to a temporary file and renamed; JSON as text.

JSON's numbers are those that Batsim's RapidJSON reads, and errors of its decoder are reworded for people.
"""

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

import msgspec
from msgspec import Raw

from decision.model.computer import as_plain_file, is_pipe, unpacked
from decision.model.errors import ConfigError, InputError, log
from decision.model.hosts import encodable

LONGEST_LINE = 256 << 20  # bytes: a workload of more than a million jobs in one line
_CHUNK = 8 << 20  # bytes
_BLOCK = 2 << 20  # bytes


def read_bytes(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> bytes:
    """The file's content.

    A file with a line of more than `longest_line` bytes is refused before it fills the memory.

    Raises:
        InputError: if it is missing, a directory, unreadable, an archive of several files, or has such a line.
    """
    with opened(path, longest_line) as file:
        return file.read()


def read_blocks(path: str | os.PathLike[str], longest_line: int) -> Iterator[bytes]:
    """The file's content in parts of some megabytes, each but the last of whole lines; errors as `read_bytes`."""
    with opened(path, longest_line) as file:
        rest = b""
        while chunk := file.read(_BLOCK):
            lines, end, rest = (rest + chunk).rpartition(b"\n")
            if end:
                yield lines + end
        if rest:
            yield rest


@contextmanager
def opened(path: str | os.PathLike[str], longest_line: int = LONGEST_LINE) -> Iterator[BinaryIO]:
    """The file at its beginning, unpacked where it is compressed; errors as `read_bytes`."""
    try:
        with as_plain_file(path).open("rb") as file:
            log.info("reading %s", path)
            if os.fstat(file.fileno()).st_size > longest_line:
                number, length = 1, 0
                while chunk := file.read(min(_CHUNK, longest_line)):
                    first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
                    if length + (first if first >= 0 else len(chunk)) > longest_line:
                        mistake = f"longer than {longest_line:,} bytes; is it the right file?"
                        raise InputError(f"{path}, line {number}: {mistake}")
                    number += chunk.count(b"\n")
                    length = len(chunk) - last - 1 if last >= 0 else length + len(chunk)
                file.seek(0)
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


def utf8(text: str) -> bytes:
    """A text for a file; names of files whose bytes are no UTF-8 get escapes for these."""
    return text.encode(errors="backslashreplace")


def make_folder(path: Path) -> None:
    """Make a folder, and those that it is in. Raises OSError, whose `strerror` names what stands in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        for place in (path, *path.parents):
            if place.is_symlink() and not place.exists():
                reason = f"{place} is a link to {place.readlink()}, which is not there"
                raise OSError(error.errno, reason) from None
            if place.exists() and not place.is_dir():
                raise OSError(error.errno, f"{place} is not a folder") from None
        raise


def write_files(contents: Mapping[Path, Iterable[bytes]]) -> None:
    """Write all the files or none: each is written to a temporary file next to its target; all are renamed at the end.

    Missing folders are made. A symbolic link stays, and the file that it points to is written. Pipes and devices
    cannot be replaced: they are written directly.

    Raises:
        ConfigError: if a target is a folder, a folder is read-only, or the disk is full; then no file is left behind.
    """
    places: dict[Path, Path] = {}  # the target of each temporary file
    target = Path()
    try:
        for target, chunks in contents.items():
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            # the file at the end of links, or the target itself where that is not a regular file
            place = Path(os.path.realpath(target)) if _replaceable(target) else target
            part = place.with_name(f".{place.name}.{os.getpid()}.part") if _replaceable(place) else place
            make_folder(place.parent)
            places[part] = place
            with part.open("wb") as file:
                file.writelines(chunks)
        for part, target in places.items():
            part.replace(target)
            log.info("wrote %s", target)
    except OSError as error:
        raise ConfigError(
            f"{target}: cannot be written ({error.strerror}); free space or choose another folder"
        ) from None
    finally:
        with suppress(OSError):  # the folder itself is what failed, and it has been reported
            for part, place in places.items():
                if part != place:
                    part.unlink(missing_ok=True)


def _replaceable(path: Path) -> bool:
    """Whether a new file may replace it."""
    return path.is_file() or not path.exists()


def is_plain_number(text: str) -> bool:
    """Whether a text is the usual spelling of a whole number of at most 15 digits, which a float keeps."""
    return text.isascii() and text.isdigit() and len(text) < 16 and str(int(text)) == text


# What a file was that a run or a training began with.

Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]  # without control characters


class InputFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file's name, without its folder, and its content's hash."""

    name: Text
    sha256: Text


def printable(text: str) -> str:
    """A text of the user's without control characters and bytes that are no text."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "?", text)


def file_facts(path: str | os.PathLike[str]) -> InputFacts:
    """Name and hash of a file. Raises InputError."""
    try:
        source = unpacked(Path(path)) if is_pipe(Path(path)) else Path(path)  # a checkpoint is an archive, as it is
        with source.open("rb") as file:
            return InputFacts(name=printable(Path(path).name), sha256=hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None


# JSON as text: numbers as Batsim's RapidJSON reads them, and errors of the decoder, reworded for people.

DECODE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "int | str": "a whole number or text",
    "str": "text",
    "object": "an object {...}",
    "array": "an array [...]",
}
_BEGINNINGS = {
    b"\xef\xbb\xbf": "it begins with a byte order mark (BOM); save the file as UTF-8 without one",
    b"\xff\xfe": "text in UTF-16; save the file as UTF-8",
    b"\xfe\xff": "text in UTF-16; save the file as UTF-8",
    b"<": "this is XML, such as a platform; is it the right file?",
}
_NO_NUMBER = re.compile(rb"(?<!\w)-?(NaN|nan|Infinity|inf)\b")  # what Python's json.dumps writes, and what is printed
_BOUNDS = {">=": "of at least", ">": "above", "<=": "of at most"}


def json_bytes(
    value: Any, enc_hook: Callable[[Any], Any] | None = None, order: Literal["deterministic"] | None = None
) -> bytes:
    """As `msgspec.json.encode`; names of files whose bytes are no UTF-8 get escapes for these."""
    try:
        return msgspec.json.encode(value, enc_hook=enc_hook, order=order)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=enc_hook)
        return msgspec.json.encode(_escaped(plain), order=order)


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(key): _escaped(inner) for key, inner in value.items()}
    return [*map(_escaped, value)] if isinstance(value, list | tuple) else value


def compact(source: Raw | bytes) -> bytes:
    """The same JSON without whitespace; numbers keep their spelling."""
    return msgspec.json.format(bytes(source), indent=-1)


# Numbers that may be of more than 15 digits, or very small or large, in a text of which `_SHAPES` leaves the shape
_SHAPES = bytes.maketrans(b"0123456789.eE+-", b"00000000000ee--")
_UNSAFE = (b"0" * 16, b"0e0", b"0e-0")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.]{15,}(?:[eE][-+]?[0-9]+)?|-?[0-9.]+[eE][-+]?[0-9]+', re.DOTALL)
_EXACT_BITS = 2**53 - 1  # RapidJSON adds digits up to the one that exceeds it to a whole number


def as_rapidjson(data: bytes) -> bytes:
    """The same JSON with each number that RapidJSON does not round correctly written as the one that it makes of it.

    Those have more than 15 digits, or are very small or large: it takes 10.799999999999999 for 10.8.
    """
    return _replace(data, _rapidjson)


def with_short_numbers(data: bytes) -> bytes:
    """The same JSON with numbers of at most 15 digits, which RapidJSON and Python read alike."""
    return _replace(data, lambda text: float(f"{float(text):.15g}"))


def _replace(data: bytes, convert: Callable[[str], float]) -> bytes:
    def replace(match: re.Match[bytes]) -> bytes:
        text = match[0]
        if text[:1] == b'"' or not any(mark in text for mark in (b".", b"e", b"E")):
            return text
        number = convert(text.decode())
        return text if number == float(text) else repr(number).encode()

    shapes = data.translate(_SHAPES)  # ten times as fast as to search for an expression
    if not any(shape in shapes for shape in _UNSAFE):
        return data
    lines = zip(data.split(b"\n"), shapes.split(b"\n"), strict=True)  # no text of JSON goes on in another line
    return b"\n".join(
        _TOKEN.sub(replace, line) if any(shape in like for shape in _UNSAFE) else line for line, like in lines
    )


def _rapidjson(text: str) -> float:
    """What RapidJSON's ``ParseNumber`` makes of a number with a fraction or an exponent."""
    mantissa, _, exponent = text.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    value: float = int(whole)
    if value >= 2**64:
        value = 0.0
        for digit in whole:
            value = value * 10.0 + int(digit)
    digits, scale = len(whole) - 1, 0  # RapidJSON does not count the first one
    for digit in fraction:
        if isinstance(value, int) and value > _EXACT_BITS:
            value = float(value)
        if isinstance(value, float) and digits >= 17:
            continue
        value = value * 10 + int(digit)
        scale -= 1
        digits += value > 0
    return _scaled(float(value), scale + int(exponent or 0)) * (-1.0 if text[0] == "-" else 1.0)


def _scaled(value: float, power: int) -> float:
    if power < -308:
        return _scaled(value / 1e308, power + 308) if power >= -616 else 0.0
    return value * float(f"1e{power}") if power >= 0 else value / float(f"1e{-power}")


def explain_text(error: Exception, data: bytes) -> str:
    """Why `data` is not JSON, with the line that the decoder reports."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    for beginning, kind in _BEGINNINGS.items():
        if data.startswith(beginning):
            return kind
    if isinstance(error, UnicodeDecodeError):
        return "text that is not UTF-8; save the file as UTF-8"
    byte = re.search(r" \(byte (\d+)\)", str(error))
    if not byte:
        return f"{error}; is the file complete?"
    at = int(byte[1])
    line = data.count(b"\n", 0, at) + 1
    word = _NO_NUMBER.search(data, max(0, at - 2))
    if word and word.start() <= at:
        # the object's id, if it has one, and the field whose value stands there: ``job '17', field 'subtime': ``
        begin, end = data.rfind(b"{", 0, at) + 1, data.find(b"}", at)
        job = re.search(rb'"id"\s*:\s*"?([^",}\s]+)', data[begin : end if end >= 0 else len(data)])
        field = re.search(rb'"([^"]*)"\s*:[^"]*$', data[begin:at])
        places = [f"job {job[1].decode(errors='replace')!r}"] if job else []
        places += [f"field {field[1].decode(errors='replace')!r}"] if field else []
        place = f"{', '.join(places)}: " if places else ""
        return f"{place}{word[0].decode()} is not a number in JSON; write one (line {line}, byte {at})"
    return f"{str(error)[: byte.start()]} in line {line} (byte {at})"


def split_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """A validation error as what is wrong and where: ``("must be a number", "jobs[3].subtime")``."""
    text, _, where = str(error).partition(" - at `$")
    kind = re.match(r"Expected `([^`]*)`", text)
    if missing := re.fullmatch("Object missing required field `(.*)`", text):
        text = f"the field {missing[1]!r} is missing; add it"
    elif kind and kind[1] in _KINDS:
        bound = re.search(r"(of length )?(>=|>|<=) ([-\d.]+)$", text)
        text = f"must be {_KINDS[kind[1]]}"
        if bound:
            text += f" {bound[1] or ''}{_BOUNDS[bound[2]]} {float(bound[3]):g}"
    return text, where.strip(".`")


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


# A long JSON array of objects read in parts.
#
# A part ends where one object seems to end and the next to begin. The decoder shows that it is so: text that is whole
# values cuts no string and no object. All parts, and the rest of the document decoded with an empty array in their
# place, are then the whole document. Where that cannot be shown, the document has an error or is unusual, and is to be
# read as a whole.

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
        """The parts of the array, in order. Raises NotInPartsError where they cannot be told apart."""
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
        text, key = b"", None
        while not key:
            more = self._file.read(PART)
            text += more
            key = re.search(re.escape(self._key) + rb"[ \t\r\n]*:[ \t\r\n]*\[", text)
            if not more and not key:
                raise NotInPartsError
        head = text[: key.end()]
        try:
            msgspec.json.decode(head + b"]}")  # the key is of the document, and not of an object or text in it
        except DECODE_ERRORS:
            raise NotInPartsError from None
        return head, text[key.end() :]


def _whole(text: bytes, ends: Iterable[re.Match[bytes]]) -> tuple[tuple[bytes, list[Raw]], int] | None:
    """The text up to the first of the ends that leaves whole objects, these objects, and where the text goes on."""
    for end in ends:
        part = text[: end.start() + 1]
        try:
            return (part, _OBJECTS.decode(b"[" + part + b"]")), end.end(1)
        except DECODE_ERRORS:
            continue
    return None
