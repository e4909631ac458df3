"""All results of a campaign as one table."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decision.formats.json_text import json_bytes
from decision.model.errors import ConfigError, InputError

from .store import ResultStore, StoredRun

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
    return {name: _plain(value) for name, value in (row | found).items()}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else json_bytes(value).decode()


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
    types = {name: _arrow_type(pa, some - {type(None)}) for name, some in kinds.items()}
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


def _arrow_type(pa: Any, kinds: set[type]) -> Any:
    if kinds and kinds <= {int, float}:
        return pa.float64() if float in kinds else pa.int64()
    return pa.bool_() if kinds == {bool} else pa.string()
