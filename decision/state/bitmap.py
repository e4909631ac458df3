"""Sets of hosts as bitmaps (W,) u8: bit h % 64 of word h // 64 is host h."""

from collections.abc import Callable
from typing import Any

import numpy as np

from decision.compiling.declared import Intrinsic
from decision.compiling.jit import kernel


@Intrinsic
def trailing_zeros(_context: Any, word: Any) -> Any:
    """Number of zero bits below the lowest one; 64 for an empty word."""
    return _of_word(lambda builder, word, zero: builder.cttz(word, zero))


@Intrinsic
def count_ones(_context: Any, word: Any) -> Any:
    """Number of bits that are set in a word."""
    return _of_word(lambda builder, word, _: builder.ctpop(word))


@Intrinsic
def leading_zeros(_context: Any, word: Any) -> Any:
    """Number of zero bits above the highest one; 64 for an empty word."""
    return _of_word(lambda builder, word, zero: builder.ctlz(word, zero))


def _of_word(instruction: Callable[[Any, Any, Any], Any]) -> Any:
    """The signature and the code of an instruction that makes a word of a word, and may be told that 0 is no error."""
    from llvmlite import ir
    from numba.core import types

    def generate(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return instruction(builder, args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@kernel
def highest_bit(number):
    """Index of the highest bit set in a positive number."""
    return 63 - np.int64(leading_zeros(np.uint64(number)))


@kernel
def count_hosts(bitmap):
    """Number of hosts in the bitmap."""
    total = 0
    for word in range(len(bitmap)):
        total += np.int64(count_ones(bitmap[word]))
    return total


@kernel
def next_in(bitmap, host):
    """The lowest host from `host` on that is in the bitmap; 64 W where there is none."""
    return _next(bitmap, host, np.uint64(0))


@kernel
def next_out(bitmap, host):
    """The lowest host from `host` on that is not in the bitmap; 64 W where there is none."""
    return _next(bitmap, host, ~np.uint64(0))


@kernel
def _next(bitmap, host, flip):
    word = host >> 6
    if word >= len(bitmap):
        return len(bitmap) << 6
    bits = (bitmap[word] ^ flip) & (~np.uint64(0) << np.uint64(host & 63))
    while bits == 0:
        word += 1
        if word == len(bitmap):
            return word << 6
        bits = bitmap[word] ^ flip
    return (word << 6) + np.int64(trailing_zeros(bits))


@kernel
def word_mask(word, first, last):
    """The bits of hosts first..last in a word that has some of them."""
    low = max(first - (word << 6), 0)
    high = min(last - (word << 6), 63)
    return (~np.uint64(0) >> np.uint64(63 - high)) & (~np.uint64(0) << np.uint64(low))


@kernel
def first_missing(bitmap, first, last):
    """The first of the hosts first..last that is not in the bitmap; -1 where all are."""
    for word in range(first >> 6, (last >> 6) + 1):
        mask = word_mask(word, first, last)
        if bitmap[word] & mask != mask:
            return next_out(bitmap, max(first, word << 6))
    return -1


@kernel
def insert_interval(bitmap, first, last):
    """Put the hosts first..last into the bitmap."""
    for word in range(first >> 6, (last >> 6) + 1):
        bitmap[word] |= word_mask(word, first, last)


@kernel
def has_host(bitmap, host):
    """Whether a host is in the bitmap."""
    return bitmap[host >> 6] & (np.uint64(1) << np.uint64(host & 63)) != 0


@kernel
def remove_interval(bitmap, first, last):
    """Take the hosts first..last out of the bitmap."""
    for word in range(first >> 6, (last >> 6) + 1):
        bitmap[word] &= ~word_mask(word, first, last)
