"""Batsim 5's messages in binary (FlatBuffers), read into the objects of its JSON and written from them.

The numbering is that of a schema's text, which programs that speak the protocol contain. As much of FlatBuffers as that
needs (https://flatbuffers.dev/internals): tables, whose fields are found by a list of offsets; strings, vectors, and
unions, which are a number and a table. Offsets lead to higher addresses, so that what a table refers to is written
after it, and the offset then. Reading goes by one function for each field, made once; code that FlatBuffers generates
for Python takes a hundred times as long.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

# Scalars: how the standard library's `struct` names them, and their bytes
SCALARS: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("bool",), ("?", 1)),
    **dict.fromkeys(("byte", "int8"), ("b", 1)),
    **dict.fromkeys(("ubyte", "uint8"), ("B", 1)),
    **dict.fromkeys(("short", "int16"), ("h", 2)),
    **dict.fromkeys(("ushort", "uint16"), ("H", 2)),
    **dict.fromkeys(("int", "int32"), ("i", 4)),
    **dict.fromkeys(("uint", "uint32"), ("I", 4)),
    **dict.fromkeys(("long", "int64"), ("q", 8)),
    **dict.fromkeys(("ulong", "uint64"), ("Q", 8)),
    **dict.fromkeys(("float", "float32"), ("f", 4)),
    **dict.fromkeys(("double", "float64"), ("d", 8)),
}
# As much of the schema language as Batsim 5's schema uses: tables, unions and enumerations
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BLOCK = re.compile(r"\b(table|union|enum)\s+(\w+)\s*(?::\s*(\w+))?\s*(?:\([^)]*\))?\s*\{([^}]*)\}")
_FIELD = re.compile(r"(\w+)\s*:\s*(\[?)\s*([\w.]+)\s*\]?\s*(?:=\s*([^;(]+?))?\s*(?:\(([^)]*)\))?\s*;")
_ROOT = re.compile(r"\broot_type\s+([\w.]+)\s*;")
_ID = re.compile(r"\bid\s*:\s*(\d+)")


class SchemaField(Struct, frozen=True):
    """A field of a table: its type, whether it is a vector of that, and its place in the table's list of offsets."""

    name: str
    type: str
    several: bool
    slot: int


class Schema(Struct, frozen=True):
    """What a schema's text says."""

    tables: Mapping[str, tuple[SchemaField, ...]]
    unions: Mapping[str, tuple[str, ...]]  # the tables that each may be; the number of the first is 1
    enums: Mapping[str, Mapping[str, int]]
    sizes: Mapping[str, str]  # the scalar of each enumeration
    root: str


def parse_schema(text: str) -> Schema:
    """Read a schema.

    Raises:
        ValueError: if it is none, or names a type that it does not have.
    """
    plain = _COMMENT.sub("", text)
    blocks = {(match[1], match[2]): (match[3], match[4]) for match in _BLOCK.finditer(plain)}
    root = _ROOT.search(plain)
    if root is None or ("table", _last(root[1])) not in blocks:
        raise ValueError("it is not a schema: it has no root_type that is one of its tables")
    unions: dict[str, tuple[str, ...]] = {}
    enums: dict[str, dict[str, int]] = {}
    for (kind, name), (_, body) in blocks.items():
        if kind == "union":
            members = (member.rpartition(":")[2].strip() for member in body.split(",") if member.strip())
            unions[name] = tuple(map(_last, members))
        elif kind == "enum":
            enums[name], number = {}, 0
            for value in body.split(","):
                word, _, given = (part.strip() for part in value.partition("="))
                if word:
                    number = int(given, 0) if given else number
                    enums[name][word] = number
                    number += 1
    sizes = {name: size or "int" for (kind, name), (size, _) in blocks.items() if kind == "enum"}
    tables = {name: tuple(_fields(body, unions)) for (kind, name), (_, body) in blocks.items() if kind == "table"}
    known = {*SCALARS, "string", *tables, *unions, *enums}
    for table, fields in tables.items():
        for field in fields:
            if field.type not in known:
                raise ValueError(f"{table}.{field.name}: it has no type {field.type!r}")
    return Schema(tables, unions, enums, sizes, _last(root[1]))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _fields(body: str, unions: Mapping[str, tuple[str, ...]]) -> Iterator[SchemaField]:
    slot = 0
    for match in _FIELD.finditer(body):
        kind, given = _last(match[3]), _ID.search(match[5] or "")
        slot = int(given[1]) if given else slot + (kind in unions)  # a union's type is in the slot before
        yield SchemaField(match[1], kind, bool(match[2]), slot)
        slot += 1


_U32, _I32, _U16 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")
_DEEPEST = 64  # tables within tables; more are no message
_Reader = Callable[[bytes, int, int], Any]  # of bytes, at a place, in a table of this depth


class BinaryForm:
    """Reads and writes messages by the text of a schema.

    Raises:
        ValueError: if the text is not a schema of Batsim 5's messages.
    """

    def __init__(self, text: str) -> None:
        self._schema = schema = parse_schema(text)
        for table in ("Message", "EventAndTimestamp"):
            if table not in schema.tables:
                raise ValueError(f"it is not a schema of Batsim's messages: it has no table {table}")
        self._enum_names = {name: {n: word for word, n in values.items()} for name, values in schema.enums.items()}
        self._readers: dict[str, list[tuple[str, int, _Reader, str]]] = {name: [] for name in schema.tables}
        for name, fields in schema.tables.items():
            for field in fields:
                union = field.type if field.type in schema.unions else ""
                self._readers[name].append((field.name, 4 + 2 * field.slot, self._reader(field), union))
        self._structs = {name: struct.Struct("<" + code) for name, (code, _) in SCALARS.items()}

    # --- Reading --------------------------------------------------------------------------------------------

    def read(self, data: bytes) -> Any:
        """The object of a message.

        Raises:
            ValueError, struct.error, IndexError: if it is none.
        """
        return self._table(self._schema.root, data, _U32.unpack_from(data, 0)[0], 0)

    def _table(self, name: str, data: bytes, at: int, depth: int) -> dict[str, Any]:
        if depth > _DEEPEST or not 0 <= at <= len(data) - 4:
            raise ValueError(f"table {name} is not within the message")
        offsets = at - _I32.unpack_from(data, at)[0]
        if not 0 <= offsets <= len(data) - 4:
            raise ValueError(f"the offsets of table {name} are not within the message")
        size = _U16.unpack_from(data, offsets)[0]
        contents: dict[str, Any] = {}
        for field, slot, reader, union in self._readers[name]:
            if slot >= size or not (offset := _U16.unpack_from(data, offsets + slot)[0]):
                continue
            if not union:
                contents[field] = reader(data, at + offset, depth)
                continue
            kind = _U16.unpack_from(data, offsets + slot - 2)[0]
            number, members = data[at + kind] if kind else 0, self._schema.unions[union]
            if not 0 < number <= len(members):
                raise ValueError(f"{field} is of kind {number}, and there are {len(members)}")
            table = contents[f"{field}_type"] = members[number - 1]
            place = at + offset
            contents[field] = self._table(table, data, place + _U32.unpack_from(data, place)[0], depth + 1)
        return contents

    def _reader(self, field: SchemaField) -> _Reader:
        if not field.several:
            return self._single(field.type)
        if field.type in SCALARS:
            code, size = SCALARS[field.type]

            def scalars(data: bytes, at: int, depth: int) -> list[Any]:
                first, count = _vector(data, at, size)
                return list(struct.unpack_from(f"<{count}{code}", data, first))

            return scalars
        single = self._single(field.type)

        def several(data: bytes, at: int, depth: int) -> list[Any]:
            first, count = _vector(data, at, 4)
            return [single(data, first + 4 * i, depth) for i in range(count)]

        return several

    def _single(self, kind: str) -> _Reader:
        if kind in self._schema.tables:
            return lambda data, at, depth: self._table(kind, data, at + _U32.unpack_from(data, at)[0], depth + 1)
        if kind == "string":
            return _string
        if kind in self._schema.enums:
            unpack = struct.Struct("<" + SCALARS[self._schema.sizes[kind]][0]).unpack_from
            names = self._enum_names[kind]
            return lambda data, at, depth: names.get(unpack(data, at)[0], "")
        unpack = struct.Struct("<" + SCALARS[kind][0]).unpack_from if kind in SCALARS else _U32.unpack_from
        return lambda data, at, depth: unpack(data, at)[0]

    # --- Writing --------------------------------------------------------------------------------------------

    def write(self, message: dict[str, Any]) -> bytes:
        """The bytes of a message's object.

        Raises:
            ValueError, struct.error: if the schema cannot say it.
        """
        out = bytearray(8)
        self._put_table(out, 0, self._schema.root, message)
        return bytes(out)

    def _put_table(self, out: bytearray, reference: int, name: str, contents: dict[str, Any]) -> None:
        """Write a table, and its place where `reference` is."""
        fields = self._schema.tables[name]
        inline: list[tuple[int, int, struct.Struct, Any]] = []  # slot, size, form and value of what stands in it
        later: list[tuple[int, SchemaField, Any]] = []  # slot, field and value of what it refers to
        known = 0
        for field in fields:
            value = contents.get(field.name)
            known += field.name in contents
            if value is None:
                continue
            if field.type in self._schema.unions:
                kind = contents.get(f"{field.name}_type")
                known += 1
                number = self._schema.unions[field.type].index(str(kind)) + 1
                inline.append((field.slot - 1, 1, self._structs["ubyte"], number))
            elif not field.several and field.type not in ("string", *self._schema.tables):
                kind = field.type
                if kind in self._schema.enums:
                    values = self._schema.enums[kind]
                    if value not in values:
                        raise ValueError(f"the schema's {kind} has no {value!r}")
                    value, kind = values[value], self._schema.sizes[kind]
                inline.append((field.slot, SCALARS[kind][1], self._structs[kind], value))
                continue
            inline.append((field.slot, 4, _U32, 0))
            later.append((field.slot, field, value))
        if known < len(contents):
            names = {n for field in fields for n in (field.name, f"{field.name}_type")}
            raise ValueError(f"the schema's {name} has no {min(contents.keys() - names)}")
        places = self._put_inline(out, reference, inline)
        for slot, field, value in later:
            self._put_later(out, places[slot], field, value, contents)

    @staticmethod
    def _put_inline(
        out: bytearray, reference: int, inline: list[tuple[int, int, struct.Struct, Any]]
    ) -> dict[int, int]:
        """Write a table's own part; where the value of each slot stands."""
        slots = max((slot for slot, *_ in inline), default=-1) + 1
        out.extend(bytes(-len(out) % 2))
        offsets = len(out)
        out.extend(bytes(4 + 2 * slots))
        out.extend(bytes((-len(out) - 4) % 8 + 4))  # what follows the table's first four bytes is aligned
        table = len(out) - 4
        places: dict[int, int] = {}
        for slot, _, form, value in sorted(inline, key=lambda entry: -entry[1]):
            places[slot] = len(out)
            out.extend(form.pack(value))
            _U16.pack_into(out, offsets + 4 + 2 * slot, places[slot] - table)
        _U16.pack_into(out, offsets, 4 + 2 * slots)
        _U16.pack_into(out, offsets + 2, len(out) - table)
        _I32.pack_into(out, table, table - offsets)
        _U32.pack_into(out, reference, table - reference)
        return places

    def _put_later(
        self, out: bytearray, reference: int, field: SchemaField, value: Any, contents: dict[str, Any]
    ) -> None:
        """Write what a table refers to."""
        if field.type in self._schema.unions:
            self._put_table(out, reference, str(contents[f"{field.name}_type"]), value)
        elif not field.several and field.type == "string":
            _put_string(out, reference, value)
        elif not field.several:
            self._put_table(out, reference, field.type, value)
        elif field.type in SCALARS:
            code, size = SCALARS[field.type]
            _begin_vector(out, reference, len(value), size)
            out.extend(struct.pack(f"<{len(value)}{code}", *value))
        else:
            _begin_vector(out, reference, len(value), 4)
            first = len(out)
            out.extend(bytes(4 * len(value)))
            for i, entry in enumerate(value):
                if field.type == "string":
                    _put_string(out, first + 4 * i, entry)
                else:
                    self._put_table(out, first + 4 * i, field.type, entry)


def _vector(data: bytes, at: int, size: int) -> tuple[int, int]:
    """Where a vector's entries of `size` bytes begin, and how many there are."""
    begin = at + _U32.unpack_from(data, at)[0]
    count = _U32.unpack_from(data, begin)[0]
    if begin + 4 + count * size > len(data):
        raise ValueError(f"a vector of {count} is longer than the message")
    return begin + 4, count


def _string(data: bytes, at: int, depth: int) -> str:
    first, length = _vector(data, at, 1)
    return data[first : first + length].decode()


def _begin_vector(out: bytearray, reference: int, count: int, size: int) -> None:
    """Write a vector's length; its entries, which follow, are aligned."""
    out.extend(bytes((-len(out) - 4) % max(size, 4)))
    _U32.pack_into(out, reference, len(out) - reference)
    out.extend(_U32.pack(count))


def _put_string(out: bytearray, reference: int, text: str) -> None:
    data = text.encode()
    _begin_vector(out, reference, len(data), 1)
    out.extend(data)
    out.append(0)
