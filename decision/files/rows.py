"""Rows of a table as CSV, many at once, in machine code: texts, whole numbers, and numbers as C's ``%f`` writes them.

Small tables do without: to load machine code takes longer than to write them with Python's ``%``.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import I1, I4, I8, Bundle, F8x2, I8x2
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import nearest_millionths
from decision.model.columns import HostSets

_TEXT, _WHOLE, _FIXED = range(3)  # forms of a cell
_LIMIT = 2.0**53  # numbers beyond are not written here
_DIGITS = 16  # of a number below `_LIMIT`
_DIGITS_OF_HOST = 10  # of the largest of four bytes
_MILLION = 1_000_000
_COMMA, _LINE_END, _BLANK, _MINUS, _POINT, _ZERO = (ord(sign) for sign in ",\n -.0")


class TableRows(Bundle):
    """n rows of cells; texts and numbers by column."""

    form: I8  # (cells,) _TEXT, _WHOLE or _FIXED
    column: I8  # (cells,) which column of the texts or of the numbers
    text: I1  # the bytes of all texts, column by column
    text_end: I8x2  # (columns of texts, n + 1) where the text before a row ends, and so that of the row begins
    number: F8x2  # (columns of numbers, n)
    out: I1  # what is written


class SetsOfHosts(Bundle):
    """Intervals of hosts, set by set."""

    first: I4  # (m,) hosts
    last: I4  # (m,)
    count: I4  # (n,) intervals of each set
    end: I8  # (n,) where the text of each set ends
    out: I1  # what is written


Cells = Sequence[str] | NDArray[np.generic]


def csv_rows(columns: Sequence[Cells]) -> bytes | None:
    """The rows, cells between commas; None where a number is nan, infinite or not below 2**53.

    Args:
        columns: the texts, as they are to stand there, or an array of numbers, written as ``%d`` where its type is a
            whole one and as ``%f`` else; all of one length n.
    """
    number = np.array([column for column in columns if isinstance(column, np.ndarray)], np.float64)
    if not np.all(np.abs(number) < _LIMIT):  # so are nan
        return None
    texts = [_bytes_of(column) for column in columns if not isinstance(column, np.ndarray)]
    text_end = np.zeros((len(texts), number.shape[1] + 1), np.int64)
    first = 0
    for at, (text, ends) in enumerate(texts):
        text_end[at, 0], text_end[at, 1:] = first, first + ends
        first += len(text)
    form = np.array(
        [
            _TEXT if not isinstance(column, np.ndarray) else _WHOLE if column.dtype.kind in "iub" else _FIXED
            for column in columns
        ]
    )
    place = np.where(form == _TEXT, np.cumsum(form == _TEXT), np.cumsum(form != _TEXT)) - 1
    rows = TableRows(
        form=form,
        column=place,
        text=np.concatenate([np.zeros(0, np.int8), *(text for text, _ in texts)]),
        text_end=text_end,
        number=number,
        out=np.empty(first + number.size * (_DIGITS + len("-.000000")) + number.shape[1] * len(columns), np.int8),
    )
    return rows.out[: write_rows.from_python(rows.address)].tobytes()


def _bytes_of(column: Sequence[str]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """The bytes of all texts (n,), one behind the other, and where each ends (n,)."""
    if isinstance(column, HostSets):
        # What waited in a file comes as the fields of its rows, which do not lie side by side
        first, last, count = (np.ascontiguousarray(of) for of in column.intervals())
        out = np.empty(len(first) * 2 * (_DIGITS_OF_HOST + 1), np.int8)
        sets = SetsOfHosts(first=first, last=last, count=count, end=np.empty(len(count), np.int64), out=out)
        return out[: write_sets.from_python(sets.address)], sets.end
    text = "".join(column).encode()
    lengths = np.fromiter(map(len, column), np.int64, len(column))
    if lengths.sum() < len(text):  # not all is ASCII
        lengths = np.fromiter((len(cell.encode()) for cell in column), np.int64, len(column))
    return np.frombuffer(text, np.int8), np.cumsum(lengths)


@Interface(int, SetsOfHosts).entry
def write_sets(sets):
    """Write all sets of hosts as ``0-3 7``, one behind the other; how many bytes that are."""
    out, at, interval = sets.out, 0, 0
    for row in range(len(sets.count)):
        for i in range(sets.count[row]):
            if i > 0:
                out[at] = _BLANK
                at += 1
            at = _put_digits(out, at, np.int64(sets.first[interval]))
            if sets.first[interval] < sets.last[interval]:
                out[at] = _MINUS
                at = _put_digits(out, at + 1, np.int64(sets.last[interval]))
            interval += 1
        sets.end[row] = at
    return at


@Interface(int, TableRows).entry
def write_rows(rows):
    """Write all rows; how many bytes that are."""
    out, at = rows.out, 0
    cells = len(rows.form)
    for row in range(rows.number.shape[1]):
        for cell in range(cells):
            column = rows.column[cell]
            if rows.form[cell] == _TEXT:
                for i in range(rows.text_end[column, row], rows.text_end[column, row + 1]):
                    out[at] = rows.text[i]
                    at += 1
            elif rows.form[cell] == _WHOLE:
                number = rows.number[column, row]
                if number < 0:
                    out[at] = _MINUS
                    at += 1
                at = _put_digits(out, at, abs(int(number)))
            else:
                at = _put_fixed(out, at, rows.number[column, row])
            out[at] = _COMMA if cell < cells - 1 else _LINE_END
            at += 1
    return at


@kernel
def _put_fixed(out, at, number):
    """As C's ``%f`` does: the nearest, of two as near the one whose last digit is even; -0.0 has its sign."""
    if math.copysign(1.0, number) < 0:
        out[at] = _MINUS
        at += 1
    whole = math.floor(abs(number))
    millionths = int(nearest_millionths(abs(number) - whole))
    if millionths == _MILLION:
        whole, millionths = whole + 1, 0
    at = _put_digits(out, at, int(whole))
    out[at] = _POINT
    for i in range(6, 0, -1):
        out[at + i] = _ZERO + millionths % 10
        millionths //= 10
    return at + 7


@kernel
def _put_digits(out, at, number):
    """A whole number from 0 on."""
    length, rest = 1, number // 10
    while rest > 0:
        length, rest = length + 1, rest // 10
    for i in range(length - 1, -1, -1):
        out[at + i] = _ZERO + number % 10
        number //= 10
    return at + length
