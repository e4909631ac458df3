"""Small kernels of all rooms: random numbers, decimals, and lists that are kept in order.

Random numbers are those of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), one stream per seed and job: what is drawn
for a job depends on nothing but the seed and the job's number, so that a run can be repeated whatever else the policy
was asked.
"""

import numpy as np

from .jit import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def mix(word):
    """Scramble a word; the stream of a generator is mix(w), mix(w + STEP), ..."""
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@kernel
def first_word(seed, job):
    """Where the stream of this job begins."""
    return mix(mix(np.uint64(seed) + _STEP) + np.uint64(job) * _STEP)


@kernel
def next_word(word):
    """The word that follows in the generator's stream."""
    return word + _STEP


@kernel
def uniform(word):
    """A float in [0, 1) from a word of the generator."""
    return np.float64(mix(word) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


_SPLIT = 2.0**27 + 1.0  # cuts a number of 53 bits into two halves, whose products with 1e6 are exact (Veltkamp)


@kernel
def nearest_millionths(number):
    """The whole number of millionths that C's ``%f`` prints; of two as near the even one."""
    # What prints six decimals rounds the exact binary number. The product below is rounded itself, which shows only
    # where it comes out at a half: then the part that it lost says to which side.
    scaled = number * 1e6
    whole = np.rint(scaled)  # not round: it goes through an integer, which overflows after 292,000 years
    if abs(scaled - whole) == 0.5:
        # Dekker's exact product: the two halves times 1e6 have no error, so `lost` is exactly what `scaled` is short
        # of.
        high = number * _SPLIT - (number * _SPLIT - number)
        lost = (high * 1e6 - scaled) + (number - high) * 1e6
        if lost > 0.0:
            whole = np.ceil(scaled)
        elif lost < 0.0:
            whole = np.floor(scaled)
    return whole


# Lists of kernels that are kept in order: an array of keys, and one of what belongs to each.


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
