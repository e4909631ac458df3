"""The cache of compiled kernels."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from decision.compiling import jit
from decision.compiling.jit import kernel

PACKAGE = {
    "__init__.py": "",
    "compiling/__init__.py": "",
    "compiling/jit.py": Path(jit.__file__).read_text(),
    **{
        f"compiling/{name}.py": Path(jit.__file__).with_name(f"{name}.py").read_text()
        for name in ("bundle_types", "declared", "machine", "parts", "sources", "whole_program")
    },
    "model/__init__.py": "",
    "model/errors.py": (Path(jit.__file__).parents[1] / "model/errors.py").read_text(),
    "low.py": "from decision.compiling.jit import kernel\n\n@kernel\ndef low(x):\n    return x + 1\n",
    "high.py": "from .low import low\nfrom .compiling.jit import kernel\n\n"
    "@kernel\ndef high(x):\n    return 2 * low(x)\n",
    "other.py": "from decision.compiling.jit import kernel\n\n@kernel\ndef other(x):\n    return x\n",
}
PROGRAM = """
from decision.high import high
from decision.other import other
from decision.compiling.jit import is_warm
print(int(is_warm(high)), int(is_warm(other)), high(1), other(1))
"""


def test_numbas_own_settings_stay_as_they_are() -> None:
    assert os.environ.get("NUMBA_CACHE_DIR", "") == numba.config.CACHE_DIR


def test_a_changed_callee_recompiles_its_callers_alone(tmp_path: Path) -> None:
    """A kernel's code contains that of the kernels that it calls, in whatever module."""
    _write(tmp_path, PACKAGE)
    assert _run(tmp_path) == "0 0 4 1"
    assert _run(tmp_path) == "1 1 4 1"
    low = tmp_path / "decision" / "low.py"
    low.write_text(low.read_text().replace("x + 1", "x + 2"))
    assert _run(tmp_path) == "0 1 6 1"


ERRORS = """
import traceback
import numpy as np
from decision.errors import divided, outer
from decision.compiling.jit import on_compiling

on_compiling.append(lambda done, of: print("compiles"))
print(outer(np.arange(4), 1), divided(np.float64(1.0), np.float64(0.0)))
for at in (2, 9):
    try:
        outer(np.arange(4), at)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        print(type(error).__name__, [line], str(error)[:20])
"""
FAILING = """from decision.compiling.jit import kernel

@kernel
def inner(values, at):
    if values[at] == 2:
        raise ValueError("two is too much")
    return values[at]

@kernel
def outer(values, at):
    return inner(values, at) + inner(values, 1)

@kernel
def divided(x, y):
    return x / y
"""


def test_results_and_errors_are_those_of_plain_python_cold_and_warm(tmp_path: Path) -> None:
    """Out of an inner kernel, too: text and line; what is beyond an array is refused where bounds are checked."""
    _write(tmp_path, PACKAGE | {"errors.py": FAILING})
    checked = {"NUMBA_BOUNDSCHECK": "1"}
    cold, warm = (_run(tmp_path, ERRORS, checked).splitlines() for _ in range(2))
    plain = _run(tmp_path, ERRORS, {"NUMBA_DISABLE_JIT": "1"}).splitlines()
    assert [line for line in cold if line != "compiles"] == warm
    assert cold.count("compiles") == 2  # the two that Python calls
    assert warm[:2] == plain[:2] == ["2 inf", "ValueError [6] two is too much"]
    assert warm[2].startswith("IndexError") and plain[2].startswith("IndexError")
    assert not [*tmp_path.rglob("inner-*.root")]


def test_of_two_processes_that_start_cold_one_compiles(tmp_path: Path) -> None:
    _write(tmp_path, PACKAGE | {"errors.py": FAILING})
    both = [_start(tmp_path, ERRORS, {}) for _ in range(2)]
    said = [each.communicate(timeout=120)[0] for each in both]
    assert sum(each.count("compiles") for each in said) == 2
    assert len({each.replace("compiles\n", "") for each in said}) == 1


RETURNING = """from decision.compiling.jit import kernel

@kernel
def made(n):
    values = np.empty(n)
    values[:] = 1.5
    return values

@kernel
def added(n):
    return made(n).sum()

@kernel
def one(n):
    return 1
"""


def test_a_function_may_be_a_root_and_a_part_of_another(tmp_path: Path) -> None:
    """As the second that two processes compile, its constants have the same name in both; a third one loads both."""
    _write(tmp_path, PACKAGE | {"both.py": f"import numpy as np\n{RETURNING}"})
    program = "from decision.both import added, made, one\n"
    assert _run(tmp_path, f"{program}print(added(3))") == "4.5"
    assert _run(tmp_path, f"{program}print(one(3), made(3))") == "1 [1.5 1.5 1.5]"
    assert _run(tmp_path, f"{program}print(added(3), made(3))") == "4.5 [1.5 1.5 1.5]"


@kernel
def _taken(values, at):
    return values[at]


@kernel
def _taken_twice(values, at):
    return _taken(values, values[0]) + _taken(values, 1) + _taken(values, at)


def test_a_kernel_is_typed_once_for_all_integers() -> None:
    class Unkept:
        def find(self, args, make):  # compiles each time, whatever is on disk
            return make()

    twice = jit.Kernel(_taken_twice.py_func, Unkept(), {"error_model": "numpy"})
    assert twice(np.array([2, 5, 7], np.int32), 0) == 14
    parts = _taken.dispatcher.overloads
    assert [args[1] for args in parts] == [numba.int64]


def test_code_compiled_by_numba_alone_can_call_a_kernel() -> None:
    @numba.njit
    def others(values):
        return _taken(values, 1) + values.sum()

    assert others(np.array([1.0, 2.0])) == 5.0
    assert _taken_twice(np.array([1, 2]), 0) == 5


def test_a_kernel_can_return_an_array_that_it_made() -> None:
    @kernel
    def made(length):
        return np.arange(length) * 2

    assert made(3).tolist() == [0, 2, 4]


def test_what_is_torn_on_disk_is_compiled_again(tmp_path: Path) -> None:
    _write(tmp_path, PACKAGE)
    assert _run(tmp_path) == "0 0 4 1"
    for file in tmp_path.rglob("*.root"):
        file.write_bytes(file.read_bytes()[:100])
    assert _run(tmp_path) == "1 1 4 1"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_what_is_needed_later_is_compiled_by_another_process(tmp_path: Path) -> None:
    entries = "from decision.compiling.entry import Interface\nI = Interface(float, float)\n" + "".join(
        f"@I.entry\ndef {name}(x):\n    return x\n" for name in ("first", "second")
    )
    source = Path(jit.__file__).parents[1]
    others = {f"compiling/{name}.py": (source / f"compiling/{name}.py").read_text() for name in ("bundle", "entry")}
    _write(tmp_path, PACKAGE | others | {"two.py": entries})
    said = _run(tmp_path, AHEAD, {})
    assert said.splitlines() == ["second is there", "0 of 2"]


AHEAD = """
import time
from decision.compiling.jit import compile_ahead, is_warm, on_compiling
from decision.two import first, second
compile_ahead(first, second)
end = time.monotonic() + 60
while not is_warm(second) and time.monotonic() < end:
    time.sleep(0.1)
print("second is there" if is_warm(second) else "nobody compiled it")
on_compiling.append(lambda done, of: print(f"{done - 1} of {of}"))
first.address, second.address
"""


def test_machine_code_that_nothing_has_used_for_a_month_is_removed(tmp_path: Path) -> None:
    old, recent = (tmp_path / "cache" / "decision.low" / name for name in ("0123456789abcdef", "fedcba9876543210"))
    for folder in (old, recent):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    _write(tmp_path, PACKAGE)
    _run(tmp_path)
    assert not old.exists()
    assert recent.exists()


def _write(folder: Path, package: dict[str, str]) -> None:
    for name, text in package.items():
        (folder / "decision" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "decision" / name).write_text(text)


def _start(folder: Path, program: str, more: dict[str, str]) -> "subprocess.Popen[str]":
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder), **more}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python's own cache tells changes by their second and size
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], cwd=folder, env=environment, **pipes)


def _run(folder: Path, program: str = PROGRAM, more: dict[str, str] = {}) -> str:  # noqa: B006 - not changed
    process = _start(folder, program, more)
    said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0, complaints
    return said.strip()
