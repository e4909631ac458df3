"""The text of a FlatBuffers schema, as far as Batsim 5's has use of the language: tables, unions and enumerations."""

import re
from collections.abc import Iterator, Mapping

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
    unions = {name: tuple(_members(body)) for (kind, name), (_, body) in blocks.items() if kind == "union"}
    enums = {name: _values(body) for (kind, name), (_, body) in blocks.items() if kind == "enum"}
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


def _members(body: str) -> Iterator[str]:
    for member in body.split(","):
        if member.strip():
            yield _last(member.rpartition(":")[2].strip())


def _values(body: str) -> dict[str, int]:
    values: dict[str, int] = {}
    number = 0
    for value in body.split(","):
        name, _, given = value.partition("=")
        if name.strip():
            number = int(given, 0) if given.strip() else number
            values[name.strip()] = number
            number += 1
    return values


def _fields(body: str, unions: Mapping[str, tuple[str, ...]]) -> Iterator[SchemaField]:
    slot = 0
    for match in _FIELD.finditer(body):
        kind, given = _last(match[3]), _ID.search(match[5] or "")
        slot = int(given[1]) if given else slot + (kind in unions)  # a union's type is in the slot before
        yield SchemaField(match[1], kind, bool(match[2]), slot)
        slot += 1
