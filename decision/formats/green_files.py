"""What a run's jobs were worth, and what power it had: ``worth.csv`` and ``supply.csv`` beside Batsim's output files.

Batsim writes neither: both are copied from the workloads and the events, so that a folder can be analysed alone.
"""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from decision.model.errors import InputError
from decision.model.record import Floats, SupplyTable, WorthTable

from .files import read_bytes, write_files

_WORTH, _SUPPLY = "worth.csv", "supply.csv"


def write_green_files(folder: Path, worth: WorthTable | None, supply: SupplyTable | None) -> list[Path]:
    """Write what there is; what an older run has left is removed.

    Raises:
        ConfigError: if a file cannot be written.
    """
    contents = {}
    if worth is not None:
        rows = zip(worth.id, worth.value.tolist(), worth.deadline.tolist(), strict=True)
        contents[folder / _WORTH] = _lines("job_id,value,deadline", rows)
    if supply is not None:
        contents[folder / _SUPPLY] = _lines("time,hosts", zip(supply.time.tolist(), supply.hosts.tolist(), strict=True))
    write_files(contents)
    for name in (_WORTH, _SUPPLY):
        if folder / name not in contents:
            (folder / name).unlink(missing_ok=True)
    return list(contents)


def _lines(header: str, rows: Iterable[Iterable[object]]) -> list[bytes]:
    return ["".join((f"{header}\n", *(",".join(map(str, row)) + "\n" for row in rows))).encode()]


def read_green_files(folder: Path) -> tuple[WorthTable | None, SupplyTable | None]:
    """What the jobs of a run were worth, and what power it had; None where no file says it.

    Raises:
        InputError: if a file is of another kind.
    """
    worth, supply = _read(folder / _WORTH, "job_id", "value", "deadline"), _read(folder / _SUPPLY, "time", "hosts")
    return (
        None if worth is None else WorthTable(id=worth[0], value=_numbers(worth[1]), deadline=_numbers(worth[2])),
        None if supply is None else SupplyTable(time=_numbers(supply[0]), hosts=_numbers(supply[1])),
    )


def _numbers(texts: list[str]) -> Floats:
    return np.array(texts, np.float64)


def _read(path: Path, *names: str) -> list[list[str]] | None:
    if not path.is_file():
        return None
    rows = list(csv.DictReader(read_bytes(path).decode(errors="replace").splitlines()))
    try:
        columns = [[row[name] for row in rows] for name in names]
        _ = [np.array(column, np.float64) for name, column in zip(names, columns, strict=True) if name != "job_id"]
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{path}: not a table of {', '.join(names)}; run the policy again") from None
    return columns
