"""Each job's JSON as Batsim forwards it: the file's own, without what was recorded, from memory or from the file."""

import os
from collections.abc import Sequence
from typing import BinaryIO

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from decision.model.column import Column, Rows
from decision.model.errors import InputError

from .files import opened
from .json_text import as_rapidjson, compact

Stamp = tuple[int, ...]

TRACE_FIELDS = ("recorded", "request")  # not for who decides: see `decision.model.trace`


class _Sources(msgspec.Struct):
    jobs: list[dict[str, Raw]]


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_SOURCES = msgspec.json.Decoder(_Sources)
_ENCODER = msgspec.json.Encoder()


def job_sources(data: bytes, ids: Sequence[str]) -> list[bytes]:
    """Each job's JSON with its full id, as Batsim forwards it."""
    return [_source(fields, full) for fields, full in zip(_SOURCES.decode(data).jobs, ids, strict=True)]


def _source(fields: dict[str, Raw], full: str) -> bytes:
    for name in TRACE_FIELDS:
        fields.pop(name, None)
    fields["id"] = Raw(_ENCODER.encode(full))
    return compact(_ENCODER.encode(fields))


def without_trace(data: bytes) -> bytes:
    """A workload that can be read, as it is but for what was recorded of its jobs."""
    fields = _FIELDS.decode(data)
    jobs = msgspec.json.decode(fields["jobs"], type=list[dict[str, Raw]])
    for job in jobs:
        for name in TRACE_FIELDS:
            job.pop(name, None)
    return _ENCODER.encode(fields | {"jobs": jobs})


class SourcesInFile(Column[bytes]):
    """Each job's JSON as Batsim forwards it, made of the file's when it is asked for.

    Args:
        path: the file.
        stamp: of the file when it was read.
        ids: (n,) of the jobs.
        begin: (n,) byte at which each begins.
        length: (n,) bytes of each.
    """

    def __init__(
        self, path: str, stamp: Stamp, ids: Column[str], begin: NDArray[np.int64], length: NDArray[np.int32]
    ) -> None:
        self._path, self._stamp, self._ids, self._begin, self._length = path, stamp, ids, begin, length

    def __len__(self) -> int:
        return len(self._begin)

    def item(self, row: int) -> bytes:
        """The JSON of a row. Raises InputError if the file has changed."""
        return self.take(slice(row, row + 1)).made()[0]

    def made(self) -> list[bytes]:
        """All of them. Raises InputError if the file has changed."""
        with opened(self._path) as file:
            if stamp_of(file) != self._stamp:
                raise InputError(f"{self._path}: was changed while it was in use; start again")
            texts = [
                self._read(file, *place) for place in zip(self._begin.tolist(), self._length.tolist(), strict=True)
            ]
        return [_source(_FIELDS.decode(as_rapidjson(t)), full) for t, full in zip(texts, self._ids.made(), strict=True)]

    def take(self, rows: Rows) -> "SourcesInFile":
        """Those of these rows."""
        places = self._begin[rows], self._length[rows]
        return SourcesInFile(self._path, self._stamp, self._ids.take(rows), *places)

    def _read(self, file: BinaryIO, begin: int, length: int) -> bytes:
        file.seek(begin)
        return file.read(length)


def stamp_of(file: BinaryIO) -> Stamp:
    """What shows that a file has not changed."""
    stat = os.fstat(file.fileno())
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
