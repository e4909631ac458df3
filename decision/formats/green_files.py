"""What a run is measured by: ``worth.csv``, ``supply.csv``, ``battery.csv``, ``carbon.csv``, ``price.csv``.

Batsim writes none of them: they stand next to its files, copied from the workloads, the events and the policy's
options, so that a folder can be analysed alone.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from decision.model.errors import InputError
from decision.model.record import BatteryTable, Context, RateTable, SupplyTable, WorthTable

from .files import read_bytes, write_files

_TABLES: dict[str, tuple[type, tuple[str, ...]]] = {  # by the field of a `Context`: the table, and the file's columns
    "worth": (WorthTable, ("job_id", "value", "deadline")),
    "supply": (SupplyTable, ("time", "hosts")),
    "battery": (BatteryTable, ("host_seconds", "charge_hosts", "discharge_hosts", "efficiency")),
    "carbon": (RateTable, ("time", "g_per_kwh")),
    "price": (RateTable, ("time", "per_kwh")),
}


def write_green_files(folder: Path, context: Context) -> list[Path]:
    """Write what there is; what an older run has left is removed.

    Raises:
        ConfigError: if a file cannot be written.
    """
    contents = {}
    for name, (_, columns) in _TABLES.items():
        table = getattr(context, name)
        if table is not None:
            values = (list(getattr(table, field)) for field in table.__struct_fields__)
            rows = (",".join(map(str, row)) + "\n" for row in zip(*values, strict=True))
            contents[_file(folder, name)] = ["".join((",".join(columns) + "\n", *rows)).encode()]
    write_files(contents)
    for name in _TABLES:
        if _file(folder, name) not in contents:
            _file(folder, name).unlink(missing_ok=True)
    return list(contents)


def read_green_files(folder: Path) -> Context:
    """What a run is measured by; None where no file says it.

    Raises:
        InputError: if a file is of another kind.
    """
    return Context(**{name: _read(_file(folder, name), *kind) for name, kind in _TABLES.items()})


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.csv"


def _read(path: Path, kind: type, names: tuple[str, ...]) -> Any:
    if not path.is_file():
        return None
    rows = list(csv.DictReader(read_bytes(path).decode(errors="replace").splitlines()))
    try:
        columns = [[row[name] for row in rows] for name in names]
        values = [
            column if name == "job_id" else np.array(column, np.float64)
            for name, column in zip(names, columns, strict=True)
        ]
    except (KeyError, ValueError, TypeError):
        raise InputError(f"{path}: not a table of {', '.join(names)}; run the policy again") from None
    return kind(**dict(zip(kind.__struct_fields__, values, strict=True)))  # type: ignore[attr-defined]
