"""Accounting records of jobs that ran, as columns: what every reader of a batch system's log makes."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from decision.model.column import Labelled, small
from decision.model.record import Floats, Ints

from .account import Account

NUMBERS = (
    *("submit", "start", "end"),  # seconds since 1970, nan where unknown
    *("wait", "run", "walltime", "suspended"),  # seconds; a walltime is nan where none was requested
    *("nodes", "cores", "gpus"),  # allocated
    *("memory", "asked_memory"),  # MB in all
)
TEXTS = ("user", "account", "group", "partition", "qos", "state", "node_list", "dependency")

Columns = Mapping[str, Sequence[Any] | Floats]  # of equal length: line, id, part_of, and any of `NUMBERS` and `TEXTS`


class Records:
    """Columns that grow part by part; texts of which many are equal are kept once."""

    def __init__(self) -> None:
        self.line = array("q")
        self.id: list[str] = []
        self.part_of: list[str] = []  # the job that starts together with others as one; "" for a job by itself
        self._numbers = {name: array("d") for name in NUMBERS}
        self._codes = {name: array("i") for name in TEXTS}
        self._labels: dict[str, dict[str, int]] = {name: {"": 0} for name in TEXTS}

    def __len__(self) -> int:
        return len(self.id)

    def add(self, columns: Columns) -> None:
        """Add records; a column that is not there is unknown."""
        count = len(columns["id"])
        self.line.frombytes(np.asarray(columns["line"], np.int64).tobytes())
        self.id.extend(columns["id"])
        self.part_of.extend(columns.get("part_of", [""] * count))
        for name, numbers in self._numbers.items():
            values = columns.get(name)
            known = np.full(count, np.nan) if values is None else np.asarray(values, np.float64)
            numbers.frombytes(known.tobytes())
        for name, codes in self._codes.items():
            labels, texts = self._labels[name], columns.get(name, ("",) * count)
            for text in dict.fromkeys(texts):
                labels.setdefault(text, len(labels))
            codes.extend(map(labels.__getitem__, texts))

    def number(self, name: str) -> Floats:
        """One of `NUMBERS`, (n,)."""
        return np.array(self._numbers[name])

    def text(self, name: str) -> Labelled[str]:
        """One of `TEXTS`, (n,)."""
        return Labelled(list(self._labels[name]), small(np.array(self._codes[name])))


def usable(columns: Columns, account: Account) -> Iterator[Columns]:
    """The records that ran, of columns that have at least line, id, submit, start, end and run; others are counted."""
    lines = np.asarray(columns["line"])
    good = np.ones(len(lines), bool)
    submit, start, end, run = (np.asarray(columns[name], float) for name in ("submit", "start", "end", "run"))
    size = np.fmax(_column(columns, "nodes", lines), _column(columns, "cores", lines))
    with np.errstate(invalid="ignore"):
        for reason, wrong in (
            ("no_time", np.isnan(submit)),
            ("never_started", np.isnan(start)),
            ("not_ended", np.isnan(end)),
            ("no_time", ~(run > 0)),
            ("no_size", ~(np.fmax(size, _column(columns, "gpus", lines)) >= 1)),
        ):
            account.leave_out(reason, lines[good & wrong].tolist())
            good &= ~wrong
    columns = {"wait": start - submit, **columns}
    if good.all():
        yield columns
    elif good.any():
        keep = good.tolist()
        yield {name: list(compress(values, keep)) for name, values in columns.items()}


def _column(columns: Columns, name: str, lines: np.ndarray) -> Floats:
    values = columns.get(name)
    return np.full(len(lines), np.nan) if values is None else np.asarray(values, float)


class RecordTable(NamedTuple):
    """Jobs in order of submission. Columns of length n."""

    line: Ints
    id: list[str]
    numbers: dict[str, Floats]
    texts: dict[str, Labelled[str]]

    def take(self, rows: Ints) -> "RecordTable":
        """The jobs of these rows."""
        return RecordTable(
            self.line[rows],
            [self.id[row] for row in rows.tolist()],
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column.take(rows) for name, column in self.texts.items()},
        )
