"""The process in which a library decides: ``python -m decision.batsim.library_child LIBRARY IN OUT``.

It loads the library, says so with the schema of binary messages where that is found, and then hands each message that
comes through the pipe IN to the library, and the library's answer to the pipe OUT.
"""

import ctypes
import os
import re
import struct
import sys
from pathlib import Path

FRAME = struct.Struct("<BI")  # kind of what comes, and its size
IS_LOADED, IS_MISSING, IS_ANSWER, IS_ERROR = range(4)
_SIZE = struct.Struct("<I")
_LARGEST = 2**31 - 1  # bytes of a message, as FlatBuffers has it
_SCHEMA = re.compile(rb"namespace\s+batprotocol[^\0]*?root_type\s+\w+\s*;")
_FUNCTIONS = ("batsim_edc_init", "batsim_edc_take_decisions", "batsim_edc_deinit")
_Bytes = ctypes.POINTER(ctypes.c_uint8)


def main(path: str, source: int, target: int) -> None:
    """Serve until the pipe `source` ends."""

    def say(kind: int, content: bytes) -> None:
        view = memoryview(FRAME.pack(kind, len(content)) + content)
        while view:
            view = view[os.write(target, view) :]

    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        say(IS_MISSING, f"cannot be loaded ({error}); give a decision component of Batsim 5".encode())
        return
    for name in _FUNCTIONS:
        if not hasattr(library, name):
            say(IS_MISSING, f"it has no function {name}; give a decision component of Batsim 5".encode())
            return
        getattr(library, name).restype = ctypes.c_uint8
    say(IS_LOADED, _schema())
    first = True
    while (head := _read(source, _SIZE.size)) is not None:
        data = _read(source, _SIZE.unpack(head)[0])
        if data is None:
            break
        try:
            if first:  # the flags and the hello, as a process would send them, for the text of a first message
                first, flags = False, ctypes.c_uint32(0)
                hello = _called(library.batsim_edc_init, data[_SIZE.size :], ctypes.byref(flags))
                say(IS_ANSWER, _SIZE.pack(flags.value) + hello)
            else:
                say(IS_ANSWER, _called(library.batsim_edc_take_decisions, data))
        except RuntimeError as error:
            say(IS_ERROR, str(error).encode())
    library.batsim_edc_deinit()


def _read(source: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        more = os.read(source, size - len(data))
        if not more:
            return None
        data += more
    return bytes(data)


def _called(function: "ctypes._NamedFuncPointer", data: bytes, *more: object) -> bytes:
    answer, size = _Bytes(), ctypes.c_uint32(0)
    padded = data + b"\0"  # a text ends so
    code = function(padded, ctypes.c_uint32(len(data)), *more, ctypes.byref(answer), ctypes.byref(size))
    if code:
        raise RuntimeError(f"{function.__name__} returns {code}")
    if size.value > _LARGEST:
        raise RuntimeError(f"{function.__name__} answers {size.value:,} bytes; {_LARGEST:,} is the most")
    return ctypes.string_at(answer, size.value) if answer else b""


def _schema() -> bytes:
    """The schema in what this process has loaded: the library, or one that it uses; empty where there is none."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.is_file() else []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if "/" in line)
    for path in reversed(paths):
        try:
            data = Path(path).read_bytes()
        except OSError:
            continue
        schema = _SCHEMA.search(data)
        if schema:
            return schema[0]
    return b""


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
