"""The curves of a training run: a CSV file, which is the same for the same seed, and TensorBoard's event files.

Event files are written without TensorBoard: records of TFRecord (length, checksum, content, checksum) that hold
protocol buffers of four messages. Rejected: the package tensorboard, 20 more packages to write one float.
"""

import csv
import io
import os
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from decision.files.text import write_files

EVENT_FILES = "events.out.tfevents.*.decision"


class CsvLog:
    """Rows of numbers in a file; each is on disk before the next one is made.

    Args:
        path: the file.
        columns: their names; the first is a row's number.
        keep: rows up to this number stay, later ones are dropped: a run that goes on makes them again.
    """

    def __init__(self, path: Path, columns: Sequence[str], keep: int = 0) -> None:
        self._columns = columns
        write_files({path: [_csv(columns).encode(), *_rows_up_to(path, columns, keep)]})
        self._file = path.open("a", newline="")

    def write(self, row: Mapping[str, float]) -> None:
        """Append a row; a column that it lacks stays empty."""
        cells = [repr(row[name]) if name in row else "" for name in self._columns]
        self._file.write(_csv(cells))
        self._file.flush()

    def close(self) -> None:
        """Close the file; no more rows come."""
        self._file.close()


class EventLog:
    """TensorBoard's event file in a folder.

    Args:
        folder: gets a new file; TensorBoard reads all of a folder's as one curve.
        last_step: the last one that counts in older files; what they say of later ones is void.
    """

    def __init__(self, folder: Path, last_step: int) -> None:
        now = time.time()
        self._file = (folder / EVENT_FILES.replace("*", f"{int(now)}.{os.getpid()}")).open("ab")
        self._record(_double(1, now) + _bytes(3, b"brain.Event:2"))
        session_start = _varint(8) + _varint(1)  # SessionLog.status = START: older values from this step on are void
        self._record(_double(1, now) + _int(2, last_step + 1) + _bytes(7, session_start))

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Append values of curves at a step."""
        values = (
            _bytes(1, _bytes(1, tag.encode()) + _varint(2 << 3 | 5) + struct.pack("<f", value))
            for tag, value in scalars.items()
        )
        self._record(_double(1, time.time()) + _int(2, step) + _bytes(5, b"".join(values)))

    def close(self) -> None:
        """Close the file; no more values come."""
        self._file.close()

    def _record(self, content: bytes) -> None:
        length = struct.pack("<Q", len(content))
        self._file.write(length + _masked_crc(length) + content + _masked_crc(content))
        self._file.flush()


def _csv(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _rows_up_to(path: Path, columns: Sequence[str], last: int) -> list[bytes]:
    """Whole rows of a file, which may be of an older version with fewer columns."""
    if not path.exists() or not last:
        return []
    header, *rows = path.read_text().splitlines(keepends=True)
    names, kept = header.strip().split(","), []
    for row in rows:
        if row.endswith("\n") and int(row.split(",", 1)[0]) <= last:
            cells = dict(zip(names, row.strip().split(","), strict=False))
            kept.append(_csv([cells.get(name, "") for name in columns]).encode())
    return kept


# Fields of protocol buffers: a varint of number and kind (0: a varint, 1: 8 bytes, 2: with its length, 5: 4 bytes)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial
        table.append(byte)
    return table


_CRC = _crc_table()


def _masked_crc(content: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
