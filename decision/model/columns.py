"""Jobs and texts as columns: sequences whose items are made when they are asked for.

Ten million jobs fit into memory as arrays, and not as objects. `Texts`, `Labelled` and `JobColumns` are used like the
lists that they stand for, and are equal to them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Generic, Self, TypeGuard, TypeVar, overload

import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from .hosts import format_intervals
from .workload import Delay, Job, Profile, Worth

# Sequences kept as arrays: each item is made when it is asked for.

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
        """All items, as a list."""
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
        """All texts, as a list."""
        return self._make(self._numbers)

    def take(self, rows: Rows) -> "Texts":
        """The texts of these rows."""
        return Texts(self._make, self._numbers[rows])


class HostSets(Column[str]):
    """Sets of hosts in Batsim's notation, ``0-3 7``, made of their intervals.

    Args:
        intervals: of sets by their numbers (n,), the first and the last host of all intervals, set by set, and how many
            each set has (n,).
        numbers: (n,) which sets.
    """

    def __init__(self, intervals: Callable[[Numbers], tuple[Numbers, Numbers, Numbers]], numbers: Numbers) -> None:
        self._intervals, self._numbers = intervals, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def item(self, row: int) -> str:
        """The text of a row."""
        return self.take(slice(row, row + 1)).made()[0]

    def made(self) -> list[str]:
        """All texts, as a list."""
        first, last, count = self.intervals()
        runs, ends = list(zip(first.tolist(), last.tolist(), strict=True)), np.cumsum(count)
        return [format_intervals(runs[begin:end]) for begin, end in pairwise([0, *ends.tolist()])]

    def intervals(self) -> tuple[Numbers, Numbers, Numbers]:
        """Of all rows: the first and last hosts (m,) of the intervals, and how many each has (n,)."""
        return self._intervals(self._numbers)

    def take(self, rows: Rows) -> "HostSets":
        """The sets of these rows."""
        return HostSets(self._intervals, self._numbers[rows])


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
        """All items, as a list."""
        if isinstance(self.labels, Column):
            return self.labels.take(self.codes).made()
        return [self.labels[code] for code in self.codes.tolist()]

    def take(self, rows: Rows) -> "Labelled[Item]":
        """The items of these rows."""
        return Labelled(self.labels, self.codes[rows])

    def used(self) -> "Labelled[Item]":
        """The labels that items have, in the order in which they come first."""
        found: dict[int, None] = {}
        for begin in range(0, len(self.codes), 16 * _CHUNK):  # in parts, since `np.unique` takes 30 bytes for each code
            used, first = np.unique(self.codes[begin : begin + 16 * _CHUNK], return_index=True)
            found.update(dict.fromkeys(used[np.argsort(first)].tolist()))
        return Labelled(self.labels, np.array(list(found), self.codes.dtype))


def labelled(items: Sequence[str]) -> Labelled[str]:
    """The same texts, equal ones kept once."""
    codes: dict[str, int] = {}
    which = np.array([codes.setdefault(item, len(codes)) for item in items], np.int32)
    return Labelled(list(codes), which)


def small(codes: Numbers) -> Numbers:
    """The same codes in the smallest type that holds them."""
    return codes.astype(np.min_scalar_type(int(codes.max(initial=0))))


def coded(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The different ones of numbers (n,), in order, and which of these each number is (n,), in the smallest type."""
    if numbers.dtype.kind in "iu" and len(numbers):
        low, span = int(numbers.min()), int(numbers.max()) - int(numbers.min()) + 1
        # A table takes a byte to four for each value between; `np.unique` takes 30 bytes for each number.
        if span <= max(len(numbers), _CHUNK):
            there = np.zeros(span, np.bool_)
            there[numbers - low] = True
            code = small(np.cumsum(there) - 1)
            return np.flatnonzero(there) + low, code[numbers - low]
    values, which = np.unique(numbers, return_inverse=True)
    return values, small(which)


def narrow(numbers: Numbers) -> Numbers:
    """The same numbers as 32-bit integers where they are that."""
    with np.errstate(invalid="ignore"):
        whole = numbers.astype(np.int32)
    return numbers if (whole != numbers).any() or np.signbit(numbers[whole == 0]).any() else whole


def joined(parts: Sequence[Numbers]) -> Numbers:
    """All parts, one after the other; numbers that are all the same take the memory of one, and are to be read only."""
    first = parts[0][:1].copy()
    if len(first) and all((part == first).all() for part in parts):
        return np.broadcast_to(first, sum(map(len, parts)))
    return np.concatenate(parts)


@dataclass(kw_only=True, eq=False, repr=False)
class JobColumns(Column[Job]):
    """Jobs of different ids as columns of length n; see `Job`."""

    id: Column[str]
    submit_time: NDArray[np.float64]
    size: NDArray[np.int32]
    walltime: NDArray[np.float64]
    profile: Labelled[str]
    user: Labelled[str]
    estimate: NDArray[np.float64] | None = None  # None: no job has one
    worth: NDArray[np.float64] | None = None  # (n, 4) as `Worth`, nan where a job says nothing; None: none does
    extra: Column[Mapping[str, Any] | None] | None = None
    source: Column[bytes] | None = None

    def __len__(self) -> int:
        return len(self.size)

    def item(self, row: int) -> Job:
        """The job of a row."""
        return Job(
            id=self.id.item(row),
            submit_time=float(self.submit_time[row]),
            size=int(self.size[row]),
            walltime=float(self.walltime[row]),
            profile=self.profile.item(row),
            user=self.user.item(row),
            estimate=math.nan if self.estimate is None else float(self.estimate[row]),
            worth=None if self.worth is None else _worth(self.worth[row].tolist()),
            extra=self.extra.item(row) if self.extra else None,
            source=self.source.item(row) if self.source else None,
        )

    def made(self) -> list[Job]:
        """All jobs as objects, made at once from the columns."""
        nothing = [None] * len(self)
        columns = zip(
            self.id.made(),
            self.submit_time.tolist(),
            self.size.tolist(),
            self.walltime.tolist(),
            self.profile.made(),
            self.user.made(),
            [math.nan] * len(self) if self.estimate is None else self.estimate.tolist(),
            nothing if self.worth is None else map(_worth, self.worth.tolist()),
            self.source.made() if self.source else nothing,
            self.extra.made() if self.extra else nothing,
            strict=True,
        )
        return [
            Job(
                id=i,
                submit_time=at,
                size=n,
                walltime=w,
                profile=profile,
                user=user,
                estimate=estimate,
                worth=worth,
                source=source,
                extra=extra,
            )
            for i, at, n, w, profile, user, estimate, worth, source, extra in columns
        ]

    def take(self, rows: Rows) -> "JobColumns":
        """The jobs of these rows."""
        return JobColumns(
            id=self.id.take(rows),
            submit_time=self.submit_time[rows],
            size=self.size[rows],
            walltime=self.walltime[rows],
            profile=self.profile.take(rows),
            user=self.user.take(rows),
            estimate=None if self.estimate is None else self.estimate[rows],
            worth=None if self.worth is None else self.worth[rows],
            extra=self.extra.take(rows) if self.extra else None,
            source=self.source.take(rows) if self.source else None,
        )

    def replaced(self, **columns: Any) -> "JobColumns":
        """The same jobs with other columns."""
        return JobColumns(**(vars(self) | columns))


def columns_of(jobs: Sequence[Job]) -> JobColumns:
    """What an engine needs of the jobs, as columns."""
    if isinstance(jobs, JobColumns):
        return jobs
    estimates = np.array([job.estimate for job in jobs], np.float64)
    return JobColumns(
        id=Labelled([job.id for job in jobs], np.arange(len(jobs))),
        submit_time=np.array([job.submit_time for job in jobs], np.float64),
        size=np.array([job.size for job in jobs], np.int32),
        walltime=np.array([job.walltime for job in jobs], np.float64),
        profile=labelled([job.profile for job in jobs]),
        user=labelled([job.user for job in jobs]),
        estimate=None if np.isnan(estimates).all() else estimates,
        worth=worth_rows([job.worth for job in jobs]),
    )


def worth_rows(given: Sequence[Worth | None]) -> NDArray[np.float64] | None:
    """What jobs say of their worth as rows (n, 4); None where none says anything."""
    if not any(given):
        return None
    return np.array([astuple(worth or Worth()) for worth in given], np.float64)


def _worth(row: list[float]) -> Worth | None:
    return None if all(map(math.isnan, row)) else Worth(*row)


class DelayProfiles(Mapping[str, Profile]):
    """Delays by name.

    Args:
        names: (m,) of the profiles.
        durations: (m,) seconds.
    """

    def __init__(self, names: Sequence[str], durations: NDArray[np.float64]) -> None:
        self.names, self.durations = names, durations

    def label(self, jobs: Sequence[Job]) -> TypeGuard[JobColumns]:
        """Whether these are the labels of the jobs' profiles: then a code is an index of `durations`."""
        return isinstance(jobs, JobColumns) and jobs.profile.labels is self.names

    @cached_property
    def _known(self) -> dict[str, Profile]:
        return dict(zip(self.names, map(Delay, self.durations.tolist()), strict=True))

    def __getitem__(self, name: str) -> Profile:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.durations)
