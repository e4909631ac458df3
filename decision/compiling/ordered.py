"""Lists of kernels that are kept in order: an array of keys, and one of what belongs to each."""

from .jit import kernel


@kernel
def insert_in_order(keys, others, length, key, other):
    """Put a key with what belongs to it into the first `length`, ascending, behind equal ones; there must be room."""
    at = length
    while at > 0 and keys[at - 1] > key:
        keys[at] = keys[at - 1]
        others[at] = others[at - 1]
        at -= 1
    keys[at] = key
    others[at] = other
