"""Kernels that are called by address."""

import numpy as np
import pytest

from decision.compiling.bundle import F8, Bundle
from decision.compiling.entry import Interface
from decision.compiling.jit import _places, kernel
from decision.compiling.sources import IMPORTED_FROM
from decision.model.errors import InternalError


class Numbers(Bundle):
    values: F8


INTERFACE = Interface(float, Numbers, int, float)
call = INTERFACE.caller()


@INTERFACE.entry
def add(numbers, at, by):
    numbers.values[at] += by
    return numbers.values[at]


@INTERFACE.entry
def scale(numbers, at, by):
    numbers.values[at] *= by
    return numbers.values[at]


@kernel
def loop(address, numbers, by):
    total = 0.0
    for at in range(len(numbers.values)):
        total += call(address, (numbers, at, by))
    return total


@pytest.mark.parametrize(("entry", "expected"), [(add, [3, 4, 5]), (scale, [2, 4, 6])])
def test_one_compiled_loop_runs_whatever_implements_the_interface(entry, expected) -> None:
    numbers = Numbers(values=np.array([1.0, 2.0, 3.0]))
    assert loop(entry.address, numbers, 2) == sum(expected)  # an integer where a float is asked for is converted
    assert numbers.values.tolist() == expected
    assert len(loop.signatures) == 1


@INTERFACE.entry
def fail_at_one(numbers, at, by):
    if at == 1:
        raise InternalError("there is no room")
    return by


def test_what_an_entry_raises_goes_up_through_the_loop() -> None:
    numbers = Numbers(values=np.array([1.0, 2.0, 3.0]))
    with pytest.raises(InternalError, match="there is no room"):
        loop(fail_at_one.address, numbers, 2)


def test_what_an_entry_raises_arrives_in_python_with_its_text_and_place() -> None:
    numbers = Numbers(values=np.array([1.0, 2.0, 3.0]))
    fails = fail_at_one.from_python
    assert fails(numbers.address, 0, 2.0) == 2.0
    with pytest.raises(InternalError, match="there is no room") as raised:
        fails(numbers.address, 1, 2.0)
    line = fail_at_one.__wrapped__.__code__.co_firstlineno + 3
    assert raised.value.__notes__ == [f"in fail_at_one, {__file__}:{line}"]


def test_machine_code_names_its_file_as_every_checkout_knows_it() -> None:
    assert fail_at_one.address
    kept = [file for place, _ in _places(__name__) for file in place.glob("fail_at_one-*.root")]
    assert kept
    assert all(IMPORTED_FROM.encode() not in file.read_bytes() for file in kept)


def test_an_entry_is_plain_python_when_called_from_python() -> None:
    numbers = Numbers(values=np.array([1.0]))
    assert add(numbers, 0, 1.5) == 2.5


def test_a_kernel_calls_back_into_python() -> None:
    numbers = Numbers(values=np.array([1.0, 2.0, 3.0]))
    given = []

    def note(address: int, at: int, by: float) -> float:
        given.append((address, at, by))
        return at + by

    callback = INTERFACE.callback(note)
    assert loop(callback.address, numbers, 0.5) == 4.5
    assert given == [(numbers.address, at, 0.5) for at in range(3)]
