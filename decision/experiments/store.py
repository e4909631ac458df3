"""The results of many runs in one folder, which several processes may add to at the same time.

Each process appends lines to a file of its own, ``HOST-PROCESS-TIME.jsonl``, and never touches another's. The first
line says who writes, and each of the others is a result::

    {"key":"...","host":"...","run":"...","definition":{...},"result":{...}}

A line is written whole and at once, so a process that is killed leaves at most a torn last line, which does not count.
In memory are keys and where their lines begin: a million results take 0.3 GB.
"""

import csv
import datetime
import os
import platform
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from decision import __version__
from decision.files.outputs_read import CAMPAIGN, RUN
from decision.files.text import json_bytes, make_folder, printable, write_files
from decision.model.errors import ConfigError, InputError

Result = dict[str, Any]

_KEY = slice(8, 32)  # of a line
_BEGIN, _HOST = b'{"key":"', b'","host":"'
_HOST_AT = _KEY.stop + len(_HOST)
_OFFSET, _LENGTH = 40, 32  # bits of a place


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """The process that writes a file of results."""

    decision: str  # the package's version
    python: str
    host: str
    command: str  # as it was typed
    begin: datetime.datetime


class _Head(msgspec.Struct, frozen=True):
    """The first line of a file."""

    writer: Writer


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A line: the result of a run, what defines the run, and where it was done."""

    key: str = ""
    host: str = "an unknown host"
    run: str = ""
    version: str = ""  # of this package, in files of before
    definition: dict[str, Any]
    result: Result


class _Line(NamedTuple):
    """Where a line is: the number of its file, its first byte and its length."""

    file: int
    offset: int
    length: int


def host_name() -> str:
    """What this machine calls itself."""
    return platform.node() or "localhost"


class ResultStore:
    """The results in a folder; `add` appends to this process's own file.

    Results of before this form, one in a file, are read from the folder and from the one above it.

    Args:
        folder: of the results; it is made when the first one is added.

    Raises:
        InputError: if a file cannot be read, or a run has two results that differ.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: dict[str, int] = {}
        self._files = sorted(folder.glob("*.jsonl"))
        self._older = {path.stem: path for place in (folder.parent, folder) for path in place.glob(f"{'?' * 24}.json")}
        self._open: dict[int, BinaryIO] = {}
        self._own: BinaryIO | None = None
        for number, path in enumerate(self._files):
            try:
                with path.open("rb") as file:
                    offset = 0
                    for line in file:
                        if line.startswith(_BEGIN) and line.endswith(b"}\n"):
                            self._note(line[_KEY].decode(), _Line(number, offset, len(line)))
                        offset += len(line)
            except OSError as error:
                raise InputError(f"{path}: cannot be read ({error.strerror})") from None

    def __contains__(self, key: str) -> bool:
        return key in self._index or self._of_before(key) is not None

    def __len__(self) -> int:
        return len(self._index)

    def get(self, key: str) -> Result | None:
        """The result of a run; None if there is none. Raises InputError if the line is damaged."""
        if (place := self._index.get(key)) is not None:
            return self._decode(_unpacked(place)).result
        found = self._of_before(key)
        return None if found is None else found.result

    def add(self, key: str, definition: bytes, run: str, result: Result, host: str) -> None:
        """Append a result; once this returns, only the machine's end can lose it.

        Args:
            key: of the run, 24 characters.
            definition: of the run, in JSON.
            run: its name, for people.
            result: what has been found.
            host: where.

        Raises:
            ConfigError: if it cannot be written.
        """
        head = b"%s%s%s%s" % (_BEGIN, key.encode(), _HOST, json_bytes(host)[1:])
        values = (json_bytes(run), definition, json_bytes(result))
        line = b'%s,"run":%s,"definition":%s,"result":%s}\n' % (head, *values)
        try:
            file = self._own or self._begin()
            offset = file.tell()
            file.write(line)
        except OSError as error:
            advice = "free space or choose another folder"
            raise ConfigError(f"{self.folder}: cannot be written ({error.strerror}); {advice}") from None
        self._index[key] = _packed(_Line(len(self._files) - 1, offset, len(line)))

    def runs(self) -> Iterator[StoredRun]:
        """All results, in order of their keys. Raises InputError if a line is damaged."""
        for key in sorted(self._index):
            yield self._decode(_unpacked(self._index[key]))
        for key in sorted(self._older.keys() - self._index.keys()):
            if (found := self._of_before(key)) is not None:
                yield msgspec.structs.replace(found, key=key)

    def close(self) -> None:
        """End this process's file, and say in ``run.json`` next to it who has written what."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        if self._own is not None:
            self._own.close()
            self._own = None
            write_run_file(self.folder)

    def _begin(self) -> BinaryIO:
        """This process's file, with its first line."""
        make_folder(self.folder)
        path = self.folder / f"{host_name()}-{os.getpid()}-{time.time_ns():x}.jsonl"
        self._own = path.open("xb", buffering=0)
        writer = Writer(
            decision=__version__,
            python=platform.python_version(),
            host=host_name(),
            command=printable(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])),
            begin=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
        )
        self._own.write(json_bytes(_Head(writer)) + b"\n")
        self._files.append(path)
        return self._own

    def _note(self, key: str, line: _Line) -> None:
        before = self._index.setdefault(key, _packed(line))
        if before == _packed(line):
            return
        one, other = self._decode(_unpacked(before)), self._decode(line)
        if one.result != other.result:
            files = f"{self._files[_unpacked(before).file]} and {self._files[line.file]}"
            raise InputError(
                f"{one.run or one.key}: two results that differ, of {one.host} and of {other.host} ({files}); "
                "remove the file that is wrong, and run it again"
            )

    def _decode(self, line: _Line) -> StoredRun:
        path = self._files[line.file]
        try:
            if line.file not in self._open:
                self._open[line.file] = path.open("rb")
            content = os.pread(self._open[line.file].fileno(), line.length, line.offset)
            return msgspec.json.decode(content, type=StoredRun)
        except (OSError, msgspec.MsgspecError) as error:
            where = f"{path}, byte {line.offset:,}"
            raise InputError(f"{where}: this line is damaged ({error}); remove it, and run it again") from None

    def _of_before(self, key: str) -> StoredRun | None:
        """A result in a file of its own, as earlier versions kept them; None where that is none."""
        if (path := self._older.get(key)) is None:
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=StoredRun)
        except (OSError, msgspec.MsgspecError):
            return None


def _packed(line: _Line) -> int:
    return line.file << _OFFSET + _LENGTH | line.offset << _LENGTH | line.length


def _unpacked(place: int) -> _Line:
    offset = place >> _LENGTH & (1 << _OFFSET) - 1
    return _Line(place >> _OFFSET + _LENGTH, offset, place & (1 << _LENGTH) - 1)


# --- Who did what ---------------------------------------------------------------------------------------------------


class _Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A file of results, for people."""

    file: str
    writer: Writer | None
    runs: int
    hosts: dict[str, int]  # where how many were done


def write_run_file(folder: Path) -> None:
    """Write ``run.json`` next to the files of results: which commands, of which versions, had what done on which hosts.

    Raises:
        ConfigError: if it cannot be written.
    """
    segments = []
    for path in sorted(folder.glob("*.jsonl")):
        hosts, writer = Counter[str](), None
        with path.open("rb") as file:
            with suppress(msgspec.MsgspecError):
                writer = msgspec.json.decode(file.readline(), type=_Head).writer
            for line in file:
                if line.startswith(_BEGIN) and line.endswith(b"}\n"):
                    hosts[line[_HOST_AT : line.index(b'"', _HOST_AT)].decode()] += 1
        segments.append(_Segment(file=path.name, writer=writer, runs=hosts.total(), hosts=dict(hosts)))
    content = msgspec.json.format(json_bytes({"kind": CAMPAIGN, "results": segments}), indent=2)
    write_files({folder / RUN: [content, b"\n"]})


# All results of a campaign as one table.

_BATCH = 20_000  # rows that are held at a time

Row = dict[str, Any]


def export_runs(folder: Path, output: Path) -> int:
    """Write a row for each run whose result a folder has; a column for each value that defines runs or was found.

    Values that are no numbers, texts or truths are written as JSON. A name that both have is the definition's; the
    result's gets ``result_`` before it.

    Args:
        folder: the campaign's, or its folder ``runs``.
        output: of ``.csv``, or ``.parquet`` where pyarrow is installed.

    Returns:
        How many runs there are.

    Raises:
        InputError: if there are no results, or they are damaged.
        ConfigError: if the file cannot be written.
    """
    if output.suffix not in (".csv", ".parquet"):
        raise ConfigError(f"{output}: the name must end in .csv or .parquet", field="output")
    store = ResultStore(folder / "runs" if (folder / "runs").is_dir() else folder)
    kinds: dict[str, set[type]] = {}
    runs = 0
    for row in map(_row, store.runs()):
        runs += 1
        for name, value in row.items():
            kinds.setdefault(name, set()).add(type(value))
    if not runs:
        raise InputError(f"{folder}: there are no results; give the folder of a comparison or a reproduction")
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        write = _write_csv if output.suffix == ".csv" else _write_parquet
        output.parent.mkdir(parents=True, exist_ok=True)
        write(part, kinds, map(_row, store.runs()))
        part.replace(output)
    except OSError as error:
        raise ConfigError(f"{output}: cannot be written ({error.strerror}); choose another file") from None
    finally:
        part.unlink(missing_ok=True)
    return runs


def _row(run: StoredRun) -> Row:
    row = {"key": run.key, "host": run.host, "run": run.run, **run.definition}
    found = {f"result_{name}" if name in row else name: value for name, value in run.result.items()}
    plain = str | int | float | None
    return {name: v if isinstance(v, plain) else json_bytes(v).decode() for name, v in (row | found).items()}


def _write_csv(path: Path, kinds: dict[str, set[type]], rows: Iterator[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(kinds), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_parquet(path: Path, kinds: dict[str, set[type]], rows: Iterator[Row]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        advice = "pip install pyarrow, or write a .csv file"
        raise ConfigError(f"Parquet needs pyarrow; {advice}", field="output") from None
    types = {}
    for name, some in kinds.items():
        known = some - {type(None)}
        number = pa.float64() if float in known else pa.int64()
        types[name] = number if known and known <= {int, float} else pa.bool_() if known == {bool} else pa.string()
    schema = pa.schema(list(types.items()))
    texts = [name for name, kind in types.items() if kind == pa.string()]
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        batch: list[Row] = []
        for row in rows:
            row |= {name: str(row[name]) for name in texts if row.get(name) is not None}
            batch.append(row)
            if len(batch) == _BATCH:
                writer.write_table(pa.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema))
