"""Sequences kept as arrays: each item is made when it is asked for."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Numbers = NDArray[Any]  # (n,)
Rows = NDArray[Any] | slice  # which rows, as NumPy takes them
_CHUNK = 65536  # items made at once


class Column(Sequence[Item]):
    """A sequence that makes its items, one or many at once; a slice of it is such a sequence, too."""

    def item(self, row: int) -> Item:
        """The item of a row, from 0 on."""
        raise NotImplementedError

    def made(self) -> list[Item]:
        """All items."""
        raise NotImplementedError

    def take(self, rows: Rows) -> Self:
        """The items of these rows."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Item | Self:
        return self.take(index) if isinstance(index, slice) else self.item(range(len(self))[index])

    def __iter__(self) -> Iterator[Item]:
        for first in range(0, len(self), _CHUNK):
            yield from self.take(slice(first, first + _CHUNK)).made()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self[:10])) + (f" and {len(self) - 10:,} more" if len(self) > 10 else "")


class Texts(Column[str]):
    """Texts that are made of numbers.

    Args:
        make: the texts of numbers (n,).
        numbers: (n,) what each text is made of.
    """

    def __init__(self, make: Callable[[Numbers], list[str]], numbers: Numbers) -> None:
        self._make, self._numbers = make, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def item(self, row: int) -> str:
        """The text of a row."""
        return self._make(self._numbers[row : row + 1])[0]

    def made(self) -> list[str]:
        """All texts."""
        return self._make(self._numbers)

    def take(self, rows: Rows) -> "Texts":
        """The texts of these rows."""
        return Texts(self._make, self._numbers[rows])


def numbered(workload: str, numbers: Numbers) -> Texts:
    """Ids of jobs that are whole numbers (n,) in a workload: ``w0!12``."""
    return Texts(partial(_ids, workload), narrow(numbers))


def _ids(workload: str, numbers: Numbers) -> list[str]:
    return [f"{workload}!{number:.0f}" for number in numbers.tolist()]


class Labelled(Column[Item], Generic[Item]):
    """Things of which many are equal.

    Args:
        labels: (m,) the things.
        codes: (n,) where each item is in `labels`.
    """

    def __init__(self, labels: Sequence[Item], codes: Numbers) -> None:
        self.labels, self.codes = labels, codes

    def __len__(self) -> int:
        return len(self.codes)

    def item(self, row: int) -> Item:
        """The item of a row."""
        return self.labels[int(self.codes[row])]

    def made(self) -> list[Item]:
        """All items."""
        if isinstance(self.labels, Column):
            return self.labels.take(self.codes).made()
        return [self.labels[code] for code in self.codes.tolist()]

    def take(self, rows: Rows) -> "Labelled[Item]":
        """The items of these rows."""
        return Labelled(self.labels, self.codes[rows])

    def used(self) -> "Labelled[Item]":
        """The labels that items have, in the order in which they come first."""
        used, first = np.unique(self.codes, return_index=True)
        return Labelled(self.labels, used[np.argsort(first)])


def labelled(items: Sequence[str]) -> Labelled[str]:
    """The same texts, equal ones kept once."""
    codes: dict[str, int] = {}
    which = np.array([codes.setdefault(item, len(codes)) for item in items], np.int32)
    return Labelled(list(codes), which)


def small(codes: Numbers) -> Numbers:
    """The same codes in the smallest type that holds them."""
    return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))


def narrow(numbers: Numbers) -> Numbers:
    """The same numbers as 32-bit integers where they are that."""
    with np.errstate(invalid="ignore"):
        whole = numbers.astype(np.int32)
    return numbers if (whole != numbers).any() or np.signbit(numbers[whole == 0]).any() else whole
